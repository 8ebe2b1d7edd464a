"""Numbers of variable length are those that fastavro writes and Protocol Buffers describe."""

from __future__ import annotations

import io

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_fast.formats.varint import varint, zigzag


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
