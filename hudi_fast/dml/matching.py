"""Matches rows of the table and of the source: a hash join of row numbers, then the remaining condition."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.dml.expressions import true_of
from hudi_fast.dml.statement import MergeSpec
from hudi_fast.merging.gather import gather

__all__ = ["Pairs", "beside", "match_rows"]

Rows = npt.NDArray[np.int64]

_CROSSED = 1 << 20
"""Pairs evaluated together in a merge without equal columns."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """Pairs of matched rows.

    Attributes:
        target: int64[m], rows of the table.
        source: int64[m], rows of the source.
    """

    target: Rows
    source: Rows


def match_rows(target: pa.Table, source: pa.Table, spec: MergeSpec, condition: pc.Expression | None) -> Pairs:
    """The matching pairs of rows, in the order of the table's rows.

    Args:
        target: rows of the table.
        source: rows of the source; its join columns have the table's types.
        spec: the merge.
        condition: condition in addition to the equal columns.

    Raises:
        ConfigError: the condition does not fit the columns.
    """
    found = []
    for pairs in _joined(target, source, spec) if spec.pairs else _crossed(target.num_rows, source.num_rows):
        if condition is not None and len(pairs.target):
            kept = true_of(condition, beside(target, source, pairs, spec), "on")
            pairs = Pairs(pairs.target[kept], pairs.source[kept])
        found.append(pairs)
    rows = np.concatenate([one.target for one in found] or [np.zeros(0, dtype=np.int64)])
    sources = np.concatenate([one.source for one in found] or [np.zeros(0, dtype=np.int64)])
    order = np.lexsort((sources, rows))
    return Pairs(rows[order], sources[order])


def beside(target: pa.Table, source: pa.Table, pairs: Pairs, spec: MergeSpec) -> pa.Table:
    """The columns of both rows of each pair, with the prefixes used in conditions and values."""
    left, right = gather(target, pairs.target), gather(source, pairs.source)
    names = [
        f"{alias}.{name}" for alias, one in zip(spec.aliases, (left, right), strict=True) for name in one.column_names
    ]
    return pa.table([*left.columns, *right.columns], names=names)


def _joined(target: pa.Table, source: pa.Table, spec: MergeSpec) -> Iterator[Pairs]:
    keys = [f"key{number}" for number in range(len(spec.pairs))]
    left = pa.table([_as_compared(target.column(one)) for one, _ in spec.pairs], names=keys)
    right = pa.table([_as_compared(source.column(one)) for _, one in spec.pairs], names=keys)
    left = left.append_column("target", pa.array(np.arange(target.num_rows)))
    right = right.append_column("source", pa.array(np.arange(source.num_rows)))
    found = left.join(right, keys, join_type="inner")
    yield Pairs(found.column("target").to_numpy(), found.column("source").to_numpy())


def _as_compared(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column whose equal values have equal bits, by which Arrow joins: zero has two signs, and NaN many forms."""
    if not pa.types.is_floating(column.type):
        return column
    numbers = pc.add(column.cast(pa.float64()), 0.0)  # a negative zero becomes zero
    return pc.if_else(pc.is_nan(numbers), math.nan, numbers)


def _crossed(targets: int, sources: int) -> Iterator[Pairs]:
    step = max(1, _CROSSED // max(1, sources))
    for first in range(0, targets, step):
        rows = np.arange(first, min(first + step, targets), dtype=np.int64)
        yield Pairs(np.repeat(rows, sources), np.tile(np.arange(sources, dtype=np.int64), len(rows)))
