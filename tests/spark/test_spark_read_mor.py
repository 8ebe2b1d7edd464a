"""Reading merge-on-read tables with Spark: the local reader's rows; Spark's own scan for those that no log changes."""

import dataclasses
import re

import pyarrow as pa
import pyarrow.compute as pc
import pytest
import xxhash

import hudi_fast as hf
from hudi_fast.reading.scan import plan_scan
from hudi_fast.reading.slice_reader import read_slice
from hudi_fast.spark.arrow import collect, session_conf
from hudi_fast.spark.reading.scan import beside_scan, core_scan, scan_slices, scan_with_logs
from hudi_fast.storage.base import Storage
from hudi_fast.view.table_state import load_state
from tests.spark.query_plans import without_python_scan
from tests.support.golden import golden_names
from tests.support.mor_tables import mor_options
from tests.support.rows import assert_same_rows
from tests.support.small_tables import plain_rows, rows_of

QUERY = "hoodie.datasource.query.type"
MERGE_TYPE = "hoodie.datasource.merge.type"
NAMES = [
    "h015_mor_rollback_compacted",
    "mor_v6_OverwriteNonDefaultsWithLatestAvroPayload",
    "mor_v6_mixed",
    "mor_v8_alltypes",
    "mor_v9_commit_time",
    "mor_v9_log_compacted",
    "mor_v9_multi_order_logs",
    "mor_v9_partial_update_logs",
    "mor_v9_schema_evolved_logs",
]
MORE = {"mor_v6_mixed", "mor_v9_commit_time", "mor_v9_log_compacted"}
"""The others have logs of each kind that these have."""


SETTINGS = {
    "version 6": {"hoodie.write.table.version": "6"},
    "version 8": {"hoodie.write.table.version": "8"},
    "version 9": {},
    "commit time": {"hoodie.write.record.merge.mode": "COMMIT_TIME_ORDERING"},
    "payload of defaults": {
        "hoodie.write.table.version": "6",
        "hoodie.datasource.write.payload.class": (
            "org.apache.hudi.common.model.OverwriteNonDefaultsWithLatestAvroPayload"
        ),
    },
}


def plan_text(frame):
    return frame._jdf.queryExecution().executedPlan().toString()


def planned(path):
    return plan_scan(load_state(Storage(path)))


@pytest.fixture
def table(tmp_path):
    """Ten rows in two partitions; the log of one changes a row and deletes another, the other has no log."""
    hf.write(plain_rows(range(10)), tmp_path / "t", mor_options())
    hf.write(plain_rows([2], ts=2, text="b"), tmp_path / "t", mor_options())
    hf.write(plain_rows([4], ts=3), tmp_path / "t", mor_options(operation="delete"))
    return tmp_path / "t"


@pytest.fixture(scope="module")
def beside(tmp_path_factory):
    """A table whose logs are small beside its base files: some rows changed, some by older rows, some deleted."""
    return changed_table(tmp_path_factory.mktemp("beside") / "t", {})


def changed_table(path, settings):
    hf.write(plain_rows(range(4000)), path, mor_options(settings))
    hf.write(plain_rows(range(0, 40, 3), ts=3, text="b"), path, mor_options())
    hf.write(plain_rows([0, 1, 3, 5], ts=2, text="c"), path, mor_options())
    hf.write(plain_rows([6, 7], ts=4), path, mor_options(operation="delete"))
    return path


@pytest.mark.smoke("mor_v9_multi_order_logs")
@pytest.mark.parametrize("name", [pytest.param(one, marks=pytest.mark.long if one in MORE else ()) for one in NAMES])
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


@pytest.mark.smoke("version 8")
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_every_version_and_way_to_merge(spark, tmp_path, monkeypatch, settings):
    path = changed_table(tmp_path / "t", settings)
    rows = hf.HudiTable.open(path).to_arrow()
    by_python = hf.read(spark, path)
    without_python_scan(monkeypatch)
    joined = hf.read(spark, path)
    assert "LeftAnti" in plan_text(joined)
    for read in (by_python, joined):
        assert_same_rows(collect(read), rows, ignore=())


def test_rows_that_the_log_leaves_alone_are_pruned_by_spark(spark, beside, monkeypatch):
    without_python_scan(monkeypatch)
    text = plan_text(hf.read(spark, beside).where("ts > 0 and part = 'p1'").select("id"))
    assert "BroadcastHashJoin" in text
    assert "LeftAnti" in text
    assert "ReadSchema: struct<id:string,ts:bigint,_tmp_metadata_row_index:bigint>" in text
    (pushed,) = re.findall(r"PushedFilters: \[(.*?)\], ReadSchema", text)
    assert "GreaterThan(ts,0)" in pushed
    assert re.search(r"PartitionFilters: \[.*\(part#\d+ = p1\)", text)


def test_changed_rows_are_seen_once_and_as_they_are_now(spark, beside):
    read = hf.read(spark, beside)
    local = rows_of(hf.HudiTable.open(beside).to_arrow())
    assert read.count() == len(local) == 3998
    assert read.select("id").distinct().count() == 3998
    assert {row["id"] for row in read.where("text like 'b%'").collect()} == {
        key for key, (_, _, text) in local.items() if text.startswith("b")
    }
    assert read.where("text = 'a9' or id in ('k00006', 'k00007')").count() == 0
    assert read.where("ts = 1").count() == sum(ts == 1 for _, ts, _ in local.values())
    assert [tuple(row) for row in read.agg({"ts": "sum"}).collect()] == [(sum(ts for _, ts, _ in local.values()),)]


def test_nothing_runs_before_rows_are_asked_for(spark, beside):
    tracker = spark.sparkContext.statusTracker()
    group = "reading-is-lazy"
    spark.sparkContext.setJobGroup(group, group)
    try:
        read = hf.read(spark, beside).where("ts > 1")
        assert tracker.getJobIdsForGroup(group) == []
        assert read.count() > 0
        assert tracker.getJobIdsForGroup(group) != []
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)


def test_large_logs_are_merged_by_the_core(spark, tmp_path, monkeypatch):
    without_python_scan(monkeypatch)
    hf.write(plain_rows(range(4000)), tmp_path / "t", mor_options())
    hf.write(plain_rows(range(0, 4000, 2), ts=2), tmp_path / "t", mor_options())
    hf.write(plain_rows([1], ts=2), tmp_path / "t", mor_options())
    read = hf.read(spark, tmp_path / "t")
    text = plan_text(read)
    assert text.count("LeftAnti") == 2  # the slice with one changed row: its base file, and its log
    assert text.count("MapInArrow") == 4  # hidden rows of both, one broadcast in the end
    assert_same_rows(collect(read), hf.HudiTable.open(tmp_path / "t").to_arrow(), ignore=())


def test_hidden_rows_are_read_once(spark, tmp_path, monkeypatch):
    without_python_scan(monkeypatch)
    hf.write(plain_rows(range(4000), ts=5), tmp_path / "t", mor_options())
    hf.write(plain_rows([1, 2], ts=7), tmp_path / "t", mor_options())
    hf.write(plain_rows([3, 4000], ts=4), tmp_path / "t", mor_options())
    read = hf.read(spark, tmp_path / "t")
    assert_same_rows(collect(read), hf.HudiTable.open(tmp_path / "t").to_arrow(), ignore=())
    query = read._jdf.queryExecution()
    assert query.toRdd().count() == 4001
    assert query.executedPlan().toString().partition("Initial Plan")[0].count("ReusedExchange") == 1


def test_the_way_depends_on_the_share_and_the_sum_of_logs(beside):
    plan = planned(beside)

    def sized(file, size, name=None):
        return dataclasses.replace(file, size=size, path=name or file.path)

    one = plan.slices[0]
    logs = dataclasses.replace(one, log_files=one.log_files[:1], base_file=sized(one.base_file, 500 << 20))

    def with_log(size, name):
        return dataclasses.replace(
            logs, base_file=sized(logs.base_file, 500 << 20, name), log_files=(sized(logs.log_files[0], size),)
        )

    small, fifth, more = with_log(1 << 20, "a"), with_log(100 << 20, "b"), with_log(101 << 20, "c")
    assert beside_scan(plan.scan, [more, fifth, small]) == {small, fifth}
    too_much = with_log(50 << 20, "d")
    assert beside_scan(plan.scan, [fifth, too_much, small]) == {small, too_much}
    assert beside_scan(dataclasses.replace(plan.scan, unmerged=True), [more, fifth]) == {more, fifth}


def test_base_files_whose_names_look_alike_to_the_join_are_told_apart(beside):
    plan = planned(beside)
    one = plan.slices[0]
    names = ["file072018", "file176908"]
    assert len({xxhash.xxh64_intdigest(name.encode(), 42) & 0xFFFF_FFFF for name in names}) == 1
    alike = [
        dataclasses.replace(one, base_file=dataclasses.replace(one.base_file, path=name, size=1 << 30))
        for name in names
    ]
    assert beside_scan(plan.scan, alike) == {alike[0]}


def test_the_file_of_a_row_is_known_whichever_way_it_came(spark, beside):
    plan = planned(beside)
    names = [frozenset(one.base_file.name for one in plan.slices)] * 2
    scans = [each(spark, plan.scan, plan.slices, "file") for each in (scan_with_logs, core_scan)]
    assert [frozenset(row["file"] for row in scan.select("file").distinct().collect()) for scan in scans] == names


def test_slices_of_logs_alone(spark, beside):
    plan = planned(beside)
    alone = [dataclasses.replace(one, base_file=None) for one in plan.slices]
    read = scan_slices(spark, plan.scan, alone)
    assert "FileScan" not in plan_text(read)
    local = pa.Table.from_batches(batch for one in alone for batch in read_slice(plan.scan, one))
    assert local.num_rows
    assert_same_rows(collect(read), local, ignore=())


def test_slices_without_log_files_stay_with_spark(spark, table):
    text = plan_text(hf.read(spark, table).filter("ts > 0").select("id"))
    assert text.count("BatchScan") == 1
    assert "ReadSchema: struct<id:string,ts:bigint>" in text
    base_files = hf.read(spark, table, {QUERY: "read_optimized"})
    assert "BatchScan" not in plan_text(base_files)
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
    read = hf.read(spark, table, {MERGE_TYPE: "skip_merge"})
    assert plan_text(read).count("FileScan") == 2
    assert "LeftAnti" not in plan_text(read)
    rows = collect(read)
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


def test_a_large_table_is_not_broadcast_in_a_join(spark, tmp_path):
    hf.write(plain_rows(range(20_000)), tmp_path / "t", mor_options())
    hf.write(plain_rows(range(20_000), ts=2, text="b"), tmp_path / "t", mor_options())
    keys = spark.range(1_000_000).selectExpr("cast(id as string) AS id")
    with session_conf(spark, {"spark.sql.autoBroadcastJoinThreshold": "10000"}):
        joined = keys.join(hf.read(spark, tmp_path / "t"), "id")
        assert "Broadcast" not in joined._jdf.queryExecution().sparkPlan().toString()
        small = spark.range(1).selectExpr("cast(id as string) AS id").join(hf.read(spark, tmp_path / "t"), "id")
        assert "Broadcast" in small._jdf.queryExecution().sparkPlan().toString()
