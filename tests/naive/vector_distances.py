"""Distances between vectors, one at a time (``VectorDistanceUtils``, Hudi 1.2.0)."""

from __future__ import annotations

import math
from collections.abc import Sequence

__all__ = ["distance"]


def distance(metric: str, vector: Sequence[float], query: Sequence[float]) -> float:
    """The distance of a vector to a query: cosine, l2 or dot_product."""
    pairs = list(zip(vector, query, strict=True))
    if metric == "l2":
        return math.sqrt(sum((a - b) ** 2 for a, b in pairs))
    dot = sum(a * b for a, b in pairs)
    if metric == "dot_product":
        return -dot
    norms = math.sqrt(sum(a * a for a in vector)) * math.sqrt(sum(b * b for b in query))
    return 1.0 if norms == 0 else min(2.0, max(0.0, 1 - dot / norms))
