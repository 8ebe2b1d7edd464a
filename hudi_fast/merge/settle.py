"""What incoming rows, or folded log entries, do to the rows of a base file that have their keys."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["BaseChanges"]

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class BaseChanges:
    """What happens to the rows of a base file.

    Attributes:
        replaced: int64[u], ascending rows of the base file that get new values.
        sources: int64[u], the incoming row or log entry that each comes from.
        dropped: int64[d], ascending rows of the base file that go.
        source_wins: bool[u], whether the source is the winner of the two; None when each is. A losing source is there
            only because its columns may fill gaps of the stored row.
        blended: whether new values are made of both rows, so that the stored ones have to be read.
    """

    replaced: Rows
    sources: Rows
    dropped: Rows
    source_wins: npt.NDArray[np.bool_] | None = None
    blended: bool = False
