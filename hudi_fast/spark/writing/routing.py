"""Sends rows to exact shuffle partitions, on every supported Spark.

Spark's ``repartition(n, column)`` puts a row into partition ``pmod(murmur3(column), n)``. A column with an integer that
hashes to a partition therefore addresses it (``Murmur3_x86_32`` with seed 42, as in Spark's ``HashPartitioning``).
"""

from __future__ import annotations

import heapq
import struct
from collections.abc import Mapping

import mmh3

__all__ = ["addresses", "pack_bins"]

_SPARK_SEED = 42


def addresses(partitions: int) -> list[int]:
    """For each of ``partitions`` shuffle partitions an int32 that Spark hashes into it."""
    found: dict[int, int] = {}
    candidate = 0
    while len(found) < partitions:
        hashed = mmh3.hash(struct.pack("<i", candidate), _SPARK_SEED, signed=True)
        found.setdefault(hashed % partitions, candidate)
        candidate += 1
    return [found[number] for number in range(partitions)]


def pack_bins(weights: Mapping[str, int], bins: int) -> dict[str, int]:
    """Distribute named weights to bins of about equal sum: heaviest first, always to the lightest bin.

    Deterministic: equal weights are taken by name.
    """
    loads = [(0, number) for number in range(bins)]
    chosen: dict[str, int] = {}
    for name, weight in sorted(weights.items(), key=lambda item: (-item[1], item[0])):
        load, number = heapq.heappop(loads)
        chosen[name] = number
        heapq.heappush(loads, (load + max(weight, 1), number))
    return chosen
