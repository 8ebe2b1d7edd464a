"""Wrong bytes in Avro data blocks are told, with their place."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_fast.errors import CorruptTableError
from tests.formats.avro_examples import decode, encoded, record_of, tables
from tests.naive import avro_rows as naive


@pytest.mark.parametrize(
    ("kind", "raw", "at", "expected"),
    [
        ("int", b"\x80" * 10 + b"\x00", 0, "at most ten bytes"),
        ("long", b"\xff" * 9 + b"\x02", 0, "at most ten bytes"),
        ("int", naive.varint(2**31), 0, "in the type's range"),
        ({"type": "int", "logicalType": "time-millis"}, naive.varint(86_400_000), 0, "in the type's range"),
        ({"type": "long", "logicalType": "time-micros"}, naive.varint(-1), 0, "in the type's range"),
        ("int", b"\x80", 0, "fits into its record"),
        ("long", b"", 0, "fits into its record"),
        ("boolean", b"\x02", 0, "a boolean"),
        ("boolean", b"", 0, "fits into its record"),
        ("double", b"1234567", 0, "fits into its record"),
        ("string", naive.varint(-1) + b"xx", 0, "length within the record"),
        ("string", naive.varint(3) + b"xx", 0, "length within the record"),
        ("string", naive.varint(2**62) + b"xx", 0, "length within the record"),
        ("string", naive.varint(2) + b"\xc3\x28", 1, "UTF-8"),
        (["null", "int"], b"\x04\x02", 0, "a branch of the union"),
        (["int", "null"], b"\x03\x02", 0, "a branch of the union"),
        (["null", "int"], b"", 0, "fits into its record"),
        ({"type": "enum", "name": "e", "symbols": ["A"]}, b"\x02", 0, "in the type's range"),
        ({"type": "enum", "name": "e", "symbols": ["A"]}, b"\x01", 0, "in the type's range"),
        ({"type": "fixed", "name": "f", "size": 3}, b"xx", 0, "fits into its record"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 2}, b"\x00", 0, "length within the record"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 2}, b"\x02\x64", 0, "no more digits"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 38}, b"\x22\x01" + bytes(16), 0, "no more digits"),
        ({"type": "array", "items": "int"}, b"\x04\x02", 0, "length within the record"),
        ({"type": "array", "items": "int"}, b"\x02\x02", 0, "fits into its record"),
        ({"type": "array", "items": "int"}, naive.varint(-(2**63)) + b"\x02\x02\x00", 0, "length within the record"),
        ({"type": "array", "items": "int"}, b"\x01\x04\x02\x00", 0, "a block of items of its declared size"),
        ({"type": "array", "items": "int"}, naive.varint(2**40) + b"\x00" * 9, 0, "length within the record"),
        ({"type": "map", "values": "int"}, b"\x02\x0aab\x02\x00", 0, "length within the record"),
    ],
)
def test_wrong_bytes_are_told_with_their_place(kind, raw, at, expected):
    avro = record_of(("k", "int"), ("c", kind))
    content = naive.block([b"\x02" + raw])
    with pytest.raises(CorruptTableError, match=expected) as caught:
        decode(avro, content)
    assert "column c" in str(caught.value)
    assert (caught.value.path, caught.value.offset) == ("some.log", 100 + 8 + 4 + 1 + at)


def test_a_record_must_end_with_its_last_column():
    avro = record_of(("a", "int"))
    with pytest.raises(CorruptTableError, match="end with its last column in row 1") as caught:
        decode(avro, naive.block([b"\x02", b"\x02\x02"]))
    assert caught.value.offset == 100 + 8 + 5 + 5


@pytest.mark.parametrize(
    ("content", "at", "expected"),
    [
        (b"\0\0\0\3", 0, "expected 8 bytes"),
        (struct.pack(">iii", 4, 0, 0), 0, "version 1, 2 or 3, found 4"),
        (struct.pack(">iii", 3, -1, 0), 4, "count of records"),
        (struct.pack(">iii", 3, 2, 0), 4, "count of records"),
        (struct.pack(">iii", 3, 1, 1), 8, "length of a record"),
        (struct.pack(">iii", 3, 1, -1), 8, "length of a record"),
        (struct.pack(">iiihi", 3, 2, 2, 0x0202, 9), 14, "length of a record"),
        (struct.pack(">iiih", 3, 0, 2, 0x0202), 8, "6 more bytes"),
    ],
)
def test_wrong_frames_are_told_with_their_place(content, at, expected):
    with pytest.raises(CorruptTableError, match=expected) as caught:
        decode(record_of(("a", "int"), ("b", "int")), content)
    assert caught.value.offset == 100 + at


@pytest.mark.parametrize("version", [1, 2, 3])
def test_all_versions_of_the_block_have_one_layout(version):
    avro = record_of(("a", "int"))
    assert naive.rows_of(decode(avro, naive.block([b"\x02"], version))) == [{"a": 1}]


def error_of(avro, content):
    try:
        decode(avro, content)
    except CorruptTableError as error:
        return error
    return None


@pytest.mark.slow
@given(table=tables(max_rows=6), data=st.data())
def test_damaged_bytes_give_rows_or_an_error_of_their_own(table, data):
    avro, rows = table
    content = bytearray(encoded(avro, rows))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place] = data.draw(st.sampled_from((0, 1, 2, 3, 4, 0x7F, 0x80, 0xFF)) | st.integers(0, 255))
    content = bytes(content[: data.draw(st.integers(len(content) - 3, len(content)))])
    error = error_of(avro, content)
    assert error is None or (error.path == "some.log" and 100 <= error.offset <= 100 + len(content))


@pytest.mark.slow
def test_damaged_bytes_never_lead_out_of_bounds():
    environment = os.environ | {"NUMBA_BOUNDSCHECK": "1", "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-m", "tests.formats.avro_damage_run"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    good, bad = map(int, done.stdout.split())
    assert good + bad == 4000
    assert good > 500
    assert bad > 1000
