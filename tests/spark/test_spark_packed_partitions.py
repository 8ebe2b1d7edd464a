"""Rows that Python reads from files reach the tasks that write them: writes are the same as with Spark's rows.

Modules: hudi_fast.spark.writing.packed_rows, hudi_fast.spark.writing.sent_batches, hudi_fast.spark.incoming.file_scan.
"""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hudi_fast as hf
from hudi_fast.errors import InvalidDataError
from hudi_fast.spark.writing.packed_rows import FEWEST_ROWS
from tests.support.rows import assert_same_rows
from tests.support.small_tables import assert_tidy

OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "place,number",
    "hoodie.datasource.write.precombine.field": "ts",
    "hudi_fast.driver.max.bytes": "1",
}
PLACES = ["a b/=c,%é", "x", None]
PER_FILE = 4_000
REMARK = "; Python reads the Parquet files"


def rows_of(numbers, ts):
    """Rows of these numbers; each number has one partition."""
    return pa.table(
        {
            "id": [f"k{number:06}" for number in numbers],
            "place": pa.array([PLACES[number % 3] for number in numbers]),
            "number": pa.array([number % 2 for number in numbers], pa.int32()),
            "ts": pa.array([ts + number % 7 for number in numbers], pa.int64()),
            "list": pa.array([[number, None] for number in numbers], pa.list_(pa.int64())),
            "_hoodie_is_deleted": [ts > 0 and number % 11 == 0 for number in numbers],
        }
    )


def files_of(folder, rows):
    """The rows in files of small row groups."""
    folder.mkdir(exist_ok=True)
    for start in range(0, rows.num_rows, PER_FILE):
        pq.write_table(rows.slice(start, PER_FILE), folder / f"{start}.parquet", row_group_size=700)
    return folder


BY_PLACE, WITHOUT = {}, {"hoodie.datasource.write.partitionpath.field": ""}


@pytest.mark.parametrize(
    ("plan", "changes"),
    [("fused", BY_PLACE), ("routed", {**BY_PLACE, "hudi_fast.plan": "routed"}), ("routed", WITHOUT)],
    ids=["by partition", "by file group", "without partitions"],
)
def test_tables_are_the_same_whoever_reads_the_files(spark, tmp_path, plan, changes):
    kind = "MERGE_ON_READ" if plan == "fused" else "COPY_ON_WRITE"
    first, second = rows_of(range(12_000), 0), rows_of(range(3_000, 15_000), 100)
    again = rows_of(range(3_000, 5_000), 50)  # of the same keys, and older
    gone = rows_of(range(100, 400, 7), 0)
    for name, rows in {"first": first, "second": pa.concat_tables([second, again]), "gone": gone}.items():
        files_of(tmp_path / name, rows)
    tables = {}
    for scan in ("spark", "files"):
        options = {**OPTIONS, **changes, "hudi_fast.scan": scan, "hoodie.datasource.write.table.type": kind}
        for operation, folder in (("insert", "first"), ("upsert", "second"), ("delete", "gone")):
            df = spark.read.parquet(str(tmp_path / folder))
            few = {"hudi_fast.scan": "spark"} if operation == "delete" and plan == "fused" else {}
            said = {**options, **few, "hoodie.datasource.write.operation": operation}
            result = hf.write(df, tmp_path / scan, said)
            assert result.plan == plan
            assert result.reason.endswith(REMARK) == (said["hudi_fast.scan"] == "files")
        assert_tidy(tmp_path / scan)
        tables[scan] = hf.HudiTable.open(tmp_path / scan).to_arrow()
    deleted = sum(number % 11 == 0 for number in range(3_000, 15_000)) + gone.num_rows
    assert tables["spark"].num_rows == 12_000 + 3_000 - deleted
    assert_same_rows(tables["files"], tables["spark"])


@pytest.mark.parametrize("plan", ["auto", "routed"])
def test_errors_of_tasks_that_read_are_errors_of_the_write(spark, tmp_path, plan):
    rows = rows_of(range(16_000), 0)
    folder = files_of(tmp_path / "rows", rows)
    options = {**OPTIONS, "hudi_fast.scan": "files", "hudi_fast.plan": plan}
    options["hoodie.datasource.write.operation"] = "upsert"
    hf.write(spark.read.parquet(str(folder)).where("number = 1"), tmp_path / "t", options)
    before = hf.HudiTable.open(tmp_path / "t").to_arrow()
    df = spark.read.parquet(str(folder))
    place = rows.schema.get_field_index("place")
    bad = rows.slice(PER_FILE, PER_FILE).set_column(place, "place", pa.array([".."] * PER_FILE))
    refused = files_of(tmp_path / "refused", rows)
    pq.write_table(bad, refused / f"{PER_FILE}.parquet")
    errors = []
    for scan in ("files", "spark"):
        with pytest.raises(InvalidDataError) as raised:
            hf.write(spark.read.parquet(str(refused)), tmp_path / "t", {**options, "hudi_fast.scan": scan})
        errors.append(str(raised.value).partition("'../")[0])
    assert errors[0] == errors[1]
    for path in folder.iterdir():
        pq.write_table(pq.read_table(path).slice(0, 10), path)
    with pytest.raises(InvalidDataError, match="which the DataFrame reads, has"):
        hf.write(df, tmp_path / "t", options)
    assert_same_rows(hf.HudiTable.open(tmp_path / "t").to_arrow(), before)


def test_few_rows_of_many_partitions_are_left_to_spark(spark, tmp_path):
    rows = rows_of(range(4_000), 0)
    place = rows.schema.get_field_index("place")
    rows = rows.set_column(place, "place", pa.array([f"p{number % 40}" for number in range(4_000)]))
    assert rows.num_rows < FEWEST_ROWS * 40
    df = spark.read.parquet(str(files_of(tmp_path / "rows", rows)))
    result = hf.write(df, tmp_path / "t", {**OPTIONS, "hoodie.datasource.write.operation": "upsert"})
    assert "; Spark reads the Parquet files: the plan fused needs Spark's rows" in result.reason
