"""Rows of a mapped file, selected by number."""

from __future__ import annotations

import itertools
import mmap
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_fast.formats.varlen import gather
from hudi_fast.merging.row_buffer import BatchedRows

TABLE = pa.table(
    {
        "text": pa.array(["a", None, "", "ddd", "é" * 40] * 6),
        "number": pa.array([1, None, 3, 4, 5] * 6, pa.int32()),
        "list": pa.array([[1], None, [], [2, 3], [4]] * 6),
    }
)
ROWS = st.lists(st.integers(0, 29), max_size=40).map(lambda rows: np.array(rows, np.int64))
CUTS = st.lists(st.integers(0, 30), max_size=6).map(lambda cuts: [0, *sorted(cuts), 30])


def cut(cuts: list[int]) -> pa.Table:
    """The rows in batches, some of them empty."""
    return pa.concat_tables([TABLE.slice(start, end - start) for start, end in itertools.pairwise(cuts)])


@given(ROWS, CUTS, st.permutations(TABLE.column_names))
def test_rows_are_those_of_a_table_in_one_chunk(rows: np.ndarray, cuts: list[int], columns: list[str]) -> None:
    made = BatchedRows(cut(cuts), lambda: None).take(rows, columns)
    made.validate(full=True)
    assert made.equals(gather(TABLE.combine_chunks().select(columns), rows))
    assert all(column.num_chunks <= 1 for column in made.columns)


@given(ROWS, CUTS, st.integers(1, 40), st.integers(1, 500))
def test_parts_follow_each_other_and_have_a_bounded_size(
    rows: np.ndarray, cuts: list[int], max_rows: int, max_bytes: int
) -> None:
    parts = list(BatchedRows(cut(cuts), lambda: None).parts(rows, max_rows, max_bytes))
    assert np.concatenate([rows[:0], *parts]).tolist() == rows.tolist()
    assert all(1 <= len(part) <= max_rows for part in parts)
    largest_batch = max(TABLE.slice(start, end - start).nbytes for start, end in itertools.pairwise(cuts))
    if (np.diff(rows) > 0).all():
        assert all(len(part) == 1 or gather(TABLE, part).nbytes <= max_bytes + 2 * largest_batch for part in parts)


def test_rows_of_one_batch_that_follow_each_other_are_not_copied() -> None:
    made = BatchedRows(cut([0, 10, 30]), lambda: None).take(np.arange(12, 20))
    address = TABLE.column("number").chunk(0).buffers()[1].address
    assert made.column("number").chunk(0).buffers()[1].address == address


def test_pages_are_released_while_rows_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hudi_fast.merging.row_buffer._RESIDENT", 2 * TABLE.slice(0, 10).nbytes)
    released = []
    rows = BatchedRows(cut([0, 10, 20, 30]), lambda: released.append(1))
    assert len(released) == 1  # cutting the rows into batches reads some
    for _ in range(10):
        rows.take(np.array([29, 1, 12]))
    assert 5 <= len(released) <= 16


def test_released_pages_are_read_again(tmp_path: Path) -> None:
    with pa.ipc.new_file(str(tmp_path / "rows"), TABLE.schema) as writer:
        for batch in cut([0, 10, 20, 30]).to_batches():
            writer.write_batch(batch)
    with open(tmp_path / "rows", "rb") as file:
        mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    (tmp_path / "rows").unlink()
    table = pa.ipc.open_file(pa.py_buffer(mapping)).read_all()
    rows = BatchedRows(table, lambda: mapping.madvise(mmap.MADV_DONTNEED))
    before = rows.take(np.arange(30)[::-1])
    view = rows.take(np.arange(3, 9))
    mapping.madvise(mmap.MADV_DONTNEED)
    assert rows.take(np.arange(30)[::-1]).equals(before)
    assert view.equals(TABLE.slice(3, 6))
