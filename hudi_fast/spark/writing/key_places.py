"""Where the keys of rows are stored: what lookups by any index share, and their answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hudi_fast.view.slices import FileSlice

__all__ = ["KEYS_AT_ONCE", "UNKNOWN_ROW", "UNREADABLE", "KeyPlaces", "slice_numbers"]

KEYS_AT_ONCE = 1 << 20
"""Keys of one lookup: each may read all keys of the slices, or every block of a file group of the index."""

UNREADABLE = -2
"""The slice of rows whose index or partition could not be read."""

UNKNOWN_ROW = -2
"""Instead of the number of a row in its base file: the task that writes the row looks the key up in the file."""

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class KeyPlaces:
    """The slices that hold the keys of rows: an element of each array for each slice that holds the key of a row.

    Attributes:
        rows: int64[m], numbers of rows.
        slices: int64[m], numbers of slices, or :data:`UNREADABLE`.
        stored: int64[m], numbers of rows in the base file of the slice; -1 if only its log has the key, or
            :data:`UNKNOWN_ROW`.
    """

    rows: Ints
    slices: Ints
    stored: Ints

    def take(self, chosen: slice | npt.NDArray[Any]) -> KeyPlaces:
        """The chosen elements: a slice, their positions, or a flag for each."""
        return KeyPlaces(self.rows[chosen], self.slices[chosen], self.stored[chosen])

    @classmethod
    def in_slices(cls, rows: Ints, slices: Ints) -> KeyPlaces:
        """Places without the row in the base file."""
        return cls(rows, slices, np.full(len(rows), UNKNOWN_ROW, dtype=np.int64))

    @classmethod
    def joined(cls, parts: Sequence[KeyPlaces]) -> KeyPlaces:
        """All elements of ``parts``."""
        none = [np.zeros(0, dtype=np.int64)]
        return cls(
            np.concatenate(none + [one.rows for one in parts]),
            np.concatenate(none + [one.slices for one in parts]),
            np.concatenate(none + [one.stored for one in parts]),
        )


def slice_numbers(slices: Sequence[FileSlice]) -> dict[tuple[str, str], int]:
    """The position of each slice, by its partition path and file id."""
    return {(one.partition, one.file_id): number for number, one in enumerate(slices)}
