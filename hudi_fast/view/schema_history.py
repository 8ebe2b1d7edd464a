"""Load the history of a table's schema from Hudi's schema commits.

::

    .hoodie/.schema ─► schema commits of completed writes ─► the newest, which holds all versions ─► SchemaHistory

Most tables have no such folder: their columns are identified by name. A schema commit has the requested time of its
write or ALTER and is valid if this instant is complete: rolling back a write rolls back its schema.

Source: ``FileBasedInternalSchemaStorageManager`` (Hudi 1.2.0).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hudi_fast.config.table_config import TableConfig
from hudi_fast.schema.history import Renames, SchemaHistory, renames_at
from hudi_fast.schema.internal import parse_versions
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.archive.timeline import ArchivedTimeline
from hudi_fast.timeline.instants import WRITE_ACTIONS, Instant, Timeline, parse_instant_file
from hudi_fast.view.file_names import BaseFile

__all__ = ["SCHEMA_COMMIT", "SCHEMA_FOLDER", "load_history", "newest_schema_commit", "renamer", "schema_commits"]

SCHEMA_FOLDER = ".hoodie/.schema"
"""Folder of the instants of action :data:`SCHEMA_COMMIT`."""

SCHEMA_COMMIT = "schemacommit"
"""Action name in the schema history folder."""


def schema_commits(storage: Storage, layout: int) -> list[tuple[Instant, str]]:
    """The completed schema commits, regardless of their writes: instants and paths, oldest first."""
    found = []
    for entry in storage.list_dir(SCHEMA_FOLDER):
        instant = None if entry.is_dir else parse_instant_file(entry.name, layout)
        if instant is not None and instant.action == SCHEMA_COMMIT and instant.is_completed:
            found.append((instant, entry.path))
    return sorted(found, key=lambda one: one[0].requested)


def load_history(
    storage: Storage, config: TableConfig, timeline: Timeline, as_of: str | None = None
) -> SchemaHistory | None:
    """The schema history; None for a table without one.

    ``as_of`` is the newest visible requested time; None for now.

    Raises:
        CorruptTableError: it is invalid.
    """
    path = newest_schema_commit(storage, config, timeline)
    if path is None:
        return None
    versions = parse_versions(storage.read_bytes(path).decode(errors="replace"), path)
    return SchemaHistory(tuple(reversed(versions)), as_of) if versions else None


def newest_schema_commit(storage: Storage, config: TableConfig, timeline: Timeline) -> str | None:
    """The path of the newest schema commit of a completed write; None when there is none.

    The schema commit of an archived write is used only if the active timeline has none. Hudi reads the active timeline
    only, but a writer that does not maintain the history may have made all later commits.
    """
    commits = schema_commits(storage, config.layout_version)
    complete = {instant.requested for instant in timeline.writes()}
    counting = [path for instant, path in commits if instant.requested in complete]
    if not counting and commits:
        archive = ArchivedTimeline(storage, config)
        archived = {one.requested for one in archive.instants(commits[0][0].requested, None, WRITE_ACTIONS)}
        counting = [path for instant, path in commits if instant.requested in archived]
    return counting[-1] if counting else None


def renamer(history: SchemaHistory | None) -> Callable[[BaseFile], BaseFile]:
    """A function that adds to base files the changes of their columns; computed once per instant."""
    known: dict[str, Renames | None] = {}

    def named(base: BaseFile) -> BaseFile:
        if history is None:
            return base
        if base.instant not in known:
            known[base.instant] = renames_at(history, base.instant)
        names = known[base.instant]
        return base if names is None else replace(base, names=names)

    return named
