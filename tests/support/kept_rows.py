"""Tables in which some rows store another value of the partition column than their path has.

A global index that does not move rows leaves an updated row in its partition, with the new value of the column.
"""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

import hudi_fast as hf

__all__ = [
    "FILTERS",
    "FROM_PATHS",
    "KINDS",
    "ROWS",
    "VALUES",
    "Row",
    "kept_options",
    "rows_matching",
    "write_kept_rows",
    "write_kept_values",
]

Row = tuple[str, str, int]
"""Key, partition, number."""

KINDS = [("COPY_ON_WRITE", 6), ("COPY_ON_WRITE", 9), ("MERGE_ON_READ", 6), ("MERGE_ON_READ", 8), ("MERGE_ON_READ", 9)]

ROWS: list[Row] = [
    *(("k0", "p0", 10), ("k1", "p1", 11), ("k2", "p0", 12)),
    *(("k3", "p1", 3), ("k4", "p0", 4), ("k5", "p1", 5)),
]
"""The rows of the table, with the partition of their paths."""

FILTERS: dict[str, Callable[[str, int], bool]] = {
    "part = 'p0'": lambda part, _: part == "p0",
    "part = 'p7'": lambda part, _: part == "p7",
    "part <> 'p0'": lambda part, _: part != "p0",
    "not (part = 'p0')": lambda part, _: part != "p0",
    "part > 'p0'": lambda part, _: part > "p0",
    "part in ('p1', 'p7')": lambda part, _: part in ("p1", "p7"),
    "part like 'p%'": lambda part, _: part.startswith("p"),
    "lower(part) = 'p0'": lambda part, _: part == "p0",
    "part is null": lambda *_: False,
    "part = 'p0' and number >= 10": lambda part, number: part == "p0" and number >= 10,
    "part = 'p1' and number < 5": lambda part, number: part == "p1" and number < 5,
    "part = 'p7' or number = 11": lambda _, number: number == 11,
    "part = 'p1' or number = 4": lambda part, number: part == "p1" or number == 4,
    "coalesce(part, 'p7') = 'p7'": lambda *_: False,
}
"""Filters in SQL, and the rows that match them."""

VALUES: dict[str, tuple[pa.DataType, list[Any], str]] = {
    "string": (pa.string(), ["it's 50% é/=\\", "b"], "'b'"),
    "int": (pa.int32(), [-7, 1 << 30], "1073741824"),
    "long": (pa.int64(), [-7, 1 << 40], "1099511627776"),
    "boolean": (pa.bool_(), [True, False], "false"),
    "date": (pa.date32(), [dt.date(1969, 7, 20), dt.date(2024, 2, 29)], "date'2024-02-29'"),
    "timestamp": (
        pa.timestamp("us", "UTC"),
        [dt.datetime(2024, 3, 1, 5, 6, 7, 89, dt.UTC), dt.datetime(2024, 3, 2, tzinfo=dt.UTC)],
        "timestamp'2024-03-02 00:00:00Z'",
    ),
    "decimal": (pa.decimal128(9, 2), [decimal.Decimal("1.50"), decimal.Decimal("-2.25")], "-2.25"),
    "double": (pa.float64(), [1.5, -2.25], "-2.25D"),
}
"""Two values of a partition column of each type, and the second one in SQL."""
FROM_PATHS = ("string", "int", "long", "boolean", "date", "decimal")
"""The types whose values paths give exactly."""


def kept_options(kind: str, version: int, **more: Any) -> dict[str, Any]:
    """Options of writes that leave rows in their partition."""
    return {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.datasource.write.table.type": kind,
        "hoodie.write.table.version": str(version),
        "hoodie.datasource.write.operation": "upsert",
        "hoodie.index.type": "GLOBAL_SIMPLE",
        "hoodie.simple.index.update.partition.path": "false",
        "hoodie.compact.inline": "false",
        **more,
    }


def write_kept_rows(path: Path, kind: str, version: int, **more: Any) -> hf.HudiTable:
    """Three rows of six are updated, each with another value of the partition column, one with that of no partition."""
    options = kept_options(kind, version, **more)
    hf.write(_rows([0, 1, 2, 3, 4, 5], 1), path, options)
    hf.write(_rows([10, 11, 12], 2, ["p1", "p0", "p7"]), path, options)
    return hf.HudiTable.open(path)


def write_kept_values(path: Path, type_: str, kind: str, version: int, **more: Any) -> hf.HudiTable:
    """Rows in the partitions of both :data:`VALUES` and of null, some of which store the value of another one."""
    options = kept_options(kind, version, **more)
    arrow, (one, other), _ = VALUES[type_]

    def rows(parts: list[Any], ts: int) -> pa.Table:
        count = len(parts)
        made: dict[str, Any] = {"id": [f"k{at}" for at in range(count)], "part": pa.array(parts, arrow)}
        return pa.table({**made, "number": pa.array(range(ts, ts + count)), "ts": pa.array([ts] * count, pa.int64())})

    hf.write(rows([one, other, None, one, other, None], 1), path, options)
    hf.write(rows([other, None, one], 10), path, options)
    return hf.HudiTable.open(path)


def rows_matching(text: str) -> list[Row]:
    """The rows that match one of :data:`FILTERS`."""
    return [row for row in ROWS if FILTERS[text](row[1], row[2])]


def _rows(numbers: list[int], ts: int, parts: list[str] | None = None) -> pa.Table:
    made: dict[str, Any] = {
        "id": [f"k{n % 10}" for n in numbers],
        "part": parts or [f"p{n % 2}" for n in numbers],
        "number": pa.array(numbers, pa.int64()),
        "ts": pa.array([ts] * len(numbers), pa.int64()),
    }
    return pa.table(made)
