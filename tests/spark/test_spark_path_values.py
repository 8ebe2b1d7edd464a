"""A row whose stored partition column differs from its path has the value of the path on Spark, too.

Modules: hudi_fast.spark.reading.file_index, hudi_fast.spark.reading.native_scan.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

import hudi_fast as hf
from hudi_fast.spark.arrow import collect, spark_schema
from hudi_fast.spark.reading import native_scan
from tests.spark.sql_sessions import fast
from tests.spark.stream_files import to_the_end
from tests.support.foreign import needs_foreign, unzip_foreign
from tests.support.kept_rows import (
    FILTERS,
    FROM_PATHS,
    ROWS,
    VALUES,
    Row,
    kept_options,
    rows_matching,
    write_kept_rows,
    write_kept_values,
)

__all__ = ["fast"]


def listed(frame: Any) -> list[Row]:
    return sorted((row.id, row.part, row.number) for row in frame.select("id", "part", "number").collect())


@pytest.mark.parametrize(
    ("kind", "version", "compacted"),
    [("COPY_ON_WRITE", 6, False), ("MERGE_ON_READ", 8, True), ("MERGE_ON_READ", 9, False)],
)
def test_rows_and_filters_have_the_values_of_paths(
    spark: Any, kind: str, version: int, compacted: bool, tmp_path: Path
) -> None:
    table = write_kept_rows(tmp_path, kind, version)
    if compacted:
        table.services.compact(kept_options(kind, version))
    frame = hf.read(str(tmp_path), spark=spark)
    frame.createOrReplaceTempView("kept")
    assert frame.columns == table.to_arrow().column_names
    assert listed(frame) == ROWS
    assert sorted(row.part for row in frame.select("part").collect()) == ["p0"] * 3 + ["p1"] * 3
    assert {row.part: row["count"] for row in frame.groupBy("part").count().collect()} == {"p0": 3, "p1": 3}
    for text in FILTERS:
        wanted = rows_matching(text)
        assert listed(frame.where(text)) == wanted, text
        assert listed(hf.read(str(tmp_path), spark=spark, filter=text)) == wanted, text
    assert spark.sql("select count(*) n from kept where part = 'p1' and number > 4").first().n == 2
    wanted_parts = spark.createDataFrame([("p1",)], "part string")
    assert listed(frame.join(F.broadcast(wanted_parts), "part")) == rows_matching("part in ('p1', 'p7')")
    since = {"hoodie.datasource.query.type": "incremental", "hoodie.datasource.read.begin.instanttime": "earliest"}
    changes = hf.read(str(tmp_path), options=since, spark=spark)
    assert listed(changes.where("part = 'p0'")) == rows_matching("part = 'p0'")


@pytest.mark.parametrize(("kind", "version"), [("COPY_ON_WRITE", 6), ("MERGE_ON_READ", 9)])
def test_every_door_shows_the_values_of_paths(fast: Any, kind: str, version: int, tmp_path: Path) -> None:
    table = write_kept_rows(tmp_path / "t", kind, version)
    table.services.compact(kept_options(kind, version)) if kind == "MERGE_ON_READ" else None
    newest = table.history()["instant"].to_pylist()[-1]
    fast.sql(f"CREATE TABLE kept USING hudi LOCATION '{tmp_path / 't'}'")
    asked = {
        "snapshot": {},
        "read_optimized": {"hoodie.datasource.query.type": "read_optimized"},
        "time travel": {"as.of.instant": newest},
        "incremental": {
            "hoodie.datasource.query.type": "incremental",
            "hoodie.datasource.read.begin.instanttime": "earliest",
        },
    }
    doors = {name: fast.read.format("hudi").options(**one).load(str(tmp_path / "t")) for name, one in asked.items()}
    doors["sql"] = fast.table("kept")
    doors["time travel in sql"] = fast.sql(f"SELECT * FROM kept TIMESTAMP AS OF '{newest}'")
    doors["a column alone"] = fast.table("kept").select("part", "id", "number")
    for text in ("part = 'p0'", "part = 'p1' and number < 5", "part = 'p7' or number = 11"):
        found = {name: listed(frame.where(text)) for name, frame in doors.items()}
        assert found == dict.fromkeys(doors, rows_matching(text)), text
    streamed: list[Row] = []
    query = fast.readStream.format("hudi").load(str(tmp_path / "t")).writeStream
    query = query.foreachBatch(lambda rows, _: streamed.extend(listed(rows)))
    to_the_end(query.option("checkpointLocation", str(tmp_path / "c")))
    assert sorted(streamed) == ROWS


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_changes_by_condition_are_about_the_values_of_paths(fast: Any, kind: str, tmp_path: Path) -> None:
    table, options = write_kept_rows(tmp_path / "t", kind, 9), kept_options(kind, 9)
    fast.sql(f"CREATE TABLE kept USING hudi LOCATION '{tmp_path / 't'}'")
    hf.delete(table.path, "part = 'p0' and number >= 12", options, spark=fast)
    left = [row for row in ROWS if row[0] != "k2"]
    assert listed(fast.table("kept")) == left
    fast.sql("UPDATE kept SET number = number + 100 WHERE part = 'p1'")
    left = [(key, part, number + 100 * (part == "p1")) for key, part, number in left]
    assert listed(fast.table("kept")) == left
    fast.sql(
        "MERGE INTO kept t USING (SELECT 'p0' part) s ON t.part = s.part "
        "WHEN MATCHED AND t.number >= 10 THEN DELETE WHEN MATCHED THEN UPDATE SET number = -t.number"
    )
    left = [(key, part, number if part == "p1" else -number) for key, part, number in left if key != "k0"]
    assert listed(fast.table("kept")) == left == listed_here(tmp_path / "t")


def listed_here(path: Path) -> list[Row]:
    """The rows in one process."""
    return sorted((row["id"], row["part"], row["number"]) for row in hf.read(path).to_pylist())


@needs_foreign
def test_a_table_of_another_project_has_the_values_of_its_paths(spark: Any, tmp_path: Path) -> None:
    foreign = unzip_foreign("presto__hudi_mor_part_update", tmp_path)
    frame = hf.read(str(foreign.table), spark=spark)
    truth = sorted((row["id"], row["partition"]) for row in foreign.answer("snapshot").to_pylist())
    for part in {None, *(part for _, part in truth)}:
        rows = frame if part is None else frame.where(F.col("partition") == part)
        wanted = [row for row in truth if part in (None, row[1])]
        assert sorted((row.id, row.partition) for row in rows.collect()) == wanted


def test_values_of_each_type_are_those_of_one_process(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where Spark lists files itself, as with Spark Connect, their values are joined."""
    layouts = [("COPY_ON_WRITE", 6, True), ("COPY_ON_WRITE", 9, False), ("MERGE_ON_READ", 8, True)]
    for at, type_ in enumerate(VALUES):
        kind, version, hive = layouts[at % len(layouts)]
        style = {"hoodie.datasource.write.hive_style_partitioning": hive}
        encoded = {"hoodie.datasource.write.partitionpath.urlencode": type_ == "string"}
        table = write_kept_values(tmp_path / type_, type_, kind, version, **style, **encoded)
        table.services.compact(kept_options(kind, version)) if kind == "MERGE_ON_READ" else None
        rows, literal = table.to_arrow(), VALUES[type_][2]
        kept = {row["id"]: row["part"] for row in rows.to_pylist()}
        assert (kept["k0"] == VALUES[type_][1][0]) == (type_ in FROM_PATHS)
        assert (kept["k2"] is None) == (type_ in FROM_PATHS and type_ != "string")  # the empty string is there, too
        truth = spark.createDataFrame(
            [(row["id"], row["part"], row["number"]) for row in rows.to_pylist()], schema(rows)
        )
        for listed_by_spark in (False, True):
            with monkeypatch.context() as patch:
                if listed_by_spark:
                    patch.setattr(native_scan, "planned_frame", lambda *_: None)
                frame = hf.read(str(tmp_path / type_), spark=spark)
                found = collect(frame).select(rows.column_names)
            assert found.sort_by("id").to_pylist() == rows.sort_by("id").to_pylist(), type_
            for text in (
                f"part = {literal}",
                f"part <> {literal} or number = 4",
                f"part > {literal} and number < 12",
                "part is null",
                f"coalesce(part, {literal}) = {literal} and rand(1) < 2",
            ):
                assert listed(frame.where(text)) == listed(truth.where(text)), (type_, text)


def schema(rows: pa.Table) -> Any:
    """Spark's, of the columns that are compared."""
    return spark_schema(pa.schema([rows.schema.field(name) for name in ("id", "part", "number")]))


def test_files_of_one_name_in_several_folders_have_their_own_values(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native_scan, "planned_frame", lambda *_: None)
    write_kept_rows(tmp_path, "COPY_ON_WRITE", 6, **{"hoodie.metadata.enable": False})
    for file in tmp_path.glob("p*/*.parquet"):
        file.rename(file.with_name(f"{'1' * 8}-0_{file.name.split('_', 1)[1]}"))
    for folder in ("p0", "p1"):
        for file in (tmp_path / folder).glob("*.parquet"):
            _, instant = file.name.split("_")[1:]
            file.rename(file.with_name(f"{'1' * 8}-0_0-0-0_{instant}"))
    assert listed(hf.read(str(tmp_path), spark=spark)) == ROWS


def test_conditions_of_many_folders_and_types(spark: Any, tmp_path: Path) -> None:
    """Folders give text, numbers, dates and booleans; a null is read from the files."""
    made = spark.range(40).selectExpr(
        "concat('k', id) id",
        "case when id % 5 = 4 then null else concat('it''s \u00e9 ', id % 5) end text",
        "cast(id % 4 as bigint) big",
        "date_add(date'2024-02-27', cast(id % 3 as int)) day",
        "id % 2 = 0 flag",
        "cast(id as int) number",
    )
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "number",
        "hoodie.datasource.write.partitionpath.field": "text,big,day,flag",
        "hoodie.datasource.write.partitionpath.urlencode": "true",
        "hoodie.datasource.write.operation": "bulk_insert",
    }
    hf.write(made.toArrow() if hasattr(made, "toArrow") else made, str(tmp_path), options)
    frame = hf.read(str(tmp_path), spark=spark)
    for text in (
        "true",
        "text is null",
        "text like '% 1' and big > 0",
        "day = '2024-02-28' or number = 7",
        "big in (1, 3) and not flag",
        "coalesce(text, 'none') = 'none' and month(day) = 2",
        "day > date'2024-02-27' and big + number > 9",
        "rand(1) < 2 and flag",
    ):
        assert [row.number for row in frame.where(text).select("number").orderBy("number").collect()] == [
            row.number for row in made.where(text).select("number").orderBy("number").collect()
        ], text
