"""Was anything lost? A history against what a serial world allows.

::

    History ─► which attempts landed, by the timeline and its archive      against what writers were told
            ─► replay                                                      against lost updates, duplicate keys
            ─► reads during the history, snapshot, looks back, increments  against the states of the replay
            ─► times, files, pending instants, metadata table              against the rules of the format

Every check returns sentences that say what is wrong; none is a history in which nothing was lost.
"""

from __future__ import annotations

import itertools
import random
import traceback
import warnings
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import hudi_fast as hf
from hudi_fast.errors import ConfigError
from hudi_fast.metadata_table.state import open_state
from hudi_fast.timeline.archive.timeline import ArchivedTimeline
from hudi_fast.timeline.commit_metadata import WriteStat, decode_commit_metadata
from hudi_fast.timeline.service_plans import CompactionOperation
from hudi_fast.view.pending import read_compaction_plan
from tests.concurrency.history import Done, History
from tests.concurrency.replay import Compaction, Landed, State, States, Undone, effect, replay, shown
from tests.concurrency.script import rows_seen
from tests.concurrency.worlds import WRITES
from tests.support.small_tables import assert_tidy

__all__ = ["Verdict", "check"]

_LOOKS = 2
_IN_RECOVERY = 1 << 63
"""When recovery took a write off the timeline: after all that writers did."""

_UNDOING = ("undo", "restore")
_UNINDEXABLE = "InvalidDataError: The metadata partition record_index would get "


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a history was.

    Attributes:
        wrong: what must not be; empty when nothing was lost.
        outcomes: operations by verb and outcome.
        conflicts: operations that were refused because of another writer.
        duplicates: keys that two inserts put there, which indexes by file groups admit.
        refused_looks: looks back, or at changes, that the table refused: files are gone, or a write was under way.
    """

    wrong: tuple[str, ...]
    outcomes: Counter[str]
    conflicts: int
    duplicates: int
    refused_looks: int


@dataclass(slots=True)
class _Timeline:
    """The table's instants, archive included: completion times by requested time; what was undone, and by what rollback
    or restore."""

    completed: dict[str, str]
    pending: set[str]
    rolled_back: list[tuple[str, str]]


def check(history: History, looks: int = _LOOKS) -> Verdict:
    """Judge a history.

    Args:
        history: what happened; its table is there still.
        looks: how many looks back, and at changes.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _check(history, looks)


def _check(history: History, looks: int) -> Verdict:
    wrong: list[str] = []
    refused = 0
    states = None
    try:
        timeline = _timeline(history)
        undone = _undone(history, timeline)
        landed = list(_landed(history, {*timeline.completed, *(one.requested for one in undone)}))
        states = replay(history.world, landed, _compactions(history), undone)
        wrong += _told_the_truth(history, timeline, states)
        wrong += states.faults
        wrong += _reads(history, states)
        wrong += _final(history, states)
        wrong += _times(history, states)
        wrong += _alive_ones_left_alone(history, timeline)
        wrong += _in_order(history)
        found, refused = _looks_back(history, states, looks)
        wrong += found
    except Exception as error:  # the table cannot be understood any more
        wrong.append(f"UNREADABLE: {type(error).__name__}: {error}")
    conflicts = sum("Conflict" in one.error for one in history.done)
    outcomes = Counter(f"{one.op.verb} {one.outcome}" for one in history.done)
    return Verdict(tuple(wrong), outcomes, conflicts, len(states.duplicates) if states else 0, refused)


def _timeline(history: History) -> _Timeline:
    state = open_state(history.site.storage())
    found = hf.HudiTable(state.storage).history(archived=True).to_pylist()
    found = [one for one in found if one["action"] != "savepoint"]  # it has the time of its commit
    completed = {one["instant"]: one["completion"] or "" for one in found if one["state"] == "COMPLETED"}
    pending = {one["instant"] for one in found if one["state"] != "COMPLETED"}
    undone = [
        (target, one["instant"])
        for one in found
        if one["action"] in ("rollback", "restore") and one["state"] == "COMPLETED"
        for target in one["rolled_back"]
    ]
    return _Timeline(completed, pending, undone)


def _undone(history: History, timeline: _Timeline) -> list[Undone]:
    """What was rolled back on purpose, although it was complete; whoever finished it."""
    makers = {attempt.instant.requested: done for done in history.done for attempt in done.attempts}
    asked = {target for target, by in timeline.rolled_back if by in makers and makers[by].op.verb in _UNDOING}
    went: dict[str, tuple[int, int]] = {}
    for done in history.done:
        for requested, begun, ended in done.taken:
            if requested not in timeline.completed and requested in asked:
                went[requested] = min(begun, went.get(requested, (begun, 0))[0]), ended
    for requested, *_ in history.recovery.taken:
        if requested in asked:
            went.setdefault(requested, (_IN_RECOVERY, _IN_RECOVERY))
    return [Undone(requested, *times) for requested, times in went.items()]


def _landed(history: History, visible: Collection[str]) -> Iterator[Landed]:
    for done in history.done:
        if done.op.verb in WRITES:
            for attempt in done.attempts:
                if attempt.is_write and attempt.tried is not None and attempt.instant.requested in visible:
                    yield Landed(done, attempt, attempt.published or attempt.tried)


def _compactions(history: History) -> list[Compaction]:
    """The compactions of the timeline, with the file groups of their plans, and those of its archive, with the file
    groups that they wrote."""
    state = open_state(history.site.storage())
    attempts = (one.instant for done in history.done for one in done.attempts)
    asked = {one.requested: one for one in attempts if one.action == "compaction"}
    if not asked:
        return []
    groups: dict[str, tuple[CompactionOperation | WriteStat, ...]] = {
        requested: read_compaction_plan(state.storage, state.config, one).operations
        for requested, one in asked.items()
        if state.timeline.find(requested) is not None
    }
    for one in ArchivedTimeline(state.storage, state.config).read(min(asked), max(asked)):
        if one.requested in asked.keys() - groups.keys() and one.action == "commit":
            groups[one.requested] = tuple(decode_commit_metadata(one.metadata or b"", None).write_stats())
    return [
        Compaction(requested, frozenset((one.partition_path, one.file_id) for one in parts))
        for requested, parts in groups.items()
    ]


def _told_the_truth(history: History, timeline: _Timeline, states: States) -> Iterator[str]:
    """What a writer was told agrees with the timeline."""
    landed = Counter(id(one.done) for one in states.landed)
    by_instant = {one.attempt.instant.requested: one for one in states.landed}
    injected = any(one.kind in ("before", "after", "tear", "kill") for one in history.world.faults)
    for done in history.done:
        times = landed[id(done)]
        if times > 1:
            yield f"LANDED TWICE: {done.name}"
        if done.outcome == "landed" and (done.instant not in by_instant or by_instant[done.instant].done is not done):
            yield f"LOST COMMIT: {done.name} was told that {done.instant} landed; it is not on the timeline"
        if done.outcome in ("refused", "empty", "crashed") and times:
            yield f"LANDED ALL THE SAME: {done.name} was told {done.outcome} ({done.error})"
        if done.outcome == "crashed" and not injected:
            yield f"CRASHED: {done.name}: {done.error}"
        if done.outcome == "empty":
            gone, made = effect(history.world, done, states.pinned([one for one in done.attempts if one.is_write][-1]))
            if gone or made:
                yield f"DID NOTHING: {done.name} found nothing to do, where there were {sorted({*gone, *made})}"
        if done.op.verb == "read" and done.outcome == "refused" and not injected and not _was_cut_short(history, done):
            yield f"READ FAILED: {done.name}: {done.error}"


def _was_cut_short(history: History, read: Done) -> bool:
    """Whether a reader was told that a file went which nobody had promised to keep for it."""
    verbs = {op.verb for script in history.world.scripts for op in script}
    keeps_one = history.world.options["hoodie.cleaner.fileversions.retained"] == "1"
    replaces = verbs & {"cluster", "insert_overwrite", "delete_partition"}  # what was replaced goes with the next clean
    cleaned = "clean" in verbs and (keeps_one or replaces)
    return read.error.startswith("FileGoneError") and bool(verbs & {*_UNDOING} or cleaned)


def _reads(history: History, states: States) -> Iterator[str]:
    """A reader sees the table as it was at some moment of its reading."""
    for done in history.done:
        if done.outcome == "read" and done.rows is not None and done.end is not None:
            if not any(_same(done.rows, states.states[n], states) for n in _visible(states, done)):
                allowed = " or ".join(str(shown(states.states[n])) for n in _visible(states, done))
                yield f"TORN READ: {done.name} saw {done.rows}; the table was {allowed}"


def _visible(states: States, done: Done) -> list[int]:
    """Numbers of the states that the table may have had while an operation ran."""
    assert done.end is not None
    first = sum(one.at < done.begin for one in states.events)
    last = sum(one.since < done.end for one in states.events)
    return list(range(first, last + 1))


def _final(history: History, states: States) -> Iterator[str]:
    """At the end: rows, files, pending instants, the metadata table."""
    table = history.site.table()
    if history.warning:
        yield f"WARNED: {history.warning}"
    # A record index that an undo dropped cannot be built again where writers inserted one key twice, as is said there.
    trouble = history.recovery.error
    unindexable = states.duplicates and trouble.startswith(_UNINDEXABLE)
    if trouble and not unindexable:
        yield f"NO RECOVERY: {trouble}"
    then = states.states[sum(one.at < _IN_RECOVERY for one in states.events)]
    for when, rows, wanted in (
        ("after the last writer", history.before_recovery, then),
        ("after recovery", rows_seen(table.to_arrow(columns=["id", "v"])), states.states[-1]),
    ):
        if not _same(rows, wanted, states):
            yield f"WRONG ROWS {when}: {rows} where {shown(wanted)} were written"
    result = table.services.validate()
    differences = result.differences.to_pylist()
    if states.duplicates:  # of two rows with one key the record index knows one
        differences = [one for one in differences if one["partition"] != "record_index"]
    if differences:
        yield f"METADATA TABLE: {differences[:3]}"
    if history.world.faults:  # what a savepoint that died leaves is in no write's way; delete_savepoint takes it away
        for left in history.site.storage().list_dir(".hoodie", recursive=True):
            if left.name.endswith(".savepoint.inflight"):
                history.site.storage().delete_file(left.path)
    try:
        if not unindexable:  # then services wait
            assert_tidy(history.site.storage())
    except AssertionError:
        yield f"UNTIDY: {traceback.format_exc()[-600:]}"


def _times(history: History, states: States) -> Iterator[str]:
    """Times are unique, grow in the order of requests, and completions in that of publishing.

    A time that was withdrawn is on no timeline: who comes next with a slow clock may take an earlier one.
    """
    attempts = [one for done in history.done for one in done.attempts if not one.is_withdrawn]
    for earlier, later in itertools.pairwise(sorted(attempts, key=lambda one: one.pinned)):
        times = earlier.instant.requested, later.instant.requested
        if times[1] <= times[0]:
            yield f"TIMES: {times[1]} was requested after {times[0]}"
    if history.world.version < 8:
        return
    completions = [one.attempt.completion for one in states.landed]
    for earlier, later in itertools.pairwise(completions):
        if later <= earlier:
            yield f"TIMES: the completion {later} came after {earlier}"
    for one in states.landed:
        if one.attempt.completion <= one.attempt.instant.requested:
            yield f"TIMES: {one.attempt.instant.requested} was complete at {one.attempt.completion}"


def _alive_ones_left_alone(history: History, timeline: _Timeline) -> Iterator[str]:
    """Nobody's work was rolled back by others while it was alive, unless its signs of life may have come late; an
    operation that cannot roll back what it gives up leaves that to others, and goes on trying."""
    if not history.world.is_calm:
        return
    makers = {one.instant.requested: (done, one) for done in history.done for one in done.attempts}
    taken = {requested for done in (*history.done, history.recovery) for requested, *_ in done.taken}
    for target, rollback in timeline.rolled_back:
        if target not in makers or rollback not in makers:
            continue
        (owner, undone), (undoer, undoing) = makers[target], makers[rollback]
        if owner.writer == undoer.writer or undoer.op.verb == "undo" or target in taken:
            continue
        end = undone.ended or owner.end
        if end is not None and undoing.pinned < end:
            yield f"ROLLED BACK ALIVE: {target} of {owner.name} by {undoer.name}"


def _in_order(history: History) -> Iterator[str]:
    """Sections of the lock exclude each other: nobody makes an instant visible while another does."""
    windows = sorted(
        (one.tried, one.published, done.name)
        for done in history.done
        for one in done.attempts
        if one.tried is not None and one.published is not None
    )
    for (_, ended, first), (begun, _, second) in itertools.pairwise(windows):
        if begun < ended:
            yield f"TWO AT ONCE: {first} and {second} published at the same time"


def _looks_back(history: History, states: States, looks: int) -> tuple[list[str], int]:
    """Looks at the past and at changes find what the replay says, or are refused because files are gone."""
    table, wrong, refused = history.site.table(), list[str](), 0
    chance = random.Random(history.world.seed)
    chosen = chance.sample(states.landed, min(looks, len(states.landed)))
    for one in chosen:
        instant = one.attempt.instant.requested
        try:
            rows = rows_seen(table.to_arrow(columns=["id", "v"], as_of=instant))
            wanted = states.without_later(history.world, instant)
            passed_over = states.moved_on(history.world, instant)
            if not _same(rows, wanted, states, passed_over):
                wrong.append(f"LOOK BACK to {instant}: {rows} where {shown(wanted)} were")
        except ConfigError:
            refused += 1
    for one in chosen[:1]:
        changed, refusals = _changes(history, table, states, one)
        wrong, refused = wrong + changed, refused + refusals
    return wrong, refused


def _changes(history: History, table: hf.HudiTable, states: States, one: Landed) -> tuple[list[str], int]:
    begin = one.attempt.completion if history.world.version >= 8 else one.attempt.instant.requested
    try:
        rows = rows_seen(table.incremental(begin, columns=["id", "v"]))
    except ConfigError:
        return [], 1
    if history.world.version >= 8:
        later = {each.attempt.instant.requested for each in states.landed if each.attempt.completion > begin}
    else:
        later = {each.attempt.instant.requested for each in states.landed if each.attempt.instant.requested > begin}
    wanted = {key: tuple(row for row in rows if row.instant in later) for key, rows in states.states[-1].items()}
    world = history.world
    has_late = not world.blocks or (world.is_by_time and world.is_mor)
    if _same(rows, wanted, states) or (has_late and _late_ones_aside(rows, wanted, states, later)):
        return [], 0
    return [f"CHANGES since {begin}: {rows} where {shown(wanted)} were written"], 0


def _late_ones_aside(rows: list[list[Any]], wanted: State, states: States, later: Collection[str]) -> bool:
    """Whether the rows are those that are wanted, and some of the range that lost against writes before it.

    Where writers log beside each other, what completed last may have been requested first; with ordering values, it may
    be older. A reader of the range knows nothing of what completed before it, nor does Apache Hudi.
    """
    made = {
        (key, one.done.op.value)
        for one in states.landed
        for key in one.done.op.keys
        if one.attempt.instant.requested in later and one.done.op.verb != "delete"
    }
    on_time = [row for row in rows if wanted.get(row[0]) or (row[0], row[1]) not in made]
    return _same(on_time, wanted, states)


def _same(rows: list[list[Any]], state: State, states: States, passed_over: Collection[str] = ()) -> bool:
    unsure = states.unsure.union(passed_over)
    return [row for row in rows if row[0] not in unsure] == [row for row in shown(state) if row[0] not in unsure]
