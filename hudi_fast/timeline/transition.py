"""State changes of instants: requested -> inflight -> completed, each one file that must not exist yet.

An instant becomes visible when its completed file appears, whole, at once; what follows from an error at that moment
is told apart: the file is there after all (the change landed), it is not (the table is as before), or storage does not
say (:class:`~hudi_fast.errors.CommitStateUnknownError`). Files of earlier states stay. A change needs the file of the
state before it: if another writer rolled the instant back in the meantime, its data files are gone.

Sources: ActiveTimelineV1/V2 (createNewInstant, transition*, deletePending), release 1.2.0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import CommitConflictError, CommitError, CommitStateUnknownError
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.instant import (
    Instant,
    State,
    comparable_action,
    instant_file_name,
    instant_from_ms,
    parse_instant_file,
    with_state,
)

__all__ = [
    "complete",
    "create_requested",
    "delete_instant_files",
    "revert_to_inflight",
    "revert_to_requested",
    "to_inflight",
]


def create_requested(storage: Storage, config: TableConfig, instant: Instant, body: bytes = b"") -> Instant:
    """Put a new instant on the timeline; ``body`` is its plan, for actions that have one.

    Raises:
        CommitConflictError: there is an instant of that time and action already.
        CommitError: the file could not be written.
        CommitStateUnknownError: storage does not say whether it was.
    """
    return _create(storage, config, with_state(instant, State.REQUESTED), body)


def to_inflight(storage: Storage, config: TableConfig, instant: Instant, body: bytes = b"") -> Instant:
    """Mark a requested instant as being worked on. A savepoint begins here: it has no requested state.

    Raises:
        CommitConflictError: the instant is not requested (any more), or is inflight already.
        CommitError: the file could not be written.
        CommitStateUnknownError: storage does not say whether it was.
    """
    if instant.action != "savepoint":
        _require(storage, config, with_state(instant, State.REQUESTED))
    return _create(storage, config, with_state(instant, State.INFLIGHT), body)


def complete(
    storage: Storage, config: TableConfig, instant: Instant, body: bytes, completion_time: Callable[[], str]
) -> Instant:
    """Make an inflight instant complete and thereby visible.

    Args:
        storage: the table's storage.
        config: its configuration.
        instant: under its pending action (``compaction``, not ``commit``).
        body: commit metadata, or what else the action records.
        completion_time: takes it, and makes sure of the table's lock: nothing comes between that and the file. Layout 1
            has no place for it and goes by the file's modification time.

    Returns:
        The completed instant, with completion time and file name.

    Raises:
        CommitConflictError: the instant is not inflight (any more), or was completed with another body.
        CommitError: the file could not be written; the table is as before.
        CommitStateUnknownError: storage does not say whether it was.
        LockError: by ``completion_time``; the table is as before.
    """
    _require(storage, config, with_state(instant, State.INFLIGHT))
    completion = completion_time()
    if config.layout_version < 2:
        done = _create(storage, config, with_state(instant, State.COMPLETED), body)
        try:
            stat = storage.stat(_path(config, done))
        except OSError:  # complete all the same; its completion time is read when somebody asks for it
            stat = None
        return done if stat is None else replace(done, completion=instant_from_ms(stat.modified_ms, config.timezone))
    return _create(storage, config, with_state(instant, State.COMPLETED, completion), body)


def revert_to_inflight(storage: Storage, config: TableConfig, instant: Instant) -> Instant:
    """Make a complete instant invisible again by deleting its completed file, before it is rolled back."""
    storage.delete_file(_path(config, instant))
    return replace(instant, state=State.INFLIGHT, completion=None, file_name=None)


def revert_to_requested(storage: Storage, config: TableConfig, instant: Instant) -> Instant:
    """Let an inflight instant wait again, its plan as it was; one that is requested stays so."""
    storage.delete_file(_path(config, with_state(instant, State.INFLIGHT)))
    return with_state(instant, State.REQUESTED)


def delete_instant_files(storage: Storage, config: TableConfig, instant: Instant) -> list[str]:
    """Delete the files of an instant in all its states and return their names.

    Inflight goes first, then requested, then completed: what a crash leaves behind is pending if it was pending
    (and rolled back again), complete if it was complete.
    """
    wanted = instant.requested, comparable_action(instant.action)
    found: list[Instant] = []
    for entry in storage.list_dir(config.timeline_folder):
        parsed = None if entry.is_dir else parse_instant_file(entry.name, config.layout_version)
        if parsed is not None and (parsed.requested, comparable_action(parsed.action)) == wanted:
            found.append(parsed)
    order = (State.INFLIGHT, State.REQUESTED, State.COMPLETED)
    names = [_name(config, one) for one in sorted(found, key=lambda one: order.index(one.state))]
    for name in names:
        storage.delete_file(f"{config.timeline_folder}/{name}")
    return names


def _name(config: TableConfig, instant: Instant) -> str:
    return instant.file_name or instant_file_name(instant, config.layout_version)


def _path(config: TableConfig, instant: Instant) -> str:
    return f"{config.timeline_folder}/{_name(config, instant)}"


def _require(storage: Storage, config: TableConfig, instant: Instant) -> None:
    path = _path(config, instant)
    if not storage.exists(path):
        raise CommitConflictError(
            f"Table {storage.uri}: the {instant.action} {instant.requested} is no longer {instant.state.name.lower()} "
            f"(expected {path}); another writer rolled it back. Run the operation again."
        )


def _create(storage: Storage, config: TableConfig, instant: Instant, body: bytes) -> Instant:
    """Create the file of the instant's state, and find out what happened if storage reports an error."""
    name = instant_file_name(instant, config.layout_version)
    path = f"{config.timeline_folder}/{name}"
    what = (
        f"Table {storage.uri}: the {instant.state.name.lower()} file of {instant.action} {instant.requested} ({path})"
    )
    try:
        storage.create_exclusive(path, body)
    except FileExistsError as error:
        raise CommitConflictError(
            f"{what} is there already: another writer made it. Run the operation again."
        ) from error
    except OSError as error:
        if not _landed(storage, path, body, what, error):
            raise CommitError(
                f"{what} could not be written: {error}. Nothing changed; run the operation again."
            ) from error
    return replace(instant, file_name=name)


def _landed(storage: Storage, path: str, body: bytes, what: str, cause: OSError) -> bool:
    try:
        found = storage.read_bytes(path)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise CommitStateUnknownError(
            f"{what}: writing failed ({cause}) and so did looking whether it is there ({error}). Look at the timeline "
            "before anything is run again or deleted."
        ) from cause
    if found != body:
        raise CommitStateUnknownError(
            f"{what}: writing failed ({cause}) and {len(found)} bytes are there where {len(body)} were to be written. "
            "Look at the timeline before anything is run again or deleted."
        ) from cause
    return True
