"""Merges, updates and deletes by condition on Spark.

Modules: hudi_fast.spark.dml, hudi_fast.spark.writing.stored.
"""

from __future__ import annotations

import pytest
from pyarrow.compute import field

import hudi_fast as hf
from tests.spark.changing_on_spark import as_frame, compare_changes, compare_refusals, rows_of, source_rows, written
from tests.spark.programs import run_program

LONG = pytest.mark.long
KINDS = [
    pytest.param("COPY_ON_WRITE", "routed", id="cow-routed"),
    pytest.param("MERGE_ON_READ", "driver", id="mor-driver", marks=LONG),
    pytest.param("MERGE_ON_READ", "routed", id="mor-routed", marks=LONG),
    pytest.param("COPY_ON_WRITE", "driver", id="cow-driver", marks=LONG),
]


@pytest.mark.parametrize(("kind", "plan"), KINDS)
def test_spark_and_the_local_engine_change_the_same_rows(spark, kind, plan, tmp_path):
    compare_changes(spark, tmp_path, kind, plan)


@pytest.mark.parametrize(("kind", "plan"), KINDS[1:])
@pytest.mark.long
def test_keys_that_the_table_made_are_found_again(spark, kind, plan, tmp_path):
    compare_changes(spark, tmp_path, kind, plan, keyed=False)


@pytest.mark.long
@pytest.mark.parametrize(("kind", "plan"), [KINDS[0], pytest.param("MERGE_ON_READ", "routed", id="mor", marks=LONG)])
def test_what_is_refused_leaves_the_table_as_it_was(spark, kind, plan, tmp_path):
    compare_refusals(spark, tmp_path, kind, plan)


def test_columns_and_functions_of_spark_are_conditions_and_values(spark, tmp_path):
    from pyspark.sql import functions as F

    table = written(tmp_path / "t", "COPY_ON_WRITE")
    source = as_frame(spark, source_rows(range(20, 26), 5.0, 2))
    merge = hf.merge(spark, table.path, source, aliases=("t", "s")).on("t.id = s.id and t.part = s.part")
    merge = merge.when_matched_update({"note": F.upper("t.note"), "fare": 2}, F.col("s.op") == "u")
    result = merge.when_not_matched_insert({"id": "s.id", "part": "s.part", "ts": "s.ts"}).execute()
    assert (result.plan, result.updates, result.inserts) == ("driver", 2, 2)
    assert rows_of(table)[20:] == [
        (20, "p2", 1, 2.0, "N20"),
        (21, "p0", 1, 1.0, "n21"),
        (22, "p1", 1, 2.0, "N22"),
        (23, "p2", 1, 1.0, "n23"),
        (24, "p0", 2, None, None),
        (25, "p1", 2, None, None),
    ]
    with pytest.raises(hf.InvalidDataError, match="does not fit"):
        hf.update(spark, table.path, "id = 1", {"fare": "note"})
    with pytest.raises(hf.ConfigError, match="SparkSession"):
        hf.update(table.path, None, {"fare": 1}, spark="nope")
    for merge in (
        hf.merge(spark, table.path, source).on("id").when_matched_update({"fare": field("source.fare")}),
        hf.merge(spark, table.path, source).on("id").when_matched_delete(field("source.fare") > 1),
        hf.merge(spark, table.path, source).on(field("target.id") == field("source.id")).when_matched_delete(),
        hf.merge(spark, table.path, source).on("id").when_matched_update({"ts": 2**70}),
    ):
        with pytest.raises(hf.ConfigError, match="Spark cannot compute"):
            merge.execute()


def test_a_condition_in_sql_that_keys_are_equal_is_a_match_by_key(spark, tmp_path):
    table = written(tmp_path / "t", "COPY_ON_WRITE")
    source = as_frame(spark, source_rows(range(20, 26), 5.0, 2)).drop("op")
    merge = hf.merge(spark, table.path, source, aliases=("t", "s")).on("t.id = s.id AND t.part = s.part")
    result = merge.when_matched_update().when_not_matched_insert().execute()
    assert (result.updates, result.inserts) == (4, 2)
    with pytest.raises(hf.ConfigError, match=r"there are no columns .'nope'"):
        hf.merge(spark, table.path, source).on("nope").when_matched_update().execute()


@pytest.mark.long
def test_changes_on_spark_35(java, tmp_path, request):
    python = request.config.rootpath / ".venv-spark35" / "bin" / "python"
    assert run_program("changing_on_spark", tmp_path, python=python)[-1].startswith("3.5.")
