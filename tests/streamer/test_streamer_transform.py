"""Transforms of the rows of a turn: SQL, flattened structs and functions, one after the other."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hudi_fast as hf
from hudi_fast.errors import ConfigError, HudiError, InvalidDataError, UnsupportedFeatureError
from hudi_fast.streamer.settings import StreamSettings
from hudi_fast.streamer.sources.open_source import open_transforms
from hudi_fast.streamer.transform import flattened, of_function, of_sql, transformed
from tests.support.examples import examples

ROWS = pa.table({"a": [1, 2, 3], "s": ["1", "x", None]})


def reader(rows: pa.Table, batch: int = 2) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches(max_chunksize=batch))


def result(rows, *transforms):
    return transformed(reader(rows), transforms).read_all()


def breaking(rows: pa.Table, error: Exception) -> pa.RecordBatchReader:
    """Rows of a source that fails after the first batch."""

    def batches() -> Iterator[pa.RecordBatch]:
        yield rows.to_batches()[0]
        raise error

    return pa.RecordBatchReader.from_batches(rows.schema, batches())


def test_without_transforms_rows_stay_as_they_are():
    assert result(ROWS) == ROWS


# ---- SQL


def test_a_query_reads_the_rows_of_all_batches_in_their_order():
    many = pa.table({"a": range(10_000)})
    made = transformed(reader(many, 7), [of_sql("SELECT a, a * 2 AS b FROM <SRC> WHERE a % 2 = 1")]).read_all()
    assert made["a"].to_pylist() == list(range(1, 10_000, 2))
    assert made["b"].to_pylist() == list(range(2, 20_000, 4))


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT a FROM <SRC>;", [1, 2, 3]),
        ("  SELECT a FROM <SRC> ; -- all of them", [1, 2, 3]),
        ("-- all of them\nSELECT a FROM <SRC>", [1, 2, 3]),
        ("FROM <SRC> SELECT a ORDER BY a DESC", [3, 2, 1]),
        ("WITH big AS (SELECT a FROM <SRC> WHERE a > 1) SELECT a FROM big", [2, 3]),
        ("SELECT a FROM <SRC> WHERE a > 9", []),
    ],
)
def test_every_form_of_a_query_is_understood(sql, expected):
    assert result(ROWS, of_sql(sql)).to_pydict() == {"a": expected}


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a FROM <SRC> UNION ALL SELECT a FROM <SRC> ORDER BY a",
        "SELECT l.a FROM <SRC> l JOIN (VALUES (1), (2)) ON true JOIN <SRC> r ON l.a = r.a ORDER BY l.a",
        "WITH c AS (SELECT a FROM <SRC>) SELECT a FROM c UNION ALL SELECT a FROM c ORDER BY a",
    ],
)
def test_a_query_may_read_the_rows_twice(sql):
    assert result(ROWS, of_sql(sql)).to_pydict() == {"a": [1, 1, 2, 2, 3, 3]}


def test_types_and_nulls_pass_through_a_query():
    rows = pa.table(
        {
            "i": pa.array([1, None], pa.int32()),
            "f": pa.array([1.5, None], pa.float32()),
            "t": pa.array([0, None], pa.timestamp("us", "UTC")),
            "m": pa.array([0, None], pa.timestamp("ms")),
            "d": pa.array([1, None], pa.date32()),
            "n": pa.array([1, None]).cast(pa.decimal128(38, 2)),
            "b": pa.array([b"\0", None]),
            "o": pa.array([True, None]),
            "l": pa.array([[1, None], None]),
            "r": pa.array([{"x": "é"}, None]),
        }
    )
    made = result(rows, of_sql("SELECT * FROM <SRC>"))
    assert made.to_pylist() == rows.to_pylist()
    assert [each.type for each in made.schema if each.name not in "tl"] == [
        each.type for each in rows.schema if each.name not in "tl"
    ]
    assert pa.types.is_timestamp(made.schema.field("t").type)
    assert made.schema.field("t").type.tz


def test_no_rows_become_no_rows_with_the_columns_of_the_query():
    made = result(ROWS.slice(0, 0), of_sql("SELECT a AS b, CAST(s AS BIGINT) AS c FROM <SRC>"))
    assert made.schema == pa.schema([("b", pa.int64()), ("c", pa.int64())])
    assert made.num_rows == 0


@pytest.mark.parametrize("sql", ["SELECT 1", "SELECT * FROM <src>", "", "SELECT * FROM SRC"])
def test_a_query_that_does_not_name_the_rows_is_refused(sql):
    with pytest.raises(ConfigError, match="reads from <SRC>"):
        of_sql(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE t AS SELECT * FROM <SRC>",
        "INSERT INTO t SELECT * FROM <SRC>",
        "SELECT a FROM <SRC>; SELECT s FROM <SRC>",
        "COPY (SELECT * FROM <SRC>) TO 'file.csv'",
        "-- <SRC>",
    ],
)
def test_sql_that_is_no_single_query_is_refused_before_there_are_rows(sql):
    with pytest.raises(ConfigError, match=r"is one query \(SELECT or WITH\)"):
        of_sql(sql)


def test_sql_that_cannot_be_parsed_is_refused_before_there_are_rows():
    with pytest.raises(ConfigError, match=r"(?s)cannot be parsed.*SELEC a FROM <SRC>") as caught:
        of_sql("SELEC a FROM <SRC>")
    assert "hudi_fast_source" not in str(caught.value)


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT missing FROM <SRC>", "missing"),
        ("SELECT CAST(s AS INT) AS i FROM <SRC>", "'x'"),
        ("SELECT CAST(s AS INT) AS i FROM <SRC> ORDER BY a", "'x'"),
        ("SELECT a FROM <SRC> JOIN nowhere USING (a)", "nowhere"),
    ],
)
def test_a_query_that_fails_tells_why(sql, said):
    transform = of_sql(sql)
    with pytest.raises(ConfigError, match="The SQL of a transformer failed") as caught:
        transform(reader(ROWS)).read_all()
    assert said in str(caught.value)


def test_a_value_that_fails_after_many_rows_is_told_as_well():
    rows = pa.table({"s": [*["1"] * 300_000, "x"]})
    with pytest.raises(ConfigError, match=r"The SQL of a transformer failed.*'x'"):
        list(of_sql("SELECT CAST(s AS INT) AS i FROM <SRC>")(reader(rows, 1 << 20)))


def test_an_error_of_the_source_comes_out_of_a_query_as_it_is():
    with pytest.raises(InvalidDataError, match=r"^file 2 is bad$"):
        of_sql("SELECT a FROM <SRC>")(breaking(ROWS, InvalidDataError("file 2 is bad"))).read_all()


# ---- functions


def test_a_function_gets_each_batch_and_may_return_a_batch_or_a_table_or_nothing():
    seen = []

    def each(batch):
        seen.append(batch.num_rows)
        first = batch["a"][0].as_py()
        return {1: batch, 3: pa.Table.from_batches([batch])}.get(first)

    rows = pa.table({"a": range(1, 7)})
    assert result(rows, of_function(each)).to_pydict() == {"a": [1, 2, 3, 4]}
    assert seen == [2, 2, 2]


def test_a_function_may_change_the_columns():
    made = result(ROWS, of_function(lambda batch: batch.select(["s"]).rename_columns(["t"])))
    assert made.to_pydict() == {"t": ["1", "x", None]}


@pytest.mark.parametrize("dropped", [(1,), (3,)])
def test_a_batch_that_a_function_drops_is_dropped_wherever_it_is(dropped):
    made = result(ROWS, of_function(lambda batch: None if batch["a"][0].as_py() in dropped else batch))
    assert made["a"].to_pylist() == ([3] if 1 in dropped else [1, 2])


def test_a_function_that_drops_everything_leaves_the_columns_without_rows():
    assert result(ROWS, of_function(lambda batch: None)) == ROWS.slice(0, 0)


def test_a_table_of_several_chunks_keeps_all_of_them():
    made = result(ROWS, of_function(lambda batch: pa.concat_tables([pa.Table.from_batches([batch])] * 2)))
    assert made["a"].to_pylist() == [1, 2, 1, 2, 3, 3]


@pytest.mark.parametrize("returned", [5, "rows", [{"a": 1}], {"a": [1]}, False])
def test_a_function_that_returns_something_else_is_refused_by_its_name(returned):
    def doubled(batch):
        return returned

    with pytest.raises(ConfigError, match=f"transformer doubled returns .* got {type(returned).__name__}"):
        result(ROWS, of_function(doubled))


@pytest.mark.parametrize(
    "second",
    [
        pa.table({"b": [1]}),
        pa.table({"a": ["x"]}),
        pa.table({"a": pa.array([1], pa.int32())}),
        pa.table({"a": [1], "b": [1]}),
    ],
)
def test_a_function_that_returns_other_columns_for_a_later_batch_is_refused(second):
    def changing(batch):
        return batch.select(["a"]) if batch["a"][0].as_py() == 1 else second

    with pytest.raises(InvalidDataError, match="transformer changing returned batches with different columns"):
        result(ROWS, of_function(changing))


def test_an_error_of_a_function_comes_out_as_it_is():
    def failing(batch):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        result(ROWS, of_function(failing))


def test_a_function_sees_one_batch_at_a_time():
    seen = []
    made = of_function(lambda batch: seen.append(1) or batch)(reader(pa.table({"a": range(100)}), 10))
    assert len(seen) == 1  # the columns of the result are those of the first batch
    made.read_next_batch()
    made.read_next_batch()
    assert len(seen) <= 3


# ---- flattened structs


def test_the_fields_of_structs_become_columns_at_any_depth():
    rows = pa.table({"id": [1], "a": [{"b": {"c": 2, "d": [{"e": 3}]}, "f": "x"}], "z": [9]})
    made = result(rows, flattened)
    assert made.to_pylist() == [{"id": 1, "a_b_c": 2, "a_b_d": [{"e": 3}], "a_f": "x", "z": 9}]


def test_a_null_struct_gives_nulls_at_every_depth():
    rows = pa.table({"a": pa.array([{"b": {"c": 1}}, {"b": None}, None, {"b": {"c": None}}])})
    assert result(rows, flattened).to_pydict() == {"a_b_c": [1, None, None, None]}


def test_values_below_a_null_struct_are_not_shown():
    inner = pa.StructArray.from_arrays([pa.array([1, 2])], ["b"], mask=pa.array([False, True]))
    assert inner.field(0).to_pylist() == [1, 2]
    assert result(pa.table({"a": inner}), flattened).to_pydict() == {"a_b": [1, None]}


def test_required_fields_of_an_optional_struct_become_optional_columns():
    kind = pa.struct([pa.field("b", pa.int64(), nullable=False)])
    made = result(pa.table({"a": pa.array([{"b": 1}, None], kind)}), flattened)
    assert made.schema == pa.schema([("a_b", pa.int64())])
    assert made.to_pydict() == {"a_b": [1, None]}


@pytest.mark.parametrize(
    "rows",
    [
        pa.table({"a": [{"b": 1}], "a_b": [2]}),
        pa.table({"a": [{"b": {"c": 1}, "b_c": 2}]}),
        pa.table({"a_b": [{"c": 1}], "a": [{"b_c": 1}]}),
    ],
)
def test_two_columns_of_one_name_are_refused_with_their_name(rows):
    with pytest.raises(ConfigError, match=r"two columns of one name: a_b"):
        result(rows, flattened)


def test_rows_without_structs_and_without_rows_stay_as_they_are():
    assert result(ROWS, flattened) == ROWS
    none = pa.table({"a": pa.array([], pa.struct({"b": pa.int64()}))})
    assert result(none, flattened).schema == pa.schema([("a_b", pa.int64())])


def flat(value, prefix=""):
    """A row with a key for each field of a struct, as :func:`flattened` names it."""
    found = {}
    for name, inner in value.items():
        found |= flat(inner, f"{prefix}{name}_") if isinstance(inner, dict) else {prefix + name: inner}
    return found


STRUCTS = st.recursive(
    st.integers(0, 9) | st.lists(st.integers(0, 9), min_size=1, max_size=2),
    lambda inner: st.dictionaries(st.sampled_from("xyz"), inner, min_size=1, max_size=3),
    max_leaves=6,
)


@settings(max_examples=examples(40))
@given(st.dictionaries(st.sampled_from("abc"), STRUCTS, min_size=1), st.integers(1, 5))
def test_flattened_rows_are_those_of_a_recursive_walk(row, batch):
    rows = pa.Table.from_pylist([row] * 3)
    made = transformed(reader(rows, batch), [flattened]).read_all()
    made.validate(full=True)
    assert made.to_pylist() == [flat(row)] * 3


# ---- chains


def chain(classes, **properties):
    given = {f"hoodie.streamer.{key.replace('__', '.')}": value for key, value in properties.items()}
    arguments = {"target-base-path": "/t", "source-class": "JsonDFSSource", "transformer-class": classes}
    return open_transforms(StreamSettings.of(given, arguments), None)


SQL = "org.apache.hudi.utilities.transform.SqlQueryBasedTransformer"
FLATTENING = "org.apache.hudi.utilities.transform.FlatteningTransformer"


def test_transformers_run_in_the_order_in_which_they_are_listed():
    rows = pa.table({"a": [{"b": 1}, {"b": 2}]})
    sql = "SELECT a_b + 1 AS c FROM <SRC>"
    assert result(rows, *chain(f"{FLATTENING}, {SQL}", transformer__sql=sql)).to_pydict() == {"c": [2, 3]}
    with pytest.raises(ConfigError, match="a_b"):
        result(rows, *chain(f"{SQL},{FLATTENING}", transformer__sql=sql))


def test_labels_tell_queries_of_one_class_apart():
    made = chain(
        f"one:{SQL},two:SqlQueryBasedTransformer",
        transformer__sql__two="SELECT a * 10 AS a FROM <SRC>",
        transformer__sql__one="SELECT a + 1 AS a FROM <SRC>",
    )
    assert result(ROWS, *made).to_pydict() == {"a": [20, 30, 40]}


def test_a_labelled_transformer_needs_the_property_with_its_label():
    with pytest.raises(ConfigError, match=r"needs the property hoodie\.streamer\.transformer\.sql\.one"):
        chain(f"one:{SQL}", transformer__sql="SELECT a FROM <SRC>")


def test_a_query_may_be_in_a_file(tmp_path):
    (tmp_path / "q.sql").write_text("SELECT a AS é FROM <SRC>\n;\n", encoding="utf-8")
    made = chain("SqlFileBasedTransformer", transformer__sql__file=str(tmp_path / "q.sql"))
    assert result(ROWS, *made).to_pydict() == {"é": [1, 2, 3]}
    with pytest.raises(ConfigError, match=r"no\.sql does not exist"):
        chain("SqlFileBasedTransformer", transformer__sql__file=str(tmp_path / "no.sql"))


def test_another_transformer_is_refused_and_none_is_no_transformer():
    assert chain("") == chain(" , ") == ()
    with pytest.raises(UnsupportedFeatureError, match="MyTransformer is not supported"):
        chain(f"{SQL},com.acme.MyTransformer", transformer__sql="SELECT a FROM <SRC>")


def test_functions_and_queries_and_flattening_follow_each_other_in_any_order():
    rows = pa.table({"a": [{"b": n} for n in range(6)]})
    odd = of_function(lambda batch: batch.filter(pc.equal(pc.bit_wise_and(batch["a_b"], 1), 1)))
    made = result(rows, flattened, odd, of_sql("SELECT sum(a_b)::BIGINT AS n FROM <SRC>"), of_function(lambda one: one))
    assert made.to_pydict() == {"n": [9]}


def test_an_error_in_the_middle_of_a_chain_is_one_of_the_library():
    cast = of_sql("SELECT CAST(s AS INT) AS i FROM <SRC>")
    with pytest.raises(HudiError, match="'x'"):
        result(ROWS, of_function(lambda batch: batch), cast, of_sql("SELECT i FROM <SRC>"), flattened)


def test_files_of_a_full_load_of_aws_dms_get_the_column_that_its_changes_have(tmp_path):
    path, folder = tmp_path / "t", tmp_path / "in"
    folder.mkdir()
    loads = [
        pa.table({"id": [1, 2, 3], "v": [1, 2, 3], "ts": [1, 1, 1]}),
        pa.table({"Op": ["U", "D", "I"], "id": [1, 2, 4], "v": [10, 2, 4], "ts": [2, 2, 2]}),
    ]
    for number, rows in enumerate(loads):
        pq.write_table(rows, folder / f"{number}.parquet")
        os.utime(folder / f"{number}.parquet", (1_790_000_000 + number, 1_790_000_000 + number))
    given = {
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.streamer.source.dfs.root": str(folder),
        "hudi_fast.streamer.transformer-class": "org.apache.hudi.utilities.transform.AWSDmsTransformer",
        "hudi_fast.streamer.payload-class": "org.apache.hudi.common.model.AWSDmsAvroPayload",
        "hudi_fast.streamer.source-ordering-field": "ts",
        "hudi_fast.streamer.source-class": "ParquetDFSSource",
        "hudi_fast.streamer.target-base-path": str(path),
    }
    for _ in loads:
        next(hf.Streamer(given, source_limit=1).run())
    rows = hf.read(path, columns=["id", "v", "Op"]).sort_by("id").to_pylist()
    assert [tuple(row.values()) for row in rows] == [(1, 10, "U"), (3, 3, ""), (4, 4, "I")]
