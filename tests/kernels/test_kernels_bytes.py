"""Machine operations and compiled helpers against their Python definitions.

Modules: hudi_fast.kernels._machine_ops.
"""

from __future__ import annotations

import numpy as np
import pytest
from hudi_fast.kernels._bytes import (
    bytes_equal,
    copy_bytes,
    fold_multiply,
    hash_bytes,
    load_u16,
    load_u32,
    load_u64,
    prefetch,
    read_varint,
    store_u16,
    store_u32,
    store_u64,
    unfold_sign,
)
from hudi_fast.kernels._kernel import kernel
from hypothesis import given
from hypothesis import strategies as st

from hudi_fast.formats.varint import varint, zigzag


@kernel("void(ru1, i8, wu8)")
def load_all(data, at, out):
    prefetch(data, at)
    out[0] = load_u16(data, at)
    out[1] = load_u32(data, at)
    out[2] = load_u64(data, at)
    out[3] = fold_multiply(out[2], out[1] + np.uint64(0xF000000000000001))


@kernel("void(u8, i8, wu1)")
def store_all(value, at, out):
    store_u16(out, at, np.uint16(value))
    store_u32(out, at + 2, np.uint32(value))
    store_u64(out, at + 6, value)


@kernel("u8(ru1, i8, i8, u8)")
def hash_one(data, start, length, seed):
    return hash_bytes(data, start, length, seed)


@kernel("b1(ru1, i8, ru1, i8, i8)")
def equal_one(left, left_start, right, right_start, length):
    return bytes_equal(left, left_start, right, right_start, length)


@kernel("void(wu1, i8, ru1, i8, i8)")
def copy_one(target, at, source, start, length):
    copy_bytes(target, at, source, start, length)


@kernel("void(ru1, i8, i8, wi8)")
def number_at(data, at, end, out):
    out[0], out[1] = read_varint(data, at, end)
    out[2] = unfold_sign(out[0])


def read_number(data, at, end):
    """(bits, next position, signed number) of a number of variable length."""
    out = np.empty(3, np.int64)
    number_at(np.frombuffer(data, np.uint8), at, end, out)
    return out.tolist()


@given(raw=st.binary(min_size=20, max_size=20), at=st.integers(0, 12))
def test_words_are_loaded_as_python_loads_them(raw, at):
    data, out, expected = np.frombuffer(raw, np.uint8), np.empty(4, np.uint64), np.empty(4, np.uint64)
    load_all(data, at, out)
    with np.errstate(over="ignore"):
        load_all.function(data, at, expected)
    assert out.tolist() == expected.tolist()


@given(value=st.integers(0, 2**64 - 1), at=st.integers(0, 6))
def test_words_are_stored_little_endian(value, at):
    out = np.zeros(20, np.uint8)
    store_all(value, at, out)
    words = [(value & 0xFFFF).to_bytes(2, "little"), (value & 0xFFFFFFFF).to_bytes(4, "little")]
    expected = bytes(at) + b"".join([*words, value.to_bytes(8, "little")])
    assert out.tobytes() == expected.ljust(20, b"\0")


@given(raw=st.binary(max_size=80), before=st.binary(max_size=5), seed=st.integers(0, 2**64 - 1))
def test_the_compiled_hash_is_the_python_hash(raw, before, seed):
    data = np.frombuffer(before + raw, np.uint8)
    with np.errstate(over="ignore"):
        expected = hash_bytes(data, len(before), len(raw), np.uint64(seed))
    assert hash_one(data, len(before), len(raw), seed) == int(expected)


@pytest.mark.slow
@given(raw=st.binary(max_size=40), before=st.binary(max_size=5), change=st.integers(0, 39))
def test_ranges_are_equal_when_every_byte_is(raw, before, change):
    left, right = np.frombuffer(raw, np.uint8), np.frombuffer(before + raw, np.uint8).copy()
    assert equal_one(left, 0, right, len(before), len(raw))
    if change < len(raw):
        right[len(before) + change] ^= 1
        assert not equal_one(left, 0, right, len(before), len(raw))


@given(raw=st.binary(max_size=40), start=st.integers(0, 5), at=st.integers(0, 5))
def test_copies_write_their_range_and_nothing_else(raw, start, at):
    target = np.full(at + len(raw) + 9, 7, np.uint8)
    copy_one(target, at, np.frombuffer(bytes(start) + raw, np.uint8), start, len(raw))
    assert target.tobytes() == b"\7" * at + raw + b"\7" * 9


@given(value=st.integers(-(2**63), 2**63 - 1), before=st.binary(max_size=5), after=st.binary(max_size=5))
def test_numbers_of_variable_length_are_read_as_they_were_written(value, before, after):
    signed, unsigned = zigzag(value), varint(value % 2**64)
    assert read_number(before + signed + after, len(before), len(before + signed))[1:] == [len(before + signed), value]
    assert read_number(before + unsigned + after, len(before), len(before + unsigned))[:2] == [
        value,
        len(before + unsigned),
    ]


@given(value=st.integers(0, 2**64 - 1), missing=st.integers(1, 10))
def test_a_number_that_does_not_end_before_its_end_has_no_next_position(value, missing):
    written = varint(value)
    assert read_number(written + bytes(10), 0, max(0, len(written) - missing))[1] == -1
    assert read_number(b"\x80" * 11, 0, 11)[1] == -1
