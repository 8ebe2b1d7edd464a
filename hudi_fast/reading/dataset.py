"""A table as a ``pyarrow.dataset``: :class:`Scan` pins the table's state and reads on demand.

::

    duckdb ─ columns, filter ─► Scan.scanner ──────┐
    polars ─ columns, filter ─► Scan.to_batches ───┼─► plan_scan (pinned state) ─► scan_batches ─► record batches
    any Arrow library ────────► __arrow_c_stream__ ┘
    datafusion, processes ────► Scan.splits ─────────► plan_scan ─► Split.read, each apart (hudi_fast.reading.splits)

Engines push columns and filters down into a ``pyarrow.dataset.Dataset``, so a scan is such a dataset. Arrow's
own dataset code would read files directly and could not merge log files. Such access fails, since the file that Arrow
finds cannot be opened (:class:`_NoFiles`). A pushed-down expression compares NaN as its engine does
(:mod:`hudi_fast.expressions.nan_order`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs as pafs

from hudi_fast.errors import UnsupportedFeatureError
from hudi_fast.reading.rows import count_rows, first_batches, first_rows
from hudi_fast.reading.scan import Filter, ScanPlan, ScanQuery, plan_scan, scan_batches, scan_table, whole_scan
from hudi_fast.reading.splits import Columns, ScanRows, Split, scanner_of
from hudi_fast.storage.base import Storage
from hudi_fast.storage.failures import tells_failures, told_while_read
from hudi_fast.view.table_state import TableState

__all__ = ["Scan"]


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
