"""Rows that users pass, as Arrow tables."""

from __future__ import annotations

import datetime

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from hudi_fast.arrow_input import to_arrow_table
from hudi_fast.errors import InvalidDataError

ROWS = pa.table({"id": ["a", "b"], "v": [1, 2]})


@pytest.mark.parametrize(
    "data",
    [
        ROWS,
        ROWS.to_batches()[0],
        ROWS.to_pandas(),
        ROWS.to_pylist(),
        ROWS.to_reader(),
        pa.RecordBatchReader.from_batches(ROWS.schema, ROWS.to_batches()),
    ],
    ids=["table", "batch", "pandas", "dicts", "reader", "stream"],
)
def test_every_kind_of_rows_is_the_same_table(data: object) -> None:
    assert to_arrow_table(data).to_pydict() == ROWS.to_pydict()


def test_a_table_is_not_copied() -> None:
    assert to_arrow_table(ROWS) is ROWS


def test_a_polars_frame_is_read_through_its_stream() -> None:
    assert to_arrow_table(pl.from_arrow(ROWS)).to_pydict() == ROWS.to_pydict()


def test_named_index_levels_become_columns_and_others_are_dropped() -> None:
    frame = ROWS.to_pandas()
    assert to_arrow_table(frame.set_index("id")).column_names == ["id", "v"]
    assert to_arrow_table(frame).column_names == ["id", "v"]
    named_like_a_column = frame.set_index(pd.Index([7, 8], name="v"))
    assert to_arrow_table(named_like_a_column)["v"].to_pylist() == [1, 2]


@pytest.mark.parametrize("data", [pl.from_arrow(ROWS).lazy(), [], {"id": [1]}, [1, 2], "rows", None])
def test_other_types_are_refused_by_name(data: object) -> None:
    with pytest.raises(InvalidDataError, match=f"got {type(data).__name__}"):
        to_arrow_table(data)


@pytest.mark.parametrize(
    "data",
    [
        [{"v": 1}, {"v": "text"}],
        [{"v": 2**70}],
        pd.DataFrame({"v": [1, "text", datetime.date(2024, 1, 1)]}),
    ],
)
def test_a_column_of_mixed_types_is_refused(data: object) -> None:
    with pytest.raises(InvalidDataError, match="Give each column one type"):
        to_arrow_table(data)
