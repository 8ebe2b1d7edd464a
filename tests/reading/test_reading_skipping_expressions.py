"""Expression indexes that apply to a filter."""

from __future__ import annotations

import datetime
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyarrow.compute import field

from hudi_fast.expressions.arrow_filters import parse_filter
from hudi_fast.metadata_table.layout import IndexDefinition
from hudi_fast.reading.skipping.expressions import filtered_expressions, indexed_expressions

SCHEMA = pa.schema({"text": pa.string(), "day": pa.date32(), "n": pa.int64()})
NAME = "expr_index_x"


def applies(function: str, filter_: pc.Expression, column: str = "text", **options: str) -> str | None:
    """The condition on the index's values, as text; None if the index does not apply."""
    definition = IndexDefinition(NAME, "column_stats", function, (column,), options)
    table: Any = SimpleNamespace(partitions=(NAME, "files"), definitions={NAME: definition})
    found = indexed_expressions(table, parse_filter(filter_), SCHEMA)
    assert [one.partition for one in found] == [NAME][: len(found)]
    return str(found[0].condition) if found else None


@pytest.mark.parametrize(
    ("function", "filter_", "column", "expected"),
    [
        ("upper", pc.utf8_upper(field("text")) == "AB", "text", True),
        ("upper", pc.utf8_upper(field("text")) == "ÄB", "text", False),
        ("upper", pc.utf8_upper(field("text")) > "AB", "text", False),
        ("upper", pc.utf8_lower(field("text")) == "ab", "text", False),
        ("lower", pc.utf8_lower(field("text")) == "ab", "text", True),
        ("lower", pc.utf8_lower(field("text")) == "ib", "text", False),
        ("lower", pc.ascii_lower(field("text")) == "ib", "text", True),
        ("length", pc.utf8_length(field("text")) > 3, "text", True),
        ("length", pc.utf8_length(field("other")) > 3, "text", False),
        ("year", pc.year(field("day")) == 2024, "day", True),
        ("month", pc.year(field("day")) == 2024, "day", False),
        ("year", field("day").is_valid(), "day", False),
        ("year", pc.year(field("n")) == 2024, "n", False),
        ("unknown", pc.utf8_upper(field("text")) == "AB", "text", False),
    ],
)
def test_an_index_applies_where_both_functions_agree(
    function: str, filter_: pc.Expression, column: str, expected: bool
) -> None:
    assert (applies(function, filter_, column) is not None) is expected


def test_a_slice_applies_with_the_same_bounds() -> None:
    filter_ = pc.utf8_slice_codeunits(field("text"), start=1, stop=4) == "abc"
    assert applies("substring", filter_, pos="2", len="3") is not None
    assert applies("substring", filter_, pos="1", len="3") is None
    assert applies("substring", filter_) is None


@pytest.mark.parametrize(
    ("function", "filter_", "column", "expected"),
    [
        ("upper", pc.utf8_upper(field("text")).isin(["AB", "C"]), "text", ["AB", "C"]),
        ("upper", pc.utf8_upper(field("text")) > "AB", "text", None),
        ("upper", pc.utf8_upper(field("text")) == "", "text", None),
        ("upper", pc.utf8_upper(field("text")) == "Ä", "text", None),
        ("identity", field("text") == "ab", "text", ["ab"]),
        ("identity", pc.scalar(7) == field("n"), "n", ["7"]),
        ("identity", field("day") == pc.scalar(datetime.date(2024, 1, 1)), "day", None),
        ("identity", field("text") != "ab", "text", None),
        ("length", pc.utf8_length(field("text")) == 3, "text", ["3"]),
        ("year", (pc.year(field("day")) == 2024) & (field("n") > 1), "day", ["2024"]),
        ("year", (pc.year(field("day")) == 2024) | (field("n") > 1), "day", None),
        ("to_date", field("text") == "ab", "text", None),
    ],
)
def test_filters_are_asked_for_the_texts_of_equal_results(
    function: str, filter_: pc.Expression, column: str, expected: list[str] | None
) -> None:
    definition = IndexDefinition(NAME, "bloom_filters", function, (column,), {"expr": function})
    table: Any = SimpleNamespace(partitions=(NAME, "files"), definitions={NAME: definition})
    assert indexed_expressions(table, parse_filter(filter_), SCHEMA) == []
    found = filtered_expressions(table, parse_filter(filter_), SCHEMA)
    assert [one.texts.to_pylist() for one in found] == ([] if expected is None else [expected])


def test_conjuncts_on_other_columns_are_left_out() -> None:
    wanted = pc.utf8_length(field("text")) > 3
    assert applies("length", wanted & (field("n") == 1)) == applies("length", wanted)
    assert applies("length", wanted | (field("n") == 1)) is None
