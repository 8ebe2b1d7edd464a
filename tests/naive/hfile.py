"""HFiles: the data blocks of a file one after the other without looking at its index, and small files as Hudi's."""

from __future__ import annotations

import gzip
import struct

HEADER = struct.Struct(">8siiqbii")
SUFFIX = b"\0" + b"\x7f" + b"\xff" * 7 + b"\x04"

Entries = list[tuple[bytes, bytes]]


def read(raw: bytes, end: int, codec: int) -> Entries:
    """All entries of the blocks that begin before ``end``."""
    entries, at = [], 0
    while at < end:
        magic, stored, _, _, _, _, with_header = HEADER.unpack_from(raw, at)
        payload = raw[at + 33 : at + with_header]
        if magic == b"DATABLK*":
            entries += block_entries(gzip.decompress(payload) if codec == 1 else payload)
        at += 33 + stored
    return entries


def block_entries(payload: bytes) -> Entries:
    entries, at = [], 0
    while at < len(payload):
        key_length, value_length, content = struct.unpack_from(">iih", payload, at)
        value_at = at + 8 + key_length
        entries.append((payload[at + 10 : at + 10 + content], payload[value_at : value_at + value_length]))
        at = value_at + value_length + 1
    return entries


def entry(key: bytes, value: bytes) -> bytes:
    return struct.pack(">iih", len(key) + 12, len(value), len(key)) + key + SUFFIX + value + b"\0"


def block(magic: bytes, payload: bytes, codec: int, members: int = 1) -> bytes:
    """A block with one checksum of zeros; its payload in ``members`` gzip members."""
    stored = payload
    if codec == 1:
        step = len(payload) // members + 1
        stored = b"".join(gzip.compress(payload[i : i + step]) for i in range(0, max(len(payload), 1), step))
    return HEADER.pack(magic, len(stored) + 4, len(payload), -1, 0, 1 << 30, 33 + len(stored)) + stored + bytes(4)


def vint(value: int) -> bytes:
    if value < 128:
        return bytes([value])
    body = value.to_bytes((value.bit_length() + 7) // 8, "big")
    return bytes([256 - 112 - len(body)]) + body


def varint(value: int) -> bytes:
    return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + varint(value >> 7)


def inner_index(references: list[tuple[int, int, bytes]]) -> bytes:
    items = [struct.pack(">qi", offset, size) + key for offset, size, key in references]
    ends = [sum(map(len, items[:count])) for count in range(len(items) + 1)]
    return struct.pack(f">{len(items) + 2}i", len(items), *ends) + b"".join(items)


def write(blocks: list[Entries], codec: int = 1, levels: int = 1, fan_out: int = 2, members: int = 1) -> bytes:
    """An HFile with those data blocks and an index of that many levels."""
    out = b""
    references = []

    def add(magic: bytes, payload: bytes, key: bytes) -> tuple[int, int, bytes]:
        nonlocal out
        start = len(out)
        out += block(magic, payload, codec, members)
        return start, len(out) - start, struct.pack(">h", len(key)) + key + SUFFIX

    for entries in blocks:
        payload = b"".join(entry(key, value) for key, value in entries)
        references.append(add(b"DATABLK*", payload, entries[0][0]))
    for level in range(1, levels):
        magic = b"IDXLEAF2" if level == 1 else b"IDXINTE2"
        groups = [references[i : i + fan_out] for i in range(0, len(references), fan_out)]
        references = [add(magic, inner_index(group), group[0][2][2:-10]) for group in groups]
    load_on_open = len(out)
    root = b"".join(struct.pack(">qi", o, s) + vint(len(key)) + key for o, s, key in references)
    add(b"IDXROOT2", root, b"")
    add(b"IDXROOT2", b"", b"")
    pair = b"\x0a\x06schema\x12\x04text"
    add(b"FILEINF2", b"PBUF" + varint(len(pair) + 2) + b"\x0a" + varint(len(pair)) + pair, b"")
    numbers = {2: load_on_open, 5: len(references), 6: 0, 7: sum(map(len, blocks)), 8: levels, 12: codec}
    message = b"".join(varint(field << 3) + varint(value) for field, value in numbers.items())
    trailer = b'TRABLK"$' + varint(len(message)) + message
    return out + trailer.ljust(4092, b"\0") + b"\x03\0\0\x03"
