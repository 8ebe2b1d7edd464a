"""Trailer and file info of HFiles."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest

from hudi_fast.errors import CorruptTableError, UnsupportedFeatureError
from hudi_fast.formats.hfile.blocks import Codec, HFileContent
from hudi_fast.formats.hfile.layout import (
    TRAILER_SIZE,
    HFileTrailer,
    encode_file_info,
    encode_trailer,
    read_file_info,
    read_trailer,
)
from hudi_fast.formats.varint import encode_message, framed

TRAILER = HFileTrailer(
    load_on_open_offset=90, index_count=3, index_levels=2, entry_count=77, codec=Codec.GZ, meta_count=1
)


def content(trailer: bytes, before: int = 100) -> HFileContent:
    return HFileContent.of(bytes(before) + trailer, "f.hfile", 1000)


def encoded(trailer: HFileTrailer) -> bytes:
    return encode_trailer(trailer, 95, 10, 20, 0, 50)


def test_a_trailer_is_read_as_it_was_written() -> None:
    data = encoded(TRAILER)
    assert len(data) == TRAILER_SIZE
    assert read_trailer(content(data)) == TRAILER


def test_other_bytes_are_no_trailer() -> None:
    for data in (bytes(TRAILER_SIZE), encoded(TRAILER)[:-1], b"short"):
        with pytest.raises(CorruptTableError, match="Expected an HFile"):
            read_trailer(content(data))


@pytest.mark.parametrize(
    "wrong",
    [
        replace(TRAILER, load_on_open_offset=101),
        replace(TRAILER, index_levels=0),
        replace(TRAILER, index_levels=17),
        replace(TRAILER, entry_count=-1),
        replace(TRAILER, meta_count=-1),
    ],
)
def test_positions_and_counts_that_cannot_be_are_refused(wrong: HFileTrailer) -> None:
    with pytest.raises(CorruptTableError, match=r"f\.hfile"):
        read_trailer(content(encoded(wrong)))


def test_other_versions_and_codecs_are_not_supported() -> None:
    with pytest.raises(UnsupportedFeatureError, match="found 2"):
        read_trailer(content(encoded(TRAILER)[:-4] + struct.pack(">i", 2)))
    with pytest.raises(UnsupportedFeatureError, match="LZO"):
        read_trailer(content(encoded(replace(TRAILER, codec=Codec.LZO))))
    data = bytearray(encoded(TRAILER))
    at = data.index(encode_message((12, Codec.GZ)), 8)
    data[at : at + 2] = encode_message((12, 99))[:2]
    with pytest.raises(CorruptTableError, match="99"):
        read_trailer(content(bytes(data)))


def test_file_info_is_read_as_it_was_written() -> None:
    info = {"hfile.LASTKEY": b"\x00k", "é": b"", "minRecordKey": b"x" * 300}
    payload = encode_file_info(info)
    assert read_file_info(content(encoded(TRAILER)), 95, memoryview(payload)) == info


@pytest.mark.parametrize(
    "payload", [b"XXXX", b"PBUF\x05a", b"PBUF" + framed(encode_message((1, encode_message((1, 3)))))]
)
def test_damaged_file_info_is_refused_with_its_place(payload: bytes) -> None:
    with pytest.raises(CorruptTableError) as raised:
        read_file_info(content(encoded(TRAILER)), 95, memoryview(payload))
    assert (raised.value.path, raised.value.offset) == ("f.hfile", 1095)
