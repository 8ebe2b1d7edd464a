"""Small tables for merges, updates and deletes, and a dictionary that does the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa

import hudi_fast as hf

__all__ = ["NAMES", "Row", "contents", "model_merge", "new_table", "rows", "table_options"]

NAMES = ["id", "part", "ts", "fare", "note"]
Row = tuple[int, str, int, float | None, str | None]


def rows(
    ids: Iterable[int], fare: float | None = 1.0, ts: int = 1, note: str | None = None, parts: int = 3
) -> pa.Table:
    """Rows with ``id``, ``part`` (of ``parts``), ``ts``, ``fare``, ``note``."""
    numbers = list(ids)
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "part": pa.array([f"p{number % parts}" for number in numbers], pa.string()),
            "ts": pa.array([ts] * len(numbers), pa.int64()),
            "fare": pa.array([fare] * len(numbers), pa.float64()),
            "note": pa.array([note or f"n{number}" for number in numbers], pa.string()),
        }
    )


def table_options(
    kind: str = "COPY_ON_WRITE", version: int = 9, partitioned: bool = True, **more: Any
) -> dict[str, Any]:
    """Options of a new table; ``key=None`` for one that makes its keys itself."""
    options: dict[str, Any] = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.table.type": kind,
        "hoodie.write.table.version": version,
        "hoodie.index.bloom.num_entries": "100",
        "hudi_fast.threads": "1",
        **more,
    }
    if partitioned:
        options["hoodie.datasource.write.partitionpath.field"] = "part"
    return {key: value for key, value in options.items() if value is not None}


def new_table(path: Path, ids: Iterable[int] = range(10), **how: Any) -> hf.HudiTable:
    """A table of :func:`rows`."""
    hf.write(rows(ids), path, table_options(**how))
    return hf.HudiTable.open(path)


def contents(table: hf.HudiTable) -> list[Row]:
    """All rows, sorted by id."""
    found = table.to_arrow(columns=NAMES).to_pylist()
    return sorted(tuple(row[name] for name in NAMES) for row in found)


def model_merge(
    stored: dict[int, Row],
    source: Iterable[Row],
    matched: Callable[[Row, Row], Row | None],
    unmatched: Callable[[Row], Row | None],
    alone: Callable[[Row], Row | None] = lambda row: row,
) -> dict[int, Row]:
    """What a merge by id makes of a table: each function gives the row that stays, or None."""
    incoming = {row[0]: row for row in source}
    made = {}
    for key, row in stored.items():
        made[key] = matched(row, incoming[key]) if key in incoming else alone(row)
    for key, row in incoming.items():
        if key not in stored:
            made[key] = unmatched(row)
    return {key: row for key, row in made.items() if row is not None}
