"""Random Avro schemas with values of them, and one way to decode, for tests of the row codec."""

from __future__ import annotations

import copy
import json

import pyarrow as pa
from hypothesis import strategies as st

from hudi_fast.formats.avro.rows import AvroDecoder
from hudi_fast.formats.avro.schema import avro_to_arrow
from tests.naive import avro_rows as naive

# ASCII, and characters of 2, 3 and 4 bytes in UTF-8; long ones, since short copies go in whole words.
TEXTS = st.text(st.one_of(st.characters(max_codepoint=127), st.sampled_from("éß日ﬀ￮😀𐍈")), max_size=90)
INTS = st.integers(-(2**31), 2**31 - 1) | st.integers(-3, 3)
LONGS = st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3) | st.integers(1, 63).map(lambda bits: 2**bits - 1)


def logical(kind, name, values):
    return st.just(({"type": kind, "logicalType": name}, values))


@st.composite
def decimals(draw):
    precision = draw(st.integers(1, 38))
    limit = 10**precision - 1
    least_size = limit.bit_length() // 8 + 1
    about = {"logicalType": "decimal", "precision": precision, "scale": draw(st.integers(0, precision))}
    size = draw(st.integers(least_size, 18) | st.just(None))
    shape = {"type": "bytes"} if size is None else {"type": "fixed", "name": "?", "size": size}
    values = st.integers(-limit, limit) | st.integers(-min(limit, 200), min(limit, 200))
    return {**shape, **about}, values


@st.composite
def enums(draw):
    symbols = draw(st.lists(st.from_regex(r"[A-Z]{1,5}", fullmatch=True), min_size=1, max_size=4, unique=True))
    return {"type": "enum", "name": "?", "symbols": symbols}, st.sampled_from(symbols)


@st.composite
def fixeds(draw):
    size = draw(st.integers(1, 20))
    return {"type": "fixed", "name": "?", "size": size}, st.binary(min_size=size, max_size=size)


LEAVES = st.one_of(
    st.just(("boolean", st.booleans())),
    st.just(("int", INTS)),
    st.just(("long", LONGS)),
    st.just(("float", st.floats(width=32, allow_nan=False))),
    st.just(("double", st.floats(allow_nan=False))),
    st.just(("string", TEXTS)),
    st.just(("bytes", st.binary(max_size=90))),
    st.just(({"type": "string", "logicalType": "uuid"}, TEXTS)),
    logical("int", "date", INTS),
    logical("int", "time-millis", st.integers(0, 86_399_999)),
    logical("long", "time-micros", st.integers(0, 86_399_999_999)),
    logical("long", "timestamp-millis", LONGS),
    logical("long", "timestamp-micros", LONGS),
    logical("long", "local-timestamp-millis", LONGS),
    logical("long", "local-timestamp-micros", LONGS),
    decimals(),
    enums(),
    fixeds(),
)


@st.composite
def fields(draw, kinds):
    """A type, or its union with null in either order."""
    avro, values = draw(kinds)
    order = draw(st.sampled_from((None, 0, 1)))
    if order is None:
        return avro, values
    return (["null", avro] if order == 0 else [avro, "null"]), st.none() | values


@st.composite
def records(draw, kinds, least=1):
    columns = draw(st.lists(fields(kinds), min_size=least, max_size=5))
    named = {f"c{place}": each for place, each in enumerate(columns)}
    avro = {"type": "record", "name": "?", "fields": [{"name": name, "type": each[0]} for name, each in named.items()]}
    return avro, st.fixed_dictionaries({name: each[1] for name, each in named.items()})


@st.composite
def unions(draw):
    """A union of two to four types, and structs of which one member has a value."""
    kinds = [draw(st.sampled_from(("int", "string", "double"))), *draw(st.lists(WRAPPERS, min_size=1, max_size=3))]
    kinds = [{**each, "name": f"w{i}"} if isinstance(each, dict) else each for i, each in enumerate(kinds)]
    kinds = draw(st.permutations(kinds))
    names = [naive.branch_name(each) for each in kinds]
    one = st.sampled_from(range(len(kinds))).flatmap(
        lambda at: VALUES[wrapped(kinds[at])].map(
            lambda value: {
                name: ({"value": value} if isinstance(kinds[at], dict) else value) if i == at else None
                for i, name in enumerate(names)
            }
        )
    )
    place = draw(st.sampled_from((None, *range(len(kinds) + 1))))
    if place is None:
        return kinds, one
    return [*kinds[:place], "null", *kinds[place:]], st.none() | one


VALUES = {"int": INTS, "long": LONGS, "string": TEXTS, "double": st.floats(allow_nan=False), "bytes": st.binary()}
WRAPPERS = st.sampled_from([*VALUES]).map(
    lambda kind: {"type": "record", "name": "?", "fields": [{"name": "value", "type": kind}]}
)


def wrapped(kind):
    return kind["fields"][0]["type"] if isinstance(kind, dict) else kind


def nested(kinds):
    items = fields(kinds)
    arrays = items.map(lambda each: ({"type": "array", "items": each[0]}, st.lists(each[1], max_size=6)))
    maps = items.map(lambda each: ({"type": "map", "values": each[0]}, st.dictionaries(TEXTS, each[1], max_size=4)))
    return st.one_of(records(kinds), arrays, maps)


TYPES = st.recursive(LEAVES, nested, max_leaves=6)


@st.composite
def tables(draw, max_rows=12):
    """A record schema, and rows of it as plain values."""
    avro, values = draw(records(TYPES))
    return with_names(avro), draw(st.lists(values, max_size=max_rows))


def with_names(avro):
    """A copy with each ``?`` replaced by a name of its own."""
    avro = copy.deepcopy(avro)
    waiting, number = [avro], 0
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            if each.get("name") == "?":
                each["name"], number = f"named{number}", number + 1
            waiting += each.values()
        elif isinstance(each, list):
            waiting += each
    return avro


def decode(avro, content, reader=None, **options):
    text = json.dumps(avro)
    reader = avro_to_arrow(text, "here") if reader is None else reader
    batches = list(AvroDecoder.compile(text, reader, "here", **options).decode_block(content, "some.log", 100))
    for batch in batches:
        batch.validate(full=True)
        assert batch.schema.equals(reader)
    return batches


def record_of(*columns):
    return {"type": "record", "name": "r", "fields": [{"name": name, "type": kind} for name, kind in columns]}


def encoded(avro, rows):
    return naive.block([naive.encode(avro, row) for row in rows])


def column(writer, values, target, **options):
    """Values of one column, written as an Avro type, read as an Arrow type."""
    reader = pa.schema([pa.field("c", target)])
    avro = record_of(("c", writer))
    return decode(avro, encoded(avro, [{"c": each} for each in values]), reader, **options)[0].column(0)
