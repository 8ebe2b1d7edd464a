"""Bloom filters of several files as one, without hashing a key again.

A key is in a filter if all its bits are set in one row. Rows of several dynamic filters are put together in one; where
the keys of two fit into one row together their bits are joined, so that the union is as large as a filter made of the
same keys would be. Beyond the largest number of rows they are joined in turn, as full filters take further keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from hudi_fast.formats.bloom_filter import DYNAMIC_V0, BloomFilter

__all__ = ["is_union_possible", "union_filters"]


_Part: TypeAlias = tuple[npt.NDArray[np.uint8], int]
"""A row of a dynamic filter, and the keys in it."""


def is_union_possible(filters: Sequence[BloomFilter], like: BloomFilter) -> bool:
    """Whether all filters hash as ``like`` does, in rows of the same size for as many keys."""
    return all(_parameters(one) == _parameters(like) for one in filters)


def union_filters(filters: Sequence[BloomFilter]) -> BloomFilter:
    """A filter of the keys of all; one or more, of equal parameters.

    It is made for as many keys at most as the first one (:attr:`BloomFilter.max_entries`).
    """
    first = filters[0]
    if first.type_code != DYNAMIC_V0:
        rows = reduce(np.bitwise_or, (one.rows for one in filters))
        return BloomFilter(first.type_code, first.bit_count, first.hash_count, rows)
    parts = _packed([part for one in filters for part in _rows(one)], first.entries)
    most = max(-(-first.max_entries // first.entries), 1)
    if len(parts) > most:
        added = max(sum(count for _, count in parts) - (most - 1) * first.entries, first.entries)
        joined = np.stack([reduce(np.bitwise_or, (row for row, _ in parts[number::most])) for number in range(most)])
    else:
        parts.sort(key=lambda part: part[1], reverse=True)  # all but the last count as full: it is the one with room
        added = parts[-1][1]
        joined = np.stack([row for row, _ in parts])
    return BloomFilter(DYNAMIC_V0, first.bit_count, first.hash_count, joined, first.entries, first.max_entries, added)


def _parameters(one: BloomFilter) -> tuple[str, int, int, int]:
    return one.type_code, one.bit_count, one.hash_count, one.entries


def _rows(one: BloomFilter) -> list[_Part]:
    last = len(one.rows) - 1
    return [(row, one.entries if number < last else one.added) for number, row in enumerate(one.rows)]


def _packed(parts: Sequence[_Part], entries: int) -> list[_Part]:
    """Rows joined as long as no more than ``entries`` keys meet in one."""
    found: list[_Part] = []
    for row, count in parts:
        place = next((number for number, (_, there) in enumerate(found) if there + count <= entries), None)
        if place is None:
            found.append((row, count))
        else:
            found[place] = found[place][0] | row, found[place][1] + count
    return found
