"""Changes of ``hoodie.properties`` that take effect with a commit.

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
from collections.abc import Mapping
from dataclasses import dataclass

from hudi_fast.config.properties_file import PROPERTIES_PATH, update_properties
from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import CorruptTableError
from hudi_fast.storage.base import Storage
from hudi_fast.storage.stored_json import stored_json
from hudi_fast.timeline.active import Timeline
from hudi_fast.timeline.archive.timeline import ArchivedTimeline
from hudi_fast.timeline.instant import State

__all__ = ["ANNOUNCED_KEY", "announce", "apply_announced", "effective_config"]

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
