"""Numbers of variable length are those that fastavro writes and Protocol Buffers describe."""

from __future__ import annotations

import io

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_fast.formats.varint import read_varint, snappy_size, varint, zigzag


@given(st.integers(-(2**63), 2**63 - 1))
def test_signed_numbers_are_those_of_avro(value: int) -> None:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, "long", value)
    assert zigzag(value) == out.getvalue()


@pytest.mark.parametrize(("value", "expected"), [(0, b"\0"), (1, b"\x01"), (127, b"\x7f"), (300, b"\xac\x02")])
def test_numbers_are_those_of_protocol_buffers(value: int, expected: bytes) -> None:
    assert varint(value) == expected


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1])
def test_a_number_of_more_than_64_bits_is_refused(value: int) -> None:
    with pytest.raises(ValueError, match="does not fit into 64 bits"):
        zigzag(value)


@given(st.integers(0, 2**64 - 1), st.binary(max_size=3))
def test_a_number_is_read_where_it_begins(value: int, around: bytes) -> None:
    data = around + varint(value) + around
    assert read_varint(data, len(around)) == (value, len(data) - len(around))


def test_numbers_without_end_are_refused() -> None:
    with pytest.raises(ValueError, match="a number without end"):
        read_varint(b"\xff" * 12, 0)
    with pytest.raises(ValueError, match="a Snappy block without a size"):
        snappy_size(b"\xff" * 5 + b"\x01")
