"""Protobuf messages become rows as Apache Hudi makes them: types, defaults, presence, nesting and recursion."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hudi_fast as hf
from hudi_fast.streamer.messages import Message
from hudi_fast.streamer.protobuf import ProtoForm, ProtoMessages, header_of
from hudi_fast.streamer.sources import registry
from hudi_fast.streamer.sources.registry import message_name, read_descriptor_file, type_of
from tests.streamer.proto_files import class_of, descriptor_set
from tests.support.examples import examples

EVERYTHING = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
enum Kind { UNKNOWN = 0; BIG = 1; SMALL = 2; }
message Line { string name = 1; uint32 count = 2; repeated Line parts = 3; }
message Order {
  bool a = 1; float b = 2; double c = 3; string d = 4; bytes e = 5;
  int32 f = 6; sint32 g = 7; fixed32 h = 8; sfixed32 i = 9;
  uint32 j = 10; int64 k = 11; sint64 l = 12; fixed64 m = 13; sfixed64 n = 14; uint64 o = 15;
  Kind kind = 16;
  Line line = 17;
  repeated int64 numbers = 18;
  repeated Line lines = 19;
  map<string, int64> counts = 20;
  map<int32, Line> by_number = 21;
  google.protobuf.Timestamp at = 22;
  google.protobuf.Int64Value wrapped = 23;
  google.protobuf.StringValue text = 24;
  oneof choice { string first = 25; Line second = 26; }
  optional int32 given = 27;
  repeated google.protobuf.StringValue texts = 28;
  repeated Kind kinds = 29;
}
"""


@pytest.fixture(scope="module")
def shop():
    """The descriptor file of :data:`EVERYTHING`."""
    return descriptor_set(EVERYTHING)


def made(data, name, *values, form=None):
    """The rows of messages, each given as its fields."""
    cls = class_of(data, name)
    found = type_of(read_descriptor_file(data, "f"), name, form or ProtoForm(), "f")
    return found.rows([cls(**one).SerializeToString() for one in values], "message {}".format)


def test_each_type_has_the_type_of_apache_hudi(shop):
    schema = type_of(read_descriptor_file(shop, "f"), "shop.Order", ProtoForm(depth=1), "f").schema
    assert {name: str(schema.field(name).type) for name in schema.names} == {
        "a": "bool", "b": "float", "c": "double", "d": "string", "e": "binary",
        "f": "int32", "g": "int32", "h": "int32", "i": "int32",
        "j": "int64", "k": "int64", "l": "int64", "m": "int64", "n": "int64", "o": "decimal128(20, 0)",
        "kind": "string",
        "line": f"struct<name: string, count: int64, parts: list<element: {OVERFLOW}>>",
        "numbers": "list<element: int64>",
        "lines": f"list<element: struct<name: string, count: int64, parts: list<element: {OVERFLOW}>>>",
        "counts": "list<element: struct<key: string, value: int64>>",
        "by_number": "list<element: struct<key: int32, value: struct<name: string, count: int64, parts: "
        f"list<element: {OVERFLOW}>>>>",
        "at": "timestamp[us, tz=UTC]", "wrapped": "int64", "text": "string",
        "first": "string", "second": f"struct<name: string, count: int64, parts: list<element: {OVERFLOW}>>",
        "given": "int32", "texts": "list<element: string>", "kinds": "list<element: string>",
    }  # fmt: skip
    assert all(each.nullable for each in schema)


OVERFLOW = "struct<descriptor_full_name: string, proto_bytes: binary>"


def test_what_is_not_set_has_its_default_or_is_null(shop):
    (row,) = made(shop, "shop.Order", {}).to_pylist()
    null = {name for name, value in row.items() if value is None}
    assert null == {"line", "at", "wrapped", "text", "first", "second", "given"}
    assert (row["a"], row["d"], row["e"], row["k"], row["o"], row["kind"]) == (False, "", b"", 0, Decimal(0), "UNKNOWN")
    assert (row["numbers"], row["lines"], row["counts"]) == ([], [], [])


def test_the_largest_and_smallest_numbers(shop):
    small = {"f": -(2**31), "g": -(2**31), "k": -(2**63), "l": -(2**63), "i": -(2**31), "n": -(2**63)}
    large = {"h": 2**32 - 1, "j": 2**32 - 1, "m": 2**64 - 1, "o": 2**64 - 1, "f": 2**31 - 1, "k": 2**63 - 1}
    first, second = made(shop, "shop.Order", small, large).to_pylist()
    assert {name: first[name] for name in small} == small
    assert (second["j"], second["o"], second["f"], second["k"]) == (
        2**32 - 1,
        Decimal(2**64 - 1),
        2**31 - 1,
        2**63 - 1,
    )
    assert (second["h"], second["m"]) == (-1, -1)  # as in Java, which has no unsigned numbers


def test_times_are_micros_and_wrapped_values_are_values(shop):
    at = {"seconds": 1_700_000_000, "nanos": 123_456_789}
    before = {"seconds": -1, "nanos": 999_999_999}
    values = {"wrapped": {"value": 0}, "text": {"value": ""}, "texts": [{"value": "x"}, {}]}
    rows = made(shop, "shop.Order", {"at": at, **values}, {"at": before}).to_pylist()
    assert rows[0]["at"] == datetime.datetime(2023, 11, 14, 22, 13, 20, 123456, datetime.UTC)
    assert rows[1]["at"] == datetime.datetime(1969, 12, 31, 23, 59, 59, 999999, datetime.UTC)
    assert (rows[0]["wrapped"], rows[0]["text"], rows[0]["texts"], rows[1]["wrapped"]) == (0, "", ["x", ""], None)


def test_times_and_wrapped_values_can_be_records(shop):
    form = ProtoForm(wrappers_as_records=True, timestamps_as_records=True)
    values = {"at": {"seconds": 5}, "wrapped": {"value": 7}, "texts": [{"value": "x"}]}
    first, second = made(shop, "shop.Order", values, {}, form=form).to_pylist()
    assert (first["at"], first["wrapped"]) == ({"seconds": 5, "nanos": 0}, {"value": 7})
    assert first["texts"] == [{"value": "x"}]
    assert (second["at"], second["wrapped"]) == (None, None)


def test_messages_inside_of_messages_keep_what_is_set(shop):
    line = {"name": "n", "count": 3}
    values = {"line": line, "lines": [line, {}], "by_number": {2: line, 1: {}}, "second": {"name": "s"}}
    first, second, third = made(shop, "shop.Order", {}, values, {"line": {}, "first": ""}).to_pylist()
    empty = {"name": "", "count": 0, "parts": []}
    full = {**line, "parts": []}
    assert (first["line"], third["line"]) == (None, empty)
    assert (second["line"], second["lines"]) == (full, [full, empty])
    assert second["by_number"] == [{"key": 1, "value": empty}, {"key": 2, "value": full}]
    assert (second["first"], second["second"]) == (None, {**empty, "name": "s"})
    assert (third["first"], third["second"]) == ("", None)


def test_an_enum_is_its_name_and_a_number_without_one_is_named_as_in_java(shop):
    row = made(shop, "shop.Order", {"kind": 2, "kinds": [1, 9]}).to_pylist()[0]
    assert (row["kind"], row["kinds"]) == ("SMALL", ["BIG", "UNKNOWN_ENUM_VALUE_Kind_9"])


def test_of_two_names_of_a_number_the_first_one_counts():
    text = 'syntax = "proto3"; enum E { option allow_alias = true; A = 0; B = 1; C = 1; } message M { E e = 1; }'
    assert made(descriptor_set(text), "M", {"e": 1}).to_pylist() == [{"e": "B"}]


def test_defaults_of_proto2_are_values_and_a_required_field_must_be_there():
    data = descriptor_set(
        'syntax = "proto2"; message M { required int32 a = 1; optional string b = 2 [default = "x"]; '
        "optional E e = 3; } enum E { ONE = 1; TWO = 2; }"
    )
    assert made(data, "M", {"a": 1}, {"a": 2, "b": ""}).to_pylist() == [
        {"a": 1, "b": "x", "e": "ONE"},
        {"a": 2, "b": "", "e": "ONE"},
    ]
    found = type_of(read_descriptor_file(data, "f"), "M", ProtoForm(), "f")
    with pytest.raises(hf.InvalidDataError, match=r"message 1: not a message of the Protobuf type M: .*required a"):
        found.rows([b"\x08\x01", b""], "message {}".format)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_type_that_contains_itself_is_followed_to_a_depth_and_kept_as_bytes_below(depth):
    data = descriptor_set('syntax = "proto3"; package p; message Tree { int32 value = 1; Tree left = 2; }')
    cls = class_of(data, "p.Tree")
    rest = cls(value=9, left=cls(value=10))
    tree = rest
    for value in range(depth, 0, -1):
        tree = cls(value=value, left=tree)
    found = type_of(read_descriptor_file(data, "f"), "p.Tree", ProtoForm(depth=depth), "f")
    row = found.rows([tree.SerializeToString()], str).to_pylist()[0]
    for value in range(1, depth + 1):
        assert row["value"] == value
        row = row["left"]
    assert row == {"descriptor_full_name": "p.Tree", "proto_bytes": rest.SerializeToString()}


def test_a_struct_of_google_has_columns():
    data = descriptor_set(
        'syntax = "proto3"; import "google/protobuf/struct.proto"; message M { google.protobuf.Struct s = 1; }'
    )
    value = {"s": {"k": 2.5}}
    row = made(data, "M", value, form=ProtoForm(depth=1)).to_pylist()[0]
    (entry,) = row["s"]["fields"]
    assert (entry["key"], entry["value"]["number_value"], entry["value"]["string_value"]) == ("k", 2.5, None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('syntax = "proto2"; message M { optional group G = 1 { optional int32 a = 1; } }', r"field M\.g is a group"),
        ('syntax = "proto3"; message N {} message M { N n = 1; }', r"message type N has no fields"),
    ],
)
def test_what_has_no_column_is_refused(text, message):
    with pytest.raises(hf.UnsupportedFeatureError, match=message):
        type_of(read_descriptor_file(descriptor_set(text), "f"), "M", ProtoForm(), "f")


def test_bytes_that_are_no_message_are_named(shop):
    found = type_of(read_descriptor_file(shop, "f"), "shop.Order", ProtoForm(), "f")
    with pytest.raises(hf.InvalidDataError, match=r"message 1: not a message of the Protobuf type shop\.Order"):
        found.rows([b"", b"\xff\xff"], "message {}".format)


# ---- a slow twin


def slow(message, form, seen=None):
    """The row of a message, field by field."""
    seen = {**(seen or {})}
    name = message.DESCRIPTOR.full_name
    seen[name] = seen.get(name, 0) + 1
    row = {}
    for one in message.DESCRIPTOR.fields:
        value = getattr(message, one.name)
        if one.is_repeated and one.message_type and one.message_type.GetOptions().map_entry:
            inner = one.message_type.fields_by_name["value"]
            row[one.name] = [{"key": key, "value": slow_value(inner, value[key], form, seen)} for key in sorted(value)]
        elif one.is_repeated:
            row[one.name] = [slow_value(one, each, form, seen) for each in value]
        elif one.has_presence and not message.HasField(one.name):
            row[one.name] = None
        else:
            row[one.name] = slow_value(one, value, form, seen)
    return row


def slow_value(one, value, form, seen):
    if one.message_type is None:
        if one.enum_type is not None:
            return one.enum_type.values_by_number[value].name
        return Decimal(value) if one.type == one.TYPE_UINT64 else value
    name = one.message_type.full_name
    if name == "google.protobuf.Timestamp":
        micros = datetime.timedelta(seconds=value.seconds, microseconds=value.nanos // 1000)
        return datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC) + micros
    if name.endswith("Value"):
        return value.value
    if seen.get(name, 0) >= form.depth:
        return {"descriptor_full_name": name, "proto_bytes": value.SerializeToString()}
    return slow(value, form, seen)


lines = st.recursive(
    st.fixed_dictionaries({}, optional={"name": st.text(max_size=3), "count": st.integers(0, 2**32 - 1)}),
    lambda inner: st.fixed_dictionaries({"parts": st.lists(inner, max_size=2)}),
    max_leaves=4,
)
orders = st.fixed_dictionaries(
    {},
    optional={
        "d": st.text(max_size=3),
        "e": st.binary(max_size=3),
        "k": st.integers(-(2**63), 2**63 - 1),
        "o": st.integers(0, 2**64 - 1),
        "kind": st.integers(0, 2),
        "line": lines,
        "lines": st.lists(lines, max_size=3),
        "numbers": st.lists(st.integers(-5, 5), max_size=3),
        "counts": st.dictionaries(st.text(max_size=2), st.integers(-5, 5), max_size=3),
        "by_number": st.dictionaries(st.integers(-5, 5), lines, max_size=3),
        "at": st.fixed_dictionaries({"seconds": st.integers(-(10**9), 10**9), "nanos": st.integers(0, 10**9 - 1)}),
        "wrapped": st.fixed_dictionaries({}, optional={"value": st.integers(-5, 5)}),
        "first": st.text(max_size=2),
        "given": st.integers(-5, 5),
    },
)


@settings(max_examples=examples(25))
@given(st.lists(orders, max_size=5), st.integers(1, 3))
def test_rows_are_those_of_a_slow_reading_field_by_field(shop, values, depth):
    form, cls = ProtoForm(depth=depth), class_of(shop, "shop.Order")
    messages = [cls(**one) for one in values]
    found = type_of(read_descriptor_file(shop, "f"), "shop.Order", form, "f")
    rows = found.rows([one.SerializeToString() for one in messages], str)
    rows.validate(full=True)
    assert rows.to_pylist() == [slow(one, form) for one in messages]


# ---- descriptor files


def test_a_message_type_is_found_by_its_full_name_in_any_file_of_the_set():
    data = descriptor_set(
        'syntax = "proto3"; import "parts.proto"; message M { parts.Outer.Inner i = 1; }',
        parts='syntax = "proto3"; package parts; message Outer { message Inner { int32 a = 1; } int32 b = 1; }',
    )
    files = read_descriptor_file(data, "f")
    assert type_of(files, "parts.Outer.Inner", ProtoForm(), "f").schema == pa.schema([("a", pa.int32())])
    with pytest.raises(hf.ConfigError, match=r"f has no Protobuf message type 'Inner'; it has M, parts\.Outer, parts"):
        type_of(files, "Inner", ProtoForm(), "f")


def test_imports_that_come_with_protobuf_need_not_be_in_the_file_and_others_are_named():
    text = 'syntax = "proto3"; import "google/protobuf/timestamp.proto"; message M { google.protobuf.Timestamp t = 1; }'
    found = type_of(read_descriptor_file(descriptor_set(text, imports=False), "f"), "M", ProtoForm(), "f")
    assert found.schema.field("t").type == pa.timestamp("us", "UTC")
    data = descriptor_set(
        'syntax = "proto3"; import "parts.proto"; message M { P p = 1; }',
        imports=False,
        parts='syntax = "proto3"; message P { int32 a = 1; }',
    )
    with pytest.raises(hf.ConfigError, match=r"f lacks the file parts\.proto, which it imports.*--include_imports"):
        type_of(read_descriptor_file(data, "f"), "M", ProtoForm(), "f")


@pytest.mark.parametrize(
    "name",
    [f"{folder}/{stem}.proto" for folder, (_, stems) in registry._SHIPPED.items() for stem in stems.split()],
)
def test_each_file_that_need_not_be_registered_comes_with_a_package(name):
    assert registry._shipped(name, "f").name == name


@pytest.mark.parametrize("name", ["google/protobuf/../type/date.proto", "google/protobuf/pyext/x.proto", "os.proto"])
def test_no_other_name_of_a_schema_is_imported(name):
    with pytest.raises(hf.ConfigError, match="f lacks the file"):
        registry._shipped(name, "f")


@pytest.mark.parametrize("data", [b"", b"not a set", b'syntax = "proto3";'])
def test_another_file_is_refused(data):
    with pytest.raises(hf.ConfigError, match=r"/f is not a descriptor file of Protobuf\. Make one: protoc"):
        read_descriptor_file(data, "/f")


# ---- the header of a registry


@pytest.mark.parametrize(
    ("indexes", "header"),
    [((0,), b"\0"), ((1,), b"\2\2"), ((0, 2), b"\4\0\4"), ((200,), b"\2\x90\3")],
)
def test_the_header_names_schema_and_message_type(indexes, header):
    assert header_of(b"\0\0\0\1\0" + header + b"rest") == (256, indexes, 5 + len(header))


def test_the_header_is_the_one_that_the_client_writes():
    from confluent_kafka.schema_registry.serde import SchemaId

    for indexes in ([0], [3], [1, 0, 70]):
        written = SchemaId("PROTOBUF", 7, message_indexes=indexes).id_to_bytes()
        assert header_of(written + b"x") == (7, tuple(indexes), len(written))


@pytest.mark.parametrize(
    "value",
    [b"", b"{}", b"\0\0\0\0\1", b"\1\0\0\0\1\0", b"\0\0\0\0\1\2", b"\0\0\0\0\1\2\1", b"\0\0\0\0\1\x80\0", b"\0" * 5],
)
def test_bytes_without_a_header_are_refused(value):
    with pytest.raises(ValueError, match=r"no header|cut off|negative|no indexes"):
        header_of(value)


def test_indexes_lead_to_nested_types():
    data = descriptor_set(
        'syntax = "proto3"; package p; message A { int32 a = 1; } message B { message C { int32 c = 1; } }'
    )
    files = read_descriptor_file(data, "f")
    assert message_name(files, (0,), "f") == "p.A"
    assert message_name(files, (1, 0), "f") == "p.B.C"
    with pytest.raises(hf.InvalidDataError, match=r"f has no message type with the indexes \[1, 1\]"):
        message_name(files, (1, 1), "f")


def test_the_type_is_asked_for_again_when_a_schema_is_new(shop):
    asked = []

    def newest():
        asked.append(None)
        return type_of(read_descriptor_file(shop, "f"), "shop.Line", ProtoForm(depth=1), "f")

    messages = ProtoMessages("t", newest, lambda schema_id, indexes: "shop.Line" if schema_id < 9 else "shop.Order")
    sent = [Message(0, at, 0, None, b"\0\0\0\0" + bytes([number]) + b"\0") for at, number in enumerate((1, 1, 2))]
    assert messages(sent[:2]).num_rows == 2
    assert messages(sent[:2]).num_rows == 2
    assert len(asked) == 1
    assert messages([*sent, Message(0, 3, 0, None, b"")]).num_rows == 3
    assert len(asked) == 2
    other = Message(1, 5, 0, None, b"\0\0\0\0\x09\0")
    with pytest.raises(
        hf.InvalidDataError, match=r"Topic t, partition 1, offset 5: expected .*shop\.Line; found .*Order"
    ):
        messages([other])
    taken = []
    messages.takes = taken.extend
    assert messages([sent[0], other]).num_rows == 1
    assert [one.place for one in taken] == ["Topic t, partition 1, offset 5"]
