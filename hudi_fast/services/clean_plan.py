"""Plan a clean: which files it deletes, and which it must keep.

Planning a clean: which files of outdated slices are deleted.

::

    timeline alone ─► may one be due? ─► last clean: is it due? its failed files ─► earliest commit to retain
        ─► partitions ─► slices of each ─► outdated by the policy, not protected ─► <instant>.clean.requested

Finding files takes no lock: an outdated slice stays outdated while writers continue, and the execution of the plan
finds files that a savepoint or a service has started to need. There is one plan at a time. A plan that deletes nothing
is not written, unless ``hoodie.write.empty.clean.interval.hours`` requests it.

Sources: ``CleanPlanActionExecutor``, ``CleanPlanner`` (Hudi 1.2.0).

Files that a clean must not delete: savepoints, pending services or queries need them.

::

    savepoints, plans of pending services ─► retained_files ─► RetainedFiles           checked when a clean is planned
    a plan and the table as it is now ─► check_plan ─► CheckedPlan        checked again before it is executed

The table may change between planning and execution: a new savepoint, a new compaction plan, or a rollback that makes an
outdated slice the newest again.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

from hudi_fast.config.service_options import CleanOptions
from hudi_fast.config.table_config import TableConfig
from hudi_fast.metadata_table.state import metadata_of
from hudi_fast.services.retention import (
    BY_VERSIONS,
    SAVEPOINTS_KEY,
    TAKEN_OVER_KEY,
    LastClean,
    RetainedFiles,
    ScheduledClean,
    earliest_to_retain,
    last_clean,
    outdated,
)
from hudi_fast.storage.base import FileStat, Storage
from hudi_fast.storage.forks import ThreadPool
from hudi_fast.timeline.commit_metadata import CommitMetadata
from hudi_fast.timeline.instants import (
    Instant,
    State,
    Timeline,
    explained_plan,
    ms_from_instant,
    read_instant_body,
    read_requested_body,
)
from hudi_fast.timeline.plans import CleanPlan, decode_clean_plan, decode_savepoint, encode_clean_plan
from hudi_fast.timeline.transition import create_requested
from hudi_fast.values import dataclass
from hudi_fast.view.file_names import parse_base_file, parse_log_file
from hudi_fast.view.listing import PARTITION_MARKERS
from hudi_fast.view.pending import pending_clusterings, read_compaction_plan
from hudi_fast.view.planned_files import checked_clean, checked_savepoint, relative_path
from hudi_fast.view.slices import PastSlice, past_slices
from hudi_fast.view.table_state import TableState, read_commit
from hudi_fast.writing.session import TableSession
from hudi_fast.writing.transaction import refuse_while_restoring

__all__ = [
    "CheckedPlan",
    "check_plan",
    "chosen_partitions",
    "clean_may_be_due",
    "kept_names",
    "pending_cleans",
    "read_clean_plan",
    "relative_paths",
    "retained_files",
    "schedule_clean",
    "touched_partitions",
]


@dataclass(frozen=True, slots=True)
class CheckedPlan:
    """The part of a plan that can be executed.

    Attributes:
        paths: partition path to the files to delete, relative to the table.
        kept: relative path to the reason why a file of the plan must stay.
        sizes: bytes of existing files, by relative path.
    """

    paths: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    kept: Mapping[str, str] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)


def retained_files(state: TableState) -> RetainedFiles:
    """The files that savepoints and pending services need.

    Raises:
        CorruptTableError: a savepoint or a plan is damaged.
    """
    storage, config, timeline = state.storage, state.config, state.timeline
    saved: dict[str, set[str]] = {}
    for instant in timeline.of_action("savepoint"):
        if instant.is_completed:
            path = f"{config.timeline_folder}/{instant.file_name}"
            saved_ = decode_savepoint(read_instant_body(storage, config, instant), path)
            _add(saved, checked_savepoint(storage, saved_, path).files)
    compacted: dict[tuple[str, str], str] = {}
    for instant in (*timeline.pending_compactions, *timeline.pending_log_compactions):
        for one in read_compaction_plan(storage, config, instant).operations:
            group = one.partition_path, one.file_id
            compacted[group] = min(compacted.get(group, one.base_instant), one.base_instant)
    clustered: dict[str, set[str]] = {}
    for _, plan in pending_clusterings(storage, config, timeline):
        for group_ in plan.groups:
            for slice_ in group_.slices:
                names = [path.rpartition("/")[2] for path in (slice_.base_path, *slice_.log_paths) if path]
                _add(clustered, {slice_.partition_path: names})
    return RetainedFiles(_frozen(saved), compacted, _frozen(clustered))


def kept_names(
    partition: str, groups: Mapping[str, list[PastSlice]], state: TableState, protected: RetainedFiles
) -> dict[str, str]:
    """Names of files in a partition that no plan may delete, and the reason for each.

    Args:
        partition: its path.
        groups: slices of each of its file groups, newest first.
        state: the table now.
        protected: files that savepoints and services need.
    """
    kept = dict.fromkeys(protected.saved.get(partition, ()), "a savepoint keeps it")
    for file_id, slices in groups.items():
        for number, one in enumerate(slices):
            reason = protected.reason(partition, file_id, one)
            if not reason and number == 0 and (partition, file_id) not in state.view.replaced:
                reason = "it is of the newest slice of its file group"
            if reason:
                kept.update((file.name, reason) for file in one.files())
    return kept


def check_plan(state: TableState, plan: CleanPlan, where: str) -> CheckedPlan:
    """The part of a plan that can still be executed.

    Args:
        state: the table now, under its lock.
        plan: of the clean.
        where: file of the plan, for messages.

    Raises:
        CorruptTableError: the plan names a file that is outside the table, or is not a Hudi data file.
    """
    protected = retained_files(state)
    pending = {one.requested for one in state.timeline.pending() if one.action != "clean"}
    paths: dict[str, tuple[str, ...]] = {}
    kept: dict[str, str] = {}
    sizes: dict[str, int] = {}
    for partition, named in relative_paths(state.storage, plan, where).items():
        entries = state.view.lister.files(partition) if named else []
        sizes.update((entry.path, entry.size) for entry in entries)
        reasons = kept_names(partition, past_slices(state.view, partition, entries), state, protected)
        found = {path: reasons.get(path.rpartition("/")[2]) or _pending_reason(path, pending) for path in named}
        kept.update((path, reason) for path, reason in found.items() if reason)
        paths[partition] = tuple(path for path, reason in found.items() if not reason)
    return CheckedPlan(paths, kept, {path: sizes[path] for some in paths.values() for path in some if path in sizes})


def relative_paths(storage: Storage, plan: CleanPlan, where: str) -> dict[str, tuple[str, ...]]:
    """The files of a plan by partition path, relative to the table.

    Raises:
        CorruptTableError: a file is outside the table or its partition, or is not a Hudi data file.
    """
    checked_clean(storage, plan, where)
    return {name: tuple(relative_path(storage, one, where) for one in paths) for name, paths in plan.files.items()}


# ---- helpers


def _pending_reason(path: str, pending: set[str]) -> str:
    entry = FileStat(path, 0, 0, False)
    file = parse_base_file(entry) or parse_log_file(entry)
    return "it is of a pending instant" if file is not None and file.instant in pending else ""


def _add(found: dict[str, set[str]], files: Mapping[str, Iterable[str]]) -> None:
    for partition, names in files.items():
        found.setdefault(partition, set()).update(name.rpartition("/")[2] for name in names)


def _frozen(found: Mapping[str, set[str]]) -> dict[str, frozenset[str]]:
    return {partition: frozenset(names) for partition, names in found.items()}


_LISTING_THREADS = 8
_FEW_FOLDERS = 16
"""Listing up to this many folders is faster than starting threads; with a metadata table no folder is listed."""
_MS_OF_HOUR = 3_600_000


@dataclass(frozen=True, slots=True)
class _Outlook:
    """The scope of a clean, before files are listed.

    Attributes:
        earliest: earliest commit to retain; None for a policy without one.
        touched: partitions to examine; None for all.
        last: state that earlier cleans left.
        is_checkpoint: store the plan even if it deletes nothing.
    """

    earliest: Instant | None
    touched: set[str] | None
    last: LastClean
    is_checkpoint: bool


@dataclass(frozen=True, slots=True)
class _PartitionPlan:
    """Files that a clean deletes in one partition: paths relative to the table, with their sizes."""

    partition: str
    files: tuple[tuple[str, int], ...]
    is_deleted: bool


def clean_may_be_due(config: TableConfig, timeline: Timeline, options: CleanOptions) -> bool:
    """Whether a clean may be due, by the timeline alone.

    Args:
        config: the table's configuration.
        timeline: its active timeline.
        options: policy and trigger.
    """
    if any(not one.is_completed for one in timeline.of_action("clean")):
        return True
    if len(timeline.writes()) < options.trigger_commits:
        return False
    return (
        options.policy == BY_VERSIONS or earliest_to_retain(timeline, options, _now_ms(), config.timezone) is not None
    )


def schedule_clean(session: TableSession, if_due: bool, dry_run: bool = False) -> ScheduledClean | None:
    """Put a clean on the timeline.

    Args:
        session: the call; its settings have the policy and the trigger.
        if_due: ask the trigger first.
        dry_run: only return the plan, without an instant; nothing is written.

    Returns:
        The plan, or one that is pending already; None when it is not due, or there is nothing to delete.

    Raises:
        CommitConflictError: a restore is pending.
        CorruptTableError: a file of the timeline is damaged.
    """
    options, state = session.settings.clean, session.latest()
    pending = pending_cleans(state)
    if pending:
        return pending[0]
    outlook = _look_ahead(state, options, if_due)
    if outlook is None:
        return None
    plan, sizes = _plan(state, outlook, options)
    if not plan.files and not plan.partitions_to_be_deleted and not outlook.is_checkpoint:
        return None
    return ScheduledClean("", plan, sizes) if dry_run else _put_on_timeline(session, plan, sizes)


def pending_cleans(state: TableState) -> list[ScheduledClean]:
    """Pending cleans, abandoned ones included, oldest first.

    Raises:
        CorruptTableError: a plan is missing or damaged.
    """
    pending = [one for one in state.timeline.of_action("clean") if not one.is_completed]
    plans = ((one, read_clean_plan(state.storage, state.config, one)) for one in pending)
    return [ScheduledClean(one.requested, plan) for one, plan in plans if plan is not None]


def read_clean_plan(storage: Storage, config: TableConfig, instant: Instant) -> CleanPlan | None:
    """The plan of a pending clean; None for one whose planning was abandoned.

    Raises:
        CorruptTableError: the plan is missing or damaged.
    """
    body = read_requested_body(storage, config, instant)
    path = f"{config.timeline_folder}/{instant.requested}.clean.requested"
    with explained_plan(storage, instant):
        return decode_clean_plan(body, path) if body else None


# ---- the scope


def _look_ahead(state: TableState, options: CleanOptions, if_due: bool) -> _Outlook | None:
    """The scope of a clean, from the timeline and its bodies; None when there is nothing to do."""
    storage, config, timeline = state.storage, state.config, state.timeline
    if not timeline.writes():
        return None
    now = _now_ms()
    if options.policy != BY_VERSIONS and earliest_to_retain(timeline, options, now, config.timezone) is None:
        return None
    last = last_clean(storage, config, timeline)
    if if_due and not _is_due(timeline, options, last):
        return None
    earliest = earliest_to_retain(timeline, options, now, config.timezone, last.earliest or None)
    if options.policy != BY_VERSIONS and (earliest is None or earliest.requested < last.earliest):
        return None  # more is retained than before, but files that an earlier clean deleted stay deleted
    touched = touched_partitions(storage, config, timeline, options, last, earliest)
    is_checkpoint = earliest is not None and _is_checkpoint_due(config, options, last, earliest.requested, now)
    if touched is not None:
        touched |= set(last.failed)
        if not touched and not is_checkpoint:
            return None
    return _Outlook(earliest, touched, last, is_checkpoint)


def _is_due(timeline: Timeline, options: CleanOptions, last: LastClean) -> bool:
    since = [one for one in timeline.writes() if one.requested > last.last_completed]
    return len(since) >= options.trigger_commits


def _is_checkpoint_due(config: TableConfig, options: CleanOptions, last: LastClean, earliest: str, now: int) -> bool:
    """Whether to record a clean that deletes nothing."""
    if options.empty_clean_hours < 1 or not options.incremental or earliest <= last.earliest:
        return False
    if not last.instant:
        return True
    return now - ms_from_instant(last.instant, config.timezone) >= options.empty_clean_hours * _MS_OF_HOUR


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


# ---- the files


def _plan(state: TableState, outlook: _Outlook, options: CleanOptions) -> tuple[CleanPlan, dict[str, int]]:
    """The plan, and the sizes of its files by their absolute paths."""
    storage, earliest = state.storage, outlook.earliest
    everything = state.view.lister.partitions() if outlook.touched is None else outlook.touched
    partitions = chosen_partitions({*everything, *outlook.last.failed}, options)
    protected = retained_files(state)

    def look(name: str) -> _PartitionPlan:
        return _plan_partition(
            state,
            name,
            protected,
            options,
            None if earliest is None else earliest.requested,
            outlook.last.failed.get(name, ()),
        )

    state.view.lister.expect(partitions)
    if metadata_of(state) is None and len(partitions) > _FEW_FOLDERS:
        with ThreadPool(_LISTING_THREADS, thread_name_prefix="hudi_fast") as pool:
            found = list(pool.map(look, partitions))
    else:
        found = [look(name) for name in partitions]
    found = [one for one in found if one.files or one.is_deleted]
    last_write = state.timeline.last_completed_write
    saved = sorted(one.requested for one in state.timeline.of_action("savepoint") if one.is_completed)
    extra = {TAKEN_OVER_KEY: "some" if options.filters_partitions else "all"}
    plan = CleanPlan(
        options.policy,
        None if earliest is None else earliest.requested,
        "commit" if earliest is None else earliest.action,
        "" if last_write is None else last_write.requested,
        {one.partition: tuple(storage.absolute(path) for path, _ in one.files) for one in found},
        tuple(one.partition for one in found if one.is_deleted),
        {**extra, SAVEPOINTS_KEY: ",".join(saved)} if saved else extra,
    )
    return plan, {storage.absolute(path): size for one in found for path, size in one.files}


def _plan_partition(
    state: TableState,
    partition: str,
    protected: RetainedFiles,
    options: CleanOptions,
    earliest: str | None,
    failed: Sequence[str],
) -> _PartitionPlan:
    """The files to delete in one partition; ``failed``: names that an earlier clean could not delete."""
    groups = past_slices(state.view, partition)
    found = outdated(partition, groups, state.view.replaced, protected, options, earliest)
    files = {file.path: file.size for one in found.slices for file in one.files()}
    if failed:
        kept = kept_names(partition, groups, state, protected)
        for name in failed:
            path = f"{partition}/{name}" if partition else name
            entry = None if path in files or name in kept else state.storage.stat(path)
            if entry is not None:
                files[path] = entry.size
    is_deleted = found.is_empty and partition != "" and _holds_nothing_else(state, partition, set(files))
    return _PartitionPlan(partition, tuple(sorted(files.items())), is_deleted)


def _holds_nothing_else(state: TableState, partition: str, files: set[str]) -> bool:
    """Whether a partition exists, as a folder or in the metadata table, and is empty without ``files``."""
    entries = state.storage.list_dir(partition)
    others = [one for one in entries if one.name not in PARTITION_MARKERS and not one.name.endswith(".crc")]
    if any(one.path not in files for one in others):
        return False
    return bool(entries) or (metadata_of(state) is not None and partition in state.view.lister.partitions())


# ---- onto the timeline


def _put_on_timeline(session: TableSession, plan: CleanPlan, sizes: dict[str, int]) -> ScheduledClean:
    with session.locked() as state:
        pending = pending_cleans(state)
        if pending:
            return pending[0]
        refuse_while_restoring(session.storage, state.timeline, "no clean may begin")
        now = session.next_time()
        create_requested(session.storage, state.config, Instant(now, "clean", State.REQUESTED), encode_clean_plan(plan))
        session.changed()
        return ScheduledClean(now, plan, sizes)


# ---- selects the partitions that a clean examines
#
# ::
#
#     commits in [earliest retained by the last clean, earliest retained now)   ─► their partitions     (incremental)
#     ... and older ones that were completed after the last clean
#     no clean yet and nothing archived: all commits before the earliest retained ─► their partitions
#     else                                                                      ─► all partitions
#
# A slice becomes outdated when a commit adds a later slice or replaces its file group. Commits record both; a commit
# that only adds file groups makes no slice outdated.
#
# Source: ``CleanPlanner#getPartitionPathsToClean`` (Hudi 1.2.0).


_NEW_GROUPS = frozenset({"INSERT", "UPSERT"})
_NO_COMMIT = ("", "null")


def touched_partitions(
    storage: Storage,
    config: TableConfig,
    timeline: Timeline,
    options: CleanOptions,
    last: LastClean,
    earliest: Instant | None,
) -> set[str] | None:
    """The partitions that may have slices outdated since the last clean; None for all partitions.

    Args:
        storage: the table's storage.
        config: its configuration.
        timeline: its active timeline.
        options: of the clean.
        last: state that earlier cleans left.
        earliest: earliest commit to retain; None for a policy without one.

    Raises:
        CorruptTableError: a commit is damaged.
    """
    if earliest is None or not options.incremental or not _follows(storage, config, timeline, last):
        return None
    since = [
        one
        for one in timeline.writes()
        if one.requested < earliest.requested
        and (one.requested >= last.earliest or (one.completion or "") > last.instant)
    ]
    return {name for one in since for name in _of_commit(config, one, read_commit(storage, config, one))}


def chosen_partitions(partitions: Iterable[str], options: CleanOptions) -> list[str]:
    """The given partitions that the options select for a clean, sorted."""
    found = sorted(partitions)
    if options.partitions_selected:
        found = [name for name in found if name in options.partitions_selected]
    if options.partition_regex:
        found = [name for name in found if re.fullmatch(options.partition_regex, name)]
    return found


def _follows(storage: Storage, config: TableConfig, timeline: Timeline, last: LastClean) -> bool:
    """Whether the active timeline has every commit since the last clean."""
    saved = {one.requested for one in timeline.of_action("savepoint") if one.is_completed}
    if not last.instant:
        return not storage.list_dir(config.history_folder)
    if not last.earliest or last.is_partial or not last.savepoints <= saved:
        return False
    return timeline.first_write_requested is not None and last.earliest >= timeline.first_write_requested


def _of_commit(config: TableConfig, instant: Instant, commit: CommitMetadata) -> Iterable[str]:
    yield from commit.partition_to_replace_file_ids or ()
    only_updates = not config.is_mor and instant.action == "commit" and commit.operation_type in _NEW_GROUPS
    for partition, stats in commit.partition_to_write_stats.items():
        if not only_updates or any((one.prev_commit or "") not in _NO_COMMIT for one in stats):
            yield partition
