"""Hudi's bloom filter, one key, one hash and one byte at a time."""

from __future__ import annotations

import base64
import struct


def murmur(key: bytes, seed: int) -> int:
    """The 32-bit hash of Hudi's bloom filters, as an unsigned int; bytes of the tail are signed."""
    mask, m = 0xFFFFFFFF, 0x5BD1E995
    h = (seed ^ len(key)) & mask
    for at in range(0, len(key) - len(key) % 4, 4):
        k = struct.unpack_from("<I", key, at)[0]
        k = k * m & mask
        k ^= k >> 24
        k = k * m & mask
        h = (h * m & mask) ^ k
    signed = [byte - 256 if byte > 127 else byte for byte in key]
    left = len(key) % 4
    if left == 3:
        h ^= signed[-3] << 16
    if left >= 2:
        h ^= signed[-2] << 8
    if left >= 1:
        h ^= signed[-1]
        h = (h & mask) * m
    h &= mask
    h ^= h >> 13
    h = h * m & mask
    return h ^ (h >> 15)


def bit_positions(key: bytes, bit_count: int, hash_count: int) -> list[int]:
    seed, positions = 0, []
    for _ in range(hash_count):
        seed = murmur(key, seed)
        signed = seed - (1 << 32) if seed >= 1 << 31 else seed
        positions.append(abs(signed) % bit_count)
    return positions


def row_text(keys: list[bytes], bit_count: int, hash_count: int) -> bytes:
    """One serialised row that holds the keys."""
    bits = bytearray((bit_count + 7) // 8)
    for key in keys:
        for position in bit_positions(key, bit_count, hash_count):
            bits[position // 8] |= 1 << position % 8
    return struct.pack(">iibi", -1, hash_count, 1, bit_count) + bytes(bits)


def dynamic_text(keys: list[bytes], bit_count: int, hash_count: int, entries: int, max_entries: int) -> str:
    """A DYNAMIC_V0 filter after the keys were added one by one."""
    rows: list[list[bytes]] = [[]]
    added, full, turn = 0, False, 0
    for key in keys:
        if full:
            rows[turn % len(rows)].append(key)
            turn += 1
        elif added >= entries and len(rows) * entries >= max_entries:
            full = True
            rows[0].append(key)
        else:
            if added >= entries:
                rows.append([])
                added = 0
            rows[-1].append(key)
        added += 1
    head = struct.pack(">iibiiii", -1, hash_count, 1, bit_count, entries, added, len(rows))
    return base64.b64encode(head + b"".join(row_text(row, bit_count, hash_count) for row in rows)).decode()
