"""CALL: parameters, services, and what they show; table functions.

Modules: hudi_fast.spark_api.sql.statements, hudi_fast.spark_api.sql.queries, hudi_fast.procedures.call,
hudi_fast.procedures.timeline, hudi_fast.procedures.values, hudi_fast.sql_text.procedures.
"""

from __future__ import annotations

import pytest

import hudi_fast as hf
from hudi_fast.procedures.call import _PROCEDURES
from hudi_fast.procedures.files import FILE_PROCEDURES
from hudi_fast.procedures.timeline import TIMELINE_PROCEDURES
from hudi_fast.spark_api.sql.catalog import find_entry
from hudi_fast.spark_api.sql.queries import TABLE_FUNCTIONS
from hudi_fast.sql_text.coverage import REFUSED_FUNCTIONS
from hudi_fast.sql_text.procedures import SIGNATURES, SUPPORTED
from tests.spark.sql_sessions import fast, listed, switched_on

__all__ = ["fast"]

NOW = "hoodie.compact.inline.max.delta.commits=1"


@pytest.fixture
def goods(fast):
    fast.sql(
        "CREATE TABLE t (id int, name string, city string) USING hudi PARTITIONED BY (city) "
        "TBLPROPERTIES (type = 'mor', primaryKey = 'id')"
    )
    fast.sql("INSERT INTO t VALUES (1, 'a', 'x'), (2, 'b', 'y')")
    fast.sql("UPDATE t SET name = 'c' WHERE id = 1")
    return fast


@pytest.fixture(scope="module")
def known(spark):
    """A session with a table ``t`` that no test changes."""
    with switched_on(spark, "sql_arguments") as session:
        session.sql("CREATE TABLE t (id int, name string) USING hudi TBLPROPERTIES (primaryKey = 'id')")
        session.sql("INSERT INTO t VALUES (1, 'a')")
        yield session


def table(session):
    return hf.HudiTable.open(find_entry(session, ("t",)).path)


def test_what_is_supported_is_there_and_has_a_signature():
    shown = {*TIMELINE_PROCEDURES, *FILE_PROCEDURES}
    assert {*_PROCEDURES, *shown, "copy_to_table", "copy_to_temp_view"} == SUPPORTED
    assert SIGNATURES.keys() >= SUPPORTED
    assert len(SIGNATURES) == 71
    assert set(REFUSED_FUNCTIONS) < set(TABLE_FUNCTIONS)


def test_every_result_has_the_columns_of_the_signature(spark):
    for name, signature in SIGNATURES.items():
        assert spark.createDataFrame([], signature.columns).columns, name


@pytest.mark.smoke
def test_commits(goods):
    (newest, first) = goods.sql("CALL show_commits(table => 't', limit => 2)").collect()
    assert (newest["action"], newest["total_records_written"], newest["total_update_records_written"]) == (
        "deltacommit",
        1,
        1,
    )
    assert (first["total_files_added"], first["total_partitions_written"]) == (2, 2)
    instant = first["commit_time"]
    assert goods.sql("CALL show_commits('t', 1)").count() == 1
    assert goods.sql(f"CALL show_commit_partitions(table => 't', instant_time => '{instant}')").count() == 2
    files = goods.sql(f"CALL show_commit_files(table => 't', instant_time => '{instant}')").collect()
    assert {row["partition_path"] for row in files} == {"city=x", "city=y"}
    (stats,) = goods.sql(f"CALL show_commit_write_stats(table => 't', instant_time => '{instant}')").collect()
    assert stats["total_records_written"] == 2
    assert stats["avg_record_size"] == -(-stats["total_bytes_written"] // 2)
    assert goods.sql("CALL show_commits_metadata(table => 't', limit => 1)").first()["num_update_writes"] == 1
    keys = {row["metadata_key"] for row in goods.sql("CALL show_commit_extra_metadata(table => 't')").collect()}
    assert "schema" in keys


def test_the_timeline_and_the_files(goods):
    shown = goods.sql("CALL show_timeline(table => 't')").collect()
    assert [row["state"] for row in shown] == ["COMPLETED", "COMPLETED"]
    assert all(row["completed_time"] for row in shown)
    rows = goods.sql("SELECT * FROM hudi_query_timeline('sql_tests.t', 'false')").collect()
    assert [row["Total_Records_Written"] for row in rows] == [2, 1]
    slices = {row["partition"]: row for row in goods.sql("CALL show_fsview_latest(table => 't')").collect()}
    assert (slices["city=x"]["num_delta_files"], slices["city=y"]["num_delta_files"]) == (1, 0)
    properties = dict(goods.sql("CALL show_table_properties(table => 't', limit => 100)").collect())
    assert properties["hoodie.table.type"] == "MERGE_ON_READ"


def test_changes_by_table_functions(goods):
    first = table(goods).history()["completion"][0].as_py()
    found = listed(goods, f"SELECT id, name FROM hudi_table_changes('t', 'latest_state', '{first}')")
    assert found == [(1, "c")]
    assert listed(goods, f"SELECT x.id FROM hudi_query('t', 'incremental', '{first}') AS x") == [(1,)]
    assert listed(goods, "SELECT name FROM hudi_query('t', 'read_optimized') WHERE id = 1") == [("a",)]
    path = find_entry(goods, ("t",)).path
    assert listed(goods, f"SELECT count(*) FROM hudi_table_changes('{path}', 'latest_state', 'earliest')") == [(2,)]
    for text, message in (
        ("hudi_table_changes('t', 'other', 'earliest')", "expected latest_state or cdc"),
        ("hudi_table_changes('t')", "3 to 4 arguments, got 1"),
        ("hudi_query('nothing', 'snapshot')", "no Hudi table nothing"),
        ("hudi_metadata('t')", "not supported"),
    ):
        with pytest.raises(hf.HudiError, match=message):
            goods.sql(f"SELECT * FROM {text}")


@pytest.mark.smoke
def test_compaction(goods):
    assert listed(goods, "CALL run_compaction(op => 'schedule', table => 't')") == []
    ((instant, size, state),) = listed(goods, f"CALL run_compaction('schedule', 't', options => '{NOW}')")
    assert (size, state) == (1, "REQUESTED")
    assert listed(goods, "CALL show_compaction(table => 't')") == [(instant, 1, "REQUESTED")]
    with pytest.raises(hf.ConfigError, match="no pending compactions"):
        goods.sql("CALL run_compaction(op => 'run', table => 't', instants => '20200101000000000')")
    done = [(instant, 1, "COMPLETED")]
    assert listed(goods, f"CALL run_compaction(op => 'run', table => 't', timestamp => {instant})") == done
    assert listed(goods, "CALL show_compaction(table => 't')") == done
    assert listed(goods, "SELECT name FROM hudi_query('t', 'read_optimized')") == [("b",), ("c",)]
    with pytest.raises(hf.ConfigError, match="expected schedule, run"):
        goods.sql("CALL run_compaction(op => 'stop', table => 't')")


def test_savepoints_cleans_and_restores(goods):
    assert listed(goods, "CALL create_savepoint(table => 't', comments => 'before')") == [(True,)]
    ((instant,),) = listed(goods, "CALL show_savepoints(table => 't')")
    goods.sql("DELETE FROM t WHERE id = 2")
    assert listed(goods, "CALL rollback_to_savepoint(table => 't')") == [(True,)]
    assert listed(goods, "SELECT count(*) FROM t") == [(2,)]
    assert listed(goods, f"CALL delete_savepoint('t', '{instant}')") == [(True,)]
    with pytest.raises(hf.ConfigError, match="no savepoint"):
        goods.sql("CALL delete_savepoint(table => 't')")
    goods.sql("DELETE FROM t WHERE id = 2")
    newest = goods.sql("CALL show_commits('t', 1)").first()["commit_time"]
    assert listed(goods, f"CALL rollback_to_instant('t', '{newest}')") == [(True,)]
    assert listed(goods, "SELECT count(*) FROM t") == [(2,)]
    assert goods.sql("CALL run_clean(table => 't', retain_commits => 1)").columns[0] == "start_clean_time"
    assert goods.sql("CALL show_cleans(table => 't')").columns[0] == "clean_time"
    assert listed(goods, "CALL archive_commits(table => 't')") == [(0,)]


def test_clustering_and_versions(fast):
    fast.sql("CREATE TABLE t (id int, name string) USING hudi TBLPROPERTIES (primaryKey = 'id')")
    fast.sql("INSERT INTO t VALUES (2, 'b'), (1, 'a')")
    ((instant, size, state, _),) = listed(fast, "CALL run_clustering(table => 't', order => 'id')")
    assert (size, state) == (1, "COMPLETED")
    assert listed(fast, "CALL show_clustering(table => 't')") == [(instant, 1, "COMPLETED", "*")]
    assert listed(fast, "CALL downgrade_table('t', 'EIGHT')") == [(True,)]
    assert table(fast).version == 8
    assert listed(fast, "CALL upgrade_table('t', '9')") == [(True,)]
    with pytest.raises(hf.ConfigError, match="to_version is 'TEN'"):
        fast.sql("CALL upgrade_table('t', 'TEN')")
    assert listed(fast, "CALL validate_metadata_table_files(table => 't')") == []
    assert listed(fast, "CALL delete_metadata_table(table => 't')") == [("Removed Metadata Table",)]
    assert listed(fast, "CALL create_metadata_table(table => 't')") == [("Created Metadata Table",)]
    with pytest.raises(hf.UnsupportedFeatureError, match="predicate"):
        fast.sql("CALL run_clustering(table => 't', predicate => 'id = 1')")


def test_partitions_and_copies(goods):
    assert listed(goods, "CALL drop_partition(table => 't', partition => 'city=x')") == [("Success",)]
    goods.sql("CALL copy_to_temp_view(table => 't', view_name => 'copied')")
    assert goods.table("copied").count() == 1
    goods.sql("CALL copy_to_table(table => 't', new_table => 'copy', columns => 'id, city')")
    assert listed(goods, "SELECT * FROM copy") == [(2, "y")]
    assert goods.sql("CALL truncate_table(table => 't')").first()["result"] == "SUCCESS"
    assert listed(goods, "SELECT count(*) FROM t") == [(0,)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("CALL show_commits(tabel => 't')", r"no parameter tabel\. Did you mean table"),
        ("CALL show_commits(limit => 3)", "the parameter table is missing"),
        ("CALL show_commits('t', 1, 2)", "has 2 parameters, got 3"),
        ("CALL show_commits('t', table => 't')", "given twice"),
        ("CALL show_commits(table => 't', limit => 'many')", "is a int; got 'many'"),
        ("CALL show_commits(table => 'nothing')", "no Hudi table nothing"),
        ("CALL show_savepoints()", "name the table"),
        ("CALL run_clean(table => 't', options => 'a')", "options are key=value"),
        ("CALL help(cmd => 'nothing')", "no procedure nothing"),
        ("CALL show_file_status(table => 't', file => 'f')", "show_file_status is not supported"),
    ],
)
def test_wrong_arguments(known, text, message):
    with pytest.raises(hf.HudiError, match=message):
        known.sql(text)


def test_help(fast):
    assert "run_compaction" in fast.sql("CALL help()").first()[0]
    assert fast.sql("CALL help('show_commits')").first()[0] == "show_commits(table string, limit int)"
    with pytest.raises(Exception, match=r"PROCEDURE|PARSE_SYNTAX_ERROR|not.*procedure"):
        fast.sql("CALL nobodys_procedure()")
