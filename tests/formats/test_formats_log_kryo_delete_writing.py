"""Delete blocks of version 2, byte by byte as Apache Hudi 0.12 writes them."""

from __future__ import annotations

import struct

import numpy as np
import pyarrow as pa
import pytest

from hudi_fast.errors import UnsupportedFeatureError
from hudi_fast.formats.log.delete_block import DeleteRecords, delete_block_of, encode_delete_block, encode_kryo_deletes

PACKAGE = b"org.apache.hudi.common.model."


def short(text: bytes) -> bytes:
    return text[:-1] + bytes([text[-1] | 0x80])


ARRAY = b"\x01\x00" + short(b"[L" + PACKAGE + b"DeleteRecord;")
RECORD = b"\x01\x01" + short(PACKAGE + b"DeleteRecord")
KEY = b"\x01\x02" + short(PACKAGE + b"HoodieKey")


def records(keys: list[str], ordering: pa.Array | None, partitions: list[str | None] | None = None) -> DeleteRecords:
    default = np.zeros(len(keys), np.bool_)
    return DeleteRecords(
        pa.array(keys),
        pa.array(partitions or ["p"] * len(keys), pa.string()),
        () if ordering is None else (ordering,),
        default,
    )


def body(found: pa.Buffer) -> bytes:
    version, size = struct.unpack(">ii", found[:8])
    assert (version, size) == (2, found.size - 8)
    return found.to_pybytes()[8:]


def test_classes_are_named_once() -> None:
    found = body(encode_kryo_deletes(records(["k1", "k2"], pa.array([5, -3], pa.int64()))))
    first = RECORD + b"\x01" + KEY + b"\x01" + b"\x01\x82p" + b"\x01" + short(b"k1") + b"\x09\x0a"
    second = b"\x01\x01\x01" + b"\x01\x02\x01" + b"\x01\x82p" + b"\x01" + short(b"k2") + b"\x09\x05"
    assert found == ARRAY + b"\x01\x03" + first + second


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, b"\x02\x00"),
        (pa.array([0], pa.int32()), b"\x02\x00"),
        (pa.array([-64], pa.int32()), b"\x02\x7f"),
        (pa.array([64], pa.int32()), b"\x02\x80\x01"),
        (pa.array([-(2**31)], pa.int32()), b"\x02\xff\xff\xff\xff\x0f"),
        (pa.array([2**55], pa.int64()), b"\x09" + b"\x80" * 8 + b"\x01"),
        (pa.array([-(2**63)], pa.int64()), b"\x09" + b"\xff" * 9),
        (pa.array([1.5], pa.float64()), b"\x0a" + struct.pack(">d", 1.5)),
        (pa.array([1.5], pa.float32()), b"\x04" + struct.pack(">f", 1.5)),
        (pa.array([True]), b"\x05\x01"),
        (pa.array([None], pa.int64()), b"\x02\x00"),
        (pa.array([3], pa.timestamp("us", "UTC")), b"\x09\x06"),
    ],
)
def test_ordering_values_are_those_of_java(value: pa.Array | None, expected: bytes) -> None:
    assert body(encode_kryo_deletes(records(["k1"], value))).endswith(short(b"k1") + expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", b"\x81"),
        ("a", b"\x82a"),
        ("ab", b"a\xe2"),
        ("a" * 63, b"a" * 62 + b"\xe1"),
        ("a" * 64, b"\xc1\x01" + b"a" * 64),
        ("é", b"\x82\xc3\xa9"),
        ("\U0001f600", b"\x83\xed\xa0\xbd\xed\xb8\x80"),
    ],
)
def test_text_has_the_form_of_its_length(text: str, expected: bytes) -> None:
    assert body(encode_kryo_deletes(records([text], None))).endswith(b"\x01\x82p\x01" + expected + b"\x02\x00")


def test_an_entry_may_have_no_partition() -> None:
    assert KEY + b"\x01\x00\x01" + short(b"k1") in body(encode_kryo_deletes(records(["k1"], None, [None])))


@pytest.mark.parametrize("values", [pa.array(["a"]), pa.array([1], pa.date32()), pa.array([1], pa.decimal128(5, 2))])
def test_values_whose_java_class_depends_on_the_release_are_refused(values: pa.Array) -> None:
    with pytest.raises(UnsupportedFeatureError, match="upgrade the table"):
        encode_kryo_deletes(records(["k1"], values))


def test_the_table_version_decides_the_form() -> None:
    one = records(["k1"], pa.array([5], pa.int64()))
    assert delete_block_of(5, one).equals(encode_kryo_deletes(one))
    assert delete_block_of(6, one).equals(encode_delete_block(one))
