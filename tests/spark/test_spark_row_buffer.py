"""Rows of a task that move to a local file: the same files are written, in bounded memory."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hudi_fast as hf
from hudi_fast.config.write_options import WriteOptions
from hudi_fast.errors import CommitError, SchemaMismatchError
from hudi_fast.merging.row_buffer import RowBuffer, spool_folder, write_failure
from hudi_fast.metadata_table.state import open_state
from hudi_fast.spark.writing.tasks import Answer, write_buckets, write_partitions
from hudi_fast.spark.writing.unrouted_plans import _write_unsorted
from hudi_fast.storage.base import Storage
from hudi_fast.view.slices import latest_slices
from hudi_fast.writing.draft import draft_plan
from hudi_fast.writing.file_group import BUCKET, MOVED, SLICE
from hudi_fast.writing.markers import make_marker_folder
from hudi_fast.writing.write_plan import WritePlan
from tests.spark.programs import PROJECT
from tests.spark.spark_writes import batch
from tests.support.small_tables import options

FAILURE = partial(write_failure, "file:/t")
INSTANT = "20990101000000000"
PARTIAL_PAYLOAD = "org.apache.hudi.common.model.PartialUpdateAvroPayload"
ROWS = batch(range(500)).sort_by("part")


def spooled(batches: list[pa.RecordBatch], budget: int, convert: Any = None) -> pa.Table:
    with RowBuffer(FAILURE, convert, budget) as buffer:
        for one in batches:
            buffer.add(one)
        taken = buffer.take()
        assert taken is not None
        assert (taken.release is None) == (budget > ROWS.nbytes)
        assert buffer.take() is None
    return taken.table


@pytest.fixture
def local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "local"
    folder.mkdir()
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(folder))
    return folder


@pytest.mark.parametrize("budget", [0, 1_000, 20_000, 1 << 20])
def test_rows_are_the_same_from_memory_and_from_a_file(local: Path, budget: int) -> None:
    assert spooled(ROWS.to_batches(60), budget).equals(ROWS)
    assert list(local.iterdir()) == []


def test_a_buffer_is_used_again(local: Path) -> None:
    with RowBuffer(FAILURE, None, 10_000) as buffer:
        for start, end in ((0, 400), (400, 410), (410, 500)):
            for one in ROWS.slice(start, end - start).to_batches(50):
                buffer.add(one)
            taken = buffer.take()
            assert taken is not None
            assert taken.table.equals(ROWS.slice(start, end - start))
    assert list(local.iterdir()) == []


def test_small_batches_are_joined_in_the_file(local: Path) -> None:
    assert spooled(ROWS.to_batches(5), 50_000 if ROWS.nbytes > 50_000 else ROWS.nbytes - 1).column(0).num_chunks <= 2


def open_files(folder: Path) -> int:
    """How many files of a folder this process has open, those without a name included."""
    links = [Path("/proc/self/fd") / name for name in os.listdir("/proc/self/fd")]
    return sum(os.readlink(link).startswith(str(folder)) for link in links if link.is_symlink())


def test_no_file_stays_when_a_task_fails_or_is_killed(local: Path) -> None:
    def fail() -> None:
        with RowBuffer(FAILURE, None, 0) as buffer:
            buffer.add(ROWS.to_batches()[0])
            assert open_files(local) == 1
            assert list(local.iterdir()) == []  # it has no name, so it ends with the process
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert open_files(local) == 0


@contextmanager
def files_below(size: int) -> Iterator[None]:
    """No file of this process may be larger."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_a_file_that_cannot_be_written_is_an_error_that_names_its_folder(local: Path) -> None:
    large = pa.RecordBatch.from_pydict({"data": [b"x" * (1 << 20)] * 8})
    with files_below(1 << 20), RowBuffer(FAILURE, None, 0) as buffer:
        with pytest.raises(CommitError, match=rf"write to file:/t .*{local}.*spark\.local\.dir") as caught:
            buffer.add(large)
        assert isinstance(caught.value.__cause__, OSError)  # so Spark tries the task again
    assert list(local.iterdir()) == []


def test_the_folder_is_one_of_spark_that_exists(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    assert spool_folder({"SPARK_LOCAL_DIRS": f"{missing},{tmp_path}"}) == str(tmp_path)
    for environment in ({}, {"SPARK_LOCAL_DIRS": str(missing)}, {"SPARK_LOCAL_DIRS": ""}):
        assert Path(spool_folder(environment)).is_dir()
        assert spool_folder(environment) != str(missing)


# ---- whole tasks


def planned(path: Path, rows: pa.Table, settings: dict[str, str]) -> WritePlan:
    plan = draft_plan(open_state(Storage(path)), WriteOptions.from_options(settings), rows.schema)
    plan = replace(plan, instant=INSTANT)
    make_marker_folder(plan.storage, INSTANT)
    return plan


def routed(plan: WritePlan, rows: pa.Table, stored: int) -> Answer:
    """Rows below ``stored`` go to their slices, others to one new file group for each partition."""
    slices = [one for name in plan.view.lister.partitions() for one in latest_slices(plan.view, name)]
    numbers = {one.partition: number for number, one in enumerate(slices)}
    places = [
        numbers.get(part) if number < stored else None
        for part, number in zip(rows["part"].to_pylist(), rows["number"].to_pylist(), strict=True)
    ]
    new = [len(slices) + int(part[1:]) for part in rows["part"].to_pylist()]
    buckets = [new[i] if place is None else place for i, place in enumerate(places)]
    rows = rows.append_column(SLICE, pa.array(places, pa.int32()))
    rows = rows.append_column(MOVED, pa.array([False] * rows.num_rows))
    rows = rows.append_column(BUCKET, pa.array(buckets, pa.int32())).sort_by(BUCKET)
    return write_buckets(plan, slices)(iter(rows.to_batches(40)))


def fused(plan: WritePlan, rows: pa.Table, stored: int) -> Answer:
    del stored
    return write_partitions(plan)(iter(rows.sort_by("part").to_batches(40)))


def direct(plan: WritePlan, rows: pa.Table, stored: int) -> Answer:
    del stored
    answer: Answer = _write_unsorted(plan)(iter(rows.to_batches(40)))
    return answer


CHANGED = batch(
    [*range(60, 400), *range(100, 160), *range(0, 40, 3)],
    ts=[*[200] * 340, *[300] * 30, *[50] * 30, *[100] * 14],
    deletes=[70, 110, 390],
    seed=3,
).take(np.random.default_rng(1).permutation(414))
NESTED = pa.array([[{"a": n, "b": "x" * (n % 7)}] * (n % 3) for n in range(CHANGED.num_rows)])


@pytest.mark.slow(but="number,ts-routed-upsert-changes2")
@pytest.mark.parametrize(
    ("task", "operation", "changes"),
    [
        (routed, "upsert", {}),
        (routed, "upsert", {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}),
        (routed, "upsert", {"hoodie.write.record.merge.mode": "COMMIT_TIME_ORDERING"}),
        (routed, "upsert", {"hoodie.parquet.max.file.size": "9000", "hoodie.parquet.small.file.limit": "0"}),
        (fused, "delete", {}),
        (routed, "insert", {}),
        (fused, "upsert", {}),
        (fused, "upsert", {"hoodie.datasource.write.payload.class": PARTIAL_PAYLOAD}),
        (fused, "insert", {}),
        (fused, "bulk_insert", {"hoodie.bulkinsert.user.defined.partitioner.sort.columns": "v"}),
        (direct, "bulk_insert", {}),
    ],
)
@pytest.mark.parametrize("keys", ["id", "number,ts"])
def test_files_do_not_depend_on_where_the_rows_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, task: Any, operation: str, changes: dict[str, str], keys: str
) -> None:
    settings = options() | changes | {"hoodie.datasource.write.recordkey.field": keys}
    settings["hoodie.datasource.write.operation"] = operation
    nested = CHANGED.append_column("more", NESTED)
    first = batch(range(100)).append_column("more", NESTED.slice(0, 100))
    kind = {key: value for key, value in settings.items() if "file" not in key}
    hf.write(first, tmp_path / "t", kind | {"hoodie.datasource.write.operation": "upsert"})
    plan = planned(tmp_path / "t", nested, settings)
    incoming = nested.set_column(1, "number", nested["number"].cast(pa.int16()))  # converted by the task
    found = []
    for budget in (1 << 30, 3_000):
        monkeypatch.setattr("hudi_fast.merging.row_buffer.ROW_BUDGET", budget)
        monkeypatch.setattr("hudi_fast.merging.row_buffer._RESIDENT", 1_000)
        plan.storage.delete_dir(f".hoodie/.temp/{INSTANT}")  # the markers of the other files
        make_marker_folder(plan.storage, INSTANT)
        assert plan.rules.blends == (PARTIAL_PAYLOAD in settings.values())
        stats = task(plan, incoming, 100 if keys == "id" and operation != "insert" else 0).stats
        assert stats
        content = {}
        for stat in stats:
            file = tmp_path / "t" / stat.path
            content[stat.path] = pq.read_table(file) if file.suffix == ".parquet" else file.read_bytes()
            file.unlink()
        found.append((stats, content))
    (in_memory, wanted), (from_file, files) = found
    assert [(one.path, one.num_writes, one.num_update_writes, one.num_deletes) for one in from_file] == [
        (one.path, one.num_writes, one.num_update_writes, one.num_deletes) for one in in_memory
    ]
    assert files == wanted


def test_a_value_that_does_not_fit_is_refused_from_a_file_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hf.write(batch(range(100)), tmp_path / "t", options())
    plan = planned(tmp_path / "t", CHANGED, options())
    bad = CHANGED.set_column(1, "number", pa.array(["x"] * CHANGED.num_rows))
    messages = []
    for budget in (1 << 30, 0):
        monkeypatch.setattr("hudi_fast.merging.row_buffer.ROW_BUDGET", budget)
        with pytest.raises(SchemaMismatchError, match="number") as caught:
            fused(plan, bad, 0)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


MEMORY = """
import sys
from pathlib import Path
import numpy as np, pyarrow as pa
import hudi_fast as hf
from tests.spark.test_spark_row_buffer import fused, planned

WIDTH = 10_000
def rows(ids):
    noise = np.random.default_rng(int(ids[0])).integers(97, 113, size=len(ids) * WIDTH, dtype=np.uint8)
    bounds = np.arange(0, len(ids) * WIDTH + 1, WIDTH, dtype=np.int32)
    text = pa.Array.from_buffers(pa.string(), len(ids), [None, pa.py_buffer(bounds), pa.py_buffer(noise)])
    return pa.record_batch({"id": pa.array(ids).cast(pa.string()), "ts": np.ones(len(ids), np.int64),
                            "number": pa.array(ids, pa.int32()), "part": pa.array(["p0"] * len(ids)), "text": text})

class Source:
    def __init__(self, ids): self.ids = ids
    def to_batches(self, _): return (rows(self.ids[i : i + 3000]) for i in range(0, len(self.ids), 3000))
    def sort_by(self, _): return self

path = Path(sys.argv[1])
settings = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.precombine.field": "ts", "hoodie.datasource.write.partitionpath.field": "part",
            "hoodie.parquet.max.file.size": str(4 << 30)}
first = pa.Table.from_batches([rows(np.arange(2))])
hf.write(first, path, settings)
plan = planned(path, first, settings)
ids = np.random.default_rng(0).permutation(80_000)
(stat,) = fused(plan, Source(ids), 0).stats
assert (stat.num_writes, stat.num_update_writes) == (80_000, 2), stat
(line,) = [line for line in open("/proc/self/status") if line.startswith("VmHWM")]
print(int(line.split()[1]) >> 10)
"""


@pytest.mark.slow
def test_a_task_with_800_mb_of_wide_rows_stays_below_a_gibibyte(tmp_path: Path) -> None:
    program = [sys.executable, "-c", MEMORY, str(tmp_path / "t")]
    done = subprocess.run(program, capture_output=True, text=True, check=False, cwd=PROJECT)
    assert done.returncode == 0, done.stderr
    assert 100 < int(done.stdout) < 900
