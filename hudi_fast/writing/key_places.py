"""The result of key lookups, and the values that lookups by any index share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hudi_fast.index.tagging import SliceMatches
from hudi_fast.view.slices import FileSlice

__all__ = ["KEYS_AT_ONCE", "UNKNOWN_ROW", "UNREADABLE", "KeyPlaces", "places_of_matches", "slice_numbers"]

KEYS_AT_ONCE = 1 << 20
"""Keys per lookup. Each lookup may read all keys of the slices, or every block of a file group of the index."""

UNREADABLE = -2
"""The slice of rows whose index or partition could not be read."""

UNKNOWN_ROW = -2
"""Replaces an unknown row number in a base file: the task that writes the row looks its key up in the file."""

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class KeyPlaces:
    """The slices that hold the keys of rows. The arrays have one element per pair of a row and a slice with its key.

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

    def spread(self, first_equal: npt.NDArray[np.integer[Any]]) -> KeyPlaces:
        """The places of all rows, from the places of the first row with each key, which ascend by row.

        Args:
            first_equal: int[n], for each row the first one with its key.
        """
        held = np.bincount(self.rows, minlength=len(first_equal))
        first = np.cumsum(held) - held
        lengths = held[first_equal]
        within = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        found = self.take(np.repeat(first[first_equal], lengths) + within)
        return KeyPlaces(np.repeat(np.arange(len(first_equal)), lengths), found.slices, found.stored)

    @classmethod
    def in_slices(cls, rows: Ints, slices: Ints) -> KeyPlaces:
        """Places with unknown row numbers in the base file."""
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


def places_of_matches(matches: Sequence[SliceMatches], numbers: Mapping[tuple[str, str], int]) -> KeyPlaces:
    """The matches as places, ascending by incoming row, with one place for a key that a file has several times."""
    places = KeyPlaces.joined(
        [
            KeyPlaces(
                one.incoming_rows,
                np.full(len(one.incoming_rows), numbers[one.slice.partition, one.slice.file_id], dtype=np.int64),
                one.base_rows,
            )
            for one in matches
        ]
    )
    places = places.take(np.argsort(places.rows, kind="stable"))
    again = np.zeros(len(places.rows), dtype=np.bool_)
    again[1:] = (places.rows[1:] == places.rows[:-1]) & (places.slices[1:] == places.slices[:-1])
    if not again.any():
        return places
    places.stored[np.flatnonzero(again) - 1] = UNKNOWN_ROW
    return places.take(~again)
