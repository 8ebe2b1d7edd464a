"""The values of a running clustering, and its conflicts with writers.

::

    ClusteringWork      state shared by all groups; tasks receive it pickled
    slices_of           the file slices of a group, from storage
    ClusteringResult    the result of a call

Detects conflicts between a clustering plan and writers.

Writers continue while a clustering is pending or runs. If they change rows of its file groups, the clustering would
lose the changes. So the plan is compared with the table twice, under the table's lock: before the work, and before it
becomes visible.

::

    files of each planned slice  ≟  its newest slice now          (base files, log files)
    completed since the plan: groups written or ended             (blocks added to a log file that was there)

With ``PreferWriterConflictResolutionStrategy`` a clustering also yields to pending writes of live writers: their
inflight files or markers name the file groups that they write to.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from hudi_fast.errors import CommitConflictError, CorruptTableError
from hudi_fast.merging.rules import SliceMerge
from hudi_fast.reading.inspecting.results import ShownResult
from hudi_fast.schema.history import SchemaHistory
from hudi_fast.services.compact_plan import written_since
from hudi_fast.storage.base import FileStat, Storage
from hudi_fast.timeline.commit_metadata import WriteStat
from hudi_fast.timeline.heartbeat import is_fresh
from hudi_fast.timeline.instants import Instant, State
from hudi_fast.timeline.service_plans import ClusteringGroup, ClusteringPlan, ClusteringSlice
from hudi_fast.values import dataclass
from hudi_fast.view.file_names import BaseFile, LogFile, log_order, parse_base_file, parse_log_file
from hudi_fast.view.schema_history import renamer
from hudi_fast.view.slices import FileSlice, latest_slices
from hudi_fast.view.table_state import TableState, read_commit
from hudi_fast.writing.early_conflicts import touched_groups
from hudi_fast.writing.markers import marked_files
from hudi_fast.writing.session import TableSession
from hudi_fast.writing.write_plan import FilePlan

__all__ = [
    "ClusteringResult",
    "ClusteringWork",
    "Finished",
    "Ordering",
    "changed_groups",
    "combined_result",
    "path_of",
    "require_no_active_writer",
    "require_unchanged",
    "slices_of",
]


@dataclass(frozen=True, slots=True)
class Ordering:
    """Order of rows in the files that a clustering writes.

    Attributes:
        columns: to sort by, dotted for nested ones; empty: rows keep their order.
        curve: ``LINEAR`` (by the first column, then the second ...), ``ZORDER`` or ``HILBERT``.
        build: input of a curve: ``DIRECT`` values, or ``SAMPLE``: their ranks in a sample.
        sample_rows: size of that sample.
    """

    columns: tuple[str, ...] = ()
    curve: str = "LINEAR"
    build: str = "DIRECT"
    sample_rows: int = 200_000


@dataclass(frozen=True, kw_only=True)
class ClusteringWork:
    """The state that all groups of a clustering share.

    Attributes:
        plan: how files are written, and the instant of the clustering.
        merge: how file slices merge.
        group_count: groups of the clustering plan; they share memory and threads.
        ordering: of the rows.
        target_bytes: file size after which the next file begins.
        copies: whether row groups are copied as bytes if the files allow it.
        keeps_buckets: whether the file groups are buckets of a simple bucket index, each of which stays one file group.
    """

    plan: FilePlan
    merge: SliceMerge
    group_count: int
    ordering: Ordering
    target_bytes: int
    copies: bool = False
    keeps_buckets: bool = False


@dataclass(frozen=True, slots=True)
class Finished:
    """A completed clustering.

    Attributes:
        instant: its requested time.
        file_groups: number of replaced file groups.
        stats: of the files that it wrote.
    """

    instant: str
    file_groups: int
    stats: tuple[WriteStat, ...]


@dataclass(frozen=True, slots=True)
class ClusteringResult(ShownResult):
    """The result of a call that clustered.

    Attributes:
        instant: requested time of the newest completed clustering; empty when there was nothing to do.
        operation: ``cluster``.
        file_groups: number of replaced file groups.
        rows: rows of the written files.
        files_written: number of written files.
        bytes_written: their size.
        copied_row_groups: row groups that were copied without decoding.
        instants: requested times of all completed clusterings, oldest first.
        seconds: from the call until the rows are visible.
    """

    instant: str
    operation: str = "cluster"
    file_groups: int = 0
    rows: int = 0
    files_written: int = 0
    bytes_written: int = 0
    copied_row_groups: int = 0
    instants: tuple[str, ...] = ()
    seconds: float = 0.0


def combined_result(done: Iterable[Finished], seconds: float) -> ClusteringResult:
    """The result of a call that completed several clusterings, or none.

    Args:
        done: oldest first.
        seconds: duration of the call.
    """
    finished = list(done)
    stats = [stat for one in finished for stat in one.stats]
    instants = tuple(one.instant for one in finished)
    return ClusteringResult(
        instant=instants[-1] if instants else "",
        file_groups=sum(one.file_groups for one in finished),
        rows=sum(stat.num_writes for stat in stats),
        files_written=len(stats),
        bytes_written=sum(stat.file_size for stat in stats),
        copied_row_groups=sum(stat.copied_row_groups for stat in stats),
        instants=instants,
        seconds=seconds,
    )


def path_of(slice_: ClusteringSlice, file: str) -> str:
    """A file of a plan, relative to the table; plans contain the base path in the planner's spelling."""
    name = file.rpartition("/")[2]
    return f"{slice_.partition_path}/{name}" if slice_.partition_path else name


def slices_of(storage: Storage, group: ClusteringGroup, history: SchemaHistory | None = None) -> list[FileSlice]:
    """The file slices of a group, in the order of the plan; base files have the current column names of ``history``.

    Raises:
        CorruptTableError: a file of the plan is missing, or is not a Hudi data file.
    """
    named = renamer(history)
    found = (_slice_of(storage, one) for one in group.slices)
    return [one if one.base_file is None else replace(one, base_file=named(one.base_file)) for one in found]


def _slice_of(storage: Storage, planned: ClusteringSlice) -> FileSlice:
    base: BaseFile | None = None
    if planned.base_path:
        base = parse_base_file(_entry(storage, planned, planned.base_path))
    found = [parse_log_file(_entry(storage, planned, path)) for path in planned.log_paths]
    logs: list[LogFile] = sorted((one for one in found if one is not None), key=log_order)
    if len(logs) < len(found) or (base is None and (planned.base_path or not logs)):
        raise CorruptTableError(
            f"A clustering plan of {storage.uri} names files that are not Hudi data files: {planned}."
        )
    begins = base.instant if base is not None else min(log.instant for log in logs)
    rows = tuple(log for log in logs if not log.is_cdc)
    return FileSlice(planned.partition_path, planned.file_id, base, rows, begins)


def _entry(storage: Storage, planned: ClusteringSlice, file: str) -> FileStat:
    path = path_of(planned, file)
    entry = storage.stat(path)
    if entry is None:
        raise CorruptTableError(
            f"A clustering of {storage.uri} is planned for the file group {planned.file_id}, but a file of it is "
            "missing. Restore the file, or the table to a savepoint; or roll the clustering back.",
            path,
        )
    return entry


_SHOWN = 5


def changed_groups(state: TableState, instant: Instant, plan: ClusteringPlan) -> dict[tuple[str, str], str]:
    """File groups of a plan that have changed since: (partition path, file id) to the change.

    Args:
        state: the table now, under its lock.
        instant: the pending clustering.
        plan: its plan.
    """
    planned = {(one.partition_path, one.file_id): one for group in plan.groups for one in group.slices}
    changed: dict[tuple[str, str], str] = {}
    for partition in sorted({name for name, _ in planned}):
        now = {one.file_id: one for one in latest_slices(state.view, partition)}
        for (name, file_id), slice_ in planned.items():
            if name == partition and _names(slice_) != _names_now(now.get(file_id)):
                changed[name, file_id] = "its files have changed" if file_id in now else "it was replaced or removed"
    for later in written_since(state.config, state.timeline, instant):
        commit = read_commit(state.storage, state.config, later)
        touched = {(stat.partition_path, stat.file_id) for stat in commit.write_stats()}
        ended = (commit.partition_to_replace_file_ids or {}).items()
        touched |= {(name, file_id) for name, ids in ended for file_id in ids}
        changed |= {one: f"changed by the {later.action} {later.requested}" for one in touched if one in planned}
    return changed


def require_unchanged(state: TableState, instant: Instant, plan: ClusteringPlan) -> None:
    """Refuse to execute or complete a clustering whose file groups have changed since it was planned.

    Raises:
        CommitConflictError: they have changed; the message names them.
    """
    changed = changed_groups(state, instant, plan)
    if not changed:
        return
    first = list(changed.items())[:_SHOWN]
    shown = ", ".join(f"{file_id} of partition {name!r} ({what})" for (name, file_id), what in first)
    if len(changed) > _SHOWN:
        shown += f" and {len(changed) - _SHOWN} more"
    raise CommitConflictError(
        f"The clustering {instant.requested} of {state.storage.uri} no longer fits the table: file groups of its plan "
        f"have changed: {shown}. It is rolled back with its plan, and no row has changed; plan another one."
    )


def require_no_active_writer(session: TableSession, instant: Instant, plan: ClusteringPlan) -> None:
    """Refuse a clustering while live writers write to its file groups, if the options prefer writers.

    Args:
        session: the call, under the table's lock.
        instant: the pending clustering.
        plan: its plan.

    Raises:
        CommitConflictError: a live writer writes to one; the plan stays pending.
    """
    state, lock, rule = session.state, session.settings.write.lock, session.heartbeat_rule
    if lock.strategy != "prefer_writer":
        return
    planned = {(one.partition_path, one.file_id) for group in plan.groups for one in group.slices}
    services = {one.requested for one in state.pending_services}
    for one in state.timeline.pending_writes:
        if one.requested in services or not is_fresh(state.storage, one.requested, rule):
            continue
        common = planned & _written_by(state, one)
        if common or (lock.yields_to_requested_writes and one.state is State.REQUESTED):
            named = ", ".join(file_id for _, file_id in sorted(common)[:_SHOWN]) or "not yet known which"
            raise CommitConflictError(
                f"The {one.action} {one.requested} of {state.storage.uri} writes to file groups of the clustering "
                f"{instant.requested}: {named}. Writers have priority; the plan stays pending, execute it later.",
                instant.requested,
                one.requested,
                tuple(sorted(common)),
            )


def _written_by(state: TableState, write: Instant) -> set[tuple[str, str]]:
    found = set(touched_groups(state.storage, state.config, write))
    for path in marked_files(state.storage, write.requested):
        file = FileStat(path, 0, 0, False)
        named = parse_base_file(file) or parse_log_file(file)
        if named is not None:
            found.add((path.rpartition("/")[0], named.file_id))
    return found


def _names(slice_: ClusteringSlice) -> set[str]:
    names = {path.rpartition("/")[2] for path in (slice_.base_path, *slice_.log_paths) if path}
    return {name for name in names if not name.endswith(".cdc")}


def _names_now(slice_: FileSlice | None) -> set[str]:
    if slice_ is None:
        return set()
    base = set() if slice_.base_file is None else {slice_.base_file.name}
    return base | {log.name for log in slice_.log_files}
