"""State changes of instants, and changes of properties that take effect with them.

State changes of instants: requested -> inflight -> completed, each an exclusive creation of one file.

An instant becomes visible when its completed file is created atomically. After a storage error the file is read again:
it exists (the change succeeded), it does not exist (the table is unchanged), or its state is unknown
(:class:`~hudi_fast.errors.CommitStateUnknownError`). Files of earlier states are kept. A change requires the file of
the previous state: without it another writer has rolled the instant back and deleted its data files.

Sources: ActiveTimelineV1/V2 (createNewInstant, transition*, deletePending), release 1.2.0.

Changes of ``hoodie.properties`` that take effect with a commit.

::

    announce           one property holds the instant and the changes     before the commit; Apache Hudi ignores it
    (commit)
    effective_config   the configuration, after the changes of a completed instant     every reader and writer
    apply_announced    the changes replace the announcement          after the commit; after a crash the next writer

Apache Hudi uses the new configuration from the last step on. In between, for the time of a few requests, it reads the
new rows with the old configuration. Both describe the same files: data files store all columns.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace

from hudi_fast.config.properties_file import PROPERTIES_PATH, update_properties
from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import CommitConflictError, CommitError, CommitStateUnknownError, CorruptTableError
from hudi_fast.storage.base import Storage
from hudi_fast.storage.conditional import ThrottledError
from hudi_fast.storage.untrusted import stored_json
from hudi_fast.timeline.archive.timeline import ArchivedTimeline
from hudi_fast.timeline.instants import (
    Instant,
    State,
    Timeline,
    comparable_action,
    instant_file_name,
    instant_from_ms,
    parse_instant_file,
    with_state,
)
from hudi_fast.values import dataclass

__all__ = [
    "ANNOUNCED_KEY",
    "announce",
    "apply_announced",
    "complete",
    "create_requested",
    "delete_instant_files",
    "effective_config",
    "revert_to_inflight",
    "revert_to_requested",
    "to_inflight",
]


def create_requested(storage: Storage, config: TableConfig, instant: Instant, body: bytes = b"") -> Instant:
    """Put a new instant on the timeline; ``body`` is the plan of actions that have one.

    Raises:
        CommitConflictError: an instant with this time and action exists already.
        CommitError: the file could not be written.
        CommitStateUnknownError: it is unknown whether the file was written.
    """
    return _create(storage, config, with_state(instant, State.REQUESTED), body, durable=bool(body))


def to_inflight(
    storage: Storage,
    config: TableConfig,
    instant: Instant,
    body: bytes = b"",
    *,
    is_new: bool = False,
    durable: bool = False,
) -> Instant:
    """Change a requested instant to inflight. A savepoint starts inflight, without a requested state.

    Args:
        storage: the table's storage.
        config: configuration of the table.
        instant: the requested instant.
        body: content of the file.
        is_new: whether the caller has just created the requested file under the same lock, so that no other process can
            have removed it.
        durable: whether the file must survive a loss of power if any later file survives. Services that are executed
            again at the same requested time need this: otherwise files of an earlier attempt would be unknown.

    Raises:
        CommitConflictError: the instant is not, or no longer, requested, or already inflight.
        CommitError: the file could not be written.
        CommitStateUnknownError: it is unknown whether the file was written.
    """
    if instant.action != "savepoint" and not is_new:
        _require(storage, config, with_state(instant, State.REQUESTED))
    return _create(storage, config, with_state(instant, State.INFLIGHT), body, durable=durable)


def complete(
    storage: Storage,
    config: TableConfig,
    instant: Instant,
    body: bytes,
    completion_time: Callable[[], str],
    durable: bool = True,
    confirm: Callable[[Instant], None] = lambda completed: None,
) -> Instant:
    """Complete an inflight instant, which makes it visible.

    Args:
        storage: the table's storage.
        config: configuration of the table.
        instant: the instant with its pending action (``compaction``, not ``commit``).
        body: commit metadata, or the metadata of another action.
        completion_time: returns the completion time and checks the table lock; called right before the file is
            created, and again, for the check, before each retry when storage asks to slow down. Layout 1 uses the
            modification time of the file instead.
        durable: whether the instant, and everything written before it, survives a loss of power once the call returns.
            False for a part of another instant that is durable.
        confirm: called with the completed instant; raises an error if another writer may have held the table's lock
            between the check in ``completion_time`` and the creation of the file (:meth:`InstantClock.confirm`).

    Returns:
        The completed instant, with completion time and file name.

    Raises:
        CommitConflictError: the instant is not, or no longer, inflight, or was completed with another body.
        CommitError: the file could not be written; the table is unchanged.
        CommitStateUnknownError: it is unknown whether the file was written.
        LockError: raised by ``completion_time``; the table is unchanged.
        HudiError: raised by ``confirm``; the instant is completed.
    """
    if durable:
        storage.sync()  # may take long, so before the lock is checked
    _require(storage, config, with_state(instant, State.INFLIGHT))
    completion = completion_time()
    in_name = None if config.layout_version < 2 else completion
    done = _create(storage, config, with_state(instant, State.COMPLETED, in_name), body, completion_time, durable)
    confirm(done)
    if in_name is not None:
        return done
    try:
        stat = storage.stat(_path(config, done))
    except OSError:  # the instant is completed; later readers get its completion time from the file
        stat = None
    return done if stat is None else replace(done, completion=instant_from_ms(stat.modified_ms, config.timezone))


def revert_to_inflight(storage: Storage, config: TableConfig, instant: Instant) -> Instant:
    """Delete the completed file of an instant, which hides it again before its rollback.

    The deletion is durable: no loss of power brings the file back once its data files are deleted.
    """
    storage.delete_file(_path(config, instant), durable=True)
    return replace(instant, state=State.INFLIGHT, completion=None, file_name=None)


def revert_to_requested(storage: Storage, config: TableConfig, instant: Instant) -> Instant:
    """Change an inflight instant back to requested, with its plan; a requested instant is unchanged."""
    storage.delete_file(_path(config, with_state(instant, State.INFLIGHT)))
    return with_state(instant, State.REQUESTED)


def delete_instant_files(storage: Storage, config: TableConfig, instant: Instant) -> list[str]:
    """Delete the files of an instant in all its states and return their names.

    The order is inflight, requested, completed: after a crash or a loss of power, a pending instant is still pending
    (and rolled back again), and a completed one is still completed.
    """
    wanted = instant.requested, comparable_action(instant.action)
    found: list[Instant] = []
    for entry in storage.list_dir(config.timeline_folder):
        parsed = None if entry.is_dir else parse_instant_file(entry.name, config.layout_version)
        if parsed is not None and (parsed.requested, comparable_action(parsed.action)) == wanted:
            found.append(parsed)
    order = (State.INFLIGHT, State.REQUESTED, State.COMPLETED)
    found.sort(key=lambda one: order.index(one.state))
    storage.sync()  # for example the archive, which now has the instant
    is_completed = any(one.state is State.COMPLETED for one in found)
    for one in found:
        storage.delete_file(_path(config, one), durable=is_completed and one.state is not State.COMPLETED)
    return [_name(config, one) for one in found]


def _name(config: TableConfig, instant: Instant) -> str:
    return instant.file_name or instant_file_name(instant, config.layout_version)


def _path(config: TableConfig, instant: Instant) -> str:
    return f"{config.timeline_folder}/{_name(config, instant)}"


def _require(storage: Storage, config: TableConfig, instant: Instant) -> None:
    path = _path(config, instant)
    if not storage.exists(path):
        raise CommitConflictError(
            f"Table {storage.uri}: the {instant.action} {instant.requested} is no longer {instant.state.name.lower()} "
            f"(expected {path}); another writer rolled it back. Retry the operation."
        )


def _create(
    storage: Storage,
    config: TableConfig,
    instant: Instant,
    body: bytes,
    still_allowed: Callable[[], object] = lambda: None,
    durable: bool = False,
) -> Instant:
    """Create the file of the instant's state; after a storage error, determine whether the file was written.

    If the file must be durable, everything that it refers to is made durable first.
    """
    name = instant_file_name(instant, config.layout_version)
    path = f"{config.timeline_folder}/{name}"
    what = (
        f"Table {storage.uri}: the {instant.state.name.lower()} file of {instant.action} {instant.requested} ({path})"
    )
    try:
        if durable:
            storage.sync()
        storage.create_exclusive(path, body, still_allowed, durable)
    except FileExistsError as error:
        raise CommitConflictError(f"{what} exists already: another writer created it. Retry the operation.") from error
    except OSError as error:
        refused = isinstance(error, ThrottledError | PermissionError)
        if refused or not _is_written(storage, path, body, what, error):
            said = str(error).rstrip(".")
            raise CommitError(f"{what} could not be written: {said}. Nothing changed; retry the operation.") from error
    return replace(instant, file_name=name)


def _is_written(storage: Storage, path: str, body: bytes, what: str, cause: OSError) -> bool:
    try:
        found = storage.read_bytes(path)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise CommitStateUnknownError(
            f"{what}: writing it failed ({cause}), and checking whether it exists failed, too ({error}). Check the "
            "timeline before you retry or delete anything."
        ) from cause
    if found != body:
        raise CommitStateUnknownError(
            f"{what}: writing it failed ({cause}), and the file has {len(found)} bytes that differ from the "
            f"{len(body)} bytes to write. Check the timeline before you retry or delete anything."
        ) from cause
    return True


ANNOUNCED_KEY = "hudi_fast.announced.changes"
"""Property of a table: the requested time of a replace commit, and the properties that it changes, as JSON."""

_ACTION = "replacecommit"
_MAX_SHOWN = 200


@dataclass(frozen=True, slots=True)
class _Announced:
    """Changes, and the state of the commit that brings them; None if it was rolled back."""

    changes: Mapping[str, str | None]
    state: State | None


def announce(storage: Storage, instant: str, changes: Mapping[str, str | None]) -> None:
    """Store the changes of a replace commit that has begun; under the table's lock. Does nothing without changes.

    Args:
        storage: the table's storage.
        instant: requested time of the commit.
        changes: new values of properties; None removes one.
    """
    if changes:
        text = json.dumps({"instant": instant, "changes": dict(changes)}, separators=(",", ":"))
        update_properties(storage, {ANNOUNCED_KEY: text})


def effective_config(storage: Storage, config: TableConfig, timeline: Timeline) -> TableConfig:
    """The configuration after the announced changes of a completed commit.

    Args:
        storage: the table's storage.
        config: as ``hoodie.properties`` has it.
        timeline: the active timeline.

    Raises:
        CorruptTableError: the announcement cannot be read.
    """
    found = _announced(storage, config, timeline)
    if found is None or found.state is not State.COMPLETED:
        return config
    changed = {**config.raw, **found.changes}
    return TableConfig.from_properties({key: value for key, value in changed.items() if value is not None}, storage.uri)


def apply_announced(storage: Storage, config: TableConfig, timeline: Timeline) -> bool:
    """Replace an announcement by its changes, or remove it if its commit was rolled back.

    Args:
        storage: the table's storage, under its lock.
        config: its configuration.
        timeline: its active timeline.

    Returns:
        Whether ``hoodie.properties`` changed.

    Raises:
        CorruptTableError: the announcement cannot be read.
    """
    found = _announced(storage, config, timeline)
    if found is None or found.state in (State.REQUESTED, State.INFLIGHT):  # another writer is at work
        return False
    update_properties(storage, {**({} if found.state is None else found.changes), ANNOUNCED_KEY: None})
    return True


def _announced(storage: Storage, config: TableConfig, timeline: Timeline) -> _Announced | None:
    text = config.raw.get(ANNOUNCED_KEY)
    if text is None:
        return None
    requested, changes = _decoded(storage, text)
    instant = timeline.find(requested, _ACTION)
    if instant is None:  # rolled back, or archived by a writer that knows no announcements
        archived = ArchivedTimeline(storage, config).instants(requested, requested, (_ACTION,))
        instant = archived[0] if archived else None
    return _Announced(changes, None if instant is None else instant.state)


def _decoded(storage: Storage, text: str) -> tuple[str, Mapping[str, str | None]]:
    try:
        found = stored_json(text)
        instant, changes = found["instant"], found["changes"]
    except (ValueError, KeyError, TypeError):
        instant, changes = None, None
    if (
        isinstance(instant, str)
        and isinstance(changes, dict)
        and all(isinstance(value, str | None) for value in changes.values())
    ):
        return instant, changes
    raise CorruptTableError(
        f"The property {ANNOUNCED_KEY} of {storage.uri} is damaged: expected a requested time and changes as JSON, "
        f"found {text[:_MAX_SHOWN]!r}. Remove the property from the file.",
        PROPERTIES_PATH,
    )
