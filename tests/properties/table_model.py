"""What a table should hold, as a dict: the rules of Hudi applied to one row after the other."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

__all__ = ["Counts", "Key", "Model", "Row"]

Key = tuple[str | None, str]


@dataclass(frozen=True)
class Row:
    """One row; ``ts`` is the ordering value, and ``gone`` the flag that makes a row a delete."""

    id: str
    part: str | None
    ts: int | None
    v: int | None
    gone: bool = False

    def values(self) -> tuple[Any, ...]:
        return self.id, self.part, self.ts, self.v


@dataclass
class Counts:
    """What a write reports."""

    inserts: int = 0
    updates: int = 0
    deletes: int = 0


@dataclass
class Model:
    """Rows by key, each with the instant that wrote it.

    Attributes:
        partitioned: whether ``part`` makes the partition.
        by_time: event-time ordering by ``ts``; the last write wins otherwise.
        is_global: keys are unique over all partitions.
    """

    partitioned: bool
    by_time: bool
    is_global: bool
    rows: dict[Key, tuple[Row, str]] = field(default_factory=dict)

    def place(self, row: Row) -> str | None:
        """The partition; null and the empty text share one."""
        return (row.part or "__HIVE_DEFAULT_PARTITION__") if self.partitioned else ""

    def places(self) -> set[str | None]:
        """The partitions."""
        return {place for place, _ in self.rows}

    def find(self, row: Row) -> Key | None:
        """Where the row's key is stored."""
        if self.is_global:
            return next((key for key in self.rows if key[1] == row.id), None)
        key = (self.place(row), row.id)
        return key if key in self.rows else None

    def upsert(self, batch: list[Row], instant: str) -> Counts:
        counts = Counts()
        for row in self.combined(batch):
            stored = self.find(row)
            if stored is None:
                if not row.gone:
                    self.rows[self.place(row), row.id] = (row, instant)
                    counts.inserts += 1
            elif self.beats_stored(row, self.rows[stored][0]):
                moves = stored[0] != self.place(row)
                del self.rows[stored]
                counts.deletes += row.gone or moves
                if not row.gone:
                    self.rows[self.place(row), row.id] = (row, instant)
                    counts.inserts += moves
                    counts.updates += not moves
        return counts

    def insert(self, batch: list[Row], instant: str) -> None:
        for row in batch:
            assert self.find(row) is None
            self.rows[self.place(row), row.id] = (row, instant)

    def delete(self, rows: list[Row]) -> int:
        found = {key for key in map(self.find, rows) if key is not None}
        for key in found:
            del self.rows[key]
        return len(found)

    def drop_partitions(self, names: set[str | None]) -> None:
        self.rows = {key: row for key, row in self.rows.items() if key[0] not in names}

    def combined(self, batch: list[Row]) -> list[Row]:
        """One row per key: each is compared with what the rows before it came to."""
        kept: dict[Key, Row] = {}
        for row in batch:
            key = ("" if self.is_global else self.place(row), row.id)
            if key not in kept or self._beats_earlier(row, kept[key]):
                kept[key] = row
        return list(kept.values())

    def _beats_earlier(self, new: Row, old: Row) -> bool:
        if not self.by_time:
            return True
        if self._always(new) or self._always(old):
            return True
        return (new.ts or 0) >= (old.ts or 0)

    def beats_stored(self, new: Row, old: Row) -> bool:
        """Whether a row, or a delete, replaces what a base file holds."""
        return not self.by_time or self._always(new) or (new.ts or 0) >= (old.ts or 0)

    def _always(self, row: Row) -> bool:
        """A delete without an ordering value beats everything."""
        return row.gone and row.ts is None
