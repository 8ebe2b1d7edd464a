"""Reading merge-on-read tables with Spark: the rows of the local reader; Spark's own scan where there is no log."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from golden import golden_names
from mor_tables import mor_options
from rows import assert_same_rows
from small_tables import plain_rows

import hudi_fast as hf
from hudi_fast.spark.arrow import collect

QUERY = "hoodie.datasource.query.type"
MERGE_TYPE = "hoodie.datasource.merge.type"
NAMES = [
    "h015_mor_rollback_compacted",
    "mor_v6_mixed",
    "mor_v8_alltypes",
    "mor_v9_log_compacted",
    "mor_v9_multi_order_logs",
    "mor_v9_partial_update_logs",
    "mor_v9_schema_evolved_logs",
]


def plan_text(frame):
    return frame._jdf.queryExecution().executedPlan().toString()


@pytest.fixture
def table(tmp_path):
    """Ten rows in two partitions; the log of one changes a row and deletes another, the other has no log."""
    hf.write(plain_rows(range(10)), tmp_path / "t", mor_options())
    hf.write(plain_rows([2], ts=2, text="b"), tmp_path / "t", mor_options())
    hf.write(plain_rows([4], ts=3), tmp_path / "t", mor_options(operation="delete"))
    return tmp_path / "t"


@pytest.mark.parametrize("name", NAMES)
def test_tables_of_real_hudi(spark, golden, name):
    assert name in golden_names()
    found = golden(name)
    opened = hf.HudiTable.open(found.table)
    for options, expected in (
        ({}, opened.to_arrow()),
        ({"hoodie.merge.use.record.positions": "true"}, opened.to_arrow()),
        ({QUERY: "read_optimized"}, opened.to_arrow(query_type="read_optimized")),
        ({"as.of.instant": found.expected["as_of"]}, opened.to_arrow(as_of=found.expected["as_of"])),
    ):
        read = hf.read(spark, found.table, options)
        assert read.columns == expected.column_names
        assert_same_rows(collect(read), expected, ignore=())


def test_slices_without_log_files_stay_with_spark(spark, table):
    text = plan_text(hf.read(spark, table).filter("ts > 0").select("id"))
    assert "MapInArrow" in text
    assert "ReadSchema: struct<id:string,ts:bigint>" in text
    base_files = hf.read(spark, table, {QUERY: "read_optimized"})
    assert "MapInArrow" not in plan_text(base_files)
    assert base_files.count() == 10
    assert hf.read(spark, table).count() == 9


def test_columns_and_rows_may_be_named_before_spark_sees_them(spark, table):
    read = hf.read(spark, table, columns=["text", "id"], filter=pc.field("ts") >= 2)
    assert read.columns == ["text", "id"]
    assert [tuple(row) for row in read.collect()] == [("b2", "k00002")]
    assert hf.read(spark, table, columns=["id"]).columns == ["id"]
    assert sorted(row["id"] for row in hf.read(spark, table, columns=["id"]).collect()) == [
        f"k{number:05d}" for number in range(10) if number != 4
    ]
    with pytest.raises(hf.ConfigError, match="no column 'nothing'"):
        hf.read(spark, table, columns=["nothing"])


def test_unmerged_rows(spark, table):
    rows = collect(hf.read(spark, table, {MERGE_TYPE: "skip_merge"}))
    assert sorted(rows["id"].to_pylist()) == sorted([*(f"k{number:05d}" for number in range(10)), "k00002"])


def test_a_function_that_merges_runs_in_the_workers(spark, tmp_path):
    def add_up(older, newer):
        at = newer.column_names.index("ts")
        return newer.set_column(at, newer.schema.field("ts"), pc.add(older["ts"], newer["ts"]))

    strategy = "1897ef5f-18bc-4557-939c-9d6a8afd1519"
    options = mor_options({"hoodie.write.record.merge.strategy.id": strategy, "hudi_fast.merger": add_up})
    hf.write(plain_rows(range(4)), tmp_path / "t", options)
    hf.write(plain_rows(range(2), ts=5), tmp_path / "t", options)
    rows = collect(hf.read(spark, tmp_path / "t", {"hudi_fast.merger": add_up}))
    assert dict(zip(rows["id"].to_pylist(), rows["ts"].to_pylist(), strict=True)) == {
        "k00000": 6,
        "k00001": 6,
        "k00002": 1,
        "k00003": 1,
    }
    local = hf.HudiTable.open(tmp_path / "t", merger=add_up).to_arrow()
    assert_same_rows(rows, local, ignore=())


def test_a_table_of_log_files_that_delete_everything_is_empty(spark, tmp_path):
    hf.write(plain_rows(range(3)), tmp_path / "t", mor_options())
    hf.write(plain_rows(range(3)), tmp_path / "t", mor_options(operation="delete"))
    read = hf.read(spark, tmp_path / "t")
    assert read.columns == hf.HudiTable.open(tmp_path / "t").to_arrow().column_names
    assert collect(read).num_rows == 0
    assert isinstance(collect(read), pa.Table)
