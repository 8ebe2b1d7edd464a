"""Detects conflicts between a clustering plan and writers.

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

from hudi_fast.errors import CommitConflictError
from hudi_fast.services.compaction.triggers import written_since
from hudi_fast.storage.base import FileStat
from hudi_fast.timeline.heartbeat import is_fresh
from hudi_fast.timeline.instant import Instant, State
from hudi_fast.timeline.service_plans import ClusteringPlan, ClusteringSlice
from hudi_fast.view.file_names import parse_base_file, parse_log_file
from hudi_fast.view.slices import FileSlice, latest_slices
from hudi_fast.view.table_state import TableState, read_commit
from hudi_fast.writing.conflicts.touched import touched_groups
from hudi_fast.writing.markers import marked_files
from hudi_fast.writing.session import TableSession

__all__ = ["changed_groups", "require_no_active_writer", "require_unchanged"]

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
