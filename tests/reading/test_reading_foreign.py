"""Tables of other projects are read as real Apache Hudi reads them, and every filter finds their rows.

Modules: hudi_fast.reading.read, hudi_fast.reading.skipping.select_files.
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

import hudi_fast as hf
from tests.support.foreign import OTHER_COLUMNS, filters_of_values, foreign_names, unzip_foreign
from tests.support.rows import assert_same_rows
from tests.support.tiers import is_long

NAMES = foreign_names()
KINDS = 3
"""Filters of one column: for nulls, for a value, and for others."""


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_query_has_the_rows_that_apache_hudi_answers(name: str, tmp_path: Path) -> None:
    table, others = unzip_foreign(name, tmp_path), OTHER_COLUMNS.get(name, {})
    for query in table.queries:
        rows, wanted = table.read(query), table.answer(query)
        assert sorted(rows.column_names) == sorted(wanted.column_names)
        assert_same_rows(rows, wanted, ignore=tuple(others))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*whole_seconds_v6.*is not used, folders are listed")  # it was taken away
@pytest.mark.parametrize("name", NAMES)
def test_a_filter_finds_the_rows_that_match_it(name: str, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    """Whatever folders and metadata table say. Half of the columns have one filter, of another kind in each table."""
    table = hf.HudiTable.open(unzip_foreign(name, tmp_path).table)
    rows = table.to_arrow()
    first, step = (0, 1) if is_long(pytestconfig) else (NAMES.index(name) % (2 * KINDS), 2 * KINDS + 1)
    for filter_ in islice(filters_of_values(rows), first, None, step):
        assert_same_rows(table.to_arrow(filter=filter_), rows.filter(filter_), ignore=())


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("released_1.0.2")])
def test_rows_are_found_and_deleted_by_null_where_an_index_has_no_nulls(name: str, tmp_path: Path) -> None:
    table = unzip_foreign(name, tmp_path)
    opened, wanted = hf.HudiTable.open(table.table), table.facts["filter 'price is null' -> id"]
    assert sorted(opened.to_arrow(filter="price is null")["id"].to_pylist()) == wanted
    opened.delete("price is null")
    assert sorted(opened.to_arrow()["id"].to_pylist()) == ["b", "c", "e"]
