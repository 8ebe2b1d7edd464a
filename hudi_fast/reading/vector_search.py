"""The rows whose vectors are closest to a query: an exact search that reads every vector once.

::

    scan of all columns ─► distance of each vector ─► the k closest of each batch ─► the k closest of all, sorted

Memory holds one batch for each thread that reads, and k rows. Rows without a vector are not found. Of rows with equal
distances any may be found, as in Apache Hudi.

Source: ``BruteForceSearchAlgorithm``, ``VectorDistanceUtils`` (Hudi 1.2.0).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.errors import ConfigError
from hudi_fast.formats.vectors import is_vector
from hudi_fast.kernels.vector_distances import COSINE, DOT_PRODUCT, L2, distances
from hudi_fast.reading.scan import Filter, ScanQuery, plan_scan, readable_schema, scan_batches
from hudi_fast.view.table_state import TableState

__all__ = ["DISTANCE", "FUNCTION", "nearest_rows", "search_arguments"]

FUNCTION = "hudi_vector_search"
"""Name of the SQL function."""

DISTANCE = "_hudi_distance"
"""Column of the result with the distance."""

_METRICS: Mapping[str, int] = {
    "cosine": COSINE,
    "l2": L2,
    "euclidean": L2,
    "dot_product": DOT_PRODUCT,
    "inner_product": DOT_PRODUCT,
}


def nearest_rows(
    state: TableState,
    column: str,
    query: Sequence[float],
    k: int,
    metric: str = "cosine",
    columns: Sequence[str] | None = None,
    filter: Filter | None = None,
    scan: ScanQuery | None = None,
) -> pa.Table:
    """The ``k`` rows with the smallest distance, closest first, without the vectors.

    Args:
        state: the table.
        column: a vector column.
        query: as many numbers as its vectors have.
        k: number of rows, at least 1.
        metric: cosine, l2 (also euclidean), or dot_product (also inner_product), which is negated.
        columns: columns of the result besides the distance; None for all but ``column``.
        filter: condition of the rows that are searched.
        scan: treatment of log files; None for a merged snapshot.

    Returns:
        At most k rows, and their distances (double) in the last column, ``_hudi_distance``.

    Raises:
        ConfigError: an argument is invalid.
    """
    kind, number = _vector_column(state, column), _METRICS.get(str(metric).lower())
    if number is None:
        raise ConfigError(f"Unsupported distance metric {metric!r}; use one of {', '.join(_METRICS)}.")
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise ConfigError(f"k is the number of rows to find, at least 1; got {k!r}.")
    wanted = _numbers(query, kind, column)
    names = [name for name in readable_schema(state).names if name != column] if columns is None else list(columns)
    plan = plan_scan(state, list(dict.fromkeys([*names, column])), filter, query=scan)
    schema = pa.schema([*(plan.scan.output.field(name) for name in names), pa.field(DISTANCE, pa.float64())])
    best = schema.empty_table()
    for batch in scan_batches(plan):
        rows = pa.Table.from_batches([batch]).filter(batch.column(column).is_valid())
        found = _distances(rows.column(column), wanted, number)
        least = np.argpartition(found, k)[:k] if len(found) > k else np.arange(len(found))
        chosen = rows.select(names).take(pa.array(least)).append_column(schema.field(DISTANCE), pa.array(found[least]))
        best = pa.concat_tables([best, chosen.cast(schema)]).sort_by(DISTANCE).slice(0, k)
    return best.combine_chunks()


def search_arguments(values: Sequence[Any]) -> tuple[str, Sequence[float], int, str]:
    """Column, query, k and metric of ``hudi_vector_search(table, column, query, k[, metric[, algorithm]])``.

    Args:
        values: all arguments of the function; the first one, the table, is not looked at.

    Raises:
        ConfigError: another number of arguments, or another algorithm than brute_force.
    """
    if not 4 <= len(values) <= 6:
        raise ConfigError(
            f"{FUNCTION} takes 4 to 6 arguments (table, column, query vector, k, metric, algorithm), got {len(values)}."
        )
    if len(values) == 6 and str(values[5]).lower() != "brute_force":
        raise ConfigError(f"{FUNCTION}: unsupported search algorithm {values[5]!r}; use brute_force.")
    return str(values[1]), values[2], values[3], str(values[4]) if len(values) > 4 else "cosine"


def _vector_column(state: TableState, column: str) -> pa.DataType:
    schema = readable_schema(state)
    if column not in schema.names:
        raise ConfigError(f"{state.storage.uri} has no column {column!r}; it has {schema.names}.")
    kind = schema.field(column).type
    if not is_vector(kind):
        vectors = [field.name for field in schema if is_vector(field.type)]
        raise ConfigError(
            f"Column {column!r} of {state.storage.uri} is {kind} and no vector; vector columns: {vectors}."
        )
    return kind


def _numbers(query: Any, kind: pa.DataType, column: str) -> npt.NDArray[np.float64]:
    try:
        numbers = np.asarray(query, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"The query vector takes numbers; got {query!r:.100}.") from error
    if numbers.ndim != 1 or len(numbers) != kind.list_size:
        raise ConfigError(
            f"The query vector has the shape {numbers.shape}; vectors of column {column!r} have {kind.list_size} "
            "numbers."
        )
    if kind.value_type == pa.float32():  # as a literal of that type
        numbers = numbers.astype(np.float32).astype(np.float64)
    return numbers


def _distances(vectors: pa.ChunkedArray, query: npt.NDArray[np.float64], metric: int) -> npt.NDArray[np.float64]:
    """float64[n] for n vectors without nulls."""
    found = np.empty(len(vectors))
    start = 0
    for chunk in vectors.chunks:
        numbers = chunk.flatten().to_numpy(zero_copy_only=False).astype(np.float64)
        distances(numbers, query, metric, found[start : start + len(chunk)])
        start += len(chunk)
    return found
