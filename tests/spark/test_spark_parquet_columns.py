"""Files of a scan that Python reads: which columns Arrow and Spark read alike, and which rows a split has."""

import datetime as dt
import os
import random
from decimal import Decimal
from itertools import pairwise

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_fast.errors import InvalidDataError
from hudi_fast.spark.incoming.expressions import ScanRefusedError, column
from hudi_fast.spark.incoming.file_scan import (
    FileScan,
    ReadRules,
    ScannedFile,
    ScanTasks,
    Split,
    is_readable,
    leaves_to_read,
)

RULES = ReadRules(exact_names=False, calendar="CORRECTED")
DAY, NOW = dt.date(2024, 2, 29), dt.datetime(2024, 2, 29, 12, 30)


def leaves(table, tmp_path, wanted=None, rules=RULES, pairs=None, **settings):
    """The leaf columns of a file of these rows."""
    path = tmp_path / "file.parquet"
    pq.write_table(table.replace_schema_metadata(pairs), path, **settings)
    file = pq.ParquetFile(path)
    return leaves_to_read(file.metadata, file.schema_arrow, wanted or table.schema, rules).paths


def test_columns_of_all_types_are_found_by_name(tmp_path):
    inner = pa.struct([("x", pa.int32()), ("y", pa.list_(pa.string()))])
    schema = pa.schema(
        {
            "tiny": pa.int8(),
            "small": pa.int16(),
            "whole": pa.int32(),
            "long": pa.int64(),
            "float": pa.float32(),
            "double": pa.float64(),
            "flag": pa.bool_(),
            "text": pa.string(),
            "bytes": pa.binary(),
            "day": pa.date32(),
            "at": pa.timestamp("us", "UTC"),
            "wall": pa.timestamp("us"),
            "money": pa.decimal128(9, 2),
            "more": pa.decimal128(38, 9),
            "list": pa.list_(pa.int64()),
            "map": pa.map_(pa.string(), pa.float64()),
            "inner": inner,
            "deep": pa.list_(inner),
        }
    )
    assert all(is_readable(field.type) for field in schema)
    found = leaves(schema.empty_table(), tmp_path)
    assert found[:2] == ["tiny", "small"]
    assert found[14:] == [
        "list.list.element",
        "map.key_value.key",
        "map.key_value.value",
        "inner.x",
        "inner.y.list.element",
        "deep.list.element.x",
        "deep.list.element.y.list.element",
    ]
    pruned = pa.schema({"deep": pa.list_(pa.struct([("x", pa.int32())])), "long": pa.int64()})
    assert leaves(schema.empty_table(), tmp_path, pruned) == ["deep.list.element.x", "long"]


def test_names_with_dots_are_names_of_columns(tmp_path):
    table = pa.table({"a.day": [DAY], "b.c": [{"d": 1}]})
    assert leaves(table, tmp_path) == ["a.day", "b.c.d"]
    exact = ReadRules(exact_names=False, calendar="EXCEPTION")
    pq.write_table(table, tmp_path / "again.parquet")
    file = pq.ParquetFile(tmp_path / "again.parquet")
    assert leaves_to_read(file.metadata, file.schema_arrow, table.schema, exact).dated == {"a.day"}


TIMES = pa.table({"v": pa.array([NOW], pa.timestamp("us"))})
REFUSED = {
    "96 bits without a zone": (TIMES, None, {"use_deprecated_int96_timestamps": True}, "INT96"),
    "96 bits of others": (
        pa.table({"v": pa.array([1], pa.timestamp("us", "UTC"))}),
        None,
        {"use_deprecated_int96_timestamps": True},
        "old calendar, or in another zone",
    ),
    "milliseconds": (TIMES, None, {"coerce_timestamps": "ms"}, "milliseconds"),
    "nanoseconds": (pa.table({"v": pa.array([1], pa.timestamp("ns"))}), pa.timestamp("us"), {}, "nanoseconds"),
    "a zone": (TIMES, pa.timestamp("us", "UTC"), {}, "is stored as INT64 Timestamp"),
    "no zone": (pa.table({"v": pa.array([1], pa.timestamp("us", "UTC"))}), pa.timestamp("us"), {}, "UTC"),
    "an unsigned byte": (pa.table({"v": pa.array([200], pa.uint8())}), pa.int16(), {}, "unsigned"),
    "an unsigned number": (pa.table({"v": pa.array([1], pa.uint32())}), pa.int64(), {}, "unsigned"),
    "a wider number": (pa.table({"v": pa.array([1], pa.int32())}), pa.int64(), {}, "INT32"),
    "a narrower number": (pa.table({"v": pa.array([1], pa.int64())}), pa.int32(), {}, "INT64"),
    "a wider float": (pa.table({"v": pa.array([1], pa.float32())}), pa.float64(), {}, "FLOAT"),
    "bytes as text": (pa.table({"v": [b"x"]}), pa.string(), {}, "BYTE_ARRAY"),
    "text as bytes": (pa.table({"v": ["x"]}), pa.binary(), {}, "String"),
    "another scale": (pa.table({"v": pa.array([Decimal("1.5")])}), pa.decimal128(2, 0), {}, "Decimal"),
    "a day as a number": (pa.table({"v": [DAY]}), pa.int32(), {}, "Date"),
    "times of day": (pa.table({"v": [dt.time(1)]}), pa.int64(), {}, "Time"),
    "old lists": (pa.table({"v": [[1]]}), None, {"use_compliant_nested_type": False}, "is not stored"),
    "a list as a struct": (pa.table({"v": [[1]]}), pa.struct([("list", pa.int64())]), {}, "is not stored"),
    "a struct as a list": (pa.table({"v": [{"a": 1}]}), pa.list_(pa.int64()), {}, "is not stored"),
    "a map as a list": (
        pa.table({"v": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64()))}),
        pa.list_(pa.int64()),
        {},
        "is not stored",
    ),
    "a missing column": (pa.table({"other": [1]}), pa.int64(), {}, "no column v"),
    "a missing field": (pa.table({"v": [{"a": 1}]}), pa.struct([("b", pa.int64())]), {}, r"no column v\.b"),
    "other order of fields": (
        pa.table({"v": [{"a": 1, "b": 2}]}),
        pa.struct([("b", pa.int64()), ("a", pa.int64())]),
        {},
        "another order",
    ),
    "another case": (pa.table({"V": [1]}), pa.int64(), {}, "no column v"),
    "two cases": (pa.table({"v": [1], "V": [1]}), None, {}, "upper or lower case"),
    "dots in names": (pa.table({"v": [1], "v.w": [1]}), pa.int64(), {}, "dot in its name"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_columns_that_spark_may_read_otherwise_are_refused(name, tmp_path):
    table, kind, settings, reason = REFUSED[name]
    wanted = pa.schema({"v": kind or table.schema.field("v").type})
    with pytest.raises(ScanRefusedError, match=reason):
        leaves(table, tmp_path, wanted, **settings)


@pytest.mark.parametrize(
    ("pairs", "proleptic", "fits"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"org.apache.spark.version": "2.4.8"}, True, False),
        ({"org.apache.spark.version": "3.5.9"}, False, True),
        ({"org.apache.spark.version": "10.0.0"}, False, True),
        ({"org.apache.spark.version": "dev"}, True, False),
        ({"org.apache.spark.version": "4.3.0", "org.apache.spark.legacyDateTime": ""}, True, False),
    ],
)
@pytest.mark.parametrize("kind", [pa.date32(), pa.list_(pa.timestamp("us", "UTC"))])
def test_dates_of_the_old_calendar_are_refused(tmp_path, pairs, proleptic, fits, kind):
    table, rules = (
        pa.table({"v": pa.nulls(1, kind), "n": [1]}),
        ReadRules(False, "CORRECTED" if proleptic else "LEGACY"),
    )
    assert leaves(table, tmp_path, pa.schema({"n": pa.int64()}), rules, pairs) == ["n"]
    if fits:
        assert leaves(table, tmp_path, None, rules, pairs)
    else:
        with pytest.raises(ScanRefusedError, match="old calendar"):
            leaves(table, tmp_path, None, rules, pairs)


def scan_of(path, cuts):
    """A scan of the numbers in a file, cut into splits at these bytes."""
    stat = path.stat()
    file = ScannedFile(f"file://{path}", stat.st_size, stat.st_mtime_ns // 1_000_000, (7,))
    tasks = tuple((Split(0, start, end),) for start, end in pairwise([0, *sorted(cuts), stat.st_size]))
    columns, constants = pa.schema({"n": pa.int64()}), pa.schema({"p": pa.int32()})
    schema = pa.schema({"p": pa.int32(), "n": pa.int64()})
    outputs = (column(1, pa.int32()), column(0, pa.int64()))
    return FileScan((file,), tasks, columns, constants, (), outputs, schema, RULES, {})


@pytest.mark.parametrize("seed", range(20))
def test_splits_have_each_row_once_wherever_they_are_cut(tmp_path, seed):
    chance, path = random.Random(seed), tmp_path / "a b.parquet"
    count = chance.randrange(1, 3_000)
    rows = pa.table({"n": range(count), "text": ["x" * chance.randrange(50) for _ in range(count)]})
    pq.write_table(rows, path, row_group_size=chance.randrange(1, 400))
    size = path.stat().st_size
    scan = scan_of(path, {chance.randrange(1, size) for _ in range(chance.randrange(8))})
    found = [number for split in scan.tasks for batch in scan.read(split) for number in batch["n"].to_pylist()]
    assert found == list(range(count))  # row groups are in the order of the file, and so are the splits
    tasks = ScanTasks(None, scan, len(scan.in_tasks(3)))
    read = [tasks.reading(list)([pa.record_batch({"id": [at]})]) for at in range(tasks.count)]
    assert [one["p"] for batches in read for batch in batches for one in batch.to_pylist()] == [7] * count
    assert sum(batch.num_rows for batches in read for batch in batches) == count


def test_a_file_that_changes_after_it_was_planned_is_an_error(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"n": [1, 2]}), path)
    scan = scan_of(path, [])
    assert sum(batch.num_rows for batch in scan.read(scan.tasks[0])) == 2
    pq.write_table(pa.table({"n": [1, 3]}), path)  # of the same size
    os.utime(path, (path.stat().st_mtime + 1,) * 2)  # both may be written within a tick of the clock
    with pytest.raises(InvalidDataError, match="which the DataFrame reads, has"):
        list(scan.read(scan.tasks[0]))
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(InvalidDataError, match="when Spark planned the scan"):
        list(scan.read(scan.tasks[0]))
    path.unlink()
    with pytest.raises(InvalidDataError, match="is gone"):
        list(scan.read(scan.tasks[0]))


def test_a_damaged_file_is_left_to_spark(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"n": range(10_000)}), path, compression="zstd")
    path.write_bytes(b"PAR1" + bytes(path.stat().st_size - 400) + path.read_bytes()[-396:])
    scan = scan_of(path, [])
    with pytest.raises(ScanRefusedError, match="cannot be read"):
        list(scan.read(scan.tasks[0]))
    path.write_bytes(b"nothing of Parquet")
    scan = scan_of(path, [])
    with pytest.raises(ScanRefusedError, match="cannot be opened"):
        list(scan.read(scan.tasks[0]))
