"""Files that a clean must not delete: savepoints, pending services or queries need them.

::

    savepoints, plans of pending services ─► retained_files ─► RetainedFiles           checked when a clean is planned
    a plan and the table as it is now ─► check_plan ─► CheckedPlan        checked again before it is executed

The table may change between planning and execution: a new savepoint, a new compaction plan, or a rollback that makes an
outdated slice the newest again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from hudi_fast.services.cleaning.retention import RetainedFiles
from hudi_fast.storage.base import FileStat, Storage
from hudi_fast.timeline.active import read_instant_body
from hudi_fast.timeline.plans import CleanPlan, decode_savepoint
from hudi_fast.view.file_names import parse_base_file, parse_log_file
from hudi_fast.view.history_slices import PastSlice, past_slices
from hudi_fast.view.named_files import checked_clean, checked_savepoint, relative_path
from hudi_fast.view.pending import pending_clusterings, read_compaction_plan
from hudi_fast.view.table_state import TableState

__all__ = ["CheckedPlan", "check_plan", "kept_names", "relative_paths", "retained_files"]


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
