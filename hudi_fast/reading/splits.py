"""Parts of a scan that processes read apart from each other: a :class:`Split` for each file slice.

::

    Scan ── ScanRows: columns and rows of the scan ─► ScanRows.read(columns, filter of an engine) ─► AskedRows
      └─ splits() ─► Split: ScanRows, one file slice ── pickle ──► another process ─► read() ─► batches

An engine names columns of the scan's result. Its filter is applied to the columns that are read if it fits these, so
that row groups are skipped; else to the result. It compares NaN as its engine does
(:mod:`hudi_fast.expressions.nan_order`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from hudi_fast.expressions.nan_order import as_engines_compare
from hudi_fast.reading.scan import AskedRows, Filter, asked_rows, expression_of
from hudi_fast.reading.slice_reader import SliceScan
from hudi_fast.storage.failures import told_while_read
from hudi_fast.view.slices import FileSlice

__all__ = ["Columns", "ScanRows", "Split", "scanner_of"]

Columns: TypeAlias = Sequence[str] | Mapping[str, pc.Expression] | None
"""Columns that an engine asks for: names, or expressions by the name of their result; None for all."""


@dataclass(frozen=True)
class ScanRows:
    """The columns and rows of a scan. Picklable.

    Attributes:
        whole: the scan of all columns and rows of the table.
        asked: the columns of the result by name, each as the caller of the scan wrote it.
        schema: columns of the result.
        filter: condition of the rows; None for all.
    """

    whole: SliceScan
    asked: Mapping[str, str]
    schema: pa.Schema
    filter: pc.Expression | None

    @classmethod
    def of(cls, whole: SliceScan, columns: Sequence[str] | None, filter: Filter | None) -> ScanRows:
        """The columns and rows that the caller of a scan wants.

        Raises:
            ConfigError: a column is unknown, or the filter does not fit the table.
        """
        condition = expression_of(filter, whole.schema)
        schema = asked_rows(whole, columns, condition).output
        names = schema.names if columns is None else columns
        return cls(whole, dict(zip(schema.names, names, strict=True)), schema, condition)

    def read(self, columns: Sequence[str] | None, filter: Filter | None) -> AskedRows:
        """How slices are read for the columns and rows that an engine asks for."""
        return asked_rows(self.whole, self.columns(columns), self.both(filter))

    def columns(self, names: Sequence[str] | None) -> list[str]:
        """The columns of the table for these columns of the result; None for all."""
        return list(self.asked.values()) if names is None else [self.asked.get(name, name) for name in names]

    def both(self, filter: Filter | None) -> pc.Expression | None:
        """The condition of the scan and that of an engine; datafusion passes a constant as a scalar."""
        filter = pc.scalar(filter) if isinstance(filter, pa.BooleanScalar) else filter
        more = expression_of(filter, self.whole.schema)
        if isinstance(filter, pc.Expression):
            more = as_engines_compare(filter, self.schema)
        if more is None or self.filter is None:
            return self.filter if more is None else more
        return self.filter & more

    def of_own_names(self, filter: Filter | None) -> pc.Expression | None:
        """The filter if it uses names that only the scan's result has, so that result rows are filtered; else None."""
        full = self.whole.schema
        if not isinstance(filter, pc.Expression) or all(name in full.names for name in self.asked.values()):
            return None
        hidden = any(name in full.names and name != asked for name, asked in self.asked.items())
        is_own = (hidden or not _fits(filter, full)) and _fits(filter, self.schema)
        return filter if is_own else None


@dataclass(frozen=True)
class Split:
    """The rows of one file slice of a scan. Picklable, to be read in another process or on another machine.

    Created by :meth:`hudi_fast.reading.dataset.Scan.splits`. No two splits of a scan have a row in common. All show the
    table as of the scan's creation; a reader raises :class:`hudi_fast.FileGoneError` if the cleaner has deleted a file
    since.

    Attributes:
        rows: columns and rows of the scan.
        file_slice: the files to read: a base file, and log files that are merged into it.
    """

    rows: ScanRows
    file_slice: FileSlice

    def __repr__(self) -> str:
        one = self.file_slice
        return f"Split({self.rows.whole.storage.uri!r}, partition={one.partition!r}, file_id={one.file_id!r})"

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.read().__arrow_c_stream__(requested_schema)

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return self.rows.schema

    @property
    def partition(self) -> str:
        """The partition path; empty for a table without partitions."""
        return self.file_slice.partition

    @property
    def size(self) -> int:
        """Bytes of its files in storage."""
        return self.file_slice.weight

    def read(self, columns: Sequence[str] | None = None, filter: Filter | None = None) -> pa.RecordBatchReader:
        """The rows, a batch at a time.

        Args:
            columns: columns of the scan; None for all.
            filter: condition of the rows, in addition to that of the scan. Row groups that cannot match are not read.
        """
        own = self.rows.of_own_names(filter)
        if own is not None:
            return self.scanner(columns=columns, filter=own).to_reader()
        asked = self.rows.read(columns, filter)
        batches = told_while_read(asked.read(self.file_slice), self.rows.whole.storage.uri)
        return pa.RecordBatchReader.from_batches(asked.output, batches)

    def scanner(
        self, schema: pa.Schema | None = None, columns: Columns = None, filter: Filter | None = None, **options: Any
    ) -> ds.Scanner:
        """A scanner like that of a ``pyarrow.dataset.Fragment``, for engines that read datasets by their fragments.

        Args:
            schema: columns of the dataset; accepted and ignored.
            columns: names, or expressions by the name of their result; None for all.
            filter: as for :meth:`read`.
            options: Arrow's options for reading files; accepted and ignored.
        """
        return scanner_of(self.rows, self.read, columns, filter)


def scanner_of(
    rows: ScanRows,
    read: Callable[[Sequence[str] | None, Filter | None], pa.RecordBatchReader],
    columns: Columns,
    filter: Filter | None,
) -> ds.Scanner:
    """A scanner of columns and rows of a result; it can be read once.

    Args:
        rows: columns and rows of the scan.
        read: reads columns and rows that the files have.
        columns: names, or expressions by the name of their result; None for all.
        filter: condition of the rows.
    """
    own = rows.of_own_names(filter)
    if own is None and not isinstance(columns, Mapping):
        return _Scanner(read(columns, filter))
    reader = read(None, None if own is not None else filter)
    chosen = dict(columns) if isinstance(columns, Mapping) else rows.schema.names if columns is None else columns

    def computed(batches: Sequence[pa.RecordBatch]) -> ds.Scanner:
        return ds.Scanner.from_batches(batches, schema=reader.schema, columns=chosen, filter=own)

    found = (one for batch in reader for one in computed([batch]).to_table().to_batches())
    return _Scanner(pa.RecordBatchReader.from_batches(computed([]).projected_schema, found))


class _Scanner(ds.Scanner):  # type: ignore[misc]  # Arrow has no types
    """Reads when it is asked, in the thread that asks.

    Arrow's own scanner of a stream reads ahead in a thread of Arrow. If a query ends before the stream does, as with a
    LIMIT, the process could end while that thread is in Python, and then it hangs.
    """

    def __init__(self, reader: pa.RecordBatchReader) -> None:
        self._reader = reader

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._reader.__arrow_c_stream__(requested_schema)

    @property
    def dataset_schema(self) -> pa.Schema:
        """The columns."""
        return self._reader.schema

    projected_schema = dataset_schema

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows as a stream."""
        return self._reader

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, batch by batch."""
        return iter(self._reader)

    def scan_batches(self) -> Iterator[pa.RecordBatch]:
        """The same as :meth:`to_batches`: there are no fragments to tell."""
        return self.to_batches()

    def to_table(self) -> pa.Table:
        """All rows."""
        return self._reader.read_all()

    def head(self, num_rows: int) -> pa.Table:
        """The first rows."""
        found: list[pa.RecordBatch] = []
        while num_rows > 0 and (batch := next(self._reader, None)) is not None:
            found.append(batch.slice(0, num_rows))
            num_rows -= batch.num_rows
        return pa.Table.from_batches(found, self._reader.schema)

    def take(self, indices: Any) -> pa.Table:
        """Rows by their numbers."""
        return self.to_table().take(indices)

    def count_rows(self) -> int:
        """The number of rows."""
        return sum(batch.num_rows for batch in self._reader)


def _fits(filter_: pc.Expression, schema: pa.Schema) -> bool:
    try:
        schema.empty_table().filter(filter_)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        return False
    return True
