"""What a streamer asks of its source. A class with these methods is a source, wherever it is defined."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Protocol

from hudi_fast.values import dataclass

__all__ = ["Fetched", "Source"]


@dataclass(frozen=True, slots=True)
class Fetched:
    """The rows of one turn.

    Attributes:
        rows: a stream of batches, read once; with Spark as the engine a DataFrame of it; None if there are none.
        position: text after them, from which the next turn continues; None if the source has no positions.
        lag: what was left in the source when the turn was planned, by part of the source: messages by partition, files
            by folder.
    """

    rows: Any
    position: str | None
    lag: Mapping[str, int] = field(default_factory=dict)


class Source(Protocol):
    """Where the rows of a stream come from."""

    def fetch(self, position: str | None, limit: int | None) -> Fetched:
        """The rows after a position. The same position gives the same rows, unless the source lost them.

        Args:
            position: text of an earlier turn; None for a new stream.
            limit: how much to read at most, in the unit of the source: bytes of files, messages of a topic, commits of
                a table; None for the default of the source.

        Raises:
            HudiError: the source cannot be read from there.
        """
        ...

    def committed(self, position: str | None) -> None:
        """Called after the commit of a turn, with the position that it stores."""
        ...

    def close(self) -> None:
        """Give connections back."""
        ...
