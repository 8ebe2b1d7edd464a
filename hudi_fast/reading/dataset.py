"""A table as a ``pyarrow.dataset``: :class:`Scan` pins the table's state and reads on demand.

::

    duckdb ─ columns, filter ─► Scan.scanner ──────┐
    polars ─ columns, filter ─► Scan.to_batches ───┼─► plan_scan (pinned state) ─► scan_batches ─► record batches
    any Arrow library ────────► __arrow_c_stream__ ┘

duckdb and polars push columns and filters down into a ``pyarrow.dataset.Dataset``, so a scan is such a dataset. Arrow's
own dataset code would read files directly and could not merge log files. Such access fails, since the file that Arrow
finds cannot be opened (:class:`_NoFiles`). A pushed-down expression compares NaN as its engine does
(:mod:`hudi_fast.expressions.nan_order`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs as pafs

from hudi_fast.errors import UnsupportedFeatureError
from hudi_fast.expressions.nan_order import as_engines_compare
from hudi_fast.reading.rows import count_rows, first_rows
from hudi_fast.reading.scan import (
    Filter,
    ScanPlan,
    ScanQuery,
    filter_of,
    output_schema,
    plan_scan,
    readable_schema,
    scan_batches,
    scan_table,
)
from hudi_fast.storage.base import Storage
from hudi_fast.storage.failures import tells_failures
from hudi_fast.view.table_state import TableState

__all__ = ["Scan"]

Columns = Sequence[str] | Mapping[str, pc.Expression] | None


@tells_failures
class Scan(ds.FileSystemDataset):  # type: ignore[misc]  # Arrow has no types
    """The rows of a table at one moment, read lazily; each use reads the needed files again.

    Created by :meth:`hudi_fast.HudiTable.scan`. Arrow libraries accept it: ``pyarrow.table(scan)``,
    ``polars.DataFrame(scan)``. duckdb queries it by its variable name and polars through
    ``polars.scan_pyarrow_dataset(scan)``; both push columns and filters down.

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
        self._state, self._query, self._filter = state, query, filter_of(filter, state)
        self._output = output_schema(state, columns, self._filter, query)
        self._asked = dict(zip(self._output.names, self._output.names if columns is None else columns, strict=True))
        files = pafs.PyFileSystem(_NoFiles(state.storage.uri))
        format_ = ds.ParquetFileFormat()
        super().__init__([format_.make_fragment(_NAME, filesystem=files)], self._output, format_, filesystem=files)

    def __repr__(self) -> str:
        return f"Scan({self._state.storage.uri!r}, {self._output.names})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Scan, (self._state, list(self._asked.values()), self._filter, self._query)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._reader(None, None).__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self._output.__arrow_c_schema__()

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
        own = self._of_own_names(filter)
        if own is None and not isinstance(columns, Mapping):
            return ds.Scanner.from_batches(self._reader(columns, filter))
        reader = self._reader(None, None if own is not None else filter)
        chosen = dict(columns) if isinstance(columns, Mapping) else self._output.names if columns is None else columns
        return ds.Scanner.from_batches(reader, columns=chosen, filter=own)

    def to_batches(
        self, columns: Columns = None, filter: Filter | None = None, **options: Any
    ) -> Iterator[pa.RecordBatch]:
        """Batches in no particular order; memory is bounded by the file slices in flight. See :meth:`scanner`."""
        yield from self.scanner(columns, filter).to_batches()

    def to_table(self, columns: Columns = None, filter: Filter | None = None, **options: Any) -> pa.Table:
        """All rows as a table; see :meth:`scanner`."""
        if isinstance(columns, Mapping) or self._of_own_names(filter) is not None:
            return self.scanner(columns, filter).to_table()
        return scan_table(self._plan(columns, filter))

    def head(self, num_rows: int, columns: Columns = None, filter: Filter | None = None, **options: Any) -> pa.Table:
        """The first rows, file slice by file slice; reading stops after them."""
        if isinstance(columns, Mapping) or self._of_own_names(filter) is not None:
            return self.scanner(columns, filter).head(num_rows)
        return first_rows(self._plan(columns, filter), num_rows)

    def take(self, indices: Any, columns: Columns = None, filter: Filter | None = None, **options: Any) -> pa.Table:
        """Rows by their numbers in :meth:`to_table`."""
        return self.to_table(columns, filter).take(indices)

    def count_rows(self, filter: Filter | None = None, **options: Any) -> int:
        """Number of rows, from the footers of base files where possible."""
        if self._of_own_names(filter) is not None:
            return int(self.scanner(None, filter).count_rows())
        return count_rows(self._plan([], filter))

    # ---- other datasets

    def filter(self, expression: Filter) -> Scan:
        """A scan with an additional filter."""
        if self._of_own_names(expression) is not None:
            raise self._refused(f"cannot be filtered by {expression}: name the table's columns in the filter")
        return Scan(self._state, list(self._asked.values()), self._both(expression), self._query)

    def sort_by(self, sorting: Any, **options: Any) -> ds.InMemoryDataset:
        """The rows in memory, sorted like ``pyarrow.Table.sort_by``."""
        return ds.InMemoryDataset(self.to_table().sort_by(sorting, **options))

    def join(self, right_dataset: ds.Dataset, *args: Any, **options: Any) -> ds.InMemoryDataset:
        """The rows joined in memory, like ``pyarrow.Table.join``."""
        return ds.InMemoryDataset(self.to_table().join(right_dataset.to_table(), *args, **options))

    def join_asof(self, right_dataset: ds.Dataset, *args: Any, **options: Any) -> ds.InMemoryDataset:
        """The rows joined in memory, like ``pyarrow.Table.join_asof``."""
        return ds.InMemoryDataset(self.to_table().join_asof(right_dataset.to_table(), *args, **options))

    def get_fragments(self, filter: Filter | None = None) -> NoReturn:
        """Not supported: the files of a table are not its rows."""
        raise self._refused("lists no fragments; HudiTable.files() lists file slices")

    def replace_schema(self, schema: pa.Schema) -> NoReturn:
        """Not supported: columns have the table's types."""
        raise self._refused("has the table's schema; select columns, or cast the result")

    # ----

    def _plan(self, columns: Sequence[str] | None, filter_: Filter | None) -> ScanPlan:
        wanted = list(self._asked.values()) if columns is None else [self._asked.get(name, name) for name in columns]
        return plan_scan(self._state, wanted, self._both(filter_), query=self._query)

    def _reader(self, columns: Sequence[str] | None, filter_: Filter | None) -> pa.RecordBatchReader:
        return scan_batches(self._plan(columns, filter_))

    def _of_own_names(self, filter_: Filter | None) -> pc.Expression | None:
        """The filter if it uses names that only the scan's result has, so that result rows are filtered; else None."""
        full = readable_schema(self._state)
        if not isinstance(filter_, pc.Expression) or all(name in full.names for name in self._asked.values()):
            return None
        hidden = any(name in full.names and name != asked for name, asked in self._asked.items())
        is_own = (hidden or not _fits(filter_, full)) and _fits(filter_, self._output)
        return filter_ if is_own else None

    def _both(self, filter_: Filter | None) -> pc.Expression | None:
        more = filter_of(filter_, self._state)
        if isinstance(filter_, pc.Expression):
            more = as_engines_compare(filter_, self._output)
        if more is None or self._filter is None:
            return self._filter if more is None else more
        return self._filter & more

    def _refused(self, why: str) -> UnsupportedFeatureError:
        return UnsupportedFeatureError(f"A scan of {self._state.storage.uri} {why}.")


def _fits(filter_: pc.Expression, schema: pa.Schema) -> bool:
    try:
        schema.empty_table().filter(filter_)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        return False
    return True


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
