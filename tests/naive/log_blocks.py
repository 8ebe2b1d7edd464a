"""Log files in memory, block by block, from the drawing of their layout."""

from __future__ import annotations

import struct

from hudi_fast.errors import CorruptTableError, UnsupportedFeatureError

MAGIC = b"#HUDI#"


def scan(raw: bytes) -> list[tuple[int, int, dict[int, str], bytes]]:
    """(offset, type, headers, content) of each block; type 2 for a damaged span."""
    blocks, at = [], 0
    while len(raw) - at >= 6:
        if raw[at : at + 6] != MAGIC:
            raise CorruptTableError("no magic")
        end = sound_end(raw, at)
        if end is None:
            found = raw.find(MAGIC, at + 6)
            end = len(raw) if found < 0 else found
            blocks.append((at, 2, {}, raw[at + 6 : end]))
        else:
            blocks.append((at, *inside(raw[at + 14 : end - 8])))
        at = end
    return blocks


def sound_end(raw: bytes, at: int) -> int | None:
    if len(raw) < at + 22:
        return None
    size = struct.unpack_from(">q", raw, at + 6)[0]
    end = at + 14 + size
    if size < 8 or end > len(raw) or struct.unpack_from(">q", raw, end - 8)[0] != size + 6:
        return None
    return end if len(raw) - end < 6 or raw[end : end + 6] == MAGIC else None


def inside(body: bytes) -> tuple[int, dict[int, str], bytes]:
    """Type, headers and content of what stands between a block's two lengths."""
    try:
        version, kind, count = struct.unpack_from(">iii", body)
        if version != 1:
            raise CorruptTableError("version") if version < 0 else UnsupportedFeatureError("version")
        if not 0 <= count <= max(0, len(body) - 24) // 8:  # each header takes eight bytes at least
            raise CorruptTableError("number of headers")
        headers, at = {}, 12
        for _ in range(count):
            key, length = struct.unpack_from(">ii", body, at)
            if key > 8:
                raise UnsupportedFeatureError("header key")
            text = body[at + 8 : at + 8 + length]
            if key < 0 or length < 0 or len(text) < length or key in headers:
                raise CorruptTableError("header")
            headers[key], at = text.decode(), at + 8 + length
        length, footers = struct.unpack_from(">q", body, at)[0], struct.unpack(">i", body[-4:])[0]
    except (struct.error, UnicodeDecodeError) as error:
        raise CorruptTableError(str(error)) from error
    if count < 0 or at + 8 + length + 4 != len(body) or footers:
        raise CorruptTableError("lengths")
    if kind > 6:
        raise UnsupportedFeatureError("type")
    if kind < 0 or kind == 2:
        raise CorruptTableError("type")
    return kind, headers, body[at + 8 : -4]
