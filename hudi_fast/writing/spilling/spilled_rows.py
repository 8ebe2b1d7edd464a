"""The first pass over a stream: rows are checked, converted, and split in a temporary file.

Rows are split by table partition; or by a hash of the key where the index has to see all rows with one key at once,
because it looks in all partitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.formats.varlen import varlen_buffers
from hudi_fast.kernels.xx_hash import xx_hash64
from hudi_fast.merging.freed_memory import return_freed_bytes
from hudi_fast.writing.prepare import check_rows, columns_for, spooled_form
from hudi_fast.writing.spilling.spill_file import Piece, SpillFile, SpillSettings
from hudi_fast.writing.write_plan import WritePlan

__all__ = ["SpilledRows", "chunks_of", "hashed", "spill_rows", "splits_by_key"]

_HASH_PARTS = 256
_BATCH_ROWS = 1 << 18
_RETURNED = 1 << 29
"""Bytes after which freed memory is returned to the operating system."""


@dataclass(frozen=True)
class SpilledRows:
    """All rows of a write.

    Attributes:
        file: the rows, by the number of their partition or by a hash of their key.
        by_key: whether they are split by key.
        partitions: number of rows by partition path. The number of a partition is its position.
    """

    file: SpillFile
    by_key: bool
    partitions: dict[str, int]

    @property
    def size(self) -> int:
        """Arrow bytes of all rows."""
        return sum(self.file.size(number) for number in self.file.numbers())

    def groups(self, max_bytes: int) -> Iterator[list[int]]:
        """Numbers of the file, grouped so that their rows have at most ``max_bytes``; a larger one is alone."""
        group, size = list[int](), 0
        for number in self.file.numbers():
            more = self.file.size(number)
            if group and size + more > max_bytes:
                yield group
                group, size = [], 0
            group.append(number)
            size += more
        if group:
            yield group

    def table(self, numbers: Iterable[int]) -> pa.Table:
        """The rows of some numbers."""
        return pa.Table.from_batches([batch for number in numbers for batch in self.file.read(number)])


def splits_by_key(plan: WritePlan) -> bool:
    """Whether rows with one key must be in one part, whatever their partitions."""
    return plan.index.is_global and plan.operation in ("upsert", "delete")


def spill_rows(plan: WritePlan, batches: Iterable[pa.RecordBatch], settings: SpillSettings) -> SpilledRows:
    """Check all rows and write them to a temporary file.

    Args:
        plan: the write; its instant is not needed yet.
        batches: the rows.
        settings: memory and folder.

    Raises:
        HudiError: of rows that cannot be written, as for :func:`hudi_fast.writing.prepare.prepare_rows`.
        CommitError: the temporary file cannot be written.
    """
    by_key = splits_by_key(plan)
    names: dict[str, int] = {}
    counts: dict[str, int] = {}
    file, row, unreturned = SpillFile(settings, plan.storage.uri), 0, 0
    try:
        for batch in _cut(batches, settings.chunk_bytes):
            given = batch.select(columns_for(plan, batch.schema.names))
            rows = check_rows(plan, pa.Table.from_batches([given]), row, joins_chunks=False)
            codes, paths = np.asarray(rows.partitions.indices), rows.partitions.dictionary.to_pylist()
            found = np.bincount(codes, minlength=len(paths)).tolist()
            for path, count in zip(paths, found, strict=True):
                names.setdefault(path, len(names))
                counts[path] = counts.get(path, 0) + count
            numbers = np.array([names[path] for path in paths], dtype=np.int64)[codes]
            file.add(spooled_form(plan, given), hashed(rows.key_array(), _HASH_PARTS) if by_key else numbers)
            row += batch.num_rows
            unreturned += batch.nbytes
            del batch, given, rows
            if unreturned >= _RETURNED:
                return_freed_bytes(unreturned)
                unreturned = 0
        file.finish()
    except BaseException:
        file.close()
        raise
    return SpilledRows(file, by_key, counts)


def hashed(keys: pa.Array, parts: int) -> npt.NDArray[np.int64]:
    """A number below ``parts`` for each key, int64[n], equal for equal keys.

    Args:
        keys: string[n], no nulls.
        parts: number of parts.
    """
    buffers = varlen_buffers(keys)
    codes = np.empty(len(keys), dtype=np.uint64)
    xx_hash64(buffers.offsets, buffers.data, np.uint64(0), codes)
    return (codes % np.uint64(parts)).astype(np.int64)


def chunks_of(pieces: Iterable[Piece], max_bytes: int) -> Iterator[pa.Table]:
    """Rows of some pieces in tables of about ``max_bytes``, each column in one chunk."""
    batches, size = list[pa.RecordBatch](), 0
    for piece in pieces:
        for batch in _cut(piece.batches(), max_bytes):
            if batches and size + batch.nbytes > max_bytes:
                yield pa.Table.from_batches(batches).combine_chunks()
                batches, size = [], 0
            batches.append(batch)
            size += batch.nbytes
    if batches:
        yield pa.Table.from_batches(batches).combine_chunks()


def _cut(batches: Iterable[pa.RecordBatch], max_bytes: int) -> Iterator[pa.RecordBatch]:
    """Batches with at most ``max_bytes`` and :data:`_BATCH_ROWS` rows; empty ones are dropped."""
    for batch in batches:
        limit = min(_BATCH_ROWS, max(1, int(batch.num_rows * max_bytes / max(1, batch.nbytes))))
        for start in range(0, batch.num_rows, limit):
            yield batch.slice(start, limit)
