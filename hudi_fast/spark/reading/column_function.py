"""A function of the core over one text column, as a Spark column of integers: rows stay where they are.

Only the column goes to Python and only numbers come back. An Arrow UDF where PySpark has them (4.1), a pandas UDF
elsewhere; either way the function sees one batch after the other of a whole task, and may read ahead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as F

__all__ = ["IntFunction", "int_column"]

IntFunction = Callable[[Iterator[pa.Array]], Iterator[pa.Array]]
"""From batches of text (with nulls) to batches of as many int32 without nulls."""


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
    return made.asNondeterministic()(column)  # or filters above it would evaluate it again


def _over_series(function: IntFunction) -> Any:
    import pandas as pd

    def over_series(batches: Any) -> Any:
        for answer in function(pa.array(batch, pa.string()) for batch in batches):
            yield pd.Series(answer.to_numpy())

    over_series.__annotations__ = {"batches": Iterator[pd.Series], "return": Iterator[pd.Series]}
    return over_series
