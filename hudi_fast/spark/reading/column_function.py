"""Applies a function of the core to text columns, as a Spark column of integers.

Only these columns are sent to Python and only numbers are returned. Uses an Arrow UDF from PySpark 4.1 on, a pandas UDF
before; the function gets an iterator over all batches of a task, and may read ahead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql import functions as F

__all__ = ["IntFunction", "in_lots", "int_column", "ints_of_columns"]

Batch = TypeVar("Batch")

IntFunction = Callable[[Iterator[pa.Array]], Iterator[pa.Array]]
"""Maps batches of text (with nulls) to batches of int32 of the same length, without nulls."""


def int_column(function: IntFunction, column: Any) -> Any:
    """``function`` of ``column``, evaluated once for each row.

    Args:
        function: picklable.
        column: of Spark's type string.
    """
    if hasattr(F, "arrow_udf"):

        def over_arrow(batches: Any) -> Any:
            yield from function(batch.cast(pa.string()) for batch in batches)

        over_arrow.__annotations__ = {"batches": Iterator[pa.Array], "return": Iterator[pa.Array]}
        made = F.arrow_udf(over_arrow, "int")
    else:
        made = F.pandas_udf(_over_series(function), "int")
    return made.asNondeterministic()(column)  # otherwise filters above it would evaluate it again


def ints_of_columns(function: Callable[[Iterator[tuple[pa.Array, ...]]], Iterator[pa.Array]], *columns: Any) -> Any:
    """Like :func:`int_column`, for a function of several columns that returns a list of integers for each row.

    Args:
        function: maps batches with an array of each column to list<int32> of the same length, without nulls; picklable.
        columns: two or more, of Spark's type string.
    """
    if hasattr(F, "arrow_udf"):

        def over_arrow(batches: Any) -> Any:
            yield from function(tuple(each.cast(pa.string()) for each in batch) for batch in batches)

        over_arrow.__annotations__ = {"batches": Iterator[tuple[pa.Array, ...]], "return": Iterator[pa.Array]}
        made = F.arrow_udf(over_arrow, "array<int>")
    else:
        import pandas as pd

        def over_series(batches: Any) -> Any:
            for answer in function(tuple(pa.array(each, pa.string()) for each in batch) for batch in batches):
                yield answer.to_pandas()

        over_series.__annotations__ = {"batches": Iterator[tuple[pd.Series, ...]], "return": Iterator[pd.Series]}
        made = F.pandas_udf(over_series, "array<int>")
    return made.asNondeterministic()(*columns)


def in_lots(batches: Iterable[Batch], length: Callable[[Batch], int], least: int) -> Iterator[list[Batch]]:
    """Group batches, for functions whose cost per call is large.

    Args:
        batches: batches of a task.
        length: number of rows of a batch.
        least: each list has at least this many rows, except the last one.
    """
    waiting: list[Batch] = []
    count = 0
    for batch in batches:
        waiting.append(batch)
        count += length(batch)
        if count >= least:
            yield waiting
            waiting, count = [], 0
    if waiting:
        yield waiting


def _over_series(function: IntFunction) -> Any:
    import pandas as pd

    def over_series(batches: Any) -> Any:
        for answer in function(pa.array(batch, pa.string()) for batch in batches):
            yield pd.Series(answer.to_numpy())

    over_series.__annotations__ = {"batches": Iterator[pd.Series], "return": Iterator[pd.Series]}
    return over_series
