from __future__ import annotations

import pickle
from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_fast.errors import InvalidDataError, SchemaMismatchError
from hudi_fast.formats.avro.schema import avro_to_arrow, with_meta
from hudi_fast.schema.conform import conform, plan_conform
from tests.support.commit_schemas import base_files_of, commit_schemas
from tests.support.golden import Golden
from tests.support.rows import assert_same_rows


def column(values, source, target, nullable=True):
    batch = pa.record_batch({"c": pa.array(values, source)})
    result = conform(batch, pa.schema([pa.field("c", target, nullable)]))
    result.validate(full=True)
    return result.column("c")


# ---- columns


def test_columns_come_by_name_in_the_targets_order_and_absent_ones_are_null():
    batch = pa.record_batch({"b": pa.array([1, 2], pa.int32()), "other": pa.array([0, 0]), "a": pa.array(["x", "y"])})
    target = pa.schema([("a", pa.string()), ("new", pa.list_(pa.date32())), ("b", pa.int64())])
    result = conform(batch, target)
    assert result.schema == target
    assert result.to_pylist() == [{"a": "x", "new": None, "b": 1}, {"a": "y", "new": None, "b": 2}]


def test_a_column_of_the_targets_type_is_the_same_memory():
    values, lists = pa.array(["x", None, "z"]), pa.array([[1], None, []], pa.list_(pa.int64()))
    result = conform(pa.record_batch({"a": values, "l": lists}), pa.schema([("l", lists.type), ("a", pa.string())]))
    assert [each.address for each in result.column("a").buffers()] == [each.address for each in values.buffers()]
    assert result.column("l").values.buffers()[1].address == lists.values.buffers()[1].address


def test_elements_that_only_become_nullable_are_not_copied():
    source = pa.list_(pa.field("array", pa.int64(), nullable=False))
    values = pa.array([[1, 2], None, [3]], source)
    made = column(values, source, pa.list_(pa.field("element", pa.int64())))
    assert made.to_pylist() == [[1, 2], None, [3]]
    dense = pa.array([[1, 2], [3]], source)
    made = column(dense, source, pa.list_(pa.field("element", pa.int64())))
    assert made.values.buffers()[1].address == dense.values.buffers()[1].address


def test_the_result_carries_no_metadata():
    inner = pa.struct([pa.field("x", pa.int64(), metadata={"PARQUET:field_id": "7"})])
    schema = pa.schema([pa.field("c", inner, metadata={"k": "v"})], metadata={"k": "v"})
    batch = pa.record_batch([pa.array([{"x": 1}], inner)], schema=schema)
    bare = pa.schema([("c", pa.struct([("x", pa.int64())]))])
    assert conform(batch, schema).schema.equals(bare, check_metadata=True)


def test_a_table_keeps_its_chunks():
    table = pa.table({"c": pa.chunked_array([[1, 2], [], [3]], pa.int32())})
    result = conform(table, pa.schema([("c", pa.int64()), ("d", pa.string())]))
    assert isinstance(result, pa.Table)
    assert [len(each) for each in result.column("c").chunks] == [2, 0, 1]
    assert result.to_pydict() == {"c": [1, 2, 3], "d": [None] * 3}


@pytest.mark.parametrize(
    "rows", [pa.table({"c": pa.array([], pa.int32())}), pa.table({"c": pa.chunked_array([], "i4")})]
)
def test_no_rows_give_no_rows(rows):
    target = pa.schema([("c", pa.int64()), ("l", pa.list_(pa.string()))])
    assert conform(rows, target).schema == target
    assert conform(rows, target).num_rows == 0


def test_a_plan_serves_many_batches_and_can_be_sent_elsewhere():
    source = pa.schema([("c", pa.list_(pa.struct([("x", pa.float32())]))), ("m", pa.map_(pa.string(), pa.int8()))])
    target = pa.schema([("c", pa.list_(pa.struct([("x", pa.string())]))), ("m", pa.map_(pa.string(), pa.int64()))])
    plan = pickle.loads(pickle.dumps(plan_conform(source, target)))
    for value in (1.5, 2.5):
        batch = pa.record_batch(
            [pa.array([[{"x": value}]], source[0].type), pa.array([[("k", 1)]], source[1].type)], schema=source
        )
        assert plan.apply(batch).to_pylist() == [{"c": [{"x": str(value)}], "m": [("k", 1)]}]


def test_a_plan_refuses_batches_of_another_schema():
    plan = plan_conform(pa.schema([("c", pa.int32())]), pa.schema([("c", pa.int64())]))
    with pytest.raises(SchemaMismatchError, match="expects rows with the schema"):
        plan.apply(pa.record_batch({"c": pa.array(["x"])}))


def test_all_that_does_not_fit_is_told_at_once():
    source = pa.schema(
        [
            ("a", pa.string()),
            ("s", pa.struct([("x", pa.int64())])),
            ("d", pa.duration("s")),
            ("t", pa.int8()),
            ("t", pa.int8()),
        ]
    )
    target = pa.schema(
        [
            ("a", pa.int32()),
            ("s", pa.struct([("x", pa.int32()), pa.field("y", pa.int32(), nullable=False)])),
            ("d", pa.int64()),
            ("t", pa.int32()),
            pa.field("id", pa.string(), nullable=False),
        ]
    )
    with pytest.raises(SchemaMismatchError, match="6 problem") as caught:
        plan_conform(source, target)
    said = str(caught.value)
    assert all(f"olumn '{name}'" in said for name in ("a", "s.x", "s.y", "d", "t", "id"))
    assert "'s.x' is int64 in the rows and int32 in the table" in said


# ---- nulls


def test_a_null_that_the_target_refuses_is_named_with_its_first_row():
    with pytest.raises(InvalidDataError, match=r"'c' holds a null.*row 2"):
        column(["a", "b", None, None], pa.string(), pa.string(), nullable=False)


def test_the_row_is_counted_over_all_chunks():
    table = pa.table({"c": pa.chunked_array([[1, 2], [3, None]], pa.int32())})
    with pytest.raises(InvalidDataError, match="row 3"):
        conform(table, pa.schema([pa.field("c", pa.int64(), nullable=False)]))


REQUIRED = pa.field("x", pa.int64(), nullable=False)


@pytest.mark.parametrize(
    ("source", "target", "values", "said"),
    [
        (pa.struct([("x", pa.int64())]), pa.struct([REQUIRED]), [None, {"x": 1}, {"x": None}], r"'c\.x'.*row 2"),
        (pa.list_(pa.int64()), pa.list_(REQUIRED), [[1], None, [], [2, None]], r"'c\.element'.*row 3"),
        (
            pa.map_(pa.string(), pa.int64()),
            pa.map_(pa.string(), REQUIRED),
            [[("a", 1)], [("b", None)]],
            r"'c\.value'.*row 1",
        ),
        (
            pa.list_(pa.list_(pa.struct([("x", pa.int64())]))),
            pa.list_(pa.list_(pa.struct([REQUIRED]))),
            [[], [[], [{"x": 1}, None]], None, [[{"x": 2}], [None, {"x": 3}, {"x": None}]]],
            r"'c\.element\.element\.x'.*row 3",
        ),
    ],
)
def test_a_null_inside_is_named_with_the_row_of_the_batch(source, target, values, said):
    with pytest.raises(InvalidDataError, match=said):
        column(values, source, target)


def test_a_null_struct_may_have_required_fields():
    source = pa.struct([("x", pa.int32())])
    assert column([None, {"x": 1}], source, pa.struct([REQUIRED])).to_pylist() == [None, {"x": 1}]


def test_what_lies_below_a_null_or_outside_a_slice_is_not_looked_at():
    elements = pa.array([1, None, 3, None], pa.int32())
    hidden = pa.ListArray.from_arrays(pa.array([0, 1, 2, 3, 4]), elements, mask=pa.array([False, True, False, True]))
    assert column(hidden, hidden.type, pa.list_(REQUIRED)).to_pylist() == [[1], None, [3], None]
    sliced = pa.array([[None], [1, 2], [None]], pa.list_(pa.int32())).slice(1, 1)
    assert column(sliced, sliced.type, pa.list_(REQUIRED)).to_pylist() == [[1, 2]]


def test_a_value_that_does_not_fit_names_its_column():
    with pytest.raises(InvalidDataError, match=r"'c\.element' holds a value that does not fit timestamp\[ms"):
        column([[1]], pa.list_(pa.timestamp("us")), pa.list_(pa.timestamp("ms", tz="UTC")))


# ---- layouts


@pytest.mark.parametrize(
    "layout",
    [
        pa.large_list(pa.int16()),
        pa.list_view(pa.int16()),
        pa.large_list_view(pa.int16()),
        pa.list_(pa.int16(), 2),
        pa.list_(pa.dictionary(pa.int8(), pa.int16())),
    ],
)
def test_every_layout_of_lists_becomes_the_plain_one(layout):
    assert column([[1, 2], None, [3, 4]], layout, pa.list_(pa.int64())).to_pylist() == [[1, 2], None, [3, 4]]


@pytest.mark.parametrize("source", [pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.large_string())])
def test_every_layout_of_strings_becomes_the_plain_one(source):
    made = column(pa.array(["x", None, "x"], pa.string()).cast(source), source, pa.string())
    assert made.to_pylist() == ["x", None, "x"]
    keys = pa.map_(source, pa.int32())
    arrays = pa.MapArray.from_arrays([0, 1], pa.array(["k"], pa.string()).cast(source), pa.array([1], pa.int32()))
    assert column(arrays, keys, pa.map_(pa.string(), pa.int64())).to_pylist() == [[("k", 1)]]


def test_encoded_arrays_are_decoded():
    runs = pa.RunEndEncodedArray.from_arrays([2, 3], pa.array([7, None], pa.int16()))
    assert column(runs, runs.type, pa.int64()).to_pylist() == [7, 7, None]
    structs = pa.DictionaryArray.from_arrays([0, 0, None], pa.array([{"x": 1}], pa.struct([("x", pa.int8())])))
    assert column(structs, structs.type, pa.struct([REQUIRED])).to_pylist() == [{"x": 1}, {"x": 1}, None]


@pytest.mark.parametrize("target", [pa.string(), pa.list_(pa.int64()), pa.struct([REQUIRED])])
def test_a_column_of_arrows_null_type_becomes_nulls(target):
    assert column([None, None], pa.null(), target).to_pylist() == [None, None]
    with pytest.raises(InvalidDataError, match="row 0"):
        column([None, None], pa.null(), target, nullable=False)


# ---- against a row by row twin

LEAVES = [
    (pa.int32(), pa.int32(), st.integers(-9, 9), lambda value: value),
    (pa.int8(), pa.int64(), st.integers(-9, 9), lambda value: value),
    (pa.int64(), pa.string(), st.integers(-9, 9), str),
    (pa.string(), pa.binary(), st.text(max_size=3), str.encode),
    (pa.large_string(), pa.string(), st.text(max_size=3), lambda value: value),
    (pa.decimal128(3, 1), pa.decimal128(9, 3), st.decimals(-9, 9, places=1), lambda value: value),
]


def optional(column):
    source, target, values, convert = column
    return source, target, st.none() | values, lambda value: None if value is None else convert(value)


def lists_of(column):
    source, target, values, convert = optional(column)
    return (
        pa.list_(source),
        pa.list_(target),
        st.lists(values, max_size=3),
        lambda rows: [convert(each) for each in rows],
    )


def maps_of(column):
    source, target, values, convert = optional(column)
    pairs = st.lists(st.tuples(st.text(max_size=2), values), max_size=3, unique_by=lambda each: each[0])
    made = pa.map_(pa.string(), source), pa.map_(pa.string(), target)
    return *made, pairs, lambda rows: [(key, convert(each)) for key, each in rows]


def structs_of(columns):
    parts = {f"f{index}": optional(each) for index, each in enumerate(columns)}
    source = pa.struct([(name, each[0]) for name, each in parts.items()])
    # the other order, and a field that no row has
    target = pa.struct([("added", pa.int32()), *((name, each[1]) for name, each in reversed(parts.items()))])
    values = st.fixed_dictionaries({name: each[2] for name, each in parts.items()})
    return (
        source,
        target,
        values,
        lambda row: {"added": None} | {name: parts[name][3](row[name]) for name in reversed(parts)},
    )


columns = st.recursive(
    st.sampled_from(LEAVES),
    lambda inner: inner.map(lists_of) | inner.map(maps_of) | st.lists(inner, min_size=1, max_size=3).map(structs_of),
    max_leaves=5,
)


@given(columns, st.data())
def test_nested_columns_are_converted_as_value_by_value(kind, data):
    source, target, values, convert = optional(kind)
    rows = data.draw(st.lists(values, max_size=6))
    start = data.draw(st.integers(0, len(rows)))
    array = pa.array(rows, source).slice(start)
    assert column(array, source, target).to_pylist() == [convert(each) for each in rows[start:]]


# ---- files of tables that evolved


@pytest.mark.parametrize("name", ["cow_v9_schema_evolved", "mor_v9_schema_evolved"])
def test_files_from_before_a_change_are_read_with_the_newest_schema(name, golden: Callable[[str], Golden]):
    table = golden(name)
    texts = commit_schemas(table)
    target = with_meta(avro_to_arrow(list(texts.values())[-1], "newest commit"))
    compared, widened = 0, 0
    for path in (each for instant in texts for each in base_files_of(table, instant)):
        stored = pq.ParquetFile(path).read()
        made = conform(stored, target)
        assert made.schema.equals(target, check_metadata=True)
        assert made.column("qty").to_pylist() == stored.column("qty").to_pylist()
        assert made.column("id").chunk(0).buffers()[2].address == stored.column("id").chunk(0).buffers()[2].address
        if "extra" not in stored.column_names:
            assert made.column("extra").null_count == made.num_rows
        widened += stored.schema.field("qty").type == pa.int32()
        compared += 1
    assert 0 < widened < compared


@pytest.mark.parametrize("name", ["mor_v9_alltypes", "h015_mor_types"])
def test_two_level_lists_and_all_types_of_real_files_conform(name, golden: Callable[[str], Golden]):
    table = golden(name)
    texts = commit_schemas(table)
    target = with_meta(avro_to_arrow(list(texts.values())[-1], "newest commit"))
    (path, *_) = base_files_of(table, next(iter(texts)))
    stored = pq.ParquetFile(path).read()
    made = conform(stored, target)
    made.validate(full=True)
    assert made.schema == target
    assert_same_rows(made, stored, ignore=())


def test_five_hundred_columns_are_planned_and_converted():
    source = pa.schema([(f"c{index}", pa.int32()) for index in range(500)])
    target = pa.schema([(f"c{index}", pa.int64()) for index in reversed(range(501))])
    batch = pa.record_batch([pa.array([index], pa.int32()) for index in range(500)], schema=source)
    made = conform(batch, target)
    assert made.column("c500").to_pylist() == [None]
    assert [made.column(f"c{index}")[0].as_py() for index in range(500)] == list(range(500))
