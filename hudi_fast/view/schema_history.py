"""The history of a table's schema, from the files in which Hudi keeps it.

::

    .hoodie/.schema ─► schema commits of completed writes ─► the newest, which holds all ─► SchemaHistory

Most tables have no such folder: their columns go by their names. A schema commit has the requested time of the write
or ALTER that it belongs to and counts if that one does: a write that is rolled back takes its schema along.

Source: ``FileBasedInternalSchemaStorageManager`` (Hudi 1.2.0).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hudi_fast.schema.history import Names, SchemaHistory, names_at
from hudi_fast.schema.internal import parse_versions
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.active import Timeline
from hudi_fast.timeline.instant import Instant, parse_instant_file
from hudi_fast.view.file_names import BaseFile

__all__ = ["SCHEMA_COMMIT", "SCHEMA_FOLDER", "load_history", "naming", "schema_commits"]

SCHEMA_FOLDER = ".hoodie/.schema"
"""Where instants of the action :data:`SCHEMA_COMMIT` are."""

SCHEMA_COMMIT = "schemacommit"


def schema_commits(storage: Storage, layout: int) -> list[tuple[Instant, str]]:
    """The complete schema commits, whatever became of their writes: instants and paths, oldest first.

    Args:
        storage: the table's storage.
        layout: version of the timeline's layout.
    """
    found = []
    for entry in storage.list_dir(SCHEMA_FOLDER):
        instant = None if entry.is_dir else parse_instant_file(entry.name, layout)
        if instant is not None and instant.action == SCHEMA_COMMIT and instant.is_completed:
            found.append((instant, entry.path))
    return sorted(found, key=lambda one: one[0].requested)


def load_history(storage: Storage, layout: int, timeline: Timeline, as_of: str | None = None) -> SchemaHistory | None:
    """What the schema has been; None for a table without history.

    Args:
        storage: the table's storage.
        layout: version of the timeline's layout.
        timeline: the active timeline.
        as_of: newest requested time that counts; None for now.

    Raises:
        CorruptTableError: it cannot be understood.
    """
    counting = [
        path
        for instant, path in schema_commits(storage, layout)
        if timeline.is_completed_or_archived(instant.requested)
    ]
    if not counting:
        return None
    text = storage.read_bytes(counting[-1]).decode(errors="replace")
    versions = parse_versions(text, counting[-1])
    return SchemaHistory(tuple(reversed(versions)), as_of) if versions else None


def naming(history: SchemaHistory | None) -> Callable[[BaseFile], BaseFile]:
    """What gives base files the names that their columns have today; each instant is looked at once."""
    known: dict[str, Names | None] = {}

    def named(base: BaseFile) -> BaseFile:
        if history is None:
            return base
        if base.instant not in known:
            known[base.instant] = names_at(history, base.instant)
        names = known[base.instant]
        return base if names is None else replace(base, names=names)

    return named
