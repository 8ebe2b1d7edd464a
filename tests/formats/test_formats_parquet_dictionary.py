"""Columns that get a dictionary, chosen by a sample."""

from __future__ import annotations

import pyarrow as pa

from hudi_fast.formats.parquet.leaf_columns import dictionary_columns


def test_columns_whose_values_repeat_are_chosen() -> None:
    rows = 1000
    table = pa.table(
        {
            "always": [f"{number}" for number in range(rows)],
            "key": ["k"] * rows,
            "few": [number % 250 for number in range(rows)],
            "many": [number % 251 for number in range(rows)],
            "flag": [True] * rows,
            "list": [[1]] * rows,
        }
    )
    assert dictionary_columns(table, ["always"], ["key"]) == ["always", "few"]


def test_the_first_rows_decide() -> None:
    column = pa.array([1] * 8192 + list(range(100_000)))
    assert dictionary_columns(pa.table({"c": column}), [], []) == ["c"]
    assert dictionary_columns(pa.table({"c": column[8192:]}), [], []) == []


def test_a_table_without_rows_needs_no_dictionary() -> None:
    assert dictionary_columns(pa.table({"c": pa.array([], pa.string())}), [], []) == []
