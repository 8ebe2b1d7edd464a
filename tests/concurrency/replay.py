"""What a table must hold at each moment, from the operations that landed, in the order in which they became visible.

::

    Done + completed instants ─► Landed, in order of publishing, and those that were Undone again
                                    └─► effect of each, from what it was pinned to, applied to what is there ─► States

A write sees the table as it was when it began (its requested file is made under the table's lock) and becomes visible
when its completed file is made, under the lock again. What it changes follows from what it saw: rows that it saw are
replaced or removed, rows that it did not see are not. Where conflicts are looked for, a row that it saw is there still.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tests.concurrency.history import FIRST, Attempt, Done
from tests.concurrency.worlds import Op, World, partition_of

__all__ = ["Compaction", "Landed", "Row", "State", "States", "Undone", "effect", "replay", "shown"]


@dataclass(frozen=True, slots=True)
class Row:
    """One row: its value, the requested time of the write that made it, and its ordering value."""

    value: int
    instant: str
    ts: int = 0


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

    @property
    def since(self) -> int:
        """When it became visible, at the earliest."""
        return self.attempt.tried or self.at


@dataclass(frozen=True, slots=True)
class Undone:
    """A visible write that was rolled back: it is as if it had never been.

    Attributes:
        requested: its requested time.
        since: when it went off the timeline, at the earliest.
        at: at the latest.
    """

    requested: str
    since: int
    at: int


@dataclass(frozen=True, slots=True)
class Compaction:
    """A compaction that was requested: in each of its file groups it begins a file slice.

    Attributes:
        requested: its requested time.
        groups: partition path and file id of the file groups in its plan.
    """

    requested: str
    groups: frozenset[tuple[str, str]]

    def may_concern(self, world: World, key: str) -> bool:
        """Whether the file group of a key is among its own: surely, if keys have their buckets; else by partition."""
        place, bucket = partition_of(key, world.partitions), world.bucket_of(key)
        begin = "" if bucket is None else f"{bucket:08d}-"
        return any(partition == place and file_id.startswith(begin) for partition, file_id in self.groups)


@dataclass(slots=True)
class States:
    """What the table held.

    Attributes:
        landed: writes in the order in which they became visible; those that were undone again, too.
        events: the same, and what was undone, in the order in which that was seen.
        states: what it held before the first event, and after each.
        compactions: those that were requested.
        faults: what cannot have happened if conflicts had been found.
        unsure: keys whose rows nobody can tell: a delete that saw nothing, beside an insert; a late row after a
            delete.
        duplicates: keys that were there twice at some time.
        deleted: with ordering values: the highest of a key's rows when one of them was deleted.
    """

    landed: list[Landed]
    events: list[Landed | Undone]
    states: list[State]
    compactions: tuple[Compaction, ...] = ()
    faults: list[str] = field(default_factory=list)
    unsure: set[str] = field(default_factory=set)
    duplicates: set[str] = field(default_factory=set)
    deleted: dict[str, int] = field(default_factory=dict)

    def pinned(self, attempt: Attempt) -> State:
        """What a write saw; of another program's it is taken that nothing came between."""
        if attempt.foreign:
            return self.states[next(n for n, one in enumerate(self.events) if getattr(one, "attempt", None) is attempt)]
        return self.states[sum(one.at < attempt.pinned for one in self.events)]

    @property
    def undone(self) -> set[str]:
        """Requested times of what was undone."""
        return {one.requested for one in self.events if isinstance(one, Undone)}

    def without_later(self, world: World, requested: str) -> State:
        """What a look back to a requested time finds: nothing of writes that were requested later."""
        state: State = {}
        if not world.blocks:
            seen = [one for one in self.landed if one.attempt.instant.requested <= requested]
            return _side_by_side(world, seen, self.compactions)[0]
        for one in self.landed:
            if one.attempt.instant.requested <= requested and one.attempt.instant.requested not in self.undone:
                state = _apply(world, state, one, self.pinned(one.attempt), None)
        return state

    def moved_on(self, world: World, requested: str) -> set[str]:
        """Keys that a look back to a requested time finds without their last change, as with Apache Hudi.

        A log file that was complete after a compaction was requested belongs to the slice of the compaction, which is
        of a later time than the look back.

        Args:
            world: the world.
            requested: the time of the look back.
        """
        later = [one for one in self.compactions if one.requested > requested]
        return {
            key
            for one in self.landed
            for key in one.done.op.keys
            if any(
                one.attempt.instant.requested < each.requested < one.attempt.completion and each.may_concern(world, key)
                for each in later
            )
        }


def shown(state: State) -> list[list[object]]:
    """Key and value of each row, sorted."""
    return sorted([key, row.value] for key, rows in state.items() for row in rows)


def replay(
    world: World, landed: Sequence[Landed], compactions: Sequence[Compaction] = (), undone: Sequence[Undone] = ()
) -> States:
    """Work out what the table held after each write.

    Args:
        world: the world.
        landed: its writes that became visible, in any order.
        compactions: all that were requested.
        undone: those that were rolled back again.
    """
    ordered = sorted(landed, key=lambda one: one.at)
    events = sorted([*landed, *undone], key=lambda one: one.at)
    states = States(ordered, events, [{}], tuple(compactions))
    for number, one in enumerate(events):
        if isinstance(one, Undone):
            states.states.append(_left_of(world, states, number))
        elif world.blocks:
            states.states.append(_apply(world, states.states[-1], one, states.pinned(one.attempt), states))
        else:
            state, unsure = _side_by_side(world, ordered[: number + 1], states.compactions)
            states.states.append(state)
            states.unsure |= unsure
    if not world.blocks:
        states.unsure |= {key for one in ordered for key in _unseen(states, one)}
    return states


def _left_of(world: World, states: States, number: int) -> State:
    """What is there after an event: of all that came before, what was not undone."""
    before = states.events[: number + 1]
    undone = {one.requested for one in before if isinstance(one, Undone)}
    state: State = {}
    for one in before:
        if isinstance(one, Landed) and one.attempt.instant.requested not in undone:
            state = _apply(world, state, one, states.pinned(one.attempt), None)
    return state


def effect(world: World, done: Done, seen: State) -> tuple[dict[str, tuple[Row, ...]], dict[str, Row]]:
    """What a write changes, given what it saw.

    Returns:
        Rows that it takes away, by key, and rows that it puts there, by key; these have no instant.
    """
    op = done.op
    made = {key: Row(op.value, "", op.ts) for key in op.keys}
    if op.verb in ("insert_overwrite", "delete_partition"):
        return {key: rows for key, rows in seen.items() if partition_of(key, world.partitions) == op.partition}, made
    if op.verb == "insert":  # keys that nobody else has
        return {}, made
    gone = {key: seen[key] for key in op.keys if seen.get(key)}
    if op.verb == "delete":
        return gone, {}
    if op.verb == "increment":
        return gone, {key: Row(rows[0].value + 1, "", rows[0].ts) for key, rows in gone.items()}
    late = {key for key, rows in gone.items() if world.is_by_time and op.ts < max(row.ts for row in rows)}
    return {key: rows for key, rows in gone.items() if key not in late}, {
        key: row for key, row in made.items() if key not in late
    }


def _side_by_side(world: World, landed: Sequence[Landed], compactions: Sequence[Compaction]) -> tuple[State, set[str]]:
    """The rows where writers log beside each other, and keys whose rows nobody can tell.

    The log entries of a key come in the order of file slices, and in a slice in that of requests. The slice of an entry
    is that of the last compaction of its file group that was requested before the log file was complete. The last row
    counts; with ordering values it is the last of those with the highest one.
    """
    entries: dict[str, list[tuple[int, str, Op]]] = {}
    for one in landed:
        requested, completion = one.attempt.instant.requested, one.attempt.completion
        for key in one.done.op.keys:
            begun = sum(each.requested < completion and each.may_concern(world, key) for each in compactions)
            entries.setdefault(key, []).append((begun, requested, one.done.op))
    state, unsure = dict[str, tuple[Row, ...]](), set[str]()
    for key, ops in entries.items():
        row, highest = None, 0
        for _, requested, op in sorted(ops, key=lambda entry: entry[:2]):
            if op.verb == "delete":
                row = None
            elif row is None or not world.is_by_time or op.ts >= row.ts:
                if row is None and op.ts < highest:  # what was deleted is in a base file, or is not any more
                    unsure.add(key)
                row, highest = Row(op.value, requested, op.ts), max(highest, op.ts)
        state[key] = () if row is None else (row,)
    return state, unsure


def _unseen(states: States, one: Landed) -> set[str]:
    """Keys that a delete did not see, while another writer was about to insert them: it may have passed them over."""
    if one.done.op.verb != "delete":
        return set()
    beside = [each for each in states.landed if each.at > one.attempt.pinned and each.attempt.pinned < one.at]
    named = {key for each in beside if each is not one for key in each.done.op.keys}
    return {key for key in one.done.op.keys if key in named and not states.pinned(one.attempt).get(key)}


def _apply(world: World, now: State, one: Landed, seen: State, states: States | None) -> State:
    gone, made = effect(world, one.done, seen)
    instant = one.attempt.instant.requested
    after = dict(now)
    if states is not None and one.attempt.foreign:
        states.unsure |= _overlooked(world, states, one)
    for key, rows in gone.items():
        left = tuple(row for row in after.get(key, ()) if row not in rows)
        if states is not None and key not in states.unsure and not set(rows) <= set(now.get(key, ())):
            states.faults.append(
                f"LOST UPDATE: {one.done.name} ({instant}) saw {key} as {_said(rows)}, but when it landed it was "
                f"{_said(now.get(key, ()))}; it should have been refused"
            )
        after[key] = left
    unseen = set() if states is None else _made_since(world, states, one) - set(gone)
    if states is not None and world.is_by_time:
        _note_late(states, one.done.op, gone, made)
    for key, row in made.items():
        if states is not None and (after.get(key) or key in unseen):
            states.duplicates.add(key)
            states.unsure.add(key)  # which of the rows a later write finds is the index's affair
            if world.is_bucket and after.get(key):
                states.faults.append(
                    f"DUPLICATE KEY: {one.done.name} ({instant}) did not see {key}, which was {_said(now[key])} when "
                    "it landed; it should have been refused"
                )
        copies = len(gone.get(key, ())) or 1
        after[key] = (*after.get(key, ()), *[replace(row, instant=instant)] * copies)
    return after


def _note_late(states: States, op: Op, gone: Mapping[str, Sequence[Row]], made: Mapping[str, Row]) -> None:
    """A row that comes after a delete and is older than what was deleted is there or not: a log merges with the base
    file, which may have the deleted row still, only after it was merged in itself."""
    if op.verb == "delete":
        for key, rows in gone.items():
            states.deleted[key] = max([states.deleted.get(key, 0), *(row.ts for row in rows)])
    states.unsure |= {key for key, row in made.items() if row.ts < states.deleted.get(key, 0)}


def _overlooked(world: World, states: States, one: Landed) -> set[str]:
    """Keys of another program's write that may be lost: somebody wrote beside them who began later and landed first.

    Apache Hudi notes what is complete once its instant is requested, and without the lock: what lands in between is
    no conflict to it (``BaseHoodieWriteClient#preWrite``), and base files and logs come in the order of requests.
    """
    before = states.landed[: states.landed.index(one)]
    between = [each for each in before if each.attempt.instant.requested > one.attempt.instant.requested]
    met = {partition_of(key, world.partitions) for each in between for key in each.done.op.keys}
    return {key for key in one.done.op.keys if partition_of(key, world.partitions) in met}


def _made_since(world: World, states: States, one: Landed) -> set[str]:
    """Keys that others put there since a write was pinned: it has them in another file group, if it has them.

    They count although they were deleted again: what a log deletes is in its base file still, where indexes find it.
    """
    before = states.landed[: states.landed.index(one)]
    beside = [each for each in before if each.at > one.attempt.pinned]
    return {key for each in beside for key in effect(world, each.done, states.pinned(each.attempt))[1]}


def _said(rows: Sequence[Row]) -> str:
    return " and ".join(f"{row.value} of {row.instant}" for row in rows) or "absent"


def is_first(done: Done) -> bool:
    """Whether it belongs to the making of the table."""
    return done.writer == FIRST
