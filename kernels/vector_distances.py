"""Distances of many vectors to one: cosine, Euclidean, negated dot product. Lower is closer.

Sums are computed in the order of the elements, in doubles (``VectorDistanceUtils``, Hudi 1.2.0). A processor may fuse a
product with its sum, so the last bits of a distance can differ from Hudi's.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ._arrays import Int
from ._kernel import kernel

__all__ = ["COSINE", "DOT_PRODUCT", "L2", "distances"]

COSINE = 0
L2 = 1
DOT_PRODUCT = 2
"""Metrics of :func:`distances`."""

Doubles = npt.NDArray[np.float64]


@kernel("void(rf8, rf8, i8, wf8)")
def distances(vectors: Doubles, query: Doubles, metric: Int, out: Doubles) -> None:
    """Fill ``out`` with the distance of each vector to ``query``.

    The cosine distance is 1 minus the cosine, between 0 and 2; it is 1 where a vector is all zero.

    Args:
        vectors: float64[n * d], the n vectors one after another.
        query: float64[d].
        metric: one of :data:`COSINE`, :data:`L2`, :data:`DOT_PRODUCT`.
        out: float64[n].
    """
    size = query.size
    length = 0.0
    for i in range(size):
        length += query[i] * query[i]
    length = np.sqrt(length)
    for row in range(out.size):
        start = row * size
        dot, norm = 0.0, 0.0
        if metric == L2:
            for i in range(size):
                difference = vectors[start + i] - query[i]
                norm += difference * difference
            out[row] = np.sqrt(norm)
            continue
        for i in range(size):
            dot += vectors[start + i] * query[i]
            norm += vectors[start + i] * vectors[start + i]
        if metric == DOT_PRODUCT:
            out[row] = -dot
            continue
        both = length * np.sqrt(norm)
        if both == 0.0:
            out[row] = 1.0
        else:
            out[row] = min(2.0, max(0.0, 1.0 - dot / both))
