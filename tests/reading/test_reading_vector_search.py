"""Vector columns: written, kept by every service, read, searched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import hudi_fast as hf
from hudi_fast.formats.logical_types import vector_type
from tests.naive.vector_distances import distance
from tests.support.small_tables import options, table_rows

SIZE = 5
FIELDS = {
    "single": (f"VECTOR({SIZE})", pa.float32()),
    "double": (f"VECTOR({SIZE}, DOUBLE)", pa.float64()),
    "small": (f"VECTOR({SIZE}, INT8)", pa.int8()),
}


def numbers_of(row: int, ts: int) -> list[float]:
    return [float(each) for each in np.random.default_rng(row * 100 + ts).integers(-100, 100, SIZE)]


def rows(numbers: list[int], ts: int) -> pa.Table:
    """Every third row has no vectors."""
    vectors = [None if number % 3 == 2 else numbers_of(number, ts) for number in numbers]
    fields = [pa.field("id", pa.string()), pa.field("part", pa.string()), pa.field("ts", pa.int64())]
    fields += [pa.field(name, pa.list_(kind), metadata={"hudi_type": text}) for name, (text, kind) in FIELDS.items()]
    columns = [
        pa.array([f"k{number:05d}" for number in numbers]),
        pa.array([f"p{number % 2}" for number in numbers]),
        pa.array([ts] * len(numbers), pa.int64()),
        *(pa.array(vectors, pa.list_(kind)) for _, kind in FIELDS.values()),
    ]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def expected_of(*written: pa.Table) -> dict[str, tuple[Any, ...]]:
    return {
        row["id"]: (row["part"], row["ts"], *(row[name] for name in FIELDS))
        for table in written
        for row in table.to_pylist()
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "form"), [("COPY_ON_WRITE", "avro"), ("MERGE_ON_READ", "avro"), ("MERGE_ON_READ", "parquet")]
)
def test_vectors_stay_vectors(kind: str, form: str, tmp_path: Path) -> None:
    settings = {
        **options(),
        "hoodie.datasource.write.table.type": kind,
        "hoodie.compact.inline": "false",
        "hoodie.logfile.data.block.format": form,
    }
    first, second = rows(list(range(12)), 1), rows([1, 2, 3, 20], 2)
    hf.write(first, tmp_path, settings)
    hf.write(second.replace_schema_metadata(None), tmp_path, settings)
    table = hf.HudiTable.open(tmp_path)
    assert {name: table.schema.field(name).type for name in FIELDS} == {
        name: vector_type(SIZE, kind) for name, (_, kind) in FIELDS.items()
    }
    expected = expected_of(first, second)
    assert table_rows(tmp_path) == expected
    if kind == "MERGE_ON_READ":
        table.services.compact()
        assert table_rows(tmp_path) == expected
    plain = pa.table({name: second.column(name) for name in second.column_names})  # without the metadata
    plain = plain.cast(pa.schema([field.remove_metadata() for field in plain.schema]))
    hf.write(plain.set_column(2, "ts", pa.array([3] * 4, pa.int64())), tmp_path, settings)
    expected |= {key: (part, 3, *more) for key, (part, _, *more) in expected_of(second).items()}
    table.services.cluster()
    assert table_rows(tmp_path) == expected
    wider = rows([5], 4).append_column("added", pa.array([1]))
    hf.write(wider, tmp_path, settings)
    table.delete(rows([6], 1))
    expected |= expected_of(rows([5], 4))
    del expected["k00006"]
    assert {key: row[:5] for key, row in table_rows(tmp_path).items()} == expected
    (path, *_) = [*tmp_path.glob("p*/*.parquet")]
    footer = pq.read_metadata(path)
    assert footer.metadata[b"hoodie.vector.columns"] == (
        f"single:VECTOR({SIZE}),double:VECTOR({SIZE}, DOUBLE),small:VECTOR({SIZE}, INT8)".encode()
    )
    stored = pq.read_schema(path)
    assert [stored.field(name).type for name in FIELDS] == [pa.binary(20), pa.binary(40), pa.binary(5)]


@pytest.mark.slow("single-l2", "single-dot_product", "double-cosine", "double-l2")
@pytest.mark.parametrize("metric", ["cosine", "l2", "dot_product"])
@pytest.mark.parametrize("column", FIELDS)
def test_the_closest_rows_are_found(column: str, metric: str, tmp_path: Path) -> None:
    hf.write(rows(list(range(40)), 1), tmp_path, options())
    query = [3.0, -20.0, 7.0, 50.0, 1.0]
    found = hf.HudiTable.open(tmp_path).vector_search(column, query, k=5, metric=metric)
    every = sorted((distance(metric, numbers_of(n, 1), query), f"k{n:05d}") for n in range(40) if n % 3 != 2)
    assert found["id"].to_pylist() == [key for _, key in every[:5]]
    assert found["_hudi_distance"].to_pylist() == pytest.approx([each for each, _ in every[:5]], rel=1e-12)
    others = [name for name in FIELDS if name != column]
    assert found.column_names[5:] == ["id", "part", "ts", *others, "_hudi_distance"]
    some = hf.HudiTable.open(tmp_path).vector_search(column, query, 100, metric, columns=["id"], filter="part = 'p1'")
    assert some["id"].to_pylist() == [key for _, key in every if int(key[1:]) % 2]
    assert some.column_names == ["id", "_hudi_distance"]


@pytest.mark.slow(but="small-cosine")
@pytest.mark.parametrize("metric", ["cosine", "l2", "dot_product"])
@pytest.mark.parametrize("column", FIELDS)
def test_each_query_of_a_table_finds_what_it_finds_alone(column: str, metric: str, tmp_path: Path) -> None:
    for part in (range(30), range(30, 60)):
        hf.write(rows(list(part), 1), tmp_path, options())
    table = hf.HudiTable.open(tmp_path)
    queries = pa.table(
        {
            "vector": [[3, -20, 7, 50, 1], None, [0.5, 11, -7, 3, 17], [-1, 2, 30, 4, 5]],
            "id": ["q0", "q1", "q2", "q3"],
            "note": ["a", "b", "c", "d"],
        }
    )
    found = table.vector_search_batch(column, queries, "vector", 4, metric, columns=["ts", "id"])
    assert found.column_names == ["ts", "id", "_hudi_query_id", "note", "_hudi_query_index", "_hudi_distance"]
    expected = []
    for number in (0, 2, 3):
        alone = table.vector_search(column, queries["vector"][number].as_py(), 4, metric, columns=["id"])
        expected += [
            {"ts": 1, "id": row["id"], "_hudi_query_id": f"q{number}", "note": "abcd"[number]}
            | {"_hudi_query_index": number, "_hudi_distance": row["_hudi_distance"]}
            for row in alone.to_pylist()
        ]
    assert found.to_pylist() == expected
    few = table.vector_search_batch(column, queries.slice(1, 2), "vector", 100, metric, ["id"], "part = 'p1'")
    assert (few.num_rows, set(few["_hudi_query_index"].to_pylist())) == (20, {1})
    for none in (queries.slice(1, 1), queries.slice(0, 0)):
        empty = table.vector_search_batch(column, none, "vector", 4, metric, columns=["ts", "id"])
        assert (empty.num_rows, empty.schema) == (0, found.schema)


def test_a_vector_with_nan_is_the_farthest(tmp_path: Path) -> None:
    for numbers in ([0, 1, 3], [4, 6, 7]):
        given = rows(numbers, 1)
        vectors = given["single"].to_pylist()
        vectors[0][2] = float("nan")
        column = pa.chunked_array([pa.array(vectors, pa.list_(pa.float32()))])
        hf.write(given.set_column(3, given.schema.field("single"), column), tmp_path, options())
    table = hf.HudiTable.open(tmp_path)
    found = table.vector_search("single", [1.0] * SIZE, 3, "l2", columns=["id"])
    every = sorted((distance("l2", numbers_of(number, 1), [1.0] * SIZE), number) for number in (1, 3, 6, 7))
    assert found["id"].to_pylist() == [f"k{number:05d}" for _, number in every[:3]]
    distances = table.vector_search("single", [1.0] * SIZE, 6, "l2", columns=[])
    assert distances.column_names == ["_hudi_distance"]
    assert [str(one) for one in distances["_hudi_distance"].to_pylist()[4:]] == ["nan", "nan"]


def test_wrong_tables_of_queries_are_refused(tmp_path: Path) -> None:
    hf.write(rows([0, 1], 1), tmp_path, options())
    table = hf.HudiTable.open(tmp_path)
    for vectors, column, text in (
        ([[1.0] * SIZE], "nothing", "no column 'nothing'.*'v'"),
        ([[1.0] * SIZE, [1.0, 2.0]], "v", "A query vector has 2 numbers; vectors of column 'single' have 5"),
        ([[1.0, None, 3.0, 4.0, 5.0]], "v", "a null among its numbers"),
        ([["x"] * SIZE], "v", "expected lists of numbers"),
        (["x"], "v", "expected lists of numbers"),
    ):
        with pytest.raises(hf.ConfigError, match=text):
            table.vector_search_batch("single", pa.table({"v": vectors}), column)


def test_sql_searches_for_many_vectors_without_spark(tmp_path: Path) -> None:
    hf.write(rows(list(range(40)), 1), tmp_path / "t", options())
    hf.write(rows([50, 51, 52], 1), tmp_path / "q", options())
    table, asked = hf.HudiTable.open(tmp_path / "t"), hf.HudiTable.open(tmp_path / "q")
    expected = table.vector_search_batch("single", asked.to_arrow(), "double", 2, "l2")
    order = "ORDER BY _hudi_query_index, _hudi_distance"
    call = f"hudi_vector_search_batch('{tmp_path / 't'}', 'single', '{tmp_path / 'q'}', 'double', 2, 'l2')"
    assert hf.sql(f"SELECT id, _hudi_query_id FROM {call} {order}").equals(expected.select(["id", "_hudi_query_id"]))
    given = {"docs": table, "asked": asked.to_arrow(columns=["double"])}
    call = "hudi_vector_search_batch('docs', 'single', 'asked', 'double', 2, 'l2')"
    assert hf.sql(f"SELECT id FROM {call} {order}", tables=given).equals(expected.select(["id"]))
    for wrong, text in (("", "5 to 7 arguments"), (", 5, 'l2', 'hnsw'", "algorithm 'hnsw'")):
        with pytest.raises(hf.ConfigError, match=text):
            hf.sql(f"SELECT * FROM hudi_vector_search_batch('docs', 'single', 'asked', 'double'{wrong})", tables=given)


def test_sql_searches_without_spark(tmp_path: Path) -> None:
    hf.write(rows(list(range(40)), 1), tmp_path / "t", options())
    query = [3.0, -20.0, 7.0, 50.0, 1.0]
    call = f"hudi_vector_search('{tmp_path / 't'}', 'single', ARRAY({', '.join(map(str, query))}), 5"
    found = hf.sql(f"SELECT id FROM {call}, 'l2') WHERE part = 'p1' ORDER BY _hudi_distance")
    expected = hf.HudiTable.open(tmp_path / "t").vector_search("single", query, 5, "l2")
    assert found["id"].to_pylist() == expected.filter(pc.field("part") == "p1")["id"].to_pylist()
    for wrong, text in (("", "4 to 6 arguments"), (", 5, 'l2', 'hnsw')", "algorithm 'hnsw'")):
        with pytest.raises(hf.ConfigError, match=text):
            hf.sql(f"SELECT * FROM {call[:-3]}{wrong or ')'}")


def test_wrong_searches_and_vectors_are_refused(tmp_path: Path) -> None:
    hf.write(rows([0, 1], 1), tmp_path / "t", options())
    table = hf.HudiTable.open(tmp_path / "t")
    for arguments, text in (
        (("nothing", [1.0] * SIZE), "no column 'nothing'"),
        (("id", [1.0] * SIZE), "vector columns: .*'single'"),
        (("single", [1.0]), "have 5 numbers"),
        (("single", ["x"] * SIZE), "takes numbers"),
        (("single", [1.0] * SIZE, 0), "at least 1"),
        (("single", [1.0] * SIZE, 1, "manhattan"), "metric 'manhattan'"),
    ):
        with pytest.raises(hf.ConfigError, match=text):
            table.vector_search(*arguments)
    short = pa.array([[1.0], [2.0]], pa.list_(pa.float32()))
    with pytest.raises(hf.InvalidDataError, match="'single' has a vector of 1 numbers; expected 5"):
        hf.write(rows([0, 1], 2).set_column(3, "single", short), tmp_path / "t", options())
    for text, error in (("VECTOR(x)", "expected VECTOR"), ("BLOB", "type BLOB"), ("VARIANT", "type VARIANT")):
        wrong = pa.field("v", pa.list_(pa.float32()), metadata={"hudi_type": text})
        bad = pa.table([pa.array(["a"]), short.slice(0, 1)], schema=pa.schema([pa.field("id", pa.string()), wrong]))
        with pytest.raises(hf.HudiError, match=error):
            hf.write(bad, tmp_path / "bad", {"hoodie.table.name": "t", **_KEY})
    assert not (tmp_path / "bad").exists()


_KEY = {"hoodie.datasource.write.recordkey.field": "id"}
