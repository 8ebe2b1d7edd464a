"""Rows in the types that a table stores, before a statement computes with them."""

from __future__ import annotations

import datetime

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_fast.schema.conform import storable_rows

TEXTS = pa.array(["a", None, "b", "b"])
FORMS = {
    "dictionary": TEXTS.dictionary_encode(),
    "dictionary of views": TEXTS.cast(pa.string_view()).dictionary_encode(),
    "run-end encoded": pc.run_end_encode(TEXTS),
    "view": TEXTS.cast(pa.string_view()),
    "large": TEXTS.cast(pa.large_string()),
    "enum of polars": pl.Series(["a", None, "b", "b"], dtype=pl.Enum(["a", "b"])).to_arrow(),
    "categories of polars": pl.Series(["a", None, "b", "b"], dtype=pl.Categorical).to_arrow(),
}


@pytest.mark.parametrize("column", FORMS.values(), ids=FORMS)
def test_texts_of_any_layout_become_strings(column) -> None:
    rows = storable_rows(pa.table({"v": column}))
    assert rows.schema == pa.schema([("v", pa.string())])
    assert rows["v"].to_pylist() == ["a", None, "b", "b"]


def test_lists_of_any_layout_become_lists() -> None:
    values = [[1, None], None, [], [2]]
    kinds = [pa.list_(pa.int64()), pa.large_list(pa.int64()), pa.list_view(pa.int64()), pa.large_list_view(pa.int64())]
    for kind in kinds:
        rows = storable_rows(pa.table({"l": pa.array(values, kind)}))
        assert rows["l"].to_pylist() == values
        assert pa.types.is_list(rows.schema.field("l").type)


def test_columns_that_no_table_stores_stay_as_they_are() -> None:
    given = pa.table(
        {
            "d": pa.array([datetime.timedelta(1)]),
            "u": pa.array([1], pa.uint64()),
            "n": pa.nulls(1),
            "s": pa.array([{"a": 1, "A": 2}]),
        }
    )
    assert storable_rows(given) == given
    assert storable_rows(pa.table({})).num_columns == 0
    twice = pa.Table.from_arrays([TEXTS, TEXTS.dictionary_encode()], ["v", "v"])
    assert [field.type for field in storable_rows(twice).schema] == [pa.string(), pa.string()]
