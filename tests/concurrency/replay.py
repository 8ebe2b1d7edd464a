"""What a table must hold at each moment, from the operations that landed, in the order in which they became visible.

::

    Done + completed instants ─► Landed, in order of publishing
                                    └─► effect of each, from what it was pinned to, applied to what is there ─► States

A write sees the table as it was when it began (its requested file is made under the table's lock) and becomes visible
when its completed file is made, under the lock again. What it changes follows from what it saw: rows that it saw are
replaced or removed, rows that it did not see are not. Where conflicts are looked for, a row that it saw is there still.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from concurrency.history import FIRST, Attempt, Done
from concurrency.worlds import World, partition_of

__all__ = ["Landed", "Row", "State", "States", "effect", "replay", "shown"]


@dataclass(frozen=True, slots=True)
class Row:
    """One row: its value and the requested time of the write that made it."""

    value: int
    instant: str


State = Mapping[str, tuple[Row, ...]]
"""Rows by key: more than one where two inserts of one key both landed."""


@dataclass(frozen=True, slots=True)
class Landed:
    """A write that is visible.

    Attributes:
        done: its operation.
        attempt: the attempt that landed.
        at: when it became visible, at the latest.
    """

    done: Done
    attempt: Attempt
    at: int


@dataclass(slots=True)
class States:
    """What the table held.

    Attributes:
        landed: writes in the order in which they became visible.
        states: what it held before the first of them, and after each.
        faults: what cannot have happened if conflicts had been found.
        unsure: keys whose rows nobody can tell: a delete that saw nothing, beside an insert.
        duplicates: keys that were there twice at some time.
    """

    landed: list[Landed]
    states: list[State]
    faults: list[str] = field(default_factory=list)
    unsure: set[str] = field(default_factory=set)
    duplicates: set[str] = field(default_factory=set)

    def pinned(self, attempt: Attempt) -> State:
        """What a write saw."""
        return self.states[sum(one.at < attempt.pinned for one in self.landed)]

    def without_later(self, world: World, requested: str) -> State:
        """What a look back to a requested time finds: nothing of writes that were requested later."""
        state: State = {}
        for one in self.landed:
            if one.attempt.instant.requested <= requested:
                state = _apply(world, state, one, self.pinned(one.attempt), None)
        return state

    def moved_on(self, requested: str, compactions: Sequence[str]) -> set[str]:
        """Keys that a look back to a requested time finds without their last change, as with Apache Hudi.

        A log file that was complete after a compaction was requested belongs to the slice of the compaction, which is
        of a later time than the look back.

        Args:
            requested: the time of the look back.
            compactions: requested times of all compactions.
        """
        later = [one for one in compactions if one > requested]
        beside = [
            one
            for one in self.landed
            if any(one.attempt.instant.requested < each < one.attempt.completion for each in later)
        ]
        return {key for one in beside for key in one.done.op.keys}


def shown(state: State) -> list[list[object]]:
    """Key and value of each row, sorted."""
    return sorted([key, row.value] for key, rows in state.items() for row in rows)


def replay(world: World, landed: Sequence[Landed]) -> States:
    """Work out what the table held after each write.

    Args:
        world: the world.
        landed: its writes that are visible, in any order.
    """
    ordered = sorted(landed, key=lambda one: one.at)
    states = States(ordered, [{}])
    for one in ordered:
        states.states.append(_apply(world, states.states[-1], one, states.pinned(one.attempt), states))
    return states


def effect(world: World, done: Done, seen: State) -> tuple[dict[str, tuple[Row, ...]], dict[str, int]]:
    """What a write changes, given what it saw.

    Returns:
        Rows that it takes away, by key, and values that it puts there, by key.
    """
    op = done.op
    if op.verb in ("insert_overwrite", "delete_partition"):
        inside = {key: rows for key, rows in seen.items() if partition_of(key, world.partitions) == op.partition}
        return inside, dict.fromkeys(op.keys, op.value)
    gone = {key: seen[key] for key in op.keys if seen.get(key)}
    if op.verb == "delete":
        return gone, {}
    if op.verb == "increment":
        return gone, {key: rows[0].value + 1 for key, rows in gone.items()}
    if op.verb == "insert":  # keys that nobody else has
        return {}, dict.fromkeys(op.keys, op.value)
    return gone, dict.fromkeys(op.keys, op.value)


def _apply(world: World, now: State, one: Landed, seen: State, states: States | None) -> State:
    gone, made = effect(world, one.done, seen)
    instant = one.attempt.instant.requested
    after = dict(now)
    if not world.blocks:  # log files beside each other: the last write of a key wins
        for key in {*gone, *made}:
            after[key] = (Row(made[key], instant),) if key in made else ()
        if states is not None:
            states.unsure -= set(made)
            states.unsure |= {key for key in one.done.op.keys if key not in made and key not in gone and now.get(key)}
        return after
    for key, rows in gone.items():
        left = tuple(row for row in after.get(key, ()) if row not in rows)
        if states is not None and not set(rows) <= set(now.get(key, ())):
            states.faults.append(
                f"LOST UPDATE: {one.done.name} ({instant}) saw {key} as {_said(rows)}, but when it landed it was "
                f"{_said(now.get(key, ()))}; it should have been refused"
            )
        after[key] = left
    for key, value in made.items():
        if after.get(key) and states is not None:
            states.duplicates.add(key)
            if world.is_bucket:
                states.faults.append(
                    f"DUPLICATE KEY: {one.done.name} ({instant}) did not see {key}, which was {_said(now[key])} when "
                    "it landed; it should have been refused"
                )
        copies = len(gone.get(key, ())) or 1
        after[key] = (*after.get(key, ()), *[Row(value, instant)] * copies)
    return after


def _said(rows: Sequence[Row]) -> str:
    return " and ".join(f"{row.value} of {row.instant}" for row in rows) or "absent"


def is_first(done: Done) -> bool:
    """Whether it belongs to the making of the table."""
    return done.writer == FIRST
