"""Vector and blob columns, with real Hudi 1.2.0 on the other side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import functions as F

import hudi_fast as hf
from hudi_fast.formats.logical_types import BLOB
from tests.peer.client import RealHudi

SIZE = 4
VECTOR = "embedding"
HUDI_TYPE = {"hudi_type": f"VECTOR({SIZE})"}


def embedded(ids: list[int], ts: int) -> pa.Table:
    """Rows with a vector, every fourth one without."""
    dice = np.random.default_rng(ts)
    vectors = [None if i % 4 == 3 else dice.integers(-9, 9, SIZE).astype(np.float32).tolist() for i in ids]
    field = pa.field(VECTOR, pa.list_(pa.float32()), metadata=HUDI_TYPE)
    table = pa.table({"id": pa.array([f"k{i:03d}" for i in ids]), "ts": pa.array([ts] * len(ids), pa.int64())})
    return table.append_column(field, pa.array(vectors, field.type))


def plain(table: pa.Table) -> pa.Table:
    """Vectors as lists."""
    kind = pa.list_(pa.float32())
    number = table.column_names.index(VECTOR)
    return table.set_column(number, VECTOR, pa.array(table.column(VECTOR).to_pylist(), kind))


@pytest.mark.parametrize("kind", [pytest.param("cow", marks=pytest.mark.long), "mor"])
def test_each_side_reads_and_searches_vectors_of_the_other(kind: str, hudi_12: RealHudi, tmp_path: Path) -> None:
    path, name = tmp_path / "t", f"vectors_{kind}"
    hudi_12.sql(
        f"CREATE TABLE {name} (id STRING, ts BIGINT, {VECTOR} VECTOR({SIZE})) USING hudi LOCATION '{path}' "
        f"TBLPROPERTIES (type = '{kind}', primaryKey = 'id', preCombineField = 'ts')"
    )
    first = embedded(list(range(20)), 1)
    hudi_12.sql(f"INSERT INTO {name} SELECT id, ts, {VECTOR} FROM given", rows={"given": plain(first)})
    expected = {row["id"]: row for row in plain(first).to_pylist()}

    def agree(*metrics: str) -> None:
        table = hf.HudiTable.open(path)
        ours = {row["id"]: row for row in table.to_arrow(columns=["id", "ts", VECTOR]).to_pylist()}
        assert ours == expected
        theirs = hudi_12.sql(f"SELECT id, ts, {VECTOR} FROM {name}").to_pylist()
        assert {row["id"]: row for row in theirs} == expected
        for metric in metrics:
            query = [1.0, -2.0, 3.5, 0.25]
            literal = ", ".join(f"CAST({each} AS FLOAT)" for each in query)
            arguments = f"'{path}', '{VECTOR}', ARRAY({literal}), 6, '{metric}'"
            answer = hudi_12.sql(f"SELECT id, _hudi_distance FROM hudi_vector_search({arguments})").to_pylist()
            found = table.vector_search(VECTOR, query, 6, metric, columns=["id"]).to_pylist()
            assert [row["_hudi_distance"] for row in found] == pytest.approx([row["_hudi_distance"] for row in answer])
            assert [row["id"] for row in found] == [row["id"] for row in answer]

    agree("cosine", "l2", "dot_product")
    second = embedded([1, 3, 5, 30, 31], 2)
    settings = {"hoodie.datasource.write.precombine.field": "ts", "hoodie.compact.inline": False}
    hf.HudiTable.open(path).upsert(second, settings)
    expected |= {row["id"]: row for row in plain(second).to_pylist()}
    agree()
    third = embedded([2, 3, 31, 40], 3)
    hudi_12.sql(f"INSERT INTO {name} SELECT id, ts, {VECTOR} FROM given", rows={"given": plain(third)})
    expected |= {row["id"]: row for row in plain(third).to_pylist()}
    agree()
    if kind == "mor":
        hf.HudiTable.open(path).services.compact()
        agree("l2")


def test_each_side_finds_the_same_rows_for_many_vectors(hudi_12: RealHudi, tmp_path: Path) -> None:
    settings = {
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
    }
    for name, ids in (("t", range(40)), ("q", [1, 3, 50])):  # the vector of k003 is null
        hf.write(embedded(list(ids), 1), tmp_path / name, {**settings, "hoodie.table.name": name})
    asked = hf.HudiTable.open(tmp_path / "q").to_arrow()
    for metric in ("cosine", "l2", "dot_product"):
        arguments = f"'{tmp_path / 't'}', '{VECTOR}', '{tmp_path / 'q'}', '{VECTOR}', 3, '{metric}'"
        theirs = hudi_12.sql(f"SELECT * FROM hudi_vector_search_batch({arguments})")
        ours = hf.HudiTable.open(tmp_path / "t").vector_search_batch(VECTOR, asked, VECTOR, 3, metric)
        assert ours.column_names == theirs.column_names
        names = ["id", "_hudi_query_id", "_hudi_distance"]
        theirs, ours = (
            one.select(names).sort_by([(each, "ascending") for each in names[1:]]) for one in (theirs, ours)
        )
        assert ours["_hudi_distance"].to_pylist() == pytest.approx(theirs["_hudi_distance"].to_pylist())
        assert ours.select(names[:2]).to_pylist() == theirs.select(names[:2]).to_pylist()


@pytest.mark.long
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_apache_hudi_reads_vectors_written_on_spark(kind: str, hudi_12: RealHudi, spark: Any, tmp_path: Path) -> None:
    settings = {
        "hoodie.table.name": "vectors",
        "hoodie.datasource.write.table.type": kind,
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.compact.inline": False,
        "hudi_fast.plan": "fused",
    }
    batches = [embedded(list(range(20)), 1), embedded([1, 3, 5, 30, 31], 2)]
    for each in batches:
        rows = spark.createDataFrame(plain(each).to_pylist(), f"id string, ts bigint, {VECTOR} array<float>")
        described = rows.withColumn(VECTOR, F.col(VECTOR).alias(VECTOR, metadata=dict(HUDI_TYPE)))
        hf.write(described, tmp_path / "t", settings)
    expected = {row["id"]: row for each in batches for row in plain(each).to_pylist()}
    theirs = hudi_12.read(tmp_path / "t").select(["id", "ts", VECTOR]).to_pylist()
    assert {row["id"]: row for row in theirs} == expected
    search = f"hudi_vector_search('{tmp_path / 't'}', '{VECTOR}', ARRAY(1.0F, 2.0F, 3.0F, 4.0F), 6, 'l2')"
    closest = [row["id"] for row in hudi_12.sql(f"SELECT id FROM {search}").to_pylist()]
    found = hf.HudiTable.open(tmp_path / "t").vector_search(VECTOR, [1, 2, 3, 4], 6, "l2", columns=["id"])
    assert found["id"].to_pylist() == closest


@pytest.mark.parametrize("kind", [pytest.param("cow", marks=pytest.mark.long), "mor"])
def test_each_side_reads_blobs_of_the_other(kind: str, hudi_12: RealHudi, tmp_path: Path) -> None:
    file, path, name = tmp_path / "payload.bin", tmp_path / "t", f"blobs_{kind}"
    file.write_bytes(bytes(range(100)))
    hudi_12.sql(
        f"CREATE TABLE {name} (id STRING, ts BIGINT, image BLOB) USING hudi LOCATION '{path}' "
        f"TBLPROPERTIES (type = '{kind}', primaryKey = 'id', preCombineField = 'ts')"
    )

    def insert(key: str, ts: int, text: bytes | None, offset: int = 0, length: int = 0) -> None:
        inline = f"'INLINE', 'data', CAST(X'{text.hex()}' AS BINARY), 'reference', NULL" if text is not None else None
        reference = f"'external_path', '{file}', 'offset', {offset}L, 'length', {length}L, 'managed', false"
        outside = f"'OUT_OF_LINE', 'data', CAST(NULL AS BINARY), 'reference', named_struct({reference})"
        hudi_12.sql(f"INSERT INTO {name} SELECT '{key}', {ts}L, named_struct('type', {inline or outside})")

    def agree(expected: dict[str, bytes]) -> None:
        table = hf.HudiTable.open(path)
        read = table.to_arrow(columns=["id", "image"])
        assert dict(zip(read["id"].to_pylist(), table.read_blobs(read["image"]).to_pylist(), strict=True)) == expected
        answer = hudi_12.sql(f"SELECT id, read_blob(image) AS bytes FROM {name}").to_pylist()
        assert {row["id"]: row["bytes"] for row in answer} == expected

    insert("a", 1, b"first")
    insert("b", 1, None, 10, 5)
    expected = {"a": b"first", "b": bytes(range(10, 15))}
    agree(expected)
    blobs = [
        {"type": "INLINE", "data": b"ours", "reference": None},
        {
            "type": "OUT_OF_LINE",
            "data": None,
            "reference": {"external_path": str(file), "offset": 90, "length": 3, "managed": False},
        },
    ]
    rows = pa.table({"id": ["b", "c"], "ts": pa.array([2, 2], pa.int64()), "image": pa.array(blobs, BLOB)})
    hf.HudiTable.open(path).upsert(rows, {"hoodie.compact.inline": False})
    expected |= {"b": b"ours", "c": bytes(range(90, 93))}
    agree(expected)
    insert("c", 3, b"theirs")
    expected |= {"c": b"theirs"}
    agree(expected)
    if kind == "mor":
        hf.HudiTable.open(path).services.compact()
        agree(expected)
