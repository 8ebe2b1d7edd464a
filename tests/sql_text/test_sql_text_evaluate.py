"""Queries in Spark's grammar over Arrow data."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import hudi_fast as hf
from hudi_fast.sql_text.evaluate import evaluated

ROWS = pa.table({"id": [1, 2, 3], "name": ["a", "b", "c"]})


def test_tables_and_datasets_are_named_by_the_caller() -> None:
    sources = {"one": ROWS, "two": ds.dataset(ROWS)}
    found = evaluated("SELECT one.`name`, two.id FROM one JOIN two ON one.id = two.id WHERE two.id > 1", sources)
    assert sorted(map(tuple, (row.values() for row in found.to_pylist()))) == [("b", 2), ("c", 3)]


@pytest.mark.parametrize("text", ["SELECT missing FROM one", "SELECT FROM FROM", "SELECT 1; SELECT 2"])
def test_an_error_shows_the_callers_query(text: str) -> None:
    with pytest.raises(hf.ConfigError, match="what the user wrote"):
        evaluated(text, {"one": ROWS}, "what the user wrote")


def test_variables_of_python_are_no_tables() -> None:
    local = ROWS  # noqa: F841
    with pytest.raises(hf.ConfigError, match="local"):
        evaluated("SELECT * FROM local", {})
