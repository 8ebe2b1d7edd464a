"""Writes the rows of a clustering into new file groups, one file after another.

The planned number of files get equal numbers of rows; the last one takes the rest. A file that reaches its size is
followed by another with the same prefix. Rows keep commit time, sequence number, key and partition path.
"""

from __future__ import annotations

import math
import time
import uuid
from dataclasses import replace
from types import TracebackType

import numpy as np
import pyarrow as pa

from hudi_fast.formats.bloom_filter import BloomFilter
from hudi_fast.formats.varlen import single_chunk
from hudi_fast.services.clustering.rows import GroupInput
from hudi_fast.services.clustering.simple_buckets import new_bucket_prefix
from hudi_fast.timeline.commit_metadata import RuntimeStats, WriteStat
from hudi_fast.writing.file_columns import RECORD_KEY, CarriedColumns
from hudi_fast.writing.key_footer import KeyFooter
from hudi_fast.writing.output_file import OutputFile
from hudi_fast.writing.write_plan import PART_ROWS, FileGroupWork, TaskToken

__all__ = ["NewFiles", "new_stat"]

_NO_ROWS = np.zeros(0, dtype=np.int64)
_FEWEST_ROWS = 100
_LOOKS = 16
"""How often the size of a growing file is checked."""


def new_stat(source: GroupInput, file_id: str, path: str, rows: int, size: int, started: float) -> WriteStat:
    """The write statistics of a new file group of a clustering.

    Args:
        source: the group of its rows.
        file_id: of the new file group.
        path: its base file.
        rows: number of rows.
        size: bytes of the file.
        started: :func:`time.monotonic` at its start.
    """
    return WriteStat(
        file_id=file_id,
        path=path,
        prev_commit="null",
        partition_path=source.partition,
        num_writes=rows,
        num_inserts=rows,
        total_write_bytes=size,
        file_size=size,
        runtime_stats=RuntimeStats(total_create_time=int((time.monotonic() - started) * 1000)),
    )


class NewFiles:
    """Writes rows into new files; a context manager that deletes unfinished files after an error.

    Args:
        source: the group that is rewritten.
        token: the task that writes.
        rows: the expected number; 0 if unknown.
        known_keys: a filter that holds all keys; None to build filters from the keys of each file.
    """

    def __init__(self, source: GroupInput, token: TaskToken, rows: int, known_keys: BloomFilter | None = None) -> None:
        self._source, self._token, self._known_keys = source, token, known_keys
        sizing = source.work.plan.files.sizing
        self._max_rows = math.inf if source.work.keeps_buckets else sizing.max_file_rows
        self._share = math.ceil(rows / source.output_groups) if rows else math.inf
        self._stats: list[WriteStat] = []
        self._begun = 0  # shares
        self._suffix = 0
        self._prefix = ""
        self._left = 0.0  # rows until the next share begins
        self._file: _NewFile | None = None

    def write(self, rows: pa.Table) -> None:
        """Append rows of the carried columns."""
        target, limit = self._source.work.target_bytes, self._max_rows
        at_once = _rows_at_once(rows, target)
        at = 0
        while at < rows.num_rows:
            if not self._left:
                self._begin_share()
            if self._file is None:
                file_id = f"{self._prefix}-{self._suffix}"
                self._file = _NewFile(self._source, file_id, self._token, self._known_keys)
                self._suffix += 1
            part = rows.slice(at, int(min(at_once, self._left, limit - self._file.output.rows)))
            self._file.write(part)
            at += part.num_rows
            self._left -= part.num_rows
            if self._file.output.rows == limit or self._file.output.is_full(target):
                self._finish_file()

    def finish(self) -> list[WriteStat]:
        """Close the last file; returns the write statistics."""
        self._finish_file()
        return self._stats

    def __enter__(self) -> NewFiles:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.output.__exit__(kind, error, trace)

    def _begin_share(self) -> None:
        self._finish_file()
        self._begun += 1
        self._left = self._share if self._begun < self._source.output_groups else math.inf
        keeps, slices = self._source.work.keeps_buckets, self._source.slices
        self._prefix = new_bucket_prefix(slices[0].file_id) if keeps else str(uuid.uuid4())
        self._suffix = 0

    def _finish_file(self) -> None:
        if self._file is not None:
            self._stats.append(self._file.finish())
            self._file = None


class _NewFile:
    def __init__(self, source: GroupInput, file_id: str, token: TaskToken, known_keys: BloomFilter | None) -> None:
        self._source, self._file_id, self._started = source, file_id, time.monotonic()
        plan = source.work.plan
        self._stores_keys, self._knows = plan.config.populate_meta_fields, known_keys is not None
        footer = KeyFooter.for_new_file(plan) if known_keys is None else KeyFooter(known_keys, True, True)
        work = FileGroupWork(source.partition, file_id, None, _NO_ROWS, _NO_ROWS, None, _NO_ROWS, token)
        self.output = OutputFile(plan, work, file_id, "CREATE", footer)
        self._carried = CarriedColumns.of(plan, source.partition, self.output.name)

    def write(self, rows: pa.Table) -> None:
        self.output.write(self._carried.complete(rows))
        if self._stores_keys and self._knows:
            self.output.footer.carry(rows.column(RECORD_KEY))
        elif self._stores_keys:
            self.output.footer.add(single_chunk(rows.column(RECORD_KEY)))

    def finish(self) -> WriteStat:
        size, output = self.output.close(), self.output
        stat = new_stat(self._source, self._file_id, output.path, output.rows, size, self._started)
        return replace(stat, column_ranges=output.ranges)


def _rows_at_once(rows: pa.Table, target: int) -> int:
    """Rows between two checks of the file's size."""
    bytes_per_row = max(1.0, rows.nbytes / max(1, rows.num_rows))
    return int(min(max(target / _LOOKS / bytes_per_row, _FEWEST_ROWS), PART_ROWS))
