"""Merges, updates and deletes on Spark, compared with the local engine; run by the tests of changes on Spark.

Usage: ``python -m tests.spark.changing_on_spark FOLDER [all]``; prints Spark's version.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow.compute import field

import hudi_fast as hf

__all__ = ["compare_changes", "compare_refusals", "rows_of", "written"]

NAMES = ["id", "part", "ts", "fare", "note"]


def written(path: Path, kind: str, keyed: bool = True, more: dict[str, str] | None = None) -> hf.HudiTable:
    """A table of 24 rows in three partitions."""
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.table.type": kind,
        "hoodie.index.bloom.num_entries": "100",
        **(more or {}),
    }
    if keyed:
        options["hoodie.datasource.write.recordkey.field"] = "id"
    hf.write(source_rows(range(24), 1.0, 1), path, options)
    return hf.HudiTable.open(path)


def source_rows(ids: Any, fare: float, ts: int) -> pa.Table:
    """Rows of the table and a column ``op``."""
    numbers = list(ids)
    columns = {
        "id": pa.array(numbers, pa.int64()),
        "part": pa.array([f"p{number % 3}" for number in numbers]),
        "ts": pa.array([ts] * len(numbers), pa.int64()),
        "fare": pa.array([fare] * len(numbers), pa.float64()),
        "note": pa.array([f"n{number}" for number in numbers]),
    }
    if ts > 1:
        columns["op"] = pa.array(["u", "d"] * (len(numbers) // 2))
    return pa.table(columns)


def rows_of(table: hf.HudiTable) -> list[tuple[Any, ...]]:
    """All rows, sorted by id."""
    return sorted(tuple(row.values()) for row in table.to_arrow(columns=NAMES).to_pylist())


def as_frame(spark: Any, table: pa.Table) -> Any:
    """The rows as a DataFrame."""
    kinds = {pa.int64(): "long", pa.string(): "string", pa.float64(): "double"}
    schema = ", ".join(f"{one.name} {kinds[one.type]}" for one in table.schema)
    return spark.createDataFrame([tuple(row.values()) for row in table.to_pylist()], schema)


def compare_changes(spark: Any, folder: Path, kind: str, plan: str, keyed: bool = True) -> None:
    """The same statements on Spark and without it leave the same rows."""
    more = {"hoodie.index.type": "BLOOM"}
    ours, theirs = (written(folder / name, kind, keyed, more) for name in ("spark", "local"))
    options, path = {"hudi_fast.plan": plan}, ours.path
    source = source_rows(range(16, 32), 7.0, 2)
    merge = hf.merge(spark, path, as_frame(spark, source), options).on("target.id = source.id")
    merge = merge.when_matched_delete("source.op = 'd'").when_matched_update({"fare": "source.fare + target.fare"})
    on_spark = merge.when_not_matched_insert(condition="source.id < 30").execute()
    local = theirs.merge(source).on("id").when_matched_delete(field("source.op") == "d")
    local = local.when_matched_update({"fare": field("source.fare") + field("target.fare")})
    alone = local.when_not_matched_insert(condition=field("source.id") < 30).execute()
    assert on_spark.plan == plan
    assert [(one.inserts, one.updates, one.deletes) for one in (on_spark, alone)] == [(6, 4, 4)] * 2
    assert rows_of(ours) == rows_of(theirs)
    hf.update(spark, path, "id < 5 and part = 'p1'", {"note": "concat(note, '!')", "ts": 4}, options)
    theirs.update((field("id") < 5) & (field("part") == "p1"), {"note": field("note"), "ts": 4})
    assert {row[4] for row in rows_of(ours) if row[2] == 4} == {"n1!", "n4!"}
    hf.delete(spark, path, "fare > 7 or id = 2", options)
    theirs.delete((field("fare") > 7) | (field("id") == 2))
    back = source_rows([2, 17], 3.0, 9)
    hf.merge(spark, path, as_frame(spark, back), options).on("id").when_not_matched_insert("*").execute()
    theirs.merge(back).on("id").when_not_matched_insert().execute()
    hf.update(spark, path, "id = 3", {"part": "'p9'"}, options)
    theirs.update(field("id") == 3, {"part": "'p9'"})
    few = as_frame(spark, source_rows(range(4), 1.0, 1))
    hf.merge(spark, path, few, options).on("id").when_not_matched_by_source_delete("target.id > 20").execute()
    theirs.delete(field("id") > 20)
    assert [row[:4] for row in rows_of(ours)] == [row[:4] for row in rows_of(theirs)]


def compare_refusals(spark: Any, folder: Path, kind: str, plan: str) -> None:
    """What is refused without Spark is refused with it, and leaves the table as it was."""
    table, options = written(folder / "refusals", kind), {"hudi_fast.plan": plan}
    before = rows_of(table)

    def refused(error: type[Exception], source: pa.Table, on: str, clause: str, **arguments: Any) -> None:
        merge = hf.merge(spark, table.path, as_frame(spark, source), options).on(on)
        try:
            getattr(merge, clause)(**arguments).execute()
        except error:
            assert rows_of(table) == before
        else:
            raise AssertionError(f"{clause} {arguments} is not refused")

    twice = pa.concat_tables([source_rows([3], 1.0, 1)] * 2)
    refused(hf.InvalidDataError, twice, "id", "when_matched_update")
    refused(hf.InvalidDataError, pa.concat_tables([source_rows([99], 1.0, 1)] * 2), "id", "when_not_matched_insert")
    refused(hf.DuplicateKeyError, source_rows([3], 1.0, 1), "target.note = source.part", "when_not_matched_insert")
    refused(hf.ConfigError, twice, "nope", "when_matched_delete")
    refused(hf.ConfigError, twice, "target.nope = source.id", "when_matched_delete")
    refused(hf.ConfigError, source_rows([3], 1.0, 1), "part", "when_matched_update", set={"id": "5"})


if __name__ == "__main__":
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    place = Path(sys.argv[1])
    compare_changes(session, place / "mor", "MERGE_ON_READ", "routed")
    compare_changes(session, place / "cow", "COPY_ON_WRITE", "driver")
    print(session.version)
    session.stop()
