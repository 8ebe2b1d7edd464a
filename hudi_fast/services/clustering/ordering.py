"""Computes the order of a group's rows: sort columns in, row numbers out.

::

    LINEAR           words of the first column, then of the second ... ─────────────────────────────┐
    ZORDER, HILBERT  a coordinate for each column ─► position on the curve ─► words ────────────────┴─► radix sort
                         DIRECT  its value, the range of the column spread over 64 bits
                         SAMPLE  number of smaller values, in as many steps as the sample has rows

``SAMPLE`` computes exact ranks instead of sampling, because the words of all rows are in memory anyway.

Source: ``SpaceCurveSortingHelper``, ``RangeSampleSort`` (Hudi 1.2.0), whose curves use stored values.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.errors import ConfigError, UnsupportedFeatureError
from hudi_fast.kernels.curves import hilbert_values, z_values
from hudi_fast.kernels.radix import radix_order
from hudi_fast.schema.dotted import dotted_values, find_dotted
from hudi_fast.services.clustering.cluster_work import Ordering
from hudi_fast.services.clustering.sort_keys import coordinate, is_sortable, places, sort_planes

__all__ = ["order_rows", "require_sortable", "sort_roots", "sort_values"]

Rows = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

_ONE_CURVE_BITS = 32
"""Bits of each coordinate that the Hilbert curve uses for several columns; finer cells make no difference."""


def require_sortable(schema: pa.Schema, columns: Sequence[str]) -> None:
    """Refuse a plan that could not be executed.

    Args:
        schema: of the rows.
        columns: sort columns, dotted for nested ones.

    Raises:
        ConfigError: the rows have no such column.
        UnsupportedFeatureError: the type of a column is not sortable.
    """
    for column in columns:
        kind = _found(schema, column)[1]
        if not is_sortable(kind):
            raise UnsupportedFeatureError(
                f"Rows cannot be sorted by {column!r}, whose type is {kind}. Choose other columns for "
                "hoodie.clustering.plan.strategy.sort.columns."
            )


def sort_roots(schema: pa.Schema, columns: Sequence[str]) -> pa.Schema:
    """The top-level columns that contain the sort columns.

    Args:
        schema: of the rows.
        columns: sort columns, dotted for nested ones.

    Raises:
        ConfigError: the rows have no such column.
    """
    names = [_found(schema, column)[0] for column in columns]
    return pa.schema([schema.field(name) for name in dict.fromkeys(names)])


def sort_values(rows: pa.Table, columns: Sequence[str]) -> list[pa.ChunkedArray]:
    """The values of the sort columns, n each; null for a null parent.

    Raises:
        ConfigError: the rows have no such column.
    """
    for column in columns:
        _found(rows.schema, column)
    return [dotted_values(rows, column) for column in columns]


def order_rows(values: Sequence[pa.Array | pa.ChunkedArray], ordering: Ordering) -> Rows:
    """int64[n]: row numbers in the order of the new files; rows with equal values keep their order.

    Args:
        values: of the sort columns, n each.
        ordering: how to order by them.

    Raises:
        UnsupportedFeatureError: the type of a column is not sortable.
    """
    if ordering.curve == "LINEAR" or len(values) == 1:
        planes = [plane for column in values for plane in sort_planes(column)]
        return radix_order(np.concatenate(planes), len(planes))
    sampled = ordering.build == "SAMPLE"
    coordinates = [_sampled(column, ordering.sample_rows) if sampled else coordinate(column) for column in values]
    joined, count = np.concatenate(coordinates), len(coordinates)
    if ordering.curve == "HILBERT":
        return radix_order(hilbert_values(joined, count, _ONE_CURVE_BITS), count)
    return radix_order(z_values(joined, count), count)


def _sampled(values: pa.Array | pa.ChunkedArray, sample_rows: int) -> Words:
    """Which of ``sample_rows`` quantiles each value is in, spread over 64 bits."""
    found = places(values)
    steps = max(min(sample_rows, len(found)), 1)
    step = found * np.uint64(steps) // np.uint64(max(len(found), 1))
    return step << np.uint64(64 - steps.bit_length())


def _found(schema: pa.Schema, column: str) -> tuple[str, pa.DataType]:
    """The top-level column of a sort column, and the type of its values."""
    found = find_dotted(schema, column)
    if found is None:
        raise ConfigError(
            f"There is no column {column!r} to sort by; the table has {', '.join(schema.names)}. Set "
            "hoodie.clustering.plan.strategy.sort.columns to columns of the table, dotted within structs. A pending "
            "clustering with this column can be rolled back."
        )
    return found
