from __future__ import annotations

import io
import json
from collections.abc import Callable

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_fast.errors import CorruptTableError, SchemaMismatchError, UnsupportedFeatureError
from hudi_fast.formats.avro.schema import (
    META_FIELDS,
    arrow_to_avro,
    avro_to_arrow,
    record_name_of,
    with_meta,
    without_meta,
)
from tests.support.commit_schemas import base_files_of, commit_schemas
from tests.support.golden import Golden, golden_names

LEAVES = [
    pa.bool_(),
    pa.int32(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    pa.string(),
    pa.binary(),
    pa.binary(7),
    pa.date32(),
    pa.time32("ms"),
    pa.time64("us"),
    pa.timestamp("ms", tz="UTC"),
    pa.timestamp("us", tz="UTC"),
    pa.timestamp("ms"),
    pa.timestamp("us"),
]


@st.composite
def decimals(draw):
    precision = draw(st.integers(1, 38))
    return pa.decimal128(precision, draw(st.integers(0, precision)))


names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,5}", fullmatch=True)


def struct_fields(kinds, min_size=1):
    columns = st.lists(
        st.tuples(names, kinds, st.booleans()), min_size=min_size, max_size=5, unique_by=lambda each: each[0].lower()
    )
    return columns.map(lambda each: [pa.field(*column) for column in each])


def nested(kinds):
    elements = st.tuples(kinds, st.booleans())
    return st.one_of(
        struct_fields(kinds).map(pa.struct),
        elements.map(lambda each: pa.list_(pa.field("element", each[0], each[1]))),
        elements.map(lambda each: pa.map_(pa.string(), pa.field("value", each[0], each[1]))),
    )


types = st.recursive(st.sampled_from(LEAVES) | decimals(), nested, max_leaves=8)


def one_column(avro):
    return {"type": "record", "name": "r", "namespace": "n", "fields": [{"name": "c", "type": avro}]}


def type_of(avro):
    return avro_to_arrow(one_column(avro), "here").field("c").type


@pytest.mark.slow
@given(struct_fields(types))
def test_every_storable_schema_survives_the_way_to_avro_and_back(fields):
    schema = pa.schema(fields)
    text = arrow_to_avro(schema, "t_record", "hoodie.t")
    assert avro_to_arrow(text, "here").equals(schema, check_metadata=True)
    fastavro.parse_schema(json.loads(text))


def storable_names():
    return [name for name in golden_names() if "empty" not in name]


@pytest.mark.parametrize("name", storable_names())
def test_schemas_of_real_commits_are_rewritten_byte_for_byte(name: str, golden: Callable[[str], Golden]):
    texts = commit_schemas(golden(name))
    assert texts
    for instant, text in texts.items():
        schema = avro_to_arrow(text, instant)
        told = json.loads(text)
        assert arrow_to_avro(schema, told["name"], told["namespace"]) == text


@pytest.mark.parametrize("name", ["cow_v9_schema_evolved", "mor_v6_alltypes", "mor_v9_alltypes", "h015_mor_types"])
def test_names_and_types_are_those_of_the_base_files(name: str, golden: Callable[[str], Golden]):
    table = golden(name)
    compared = 0
    for instant, text in commit_schemas(table).items():
        expected = with_meta(avro_to_arrow(text, instant))
        for path in base_files_of(table, instant):
            stored = pq.read_schema(path)
            assert stored.names == expected.names
            assert [_loose(each.type) for each in stored] == [_loose(each.type) for each in expected]
            compared += 1
    assert compared


def _loose(kind: pa.DataType) -> pa.DataType:
    """Two-level lists, as Hudi's Avro writer makes them, cannot say that elements are nullable."""
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", _loose(kind.value_type), nullable=True))
    return kind


@pytest.mark.parametrize("name", ["mor_v9_alltypes", "mor_v9_schema_evolved"])
def test_the_schema_with_meta_columns_is_that_of_real_footers(name: str, golden: Callable[[str], Golden]):
    table = golden(name)
    compared = 0
    for instant, text in commit_schemas(table).items():
        for path in base_files_of(table, instant):
            footer = pq.read_metadata(path).metadata[b"parquet.avro.schema"].decode()
            assert arrow_to_avro(avro_to_arrow(text, "here"), "t_record", "hoodie.t", meta_fields=True) == footer
            assert without_meta(avro_to_arrow(footer, "here")).equals(avro_to_arrow(text, "here"))
            compared += 1
    assert compared


@pytest.mark.parametrize(
    ("avro", "expected"),
    [
        ({"type": "string", "logicalType": "uuid"}, pa.string()),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, pa.string()),
        ({"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 3}, pa.decimal128(12, 3)),
        ({"type": "bytes", "logicalType": "decimal", "precision": 12}, pa.decimal128(12, 0)),
        ({"type": "fixed", "name": "f", "size": 16, "logicalType": "uuid"}, pa.binary(16)),
        ({"type": "int"}, pa.int32()),
        ({"type": {"type": "long", "logicalType": "timestamp-millis"}}, pa.timestamp("ms", tz="UTC")),
        ({"type": "string", "logicalType": "date"}, pa.string()),
        ({"type": "long", "logicalType": "never-heard-of"}, pa.int64()),
        ({"type": "long", "logicalType": ["date"]}, pa.int64()),
        ({"type": "string", "avro.java.string": "String"}, pa.string()),
    ],
)
def test_types_that_spark_does_not_write_are_read(avro, expected):
    assert type_of(avro) == expected


@pytest.mark.parametrize(
    ("union", "nullable"), [(["null", "int"], True), (["int", "null"], True), (["int"], False), ("int", False)]
)
def test_nullability_is_read_from_either_order_of_a_union(union, nullable):
    assert avro_to_arrow(one_column(union), "here").field("c").nullable is nullable


def test_a_named_type_can_be_used_again_by_short_and_by_full_name():
    record = {"type": "record", "name": "R", "namespace": "a.b", "fields": [{"name": "x", "type": "int"}]}
    schema = {
        "type": "record",
        "name": "r",
        "namespace": "a.b",
        "fields": [
            {"name": "first", "type": record},
            {"name": "second", "type": ["null", "R"]},
            {"name": "third", "type": {"type": "array", "items": "a.b.R"}},
        ],
    }
    arrow = avro_to_arrow(schema, "here")
    assert arrow.field("second").type == arrow.field("first").type == pa.struct([pa.field("x", pa.int32(), False)])
    assert arrow.field("third").type.value_type == arrow.field("first").type


NESTED = {"type": "record", "name": "member1", "namespace": "r.c", "fields": [{"name": "x", "type": "long"}]}
UNIONS = [
    (["null", "int", "string"], [pa.int32(), pa.string()]),
    (["int", NESTED], [pa.int32(), pa.struct([pa.field("x", pa.int64(), nullable=False)])]),
    (
        ["null", "bytes", {"type": "array", "items": "int"}],
        [pa.binary(), pa.list_(pa.field("element", pa.int32(), False))],
    ),
    (["string", {"type": "int", "logicalType": "date"}, "long"], [pa.string(), pa.date32(), pa.int64()]),
]


@pytest.mark.parametrize(("avro", "members"), UNIONS)
def test_unions_of_several_types_are_structs_of_numbered_members(avro, members):
    schema = avro_to_arrow(one_column(avro), "here")
    kind = pa.struct([pa.field(f"member{i}", each) for i, each in enumerate(members)])
    assert schema.field("c").type == kind
    assert schema.field("c").nullable is ("null" in avro)
    text = json.loads(arrow_to_avro(schema, "r", ""))
    assert text["fields"][0]["type"] == avro


def test_the_order_of_null_in_a_union_of_several_types_does_not_matter():
    first, last = (
        avro_to_arrow(one_column(each), "here") for each in (["null", "int", "string"], ["int", "string", "null"])
    )
    assert first == last


@pytest.mark.parametrize(
    "members",
    [
        [pa.field("member0", pa.int32())],
        [pa.field("member0", pa.int32()), pa.field("member1", pa.string(), nullable=False)],
        [pa.field("member1", pa.int32()), pa.field("member0", pa.string())],
        [pa.field("member0", pa.string()), pa.field("member1", pa.string())],
        [pa.field("member0", pa.int32()), pa.field("member1", pa.int64())],
        [pa.field("member0", pa.int32()), pa.field("other", pa.string())],
        [],
    ],
)
def test_other_structs_stay_records(members):
    schema = pa.schema([pa.field("c", pa.struct(members), nullable=False)])
    text = arrow_to_avro(schema, "r", "")
    assert json.loads(text)["fields"][0]["type"]["type"] == "record"
    assert avro_to_arrow(text, "here") == schema


def test_a_union_holds_no_union():
    inner = pa.struct([pa.field("member0", pa.int32()), pa.field("member1", pa.string())])
    schema = pa.schema([("c", pa.struct([pa.field("member0", inner), pa.field("member1", pa.bool_())]))])
    text = arrow_to_avro(schema, "r", "")
    assert json.loads(text)["fields"][0]["type"][1]["fields"][0]["type"] == ["null", "int", "string"]
    assert avro_to_arrow(text, "here") == schema


@pytest.mark.parametrize(
    ("avro", "said"),
    [
        (["null", "int", "long"], "union of null, int, long"),
        (["double", "float"], "union of double, float"),
        (["null"], "union of null"),
        ("null", "type null"),
        ({"type": "long", "logicalType": "timestamp-nanos"}, "timestamp-nanos"),
        ({"type": "fixed", "name": "v", "size": 8, "logicalType": "vector"}, "vector"),
        ({"type": "record", "name": "v", "fields": [], "logicalType": "variant"}, "variant"),
        ({"type": "record", "name": "b", "fields": [], "logicalType": "blob"}, "blob"),
        ({"type": "record", "name": "N", "fields": [{"name": "next", "type": ["null", "N"]}]}, "contain itself"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 50, "scale": 3}, "50 digits"),
    ],
)
def test_avro_without_storable_arrow_type_is_refused_with_the_column(avro, said):
    with pytest.raises(UnsupportedFeatureError, match=said) as caught:
        type_of({"type": "map", "values": avro})
    assert "c.value" in str(caught.value)
    assert "here" in str(caught.value)


@pytest.mark.parametrize(
    "avro",
    [
        "{not json",
        '"string"',
        {"type": "array", "items": "int"},
        {"type": "record", "name": "r"},
        one_column("nonsense"),
        one_column({"type": "array"}),
        one_column({"type": "fixed", "name": "f"}),
        one_column({"type": "fixed", "name": "f", "size": 4, "logicalType": "decimal", "precision": 4, "scale": 9}),
        one_column({"type": "fixed", "name": "f", "size": 0}),
        one_column({"type": "record", "name": "x", "fields": [{"type": "int"}]}),
        one_column({"type": "record", "name": "x", "fields": ["int"]}),
        one_column(7),
    ],
)
def test_what_is_no_avro_record_schema_is_a_corrupt_table_and_says_where(avro):
    with pytest.raises(CorruptTableError, match="commit 42"):
        avro_to_arrow(avro, "commit 42")


def test_rows_encoded_with_the_text_are_read_by_an_independent_avro_reader():
    inner = pa.struct([pa.field("d", pa.decimal128(10, 3)), pa.field("n", pa.int32(), nullable=False)])
    schema = pa.schema([("l", pa.list_(pa.field("element", inner))), ("m", pa.map_(pa.string(), inner))])
    parsed = fastavro.parse_schema(json.loads(arrow_to_avro(schema, "t_record", "hoodie.t")))
    body = io.BytesIO()
    fastavro.schemaless_writer(body, parsed, {"l": [None, {"d": None, "n": 3}], "m": {"k": {"d": None, "n": 4}}})
    body.seek(0)
    assert fastavro.schemaless_reader(body, parsed, None)["m"]["k"]["n"] == 4


@pytest.mark.parametrize(
    ("precision", "size"), [(1, 1), (2, 1), (3, 2), (9, 4), (10, 5), (15, 7), (18, 8), (19, 9), (38, 16)]
)
def test_a_decimal_takes_the_fewest_bytes(precision, size):
    told = json.loads(arrow_to_avro(pa.schema([("d", pa.decimal128(precision, 0))]), "t_record", "hoodie.t"))
    assert told["fields"][0]["type"][1]["size"] == size


@pytest.mark.parametrize(
    ("table", "name"),
    [("trips", "trips"), ("my-table", "my__table"), ("1st", "__st"), ("a.b c", "a__b__c"), ("täble", "t__ble")],
)
def test_record_names_hold_only_what_avro_allows(table, name):
    assert record_name_of(table) == (f"{name}_record", f"hoodie.{name}")


@pytest.mark.parametrize("name", ["", "1st", "a-b", "a b", "a.b", "x\u00b2"])
def test_a_column_name_that_avro_cannot_hold_is_refused(name):
    schema = pa.schema([("s", pa.struct([(name, pa.int32())]))])
    with pytest.raises(SchemaMismatchError, match="cannot be stored"):
        arrow_to_avro(schema, "t_record", "hoodie.t")


def test_a_column_name_with_letters_of_any_script_is_written_as_it_is():
    assert '"größe_2"' in arrow_to_avro(pa.schema([("größe_2", pa.int32())]), "t_record", "hoodie.t")


@pytest.mark.parametrize("kind", [pa.int8(), pa.large_string(), pa.timestamp("ns"), pa.duration("s"), pa.null()])
def test_a_type_that_is_not_storable_is_refused_with_its_column(kind):
    schema = pa.schema([("s", pa.struct([("x", pa.list_(kind))]))])
    with pytest.raises(UnsupportedFeatureError, match=r"s\.x\.element"):
        arrow_to_avro(schema, "t_record", "hoodie.t")


def test_meta_columns_are_put_first_once_and_taken_away():
    own = pa.schema([pa.field("id", pa.int64(), nullable=False)], metadata={"k": "v"})
    full = with_meta(own)
    assert full.names == [*META_FIELDS, "id"]
    assert with_meta(full).equals(full)
    assert full.metadata is None
    assert with_meta(own, operation_field=True).names[5] == "_hoodie_operation"
    assert without_meta(with_meta(own, operation_field=True)).equals(pa.schema(list(own)))
    assert arrow_to_avro(full, "r", "n", meta_fields=True) == arrow_to_avro(own, "r", "n", meta_fields=True)
