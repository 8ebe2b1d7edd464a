"""Streams that are larger than the memory of a write: the table is that of rows in memory, and no temporary file stays.

Modules: hudi_fast.writing.spilling.engine, hudi_fast.writing.spilling.spill_file,
hudi_fast.writing.spilling.large_partition, hudi_fast.writing.file_group.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings

import hudi_fast as hf
from tests.support.examples import examples
from tests.support.small_tables import assert_tidy, options, plain_rows, table_rows

OPERATION = "hoodie.datasource.write.operation"
GLOBAL = {"hoodie.index.type": "GLOBAL_SIMPLE"}
STAYS = "hoodie.simple.index.update.partition.path"
PAYLOAD = "hoodie.datasource.write.payload.class"
SMALL_FILES = {
    "hoodie.parquet.max.file.size": "20000",
    "hoodie.parquet.small.file.limit": "15000",
    "hoodie.copyonwrite.record.size.estimate": "200",
}
WAYS: list[tuple[str, dict[str, str]]] = [
    ("upsert", {}),
    ("upsert", {"hoodie.index.type": "BLOOM"}),
    ("upsert", {"hoodie.table.cdc.enabled": "true"}),
    ("upsert", {"hoodie.write.record.merge.mode": "COMMIT_TIME_ORDERING"}),
    ("upsert", {PAYLOAD: "org.apache.hudi.common.model.PartialUpdateAvroPayload"}),
    ("upsert", GLOBAL),
    ("upsert", {**GLOBAL, STAYS: "false"}),
    ("upsert", {"hoodie.index.type": "GLOBAL_RECORD_LEVEL_INDEX"}),
    ("upsert", {"hoodie.index.type": "RECORD_LEVEL_INDEX"}),
    ("upsert", {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "4"}),
    ("delete", {}),
    ("delete", GLOBAL),
    ("insert", {}),
    ("insert", {"hoodie.combine.before.insert": "true"}),
    ("insert", {"hoodie.datasource.insert.dup.policy": "drop"}),
    ("bulk_insert", {}),
    ("bulk_insert", {"hoodie.bulkinsert.sort.mode": "GLOBAL_SORT", "hoodie.combine.before.insert": "true"}),
    ("insert_overwrite", {}),
    ("insert_overwrite_table", {}),
]


def batches(rows: int, seed: int, size: int, partitions: int, moved: bool) -> Iterator[pa.RecordBatch]:
    """Rows with few keys, in any order; ``moved`` puts every second key into another partition."""
    chance = np.random.default_rng(seed)
    for start in range(0, rows, size):
        count = min(size, rows - start)
        keys = chance.integers(0, rows * 2 // 3, count)
        numbers = np.arange(start, start + count)
        yield pa.record_batch(
            {
                "id": pa.array([f"k{key:05d}" for key in keys]),
                "part": pa.array([f"p{(key + (moved and key % 2)) % partitions}" for key in keys]),
                "ts": pa.array(chance.integers(0, 20, count)),
                "v": pa.array(numbers * 0.5, mask=numbers % 3 == 0),
                "w": pa.array([None if number % 2 else {"n": [int(number)]} for number in numbers]),
                "_hoodie_is_deleted": pa.array(numbers % 11 == 0),
            }
        )


def sorted_rows(path: Path) -> list[dict[str, Any]]:
    names = ["_hoodie_record_key", "_hoodie_partition_path", "id", "part", "ts", "v", "w"]
    return sorted(hf.HudiTable.open(path).to_arrow(columns=names).to_pylist(), key=repr)


def spilling(folder: Path, memory: int = 6000) -> dict[str, str]:
    return {"hoodie.memory.merge.max.size": str(memory), "hoodie.memory.spillable.map.path": str(folder)}


def check(
    folder: Path, way: tuple[str, dict[str, str]], kind: str, partitions: int, size: int, memory: int, seed: int
) -> None:
    """Write twice from memory and twice from a stream, and compare the tables."""
    operation, extra = way
    given = {**options(), **SMALL_FILES, **extra, "hoodie.datasource.write.table.type": kind}
    for step in range(2):
        written = {**given, OPERATION: operation if step or "insert" in operation else "upsert"}
        rows = [*batches(150, seed + step, size, partitions, moved=step == 1)]
        expected = hf.write(pa.Table.from_batches(rows), folder / "in_memory", written)
        found = hf.write(iter(rows), folder / "spilled", {**written, **spilling(folder / "temporary", memory)})
        assert found.plan == "spilled"
        if kind == "COPY_ON_WRITE":  # late rows count in log files, which depend on the layout
            counts = [(one.inserts, one.updates, one.deletes) for one in (expected, found)]
            assert counts[0] == counts[1]
        assert sorted_rows(folder / "in_memory") == sorted_rows(folder / "spilled")
        assert_tidy(folder / "spilled")
    assert os.listdir(folder / "temporary") == []


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(WAYS)))
def test_each_way_writes_the_rows_of_a_write_from_memory(tmp_path: Path, number: int) -> None:
    kind = ("COPY_ON_WRITE", "MERGE_ON_READ")[number % 2]
    check(tmp_path, WAYS[number], kind, partitions=3, size=40, memory=4000, seed=number)


@pytest.mark.slow
@settings(max_examples=examples(6), suppress_health_check=list(HealthCheck))
@given(
    way=st.sampled_from(WAYS),
    kind=st.sampled_from(["COPY_ON_WRITE", "MERGE_ON_READ"]),
    partitions=st.sampled_from([1, 3]),
    size=st.integers(7, 120),
    memory=st.integers(1500, 12_000),
    seed=st.integers(0, 1000),
)
def test_a_table_is_that_of_rows_in_memory(way, kind, partitions, size, memory, seed) -> None:
    with tempfile.TemporaryDirectory() as name:
        check(Path(name), way, kind, partitions, size, memory, seed)


def many(count: int, partitions: int = 1) -> Iterator[pa.RecordBatch]:
    """Rows with different keys in any order."""
    order = np.random.default_rng(1).permutation(count)
    yield from plain_rows(order.tolist(), partitions=partitions).to_batches(100)


def files(path: Path) -> list[pa.Table]:
    return [pq.read_table(file, partitioning=None) for file in sorted(path.rglob("*.parquet"))]


SORTED = {OPERATION: "bulk_insert", "hoodie.bulkinsert.sort.mode": "GLOBAL_SORT", "hoodie.metadata.enable": "false"}


@pytest.mark.slow
def test_files_of_a_sorted_bulk_insert_do_not_overlap(tmp_path: Path) -> None:
    given = {**options(), **SMALL_FILES, **SORTED, **spilling(tmp_path / "temporary", 20_000)}
    hf.write(many(2000), tmp_path / "t", given)
    keys = sorted(one.column("id").to_pylist() for one in files(tmp_path / "t" / "p0"))
    assert len(keys) > 5
    assert [key for file in keys for key in file] == [f"k{number:05d}" for number in range(2000)]


@pytest.mark.slow
def test_sort_columns_apply_to_a_whole_partition(tmp_path: Path) -> None:
    columns = "hoodie.bulkinsert.user.defined.partitioner.sort.columns"
    given = {**options(), **SMALL_FILES, **SORTED, columns: "ts,text", **spilling(tmp_path / "temporary", 20_000)}
    hf.write(many(2000), tmp_path / "t", given)
    texts = sorted(one.column("text").to_pylist() for one in files(tmp_path / "t" / "p0"))
    assert len(texts) > 5
    assert [text for file in texts for text in file] == sorted(f"a{number}" for number in range(2000))


@pytest.mark.slow
def test_sort_columns_may_be_fields_of_structs(tmp_path: Path) -> None:
    columns = "hoodie.bulkinsert.user.defined.partitioner.sort.columns"
    given = {**options(), **SMALL_FILES, **SORTED, columns: "place.x", **spilling(tmp_path / "temporary", 20_000)}

    def placed() -> Iterator[pa.RecordBatch]:
        for batch in many(2000):
            places = [{"x": int(key[1:]) * 7919 % 2000} for key in batch["id"].to_pylist()]
            yield batch.append_column("place", pa.array(places, pa.struct([("x", pa.int32())])))

    assert hf.write(placed(), tmp_path / "t", given).plan == "spilled"
    found = sorted([place["x"] for place in one["place"].to_pylist()] for one in files(tmp_path / "t" / "p0"))
    assert len(found) > 5
    assert [x for file in found for x in file] == list(range(2000))


def test_consecutive_rows_of_an_insert_fill_small_files_first(tmp_path: Path) -> None:
    given = {**options(), **SMALL_FILES, **SORTED, OPERATION: "insert"}  # only a bulk insert sorts
    hf.write(plain_rows(range(5000, 5010), partitions=1), tmp_path / "t", given)
    small = hf.HudiTable.open(tmp_path / "t").to_arrow(columns=["_hoodie_file_name"]).column(0)[0].as_py()
    result = hf.write(many(2000), tmp_path / "t", {**given, **spilling(tmp_path / "temporary", 20_000)})
    assert result.files_written > 5
    assert len(table_rows(tmp_path / "t")) == 2010
    group = small.partition("_")[0]
    versions = list((tmp_path / "t" / "p0").glob(f"{group}*.parquet"))
    assert len(versions) == 2
    assert max(pq.read_metadata(file).num_rows for file in versions) > 50


def test_rows_of_generated_keys_have_different_keys(tmp_path: Path) -> None:
    given = {**options(key=None, ordering=None), **SMALL_FILES, OPERATION: "insert"}
    hf.write(many(2000, partitions=3), tmp_path / "t", {**given, **spilling(tmp_path / "temporary", 20_000)})
    keys = hf.HudiTable.open(tmp_path / "t").to_arrow(columns=["_hoodie_record_key"]).column(0)
    assert len(keys.unique()) == 2000


def test_a_small_stream_is_written_from_memory(tmp_path: Path) -> None:
    given = {**options(), "hoodie.memory.spillable.map.path": str(tmp_path / "temporary")}
    assert hf.write(many(100), tmp_path / "t", given).plan == "local"
    assert not (tmp_path / "temporary").exists()


def test_a_preview_of_a_stream_counts_its_partitions(tmp_path: Path) -> None:
    found = hf.plan_write(many(900, partitions=3), tmp_path / "t", {**options(), **spilling(tmp_path / "temporary")})
    assert (found.plan, found.partitions) == ("spilled", {"p0": 300, "p1": 300, "p2": 300})
    assert not (tmp_path / "t").exists()
    assert os.listdir(tmp_path / "temporary") == []


def test_partitions_of_a_stream_are_deleted(tmp_path: Path) -> None:
    hf.write(many(900, partitions=3), tmp_path / "t", options())
    rows = (batch.filter(pa.compute.not_equal(batch.column("part"), "p1")) for batch in many(900, partitions=3))
    given = {**options(operation="delete_partition"), **spilling(tmp_path / "temporary")}
    hf.write(rows, tmp_path / "t", given)
    assert {row[0] for row in table_rows(tmp_path / "t").values()} == {"p1"}


@pytest.mark.slow
def test_rows_are_converted_again_if_another_write_adds_a_column_meanwhile(tmp_path: Path) -> None:
    shared = {
        **options(),
        "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
        "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider",
        "hoodie.clean.failed.writes.policy": "LAZY",
        "hoodie.write.set.null.for.missing.columns": "true",
    }
    hf.write(plain_rows(range(2)), tmp_path / "t", shared)

    def rows() -> Iterator[pa.RecordBatch]:
        yield from many(1000)
        wider = plain_rows([7000], partitions=1).append_column("more", pa.array([5]))
        hf.write(wider, tmp_path / "t", {**shared, OPERATION: "insert"})

    assert hf.write(rows(), tmp_path / "t", {**shared, **spilling(tmp_path / "temporary")}).plan == "spilled"
    found = hf.HudiTable.open(tmp_path / "t").to_arrow()
    assert found.num_rows == 1002  # k00001 is in p1, too
    assert found.column("more").drop_null().to_pylist() == [5]


# ---- refusals and failures


def late(*last: Any) -> Iterator[Any]:
    yield from many(900)
    yield from last


def test_a_late_row_that_is_invalid_is_refused_with_its_number(tmp_path: Path) -> None:
    bad = plain_rows([1]).set_column(0, "id", pa.array([None], pa.string()))
    with pytest.raises(hf.InvalidDataError, match="1 of 1 rows, the first of them row 900"):
        hf.write(late(bad), tmp_path / "t", {**options(), **spilling(tmp_path / "temporary")})
    assert not (tmp_path / "t").exists()
    assert os.listdir(tmp_path / "temporary") == []


def test_a_late_batch_with_other_columns_is_refused(tmp_path: Path) -> None:
    with pytest.raises(hf.SchemaMismatchError, match="Batch 9 of the rows has other columns than the first one"):
        hf.write(late(pa.table({"id": ["a"]})), tmp_path / "t", {**options(), **spilling(tmp_path / "temporary")})
    assert not (tmp_path / "t").exists()


def test_an_error_of_the_source_reaches_the_caller(tmp_path: Path) -> None:
    hf.write(plain_rows(range(3)), tmp_path / "t", options())
    before = table_rows(tmp_path / "t")

    def rows() -> Iterator[pa.RecordBatch]:
        yield from many(900)
        raise RuntimeError("the source is gone")

    with pytest.raises(RuntimeError, match="the source is gone"):
        hf.write(rows(), tmp_path / "t", {**options(), **spilling(tmp_path / "temporary")})
    assert table_rows(tmp_path / "t") == before
    assert_tidy(tmp_path / "t")


def test_duplicates_are_refused_where_the_policy_says_so(tmp_path: Path) -> None:
    hf.write(plain_rows([5], partitions=1), tmp_path / "t", options())
    given = {**options(operation="insert"), "hoodie.datasource.insert.dup.policy": "fail"}
    with pytest.raises(hf.DuplicateKeyError, match="'k00005'"):
        hf.write(many(900), tmp_path / "t", {**given, **spilling(tmp_path / "temporary")})
    assert len(table_rows(tmp_path / "t")) == 1
    assert_tidy(tmp_path / "t")


LIMITED = """
import resource, sys
sys.path[:0] = {path!r}
import hudi_fast as hf
from tests.support.small_tables import options
from tests.writing.test_writing_spilling import many, spilling
resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000))
try:
    hf.write(many(20_000), {table!r}, {{**options(), **spilling({folder!r}, 100_000)}})
except hf.CommitError as error:
    print(error)
"""


@pytest.mark.slow
def test_a_full_disk_is_told_and_nothing_is_committed(tmp_path: Path) -> None:
    folder = str(tmp_path / "temporary")
    code = LIMITED.format(path=sys.path, table=str(tmp_path / "t"), folder=folder)
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert f"temporary files in {folder}, which cannot be written" in found
    assert "hoodie.memory.spillable.map.path" in found
    assert not (tmp_path / "t").exists()


KILLED = """
import os, signal, sys
sys.path[:0] = {path!r}
import hudi_fast as hf
from tests.support.small_tables import options
from tests.writing.test_writing_spilling import many, spilling
from tests.support.examples import examples
def rows():
    yield from many(5000)
    print(len(os.listdir({folder!r})), os.stat({folder!r}).st_mode & 0o777, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
hf.write(rows(), {table!r}, {{**options(), **spilling({folder!r})}})
"""


@pytest.mark.slow
def test_a_killed_write_leaves_no_temporary_file(tmp_path: Path) -> None:
    folder = str(tmp_path / "temporary")
    code = KILLED.format(path=sys.path, table=str(tmp_path / "t"), folder=folder)
    killed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (killed.returncode, killed.stdout.split()) == (-9, ["0", str(0o700)])
    assert os.listdir(folder) == []
    assert not (tmp_path / "t").exists()
