"""Rows selected by number."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_fast.formats.varlen import gather, gather_array

COLUMNS = {
    "text": pa.array(["a", None, "", "ddd", "é"] * 4),
    "large": pa.array(["a", None, "", "ddd", "é"] * 4, pa.large_string()),
    "number": pa.array([1, None, 3, 4, 5] * 4, pa.int32()),
    "flag": pa.array([True, None, False, True, False] * 4),
    "fixed": pa.array([b"ab", None, b"cd", b"ef", b"gh"] * 4, pa.binary(2)),
    "list": pa.array([[1], None, [], [2, 3], [4]] * 4),
    "struct": pa.array([{"a": 1}, None, {"a": None}, {"a": 3}, {"a": 4}] * 4),
}
TABLE = pa.table(COLUMNS)
ROWS = st.lists(st.integers(0, 15), max_size=30).map(lambda rows: np.array(rows, np.int64))


@given(ROWS, st.integers(0, 4))
def test_rows_are_those_that_arrow_takes(rows: np.ndarray, start: int) -> None:
    part = TABLE.slice(start)
    made = gather(part, rows)
    made.validate(full=True)
    assert made.to_pylist() == part.take(pa.array(rows)).to_pylist()
    assert made.schema == TABLE.schema


def test_columns_of_several_chunks_are_one_selection() -> None:
    table = pa.concat_tables([TABLE, TABLE])
    rows = np.array([39, 0, 20], np.int64)
    assert gather(table, rows).to_pylist() == table.take(pa.array(rows)).to_pylist()


@pytest.mark.parametrize("name", COLUMNS)
def test_an_array_is_selected_like_a_column(name: str) -> None:
    array = COLUMNS[name].slice(3, 10)
    for rows in ([], [0], [9, 0, 0, 5], [2, 3, 4]):
        made = gather_array(array, np.array(rows, np.int64))
        assert made.to_pylist() == [array[row].as_py() for row in rows]


def test_consecutive_rows_are_not_copied() -> None:
    made = gather(TABLE, np.arange(5, 9))
    assert made.column("number").chunk(0).buffers()[1].address == COLUMNS["number"].buffers()[1].address
    assert made.to_pylist() == TABLE.slice(5, 4).to_pylist()
