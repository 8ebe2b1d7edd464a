"""Rows by group number: a stable counting sort."""

from __future__ import annotations

import numpy as np

from ._arrays import Int, Int32s, Int64s
from ._kernel import kernel

__all__ = ["group_rows"]


@kernel("i8(ri4, wi8, wi8)")
def _group_rows(codes: Int32s, order: Int64s, bounds: Int64s) -> Int:
    """Fill ``order`` and zeroed ``bounds``; return -1, or the position of the first code outside the groups."""
    groups = bounds.size - 1
    for i in range(codes.size):
        code = np.int64(codes[i])
        if code < 0 or code >= groups:
            return i
        bounds[code + 1] += 1
    for group in range(groups):
        bounds[group + 1] += bounds[group]
    following = bounds[:groups].copy()
    for i in range(codes.size):
        code = np.int64(codes[i])
        order[following[code]] = i
        following[code] += 1
    return -1


def group_rows(codes: Int32s, groups: int) -> tuple[Int64s, Int64s]:
    """Row numbers ordered by group, in row order within a group.

    Args:
        codes: int32[n], group of each row, 0..groups-1.
        groups: number of groups.

    Returns:
        int64[n] row numbers, and int64[groups + 1] bounds: group g is ``order[bounds[g]:bounds[g + 1]]``.

    Raises:
        ValueError: a code is outside the groups.
    """
    order = np.empty(codes.size, np.int64)
    bounds = np.zeros(groups + 1, np.int64)
    at = int(_group_rows(codes, order, bounds))
    if at >= 0:
        raise ValueError(f"row {at} has group {codes[at]}; there are {groups} groups")
    return order, bounds
