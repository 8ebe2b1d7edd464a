"""Incremental queries of tables of Apache Hudi answer as Apache Hudi does, or refuse what it refuses."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudi_fast as hf
from hudi_fast.storage.base import Storage
from hudi_fast.view.table_state import load_state
from tests.support.golden import Golden, golden_names
from tests.support.rows import assert_same_rows

TABLES = [name for name in golden_names() if not name.startswith("hudi_rs/")]
FROM_PATHS = {"cow_v9_complex_keygen": ("name",), "mor_v9_merge_into_partial": ("part",)}
"""Columns that Apache Hudi takes from folder names in an incremental query, and from the rows in a snapshot."""

Unzip = Callable[[str], Golden]


def as_apache_hudi_shows_it(name: str, rows: pa.Table) -> pa.Table:
    """With the partition column of a timestamp key generator as text, and others as the paths have them."""
    if name == "cow_v9_timestamp_keygen":
        rows = rows.set_column(rows.column_names.index("ts"), "ts", pc.cast(rows["ts"], pa.string()))
    for column in FROM_PATHS.get(name, ()):
        paths = rows["_hoodie_partition_path"].to_pylist()
        texts = [dict(part.split("=") for part in path.split("/"))[column] for path in paths]
        rows = rows.set_column(rows.column_names.index(column), column, pa.array(texts))
    return rows


def rows_since(opened: hf.HudiTable, table: Golden) -> pa.Table:
    """Of the rows as they are those that were written since the begin of the query."""
    storage = Storage(table.table)
    begin = table.expected["incremental_after"]
    instants = [one.requested for one in load_state(storage).timeline.writes() if str(one.completion) > begin]
    rows = opened.to_arrow()
    return rows.filter(pc.is_in(rows["_hoodie_commit_time"], pa.array(instants)))


def test_there_are_tables() -> None:
    assert len(TABLES) > 50


@pytest.mark.parametrize("name", TABLES)
def test_an_incremental_query_answers_or_refuses_as_apache_hudi_does(name: str, golden: Unzip) -> None:
    table = golden(name)
    opened, begin = hf.HudiTable.open(table.table), table.expected["incremental_after"]
    if name == "cow_v9_nometa":
        with pytest.raises(hf.ConfigError, match="meta fields are disabled"):
            opened.incremental(begin)
        return
    rows = opened.incremental(begin)
    if "incremental_error" in table.expected:
        assert "partial" in name  # Apache Hudi cannot read such rows without those that they update
        wanted = rows_since(opened, table)
    else:
        wanted = table.answer("incremental")
    assert rows.num_rows
    assert_same_rows(as_apache_hudi_shows_it(name, rows), wanted, ignore=())


@pytest.mark.parametrize("name", ["cow_v9_mixed", "mor_v9_compacted", "mor_v6_mixed", "cow_v9_overwrites"])
def test_everything_from_the_start_is_the_snapshot(name: str, golden: Unzip) -> None:
    table = golden(name)
    opened = hf.HudiTable.open(table.table)
    assert_same_rows(opened.incremental("earliest"), opened.to_arrow(), ignore=())
