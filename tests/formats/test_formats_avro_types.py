"""Types of writers' schemas: records that contain themselves are skipped as fastavro reads them, and never read."""

from __future__ import annotations

import io
import json
import random

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from hudi_fast.kernels.avro_structure import CALL, MAX_CALLS, RETURN
from hypothesis import given
from hypothesis import strategies as st

from hudi_fast.errors import CorruptTableError, HudiError, UnsupportedFeatureError
from hudi_fast.formats.avro.rows import AvroDecoder
from hudi_fast.formats.avro.types import min_bytes, parse_record, walk_program
from tests.naive import avro_rows as naive
from tests.untrusted.mutations import mutated

NODE = {
    "type": "record",
    "name": "space.Node",
    "fields": [
        {"name": "x", "type": "int"},
        {"name": "next", "type": ["null", "Node"]},
        {"name": "leaves", "type": {"type": "array", "items": {"type": "map", "values": ["string", "null", "Node"]}}},
    ],
}
# Two records that contain each other, and one of them again on its own.
PAIR = {
    "type": "record",
    "name": "Left",
    "fields": [
        {
            "name": "right",
            "type": [
                "null",
                {
                    "type": "record",
                    "name": "Right",
                    "fields": [
                        {"name": "left", "type": ["null", "Left"]},
                        {"name": "more", "type": {"type": "array", "items": "Right"}},
                    ],
                },
            ],
        }
    ],
}


def table(*columns):
    return {"type": "record", "name": "t", "fields": [{"name": name, "type": kind} for name, kind in columns]}


AVRO = table(("a", "long"), ("node", NODE), ("b", "string"), ("left", PAIR), ("again", "Right"), ("c", ["null", "int"]))
NODES = st.recursive(
    st.fixed_dictionaries({"x": st.integers(-9, 9), "next": st.none(), "leaves": st.just([])}),
    lambda inner: st.fixed_dictionaries(
        {
            "x": st.integers(-9, 9),
            "next": st.none() | inner,
            "leaves": st.lists(
                st.dictionaries(st.text(max_size=2), st.text(max_size=3) | st.none() | inner), max_size=2
            ),
        }
    ),
    max_leaves=12,
)
RIGHTS = st.recursive(
    st.just({"left": None, "more": []}),
    lambda inner: st.fixed_dictionaries(
        {"left": st.none() | st.fixed_dictionaries({"right": st.none() | inner}), "more": st.lists(inner, max_size=2)}
    ),
    max_leaves=8,
)
ROWS = st.fixed_dictionaries(
    {
        "a": st.integers(-(2**40), 2**40),
        "node": NODES,
        "b": st.text(max_size=4),
        "left": st.fixed_dictionaries({"right": st.none() | RIGHTS}),
        "again": RIGHTS,
        "c": st.none() | st.integers(-5, 5),
    }
)
WANTED = pa.schema([("c", pa.int32()), ("a", pa.int64()), ("b", pa.string())])


def record(row, avro=AVRO):
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(avro), row)
    return out.getvalue()


def decoded(avro, records, wanted):
    decoder = AvroDecoder.compile(json.dumps(avro), wanted, "some.log")
    return list(decoder.decode_block(pa.py_buffer(naive.block(records)), "some.log", 0))


@pytest.mark.slow
@given(rows=st.lists(ROWS, min_size=1, max_size=5))
def test_columns_beside_records_that_contain_themselves_are_read(rows):
    (batch,) = decoded(AVRO, [record(row) for row in rows], WANTED)
    assert batch.to_pylist() == [{name: row[name] for name in WANTED.names} for row in rows]


def test_a_column_of_such_a_record_is_refused_by_name():
    kind = pa.struct([("x", pa.int32()), ("next", pa.struct([("x", pa.int32())]))])
    with pytest.raises(UnsupportedFeatureError, match=r"Column node\.next in some\.log makes.*space\.Node contain"):
        AvroDecoder.compile(json.dumps(AVRO), pa.schema([("node", kind)]), "some.log")
    # the parts of it that do not contain it are read
    row = {"x": 7, "next": {"x": 8, "next": None, "leaves": []}, "leaves": [{"k": "v"}]}
    (batch,) = decoded(table(("node", NODE)), [record({"node": row}, table(("node", NODE)))],
                       pa.schema([("node", pa.struct([("x", pa.int32())]))]))  # fmt: skip
    assert batch.to_pylist() == [{"node": {"x": 7}}]


def test_readers_of_whole_records_refuse_them():
    with pytest.raises(UnsupportedFeatureError, match="contain itself"):
        parse_record(json.dumps(AVRO), "here")


def test_a_record_of_few_bytes_cannot_nest_without_end():
    endless = table(("node", {"type": "record", "name": "N", "fields": [{"name": "n", "type": "N"}]}), ("a", "long"))
    with pytest.raises(CorruptTableError, match=f"at most {MAX_CALLS} records inside each other"):
        decoded(endless, [b"\2\2"], pa.schema([("a", pa.int64())]))
    chain = table(
        ("node", {"type": "record", "name": "N", "fields": [{"name": "n", "type": ["null", "N"]}]}), ("a", "int")
    )
    deep = b"\2" * (MAX_CALLS - 1) + b"\0"
    (batch,) = decoded(chain, [deep + b"\x0e"], pa.schema([("a", pa.int32())]))
    assert batch.to_pylist() == [{"a": 7}]
    with pytest.raises(CorruptTableError, match="inside each other"):
        decoded(chain, [b"\2" + deep + b"\x0e"], pa.schema([("a", pa.int32())]))
    empty = {"type": "record", "name": "E", "fields": [{"name": "e", "type": "E"}]}
    items = table(("node", {"type": "array", "items": empty}), ("a", "int"))
    with pytest.raises(UnsupportedFeatureError, match="items take no bytes"):
        decoded(items, [b"\0\0"], pa.schema([("a", pa.int32())]))


def test_programs_call_the_steps_of_a_record_once():
    parsed = parse_record(json.dumps(AVRO), "here", recursive=True)
    program = walk_program((parsed,), "x", "here")
    assert program.steps.tolist().count(RETURN) >= 2
    assert CALL in program.steps.tolist()
    assert program.depth == 2 * (MAX_CALLS + 1)
    assert min_bytes(parsed) == 1 + 1 + 1 + 1 + 1 + 1 + 2 + 1


@pytest.mark.parametrize("count", [300, pytest.param(100_000, marks=pytest.mark.long)])
def test_damaged_records_give_rows_or_an_error(count):
    leaf = {"x": 1, "next": None, "leaves": [{"k": None, "l": "text"}]}
    node = {"x": 2, "next": leaf, "leaves": [{"k": leaf}, {}]}
    right = {"left": {"right": None}, "more": [{"left": None, "more": []}]}
    seed = record({"a": 5, "node": node, "b": "text", "left": {"right": right}, "again": right, "c": 3})
    decoder = AvroDecoder.compile(json.dumps(AVRO), WANTED, "some.log")
    for at in range(count):
        damaged = mutated([seed], random.Random(at))
        data = np.frombuffer(naive.block([damaged]), np.uint8)
        try:
            (batch,) = decoder.decode_block(data, "some.log", 0)
        except HudiError:
            continue
        batch.validate(full=True)
