"""Archiving: select the oldest instants, and move them to the archived timeline.

Archiving: moves the oldest instants from the active timeline to the archived one.

::

    the table's lock ─► plan ─► per 1000 instants: bodies ─► the archive ─► leftover markers ─► files deleted
        ─► the metadata table's own timeline, by its own limits: no further than the data table's

Archiving holds the table's lock, so no writer sees a partial result. An instant is archived before its files are
deleted: if the process dies in between, the next run finds the instant on both timelines and deletes the rest.

Sources: ``TimelineArchiverV1``/``V2``, ``HoodieMetadataWriteUtils`` (Hudi 1.2.0); reference 7.4, 3.1, 3.2.

Plans archiving: selects the oldest complete writes, up to the first bound.

::

    complete writes > max ─► the oldest; min of them stay ─► up to the first bound ─► cleans and rollbacks among them

Min and max rise together when cleaning retains more than min: a clean needs the commits whose files it keeps. Cleans
and rollbacks are archived with the writes around them; before timeline layout 2 each of the two is counted separately
against the same limits. Savepoints, restores and index builds stay.

The plan is a pure function of timelines and of :class:`Facts`, which the caller reads.

Sources: ``TimelineArchiverV1``/``V2``, ``ArchivalUtils`` (Hudi 1.2.0); reference 7.4.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field, replace

import pyarrow as pa

from hudi_fast.config.service_options import ArchiveOptions, CleanOptions
from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import CommitConflictError, CommitError, CorruptTableError, LockTimeoutError
from hudi_fast.events import Completed, completed, warn
from hudi_fast.metadata_table.state import metadata_of
from hudi_fast.reading.inspecting.results import ShownResult
from hudi_fast.services.archive_bounds import (
    Bound,
    of_compaction,
    of_data_table,
    of_last_clean,
    of_metadata_table,
    of_pending,
    of_replaced,
    of_restore,
    of_savepoint,
)
from hudi_fast.services.compact_plan import last_compaction
from hudi_fast.services.retention import LastClean, earliest_to_retain, last_clean
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.archive.timeline import append_archive, delete_instants, read_instant, state_files
from hudi_fast.timeline.instants import Instant, State, Timeline, comparable_action, load_timeline, ms_from_instant
from hudi_fast.values import dataclass
from hudi_fast.view.file_names import parse_base_file, parse_log_file
from hudi_fast.view.table_state import TableState, read_commit
from hudi_fast.writing.markers import delete_leftover_markers
from hudi_fast.writing.session import TableSession
from hudi_fast.writing.settings import Settings

__all__ = [
    "ArchivePlan",
    "ArchiveResult",
    "Facts",
    "Rules",
    "archive",
    "archive_after_write",
    "at_most",
    "limits",
    "may_be_due",
    "plan_archive",
    "plan_of",
    "up_to",
]

_ALONG = ("clean", "rollback")
_ROOM_BEYOND_CLEANING = 2
"""Number of commits that stay in addition to those that cleaning retains."""

_SCHEMA = pa.schema([("instant", pa.string()), ("action", pa.string()), ("completion", pa.string())])


@dataclass(frozen=True, slots=True)
class ArchivePlan:
    """The instants that leave the active timeline.

    Attributes:
        instants: sorted by requested time.
        blocked_by: why no more of them are archived, in words; empty when only the limits keep the others.
        active: number of complete writes on the active timeline.
        keep_min: complete writes that stay; raised to what cleaning retains.
        keep_max: complete writes above which archiving begins; raised likewise.
    """

    instants: tuple[Instant, ...] = ()
    blocked_by: str = ""
    active: int = 0
    keep_min: int = 0
    keep_max: int = 0

    def to_arrow(self) -> pa.Table:
        """One row per instant: requested time, action and completion time as text."""
        columns = [
            [one.requested for one in self.instants],
            [one.action for one in self.instants],
            [one.completion for one in self.instants],
        ]
        return pa.table(columns, schema=_SCHEMA)


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules by which a timeline is archived.

    Attributes:
        options: limits, and the treatment of savepoints.
        clean: retention of cleaning.
        trigger: trigger strategy of compaction.
        delta_commits: number of delta commits after which compaction is due.
    """

    options: ArchiveOptions
    clean: CleanOptions
    trigger: str
    delta_commits: int


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts that the table's own timeline does not have.

    Attributes:
        clean: the last clean.
        has_metadata: the table has a metadata table.
        compacted: requested time of the metadata table's last compaction; None: there was none.
        data: for a metadata table: the data table's active timeline.
    """

    clean: LastClean = field(default_factory=LastClean)
    has_metadata: bool = False
    compacted: str | None = None
    data: Timeline | None = None


def limits(config: TableConfig, timeline: Timeline, rules: Rules) -> tuple[int, int]:
    """Number of complete writes that stay, and number above which archiving begins.

    Args:
        config: the table's configuration.
        timeline: its active timeline.
        rules: the limits of the options, and the retention of cleaning.
    """
    least, maximum = rules.options.min_commits, rules.options.max_commits
    writes = timeline.writes()
    if not writes:
        return least, maximum
    try:
        newest = ms_from_instant(writes[-1].requested, config.timezone)
    except CorruptTableError:  # not a date: retention by time does not apply
        return least, maximum
    earliest = earliest_to_retain(timeline, rules.clean, newest, config.timezone)
    if earliest is None:
        return least, maximum
    needed = sum(one.requested > earliest.requested for one in writes) + _ROOM_BEYOND_CLEANING
    return (needed, needed + maximum - least) if least < needed else (least, maximum)


def may_be_due(config: TableConfig, timeline: Timeline, rules: Rules) -> bool:
    """Whether instants may be archived, by the timeline alone.

    Args:
        config: the table's configuration.
        timeline: its active timeline.
        rules: limits and options.
    """
    least, maximum = limits(config, timeline, rules)
    if config.layout_version < 2 and _along_by_count(timeline, least, maximum):
        return True
    writes = timeline.writes()
    if len(writes) <= maximum:
        return False
    saved = _saved(timeline)
    bounds = (
        of_pending(timeline),
        of_compaction(config, timeline, rules.trigger, rules.delta_commits),
        None if rules.options.beyond_savepoint or not saved else Bound(min(saved), ""),
        None if any(one.is_completed for one in timeline.of_action("clean")) else of_replaced(timeline, "", "", ()),
    )
    bound = min((one.time for one in bounds if one is not None), default=None)
    first = next((one.requested for one in writes if one.requested not in saved), None)
    return first is not None and (bound is None or first < bound)


def plan_of(config: TableConfig, timeline: Timeline, rules: Rules, facts: Facts) -> ArchivePlan:
    """The instants to archive.

    Args:
        config: the table's configuration.
        timeline: its active timeline.
        rules: limits and options.
        facts: further facts.
    """
    least, maximum = limits(config, timeline, rules)
    writes = timeline.writes()
    due = len(writes) > maximum
    along = _along_by_count(timeline, least, maximum) if config.layout_version < 2 else ()
    if not due and not along:
        return ArchivePlan((), "", len(writes), least, maximum)
    everything, for_writes = _bounds(config, timeline, rules, facts)
    saved = _saved(timeline) if rules.options.beyond_savepoint else frozenset()
    candidates = [one for one in writes if one.requested not in saved][: len(writes) - least] if due else []
    bound = min((*everything, *for_writes), key=lambda one: one.time, default=None)
    chosen = [one for one in candidates if bound is None or one.requested < bound.time]
    reason = bound.reason if bound is not None and len(chosen) < len(candidates) else ""
    if config.layout_version < 2:
        along = tuple(one for one in along if all(one.requested < other.time for other in everything))
    elif chosen:
        found = timeline.of_action(*_ALONG)
        along = tuple(one for one in found if one.is_completed and one.requested < chosen[-1].requested)
    return ArchivePlan(_in_order((*chosen, *along)), reason, len(writes), least, maximum)


def up_to(config: TableConfig, plan: ArchivePlan, bound: Bound) -> ArchivePlan:
    """The plan without the writes from a bound on, and without the cleans and rollbacks among them.

    Args:
        config: the table's configuration.
        plan: for that table.
        bound: an additional bound.
    """
    writes = [one for one in plan.instants if one.action not in _ALONG and one.requested < bound.time]
    last = writes[-1].requested if writes else ""
    by_count = config.layout_version < 2
    along = [one for one in plan.instants if one.action in _ALONG and (by_count or one.requested < last)]
    return replace(plan, instants=_in_order((*writes, *along)), blocked_by=bound.reason)


def at_most(config: TableConfig, plan: ArchivePlan, limit: int | None) -> ArchivePlan:
    """The oldest instants of the plan, writes, cleans and rollbacks alike, before layout 2; else the whole plan.

    Args:
        config: the table's configuration.
        plan: for that table.
        limit: ``hoodie.archive.limit.instants``; None for no limit.
    """
    if limit is None or config.layout_version > 1 or len(plan.instants) <= limit:
        return plan
    reason = f"one run archives at most hoodie.archive.limit.instants={limit} instants"
    return replace(plan, instants=plan.instants[:limit], blocked_by=reason)


def _in_order(instants: Iterable[Instant]) -> tuple[Instant, ...]:
    return tuple(sorted(instants, key=lambda one: (one.requested, one.action)))


def _bounds(config: TableConfig, timeline: Timeline, rules: Rules, facts: Facts) -> tuple[list[Bound], list[Bound]]:
    """Bounds for instants of all actions, and bounds for writes alone."""
    options = rules.options
    everything = [
        of_restore(timeline),
        of_metadata_table(config, timeline, facts.compacted) if facts.has_metadata else None,
        None if facts.data is None else of_data_table(facts.data, options.beyond_savepoint),
    ]
    savepoints = [one for one in timeline.of_action("savepoint") if one.is_completed]
    for_writes = [
        of_pending(timeline),
        of_compaction(config, timeline, rules.trigger, rules.delta_commits),
        of_replaced(timeline, facts.clean.instant, facts.clean.earliest, sorted(facts.clean.savepoints)),
        None if options.beyond_savepoint else of_savepoint(savepoints),
        of_last_clean(facts.clean.earliest) if options.block_on_clean and config.layout_version < 2 else None,
    ]
    return [one for one in everything if one is not None], [one for one in for_writes if one is not None]


def _saved(timeline: Timeline) -> frozenset[str]:
    return frozenset(one.requested for one in timeline.of_action("savepoint") if one.is_completed)


def _along_by_count(timeline: Timeline, least: int, maximum: int) -> tuple[Instant, ...]:
    """Cleans and rollbacks above their limits."""
    chosen: list[Instant] = []
    for action in _ALONG:
        found = [one for one in timeline.of_action(action) if one.is_completed]
        if len(found) > maximum:
            chosen += found[: len(found) - least]
    return tuple(chosen)


_AT_ONCE = 1000
"""Number of instants whose bodies are in memory together."""

_METADATA_CLEANING = CleanOptions(policy="KEEP_LATEST_COMMITS", commits_retained=20)
_METADATA_TRIGGER = "NUM_COMMITS"
_ROOM_OF_METADATA = 1
"""Number of commits that the metadata table keeps on its timeline in addition to the commits of the data table."""


@dataclass(frozen=True, slots=True)
class ArchiveResult(ShownResult):
    """The result of archiving.

    Attributes:
        instants: requested times of the archived instants, oldest first.
        first: the oldest; empty when there was nothing to archive.
        last: the newest.
        active: complete writes that stay on the active timeline.
        files_written: number of written archive files, including merged ones.
        blocked_by: why no more were archived, in words; empty when only the limits kept the others.
        seconds: from call to return.
        metadata_instants: number of archived instants of the metadata table's own timeline.
    """

    instants: tuple[str, ...] = ()
    first: str = ""
    last: str = ""
    active: int = 0
    files_written: int = 0
    blocked_by: str = ""
    seconds: float = 0.0
    metadata_instants: int = 0


def plan_archive(session: TableSession) -> ArchivePlan:
    """Plan archiving; nothing is written.

    Args:
        session: the call; its settings have the limits, the retention of cleaning, and the trigger of compaction.

    Raises:
        CorruptTableError: the timeline is damaged.
    """
    return _planned(session.state, session.settings)


def archive(session: TableSession, plan: ArchivePlan | None = None) -> ArchiveResult:
    """Archive instants of the table's timeline and of the metadata table's.

    Args:
        session: the call; as for :func:`plan_archive`, with the options for archive files.
        plan: archive exactly these instants; None to plan now.

    Raises:
        CommitConflictError: ``plan`` no longer fits the table. Nothing was changed.
        CommitError: storage failed; no instant is lost, and the next run continues.
        CorruptTableError: the timeline or the archive is damaged.
        LockTimeoutError: other processes held the table's lock.
    """
    with session.phase("archive", "services", level=logging.INFO) as step:
        done = _archive(session, plan)
        count = len(done.instants)
        step.add(instants=count, files=done.files_written)
        figures, state = {"numInstantsArchived": count}, session.known_state
        completed(Completed(action="archive", instant="", seconds=done.seconds, state=state, figures=figures))
    return done


def _archive(session: TableSession, plan: ArchivePlan | None) -> ArchiveResult:
    started, storage, options = time.monotonic(), session.storage, session.settings.archive
    with session.locked() as state:
        _warn_of_limit(state, options)
        found = _planned(state, session.settings)
        chosen = found if plan is None else _still_fitting(storage, plan, found)
        try:
            written = _execute(storage, state.config, state.timeline, chosen.instants, options, session.require_lock)
            along = _archive_metadata(session)
        except OSError as error:
            raise CommitError(
                f"Archiving the timeline of {storage.uri} failed because of storage: {error}. No instant is lost; run "
                "it again."
            ) from error
        finally:
            session.changed()
    times = tuple(one.requested for one in chosen.instants)
    writes = {one.requested for one in state.timeline.writes()}
    return ArchiveResult(
        instants=times,
        first=times[0] if times else "",
        last=times[-1] if times else "",
        active=len(writes - set(times)),
        files_written=written,
        blocked_by=chosen.blocked_by,
        seconds=time.monotonic() - started,
        metadata_instants=along,
    )


def archive_after_write(session: TableSession) -> ArchiveResult | None:
    """Archive after a write, if the options ask for it and it is due.

    Returns:
        None when it was not due, there was nothing to archive, or other processes hold the table's lock.

    Raises:
        CommitError: storage failed; the next run continues.
        CorruptTableError: the timeline or the archive is damaged.
    """
    settings, state = session.settings, session.state
    if not settings.archive.automatic or not may_be_due(state.config, state.timeline, _rules(settings)):
        return None
    try:
        done = archive(session)
    except LockTimeoutError:
        return None
    return done if done.instants or done.metadata_instants else None


# ---- plan


def _warn_of_limit(state: TableState, options: ArchiveOptions) -> None:
    if options.limit_instants is not None and state.config.layout_version > 1:
        warn(
            f"hoodie.archive.limit.instants={options.limit_instants} has no effect on {state.storage.uri}: as in "
            "Apache Hudi 1.2 it limits archiving of table version 6, and this table has version "
            f"{state.config.version}."
        )


def _rules(settings: Settings) -> Rules:
    compaction, clean = settings.compaction, replace(settings.clean, max_commits_to_clean=None)
    return Rules(settings.archive, clean, compaction.trigger, compaction.max_delta_commits)


def _planned(state: TableState, settings: Settings) -> ArchivePlan:
    rules = _rules(settings)
    if not may_be_due(state.config, state.timeline, rules):
        # The timeline alone gives the plan and its reasons.
        return plan_of(state.config, state.timeline, rules, Facts())
    table = metadata_of(state)
    compacted = None if table is None else last_compaction(table.timeline)
    facts = Facts(
        last_clean(state.storage, state.config, state.timeline),
        bool(state.config.metadata_partitions),
        None if compacted is None else compacted.requested,
    )
    plan = plan_of(state.config, state.timeline, rules, facts)
    bound = _replaced_files_left(state, plan.instants)
    plan = plan if bound is None else up_to(state.config, plan, bound)
    return at_most(state.config, plan, settings.archive.limit_instants)


def _replaced_files_left(state: TableState, instants: Sequence[Instant]) -> Bound | None:
    """The first replace commit whose replaced files still exist: without it they would become visible again."""
    for one in instants:
        if one.action != "replacecommit":
            continue
        replaced = read_commit(state.storage, state.config, one).partition_to_replace_file_ids or {}
        for partition, ids in replaced.items():
            for entry in state.view.lister.files(partition):
                file = parse_base_file(entry) or parse_log_file(entry)
                if file is not None and file.file_id in ids:
                    reason = f"the replacecommit {one.requested} replaced {entry.path}, which is still there"
                    return Bound(one.requested, reason)
    return None


def _still_fitting(storage: Storage, plan: ArchivePlan, found: ArchivePlan) -> ArchivePlan:
    """``plan``, if all of its instants may be archived now."""
    may = {(one.requested, one.action) for one in found.instants}
    lost = [one for one in plan.instants if (one.requested, one.action) not in may]
    if lost:
        why = found.blocked_by or "it is no longer on the active timeline, or the limits keep it"
        raise CommitConflictError(
            f"The plan to archive {len(plan.instants)} instants of {storage.uri} no longer fits the table: the "
            f"{lost[0].action} {lost[0].requested} ({len(lost)} such) is not to be archived now: {why}. Plan again."
        )
    return plan


# ---- execution


def _execute(
    storage: Storage,
    config: TableConfig,
    timeline: Timeline,
    instants: Sequence[Instant],
    options: ArchiveOptions,
    require_lock: Callable[[], None],
) -> int:
    """Archive instants and delete their files; returns the number of written archive files."""
    if not instants:
        return 0
    files = state_files(storage, config)
    delete_leftover_markers(storage, {one.requested for one in timeline.pending()})
    written = 0
    for start in range(0, len(instants), _AT_ONCE):
        some = [files.get((one.requested, comparable_action(one.action)), []) for one in instants[start:][:_AT_ONCE]]
        there = [one for one in some if any(file.state is State.COMPLETED for file in one)]
        rows = [read_instant(storage, one) for one in there]
        written += len(append_archive(storage, config, rows, options, require_lock))
        require_lock()
        delete_instants(storage, there)
    return written


def _archive_metadata(session: TableSession) -> int:
    """Archive the metadata table's timeline; returns the number of archived instants."""
    state, settings = session.state, session.settings
    table = metadata_of(state)
    if table is None:
        return 0
    options = replace(
        settings.archive,
        min_commits=settings.archive.min_commits + _ROOM_OF_METADATA,
        max_commits=settings.archive.max_commits + _ROOM_OF_METADATA,
    )
    rules = Rules(options, _METADATA_CLEANING, _METADATA_TRIGGER, settings.write.metadata.compact_after)
    if not may_be_due(table.config, table.timeline, rules):
        return 0
    facts = Facts(
        last_clean(table.storage, table.config, table.timeline), data=load_timeline(state.storage, state.config)
    )
    plan = plan_of(table.config, table.timeline, rules, facts)
    _execute(table.storage, table.config, table.timeline, plan.instants, options, session.require_lock)
    return len(plan.instants)
