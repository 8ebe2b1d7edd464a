"""``HudiTable``: queries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

from hudi_fast.errors import ConfigError
from hudi_fast.storage.failures import tells_failures

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from hudi_fast.config.moments import Moment
    from hudi_fast.config.option_names import SnapshotType
    from hudi_fast.merging.rules import Merger
    from hudi_fast.reading.dataset import Scan
    from hudi_fast.reading.incremental.cdc import CdcPlan
    from hudi_fast.reading.scan import Filter, ScanPlan, ScanQuery
    from hudi_fast.storage.base import Storage
    from hudi_fast.view.table_state import TableState

__all__ = ["TableReads"]


@tells_failures
class TableReads:
    """Snapshot, read-optimized and time travel queries of a table; all methods take the same arguments."""

    _storage: Storage
    _merger: Merger | None

    def to_arrow(
        self,
        columns: Sequence[str] | None = None,
        filter: Filter | None = None,
        as_of: Moment | None = None,
        query_type: SnapshotType = "snapshot",
    ) -> pa.Table:
        """The table's rows, meta columns first.

        Args:
            columns: columns to read, in this order; None for all. Names are in upper or lower case, and ``s.x`` is the
                field ``x`` of the struct ``s``. As in Spark, a column of the result has the name as written; a field
                has the last part of its name.
            filter: keeps the rows for which it is true: SQL text (``"fare > 5 and city = 'Oslo'"``), or a
                ``pyarrow.compute`` expression.
            as_of: time to travel to: an instant (``20240101120000000``), a date and time (``2024-01-01 12:00:00``,
                ``2024-01-01T12:00:00+01:00``), a ``datetime`` with or without zone, a ``date``, or seconds (10 digits)
                or milliseconds (13 digits) since 1970; see docs/time-travel.md.
            query_type: ``snapshot``, or ``read_optimized``: only the base files; log files are ignored.

        Raises:
            UnsupportedFeatureError: the merge mode of the table is not supported.
            ConfigError: unknown column or query type, or an invalid ``as_of``.

        Example:
            >>> table.to_arrow(["id", "fare"], filter="fare > 5").to_pylist()
            [{'id': 1, 'fare': 9.5}]
            >>> first = table.history().column("instant")[0].as_py()
            >>> table.to_arrow(["fare"], filter="id = 2", as_of=first).to_pylist()
            [{'fare': 3.0}]
        """
        from hudi_fast.reading.scan import scan_table

        return scan_table(self._plan(columns, filter, as_of, query_type))

    def to_batches(
        self,
        columns: Sequence[str] | None = None,
        filter: Filter | None = None,
        as_of: Moment | None = None,
        query_type: SnapshotType = "snapshot",
    ) -> pa.RecordBatchReader:
        """Like :meth:`to_arrow`, as a stream of batches in no particular order.

        Memory is bounded by the file slices in flight.

        Example:
            >>> sum(batch.num_rows for batch in table.to_batches(["id"]))
            2
        """
        from hudi_fast.reading.scan import scan_batches

        return scan_batches(self._plan(columns, filter, as_of, query_type))

    @overload
    def to_pandas(
        self,
        columns: Sequence[str] | None = None,
        filter: Filter | None = None,
        as_of: Moment | None = None,
        query_type: SnapshotType = "snapshot",
        *,
        chunksize: None = None,
    ) -> pd.DataFrame: ...

    @overload
    def to_pandas(
        self,
        columns: Sequence[str] | None = None,
        filter: Filter | None = None,
        as_of: Moment | None = None,
        query_type: SnapshotType = "snapshot",
        *,
        chunksize: int,
    ) -> Iterator[pd.DataFrame]: ...

    def to_pandas(
        self,
        columns: Sequence[str] | None = None,
        filter: Filter | None = None,
        as_of: Moment | None = None,
        query_type: SnapshotType = "snapshot",
        *,
        chunksize: int | None = None,
    ) -> Any:
        """Like :meth:`to_arrow`, as a pandas DataFrame.

        Args:
            columns: as for :meth:`to_arrow`.
            filter: as for :meth:`to_arrow`.
            as_of: as for :meth:`to_arrow`.
            query_type: as for :meth:`to_arrow`.
            chunksize: return an iterator of DataFrames with this number of rows each, in no particular order; memory is
                bounded as by :meth:`to_batches`. None for one DataFrame.

        Raises:
            ConfigError: pandas is not installed, or ``chunksize`` is below 1; or as :meth:`to_arrow`.

        Example:
            >>> table.to_pandas(["id", "fare"]).sort_values("id")["fare"].tolist()
            [9.5, 4.0]
        """
        from hudi_fast.reading.frames import pandas_chunks, pandas_frame

        if chunksize is not None:
            return pandas_chunks(self.to_batches(columns, filter, as_of, query_type), chunksize)
        return pandas_frame(self.to_arrow(columns, filter, as_of, query_type))

    @overload
    def to_polars(
        self,
        columns: Sequence[str] | None = None,
        filter: Filter | None = None,
        as_of: Moment | None = None,
        query_type: SnapshotType = "snapshot",
        *,
        lazy: Literal[False] = False,
    ) -> pl.DataFrame: ...

    @overload
    def to_polars(
        self,
        columns: Sequence[str] | None = None,
        filter: Filter | None = None,
        as_of: Moment | None = None,
        query_type: SnapshotType = "snapshot",
        *,
        lazy: Literal[True],
    ) -> pl.LazyFrame: ...

    def to_polars(
        self,
        columns: Sequence[str] | None = None,
        filter: Filter | None = None,
        as_of: Moment | None = None,
        query_type: SnapshotType = "snapshot",
        *,
        lazy: bool = False,
    ) -> Any:
        """Like :meth:`to_arrow`, as a polars DataFrame.

        Args:
            columns: as for :meth:`to_arrow`.
            filter: as for :meth:`to_arrow`.
            as_of: as for :meth:`to_arrow`.
            query_type: as for :meth:`to_arrow`.
            lazy: return a LazyFrame of the table as of now. It reads when it is collected, and only the columns and
                files that the query needs.

        Raises:
            ConfigError: polars is not installed; or as :meth:`to_arrow`.
        """
        from hudi_fast.reading.frames import polars_frame

        return polars_frame(self.scan(columns, filter, as_of, query_type), lazy)

    def to_duckdb(
        self,
        columns: Sequence[str] | None = None,
        filter: Filter | None = None,
        as_of: Moment | None = None,
        query_type: SnapshotType = "snapshot",
        *,
        connection: duckdb.DuckDBPyConnection | None = None,
    ) -> duckdb.DuckDBPyRelation:
        """Like :meth:`to_arrow`, as a duckdb relation of the table as of now.

        It reads when duckdb executes it, and only the columns and files that the query needs:
        ``table.to_duckdb().filter("fare > 10").aggregate("city, avg(fare)")``.

        Args:
            columns: as for :meth:`to_arrow`.
            filter: as for :meth:`to_arrow`.
            as_of: as for :meth:`to_arrow`.
            query_type: as for :meth:`to_arrow`.
            connection: of the relation; None for duckdb's default connection.

        Raises:
            ConfigError: duckdb is not installed; or as :meth:`to_arrow`.
        """
        from hudi_fast.reading.frames import duckdb_relation

        relation: duckdb.DuckDBPyRelation = duckdb_relation(self.scan(columns, filter, as_of, query_type), connection)
        return relation

    def scan(
        self,
        columns: Sequence[str] | None = None,
        filter: Filter | None = None,
        as_of: Moment | None = None,
        query_type: SnapshotType = "snapshot",
    ) -> Scan:
        """A lazy scan for engines that push down columns and filters: duckdb, polars, Arrow.

        duckdb finds a scan by the name of its variable: ``duckdb.sql("select avg(fare) from trips where fare > 10")``.
        """
        from hudi_fast.reading.dataset import Scan

        return Scan(self._state(as_of, query_type), columns, filter, self._query(query_type))

    def head(
        self,
        n: int = 5,
        columns: Sequence[str] | None = None,
        filter: Filter | None = None,
        as_of: Moment | None = None,
        query_type: SnapshotType = "snapshot",
    ) -> pa.Table:
        """The first rows, file slice by file slice; reading stops after them.

        Args:
            n: number of rows.
            columns: as for :meth:`to_arrow`.
            filter: as for :meth:`to_arrow`.
            as_of: as for :meth:`to_arrow`.
            query_type: as for :meth:`to_arrow`.

        Raises:
            ConfigError: ``n`` is negative; or as :meth:`to_arrow`.
        """
        from hudi_fast.reading.dataset import first_rows

        return first_rows(self._plan(columns, filter, as_of, query_type), n)

    def count(
        self, filter: Filter | None = None, as_of: Moment | None = None, query_type: SnapshotType = "snapshot"
    ) -> int:
        """The number of rows.

        Without a filter, the counts of file slices that no log file changes come from the footers of base files.
        Otherwise the columns of the filter, and the columns that merging needs, are read.

        Args:
            filter: as for :meth:`to_arrow`.
            as_of: as for :meth:`to_arrow`.
            query_type: as for :meth:`to_arrow`.

        Raises:
            ConfigError: as :meth:`to_arrow`.
        """
        from hudi_fast.reading.dataset import count_rows

        return count_rows(self._plan([], filter, as_of, query_type))

    def vector_search(
        self,
        column: str,
        query: Sequence[float],
        k: int = 10,
        metric: str = "cosine",
        columns: Sequence[str] | None = None,
        filter: Filter | None = None,
        as_of: Moment | None = None,
    ) -> pa.Table:
        """The rows whose vectors are closest to a query vector, closest first: an exact search over all rows.

        Gives the same result as Apache Hudi's SQL function ``hudi_vector_search``.

        Args:
            column: a vector column; rows without a vector are not found.
            query: as many numbers as the column's vectors have.
            k: number of rows, at least 1.
            metric: ``cosine`` (1 minus the cosine), ``l2`` (Euclidean), or ``dot_product`` (negated).
            columns: columns of the result besides the distance; None for all but ``column``, meta columns first.
            filter: condition of the rows that are searched, as for :meth:`to_arrow`.
            as_of: as for :meth:`to_arrow`.

        Returns:
            At most ``k`` rows. The last column, ``_hudi_distance`` (double), has their distances.

        Raises:
            ConfigError: an argument is invalid, or the column has no vectors.
        """
        from hudi_fast.reading.vector_search import VectorSearch, nearest_rows

        search = VectorSearch(column, k, metric, columns, filter, self._query("snapshot"))
        return nearest_rows(self._state(as_of, "snapshot"), search, query)

    def vector_search_batch(
        self,
        column: str,
        queries: Any,
        query_column: str,
        k: int = 10,
        metric: str = "cosine",
        columns: Sequence[str] | None = None,
        filter: Filter | None = None,
        as_of: Moment | None = None,
    ) -> pa.Table:
        """The rows whose vectors are closest to each of many query vectors: one scan for all of them.

        Gives the same result as Apache Hudi's SQL function ``hudi_vector_search_batch``.

        Args:
            column: as for :meth:`vector_search`.
            queries: rows, as :meth:`upsert` takes them, one for each query. Queries without a vector are left out.
            query_column: their column of query vectors: lists of as many numbers as the vectors of ``column`` have.
            k: number of rows for each query, at least 1.
            metric: as for :meth:`vector_search`.
            columns: columns of the result from the table; None for all but ``column``, meta columns first.
            filter: as for :meth:`vector_search`.
            as_of: as for :meth:`to_arrow`.

        Returns:
            At most ``k`` rows for each query, by query and distance: the columns of the table, then the columns of the
            query except ``query_column``. A column of the query that the table has, too, gets the prefix
            ``_hudi_query_``. The last two columns are the number of the query's row (``_hudi_query_index``, int64) and
            the distance (``_hudi_distance``, double).

        Raises:
            ConfigError: an argument is invalid, or the column has no vectors.
        """
        from hudi_fast.arrow_input import to_arrow_table
        from hudi_fast.reading.vector_search import VectorSearch, nearest_rows_of_each

        search = VectorSearch(column, k, metric, columns, filter, self._query("snapshot"))
        return nearest_rows_of_each(self._state(as_of, "snapshot"), search, to_arrow_table(queries), query_column)

    def read_blobs(self, blobs: pa.Array | pa.ChunkedArray) -> pa.Array:
        """The bytes of blobs: of inline values, and of the files that other values refer to.

        Gives the same result as Apache Hudi's SQL function ``read_blob``.

        Args:
            blobs: values of a blob column, as :meth:`to_arrow` returns them.

        Returns:
            binary[n]; null for a null.

        Raises:
            InvalidDataError: the values are not blobs.
            CorruptTableError: a file is missing, or shorter than the range that a blob names.
        """
        from hudi_fast.reading.frames import blob_bytes

        return blob_bytes(self._storage, blobs)

    def _plan(
        self, columns: Sequence[str] | None, filter_: Filter | None, as_of: Moment | None, query_type: SnapshotType
    ) -> ScanPlan:
        from hudi_fast.reading.scan import plan_scan

        return plan_scan(self._state(as_of, query_type), columns, filter_, query=self._query(query_type))

    def _state(self, as_of: Moment | None, query_type: SnapshotType) -> TableState:
        from hudi_fast.config.moments import normalise_instant, timeline_zone
        from hudi_fast.reading.time_travel import state_for_query

        if query_type not in ("snapshot", "read_optimized"):
            raise ConfigError(
                f"Unknown query type {query_type!r}; use snapshot or read_optimized. For the rows or changes of some "
                "commits use incremental or cdc."
            )
        zone = timeline_zone(self._storage)
        return state_for_query(self._storage, None if as_of is None else normalise_instant(as_of, zone=zone))

    def _query(self, query_type: SnapshotType) -> ScanQuery:
        from hudi_fast.reading.scan import ScanQuery

        return ScanQuery(read_optimized=query_type == "read_optimized", merger=self._merger)

    # ---- changes

    def incremental(
        self,
        begin: Moment,
        end: Moment | None = None,
        columns: Sequence[str] | None = None,
        filter: Filter | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> pa.Table:
        """Incremental query: the rows written by the commits after ``begin`` up to ``end``; meta columns first.

        Leaves out deleted rows, and rows that these commits only copied.

        Args:
            begin: exclusive: completion time of a commit (requested time before table version 8), in any form that
                :meth:`to_arrow` takes for ``as_of``; ``earliest`` for the first commit.
            end: inclusive; None for the newest.
            columns: columns to read, in this order; None for all.
            filter: keeps the rows for which it is true: SQL text (``"fare > 5 and city = 'Oslo'"``), or a
                ``pyarrow.compute`` expression.
            options: further options of the query: ``hoodie.datasource.read.incr.*``, ...

        Raises:
            ConfigError: the range cannot be read: files were deleted, or the table has no meta columns.

        Example:
            >>> first = table.history().column("completion")[0].as_py()
            >>> table.incremental(first, columns=["id", "fare"]).to_pylist()  # rows that changed after it
            [{'id': 2, 'fare': 4.0}]
        """
        from hudi_fast.reading.scan import scan_table

        return scan_table(self._changes(begin, end, columns, filter, options))

    def cdc(
        self,
        begin: Moment,
        end: Moment | None = None,
        options: Mapping[str, Any] | None = None,
        *,
        columns: Sequence[str] | None = None,
        filter: Filter | None = None,
    ) -> pa.Table:
        """The changes of commits: op (i, u or d), ts_ms (the commit's instant), before and after (the row as JSON).

        Args:
            begin: exclusive: requested time of a commit, in any form that ``as_of`` accepts; ``earliest`` for the
                first.
            end: inclusive; None for the newest.
            options: further options of the query.
            columns: of op, ts_ms, before and after, in this order; None for all.
            filter: condition of the changes: SQL text (``"op <> 'd'"``), or a ``pyarrow.compute`` expression.

        Raises:
            ConfigError: the table logs no changes, a column or filter does not fit, or the range is not available: it
                begins before the active timeline, or files have been cleaned.
            CorruptTableError: a base file was rewritten without a change log.
        """
        from hudi_fast.reading.incremental.cdc import changes_table

        return changes_table(self._change_log(begin, end, options), columns, filter)

    def cdc_batches(
        self,
        begin: Moment,
        end: Moment | None = None,
        options: Mapping[str, Any] | None = None,
        *,
        columns: Sequence[str] | None = None,
        filter: Filter | None = None,
    ) -> pa.RecordBatchReader:
        """Like :meth:`cdc`, as a stream in no particular order, in bounded memory."""
        from hudi_fast.reading.incremental.cdc import changes_batches

        return changes_batches(self._change_log(begin, end, options), columns, filter)

    def diff(
        self,
        begin: Moment,
        end: Moment | None = None,
        columns: Sequence[str] | None = None,
        filter: Filter | None = None,
    ) -> pa.Table:
        """The differences between the rows at two times; it needs no change log.

        Compares the file groups that were written in between. A row that is written again with the same values, or that
        a table service moved, is no difference.

        Args:
            begin: time of the earlier state, in any form that :meth:`to_arrow` takes for ``as_of``; ``earliest`` for a
                table without rows.
            end: time of the later state; None for now.
            columns: columns of the result, in this order; None for ``change`` and the data columns.
            filter: condition of the result: SQL text (``"change = 'delete'"``), or a ``pyarrow.compute`` expression.

        Returns:
            One row for each inserted and each deleted row, and two, one after the other, for each updated row. The
            column ``change`` is ``insert``, ``delete``, ``update_before`` or ``update_after``.

        Raises:
            ConfigError: ``end`` is before ``begin``, one of the states is not available any more, or a column or the
                filter does not fit.
            UnsupportedFeatureError: the rows of the table have no keys.
        """
        return self.diff_batches(begin, end, columns, filter).read_all()

    def diff_batches(
        self,
        begin: Moment,
        end: Moment | None = None,
        columns: Sequence[str] | None = None,
        filter: Filter | None = None,
    ) -> pa.RecordBatchReader:
        """Like :meth:`diff`, as a stream; memory holds the changed file groups of the partitions in flight."""
        from hudi_fast.reading.incremental.diff import diff_batches, plan_diff

        return diff_batches(plan_diff(self._storage, begin, end, self._query("snapshot")), columns, filter)

    def _change_log(self, begin: Moment, end: Moment | None, options: Mapping[str, Any] | None) -> CdcPlan:
        from hudi_fast.reading.incremental.cdc import change_options, plan_query

        return plan_query(self._storage, change_options(begin, end, options, self._merger))

    def _changes(
        self,
        begin: Moment,
        end: Moment | None,
        columns: Sequence[str] | None = None,
        filter_: Filter | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> ScanPlan:
        from hudi_fast.reading.incremental.query import incremental_options, plan_query

        given = incremental_options(begin, end, options)
        if self._merger is not None:
            given.setdefault("hudi_fast.merger", self._merger)
        return plan_query(self._storage, given, columns, filter_)
