"""Old files in today's columns, by Spark and by the local reader: every widening of writes, and altered columns."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudi_fast as hf
from tests.support.altered_tables import ALTERED, rows_of, unzip_altered

STRUCT = pa.struct([("x", pa.int32()), ("z", pa.string())])
WIDER_STRUCT = pa.struct([("x", pa.int64()), ("y", pa.string()), ("z", pa.string())])
MATRIX: dict[str, tuple[pa.DataType, pa.DataType, Any, Any]] = {
    "int_long": (pa.int32(), pa.int64(), 7, 7),
    "int_float": (pa.int32(), pa.float32(), 7, 7.0),
    "int_double": (pa.int32(), pa.float64(), 7, 7.0),
    "int_string": (pa.int32(), pa.string(), 7, "7"),
    "long_float": (pa.int64(), pa.float32(), 2**40, float(2**40)),
    "long_double": (pa.int64(), pa.float64(), 2**40, float(2**40)),
    "long_string": (pa.int64(), pa.string(), 2**40, "1099511627776"),
    "float_double": (pa.float32(), pa.float64(), 1.1, 1.1),
    "float_string": (pa.float32(), pa.string(), 1.5, "1.5"),
    "double_string": (pa.float64(), pa.string(), 1e10, "1.0E10"),
    "decimal": (pa.decimal128(5, 2), pa.decimal128(12, 4), Decimal("1.25"), Decimal("1.2500")),
    "struct": (STRUCT, WIDER_STRUCT, {"x": 1, "z": "z"}, {"x": 1, "y": None, "z": "z"}),
    "list": (pa.list_(STRUCT), pa.list_(WIDER_STRUCT), [{"x": 1, "z": "z"}], [{"x": 1, "y": None, "z": "z"}]),
    "map": (pa.map_(pa.string(), pa.int32()), pa.map_(pa.string(), pa.int64()), {"k": 1}, {"k": 1}),
}


def table_options(kind: str) -> dict[str, Any]:
    return {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.datasource.write.table.type": kind,
        "hoodie.compact.inline": False,
        "hoodie.metadata.enable": False,
        "hudi_fast.allow.rounding": True,
    }


def rows(ids: list[str], part: str, ts: int, columns: dict[str, pa.Array]) -> pa.Table:
    keys = {"id": ids, "part": [part] * len(ids), "ts": pa.array([ts] * len(ids), pa.int64())}
    return pa.table({**keys, **columns})


def maps(value: Any) -> Any:
    """Spark's maps are dictionaries, Arrow's are lists of pairs."""
    is_map = isinstance(value, list) and value and isinstance(value[0], tuple)
    return dict(value) if is_map else value


def by_spark(frame: Any) -> list[dict[str, Any]]:
    return sorted((row.asDict(recursive=True) for row in frame.collect()), key=lambda row: row["id"])


@pytest.mark.smoke("MERGE_ON_READ")
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_every_widening_is_read_alike(kind: str, tmp_path: Path, spark: Any) -> None:
    """Rows of partition p0 stay in the old types: in base files, and where there are log files in those, too."""
    given, path = table_options(kind), str(tmp_path / "t")
    old = {name: pa.array([was, None], kind_) for name, (kind_, _, was, _) in MATRIX.items()}
    hf.write(rows(["a", "b"], "p0", 1, old), path, given)
    hf.write(rows(["b", "c"], "p0", 2, old), path, given)
    new = {name: pa.nulls(1, wider) for name, (_, wider, _, _) in MATRIX.items()}
    hf.write(rows(["d"], "p1", 3, new), path, given)
    table = hf.HudiTable.open(path)
    plain = [name for name in MATRIX if name not in ("struct", "list")]  # in these the new field is the last one
    assert [table.schema.field(name).type for name in plain] == [MATRIX[name][1] for name in plain]
    local = table.to_arrow(["id", *MATRIX]).sort_by("id").to_pylist()
    expected = {name: value for name, (_, _, _, value) in MATRIX.items()}
    nulls = dict.fromkeys(MATRIX)
    for row, values in zip(local, (expected, expected, nulls, nulls), strict=True):
        assert {name: maps(row[name]) for name in MATRIX} == values, row["id"]
    found = by_spark(hf.read(spark, path, columns=["id", *MATRIX]))
    assert found == [{name: maps(value) for name, value in row.items()} for row in local]


@pytest.mark.parametrize("name", [ALTERED[0], *(pytest.param(name, marks=pytest.mark.long) for name in ALTERED[1:])])
def test_spark_reads_a_table_that_hudi_altered(name: str, tmp_path: Path, spark: Any) -> None:
    one = unzip_altered(name, tmp_path)
    expected = [{key: maps(value) for key, value in row.items()} for row in one.snapshot(list(one.as_of)[-1])]
    assert by_spark(hf.read(spark, str(one.table))) == expected
    step = "2c_nested"
    found = hf.read(spark, str(one.table), {"as.of.instant": one.as_of[step]})
    assert by_spark(found) == [{key: maps(value) for key, value in row.items()} for row in one.snapshot(step)]


def test_renamed_columns_stay_with_sparks_own_scan(tmp_path: Path, spark: Any) -> None:
    given, path = table_options("COPY_ON_WRITE"), str(tmp_path / "t")
    columns = {"a": pa.array([1, 2], pa.int32()), "gone": pa.array(["g", "h"])}
    hf.write(rows(["a", "b"], "p0", 1, columns), path, given)
    table = hf.HudiTable.open(path)
    table.alter(hf.RenameColumn("a", "aa"), hf.DropColumn("gone"), hf.AddColumn("gone", pa.string()))
    hf.write(rows(["c"], "p1", 2, {"aa": pa.array([3], pa.int32()), "gone": pa.array(["i"])}), path, given)
    frame = hf.read(spark, path, columns=["id", "aa", "gone"])
    plan = frame.filter("aa > 1")._jdf.queryExecution().executedPlan().toString()
    assert "MapInArrow" not in plan
    assert "(a" in plan  # the filter on today's name goes down under the old one
    assert by_spark(frame) == [
        {"id": "a", "aa": 1, "gone": None},
        {"id": "b", "aa": 2, "gone": None},
        {"id": "c", "aa": 3, "gone": "i"},
    ]
    assert [row["id"] for row in by_spark(frame.filter("gone is null and aa = 2"))] == ["b"]
    assert hf.read(spark, path, columns=["gone"]).filter("gone is null").count() == 2
    # A write by Spark finds the rows and rewrites them in today's columns.
    new = spark.createDataFrame([("b", "p0", 5, 20, "back")], "id string, part string, ts long, aa int, gone string")
    hf.write(new, path, given)
    assert rows_of(table.to_arrow(["id", "aa", "gone"])) == [
        {"id": "a", "aa": 1, "gone": None},
        {"id": "b", "aa": 20, "gone": "back"},
        {"id": "c", "aa": 3, "gone": "i"},
    ]
    assert table.to_arrow(["id"], filter=pc.field("gone").is_null()).num_rows == 1
