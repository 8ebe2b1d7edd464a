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
            raise UnsupportedFeatureError("version 0") if raw[at : at + 4] == b"HUDI" else CorruptTableError("no magic")
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
        version, kind = struct.unpack_from(">ii", body)
        if version != 1:
            raise CorruptTableError("version") if version < 0 else UnsupportedFeatureError("version")
        headers, at = metadata(body, 8, len(body) - 12)
        length = struct.unpack_from(">q", body, at)[0]
        end = at + 8 + length
        if length < 0 or end + 4 > len(body):
            raise CorruptTableError("lengths")
        metadata(body, end, len(body))  # bytes after the footers are ignored
    except (struct.error, UnicodeDecodeError) as error:
        raise CorruptTableError(str(error)) from error
    if kind > 6:
        raise UnsupportedFeatureError("type")
    if kind < 0 or kind == 2:
        raise CorruptTableError("type")
    return kind, headers, body[at + 8 : end]


def metadata(body: bytes, at: int, limit: int) -> tuple[dict[int, str], int]:
    """The map of headers or footers at ``at``, and its end."""
    count = struct.unpack_from(">i", body, at)[0]
    if not 0 <= count <= max(0, limit - at - 4) // 8:  # each entry takes eight bytes at least
        raise CorruptTableError("number of entries")
    found, at = {}, at + 4
    for _ in range(count):
        key, length = struct.unpack_from(">ii", body[:limit], at)
        if key > 8:
            raise UnsupportedFeatureError("key")
        text = body[at + 8 : min(at + 8 + length, limit)] if length >= 0 else b""
        if key < 0 or length < 0 or len(text) < length or key in found:
            raise CorruptTableError("entry")
        found[key], at = text.decode(), at + 8 + length
    return found, at
