"""Bulk insert on Spark: where rows go and in which order they lie, for each sort mode."""

from itertools import pairwise

import pyarrow as pa
import pytest

import hudi_fast as hf
from tests.spark.spark_writes import PARTS, batch
from tests.support.rows import assert_same_rows
from tests.support.small_tables import assert_tidy

OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.index.bloom.num_entries": "500",
    "hoodie.datasource.write.operation": "bulk_insert",
    "hudi_fast.plan": "fused",
}
MODES = ["NONE", "GLOBAL_SORT", "PARTITION_SORT", "PARTITION_PATH_REPARTITION", "PARTITION_PATH_REPARTITION_AND_SORT"]
ROWS = batch([(37 * number) % 400 for number in range(400)])


def keys_of_files(path):
    """For each base file its partition path and its keys, in the order in which they are stored."""
    table = hf.HudiTable.open(path).to_arrow(["_hoodie_file_name", "_hoodie_partition_path", "_hoodie_record_key"])
    found = {}
    for row in table.to_pylist():
        found.setdefault((row["_hoodie_partition_path"], row["_hoodie_file_name"]), []).append(
            row["_hoodie_record_key"]
        )
    return [(partition, keys) for (partition, _), keys in found.items()]


@pytest.mark.smoke("part-PARTITION_SORT")
@pytest.mark.parametrize(
    ("partition", "mode"),
    [*(("part", one) for one in MODES), *(pytest.param("", one, marks=pytest.mark.long) for one in MODES)],
)
def test_sort_modes(spark, tmp_path, mode, partition):
    options = {
        **OPTIONS,
        "hoodie.datasource.write.partitionpath.field": partition,
        "hoodie.bulkinsert.sort.mode": mode,
    }
    result = hf.write(spark.createDataFrame(ROWS).repartition(3), tmp_path / "t", options)
    assert (result.plan, result.inserts, result.updates) == ("direct", 400, 0)
    assert_same_rows(hf.HudiTable.open(tmp_path / "t").to_arrow(ROWS.column_names), ROWS, key=["id"])
    assert_tidy(tmp_path / "t")
    files = keys_of_files(tmp_path / "t")
    assert len(files) == result.files_written
    if mode in ("GLOBAL_SORT", "PARTITION_SORT"):
        assert all(keys == sorted(keys) for _, keys in files)
    if mode == "GLOBAL_SORT":  # files of one partition do not overlap
        ranges = sorted((path, min(keys), max(keys)) for path, keys in files)
        assert all(left[0] != right[0] or left[2] < right[1] for left, right in pairwise(ranges))
    if mode.startswith("PARTITION_PATH") and partition:  # each table partition is the work of one task
        assert len(files) == PARTS


def test_places_and_keys_that_the_core_computes(spark, tmp_path):
    options = {
        **OPTIONS,
        "hoodie.datasource.write.partitionpath.field": "at",
        "hoodie.datasource.write.recordkey.field": "v",
        "hoodie.bulkinsert.sort.mode": "GLOBAL_SORT",
    }
    hf.write(spark.createDataFrame(ROWS).repartition(3), tmp_path / "t", options)
    assert_same_rows(hf.HudiTable.open(tmp_path / "t").to_arrow(ROWS.column_names), ROWS, key=["id"])
    assert all(keys == sorted(keys) for _, keys in keys_of_files(tmp_path / "t"))


def test_the_number_of_tasks_and_the_order_of_columns_can_be_given(spark, tmp_path):
    options = {
        **OPTIONS,
        "hoodie.bulkinsert.shuffle.parallelism": "2",
        "hoodie.bulkinsert.sort.mode": "PARTITION_SORT",
        "hoodie.bulkinsert.user.defined.partitioner.sort.columns": "v",
    }
    assert hf.write(spark.createDataFrame(ROWS).repartition(5), tmp_path / "t", options).files_written == 2
    table = hf.HudiTable.open(tmp_path / "t").to_arrow(["_hoodie_file_name", "v"])
    for name in table["_hoodie_file_name"].unique().to_pylist():
        values = table.filter(pa.compute.field("_hoodie_file_name") == name)["v"].to_pylist()
        assert values == sorted(values)


@pytest.mark.parametrize("partition", ["", "part"])
def test_sort_columns_sort_a_partition_over_all_its_files(spark, tmp_path, partition):
    """Also where the input has another order: the ranges of two files of a partition do not overlap."""
    options = {
        **OPTIONS,
        "hoodie.datasource.write.partitionpath.field": partition,
        "hoodie.bulkinsert.shuffle.parallelism": "4",
        "hoodie.bulkinsert.user.defined.partitioner.sort.columns": "v",
    }
    rows = ROWS.set_column(ROWS.column_names.index("v"), "v", pa.array([at * 7919 % 4001 for at in range(len(ROWS))]))
    hf.write(spark.createDataFrame(rows).repartition(5), tmp_path / "t", options)
    table = hf.HudiTable.open(tmp_path / "t").to_arrow(["_hoodie_partition_path", "_hoodie_file_name", "v"])
    ranges = table.group_by(["_hoodie_partition_path", "_hoodie_file_name"]).aggregate([("v", "min"), ("v", "max")])
    assert ranges.num_rows >= 4
    of_partition = {}
    for one in ranges.to_pylist():
        of_partition.setdefault(one["_hoodie_partition_path"], []).append((one["v_min"], one["v_max"]))
    for found in of_partition.values():
        assert all(before[1] <= after[0] for before, after in pairwise(sorted(found)))


def test_sort_columns_may_be_fields_of_structs(spark, tmp_path):
    options = {
        **OPTIONS,
        "hoodie.bulkinsert.shuffle.parallelism": "4",
        "hoodie.bulkinsert.user.defined.partitioner.sort.columns": "place.at.x",
    }
    places = [{"at": {"x": at * 7919 % 4001}} for at in range(len(ROWS))]
    kind = pa.struct([("at", pa.struct([("x", pa.int32())]))])
    frame = spark.createDataFrame(ROWS.append_column("place", pa.array(places, kind))).repartition(5)
    assert hf.write(frame, tmp_path / "t", options).files_written == 4
    table = hf.HudiTable.open(tmp_path / "t").to_arrow(["_hoodie_file_name", "place"])
    of_file = {}
    for row in table.to_pylist():
        of_file.setdefault(row["_hoodie_file_name"], []).append(row["place"]["at"]["x"])
    assert all(found == sorted(found) for found in of_file.values())
    ranges = sorted((found[0], found[-1]) for found in of_file.values())
    assert all(before[1] < after[0] for before, after in pairwise(ranges))
    with pytest.raises(hf.ConfigError, match=r"no column 'place\.at\.y' to sort by"):
        hf.write(frame, tmp_path / "t", {**options, list(options)[-1]: "place.at.y"})


def test_the_record_key_spreads_rows_with_equal_sort_columns(spark, tmp_path):
    same = {
        **OPTIONS,
        "hoodie.datasource.write.partitionpath.field": "",
        "hoodie.bulkinsert.shuffle.parallelism": "4",
        "hoodie.bulkinsert.user.defined.partitioner.sort.columns": "v",
    }
    rows = ROWS.set_column(ROWS.column_names.index("v"), "v", pa.array([1] * len(ROWS)))
    frame = spark.createDataFrame(rows).repartition(3)
    assert hf.write(frame, tmp_path / "one", same).files_written == 1
    spread = {**same, "hoodie.bulkinsert.sort.suffix.record_key": "true"}
    assert hf.write(frame, tmp_path / "spread", spread).files_written == 4
    found = [keys for _, keys in keys_of_files(tmp_path / "spread")]
    assert all(keys == sorted(keys) for keys in found)
    assert all(before[-1] < after[0] for before, after in pairwise(sorted(found)))


def test_a_bulk_insert_after_an_upsert_makes_files_of_its_own(spark, tmp_path):
    options = {**OPTIONS, "hoodie.datasource.write.partitionpath.field": "part"}
    hf.write(ROWS, tmp_path / "t", {**options, "hoodie.datasource.write.operation": "upsert"})
    before = set(hf.HudiTable.open(tmp_path / "t").files()["base_file"].to_pylist())
    hf.write(spark.createDataFrame(ROWS), tmp_path / "t", options)
    after = hf.HudiTable.open(tmp_path / "t").files()
    assert before < set(after["base_file"].to_pylist())
    assert sum(after["rows"].to_pylist()) == 800
