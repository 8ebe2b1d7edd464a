"""Tables in which some rows store another value of the partition column than their path has.

A global index that does not move rows leaves an updated row in its partition, with the new value of the column.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

import hudi_fast as hf

__all__ = ["FILTERS", "KINDS", "ROWS", "Row", "kept_options", "rows_matching", "write_kept_rows"]

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
