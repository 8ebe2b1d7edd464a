"""Rows that stay in their batches, read a part at a time: a copy of all of them would need too much memory.

The rows are a table in memory, or in a memory-mapped local file, whose chunks are the batches of the file. Pages of the
file that were read stay resident until they are released, so reading releases them after some bytes. Released pages can
be read again.

::

    parts(rows)  ─► row numbers whose rows have about as many bytes as the caller asks for
    take(part)   ─► these rows, in one chunk: within a batch without a copy, else gathered batch by batch
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.merging.gather import gather

__all__ = ["BatchedRows", "take_rows"]

Rows = npt.NDArray[np.int64]

_RESIDENT = 64 << 20
"""Bytes of batches that are read before their pages are released."""


class BatchedRows:
    """Rows by number.

    Args:
        table: n rows, in batches.
        release: makes the pages of a mapped file leave memory; they remain readable. None for rows in memory.
    """

    def __init__(self, table: pa.Table, release: Callable[[], None] | None = None) -> None:
        self._release = release
        self._schema = table.schema
        self._batches: list[pa.RecordBatch] = table.to_batches()
        lengths = np.array([batch.num_rows for batch in self._batches], dtype=np.int64)
        self._ends = np.cumsum(lengths)
        self._starts = self._ends - lengths
        self._row_bytes = np.array([batch.nbytes for batch in self._batches]) / np.maximum(lengths, 1)
        self._read = 0.0
        if release is not None:
            release()

    def parts(self, rows: Rows, max_rows: int, max_bytes: int) -> Iterator[Rows]:
        """Cut ``rows`` into parts.

        Args:
            rows: int64[n], row numbers in any order.
            max_rows: maximum rows of a part.
            max_bytes: approximate maximum size of a part; a larger row is a part of its own. Each row counts with the
                average size of its batch.
        """
        start = 0
        while start < len(rows):
            ahead = rows[start : start + max_rows]
            sizes = np.cumsum(self._row_bytes[self._batch_of(ahead)])
            count = max(1, int(np.searchsorted(sizes, max_bytes, side="right")))
            yield ahead[:count]
            start += count

    def take(self, rows: Rows, columns: Sequence[str] | None = None) -> pa.Table:
        """The rows with these numbers: int64[n], any order; each column is one chunk.

        Args:
            rows: row numbers.
            columns: names of the columns; None for all.
        """
        names = self._schema.names if columns is None else list(columns)
        if not len(rows):
            return self._schema.empty_table().select(names)
        numbers = self._batch_of(rows)
        order = None if (numbers[1:] >= numbers[:-1]).all() else np.argsort(numbers, kind="stable")
        if order is not None:
            rows, numbers = rows[order], numbers[order]
        cuts = [0, *(np.flatnonzero(numbers[1:] != numbers[:-1]) + 1).tolist(), len(rows)]
        pieces = [
            self._take_from(int(numbers[start]), rows[start:end], names) for start, end in itertools.pairwise(cuts)
        ]
        found = pieces[0] if len(pieces) == 1 else pa.concat_tables(pieces).combine_chunks()
        if order is None:
            return found
        back = np.empty(len(order), dtype=np.int64)
        back[order] = np.arange(len(order))
        return gather(found, back)

    def _take_from(self, number: int, rows: Rows, names: Sequence[str]) -> pa.Table:
        batch = self._batches[number]
        if self._release is not None:
            if self._read > _RESIDENT:
                self._release()
                self._read = 0.0
            self._read += self._row_bytes[number] * batch.num_rows
        return gather(pa.Table.from_batches([batch]).select(names), rows - self._starts[number])

    def _batch_of(self, rows: Rows) -> Rows:
        return np.searchsorted(self._ends, rows, side="right")


def take_rows(
    table: pa.Table, batched: BatchedRows | None, rows: Rows, columns: Sequence[str] | None = None
) -> pa.Table:
    """Rows by number, from one chunk or from batches.

    Args:
        table: all rows.
        batched: the same rows if they are in a mapped file; None for rows in memory.
        rows: int64[n], in any order.
        columns: names of the columns; None for all.
    """
    if batched is not None:
        return batched.take(rows, columns)
    return gather(table if columns is None else table.select(list(columns)), rows)
