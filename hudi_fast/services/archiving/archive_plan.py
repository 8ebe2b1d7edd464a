"""Plans archiving: selects the oldest complete writes, up to the first bound.

::

    complete writes > max ─► the oldest; min of them stay ─► up to the first bound ─► cleans and rollbacks among them

Min and max rise together when cleaning retains more than min: a clean needs the commits whose files it keeps. Cleans
and rollbacks are archived with the writes around them; before timeline layout 2 each of the two is counted separately
against the same limits. Savepoints, restores and index builds stay.

The plan is a pure function of timelines and of :class:`Facts`, which the caller reads.

Sources: ``TimelineArchiverV1``/``V2``, ``ArchivalUtils`` (Hudi 1.2.0); reference 7.4.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import pyarrow as pa

from hudi_fast.config.archive_options import ArchiveOptions
from hudi_fast.config.clean_options import CleanOptions
from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import CorruptTableError
from hudi_fast.services.archiving.bounds import (
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
from hudi_fast.services.cleaning.last_clean import LastClean
from hudi_fast.services.cleaning.retention import earliest_to_retain
from hudi_fast.timeline.active import Timeline
from hudi_fast.timeline.instant import Instant, ms_from_instant

__all__ = ["ArchivePlan", "Facts", "Rules", "at_most", "limits", "may_be_due", "plan_of", "up_to"]

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
