"""The record index on Spark: every plan leaves the table that the local engine leaves, and says where it looked."""

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import hudi_fast as hf
from hudi_fast.metadata_table.layout import group_numbers
from hudi_fast.metadata_table.state import open_state
from hudi_fast.spark.writing import key_lookup, routed
from hudi_fast.spark.writing.key_lookup import IndexLanes
from hudi_fast.storage.base import Storage
from hudi_fast.view.slices import latest_slices
from tests.spark.spark_writes import Step, assert_same_writes, batch, frame, numbers_of

GLOBAL = "GLOBAL_RECORD_LEVEL_INDEX"
TABLE = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.index.bloom.num_entries": "500",
    "hoodie.index.type": GLOBAL,
    "hoodie.compact.inline": "false",
}
PARTITIONED = {**TABLE, "hoodie.datasource.write.partitionpath.field": "part"}
MOVES = "hoodie.record.index.update.partition.path"
STEPS = [
    Step("upsert", batch(range(120))),
    Step(
        "upsert", batch([*range(80, 150), *range(80, 90), 3], ts=[*[200] * 70, *[300] * 10, 1], deletes=[81, 95, 130])
    ),
    Step("upsert", batch([*range(30, 60), 81, 95], ts=400, deletes=[33], shift=1)),
    Step("delete", batch([*range(100, 110), 5000])),
    Step("upsert", batch([*range(100, 105), *range(30, 40), 200], ts=500, shift=2)),
]


@pytest.fixture
def lookup(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """How keys reach the index, and rows go on: as bytes, or in the JVM beside the number that Python returns."""
    monkeypatch.setattr(routed, "packs_rows", lambda _: request.param != "numbers")
    if request.param == "by group":
        monkeypatch.setattr(key_lookup, "_READ_PER_ROW", 0)


@pytest.mark.smoke("false-MERGE_ON_READ")
@pytest.mark.parametrize(
    ("moves", "table_type"),
    [
        ("true", "COPY_ON_WRITE"),
        ("false", "MERGE_ON_READ"),
        pytest.param("true", "MERGE_ON_READ", marks=pytest.mark.long),
        pytest.param("false", "COPY_ON_WRITE", marks=pytest.mark.long),
    ],
)
def test_rows_stay_or_move_as_in_one_process(spark, tmp_path, table_type, moves):
    options = {**PARTITIONED, "hoodie.datasource.write.table.type": table_type, MOVES: moves}
    assert_same_writes(spark, tmp_path, "routed", options, STEPS if moves == "true" else STEPS[:3], given=1)


@pytest.mark.parametrize("plan", ["fused", pytest.param("broadcast", marks=pytest.mark.long)])
def test_an_index_by_partition_is_asked_by_the_task_of_the_partition(spark, tmp_path, plan):
    options = {**PARTITIONED, "hoodie.index.type": "RECORD_LEVEL_INDEX"}
    assert_same_writes(spark, tmp_path, plan, options, STEPS[:2])


@pytest.mark.parametrize(("index", "version"), [(GLOBAL, "6"), ("RECORD_LEVEL_INDEX", "9")])
def test_without_partitions(spark, tmp_path, index, version):
    options = {**TABLE, "hoodie.index.type": index, "hoodie.write.table.version": version}
    assert_same_writes(spark, tmp_path, "routed", options, STEPS[:3], given=1)


@pytest.mark.parametrize(("tasks", "groups"), [(1, 10), (3, 10), (7, 2), (8, 1)])
def test_lanes_of_the_index(tasks, groups):
    keys = pa.array([f"key {number % 500}" for number in range(1000)] + [None, ""])
    lanes = IndexLanes(tasks, groups).numbers(keys, pa.nulls(len(keys), pa.string()))
    assert lanes[:500].tolist() == lanes[500:1000].tolist()
    assert set(lanes.tolist()) == set(range(min(tasks, groups * max(1, tasks // groups))))
    group = group_numbers(keys.fill_null(""), groups)
    assert max(len(set(lanes[group == one].tolist())) for one in range(groups)) == max(1, tasks // groups)


@pytest.mark.usefixtures("lookup")
@pytest.mark.parametrize(
    ("lookup", "operation", "scan"),
    [
        ("whole", "delete", "spark"),
        ("by group", "upsert", "spark"),
        ("numbers", "upsert", "spark"),
        ("whole", "delete", "files"),
        ("by group", "delete", "files"),
        ("whole", "upsert", "files"),
        pytest.param("whole", "upsert", "spark", marks=pytest.mark.long),
        pytest.param("by group", "delete", "spark", marks=pytest.mark.long),
        pytest.param("numbers", "delete", "spark", marks=pytest.mark.long),
    ],
    indirect=["lookup"],
)
def test_the_newest_row_of_a_key_stays_where_the_key_is_stored(spark, tmp_path, operation, scan):
    """Rows of a new key in several partitions come to one row, that of the largest ordering value."""
    options = {**PARTITIONED, MOVES: "false", "hudi_fast.plan": "routed", "hudi_fast.scan": scan}
    hf.write(batch(range(40)), tmp_path, {**options, "hudi_fast.scan": "auto"})
    rows = pa.concat_tables(
        batch(range(20, 60), ts=ts, shift=shift, deletes=[50, 51] if ts == 400 else [58])
        for ts, shift in ((200, 1), (400, 2), (300, 3))
    )
    rows = pa.concat_tables([rows, batch([70, 70], ts=[5, 6]), batch([71], ts=5)])
    source = frame(spark, rows)
    if scan == "files":
        source.repartition(3).write.parquet(str(tmp_path / ".rows"))
        source = spark.read.parquet(str(tmp_path / ".rows"))
    result = hf.write(source, tmp_path, {**options, "hoodie.datasource.write.operation": operation})
    assert ("Python reads the Parquet files" in result.reason) == (scan == "files")
    found = {
        row["id"]: row
        for row in hf.HudiTable.open(tmp_path).to_arrow(["_hoodie_partition_path", "id", "part", "ts"]).to_pylist()
    }
    if operation == "delete":
        assert sorted(found) == [f"k{number:04d}" for number in range(20)]
        return
    new = [number for number in range(40, 60) if number not in (50, 51)]
    assert sorted(found) == [f"k{number:04d}" for number in [*range(40), *new, 70, 71]]
    assert {found[f"k{number:04d}"]["ts"] for number in [*range(20, 40), *new]} == {400}
    for number in range(20, 40):
        assert found[f"k{number:04d}"]["_hoodie_partition_path"] == f"p{number % 4}"
    for number in new:
        assert found[f"k{number:04d}"]["part"] == f"p{(number + 2) % 4}"
    assert found["k0070"]["ts"] == 6
    assert hf.HudiTable.open(tmp_path).services.validate().ok


def test_the_plan_follows_from_the_index(spark, tmp_path):
    hf.write(batch(range(50)), tmp_path, PARTITIONED)
    small = {"hudi_fast.driver.max.bytes": "1"}
    result = hf.write(frame(spark, batch(range(20, 60), ts=200)), tmp_path, {**PARTITIONED, **small})
    assert (result.plan, result.inserts, result.updates) == ("routed", 10, 40 - 10)
    assert "metadata table" in result.reason
    with pytest.raises(hf.ConfigError, match="fused cannot serve"):
        hf.write(frame(spark, batch([1])), tmp_path, {**PARTITIONED, "hudi_fast.plan": "fused"})
    by_partition = {**PARTITIONED, "hoodie.index.type": "RECORD_LEVEL_INDEX", "hudi_fast.plan": "routed"}
    with pytest.raises(hf.ConfigError, match="routed cannot serve"):
        hf.write(frame(spark, batch([1])), tmp_path, by_partition)


@pytest.mark.usefixtures("lookup")
@pytest.mark.parametrize(
    "lookup", ["whole", pytest.param("by group", marks=pytest.mark.long), "numbers"], indirect=True
)
def test_a_key_that_its_file_lacks_is_inserted(spark, tmp_path):
    hf.write(batch(range(12)), tmp_path, PARTITIONED)
    state = open_state(Storage(tmp_path))
    (stale,) = latest_slices(state.view, "p1")
    rows = pq.read_table(tmp_path / stale.base_file.path, partitioning=None)
    pq.write_table(rows.filter(~pc.field("id").isin(["k0005", "k0009"])), tmp_path / stale.base_file.path)
    routed = {**PARTITIONED, "hudi_fast.plan": "routed"}
    deletes = hf.write(frame(spark, batch([5])), tmp_path, {**routed, "hoodie.datasource.write.operation": "delete"})
    assert numbers_of(deletes) == (0, 0, 0)
    result = hf.write(frame(spark, batch([1, 9], ts=200)), tmp_path, routed)
    assert numbers_of(result) == (1, 1, 0)
    found = hf.HudiTable.open(tmp_path).to_arrow(["id", "ts"]).sort_by("id")
    assert found["id"].to_pylist() == [f"k{number:04d}" for number in range(12) if number != 5]
    assert (found["ts"][1].as_py(), found["ts"][8].as_py()) == (200, 200)


@pytest.mark.usefixtures("lookup")
@pytest.mark.parametrize(
    "lookup", ["whole", *(pytest.param(one, marks=pytest.mark.long) for one in ("by group", "numbers"))], indirect=True
)
def test_a_row_without_key_is_refused(spark, tmp_path):
    hf.write(batch(range(10)), tmp_path, PARTITIONED)
    rows = batch(range(3), ts=200)
    broken = rows.set_column(0, "id", pa.array(["k0001", None, "k0002"]))
    with pytest.raises(hf.InvalidDataError, match="key"):
        hf.write(frame(spark, broken), tmp_path, {**PARTITIONED, "hudi_fast.plan": "routed"})
    assert hf.HudiTable.open(tmp_path).to_arrow()["ts"].unique().to_pylist() == [100]


@pytest.mark.usefixtures("lookup")
@pytest.mark.parametrize(
    "lookup", [*(pytest.param(one, marks=pytest.mark.long) for one in ("whole", "by group")), "numbers"], indirect=True
)
def test_a_damaged_index_is_named(spark, tmp_path):
    hf.write(batch(range(40)), tmp_path, PARTITIONED)
    files = sorted((tmp_path / ".hoodie/metadata/record_index").glob("*record-index-*"))
    for file in files:
        content = bytearray(file.read_bytes())
        content[len(content) // 3 : len(content) // 2] = bytes(len(content) // 2 - len(content) // 3)
        file.write_bytes(bytes(content))
    with pytest.raises(hf.HudiError, match="record_index"):
        hf.write(frame(spark, batch(range(20), ts=200)), tmp_path, {**PARTITIONED, "hudi_fast.plan": "routed"})
    assert hf.HudiTable.open(tmp_path).to_arrow()["ts"].unique().to_pylist() == [100]
