"""HFiles: the data blocks of a file one after the other without looking at its index, and small files as Hudi's."""

from __future__ import annotations

import gzip
import struct

import pyarrow as pa

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
            entries += block_entries(decompressed(payload, codec))
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


def compressed(parts: list[bytes], codec: int) -> bytes:
    """The payload that has these parts, as Hadoop's codec of that number writes it."""
    if codec == 2:
        return b"".join(parts)
    if codec == 1:
        return b"".join(gzip.compress(part) for part in parts)
    if codec == 6:
        return bytes(pa.compress(b"".join(parts), "zstd", asbytes=True))
    chunks = [pa.compress(part, {3: "snappy", 4: "lz4_raw"}[codec], asbytes=True) for part in parts if part]
    size = struct.pack(">i", sum(map(len, parts)))
    return size + b"".join(struct.pack(">i", len(chunk)) + chunk for chunk in chunks)


def decompressed(stored: bytes, codec: int) -> bytes:
    """The payload of a block; Snappy and LZ4 byte by byte."""
    if codec in (1, 2):
        return gzip.decompress(stored) if codec == 1 else stored
    if codec == 6:
        return bytes(pa.CompressedInputStream(pa.BufferReader(stored), "zstd").read())
    out, at, due = bytearray(), 0, 0
    while at < len(stored):
        size, at = struct.unpack_from(">i", stored, at)[0], at + 4
        if len(out) == due:
            due += size
        else:
            out += {3: snappy, 4: lz4}[codec](stored[at : at + size])
            at += size
    return bytes(out)


def snappy(chunk: bytes) -> bytes:
    """A raw Snappy block: its size, then literals and copies."""
    at, out = next(i for i, byte in enumerate(chunk) if byte < 0x80) + 1, bytearray()
    while at < len(chunk):
        tag, kind, at = chunk[at] >> 2, chunk[at] & 3, at + 1
        if kind == 0:
            extra = max(tag - 59, 0)
            length = (int.from_bytes(chunk[at : at + extra], "little") if extra else tag) + 1
            out += chunk[at + extra : at + extra + length]
            at += extra + length
            continue
        width = {1: 1, 2: 2, 3: 4}[kind]
        back, length = int.from_bytes(chunk[at : at + width], "little"), tag + 1
        if kind == 1:
            back, length = back | tag >> 3 << 8, (tag & 7) + 4
        at += width
        for _ in range(length):
            out.append(out[-back])
    return bytes(out)


def lz4(chunk: bytes) -> bytes:
    """A raw LZ4 block: literals and matches in turn."""
    at, out = 0, bytearray()

    def length(first: int) -> int:
        nonlocal at
        total = first
        while first == 15:
            byte, at = chunk[at], at + 1
            total += byte
            if byte < 255:
                break
        return total

    while at < len(chunk):
        token, at = chunk[at], at + 1
        literals = length(token >> 4)
        out += chunk[at : at + literals]
        at += literals
        if at >= len(chunk):
            break
        back, at = int.from_bytes(chunk[at : at + 2], "little"), at + 2
        for _ in range(length(token & 15) + 4):
            out.append(out[-back])
    return bytes(out)


def entry(key: bytes, value: bytes) -> bytes:
    return struct.pack(">iih", len(key) + 12, len(value), len(key)) + key + SUFFIX + value + b"\0"


def block(magic: bytes, payload: bytes, codec: int, members: int = 1) -> bytes:
    """A block with one checksum of zeros; its payload compressed in ``members`` parts."""
    step = len(payload) // members + 1
    stored = compressed([payload[i : i + step] for i in range(0, max(len(payload), 1), step)], codec)
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
