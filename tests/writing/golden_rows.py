"""Writes to golden tables: options they need, changed rows, and what a merge by hand makes of them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

import hudi_fast as hf

__all__ = ["changed_rows", "key_and_place", "merged_by_hand", "needed", "untouched_keep_their_commit"]


def needed(opened: hf.HudiTable) -> dict[str, str]:
    """A table knows its settings itself, but for one that an old release did not store."""
    kind = "hoodie.keygen.timebased.timestamp.type"
    lacks = opened.config.key_generator == "TIMESTAMP" and kind not in opened.config.keygen_properties
    return {kind: "DATE_STRING"} if lacks else {}


def key_and_place(opened: hf.HudiTable, rows: pa.Table) -> list[tuple[Any, ...]]:
    """What identifies a row: the key columns, and the partition columns, for keys are unique per partition."""
    config = opened.config
    names = [*config.record_key_fields, *config.partition_fields]
    return list(zip(*(rows[name].to_pylist() for name in names), strict=True))


def ordering(opened: hf.HudiTable, row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] if row[name] is not None else 0 for name in opened.config.ordering_fields)


def changed_rows(opened: hf.HudiTable, rows: pa.Table) -> pa.Table:
    """Every second row with other numbers: a third of them older than what is stored, and three new ones."""
    picked = rows.take(pa.array(range(0, rows.num_rows, 2))).to_pylist()
    special = {*opened.config.record_key_fields, *opened.config.partition_fields}
    numbers = [
        field.name
        for field in rows.schema
        if field.name not in special and (pa.types.is_integer(field.type) or pa.types.is_floating(field.type))
    ]
    shift = 0
    for shift, row in enumerate(picked):
        for name in numbers:
            if row[name] is not None:
                row[name] += -5 if shift % 3 == 0 and name in opened.config.ordering_fields else 7
    key = opened.config.record_key_fields[0]
    for number, row in enumerate([dict(row) for row in picked[:3]]):
        row[key] = f"new{number}" if isinstance(row[key], str) else 900_000 + number
        picked.append(row)
    return pa.Table.from_pylist(picked, rows.schema)


def merged_by_hand(opened: hf.HudiTable, stored: pa.Table, incoming: pa.Table) -> pa.Table:
    """A few of the tables hold keys twice; an update then changes all rows with its key."""
    by_time = opened.config.merge_mode == "EVENT_TIME_ORDERING"
    best: dict[tuple[Any, ...], dict[str, Any]] = {}
    for key, row in zip(key_and_place(opened, incoming), incoming.to_pylist(), strict=True):
        if key not in best or not by_time or ordering(opened, row) >= ordering(opened, best[key]):
            best[key] = row
    merged, seen = [], set()
    for key, row in zip(key_and_place(opened, stored), stored.to_pylist(), strict=True):
        seen.add(key)
        wins = key in best and (not by_time or ordering(opened, best[key]) >= ordering(opened, row))
        merged.append(best[key] if wins else row)
    return pa.Table.from_pylist(merged + [row for key, row in best.items() if key not in seen], stored.schema)


def untouched_keep_their_commit(opened: hf.HudiTable, before: pa.Table, instant: str) -> None:
    if not opened.config.populate_meta_fields:
        return
    kept = ["_hoodie_partition_path", "_hoodie_record_key", "_hoodie_commit_time", "_hoodie_commit_seqno"]
    after = opened.to_arrow(columns=kept)
    old = set(zip(*(before[name].to_pylist() for name in kept), strict=True))
    new = set(zip(*(after[name].to_pylist() for name in kept), strict=True))
    assert {row for row in new if row[2] != instant} == new & old
    assert new & old
