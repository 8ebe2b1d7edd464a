"""Hudi tables in the catalog of a session, in Spark's own and in a Hive metastore."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

import hudi_fast as hf
from hudi_fast.spark_api.sql.catalog import (
    Entry,
    ViewEntry,
    create_entry,
    drop_entry,
    find_entry,
    full_name,
    is_taken,
)
from tests.spark.programs import run_program
from tests.spark.sql_sessions import fast

__all__ = ["fast"]


def test_an_entry_has_what_was_entered(fast):
    fast.sql(
        "CREATE TABLE t (id int COMMENT 'key', city string) USING hudi PARTITIONED BY (city) COMMENT 'it is' "
        "TBLPROPERTIES (primaryKey = 'id', 'a, b' = 'c (d, e) -> f')"
    )
    found = find_entry(fast, ("t",))
    assert (found.name, found.partition_columns, found.comment, found.managed) == (
        ("sql_tests", "t"),
        ("city",),
        "it is",
        True,
    )
    assert found.properties["primaryKey"] == "id"
    assert found.schema["id"].metadata["comment"] == "key"
    assert found.schema.names[:2] == ["_hoodie_commit_time", "_hoodie_commit_seqno"]
    assert not found.is_read_optimized


def test_other_names_are_none(fast):
    fast.range(1).createTempView("temporary")
    fast.range(1).write.format("parquet").saveAsTable("plain")
    for parts in (
        ("temporary",),
        ("plain",),
        ("nothing",),
        ("nowhere", "t"),
        ("other", "db", "t"),
        ("a", "b", "c", "d"),
    ):
        assert find_entry(fast, parts) is None
    assert is_taken(fast, ("temporary",))
    assert is_taken(fast, ("sql_tests", "plain"))
    assert not is_taken(fast, ("nothing",))
    assert full_name(fast, ("t",)) == ("sql_tests", "t")
    assert full_name(fast, ("other", "db", "t")) is None


def test_a_view_has_its_query(fast):
    fast.sql("CREATE TABLE t (id int) USING hudi")
    fast.sql("CREATE VIEW v (number) AS SELECT id FROM t")
    found = find_entry(fast, ("v",))
    assert isinstance(found, ViewEntry)
    assert (found.database, found.columns) == ("sql_tests", ("number",))


def test_an_entry_that_points_to_no_table_is_named_when_it_is_read(fast, tmp_path):
    fast.sql("CREATE TABLE t (id int) USING hudi")
    entry = find_entry(fast, ("t",))
    moved = replace(entry, name=("sql_tests", "lost"), path=f"{tmp_path}/lost", managed=False)
    create_entry(fast, moved)
    with pytest.raises(hf.TableNotFoundError, match="lost"):
        fast.sql("SELECT * FROM lost")
    with pytest.raises(hf.CatalogError, match=r"refuses sql_tests\.lost"):
        create_entry(fast, moved)
    drop_entry(fast, moved, purge=False)
    assert find_entry(fast, ("lost",)) is None


def test_a_read_optimized_entry_says_so():
    entry = Entry(("d", "t_ro"), "/t", {"hoodie.query.as.ro.table": "true"})
    assert entry.is_read_optimized
    assert str(entry) == "d.t_ro"


@pytest.mark.long
@pytest.mark.timeout(660)
@pytest.mark.parametrize("python", [".venv", ".venv-spark35"])
def test_names_last_in_a_hive_metastore(java, tmp_path, request, python):
    """A table of one application, by name in the next one, with Hive's catalog."""
    interpreter = request.config.rootpath / python / "bin" / "python"
    printed = run_program("hive_names", tmp_path, "make", python=interpreter, seconds=300)
    assert json.loads(printed[-1]) == [[1, "x"], [2, "y"]]
    printed = run_program("hive_names", tmp_path, "use", python=interpreter, seconds=300)
    assert json.loads(printed[-1]) == [[2, "y", None], [3, "z", "new"]]
