"""JSON and Avro messages become rows; oracles are Python's json and fastavro."""

from __future__ import annotations

import io
import json
import warnings
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_fast.errors import HudiWarning, InvalidDataError, SchemaMismatchError, SourceError
from hudi_fast.formats.avro.schema import avro_to_arrow
from hudi_fast.streamer.messages import AvroMessages, JsonMessages, Message, json_rows, warn_of_rejected
from tests.support.examples import examples

FIRST = 100
"""Offset of the first message."""


def messages(values: Sequence[bytes], **changes: Any) -> list[Message]:
    return [Message(3, FIRST + at, 1_700_000_000_000 + at, b"k%d" % at, value) for at, value in enumerate(values)]


def read(*values: bytes | str, schema: pa.Schema | None = None, **given: Any) -> pa.Table:
    """The rows of JSON messages."""
    table = JsonMessages("t", schema, **given)(
        messages([one.encode() if isinstance(one, str) else one for one in values])
    )
    table.validate(full=True)
    return table


def one_value(text: str, kind: pa.DataType) -> Any:
    """What a JSON value becomes in a column of a type."""
    return read(f'{{"a": {text}}}', schema=pa.schema([("a", kind)]))["a"][0].as_py()


# ---- JSON without a schema


def test_objects_become_rows_in_their_order_with_the_fields_of_all_of_them():
    made = read('{"a": 1}', '{"b": {"c": "x"}}', '{"a": 3, "b": {"d": [true, null]}}', "{}")
    assert made.to_pylist() == [
        {"a": 1, "b": None},
        {"a": None, "b": {"c": "x", "d": None}},
        {"a": 3, "b": {"c": None, "d": [True, None]}},
        {"a": None, "b": None},
    ]


@pytest.mark.parametrize("values", [[], [b""], [b" ", b"\n\t"]])
@pytest.mark.parametrize("schema", [None, pa.schema([("a", pa.int64())])])
def test_no_messages_and_blank_ones_give_no_rows(values, schema):
    made = read(*values, schema=schema, tells_offsets=True)
    assert made.num_rows == 0
    assert made.column_names[: -4 or None] == ([] if schema is None else ["a"])


def test_blank_messages_between_others_are_passed_over():
    made = read("", '{"n": 1}', " \n", '{"n": 2}', tells_offsets=True)
    assert made["n"].to_pylist() == [1, 2]
    assert made["_hoodie_kafka_source_offset"].to_pylist() == [FIRST + 1, FIRST + 3]


@pytest.mark.parametrize(
    "texts",
    [
        ["2024-01-01", "2024-01-02"],
        ["2024-01-01T10:00:00Z", "2024-01-01 10:00:00"],
        ["2024-01-01 10:00:00", "never"],
        ["2024-01-01T10:00:00.5+02:00"],
    ],
)
def test_texts_stay_texts_even_if_all_of_them_look_like_times(texts):
    made = read(*(json.dumps({"a": text, "b": {"c": [text]}}) for text in texts))
    assert made.to_pylist() == [{"a": text, "b": {"c": [text]}} for text in texts]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", " \t"])
def test_line_ends_between_the_tokens_of_an_object_do_not_matter(end):
    text = end.join(["", "{", '"a"', ":", "1", ",", '"b"', ":", "[", "2", "]", "}", ""])
    assert read(text, '{"a": 3}', text).to_pylist() == [{"a": 1, "b": [2]}, {"a": 3, "b": None}, {"a": 1, "b": [2]}]


@pytest.mark.parametrize(
    "value",
    [
        [None, 0],
        [None, None, "x"],
        [None, None],
        [None],
        [None, [None, 1.5]],
        [None, {"a": [None, True]}],
        {"a": [[None, 1]]},
        [None, "2024-01-01"],
    ],
)
def test_lists_that_begin_with_null_keep_all_of_their_values(value):
    assert read(json.dumps({"a": value, "b": "x"})).to_pylist() == [{"a": value, "b": "x"}]
    made = read('{"a": null}', json.dumps({"a": value}), '{"b": 1}', json.dumps({"a": value}))
    assert made["a"].to_pylist() == [None, value, None, value]


def test_objects_over_many_lines_and_blocks_are_read_whole():
    rows = [{"a": at, "b": ["x" * (at % 50)] * 3} for at in range(15_000)]
    values = [json.dumps(row, indent=1).encode() for row in rows]
    assert sum(map(len, values)) > 1 << 20
    assert read(*values).to_pylist() == rows


def test_an_object_larger_than_a_block_is_read():
    rows = [{"a": "x"}, {"a": "y" * (3 << 20)}, {"a": "z"}]
    assert read(*(json.dumps(row) for row in rows)).to_pylist() == rows


TEXTS = st.text(st.characters(codec="utf-8"), max_size=8)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "int": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(allow_nan=False, allow_infinity=False),
    "text": TEXTS,
    "truth": st.booleans(),
    "nothing": st.none(),
    "list": st.lists(st.none() | st.integers(-9, 9), max_size=3),
    "struct": st.fixed_dictionaries({"x": st.none() | st.integers(-9, 9), "y": st.none() | TEXTS}),
    "deep": st.lists(st.fixed_dictionaries({"z": st.lists(TEXTS, max_size=2)}), max_size=2),
    "time": st.datetimes(timezones=st.none() | st.just(UTC)).map(lambda value: value.isoformat()),
    "ünï": st.dates().map(lambda value: value.isoformat()),
}
OBJECTS = st.fixed_dictionaries({}, optional={name: st.none() | values for name, values in VALUES.items()})
FORMS: list[Callable[[Any], str]] = [
    json.dumps,
    lambda row: json.dumps(row, ensure_ascii=False),
    lambda row: json.dumps(row, indent=2),
    lambda row: f" {json.dumps(row, separators=(',', ':'))}\r\n",
]


@given(st.lists(st.tuples(OBJECTS, st.sampled_from(FORMS)), min_size=1, max_size=8))
def test_rows_without_a_schema_are_what_python_reads(written):
    values = [form(row).encode() for row, form in written]
    made = read(*values)
    loaded = [json.loads(value) for value in values]
    names = {name for row in loaded for name, value in row.items() if value is not None}
    if not names:  # no message has a value
        return
    assert {*made.column_names} == names
    assert made.to_pylist() == [{name: row.get(name) for name in made.column_names} for row in loaded]


# ---- JSON with a schema


def test_fields_that_the_schema_lacks_are_dropped_and_those_that_a_message_lacks_are_null():
    schema = pa.schema([("b", pa.string()), ("a", pa.struct({"y": pa.int64(), "x": pa.date32()})), ("c", pa.date32())])
    made = read('{"z": 1, "a": {"x": 1, "q": 5}, "b": "t"}', '{"a": null}', '{"a": {"y": 2}}', schema=schema)
    assert made.schema == schema
    assert made.to_pylist() == [
        {"b": "t", "a": {"y": None, "x": date(1970, 1, 2)}, "c": None},
        {"b": None, "a": None, "c": None},
        {"b": None, "a": {"y": 2, "x": None}, "c": None},
    ]


def test_messages_without_any_field_of_the_schema_are_rows_of_nulls():
    schema = pa.schema([("a", pa.int64()), ("b", pa.timestamp("us", "UTC"))])
    assert read('{"z": 1}', "{}", schema=schema).to_pylist() == [{"a": None, "b": None}] * 2


@pytest.mark.parametrize("bad", ["{}", '{"a": null}', '{"b": 1}'])
def test_a_message_without_a_required_field_cannot_be_read(bad):
    schema = pa.schema([pa.field("a", pa.int64(), nullable=False)])
    with pytest.raises(InvalidDataError, match=rf"offset {FIRST + 1}: .*'a' is required"):
        read('{"a": 1}', bad, schema=schema)
    with pytest.warns(HudiWarning, match=rf"Left out .*: 1; the first: .* offset {FIRST + 1}"):
        assert read('{"a": 1}', bad, '{"a": 2}', schema=schema, takes=warn_of_rejected)["a"].to_pylist() == [1, 2]


@pytest.mark.parametrize("kind", [pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.timestamp("ms", "UTC")])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-01-02", datetime(2024, 1, 2)),
        ("2024-01-02 03:04", datetime(2024, 1, 2, 3, 4)),
        ("2024-01-02T03:04:05", datetime(2024, 1, 2, 3, 4, 5)),
        ("2024-01-02T03:04:05Z", datetime(2024, 1, 2, 3, 4, 5)),
        ("2024-01-02 03:04:05.678", datetime(2024, 1, 2, 3, 4, 5, 678000)),
        ("2024-01-02T03:04:05.6Z", datetime(2024, 1, 2, 3, 4, 5, 600000)),
        ("2024-01-02T03:04:05+02:00", datetime(2024, 1, 2, 1, 4, 5)),
        ("2024-01-02 03:04:05.25-0130", datetime(2024, 1, 2, 4, 34, 5, 250000)),
    ],
)
def test_texts_of_iso_8601_become_times_and_are_utc_without_a_zone(text, expected, kind):
    assert one_value(json.dumps(text), kind) == (expected.replace(tzinfo=UTC) if kind.tz else expected)


def test_texts_of_all_forms_may_be_mixed_in_a_column():
    schema = pa.schema([("a", pa.timestamp("us", "UTC"))])
    texts = ["2024-01-02", "2024-01-02T00:00:00.5", "2024-01-02 00:00:01Z", "2024-01-02T02:00:02+02:00"]
    made = read(*(json.dumps({"a": text}) for text in [*texts, None]), schema=schema)
    start = datetime(2024, 1, 2, tzinfo=UTC)
    assert made["a"].to_pylist() == [*(start + timedelta(seconds=late) for late in (0, 0.5, 1, 2)), None]


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("1704164645678", pa.timestamp("ms", "UTC"), datetime(2024, 1, 2, 3, 4, 5, 678000, UTC)),
        ("-1", pa.timestamp("us"), datetime(1969, 12, 31, 23, 59, 59, 999999)),
        ("19724", pa.date32(), date(2024, 1, 2)),
        ("-1", pa.date32(), date(1969, 12, 31)),
        ('"2024-01-02"', pa.date32(), date(2024, 1, 2)),
        ('"2024-01-02T03:04:05.678Z"', pa.date32(), date(2024, 1, 2)),
        ("3723004", pa.time32("ms"), time(1, 2, 3, 4000)),
        ("3723000004", pa.time64("us"), time(1, 2, 3, 4)),
        ('"01:02:03.004"', pa.time32("ms"), time(1, 2, 3, 4000)),
        ('"01:02"', pa.time64("us"), time(1, 2)),
        ("1", pa.float64(), 1.0),
        ('"é\\u0000"', pa.binary(), "é\0".encode()),
        ('"2024-01-02"', pa.binary(), b"2024-01-02"),
        ('"2024-01-02"', pa.string(), "2024-01-02"),
        ('"abc"', pa.binary(3), b"abc"),
        ("[1, null]", pa.list_(pa.date32()), [date(1970, 1, 2), None]),
        ("[null, 1]", pa.list_(pa.date32()), [None, date(1970, 1, 2)]),
        ("[null, null]", pa.list_(pa.date32()), [None, None]),
        ('[[null, "2024-01-02T00:00:00.5"]]', pa.list_(pa.list_(pa.date32())), [[None, date(2024, 1, 2)]]),
        ('[{"a": "2024-01-02"}, {}]', pa.list_(pa.struct({"a": pa.string(), "b": pa.date32()})), None),
        ("[]", pa.list_(pa.date32()), []),
        ("null", pa.list_(pa.date32()), None),
    ],
)
def test_values_become_those_of_the_type_of_their_column(text, kind, expected):
    if expected is None and text != "null":
        expected = [{"a": "2024-01-02", "b": None}, {"a": None, "b": None}]
    assert one_value(text, kind) == expected


@pytest.mark.parametrize("text", ["123456789012345678.91", '"123456789012345678.91"', "1.2345678901234567891e17"])
def test_decimals_keep_all_of_their_digits_as_numbers_and_as_texts(text):
    expected = Decimal(json.loads(text) if text.startswith('"') else text)
    assert one_value(text, pa.decimal128(20, 2)) == expected


@pytest.mark.parametrize("text", ["1.239", '"1.239"', "12345", '"12345"', "1e7", "1000.00", '"x"', "true", '""'])
def test_a_decimal_that_does_not_fit_is_refused_and_never_rounded(text):
    with pytest.raises(InvalidDataError, match=f"offset {FIRST}: expected a JSON object that fits the schema"):
        one_value(text, pa.decimal128(5, 2))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("1.5", pa.int64()),
        ("3000000000", pa.int32()),
        ("9223372036854775808", pa.int64()),
        ("1", pa.string()),
        ('"1"', pa.int64()),
        ("[1]", pa.int64()),
        ("1", pa.list_(pa.int64())),
        ('{"x": 1}', pa.string()),
        ('"soon"', pa.timestamp("us", "UTC")),
        ('"03:04:05"', pa.timestamp("us", "UTC")),
        ('"03:04:05"', pa.date32()),
        ("1.5", pa.timestamp("us")),
        ("3000000000", pa.date32()),
        ("true", pa.date32()),
        ('"2024-13-01"', pa.date32()),
        ('"abcd"', pa.binary(3)),
        ("[12345]", pa.list_(pa.decimal128(5, 2))),
        ('{"x": {"d": 1.5}}', pa.struct({"x": pa.struct({"d": pa.date32()})})),
    ],
)
def test_a_value_that_does_not_fit_its_column_is_told_with_message_and_reason(text, kind):
    with pytest.raises(InvalidDataError, match=rf"partition 3, offset {FIRST + 1}: .*fits the schema; found .*: .+\.$"):
        read("{}", f'{{"a": {text}}}', '{"z": 1}', schema=pa.schema([("a", kind)]))


def test_the_place_of_a_nested_value_is_told():
    schema = pa.schema([("a", pa.list_(pa.struct({"d": pa.date32()})))])
    with pytest.raises(InvalidDataError, match=r"'a\.element\.d' does not fit date32"):
        read('{"a": [{"d": "x"}]}', schema=schema)


def as_read(kind: pa.DataType, value: Any) -> Any:
    """What a column of a type shall hold for a value that Python's json read, with decimals for fractions."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return {each.name: as_read(each.type, value.get(each.name)) for each in kind}
    if pa.types.is_list(kind):
        return [as_read(kind.value_type, one) for one in value]
    if pa.types.is_decimal(kind):
        return Decimal(value)
    if pa.types.is_date(kind):
        return date(1970, 1, 1) + timedelta(days=value)
    if pa.types.is_timestamp(kind):
        late = timedelta(microseconds=value) if isinstance(value, int) else datetime.fromisoformat(value) - EPOCH
        return EPOCH + late
    return float(value) if pa.types.is_floating(kind) else value


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAYS = st.integers(-700_000, 2_000_000)
DIGITS = st.decimals(-(10**12), 10**12, allow_nan=False, places=3).map(str)
TIMES = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))
TYPED: dict[str, tuple[pa.DataType, list[st.SearchStrategy[str]]]] = {
    "i": (pa.int32(), [st.integers(-(2**31), 2**31 - 1).map(str)]),
    "f": (pa.float64(), [st.floats(allow_nan=False, allow_infinity=False).map(repr), st.integers(-9, 9).map(str)]),
    "s": (pa.string(), [(TEXTS | TIMES.map(str)).map(json.dumps)]),
    "b": (pa.bool_(), [st.booleans().map(json.dumps)]),
    "n": (pa.decimal128(18, 3), [DIGITS | DIGITS.map(json.dumps)]),
    "d": (pa.date32(), [DAYS.map(str)]),
    "t": (
        pa.timestamp("us", "UTC"),
        [st.integers(0, 10**15).map(str), TIMES.map(lambda at: json.dumps(at.isoformat()))],
    ),
    "l": (pa.list_(pa.date32()), [st.lists(DAYS | st.none(), max_size=3).map(json.dumps)]),
    "r": (
        pa.struct({"d": pa.date32(), "s": pa.string()}),
        [st.fixed_dictionaries({}, optional={"s": TEXTS, "d": DAYS | st.none(), "z": TEXTS}).map(json.dumps)],
    ),
}


@st.composite
def typed_messages(draw: st.DrawFn) -> tuple[pa.Schema, list[str]]:
    """A schema, and texts of objects whose values fit it; a column has numbers or texts."""
    names = draw(st.lists(st.sampled_from(sorted(TYPED)), min_size=1, max_size=5, unique=True))
    values = {name: draw(st.sampled_from(TYPED[name][1])) for name in names}
    row = st.fixed_dictionaries({}, optional={name: one | st.just("null") for name, one in values.items()})
    rows = draw(st.lists(row, min_size=1, max_size=6))
    texts = ["{" + ", ".join(f'"{name}": {text}' for name, text in one.items()) + "}" for one in rows]
    return pa.schema([(name, TYPED[name][0]) for name in names]), texts


@given(typed_messages())
def test_rows_of_a_schema_are_what_python_reads(written):
    schema, texts = written
    made = read(*texts, schema=schema)
    assert made.schema == schema
    loaded = [json.loads(text, parse_float=Decimal) for text in texts]
    assert made.to_pylist() == [
        {each.name: as_read(each.type, row.get(each.name)) for each in schema} for row in loaded
    ]


# ---- JSON messages that cannot be read


BAD = [
    b"null",
    b"1",
    b'"x"',
    b"[]",
    b'[{"n": 1}]',
    b"nope",
    b"{",
    b"}",
    b'{"n":',
    b'{"n": 1}}',
    b'{"n": 1,}',
    b'{"n": 1}{"n": 2}',
    b'{"n": 1}\n{"n": 2}',
    b'{"n": 1, "n": 2}',
    b'{"s": "x\ny"}',
    b'{"s": "x',
    b'y"}',
    b'{"s": "\xff"}',
    b"\xff\xfe",
    b"{'n': 1}",
]
UNFIT = [b'{"n": "x"}', b'{"n": 1.5}', b'{"n": [1]}', b'{"s": 5}', b'{"d": "x"}', b'{"d": 99999999999}']
SCHEMA = pa.schema([("n", pa.int64()), ("s", pa.string()), ("d", pa.date32())])


@pytest.mark.parametrize("bad", [one for one in BAD if one not in (b'{"n": 1, "n": 2}',)])
def test_messages_that_python_refuses_or_that_are_no_object_are_refused(bad):
    try:
        assert not isinstance(json.loads(bad), dict)
    except ValueError:
        pass
    with pytest.raises(InvalidDataError, match=f"Topic t, partition 3, offset {FIRST}: expected a JSON object; found "):
        read(bad)


@st.composite
def with_poison(draw: st.DrawFn) -> tuple[list[bytes], list[int], pa.Schema | None]:
    """Messages with bad ones at generated places, the numbers of the good ones, and a schema or none."""
    schema = draw(st.sampled_from([None, SCHEMA]))
    pool = BAD if schema is None else [*BAD, *UNFIT]
    picks = draw(st.lists(st.none() | st.sampled_from(pool), min_size=1, max_size=12))
    values = [b'{"n": %d, "s": "2024-01-01"}' % at if bad is None else bad for at, bad in enumerate(picks)]
    return values, [at for at, bad in enumerate(picks) if bad is None], schema


@settings(max_examples=examples(50))
@given(with_poison())
def test_bad_messages_at_any_place_are_named_or_left_out_and_the_others_are_read(case):
    values, good, schema = case
    bad = [at for at in range(len(values)) if at not in good]
    if bad:
        with pytest.raises(InvalidDataError, match=f"^Topic t, partition 3, offset {FIRST + bad[0]}: "):
            read(*values, schema=schema)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = read(*values, schema=schema, takes=warn_of_rejected, tells_offsets=True)
    told = [str(one.message) for one in caught]
    place = "" if not bad else f"{len(bad)}; the first: Topic t, partition 3, offset {FIRST + bad[0]}."
    assert told == ([f"Left out messages that cannot be read: {place}"] if bad else [])
    assert made["_hoodie_kafka_source_offset"].to_pylist() == [FIRST + at for at in good]
    if good:
        assert made["n"].to_pylist() == good
        assert made["s"].to_pylist() == ["2024-01-01"] * len(good)


@pytest.mark.parametrize("takes", [warn_of_rejected, None])
def test_a_field_of_two_types_is_told_with_what_to_do(takes):
    with pytest.raises(InvalidDataError, match=r"types of a field differ .*Give a schema: hoodie\.streamer\."):
        read('{"a": 1}', '{"a": "x"}', takes=takes)


def test_numbers_and_texts_of_one_time_column_are_told():
    with pytest.raises(
        InvalidDataError, match=rf"offset {FIRST} and the messages after it: the types of a field differ"
    ):
        read('{"a": 1}', '{"a": "2024-01-01"}', schema=pa.schema([("a", pa.date32())]))


def test_a_long_message_is_shown_in_part():
    with pytest.raises(InvalidDataError) as caught:
        read('{"a": "' + "x" * 10_000)
    assert len(str(caught.value)) < 500


def test_the_place_of_a_text_is_told_in_the_words_of_the_caller():
    with pytest.raises(InvalidDataError, match=r"^line 1 of f: expected a JSON object"):
        json_rows([b"{}", b"no"], None, lambda at: f"line {at} of f")


# ---- where rows come from


def test_rows_tell_which_message_they_come_from_on_demand():
    assert read('{"a": 1}').column_names == ["a"]
    given = [Message(1, 5, 77, b"k\xff", b'{"a": 1}'), Message(0, 9, -1, None, b'{"a": 2}')]
    made = JsonMessages("t", tells_offsets=True)(given)
    assert made.to_pylist() == [
        {
            "a": 1,
            "_hoodie_kafka_source_offset": 5,
            "_hoodie_kafka_source_partition": 1,
            "_hoodie_kafka_source_timestamp": 77,
            "_hoodie_kafka_source_key": "k�",
        },
        {
            "a": 2,
            "_hoodie_kafka_source_offset": 9,
            "_hoodie_kafka_source_partition": 0,
            "_hoodie_kafka_source_timestamp": -1,
            "_hoodie_kafka_source_key": None,
        },
    ]


# ---- Avro


NESTED = {"type": "record", "name": "nested", "fields": [{"name": "x", "type": ["null", "int"], "default": None}]}
FIELDS: list[dict[str, Any]] = [
    {"name": "n", "type": "long"},
    {"name": "s", "type": ["null", "string"], "default": None},
    {"name": "f", "type": "double"},
    {"name": "b", "type": "boolean"},
    {"name": "l", "type": {"type": "array", "items": ["null", "string"]}},
    {"name": "r", "type": ["null", NESTED], "default": None},
    {"name": "m", "type": {"type": "map", "values": "int"}},
    {"name": "t", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    {"name": "d", "type": {"type": "int", "logicalType": "date"}},
    {"name": "e", "type": {"type": "bytes", "logicalType": "decimal", "precision": 18, "scale": 3}},
]
RECORD = {"type": "record", "name": "trip", "fields": FIELDS}
SHORT = {"type": "record", "name": "trip", "fields": [FIELDS[0], {"name": "f", "type": "float"}]}
"""The schema of older messages: fewer fields, one of them narrower."""

WRITERS = {1: RECORD, 7: SHORT}
PARSED = {number: fastavro.parse_schema(schema) for number, schema in WRITERS.items()}
AVRO_RECORDS = st.fixed_dictionaries(
    {
        "n": st.integers(-(2**63), 2**63 - 1),
        "s": st.none() | TEXTS,
        "f": st.integers(-1000, 1000).map(lambda number: number / 4),
        "b": st.booleans(),
        "l": st.lists(st.none() | TEXTS, max_size=3),
        "r": st.none() | st.fixed_dictionaries({"x": st.none() | st.integers(-(2**31), 2**31 - 1)}),
        "m": st.dictionaries(TEXTS, st.integers(0, 9), max_size=3),
        "t": TIMES,
        "d": st.dates(),
        "e": st.decimals(-(10**9), 10**9, allow_nan=False, places=3),
    }
)


WIDE = pa.schema([each.with_nullable(True) for each in avro_to_arrow(json.dumps(RECORD), "trip")])
"""The columns of the longer schema, all of them optional."""


def avro_value(record: dict[str, Any], number: int = 1) -> bytes:
    """A message as Confluent's serializer writes it."""
    encoded = io.BytesIO()
    fastavro.schemaless_writer(encoded, PARSED[number], record)
    return b"\0" + number.to_bytes(4, "big") + encoded.getvalue()


def avro_reader(**given: Any) -> AvroMessages:
    schema = given.pop("schema", WIDE)
    return AvroMessages("t", lambda: schema, lambda number: json.dumps(WRITERS[number]), **given)


def seen(record: dict[str, Any], number: int) -> dict[str, Any]:
    """The row of a record."""
    names = [one["name"] for one in WRITERS[number]["fields"]]
    row = {name: record[name] if name in names else None for name in record}
    return row | ({} if row["m"] is None else {"m": sorted(row["m"].items())})


def shown(rows: pa.Table) -> list[dict[str, Any]]:
    return [row | ({} if row["m"] is None else {"m": sorted(row["m"])}) for row in rows.to_pylist()]


@given(st.lists(st.tuples(AVRO_RECORDS, st.sampled_from(sorted(WRITERS))), max_size=8))
def test_records_of_several_schemas_are_read_in_the_order_of_the_messages(written):
    made = avro_reader()(messages([avro_value(record, number) for record, number in written]))
    made.validate(full=True)
    assert made.schema == WIDE
    assert shown(made) == [seen(record, number) for record, number in written]


EXAMPLE = {
    "n": 5,
    "s": "é",
    "f": 1.5,
    "b": True,
    "l": ["x", None],
    "r": {"x": 1},
    "m": {"k": 1},
    "t": datetime(2024, 1, 2, tzinfo=UTC),
    "d": date(2024, 1, 2),
    "e": Decimal("1.250"),
}


def numbered(number: int) -> bytes:
    return avro_value(EXAMPLE | {"n": number})


def test_a_schema_is_asked_for_once():
    asked = []

    def schema_of(number):
        asked.append(number)
        return json.dumps(WRITERS[number])

    newest = [WIDE]
    reader = AvroMessages("t", lambda: newest[0], schema_of)
    for _ in range(3):
        reader(messages([avro_value(EXAMPLE, 7), avro_value(EXAMPLE, 1), avro_value(EXAMPLE, 7)]))
    assert sorted(asked) == [1, 7]


def test_a_schema_that_is_new_may_bring_columns_for_all_messages_after_it():
    narrow, asked = WIDE.remove(len(WIDE) - 1), []

    def newest():
        asked.append(1)
        return narrow if len(asked) == 1 else WIDE

    reader = AvroMessages("t", newest, lambda number: json.dumps(WRITERS[number]))
    for number, expected in ((7, narrow), (7, narrow), (1, WIDE), (7, WIDE)):
        assert reader(messages([avro_value(EXAMPLE, number)])).schema == expected
    assert len(asked) == 2


def test_the_schema_of_the_rows_chooses_and_orders_their_columns():
    narrow = pa.schema([("s", pa.string()), ("n", pa.int64()), ("new", pa.int64())])
    assert avro_reader(schema=narrow)(messages([numbered(1)])).to_pylist() == [{"s": "é", "n": 1, "new": None}]


@pytest.mark.parametrize("values", [[], [b""], [b"", b""]])
def test_no_avro_messages_and_those_of_deleted_keys_give_no_rows(values):
    made = avro_reader(tells_offsets=True)(messages(values))
    assert made.num_rows == 0
    assert made.column_names[:-4] == WIDE.names


def test_a_deleted_key_between_others_is_passed_over():
    made = avro_reader(tells_offsets=True)(messages([numbered(1), b"", numbered(2)]))
    assert made["n"].to_pylist() == [1, 2]
    assert made["_hoodie_kafka_source_offset"].to_pylist() == [FIRST, FIRST + 2]
    assert made["_hoodie_kafka_source_key"].to_pylist() == ["k0", "k2"]


AVRO_BAD = [
    b"\0",
    b"\0\0\0\0",
    b"\1" + numbered(1)[1:],
    b'{"n": 1}',
    numbered(1)[:5],
    numbered(1)[:-1],
    numbered(1)[:12],
    numbered(1) + b"\0",
    numbered(1)[:5] + b"\xff" * 30,
]


@pytest.mark.parametrize("bad", AVRO_BAD[:4], ids=["short", "header", "magic", "json"])
def test_a_message_without_the_header_of_a_registry_is_named(bad):
    with pytest.raises(InvalidDataError, match=rf"offset {FIRST + 1}: .*with the header of a schema registry"):
        avro_reader()(messages([numbered(1), bad]))


@settings(max_examples=examples(80))
@given(st.lists(st.none() | st.sampled_from(AVRO_BAD), min_size=1, max_size=10))
def test_bad_avro_messages_at_any_place_are_named_or_left_out_and_the_others_are_read(picks):
    values = [numbered(at) if bad is None else bad for at, bad in enumerate(picks)]
    good = [at for at, bad in enumerate(picks) if bad is None]
    headless = [at for at, bad in enumerate(picks) if bad in AVRO_BAD[:4]]
    bad = [at for at in range(len(picks)) if at not in good]
    if bad:
        first = headless[0] if headless else bad[0]  # headers are looked at first
        with pytest.raises(InvalidDataError, match=f"^Topic t, partition 3, offset {FIRST + first}: "):
            avro_reader()(messages(values))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = avro_reader(takes=warn_of_rejected, tells_offsets=True)(messages(values))
    assert [str(one.message).partition(";")[0] for one in caught] == (
        [f"Left out messages that cannot be read: {len(bad)}"] if bad else []
    )
    assert made["n"].to_pylist() == good
    assert made["_hoodie_kafka_source_offset"].to_pylist() == [FIRST + at for at in good]


def test_a_null_in_a_required_column_is_named():
    schema = pa.schema([pa.field("s", pa.string(), nullable=False)])
    values = [avro_value(EXAMPLE), avro_value(EXAMPLE | {"s": None}), avro_value(EXAMPLE)]
    with pytest.raises(InvalidDataError, match=f"offset {FIRST + 1}: not a record of schema 1"):
        avro_reader(schema=schema)(messages(values))
    with pytest.warns(HudiWarning, match=f"1; the first: Topic t, partition 3, offset {FIRST + 1}"):
        assert avro_reader(schema=schema, takes=warn_of_rejected)(messages(values))["s"].to_pylist() == ["é", "é"]


def test_a_schema_that_does_not_fit_the_rows_is_named_and_not_skipped():
    with pytest.raises(SchemaMismatchError, match="schema 1 of the registry"):
        avro_reader(schema=pa.schema([("s", pa.int64())]), takes=warn_of_rejected)(messages([numbered(1)]))


def test_an_error_of_the_registry_is_not_taken_for_a_bad_message():
    def schema_of(number):
        raise SourceError(f"no schema {number}")

    with pytest.raises(SourceError, match="no schema 1"):
        AvroMessages("t", lambda: WIDE, schema_of, takes=warn_of_rejected)(messages([numbered(1)]))
