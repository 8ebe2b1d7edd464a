"""The table state of a query, and checks that its time can be read.

Sources: ``TimelineUtils.validateTimestampAsOf``, ``HoodieTimeTravelException`` (Hudi 1.2.0).
"""

from __future__ import annotations

from hudi_fast.errors import ConfigError
from hudi_fast.metadata_table.last_states import current_state
from hudi_fast.metadata_table.state import open_state
from hudi_fast.storage.base import FileStat, Storage
from hudi_fast.timeline.archive.timeline import ArchivedTimeline
from hudi_fast.timeline.instants import State, read_instant_body, read_requested_body
from hudi_fast.timeline.plans import CleanMetadata, decode_clean_metadata, decode_clean_plan
from hudi_fast.view.file_names import parse_base_file, parse_log_file
from hudi_fast.view.slices import past_slices
from hudi_fast.view.table_state import TableState

__all__ = ["state_for_query"]


def state_for_query(storage: Storage, as_of: str | None, use_metadata: bool = True) -> TableState:
    """The table now, or at an earlier time.

    ``as_of`` is the newest visible requested time, as digits; None for now.

    Raises:
        ConfigError: a write was pending at that time, or the cleaner has deleted files of that time.
    """
    if as_of is None:
        return current_state(storage) if use_metadata else open_state(storage, use_metadata=False)
    state = open_state(storage, as_of, use_metadata)
    _refuse_pending(state, as_of)
    _refuse_cleaned(state, as_of)
    return state


def _refuse_pending(state: TableState, as_of: str) -> None:
    services = {instant.requested for instant in state.pending_services}
    pending = [one.requested for one in state.timeline.pending_writes if one.requested not in services]
    first = min(pending, default=None)
    if first is not None and as_of >= first:
        raise ConfigError(
            f"Time travel's timestamp '{as_of}' must be earlier than the first incomplete commit timestamp '{first}' "
            f"of {state.storage.uri}."
        )


def _refuse_cleaned(state: TableState, as_of: str) -> None:
    """Raise if a clean after that time may have deleted files of that time; earlier cleans kept its newest slices."""
    if _is_kept(state, as_of):
        return
    _refuse_being_cleaned(state, as_of)
    cleans = [one for one in state.timeline.of_action("clean") if one.is_completed]
    if not cleans:
        _refuse_cleaned_long_ago(state, as_of)
    for instant in reversed(cleans):
        path = f"{state.config.timeline_folder}/{instant.file_name}"
        clean = decode_clean_metadata(read_instant_body(state.storage, state.config, instant), path)
        retained = clean.earliest_instant_to_retain
        if not retained and instant is cleans[-1]:
            retained = state.timeline.first_write_requested or ""
        if as_of < retained:
            raise _cleaned(state, as_of, retained)
        if instant.requested <= as_of:
            return
        if not clean.earliest_instant_to_retain:
            _refuse_versions_cleaned(state, as_of, clean)


def _is_kept(state: TableState, as_of: str) -> bool:
    """Whether a savepoint retains the files of that time.

    False if a service that was requested earlier completed after the savepoint and replaced the files.
    """
    kept = state.timeline.find(as_of, "savepoint")
    if kept is None:
        return False
    made = kept.completion or ""
    return not any(one.requested <= as_of and (one.completion or "") > made for one in state.timeline.writes())


def _refuse_being_cleaned(state: TableState, as_of: str) -> None:
    """Raise if an inflight clean, running or abandoned, deletes files of that time."""
    for instant in state.timeline.of_action("clean"):
        if instant.state is State.INFLIGHT:
            path = f"{state.config.timeline_folder}/{instant.requested}.clean.requested"
            plan = decode_clean_plan(read_requested_body(state.storage, state.config, instant), path)
            retained = plan.earliest_instant_to_retain
            if retained is not None and as_of < retained:
                raise _cleaned(state, as_of, retained)


def _refuse_cleaned_long_ago(state: TableState, as_of: str) -> None:
    """Raise if the last clean, now archived, retains only later times. Applies to times before the active timeline."""
    first = state.timeline.first_write_requested
    if first is None or as_of >= first:
        return
    archive = ArchivedTimeline(state.storage, state.config)
    cleans = archive.instants(actions=("clean",))
    if not cleans:
        return
    last = cleans[-1].requested
    for one in archive.read(last, last):
        if one.action != "clean" or not one.metadata:
            continue
        retained = decode_clean_metadata(one.metadata, state.config.history_folder).earliest_instant_to_retain or first
        if as_of < retained:
            raise _cleaned(state, as_of, retained)


def _cleaned(state: TableState, as_of: str, retained: str) -> ConfigError:
    return ConfigError(
        f"Cleaner cleaned up the timestamp of interest: {as_of} is older than {retained}, the earliest instant "
        f"that {state.storage.uri} retains. Use a later time, or retain more commits."
    )


def _refuse_versions_cleaned(state: TableState, as_of: str, clean: CleanMetadata) -> None:
    """Raise if a clean whose policy has no earliest retained commit deleted a file of that time."""
    for part in clean.partitions:
        seen: dict[str, str] = {}
        for name in part.deleted:
            entry = FileStat(name, 0, 0, False)
            file = parse_base_file(entry) or parse_log_file(entry)
            if file is not None and file.instant <= as_of:
                seen[file.file_id] = max(seen.get(file.file_id, ""), file.instant)
        left = past_slices(state.view, part.partition_path) if seen else {}
        for file_id, deleted in seen.items():
            replaced_at = state.view.replaced.get((part.partition_path, file_id))
            if replaced_at is not None and replaced_at <= as_of:
                continue  # the file group was replaced before that time
            if replaced_at is None and file_id not in left:
                continue  # the file group was replaced before the start of the timeline
            if not any(deleted < one.begins <= as_of for one in left.get(file_id, ())):
                raise ConfigError(
                    f"Cleaner cleaned up the timestamp of interest: the clean {clean.start_time} of "
                    f"{state.storage.uri} deleted files of the file group {file_id} in partition "
                    f"{part.partition_path!r} that {as_of} reads. Use a later time, or retain more file versions."
                )
