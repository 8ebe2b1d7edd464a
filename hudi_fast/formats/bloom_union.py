"""Union of the bloom filters of several files, without rehashing keys.

A key is in a filter if all its bits are set in one row. The rows of several dynamic filters are combined in one filter.
If the keys of two rows fit into one row, their bits are merged, so the union is as large as a filter built from the
same keys. Beyond the maximum number of rows, further rows are merged round-robin, in the same way as a full filter adds
keys.
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
    """The union of filters, read one at a time.

    Args:
        filters: the filters, which are not modified.
        like: an empty filter that defines the maximum size of the union.

    Returns:
        None if there are no filters, or if one differs from ``like`` in hash, row size or keys per row.
    """
    if like.type_code != DYNAMIC_V0:
        return _joined(filters, like)
    limit = max(-(-like.max_entries // like.entries), 1)
    rows: list[Bits] = []
    counts: list[int] = []
    total = 0
    for one in filters:
        if _parameters(one) != _parameters(like):
            return None
        for number, row in enumerate(one.rows):
            count = like.entries if number + 1 < len(one.rows) else one.added
            place = next((at for at, there in enumerate(counts) if there + count <= like.entries), None)
            if place is None and len(rows) < limit:
                rows.append(row.copy())
                counts.append(count)
            else:
                place = total // like.entries % limit if place is None else place
                rows[place] |= row
                counts[place] += count
            total += count
    if not rows:
        return None
    order = sorted(range(len(rows)), key=lambda at: counts[at], reverse=True)  # all rows but the last count as full
    added = counts[order[-1]] if counts[order[0]] <= like.entries else max(total - (limit - 1) * like.entries, 0)
    joined = np.stack([rows[at] for at in order])
    return BloomFilter(DYNAMIC_V0, like.bit_count, like.hash_count, joined, like.entries, like.max_entries, added)


def _joined(filters: Iterable[BloomFilter], like: BloomFilter) -> BloomFilter | None:
    """A filter of one row, which does not store the number of its keys."""
    rows: Bits | None = None
    for one in filters:
        if _parameters(one) != _parameters(like):
            return None
        rows = one.rows.copy() if rows is None else np.bitwise_or(rows, one.rows, out=rows)
    return None if rows is None else BloomFilter(like.type_code, like.bit_count, like.hash_count, rows)


def _parameters(one: BloomFilter) -> tuple[str, int, int, int]:
    return one.type_code, one.bit_count, one.hash_count, one.entries
