from __future__ import annotations

import struct

import numpy as np
import pytest
from hudi_fast.kernels.java_text import NUMBER_BYTES, POWERS, java_doubles, java_numbers
from hudi_fast.kernels.json_text import (
    BYTE_LIST_WIDTH,
    base64_quoted,
    byte_lists,
    close_objects,
    fill_joined,
    fill_quoted,
    latin_1,
    measure_joined,
    measure_quoted,
    put_parts,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.arrow_buffers import buffers, values_of
from tests.naive import json_text as naive
from tests.support.examples import examples

PLAIN = np.zeros(256, np.uint8)
AVRO = PLAIN.copy()
for classes in (PLAIN, AVRO):
    classes[:32] = 1
    classes[list(b'\b\t\n\f\r"\\')] = 2
AVRO[0x7F], AVRO[0xC2], AVRO[0xE2] = 1, 3, 4

STRINGS = st.text(
    st.one_of(
        st.characters(max_codepoint=0xFF), st.characters(min_codepoint=0x1FF0, max_codepoint=0x2110), st.just("😀")
    ),
    max_size=12,
)
NOTHING = np.zeros(0, np.uint8)


def quoted(values: list[str], classes: np.ndarray) -> list[str]:
    offsets, data = buffers([one.encode() for one in values], b"before")
    ends = np.empty(len(values) + 1, np.int32)
    out = np.empty(measure_quoted(offsets, data, classes, ends), np.uint8)
    fill_quoted(offsets, data, classes, ends, out)
    return [one.decode() for one in values_of(ends, out)]


@given(st.lists(STRINGS, max_size=8))
def test_strings_are_escaped_as_java_escapes_them(values):
    assert quoted(values, PLAIN) == [naive.quoted(one, avro=False) for one in values]
    assert quoted(values, AVRO) == [naive.quoted(one, avro=True) for one in values]


@given(st.lists(st.binary(max_size=10), max_size=8))
def test_bytes_are_base64_or_characters_or_signed_numbers(values):
    offsets, data = buffers(values, b"before")
    size = sum(map(len, values))
    ends, out = np.empty(len(values) + 1, np.int32), np.empty(BYTE_LIST_WIDTH * size + 6 * len(values), np.uint8)
    base64_quoted(offsets, data, ends, out)
    assert [one.decode() for one in values_of(ends, out)] == [naive.value(one, avro=False) for one in values]
    latin_1(offsets, data, ends, out)
    assert [one.decode() for one in values_of(ends, out)] == [one.decode("latin-1") for one in values]
    byte_lists(offsets, data, ends, out)
    assert [one.decode() for one in values_of(ends, out)] == [naive.value(one, True, "fixed") for one in values]


def java(texts: list[str]) -> list[str]:
    offsets, data = buffers([one.encode() for one in texts])
    ends, out = np.empty(len(texts) + 1, np.int32), np.empty(NUMBER_BYTES * len(texts), np.uint8)
    java_numbers(offsets, data, ends, out)
    return [one.decode() for one in values_of(ends, out)]


@settings(max_examples=examples(300))
@given(st.lists(st.floats(allow_subnormal=False), max_size=10))
def test_numbers_are_laid_out_as_java_does(values):
    texts = ["inf" if one == float("inf") else "-inf" if one == -float("inf") else repr(one) for one in values]
    assert java(texts) == [naive.number(one) for one in values]


def doubles(values: np.ndarray) -> list[str]:
    ends, out = np.empty(len(values) + 1, np.int32), np.empty(NUMBER_BYTES * len(values), np.uint8)
    java_doubles(values.view(np.int64), POWERS, ends, out)
    return [one.decode() for one in values_of(ends, out)]


@settings(max_examples=examples(300))
@given(st.lists(st.floats() | st.floats(-1e4, 1e4).map(lambda one: round(one, 2)), max_size=10))
def test_doubles_are_the_shortest_that_mean_the_same(values):
    assert doubles(np.array(values, np.float64)) == [naive.number(one) for one in values]


def test_doubles_of_any_bits_and_powers_of_two_are_written():
    bits = np.random.default_rng(7).integers(0, 2**64, 3000, dtype=np.uint64).view(np.float64)
    for values in (bits, 2.0 ** np.arange(-1074, 1024), np.arange(1, 30) * 5e-324):
        assert doubles(values) == [naive.number(float(one)) for one in values]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.001", "0.001"),
        ("0.00099", "9.9E-4"),
        ("9999999", "9999999.0"),
        ("10000000", "1.0E7"),
        ("1e+16", "1.0E16"),
        ("123456789012345680000", "1.2345678901234568E20"),
        ("1.7976931348623157e+308", "1.7976931348623157E308"),
        ("-2.2250738585072014e-308", "-2.2250738585072014E-308"),
        ("100", "100.0"),
        ("0.000015", "1.5E-5"),
        ("-0", "-0.0"),
        ("0", "0.0"),
        ("nan", '"NaN"'),
    ],
)
def test_a_number_at_an_edge_of_the_layouts(text, expected):
    assert java([text]) == [expected]
    assert len(expected) <= NUMBER_BYTES


def test_single_precision_has_a_naive_twin_too():
    value = struct.unpack("f", struct.pack("f", 0.1))[0]
    assert naive.number(value, single=True) == java(["0.1"])[0] == "0.1"


@given(st.lists(st.tuples(st.binary(max_size=9), st.binary(max_size=9), st.booleans()), max_size=9))
def test_members_are_put_side_by_side(rows):
    first, second = (buffers([row[at] for row in rows], b"x") for at in (0, 1))
    kept = np.array([row[2] for row in rows], np.uint8)
    sizes = [1 + len(a) + (2 + len(b)) * keep for a, b, keep in rows]
    starts = np.concatenate(([0], np.cumsum([size + 1 for size in sizes]))).astype(np.int64)
    out = np.empty(int(starts[-1]), np.uint8)
    at = starts[:-1].copy()
    put_parts(at, out, np.frombuffer(b",", np.uint8), *first, NOTHING)
    put_parts(at, out, np.frombuffer(b", ", np.uint8), *second, kept)
    close_objects(np.ascontiguousarray(starts[:-1]), at, out)
    expected = [b"{" + a + (b", " + b if keep else b"") + b"}" for a, b, keep in rows]
    assert values_of(starts, out) == expected


def test_objects_without_members_are_braces():
    starts = np.array([0, 2], np.int64)
    out = np.empty(4, np.uint8)
    close_objects(starts, starts, out)
    assert out.tobytes() == b"{}{}"


@given(st.lists(st.lists(st.tuples(st.binary(max_size=5), st.booleans()), max_size=4), max_size=6))
def test_items_are_joined_list_by_list(lists):
    items = [item for found in lists for item in found]
    offsets, data = buffers([text for text, _ in items], b"y")
    bounds = np.cumsum([0, *map(len, lists)]).astype(np.int32)
    for kept in (NOTHING, np.array([keep for _, keep in items], np.uint8)):
        ends = np.empty(len(lists) + 1, np.int32)
        out = np.empty(measure_joined(bounds, offsets, kept, 2, ends), np.uint8)
        fill_joined(bounds, offsets, data, kept, np.frombuffer(b"[]; ", np.uint8), ends, out)
        shown = [[text for text, keep in found if keep or not kept.size] for found in lists]
        assert values_of(ends, out) == [b"[" + b"; ".join(found) + b"]" for found in shown]
