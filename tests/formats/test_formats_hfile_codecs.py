"""Compressed blocks of HFiles: real ones, each codec against a slow twin, and damage.

Modules: hudi_fast.kernels.lz4_blocks.
"""

from __future__ import annotations

import random
import struct

import numpy as np
import pyarrow as pa
import pytest
from hudi_fast.kernels.lz4_blocks import lz4_size
from hypothesis import given
from hypothesis import strategies as st

from hudi_fast.formats.hfile.blocks import Codec, decompress
from hudi_fast.formats.hfile.reader import read_hfile
from tests.formats.format_files import real_files
from tests.naive import hfile as naive
from tests.untrusted.mutations import mutated

REAL = real_files("hfiles")
CODECS = [Codec.GZ, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]
PAYLOADS = st.binary(max_size=300) | st.lists(st.sampled_from([b"abcabc", b"x" * 300, b"hudi-key-0"])).map(b"".join)


@pytest.mark.parametrize("codec", [Codec.SNAPPY, Codec.LZ4])
def test_blocks_of_several_chunks_that_hadoops_codecs_wrote(codec):
    raw = REAL[f"hudi_0_15_hbase_1MB_{codec.name}_4500.hfile"]
    keys, values = read_hfile(pa.py_buffer(raw))
    assert keys.to_pylist() == [b"key-%06d" % number for number in range(4500)]
    assert values.to_pylist() == [b"value-%d-" % number + b"x" * (number % 50) for number in range(4500)]


def stored(codec, parts):
    return memoryview(naive.compressed(parts, codec))


@pytest.mark.parametrize("codec", CODECS)
@given(parts=st.lists(PAYLOADS, max_size=4))
def test_payloads_of_any_parts_are_decompressed(codec, parts):
    payload = b"".join(parts)
    raw = stored(codec, parts or [b""])
    assert bytes(decompress(codec, raw, len(payload))) == payload == naive.decompressed(bytes(raw), codec)


@pytest.mark.parametrize("codec", [Codec.SNAPPY, Codec.LZ4])
def test_a_stream_that_begins_again_is_read_to_its_end(codec):
    raw = memoryview(naive.compressed([b"one" * 9, b"two"], codec) + naive.compressed([b"three" * 99], codec))
    assert bytes(decompress(codec, raw, 525)) == b"one" * 9 + b"two" + b"three" * 99


@given(payload=PAYLOADS.filter(len))
def test_the_size_of_an_lz4_block_is_known_before_it_is_decompressed(payload):
    block = pa.compress(payload, "lz4_raw", asbytes=True)
    assert lz4_size(np.frombuffer(block, np.uint8)) == len(payload) == len(naive.lz4(block))
    for end in range(len(block)):
        size = lz4_size(np.frombuffer(block[:end], np.uint8))
        assert size == -1 or size < len(payload)


@pytest.mark.parametrize(
    ("codec", "raw", "told"),
    [
        (Codec.GZ, b"\0\0", "header"),
        (Codec.ZSTD, b"\0\0", "ZSTD"),
        (Codec.SNAPPY, b"\0\0", "a size that is cut off"),
        (Codec.SNAPPY, struct.pack(">i", -1), "a size of -1"),
        (Codec.SNAPPY, struct.pack(">i", 2**30), "1073741824 bytes instead of 10"),
        (Codec.SNAPPY, struct.pack(">ii", 5, 100), "a chunk that is cut off"),
        (Codec.SNAPPY, struct.pack(">ii", 5, 1) + b"\x80", "without a size"),
        (Codec.SNAPPY, struct.pack(">ii", 5, 1) + b"\x09", "a chunk of 9 bytes where 5 are left"),
        (Codec.SNAPPY, struct.pack(">ii", 5, 2) + b"\x05\xff", "Snappy|snappy"),
        (Codec.LZ4, struct.pack(">ii", 5, 1) + b"\xf0", "a chunk of -1 bytes"),
        (Codec.LZ4, struct.pack(">ii", 5, 4) + b"\x00\x09\x00\x00", "LZ4|Lz4|lz4"),
        (Codec.LZ4, struct.pack(">ii", 5, 0), "a chunk of -1 bytes"),
    ],
)
def test_bytes_that_no_codec_wrote_are_refused(codec, raw, told):
    with pytest.raises(ValueError, match=told):
        decompress(codec, memoryview(raw), 10)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("count", [500, pytest.param(100_000, marks=pytest.mark.long)])
def test_damaged_payloads_give_bytes_or_an_error(codec, count):
    seeds = [naive.compressed(parts, codec) for parts in ([b"abc" * 100], [b"x" * 50, b"hudi"], [b"\1\2\3"])]
    for at in range(count):
        raw = mutated(seeds, random.Random(at))
        plain = random.Random(-at).choice((3, 54, 300))
        try:
            found = decompress(codec, memoryview(raw), plain)
        except ValueError:
            continue
        assert len(found) <= plain + 1
