"""Merges of several source rows of one key, which belong to different partitions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

__all__ = [
    "ARRIVING",
    "MOVING_INDEXES",
    "MOVING_MERGES",
    "STORED",
    "TIED",
    "Row",
    "after_moving",
    "moved_rows",
    "moving_options",
    "moving_rows",
]

Row = tuple[int, str, int, str]
"""Key, partition, ordering value, note."""

STORED: list[Row] = [(1, "a", 10, "old"), (2, "b", 10, "old"), (3, "c", 10, "old"), (4, "a", 10, "old")]
ARRIVING: list[Row] = [
    *((1, "a", 15, "lost"), (1, "c", 16, "won"), (1, "b", 14, "lost")),  # moves
    *((2, "b", 18, "won"), (2, "c", 17, "lost"), (2, "a", 11, "lost")),  # stays
    *((4, "b", 21, "gone"), (4, "c", 20, "lost")),  # goes, where a clause says so
    *((7, "a", 15, "lost"), (7, "b", 16, "won"), (7, "c", 14, "lost")),  # is new
]
TIED: list[list[Row]] = [
    [(1, "a", 50, "s"), (1, "b", 50, "t"), (1, "c", 49, "u")],
    [(8, "a", 50, "s"), (8, "b", 50, "t")],
]
"""Rows between which nothing decides: those of a stored key, and those of a new one."""

MOVING_INDEXES: Mapping[str, bool] = {
    "GLOBAL_SIMPLE": True,
    "GLOBAL_BLOOM": True,
    "RECORD_INDEX": True,
    "SIMPLE": False,
}
"""Whether an index is global: a new key has one row in all partitions."""

MOVING_MERGES: Mapping[str, Callable[[Any], Any]] = {
    "all columns": lambda merge: merge.when_matched_update().when_not_matched_insert(),
    "clauses": lambda merge: (
        merge.when_matched_delete("source.note = 'gone'")
        .when_matched_update({name: f"source.{name}" for name in ("part", "ts", "note")})
        .when_not_matched_insert()
    ),
}


def moving_options(index: str) -> dict[str, Any]:
    """Options of a table whose rows may move."""
    kind = {"hoodie.metadata.record.index.enable": "true"} if index == "RECORD_INDEX" else {}
    return {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.index.type": index,
        "hoodie.simple.index.update.partition.path": "true",
        "hoodie.bloom.index.update.partition.path": "true",
        "hoodie.record.index.update.partition.path": "true",
        "hoodie.compact.inline": "false",
        **kind,
    }


def moving_rows(rows: list[Row]) -> pa.Table:
    """Rows as a table."""
    return pa.table(dict(zip(("id", "part", "ts", "note"), map(list, zip(*rows, strict=True)), strict=True)))


def moved_rows(table: pa.Table) -> list[Row]:
    """The rows of a table of :func:`moving_rows`."""
    return sorted((row["id"], row["part"], row["ts"], row["note"]) for row in table.to_pylist())


def after_moving(index: str, merge: str) -> list[Row]:
    """The rows of the table after a merge."""
    new = [row for row in ARRIVING if row[0] == 7 and (row[3] == "won" or not MOVING_INDEXES[index])]
    kept = [(1, "c", 16, "won"), (2, "b", 18, "won"), (3, "c", 10, "old"), *new]
    return sorted(kept if merge == "clauses" else [*kept, (4, "b", 21, "gone")])
