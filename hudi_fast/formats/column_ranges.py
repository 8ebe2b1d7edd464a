"""What a file holds of each column: smallest and largest value, nulls, sizes (``HoodieColumnRangeMetadata``, 1.2.0).

::

    Parquet footer ── ranges_of_footer ─┐
    rows ─────────── ranges_of_rows ────┼─► {column: ColumnRange} ── merge_ranges ─► that of several files
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

__all__ = ["ColumnRange", "ColumnRanges"]


@dataclass(frozen=True, slots=True)
class ColumnRange:
    """One column of one file. Picklable.

    Attributes:
        low: smallest value, in the column's Arrow type; None when there is none but nulls, or it is not known.
        high: largest value; NaN is larger than all numbers, as Spark has it.
        null_count: nulls.
        value_count: values, nulls among them.
        total_size: bytes of the column in the file; 0 for log files.
        total_uncompressed_size: the same before compression.
    """

    low: pa.Scalar | None
    high: pa.Scalar | None
    null_count: int
    value_count: int
    total_size: int = 0
    total_uncompressed_size: int = 0

    @property
    def is_known(self) -> bool:
        """Whether the bounds say what is in the file: there are some, or there are nulls alone."""
        return self.low is not None or self.null_count >= self.value_count


ColumnRanges: TypeAlias = Mapping[str, ColumnRange]
"""By dotted name, one for each column that the file has."""
