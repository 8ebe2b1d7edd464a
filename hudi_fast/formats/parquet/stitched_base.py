"""A base file with columns from two files and from the name of a folder.

::

    skeleton   meta columns           usually one row group          ─┐
    source     data columns           row groups of its own          ─┼─► batches of all columns, row by row
    folder     partition columns      one value for all rows         ─┘

Row n of the skeleton belongs to row n of the source. Both are streamed: batches follow the source's row groups, and the
skeleton's rows are cut to match. The source is opened on first use; looking up keys does not need it.

Source: ``HoodieBootstrapRelation``, ``BootstrapRecordIterator`` (Hudi 1.2.0).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_fast.errors import CorruptTableError
from hudi_fast.formats.base_file import BaseFileFooter, BaseFileReader
from hudi_fast.storage.base import Storage

__all__ = ["StitchedBaseFile", "folder_scalar"]

_INT32 = 2**31


class StitchedBaseFile(BaseFileReader):
    """An open skeleton together with its source.

    Args:
        skeleton: the open skeleton.
        open_source: opens the source.
        folder: columns in the name of the source's folder; a column of the source takes precedence.

    Raises:
        CorruptTableError: on first use of the source: it is missing, or its number of rows differs from the skeleton's.
    """

    def __init__(
        self, skeleton: BaseFileReader, open_source: Callable[[], BaseFileReader], folder: Mapping[str, str | None]
    ) -> None:
        self.path = skeleton.path
        self._skeleton = skeleton
        self._open_source = open_source
        self._folder = {name: folder_scalar(text) for name, text in folder.items()}
        self._source: BaseFileReader | None = None
        self._columns: pa.Schema | None = None

    @property
    def source(self) -> BaseFileReader:
        """The opened source."""
        if self._source is None:
            source = self._open_source()
            if source.num_rows != self._skeleton.num_rows:
                rows = source.num_rows
                source.close()
                raise CorruptTableError(
                    f"The file {source.path} holds {rows} rows, but {self._skeleton.num_rows} when the table was "
                    "bootstrapped from it: it has been changed since. Restore it.",
                    self.path,
                )
            self._source = source
        return self._source

    @property
    def schema(self) -> pa.Schema:
        """Meta columns, then columns of the source, then columns of its folder."""
        if self._columns is None:
            meta = self._skeleton.schema
            data = [field for field in self.source.schema if field.name not in meta.names]
            named = {field.name for field in data} | set(meta.names)
            folder = [pa.field(name, one.type) for name, one in self._folder.items() if name not in named]
            self._columns = pa.schema([*meta, *data, *folder])
        return self._columns

    def has(self, column: str) -> bool:
        """Whether the file has a column ``column``; does not open the source for columns of the skeleton."""
        return self._skeleton.has(column) or super().has(column)

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return self._skeleton.num_rows

    @property
    def num_row_groups(self) -> int:
        """Number of row groups of the source."""
        return self.source.num_row_groups

    @property
    def metadata(self) -> pq.FileMetaData | None:
        """The footer of the source."""
        return self.source.metadata

    @property
    def location(self) -> tuple[Storage, str]:
        """Location of the source."""
        return self.source.location

    @property
    def parts(self) -> tuple[BaseFileReader, ...]:
        """Skeleton and source."""
        return self._skeleton, self.source

    @property
    def stored_bytes(self) -> int:
        """Bytes of all rows before compression, in both files."""
        return self._skeleton.stored_bytes + self.source.stored_bytes

    @property
    def has_labels(self) -> bool:
        """True: timestamps are numbers with a label in both files."""
        return True

    def footer(self) -> BaseFileFooter:
        """Hudi's footer keys, from the skeleton."""
        return self._skeleton.footer()

    @property
    def has_nan_safe_bounds(self) -> bool:
        """Whether bounds in the source's footer cover all values."""
        return self.source.has_nan_safe_bounds

    def row_group_rows(self) -> list[int]:
        """Number of rows of each row group of the source."""
        return self.source.row_group_rows()

    def read(self, columns: Sequence[str], row_groups: Sequence[int] | None = None) -> pa.Table:
        """Read whole columns, of all or some row groups."""
        meta, data, folder = self._split(columns)
        spans = None if row_groups is None else self._spans(row_groups)
        chosen = self._skeleton.read(meta)
        if spans is not None:
            parts = [chosen.slice(start, end - start) for _, start, end in spans]
            chosen = pa.concat_tables(parts) if parts else chosen.slice(0, 0)
        rows = chosen.num_rows if meta else _count(spans, self.num_rows)
        found = dict(zip(meta, chosen.columns, strict=True))
        if data:
            stored = self.source.read(data, row_groups)
            found |= dict(zip(data, stored.columns, strict=True))
        found |= {name: pa.chunked_array([pa.repeat(self._folder[name], rows)]) for name in folder}
        return pa.table({name: found[name] for name in columns}) if columns else chosen

    def batches(
        self, columns: Sequence[str], batch_rows: int = 65536, row_groups: Sequence[int] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Rows in file order, at most ``batch_rows`` at a time."""
        meta, data, folder = self._split(columns)
        if not data and row_groups is None:
            yield from (
                self._joined(columns, batch, None, folder) for batch in self._skeleton.batches(meta, batch_rows)
            )
            return
        wanted = range(self.num_row_groups) if row_groups is None else row_groups
        skeleton = _Rows(self._skeleton, meta, batch_rows)
        for groups, start, end in self._spans(wanted):
            at = start
            for batch in self._data(data, batch_rows, groups, end - start):
                yield self._joined(columns, skeleton.take(at, batch.num_rows), batch, folder)
                at += batch.num_rows

    def close(self) -> None:
        """Close both files."""
        self._skeleton.close()
        if self._source is not None:
            self._source.close()

    # ---- internals

    def _split(self, columns: Sequence[str]) -> tuple[list[str], list[str], list[str]]:
        """Split into columns of the skeleton, of the source, and of the folder."""
        stored = self._skeleton.schema.names
        meta = [name for name in columns if name in stored]
        if len(meta) == len(columns):
            return meta, [], []
        own = self.source.schema.names
        data = [name for name in columns if name not in stored and (name in own or name not in self._folder)]
        return meta, data, [name for name in columns if name not in meta and name not in data]

    def _spans(self, row_groups: Sequence[int]) -> list[tuple[list[int], int, int]]:
        """Runs of consecutive row groups, each with its first row and the row after its last."""
        bounds = [0]
        for rows in self.row_group_rows():
            bounds.append(bounds[-1] + rows)
        spans: list[tuple[list[int], int, int]] = []
        for group in row_groups:
            if spans and spans[-1][0][-1] + 1 == group:
                groups, start, _ = spans.pop()
                spans.append(([*groups, group], start, bounds[group + 1]))
            else:
                spans.append(([group], bounds[group], bounds[group + 1]))
        return spans

    def _data(self, data: list[str], batch_rows: int, groups: list[int], rows: int) -> Iterator[pa.RecordBatch]:
        """Rows of some row groups of the source; batches without columns if only the number of rows is needed."""
        if data:
            yield from self.source.batches(data, batch_rows, groups)
            return
        bounds = [*range(0, rows, batch_rows), rows]
        for start, end in pairwise(bounds):
            yield pa.RecordBatch.from_struct_array(pa.nulls(end - start, pa.struct([])))

    def _joined(
        self, columns: Sequence[str], meta: pa.RecordBatch, data: pa.RecordBatch | None, folder: Sequence[str]
    ) -> pa.RecordBatch:
        if not columns:
            return meta if data is None else data
        rows = meta.num_rows if data is None else data.num_rows
        found = {name: pa.repeat(self._folder[name], rows) for name in folder}
        for part in (meta, data):
            if part is not None:
                found |= dict(zip(part.schema.names, part.columns, strict=True))
        return pa.record_batch({name: found[name] for name in columns})


class _Rows:
    """Sequential reader of some columns of a file; mutable, used for one read."""

    def __init__(self, reader: BaseFileReader, columns: list[str], batch_rows: int) -> None:
        self._batches = iter(()) if not columns else reader.batches(columns, batch_rows)
        self._empty = not columns
        self._at = 0
        self._left: pa.RecordBatch | None = None

    def take(self, start: int, count: int) -> pa.RecordBatch:
        """``count`` rows from ``start`` on; ``start`` must not be before the end of the previous call."""
        if self._empty:
            return pa.RecordBatch.from_struct_array(pa.nulls(count, pa.struct([])))
        parts: list[pa.RecordBatch] = []
        wanted = count
        while wanted or not parts:
            batch = next(self._batches) if self._left is None else self._left
            skipped = min(start - self._at, batch.num_rows)
            part = batch.slice(skipped, wanted)
            used = skipped + part.num_rows
            self._left = batch.slice(used) if used < batch.num_rows else None
            self._at += used
            start, wanted = start + part.num_rows, wanted - part.num_rows
            if part.num_rows or not wanted:
                parts.append(part)
        return parts[0] if len(parts) == 1 else pa.concat_batches(parts)


def folder_scalar(text: str | None) -> pa.Scalar:
    """The value in a folder's name: a number if the text is the number's canonical form, else the text."""
    if text is not None and text.lstrip("-").isdecimal() and text.isascii() and str(int(text)) == text:
        number = int(text)
        if -_INT32 <= number < _INT32:
            return pa.scalar(number, pa.int32())
        if -(2**63) <= number < 2**63:
            return pa.scalar(number, pa.int64())
    return pa.scalar(text, pa.string())


def _count(spans: list[tuple[list[int], int, int]] | None, rows: int) -> int:
    return rows if spans is None else sum(end - start for _, start, end in spans)
