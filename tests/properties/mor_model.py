"""What a MERGE_ON_READ table should hold: of every key the row of the base file, and what was logged about it since."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from tests.properties.table_model import Counts, Key, Model, Row

__all__ = ["MorModel", "Stored"]


@dataclass(frozen=True)
class Stored:
    """One key: the base file's row and its instant, and log entries with theirs, oldest first."""

    base: tuple[Row, str] | None
    log: tuple[tuple[Row, str], ...] = ()


@dataclass
class MorModel:
    """Keys with what is stored of them, dead ones too, for an index finds them in base files.

    A record index forgets a key that dies: when it comes again it gets a new place, and the old one is a grave until
    the next compaction. A bucket index looks nothing up: whatever belongs to a bucket that is there is logged.

    Attributes:
        partitioned: whether ``part`` makes the partition.
        by_time: event-time ordering by ``ts``; the last write wins otherwise.
        forgets: there is a record index.
        bucket_of: bucket number of a key, when there is a bucket index.
        stored: by key.
        graves: what is left of keys that died and came again.
        buckets: (partition, bucket) of the file groups.
        rewritten: keys of base files that the last write rewrote instead of logging, as its commit says.
    """

    partitioned: bool
    by_time: bool
    forgets: bool = False
    bucket_of: Callable[[str], int] | None = None
    stored: dict[Key, Stored] = field(default_factory=dict)
    graves: list[tuple[Key, Stored]] = field(default_factory=list)
    buckets: set[tuple[str | None, int]] = field(default_factory=set)
    rewritten: set[Key] = field(default_factory=set)
    is_global = False

    @property
    def plain(self) -> Model:
        """The rules that COPY_ON_WRITE tables have as well."""
        return Model(self.partitioned, self.by_time, False)

    @property
    def rows(self) -> dict[Key, tuple[Row, str]]:
        """What a snapshot reads: every key's log against its base row."""
        seen = {key: self.merged(one) for key, one in self.stored.items()}
        return {key: row for key, row in seen.items() if row is not None}

    @property
    def base_rows(self) -> int:
        """How many rows base files hold."""
        return sum(one.base is not None for one in [*self.stored.values(), *(one for _, one in self.graves)])

    def place(self, row: Row) -> str | None:
        return self.plain.place(row)

    def places(self) -> set[str | None]:
        """The partitions, those without a living row too."""
        return {place for place, _ in self.stored} | {place for place, _ in self.buckets}

    def find(self, row: Row) -> Key | None:
        """Where the row's key is stored, deleted or not; with a record index, where it lives."""
        key = (self.place(row), row.id)
        one = self.stored.get(key)
        return None if one is None or (self.forgets and self.merged(one) is None) else key

    def bucket(self, key: Key) -> tuple[str | None, int] | None:
        """The bucket of a key."""
        return None if self.bucket_of is None else (key[0], self.bucket_of(key[1]))

    def is_logged(self, key: Key) -> bool:
        """Whether rows of a key that is not found are logged all the same."""
        return self.bucket(key) in self.buckets

    def combined(self, batch: list[Row]) -> list[Row]:
        return self.plain.combined(batch)

    def upsert(self, batch: list[Row], instant: str) -> Counts:
        counts = Counts()
        fresh = set()
        for row in self.combined(batch):
            key = self.find(row)
            if key is None and not self.is_logged((self.place(row), row.id)):
                if not row.gone:
                    fresh.add(self._add(row, instant))
                    counts.inserts += 1
            elif key is None:
                key = (self.place(row), row.id)
                self._append(key, row, instant)
                counts.deletes += row.gone
                counts.updates += not row.gone
            elif key in self.rewritten:
                self._rewrite(key, row, instant, counts)
            else:
                self._append(key, row, instant)
                counts.deletes += row.gone
                counts.updates += not row.gone
        self.buckets |= fresh - {None}
        return counts

    def insert(self, batch: list[Row], instant: str) -> None:
        fresh = set()
        for row in batch:
            assert self.find(row) is None
            key = (self.place(row), row.id)
            if self.is_logged(key):
                self._append(key, row, instant)
            else:
                fresh.add(self._add(row, instant))
        self.buckets |= fresh - {None}

    def delete(self, rows: list[Row]) -> int:
        """Deletes by key: entries without an ordering value, for every key that base files or buckets hold."""
        keys = {(self.place(row), row.id): row for row in rows}
        found = {key: row for key, row in keys.items() if self.find(row) is not None or self.is_logged(key)}
        for key, row in found.items():
            self._append(key, replace(row, ts=None, gone=True), "")
        return len(found)

    def drop_partitions(self, names: set[str | None]) -> None:
        self.stored = {key: one for key, one in self.stored.items() if key[0] not in names}
        self.graves = [(key, one) for key, one in self.graves if key[0] not in names]
        self.buckets = {bucket for bucket in self.buckets if bucket[0] not in names}

    def plan(self) -> dict[Key, int]:
        """How many log entries a compaction that is planned now will take, of every key that has any; 0 for graves."""
        graves = {key: 0 for key, _ in self.graves}
        return graves | {key: len(one.log) for key, one in self.stored.items() if one.log}

    def compact(self, plan: dict[Key, int]) -> None:
        """Base rows become what base row and planned log come to; rows keep the instants of their writers."""
        self.graves = [(key, one) for key, one in self.graves if key not in plan]
        for key, count in plan.items():
            one = self.stored[key]
            left = Stored(self.merged(Stored(one.base, one.log[:count])), one.log[count:])
            if left == Stored(None):
                del self.stored[key]
            else:
                self.stored[key] = left

    def compact_logs(self, instant: str) -> None:
        """One entry for each key is left in the log, as if that instant had written it."""
        for key, one in self.stored.items():
            if one.log:
                self.stored[key] = Stored(one.base, ((self._folded(one)[0], instant),))

    def merged(self, one: Stored) -> tuple[Row, str] | None:
        """The row that a reader sees."""
        if not one.log:
            return one.base
        entry = self._folded(one)
        if one.base is not None and not self.plain.beats_stored(entry[0], one.base[0]):
            return one.base
        return None if entry[0].gone else entry

    def _folded(self, one: Stored) -> tuple[Row, str]:
        kept = one.log[0]
        for entry in one.log[1:]:
            kept = entry if self._beats_logged(entry[0], kept[0]) else kept
        return kept

    def _beats_logged(self, new: Row, old: Row) -> bool:
        if not self.by_time:
            return True
        if not new.gone:
            return (old.gone and old.ts is None) or (new.ts or 0) >= (old.ts or 0)
        if old.gone and old.ts is None:
            return False
        # A missing ordering value is of another type than any other.
        return new.ts is None or old.ts is None or new.ts >= old.ts

    def _add(self, row: Row, instant: str) -> tuple[str | None, int] | None:
        key = (self.place(row), row.id)
        if key in self.stored:
            self.graves.append((key, self.stored[key]))
        self.stored[key] = Stored((row, instant))
        return self.bucket(key)

    def _append(self, key: Key, row: Row, instant: str) -> None:
        one = self.stored.get(key, Stored(None))
        self.stored[key] = Stored(one.base, (*one.log, (row, instant)))

    def _rewrite(self, key: Key, row: Row, instant: str, counts: Counts) -> None:
        one = self.stored[key]
        assert one.base is not None
        assert not one.log
        if self.plain.beats_stored(row, one.base[0]):
            counts.deletes += row.gone
            counts.updates += not row.gone
            if row.gone:
                del self.stored[key]
            else:
                self.stored[key] = Stored((row, instant))
