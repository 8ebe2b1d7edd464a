"""Rows in several chunks: files get the same rows, and many rows in long runs are not copied.

Module: hudi_fast.writing.prepare.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hudi_fast as hf
from hudi_fast.writing import local, prepare
from hudi_fast.writing.write_plan import Incoming

OPTIONS = {"hoodie.table.name": "t", "hudi_fast.threads": "2"}


def rows_of(partitions: list[int], lengths: list[int]) -> pa.Table:
    """Rows of these partitions, in chunks of these lengths; the rest is the last chunk."""
    ids = range(len(partitions))
    texts = [None if one % 5 == 0 else f"text {one}" for one in ids]
    columns = {
        "id": pa.array([f"k{one}" for one in ids], pa.string()),
        "p": pa.array([f"p{one}" for one in partitions], pa.string()),
        "text": pa.array(texts, pa.string()),
        "code": pa.array(texts, pa.string()).dictionary_encode(),
        "items": pa.array([None if one % 7 == 0 else list(range(one % 4)) for one in ids], pa.list_(pa.int32())),
        "inner": pa.array([{"a": one / 2} for one in ids], pa.struct([("a", pa.float64())])),
    }
    table, start, chunks = pa.table(columns), 0, []
    for length in [*lengths, table.num_rows]:
        chunks.append(table.slice(start, length))
        start += length
    return pa.concat_tables(chunks).unify_dictionaries()


@pytest.fixture
def prepared(monkeypatch: pytest.MonkeyPatch) -> list[Incoming]:
    """What the write of a test prepares."""
    found, prepare_rows = list[Incoming](), prepare.prepare_rows
    monkeypatch.setattr(local, "prepare_rows", lambda *given: found.append(prepare_rows(*given)) or found[-1])
    return found


def stored(path: Path) -> list[dict[str, object]]:
    rows = hf.HudiTable.open(path).to_arrow(columns=["id", "p", "text", "code", "items", "inner"]).to_pylist()
    return sorted(rows, key=lambda row: str(row["id"]))


@given(st.lists(st.integers(0, 3), max_size=60), st.lists(st.integers(0, 20), max_size=5), st.sampled_from([1, 3, 100]))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.slow(but="upsert")
@pytest.mark.parametrize("operation", ["bulk_insert", "insert", "upsert"])
def test_rows_in_chunks_are_stored_like_rows_in_one(
    tmp_path_factory: pytest.TempPathFactory,
    operation: str,
    partitions: list[int],
    lengths: list[int],
    shortest: int,
) -> None:
    folder, rows = tmp_path_factory.mktemp("rows"), rows_of(partitions, lengths)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prepare, "_MANY_BYTES", 0)
        patch.setattr(prepare, "_RUN_ROWS", shortest)
        hf.write(rows, folder / "t", OPTIONS, key="id", partition_by="p", operation=operation)
    expected = rows.set_column(3, "code", rows["code"].cast(pa.string())).to_pylist()
    assert stored(folder / "t") == sorted(expected, key=lambda row: str(row["id"]))


@pytest.mark.parametrize(
    ("options", "in_runs", "kept"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"hoodie.bulkinsert.sort.mode": "PARTITION_SORT"}, True, False),
        ({"hoodie.datasource.write.operation": "insert"}, True, False),
        ({"hoodie.combine.before.insert": "true"}, True, False),
        ({"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}, True, False),
    ],
)
def test_many_rows_of_a_bulk_insert_in_long_runs_are_not_copied(
    tmp_path: Path,
    prepared: list[Incoming],
    monkeypatch: pytest.MonkeyPatch,
    options: dict[str, str],
    in_runs: bool,
    kept: bool,
) -> None:
    monkeypatch.setattr(prepare, "_MANY_BYTES", 0)
    monkeypatch.setattr(prepare, "_RUN_ROWS", 5)
    partitions = np.repeat(np.arange(4), 10) if in_runs else np.tile(np.arange(4), 10)
    rows = rows_of(partitions.tolist(), [10, 10, 10])
    hf.write(
        rows,
        tmp_path / "t",
        {**OPTIONS, "hoodie.datasource.write.operation": "bulk_insert", **options},
        key="id",
        partition_by="p",
    )
    assert (prepared[-1].batched is not None) is kept
    assert prepared[-1].rows["text"].num_chunks == (4 if kept else 1)
    given = [chunk.buffers()[-1].address for chunk in rows["text"].chunks]
    same = [chunk.buffers()[-1].address for chunk in prepared[-1].rows["text"].chunks]
    assert (given == same) is kept
    assert pc.sum(pc.is_valid(hf.HudiTable.open(tmp_path / "t").to_arrow()["text"])).as_py() == 32
