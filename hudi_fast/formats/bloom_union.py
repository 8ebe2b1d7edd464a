"""Bloom filters of several files as one, without hashing a key again.

A key is in a filter if all its bits are set in one row. Rows of several dynamic filters are put together in one; where
the keys of two fit into one row together their bits are joined, so that the union is as large as a filter made of the
same keys would be. Beyond the largest number of rows they are joined in turn, as full filters take further keys.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from hudi_fast.formats.bloom_filter import DYNAMIC_V0, BloomFilter

__all__ = ["union_filters"]


Bits: TypeAlias = npt.NDArray[np.uint8]


def union_filters(filters: Iterable[BloomFilter], like: BloomFilter) -> BloomFilter | None:
    """A filter of the keys of all, looked at one by one.

    Args:
        filters: they are left as they are.
        like: a filter without keys, that says how large the union may grow.

    Returns:
        None if there are none, or one of them does not hash as ``like`` does, in rows of that size for as many keys.
    """
    if like.type_code != DYNAMIC_V0:
        return _joined(filters, like)
    most = max(-(-like.max_entries // like.entries), 1)
    rows: list[Bits] = []
    counts: list[int] = []
    total = 0
    for one in filters:
        if _parameters(one) != _parameters(like):
            return None
        for number, row in enumerate(one.rows):
            count = like.entries if number + 1 < len(one.rows) else one.added
            place = next((at for at, there in enumerate(counts) if there + count <= like.entries), None)
            if place is None and len(rows) < most:
                rows.append(row.copy())
                counts.append(count)
            else:
                place = total // like.entries % most if place is None else place
                rows[place] |= row
                counts[place] += count
            total += count
    if not rows:
        return None
    order = sorted(range(len(rows)), key=lambda at: counts[at], reverse=True)  # rows before the last one count as full
    added = counts[order[-1]] if counts[order[0]] <= like.entries else max(total - (most - 1) * like.entries, 0)
    joined = np.stack([rows[at] for at in order])
    return BloomFilter(DYNAMIC_V0, like.bit_count, like.hash_count, joined, like.entries, like.max_entries, added)


def _joined(filters: Iterable[BloomFilter], like: BloomFilter) -> BloomFilter | None:
    """A filter of one row, which does not say how many keys it has."""
    rows: Bits | None = None
    for one in filters:
        if _parameters(one) != _parameters(like):
            return None
        rows = one.rows.copy() if rows is None else np.bitwise_or(rows, one.rows, out=rows)
    return None if rows is None else BloomFilter(like.type_code, like.bit_count, like.hash_count, rows)


def _parameters(one: BloomFilter) -> tuple[str, int, int, int]:
    return one.type_code, one.bit_count, one.hash_count, one.entries
