"""Vector and blob columns on Spark: arrays and structs there, Hudi's own types in the table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F
from pyspark.sql import types as T

import hudi_fast as hf
from hudi_fast.formats.logical_types import is_blob, vector_type
from tests.reading.test_reading_vector_search import FIELDS, SIZE, expected_of, rows
from tests.spark.sql_sessions import fast, listed
from tests.support.mor_tables import mor_options
from tests.support.rows import assert_same_rows
from tests.support.small_tables import options

__all__ = ["fast"]

ELEMENTS = {"single": T.FloatType(), "double": T.DoubleType(), "small": T.ByteType()}
BLOB = (
    "type: string, data: binary, "
    "reference: struct<external_path: string, offset: bigint, length: bigint, managed: boolean>"
)


def frame(spark: Any, table: pa.Table, described: bool = True) -> Any:
    """A DataFrame of :func:`rows`; its columns of vectors are ``described`` by their metadata."""
    fields = [T.StructField("id", T.StringType()), T.StructField("part", T.StringType())]
    fields.append(T.StructField("ts", T.LongType()))
    for name, (text, _) in FIELDS.items():
        fields.append(
            T.StructField(name, T.ArrayType(ELEMENTS[name]), True, {"hudi_type": text} if described else None)
        )
    integers = [{**row, "small": row["small"] and [int(each) for each in row["small"]]} for row in table.to_pylist()]
    return spark.createDataFrame([tuple(row.values()) for row in integers], T.StructType(fields))


def rows_in(read: Any) -> dict[str, tuple[Any, ...]]:
    found = read.select("id", "part", "ts", *FIELDS).collect()
    return {row["id"]: tuple(row)[1:] for row in found}


CHOSEN = {"broadcast-MOR", "fused-COW", "routed-MOR"}


@pytest.mark.smoke("routed-MOR")
@pytest.mark.parametrize(
    ("plan", "made"),
    [
        pytest.param(plan, made, id=f"{plan}-{name}", marks=() if f"{plan}-{name}" in CHOSEN else pytest.mark.long)
        for plan in ("driver", "broadcast", "fused", "routed")
        for name, made in (("COW", options), ("MOR", mor_options))
    ],
)
def test_every_plan_writes_vectors(spark: Any, tmp_path: Path, plan: str, made: Any) -> None:
    first, second = rows(list(range(12)), 1), rows([1, 2, 3, 20], 2)
    hf.write(frame(spark, first), tmp_path, made())
    hf.write(frame(spark, second, described=False), tmp_path, {**made(), "hudi_fast.plan": plan})
    expected = expected_of(first, second)
    table = hf.HudiTable.open(tmp_path)
    kinds = {name: table.schema.field(name).type for name in FIELDS}
    assert kinds == {name: vector_type(SIZE, kind) for name, (_, kind) in FIELDS.items()}
    local = table.to_arrow(columns=["id", "part", "ts", *FIELDS]).to_pylist()
    assert {row["id"]: tuple(row.values())[1:] for row in local} == expected
    read = hf.read(spark, tmp_path)
    assert rows_in(read) == expected
    assert {name: read.schema[name].metadata["hudi_type"] for name in FIELDS} == {
        name: text for name, (text, _) in FIELDS.items()
    }
    assert read.where("single[0] > 0 AND ts = 1").count() == sum(
        row[1] == 1 and row[2] is not None and row[2][0] > 0 for row in expected.values()
    )


def test_a_table_of_what_was_read_has_vectors_too(spark: Any, tmp_path: Path) -> None:
    first = rows(list(range(12)), 1)
    hf.write(first, tmp_path / "from", options())
    read = hf.read(spark, tmp_path / "from", columns=["id", "part", "ts", *FIELDS])
    hf.write(read, tmp_path / "to", {**options(), "hoodie.datasource.write.operation": "bulk_insert"})
    copied = hf.HudiTable.open(tmp_path / "to")
    assert copied.schema.field("small").type == vector_type(SIZE, pa.int8())
    hf.write(read.withColumn("single", F.slice("single", 1, 2)), tmp_path / "plain", options())
    assert pa.types.is_list(hf.HudiTable.open(tmp_path / "plain").schema.field("single").type)


def test_services_keep_vectors(spark: Any, tmp_path: Path) -> None:
    settings = mor_options()
    hf.write(frame(spark, rows(list(range(12)), 1)), tmp_path, settings)
    hf.write(frame(spark, rows([1, 2, 3], 2)), tmp_path, settings)
    table = hf.HudiTable.open(tmp_path)
    before = table.to_arrow()
    table.services.compact({"hoodie.compact.inline.max.delta.commits": 1}, spark=spark)
    assert_same_rows(table.to_arrow(), before, ignore=["_hoodie_file_name"])
    table.services.cluster({"hoodie.clustering.plan.strategy.sort.columns": "ts,id"}, spark=spark)
    assert_same_rows(table.to_arrow(), before, ignore=["_hoodie_file_name"])
    assert rows_in(hf.read(spark, tmp_path)) == expected_of(rows(list(range(12)), 1), rows([1, 2, 3], 2))


def test_other_lengths_and_places_are_refused(spark: Any, tmp_path: Path) -> None:
    hf.write(frame(spark, rows(list(range(4)), 1)), tmp_path / "t", options())
    longer = frame(spark, rows([1], 2)).withColumn("single", F.array(*map(F.lit, range(SIZE + 1))))
    with pytest.raises(hf.InvalidDataError, match=rf"single.* has a vector of {SIZE + 1} numbers; expected {SIZE}"):
        hf.write(longer, tmp_path / "t", options())
    inner = T.StructType([T.StructField("v", T.ArrayType(T.FloatType()), True, {"hudi_type": "VECTOR(2)"})])
    outer = T.StructType([T.StructField("id", T.StringType()), T.StructField("s", inner)])
    with pytest.raises(hf.UnsupportedFeatureError, match=r"Column 's\.v' has hudi_type='VECTOR\(2\)'"):
        hf.write(spark.createDataFrame([("a", ([1.0, 2.0],))], outer), tmp_path / "inner", options())
    wrong = T.StructType(
        [
            T.StructField("id", T.StringType()),
            T.StructField("v", T.ArrayType(T.FloatType()), True, {"hudi_type": "V(2)"}),
        ]
    )
    with pytest.raises(hf.UnsupportedFeatureError, match=r"Column 'v' has Hudi's type V\(2\)"):
        hf.write(spark.createDataFrame([("a", [1.0, 2.0])], wrong), tmp_path / "wrong", options())
    assert not (tmp_path / "inner").exists()
    assert not (tmp_path / "wrong").exists()


def test_vectors_in_sql(fast: Any) -> None:
    fast.sql(
        "CREATE TABLE docs (id STRING, `text` STRING COMMENT 'a, b', v VECTOR(3) COMMENT 'of the text', ts BIGINT) "
        "USING hudi TBLPROPERTIES (type = 'mor', primaryKey = 'id', preCombineField = 'ts')"
    )
    fast.sql(
        "INSERT INTO docs VALUES ('a', 'x', array(1, 2, 3), 1), ('b', 'y', array(4.5, 5, 6), 1), ('c', 'z', null, 1)"
    )
    fast.sql("UPDATE docs SET v = array(7, 8, 9), ts = 2 WHERE id = 'a'")
    fast.sql(
        "MERGE INTO docs t USING (SELECT 'd' AS id, 'w' AS `text`, array(0.5, 0, 0) AS v, 3L AS ts) s "
        "ON t.id = s.id WHEN NOT MATCHED THEN INSERT *"
    )
    stored = [("a", [7.0, 8.0, 9.0]), ("b", [4.5, 5.0, 6.0]), ("c", None), ("d", [0.5, 0.0, 0.0])]
    assert listed(fast, "SELECT id, v FROM docs") == stored
    close = "SELECT id FROM hudi_vector_search('docs', 'v', array(4, 5, 6), 1, 'l2')"
    assert listed(fast, close) == [("b",)]
    fast.sql("CREATE TABLE alike LIKE docs USING hudi TBLPROPERTIES (primaryKey = 'id')")
    fast.sql("CREATE TABLE copied USING hudi TBLPROPERTIES (primaryKey = 'id') AS SELECT id, v FROM docs")
    for name in ("docs", "alike", "copied"):
        assert fast.table(name).schema["v"].metadata["hudi_type"] == "VECTOR(3)"
    with pytest.raises(hf.UnsupportedFeatureError, match=r"ALTER TABLE cannot make a column VECTOR\(2\)"):
        fast.sql("ALTER TABLE docs ADD COLUMNS (w VECTOR(2))")
    with pytest.raises(hf.HudiError, match=r"expected VECTOR\(n\)"):
        fast.sql("CREATE TABLE odd (id STRING, v VECTOR(3, TEXT)) USING hudi TBLPROPERTIES (primaryKey = 'id')")


def test_blobs_are_written_and_read_as_structs(spark: Any, fast: Any, tmp_path: Path) -> None:
    (tmp_path / "scan.bin").write_bytes(bytes(range(9)))
    given = [
        ("p1", ("INLINE", b"a page", None)),
        ("p2", ("OUT_OF_LINE", None, (str(tmp_path / "scan.bin"), 2, 3, False))),
    ]
    pages = spark.createDataFrame(given, f"id string, page struct<{BLOB}>")
    described = pages.withColumn("page", F.col("page").alias("page", metadata={"hudi_type": "BLOB"}))
    settings = {"hoodie.table.name": "pages", "hoodie.datasource.write.recordkey.field": "id"}
    hf.write(described, tmp_path / "t", settings)
    table = hf.HudiTable.open(tmp_path / "t")
    assert is_blob(table.schema.field("page").type)
    read = table.to_arrow(columns=["id", "page"]).sort_by("id")
    assert table.read_blobs(read["page"]).to_pylist() == [b"a page", bytes(range(2, 5))]
    back = hf.read(spark, tmp_path / "t", columns=["id", "page"])
    assert back.schema["page"].metadata["hudi_type"] == "BLOB"
    assert sorted(tuple(row) for row in back.collect()) == [("p1", given[0][1]), ("p2", given[1][1])]
    fast.sql("CREATE TABLE pages (id STRING, page BLOB) USING hudi TBLPROPERTIES (primaryKey = 'id')")
    assert fast.table("pages").schema["page"].metadata["hudi_type"] == "BLOB"


def test_vectors_are_searched_by_sql(fast: Any, tmp_path: Path) -> None:
    hf.write(rows(list(range(12)), 1), tmp_path / "t", options())
    expected = hf.HudiTable.open(tmp_path / "t").vector_search("single", [1.0] * 5, 3, "l2", columns=["id"])
    call = f"hudi_vector_search('{tmp_path / 't'}', 'single', ARRAY(1, 1, 1, 1, 1), 3, 'l2')"
    found = fast.sql(f"SELECT id, _hudi_distance FROM {call} ORDER BY _hudi_distance").collect()
    assert [row[0] for row in found] == expected["id"].to_pylist()


def test_many_vectors_are_searched_by_sql(spark: Any, fast: Any, tmp_path: Path) -> None:
    hf.write(rows(list(range(12)), 1), tmp_path / "t", options())
    hf.write(rows([20, 21, 22], 1), tmp_path / "q", options())
    asked = hf.HudiTable.open(tmp_path / "q").to_arrow()
    expected = hf.HudiTable.open(tmp_path / "t").vector_search_batch("single", asked, "single", 2, "l2")
    pairs = [tuple(row.values()) for row in expected.select(["id", "_hudi_query_id"]).to_pylist()]
    fast.read.format("hudi").load(str(tmp_path / "q")).createOrReplaceTempView("asked")
    for queries in (str(tmp_path / "q"), "asked"):
        call = f"hudi_vector_search_batch('{tmp_path / 't'}', 'single', '{queries}', 'single', 2, 'l2')"
        found = fast.sql(f"SELECT id, _hudi_query_id FROM {call} ORDER BY _hudi_query_index, _hudi_distance").collect()
        assert [tuple(row) for row in found] == pairs
    with pytest.raises(hf.ConfigError, match="5 to 7 arguments"):
        fast.sql("SELECT * FROM hudi_vector_search_batch('a', 'b')")
