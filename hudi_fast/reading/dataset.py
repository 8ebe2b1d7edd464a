"""A read that others drive: a :class:`Scan` knows the table's state, and reads when it is told columns and filters.

::

    duckdb ─ columns, filter ─► Scan.scanner ──────┐
    polars ─ columns, filter ─► Scan.to_batches ───┼─► plan_scan (pinned state) ─► scan_batches ─► record batches
    anything with Arrow ──────► __arrow_c_stream__ ┘

duckdb and polars push what a query asks for into a ``pyarrow.dataset.Dataset``, so a scan is one. Arrow's own code
would look for files behind it: log files are nothing that it could merge. What it does by itself, and not through the
methods here, ends in an error that says so, for the file that it finds cannot be opened (:class:`_NoFiles`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs as pafs

from hudi_fast.errors import UnsupportedFeatureError
from hudi_fast.reading.scan import ScanPlan, ScanQuery, plan_scan, scan_batches, scan_table
from hudi_fast.view.table_state import TableState

__all__ = ["Scan"]

Columns = Sequence[str] | Mapping[str, pc.Expression] | None


class Scan(ds.FileSystemDataset):  # type: ignore[misc]  # Arrow has no types
    """Rows of a table at one moment, not read yet; each use reads anew, and what it does not ask for is not read.

    Made by :meth:`hudi_fast.HudiTable.scan`. Whoever takes Arrow takes it: ``pyarrow.table(scan)``,
    ``polars.DataFrame(scan)``; duckdb queries it by the name of its variable and polars through
    ``polars.scan_pyarrow_dataset(scan)``, and both hand columns and filters down.

    It shows the table as it was when it was made. Later writes do not change that, until the cleaner removes files that
    it needs: then make another.
    """

    def __init__(
        self,
        state: TableState,
        columns: Sequence[str] | None = None,
        filter: pc.Expression | None = None,
        query: ScanQuery | None = None,
    ) -> None:
        self._state, self._query, self._filter = state, query, filter
        self._output = plan_scan(state, columns, filter, query=query).scan.output
        files = pafs.PyFileSystem(_NoFiles(state.storage.uri))
        format_ = ds.ParquetFileFormat()
        super().__init__([format_.make_fragment(_NAME, filesystem=files)], self._output, format_, filesystem=files)

    def __repr__(self) -> str:
        return f"Scan({self._state.storage.uri!r}, {self._output.names})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Scan, (self._state, self._output.names, self._filter, self._query)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._reader(None, None).__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self._output.__arrow_c_schema__()

    # ---- rows

    def scanner(self, columns: Columns = None, filter: pc.Expression | None = None, **options: Any) -> ds.Scanner:
        """A scanner of these columns and rows; it reads once.

        Args:
            columns: names, or expressions by the name of their result; None for all.
            filter: which rows.
            options: how Arrow would read files (``batch_size``, ``use_threads`` ...): for a dataset's sake, no effect.
        """
        if isinstance(columns, Mapping):
            reader = self._reader(None, filter)
            return ds.Scanner.from_batches(reader, columns=dict(columns))
        return ds.Scanner.from_batches(self._reader(columns, filter))

    def to_batches(
        self, columns: Columns = None, filter: pc.Expression | None = None, **options: Any
    ) -> Iterator[pa.RecordBatch]:
        """Batches in no particular order, in memory bounded by the file slices in flight; see :meth:`scanner`."""
        yield from self.scanner(columns, filter).to_batches()

    def to_table(self, columns: Columns = None, filter: pc.Expression | None = None, **options: Any) -> pa.Table:
        """All rows at once; see :meth:`scanner`."""
        if isinstance(columns, Mapping):
            return self.scanner(columns, filter).to_table()
        return scan_table(self._plan(columns, filter))

    def head(
        self, num_rows: int, columns: Columns = None, filter: pc.Expression | None = None, **options: Any
    ) -> pa.Table:
        """The first rows that come; reading stops then."""
        return self.scanner(columns, filter).head(num_rows)

    def take(
        self, indices: Any, columns: Columns = None, filter: pc.Expression | None = None, **options: Any
    ) -> pa.Table:
        """Rows by their numbers in :meth:`to_table`."""
        return self.to_table(columns, filter).take(indices)

    def count_rows(self, filter: pc.Expression | None = None, **options: Any) -> int:
        """How many rows there are."""
        return sum(batch.num_rows for batch in self._reader([], filter))

    # ---- other datasets

    def filter(self, expression: pc.Expression) -> Scan:
        """The same with fewer rows."""
        return Scan(self._state, self._output.names, self._both(expression), self._query)

    def sort_by(self, sorting: Any, **options: Any) -> ds.InMemoryDataset:
        """The rows in memory, sorted as by ``pyarrow.Table.sort_by``."""
        return ds.InMemoryDataset(self.to_table().sort_by(sorting, **options))

    def join(self, right_dataset: ds.Dataset, *args: Any, **options: Any) -> ds.InMemoryDataset:
        """The rows joined in memory, as by ``pyarrow.Table.join``."""
        return ds.InMemoryDataset(self.to_table().join(right_dataset.to_table(), *args, **options))

    def join_asof(self, right_dataset: ds.Dataset, *args: Any, **options: Any) -> ds.InMemoryDataset:
        """The rows joined in memory, as by ``pyarrow.Table.join_asof``."""
        return ds.InMemoryDataset(self.to_table().join_asof(right_dataset.to_table(), *args, **options))

    def get_fragments(self, filter: pc.Expression | None = None) -> NoReturn:
        """Refused: what a table consists of is not what its rows are."""
        raise self._refused("lists no fragments; HudiTable.files() lists file slices")

    def replace_schema(self, schema: pa.Schema) -> NoReturn:
        """Refused: columns have the table's types."""
        raise self._refused("has the table's schema; name columns, or cast what comes out")

    # ----

    def _plan(self, columns: Sequence[str] | None, filter_: pc.Expression | None) -> ScanPlan:
        wanted = self._output.names if columns is None else columns
        return plan_scan(self._state, wanted, self._both(filter_), query=self._query)

    def _reader(self, columns: Sequence[str] | None, filter_: pc.Expression | None) -> pa.RecordBatchReader:
        return scan_batches(self._plan(columns, filter_))

    def _both(self, filter_: pc.Expression | None) -> pc.Expression | None:
        if filter_ is None or self._filter is None:
            return self._filter if filter_ is None else filter_
        return self._filter & filter_

    def _refused(self, why: str) -> UnsupportedFeatureError:
        return UnsupportedFeatureError(f"A scan of {self._state.storage.uri} {why}.")


_NAME = "read-a-scan-by-its-own-methods"


class _NoFiles(pafs.FileSystemHandler):  # type: ignore[misc]
    """Where Arrow looks for the files of a scan: it finds one, which it cannot open."""

    def __init__(self, uri: str) -> None:
        self.uri = uri

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _NoFiles) and other.uri == self.uri

    __hash__ = None  # type: ignore[assignment]

    def get_type_name(self) -> str:
        """Arrow's word for the kind of file system."""
        return "hudi"

    def normalize_path(self, path: str) -> str:
        """As it is."""
        return path

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise UnsupportedFeatureError(
            f"Arrow cannot scan {self.uri} by itself: a Hudi table is not the files that it consists of. Read the scan "
            "with its own to_table(), to_batches() or scanner()."
        )

    copy_file = create_dir = delete_dir = delete_dir_contents = delete_root_dir_contents = delete_file = _refuse
    get_file_info = get_file_info_selector = move = open_input_stream = open_input_file = _refuse
    open_output_stream = open_append_stream = _refuse
