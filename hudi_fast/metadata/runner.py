"""Sources are read and their records written, group by group: in threads here, as tasks in spark/metadata.py.

::

    sources ─ read ─► EncodedRecords ─ route ─► by (partition, group) ─► sorted by key, one per key ─► GroupWriter

Of several records of a key in one action one stays: a value wins over a delete (the row moved). Two values of a key are
a duplicate in the table where the record index is concerned, which is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.metadata.produce import EncodedRecords, RecordSource
from hudi_fast.timeline.commit_metadata import WriteStat

__all__ = ["GroupWriter", "Runner", "in_threads"]


class GroupWriter(Protocol):
    """Writes the records of one file group of a metadata partition; picklable."""

    def route(self, records: EncodedRecords) -> npt.NDArray[np.int32]:
        """int32[n]: the file group (position among the groups of the partition) of each record."""
        ...

    def write(self, partition: str, group: int, keys: pa.Array, values: pa.Array) -> WriteStat:
        """Write keys (string[n], ascending by bytes, distinct) and values (binary[n], null for a delete)."""
        ...


Runner: TypeAlias = Callable[[Sequence[RecordSource], GroupWriter], list[WriteStat]]
"""Reads all sources and has their records written; one stat for each file group that got some."""


def in_threads(threads: int = 2) -> Runner:
    """A runner that works in threads of this process."""
    raise NotImplementedError
