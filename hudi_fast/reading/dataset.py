"""A table as a ``pyarrow.dataset``, and its counts and first rows.

A table as a ``pyarrow.dataset``: :class:`Scan` pins the table's state and reads on demand.

::

    duckdb ─ columns, filter ─► Scan.scanner ──────┐
    polars ─ columns, filter ─► Scan.to_batches ───┼─► plan_scan (pinned state) ─► scan_batches ─► record batches
    any Arrow library ────────► __arrow_c_stream__ ┘
    datafusion, processes ────► Scan.splits ─────────► plan_scan ─► Split.read, each apart

Engines push columns and filters down into a ``pyarrow.dataset.Dataset``, so a scan is such a dataset. Arrow's
own dataset code would read files directly and could not merge log files. Such access fails, since the file that Arrow
finds cannot be opened (:class:`_NoFiles`). A pushed-down expression compares NaN as its engine does
(:mod:`hudi_fast.expressions.arrow_trees`).

Counts and first rows of a scan, without reading all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, NoReturn, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs as pafs

from hudi_fast.errors import ConfigError, UnsupportedFeatureError
from hudi_fast.expressions.arrow_trees import as_engines_compare
from hudi_fast.merging.log_scan import visible_blocks
from hudi_fast.reading.scan import (
    AskedRows,
    Filter,
    ScanPlan,
    ScanQuery,
    asked_rows,
    expression_of,
    plan_scan,
    scan_batches,
    scan_table,
    whole_scan,
)
from hudi_fast.reading.slice_reader import SliceScan, read_slice
from hudi_fast.storage.base import Storage
from hudi_fast.storage.failures import tells_failures, told_while_read
from hudi_fast.storage.forks import ThreadPool
from hudi_fast.values import dataclass
from hudi_fast.view.base_files import open_base
from hudi_fast.view.slices import FileSlice
from hudi_fast.view.table_state import TableState

__all__ = ["Scan", "Split", "count_rows", "first_batches", "first_rows"]

_FEWEST = 1024
"""Minimum rows of a batch: smaller batches cost more than reading the additional rows."""


def count_rows(plan: ScanPlan) -> int:
    """The number of rows of a scan.

    Without a filter, the rows of a slice that no log file changes are counted from the footer of its base file, and no
    column is decoded. Other slices are read with the columns that the filter and merging need.

    Args:
        plan: the plan of a scan without output columns.
    """
    with ThreadPool(plan.threads) as pool:
        return sum(pool.map(lambda one: _count(plan.scan, one), plan.slices))


def first_rows(plan: ScanPlan, count: int) -> pa.Table:
    """The first rows in the order of the plan's slices; reading stops after them.

    Args:
        plan: the plan of a scan.
        count: number of rows.

    Raises:
        ConfigError: ``count`` is not a number, or negative.
    """
    if not isinstance(count, int) or isinstance(count, bool) or count < 0:
        raise ConfigError(f"head takes a number of rows, 0 or more; got {count!r}.")
    return pa.Table.from_batches(first_batches(plan, count), plan.output)


def first_batches(plan: ScanPlan, count: int) -> Iterator[pa.RecordBatch]:
    """Like :func:`first_rows`, as a stream."""
    plan = replace(plan, scan=replace(plan.scan, batch_rows=max(_FEWEST, min(count, plan.scan.batch_rows))))
    batches = chain.from_iterable(map(plan.read, plan.slices))
    while count and (batch := next(batches, None)) is not None:
        yield batch.slice(0, count)
        count -= min(count, batch.num_rows)


def _count(scan: SliceScan, one: FileSlice) -> int:
    if scan.filter is None and one.base_file is not None and not _is_merged(scan, one):
        with open_base(scan.storage, one.base_file) as reader:
            return reader.num_rows
    return sum(batch.num_rows for batch in read_slice(scan, one))


def _is_merged(scan: SliceScan, one: FileSlice) -> bool:
    """Whether log files may change the rows of the base file."""
    return scan.merge is not None and bool(one.log_files) and bool(visible_blocks(scan.merge, one))


Columns: TypeAlias = Sequence[str] | Mapping[str, pc.Expression] | None
"""Columns that an engine asks for: names, or expressions by the name of their result; None for all."""


@tells_failures
class Scan(ds.FileSystemDataset):  # type: ignore[misc]  # Arrow has no types
    """The rows of a table at one moment, read lazily; each use reads the needed files again.

    Created by :meth:`hudi_fast.HudiTable.scan`. Arrow libraries accept it: ``pyarrow.table(scan)``,
    ``polars.DataFrame(scan)``. duckdb queries it by its variable name, datafusion by ``register_dataset``; both push
    columns and filters down.

    It shows the table as of its creation. Later writes do not change that, until the cleaner deletes files that it
    needs; then create a new scan.
    """

    def __init__(
        self,
        state: TableState,
        columns: Sequence[str] | None = None,
        filter: Filter | None = None,
        query: ScanQuery | None = None,
    ) -> None:
        self._state, self._query = state, query
        self._rows = ScanRows.of(whole_scan(state, columns, query), columns, filter)
        files = pafs.PyFileSystem(_NoFiles(state.storage.uri))
        format_ = ds.ParquetFileFormat()
        super().__init__([format_.make_fragment(_NAME, filesystem=files)], self._rows.schema, format_, filesystem=files)

    def __repr__(self) -> str:
        return f"Scan({self._state.storage.uri!r}, {self._rows.schema.names})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Scan, (self._state, self._rows.columns(None), self._rows.filter, self._query)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._reader(None, None).__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self._rows.schema.__arrow_c_schema__()

    @property
    def _storage(self) -> Storage:
        return self._state.storage

    # ---- rows

    def scanner(self, columns: Columns = None, filter: Filter | None = None, **options: Any) -> ds.Scanner:
        """A scanner of these columns and rows; it can be read once.

        Args:
            columns: names, or expressions by the name of their result; None for all.
            filter: condition of the rows.
            options: Arrow's options for reading files (``batch_size``, ``use_threads`` ...); accepted and ignored.
        """
        return scanner_of(self._rows, self._reader, columns, filter)

    def to_batches(
        self, columns: Columns = None, filter: Filter | None = None, **options: Any
    ) -> Iterator[pa.RecordBatch]:
        """Batches in no particular order; memory is bounded by the file slices in flight. See :meth:`scanner`."""
        batches: Iterator[pa.RecordBatch] = self.scanner(columns, filter).to_batches()
        return batches

    def to_table(self, columns: Columns = None, filter: Filter | None = None, **options: Any) -> pa.Table:
        """All rows as a table; see :meth:`scanner`."""
        if isinstance(columns, Mapping) or self._rows.of_own_names(filter) is not None:
            return self.scanner(columns, filter).to_table()
        return scan_table(self._plan(columns, filter))

    def head(self, num_rows: int, columns: Columns = None, filter: Filter | None = None, **options: Any) -> pa.Table:
        """The first rows, file slice by file slice; reading stops after them."""
        if isinstance(columns, Mapping) or self._rows.of_own_names(filter) is not None:
            return self.scanner(columns, filter).head(num_rows)
        return first_rows(self._plan(columns, filter), num_rows)

    def first_batches(self, num_rows: int, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Like :meth:`head`, as a stream."""
        plan = self._plan(columns, None)
        return told_while_read(first_batches(plan, num_rows), self._storage.uri)

    def take(self, indices: Any, columns: Columns = None, filter: Filter | None = None, **options: Any) -> pa.Table:
        """Rows by their numbers in :meth:`to_table`."""
        return self.to_table(columns, filter).take(indices)

    def count_rows(self, filter: Filter | None = None, **options: Any) -> int:
        """Number of rows, from the footers of base files where possible."""
        if self._rows.of_own_names(filter) is not None:
            return int(self.scanner(None, filter).count_rows())
        return count_rows(self._plan([], filter))

    # ---- parts

    def splits(self, filter: Filter | None = None) -> list[Split]:
        """Parts of the scan, one for each file slice that may hold rows; processes may read each apart from the others.

        Args:
            filter: condition that the readers will also give to :meth:`Split.read`; file slices without a match are
                left out.
        """
        own = self._rows.of_own_names(filter)
        return [Split(self._rows, one) for one in self._plan(None, None if own is not None else filter).slices]

    # ---- other datasets

    def filter(self, expression: Filter) -> Scan:
        """A scan with an additional filter."""
        if self._rows.of_own_names(expression) is not None:
            raise self._refused(f"cannot be filtered by {expression}: name the table's columns in the filter")
        return Scan(self._state, self._rows.columns(None), self._rows.both(expression), self._query)

    def sort_by(self, sorting: Any, **options: Any) -> ds.InMemoryDataset:
        """The rows in memory, sorted like ``pyarrow.Table.sort_by``."""
        return ds.InMemoryDataset(self.to_table().sort_by(sorting, **options))

    def join(self, right_dataset: ds.Dataset, *args: Any, **options: Any) -> ds.InMemoryDataset:
        """The rows joined in memory, like ``pyarrow.Table.join``."""
        return ds.InMemoryDataset(self.to_table().join(right_dataset.to_table(), *args, **options))

    def join_asof(self, right_dataset: ds.Dataset, *args: Any, **options: Any) -> ds.InMemoryDataset:
        """The rows joined in memory, like ``pyarrow.Table.join_asof``."""
        return ds.InMemoryDataset(self.to_table().join_asof(right_dataset.to_table(), *args, **options))

    def get_fragments(self, filter: Filter | None = None) -> Iterator[Split]:
        """The splits, for engines that read a dataset by its fragments; see :meth:`splits`."""
        return iter(self.splits(filter))

    def replace_schema(self, schema: pa.Schema) -> NoReturn:
        """Not supported: columns have the table's types."""
        raise self._refused("has the table's schema; select columns, or cast the result")

    # ----

    def _plan(self, columns: Sequence[str] | None, filter_: Filter | None) -> ScanPlan:
        return plan_scan(self._state, self._rows.columns(columns), self._rows.both(filter_), query=self._query)

    def _reader(self, columns: Sequence[str] | None, filter_: Filter | None) -> pa.RecordBatchReader:
        return scan_batches(self._plan(columns, filter_))

    def _refused(self, why: str) -> UnsupportedFeatureError:
        return UnsupportedFeatureError(f"A scan of {self._state.storage.uri} {why}.")


_NAME = "read-a-scan-by-its-own-methods"


class _NoFiles(pafs.FileSystemHandler):  # type: ignore[misc]
    """The file system of a scan for Arrow: it has one file, which cannot be opened."""

    def __init__(self, uri: str) -> None:
        self.uri = uri

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _NoFiles) and other.uri == self.uri

    __hash__ = None  # type: ignore[assignment]

    def get_type_name(self) -> str:
        """The type name of the file system."""
        return "hudi"

    def normalize_path(self, path: str) -> str:
        """The path, unchanged."""
        return path

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise UnsupportedFeatureError(
            f"Arrow cannot read the files of {self.uri} directly: the rows of a Hudi table are not those of its files. "
            "Use the scan's own to_table(), to_batches() or scanner()."
        )

    copy_file = create_dir = delete_dir = delete_dir_contents = delete_root_dir_contents = delete_file = _refuse
    get_file_info = get_file_info_selector = move = open_input_stream = open_input_file = _refuse
    open_output_stream = open_append_stream = _refuse


# ---- parts of a scan that processes read apart from each other: a split for each file slice
#
# ::
#
#     Scan ── ScanRows: columns and rows of the scan ─► ScanRows.read(columns, filter of an engine) ─► AskedRows
#       └─ splits() ─► Split: ScanRows, one file slice ── pickle ──► another process ─► read() ─► batches
#
# An engine names columns of the scan's result. Its filter is applied to the columns that are read if it fits these, so
# that row groups are skipped; else to the result.


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
