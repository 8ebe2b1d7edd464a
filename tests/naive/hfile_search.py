"""Searches in sorted keys, by looking at every key."""

from __future__ import annotations


def java_key(key: bytes) -> bytes:
    """Sorts as Java sorts strings."""
    return key.decode("utf-8", "surrogateescape").encode("utf-16-be", "surrogatepass")


def matches(key: bytes, asked: bytes, prefix: bool) -> bool:
    return key.startswith(asked) if prefix else key == asked


def find(keys: list[bytes], asked: bytes, prefix: bool) -> list[int]:
    """Rows of the keys that match."""
    return [row for row, key in enumerate(keys) if matches(key, asked, prefix)]


def needed_blocks(blocks: list[list[bytes]], asked: bytes, prefix: bool) -> set[int]:
    """Numbers of the blocks that have a match."""
    return {number for number, keys in enumerate(blocks) if find(keys, asked, prefix)}


def unordered(keys: list[bytes], strict: bool) -> int:
    for row in range(1, len(keys)):
        if keys[row] < keys[row - 1] or (strict and keys[row] == keys[row - 1]):
            return row
    return -1


def rare(key: bytes) -> bool:
    return any(byte >= 0xEE for byte in key)
