"""Protobuf messages of HFiles."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_fast.formats.varint import encode_message, framed, message_fields, unframed

FIELDS = st.lists(
    st.tuples(st.integers(1, 2000), st.integers(-(2**63), 2**63 - 1) | st.binary(max_size=300)), max_size=6
)


@given(FIELDS, st.binary(max_size=3))
def test_fields_are_read_as_they_were_written(fields: list[tuple[int, int | bytes]], after: bytes) -> None:
    message = unframed(memoryview(framed(encode_message(*fields)) + after))
    found = [(n, value if isinstance(value, int) else bytes(value)) for n, value in message_fields(message)]
    assert found == fields


def test_numbers_are_varints() -> None:
    assert encode_message((1, 300)) == b"\x08\xac\x02"
    assert encode_message((2, b"ab")) == b"\x12\x02ab"
    assert encode_message((1, -1)) == b"\x08" + b"\xff" * 9 + b"\x01"


@pytest.mark.parametrize(
    ("message", "said"),
    [(b"\x08" + b"\xff" * 10, "without end"), (b"\x12\x05ab", "5 bytes where 2"), (b"\x0d\x01\x00\x00\x00", "tag 13")],
)
def test_a_malformed_message_is_a_value_error(message: bytes, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        list(message_fields(memoryview(message)))


def test_a_message_that_is_cut_off_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="3 bytes where 2"):
        unframed(memoryview(b"\x03ab"))
