"""The rows whose vectors are closest to one or many queries: an exact search that reads every vector once.

::

    scan of all columns ─► distances of a batch to each query ─► the k closest so far ─► sorted by query and distance

Memory holds one batch for each thread that reads, and k rows for each query. Rows without a vector are not found. Among
rows with equal distances, any may be found, as in Apache Hudi.

Source: ``BruteForceSearchAlgorithm``, ``VectorDistanceUtils`` (Hudi 1.2.0).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.errors import ConfigError
from hudi_fast.formats.logical_types import is_vector
from hudi_fast.kernels.vector_distances import COSINE, DOT_PRODUCT, L2, distances
from hudi_fast.reading.scan import Filter, ScanQuery, plan_scan, readable_schema, scan_batches
from hudi_fast.reading.shown_columns import shown_columns
from hudi_fast.values import dataclass
from hudi_fast.view.table_state import TableState

__all__ = [
    "BATCH_FUNCTION",
    "DISTANCE",
    "FUNCTION",
    "VectorSearch",
    "batch_arguments",
    "nearest_rows",
    "nearest_rows_of_each",
    "search_arguments",
]

FUNCTION = "hudi_vector_search"
"""Name of the SQL function for one query."""

BATCH_FUNCTION = "hudi_vector_search_batch"
"""Name of the SQL function for a table of queries."""

DISTANCE = "_hudi_distance"
"""Column of the result with the distance."""

_QUERY_NUMBER = "_hudi_query_index"
_QUERY_PREFIX = "_hudi_query_"
"""Prefix of the names of query columns that the searched table has, too."""

_METRICS: Mapping[str, int] = {
    "cosine": COSINE,
    "l2": L2,
    "euclidean": L2,
    "dot_product": DOT_PRODUCT,
    "inner_product": DOT_PRODUCT,
}

Doubles = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class VectorSearch:
    """The settings of a search.

    Attributes:
        column: a vector column.
        k: number of rows for each query, at least 1.
        metric: cosine, l2 (also euclidean), or dot_product (also inner_product), which is negated.
        columns: columns of the result from the table; None for all but ``column``.
        filter: condition of the rows that are searched.
        scan: treatment of log files; None for a merged snapshot.
    """

    column: str
    k: int = 10
    metric: str = "cosine"
    columns: Sequence[str] | None = None
    filter: Filter | None = None
    scan: ScanQuery | None = None


def nearest_rows(state: TableState, search: VectorSearch, query: Sequence[float]) -> pa.Table:
    """The rows with the smallest distance to a query, closest first, without the vectors.

    Args:
        state: the table.
        search: settings of the search.
        query: as many numbers as the vectors have.

    Returns:
        At most k rows, and their distances (double) in the last column, ``_hudi_distance``.

    Raises:
        ConfigError: an argument is invalid.
    """
    column, kind = _vector_column(state, search.column)
    search = replace(search, column=column)
    try:
        numbers = np.asarray(query, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"The query vector takes numbers; got {query!r:.100}.") from error
    if numbers.ndim != 1 or len(numbers) != kind.list_size:
        raise ConfigError(
            f"The query vector has the shape {numbers.shape}; vectors of column {search.column!r} have "
            f"{kind.list_size} numbers."
        )
    rows, _, found = _closest(state, search, _in_type(numbers.reshape(1, -1), kind))
    return pa.Table.from_arrays([*rows.columns, pa.array(found)], [*rows.column_names, DISTANCE])


def nearest_rows_of_each(state: TableState, search: VectorSearch, queries: pa.Table, query_column: str) -> pa.Table:
    """The rows with the smallest distance to each of many queries, by query and distance, without the vectors.

    Args:
        state: the table.
        search: settings of the search.
        queries: a row for each query; rows without a vector are left out.
        query_column: column of ``queries`` with lists of as many numbers as the vectors have.

    Returns:
        At most k rows for each query: the columns of the table, then the columns of the query, which get the prefix
        ``_hudi_query_`` if the table has them, too; then the number of the query's row (``_hudi_query_index``, int64),
        and the distance (``_hudi_distance``, double).

    Raises:
        ConfigError: an argument is invalid.
    """
    column, kind = _vector_column(state, search.column)
    search = replace(search, column=column)
    if query_column not in queries.column_names:
        raise ConfigError(f"The queries have no column {query_column!r}; they have {queries.column_names}.")
    given = np.flatnonzero(queries.column(query_column).is_valid().to_numpy(zero_copy_only=False))
    vectors = _query_vectors(queries.column(query_column).take(pa.array(given)), kind, search.column)
    rows, numbers, found = _closest(state, search, _in_type(vectors, kind))
    numbers = given[numbers]
    asked = queries.drop_columns([query_column]).take(pa.array(numbers))
    here = set(rows.column_names)
    asked = asked.rename_columns([_QUERY_PREFIX + name if name in here else name for name in asked.column_names])
    added = {_QUERY_NUMBER: pa.array(numbers, pa.int64()), DISTANCE: pa.array(found)}
    columns = [*rows.columns, *asked.columns, *added.values()]
    return pa.Table.from_arrays(columns, [*rows.column_names, *asked.column_names, *added])


def search_arguments(values: Sequence[Any]) -> dict[str, Any]:
    """Arguments of ``HudiTable.vector_search`` for the SQL function.

    The function is ``hudi_vector_search(table, column, query, k[, metric[, algorithm]])``.

    Args:
        values: all arguments of the function; the first one, the table, is ignored.

    Raises:
        ConfigError: the number of arguments is wrong, or the algorithm is not brute_force.
    """
    _check_arguments(FUNCTION, values, ("table", "column", "query vector", "k", "metric", "algorithm"))
    return {"column": str(values[1]), "query": values[2], "k": values[3], "metric": _metric(values[4:])}


def batch_arguments(values: Sequence[Any]) -> dict[str, Any]:
    """Arguments of ``HudiTable.vector_search_batch`` for the SQL function.

    The function is ``hudi_vector_search_batch(table, column, queries, column, k[, metric[, algorithm]])``. The result
    lacks ``queries``, which the SQL function passes as the name of a table.

    Args:
        values: all arguments of the function; the first and third one, the tables, are ignored.

    Raises:
        ConfigError: the number of arguments is wrong, or the algorithm is not brute_force.
    """
    names = ("table", "column", "table of queries", "column", "k", "metric", "algorithm")
    _check_arguments(BATCH_FUNCTION, values, names)
    return {
        "column": str(values[1]),
        "query_column": str(values[3]),
        "k": values[4],
        "metric": _metric(values[5:]),
    }


def _check_arguments(function: str, values: Sequence[Any], names: Sequence[str]) -> None:
    if not len(names) - 2 <= len(values) <= len(names):
        raise ConfigError(
            f"{function} takes {len(names) - 2} to {len(names)} arguments ({', '.join(names)}), got {len(values)}."
        )
    if len(values) == len(names) and str(values[-1]).lower() != "brute_force":
        raise ConfigError(f"{function}: unsupported search algorithm {values[-1]!r}; use brute_force.")


def _metric(rest: Sequence[Any]) -> str:
    """The metric, from the arguments after ``k``."""
    return str(rest[0]) if rest else "cosine"


# ---- the search


def _closest(state: TableState, search: VectorSearch, queries: Doubles) -> tuple[pa.Table, Rows, Doubles]:
    """(rows, numbers of their queries, distances), by query and distance; ``queries`` is float64[q, d]."""
    metric, k = _METRICS.get(str(search.metric).lower()), search.k
    if metric is None:
        raise ConfigError(f"Unsupported distance metric {search.metric!r}; use one of {', '.join(_METRICS)}.")
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise ConfigError(f"k is the number of rows to find, at least 1; got {k!r}.")
    column = search.column
    every = readable_schema(state)
    others = [name for name in every.names if name != column]
    shown = shown_columns(others if search.columns is None else search.columns, every, state.storage.uri)
    plan = plan_scan(state, list(dict.fromkeys([*shown.roots, column])), search.filter, query=search.scan)
    best = _Best(len(queries), k, shown.schema)
    for batch in scan_batches(plan):
        rows = pa.Table.from_batches([batch]).filter(batch.column(column).is_valid())
        vectors = pc.list_flatten(rows.column(column)).to_numpy().astype(np.float64)
        found = np.empty(rows.num_rows)
        for number, query in enumerate(queries):
            distances(vectors, query, metric, found)
            best.take(number, found)
        best.keep(shown.apply(rows))
    return best.sorted()


class _Best:
    """The k closest rows to each query.

    Args:
        queries: number of queries.
        k: number of rows for each query.
        schema: columns of the rows.
    """

    def __init__(self, queries: int, k: int, schema: pa.Schema) -> None:
        self._k = k
        self._rows = schema.empty_table()
        self._places: list[Rows] = [np.empty(0, np.int64)] * queries
        self._distances: list[Doubles] = [np.empty(0)] * queries

    def take(self, query: int, found: Doubles) -> None:
        """Take the next rows that are closer to a query than its rows so far.

        Args:
            query: number of the query.
            found: distance of each of the next rows.
        """
        known = self._distances[query]
        # NaN is the largest distance: a query with a NaN among its distances takes all rows
        rows = np.arange(len(found)) if len(known) < self._k else np.flatnonzero(~(found >= known.max()))
        if not len(rows):
            return
        every = np.concatenate([known, found[rows]])
        places = np.concatenate([self._places[query], self._rows.num_rows + rows])
        least = np.argpartition(every, self._k - 1)[: self._k] if len(every) > self._k else slice(None)
        self._distances[query], self._places[query] = every[least], places[least]

    def keep(self, rows: pa.Table) -> None:
        """Add the rows whose distances were taken, and drop all rows that no query has."""
        used = np.unique(np.concatenate([*self._places, np.empty(0, np.int64)]))
        self._rows = pa.concat_tables([self._rows, rows.cast(self._rows.schema)]).take(pa.array(used))
        self._places = [np.searchsorted(used, one) for one in self._places]

    def sorted(self) -> tuple[pa.Table, Rows, Doubles]:
        """Rows, numbers of queries, and distances, by query and distance."""
        orders = [np.argsort(one, kind="stable") for one in self._distances]
        places = [one[order] for one, order in zip(self._places, orders, strict=True)]
        found = [one[order] for one, order in zip(self._distances, orders, strict=True)]
        numbers = np.repeat(np.arange(len(places)), [len(one) for one in places])
        rows = self._rows.take(pa.array(np.concatenate([*places, np.empty(0, np.int64)])))
        return rows.combine_chunks(), numbers, np.concatenate([*found, np.empty(0)])


# ---- vectors


def _vector_column(state: TableState, column: str) -> tuple[str, pa.DataType]:
    """The column of vectors, and its type."""
    schema = readable_schema(state)
    (path,) = shown_columns([column], schema, state.storage.uri).paths
    kind = schema.field(path[0]).type
    if len(path) > 1 or not is_vector(kind):
        vectors = [field.name for field in schema if is_vector(field.type)]
        raise ConfigError(
            f"Column {column!r} of {state.storage.uri} is {kind} and no vector; vector columns: {vectors}."
        )
    return path[0], kind


def _query_vectors(values: pa.ChunkedArray, kind: pa.DataType, column: str) -> Doubles:
    """float64[q, d] of q lists without nulls."""
    size = kind.list_size
    try:
        lengths = pc.list_value_length(values).to_numpy()
        numbers = pc.list_flatten(values).cast(pa.float64())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise ConfigError(f"The queries are {values.type}, expected lists of numbers.") from error
    if np.any(lengths != size):
        other = int(lengths[lengths != size][0])
        raise ConfigError(f"A query vector has {other} numbers; vectors of column {column!r} have {size}.")
    if numbers.null_count:
        raise ConfigError("A query vector has a null among its numbers.")
    return np.ascontiguousarray(numbers.to_numpy()).reshape(-1, size)


def _in_type(queries: Doubles, kind: pa.DataType) -> Doubles:
    """The numbers in the precision of the column: rounded to 32 bits if it holds 32-bit floats."""
    return queries.astype(np.float32).astype(np.float64) if kind.value_type == pa.float32() else queries
