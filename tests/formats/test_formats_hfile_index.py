"""Indexes of HFiles: root and inner blocks, and keys as they are stored."""

from __future__ import annotations

import struct

import pytest

from hudi_fast.errors import CorruptTableError
from hudi_fast.formats.hfile.blocks import (
    LEAF_INDEX,
    ROOT_INDEX,
    BlockReference,
    Codec,
    HFileContent,
    encode_block,
)
from hudi_fast.formats.hfile.layout import (
    KEY_SUFFIX,
    HFileTrailer,
    data_blocks,
    encode_root,
    full_key,
    index_keys,
    java_order,
    key_content,
    read_root,
)

NOTHING = HFileContent.of(b"", "f.hfile")


def references(*keys: str, size: int = 50) -> list[BlockReference]:
    return [BlockReference(size * number, size, full_key(key.encode())) for number, key in enumerate(keys)]


@pytest.mark.parametrize("length", [0, 1, 127, 128, 255, 256, 70_000])
def test_a_root_index_is_read_as_it_was_written(length: int) -> None:
    entries = [BlockReference(7, 3, b"a"), BlockReference(10, 5, b"k" * length)]
    payload = memoryview(encode_root(entries))
    assert read_root(NOTHING, 0, payload, 2) == entries
    assert read_root(NOTHING, 0, payload, 1) == entries[:1]


def test_missing_entries_and_blocks_out_of_order_are_refused() -> None:
    payload = memoryview(encode_root(references("a", "b")))
    with pytest.raises(CorruptTableError, match="Expected 3 entries"):
        read_root(NOTHING, 0, payload, 3)
    with pytest.raises(CorruptTableError, match="Expected a key"):
        read_root(NOTHING, 0, payload[:-1], 2)
    with pytest.raises(CorruptTableError, match="ascending order"):
        read_root(NOTHING, 0, memoryview(encode_root(references("a", "b")[::-1])), 2)


def test_the_data_blocks_are_found_below_leaf_indexes() -> None:
    blocks = references("a", "b", "c", "d")
    leaves, content = [], b""
    for pair in (blocks[:2], blocks[2:]):
        entries = [struct.pack(">qi", one.offset, one.size) + one.key for one in pair]
        ends = struct.pack(">3i", 0, len(entries[0]), len(entries[0]) + len(entries[1]))
        parts, size = encode_block(LEAF_INDEX, struct.pack(">i", 2) + ends + b"".join(entries), Codec.NONE, -1)
        leaves.append(BlockReference(len(content), size, pair[0].key))
        content += b"".join(map(bytes, parts))
    start = len(content)
    parts, _ = encode_block(ROOT_INDEX, encode_root(leaves), Codec.NONE, -1)
    content += b"".join(map(bytes, parts))
    file = HFileContent.of(content, "f.hfile")
    assert data_blocks(file, HFileTrailer(start, 2, 2, 9, Codec.NONE)) == blocks
    assert data_blocks(file, HFileTrailer(start, 2, 1, 9, Codec.NONE)) == leaves
    assert data_blocks(file, HFileTrailer(start, 0, 1, 0, Codec.NONE)) == []


def test_a_stored_key_has_its_length_and_the_suffix_of_hbase() -> None:
    assert full_key(b"ab") == b"\0\2ab" + KEY_SUFFIX
    assert key_content(full_key(b"ab")) == key_content(b"\0\2ab") == b"ab"
    assert key_content(b"\0\5ab") is None
    assert key_content(b"\0") is None


def test_index_keys_ascend_by_bytes_or_as_java_orders_texts() -> None:
    rare = ["a", "\U00010000", "\uffee"]  # Java orders by UTF-16 units: the surrogates of the second one come first
    assert index_keys(NOTHING, 0, references(*rare)).to_pylist() == [text.encode() for text in rare]
    assert sorted(rare) != rare == sorted(rare, key=lambda text: java_order(text.encode()))
    with pytest.raises(CorruptTableError, match="unsorted"):
        index_keys(NOTHING, 0, references("b", "a"))
    with pytest.raises(CorruptTableError, match="cut off"):
        index_keys(NOTHING, 0, [BlockReference(0, 1, b"\0\5a")])
