"""A batch of a stream, written at most once.

::

    unless_written ─► run_write:  before the rows are evaluated, and before the commit: does the table have the batch?
                                  the commit stores its number

The second check holds the lock of the commit. Of two running writers of one stream (a driver that lost its session may
still run), the later one therefore finds the batch and gives its write up. A single writer holds the lock from the
first check on.

Batch numbers of streams, stored in commits.

::

    batch ─► checkpoint_metadata ─► extra metadata of its commit
    timeline, newest commit first ─► archived timeline ─► find_checkpoint ─► Checkpoint

A commit and the number of its batch become visible together, which gives exactly-once writes. Key and value are Apache
Hudi's, so either library can continue a stream of the other. A second key stores the query id: batch numbers of queries
with different checkpoint locations are not comparable.

Sources: ``HoodieStreamingSink.SINK_CHECKPOINT_KEY``, ``CommitUtils.getValidCheckpointForCurrentWriter`` (1.2.0).

The effect of a batch of a stream on the table, by output mode.

::

    append      the operation of the options, an upsert by default
    update      an upsert: the rows of an aggregation that changed
    complete    insert_overwrite_table: the batch replaces all rows, in one replace commit
    overwrite   the save mode: the batch replaces the table with a new one

``complete`` keeps the table, its history and its earlier file slices: readers of the batch before are not disturbed,
and a replace commit is as atomic in an object store as in a folder. Apache Hudi's sink deletes the table for every
batch of ``complete`` and of ``update`` (``HoodieStreamingSink``, 1.2.0), which loses the rows that an ``update`` does
not have.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from hudi_fast.config.options import find_option
from hudi_fast.config.properties_file import load_properties
from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import ConfigError, CorruptTableError, TableNotFoundError
from hudi_fast.storage.base import Storage
from hudi_fast.storage.untrusted import stored_json
from hudi_fast.timeline.archive.timeline import newest_stored
from hudi_fast.timeline.commit_metadata import decode_commit_metadata
from hudi_fast.timeline.instants import Timeline, load_timeline
from hudi_fast.values import dataclass
from hudi_fast.view.table_state import TableState
from hudi_fast.writing.backend import Engine
from hudi_fast.writing.flow import WriteResult, run_write
from hudi_fast.writing.session import TableSession
from hudi_fast.writing.settings import Settings

__all__ = [
    "CHECKPOINT_KEY",
    "QUERY_KEY",
    "SINK_MODES",
    "STATEFUL_MODES",
    "Batch",
    "Checkpoint",
    "checkpoint_metadata",
    "find_checkpoint",
    "is_written",
    "noting",
    "save_mode_of",
    "unless_written",
    "with_output_mode",
    "write_exactly_once",
]

CHECKPOINT_KEY = "_hudi_streaming_sink_checkpoint"
QUERY_KEY = "_hudi_fast_streaming_query"
"""Keys of extra commit metadata: checkpoints of sinks, as Apache Hudi writes them, and the streaming query."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The newest batch of a stream that a table holds.

    Attributes:
        batch: its number.
        query: id of the query that wrote it; None where Apache Hudi wrote it, or the query is not known.
    """

    batch: int
    query: str | None = None


def checkpoint_metadata(identifier: str, batch: int, query: str | None) -> dict[str, str]:
    """Extra commit metadata for a batch.

    Args:
        identifier: name of the stream.
        batch: its number.
        query: id of the query; None where it is not known.
    """
    metadata = {CHECKPOINT_KEY: json.dumps({identifier: str(batch)}, separators=(",", ":"))}
    return metadata if query is None else {**metadata, QUERY_KEY: query}


def find_checkpoint(
    storage: Storage, config: TableConfig, timeline: Timeline, identifier: str, after: str | None = None
) -> Checkpoint | None:
    """The newest batch recorded in the table's commits.

    Ignores commits of services, of other writers and of streams with other names. Searches the archived timeline if the
    active one records no batch.

    Args:
        storage: the table's storage.
        config: its configuration.
        timeline: its active timeline.
        identifier: name of the stream.
        after: search only commits that completed later, and not the archived timeline; None to search all.

    Raises:
        CorruptTableError: a commit, or its checkpoint, cannot be read.
    """

    def takes(instant: Any) -> bool:
        return after is None or (instant.completion or "") > after

    find = partial(_checkpoint_in, identifier)
    return newest_stored(storage, config, timeline, find, takes, archive=after is None)


def _checkpoint_in(identifier: str, body: bytes, path: str) -> Checkpoint | None:
    if CHECKPOINT_KEY.encode() not in body:  # true for most commits: they need no decoding
        return None
    extra = decode_commit_metadata(body, path).extra_metadata
    if not extra.get(CHECKPOINT_KEY):
        return None
    try:
        batch = stored_json(extra[CHECKPOINT_KEY]).get(identifier)
        return None if batch is None else Checkpoint(int(batch), extra.get(QUERY_KEY))
    except (ValueError, TypeError, AttributeError) as error:
        raise CorruptTableError(
            f"The commit has {CHECKPOINT_KEY}={extra[CHECKPOINT_KEY]!r}; expected JSON that maps names of streams to "
            "numbers of batches.",
            path,
        ) from error


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch of a stream.

    Attributes:
        identifier: name of the stream.
        number: of the batch; increasing, and the same when a batch is retried.
        query: id of the query; None if unknown.
        known: the newest batch of the stream known to be in the table.
        after: completion time of its commit: only later ones are searched; None to search all.
    """

    identifier: str
    number: int
    query: str | None = None
    known: Checkpoint | None = None
    after: str | None = None


def write_exactly_once(session: TableSession, engine: Engine, mode: str, batch: Batch) -> WriteResult | None:
    """Write a batch unless the table has it.

    Args:
        session: the call, with the settings of :func:`noting` and the guard :func:`unless_written`.
        engine: holds the rows.
        mode: save mode.
        batch: the batch.

    Returns:
        Result of the write; None when the table has the batch.

    Raises:
        ConfigError: another query uses the name of the stream.
        ValueError: the session does not note the batch, or has no guard.
        HudiError: as :func:`hudi_fast.writing.flow.run_write`.
    """
    if noting(session.settings, batch) != session.settings or session.call.guard is None:
        raise ValueError(
            f"The commit would not store batch {batch.number}, or store it twice: open the session with the settings "
            "of noting(...) and the guard unless_written(...)."
        )
    if mode == "overwrite" and is_written(session.storage, batch):  # the new table has no history
        return None
    try:
        return run_write(session, engine, mode)
    except _Written:
        return None


def unless_written(batch: Batch) -> Callable[[TableState], None]:
    """The guard of a call that writes a batch: it gives the write up if the table has the batch."""

    def guard(state: TableState) -> None:
        if _is_in(state.storage, state.config, state.timeline, batch):
            raise _Written

    return guard


def noting(settings: Settings, batch: Batch) -> Settings:
    """The settings of a write whose commit stores the number of a batch."""
    checkpoint = checkpoint_metadata(batch.identifier, batch.number, batch.query)
    write = settings.write
    return replace(settings, write=replace(write, extra_metadata={**write.extra_metadata, **checkpoint}))


def is_written(storage: Storage, batch: Batch) -> bool:
    """Whether the table holds a batch.

    Raises:
        ConfigError: another query uses the name of the stream.
        CorruptTableError: a commit cannot be read.
    """
    try:
        config = TableConfig.from_properties(load_properties(storage), storage.uri)
    except TableNotFoundError:
        return False
    return _is_in(storage, config, load_timeline(storage, config), batch)


class _Written(Exception):
    """Raised when the table holds the batch."""


def _is_in(storage: Storage, config: TableConfig, timeline: Timeline, batch: Batch) -> bool:
    found = find_checkpoint(storage, config, timeline, batch.identifier, batch.after) or batch.known
    if found is None:
        return False
    _require_same_query(storage, batch, found)
    return found.batch >= batch.number


def _require_same_query(storage: Storage, batch: Batch, found: Checkpoint) -> None:
    if None in (batch.query, found.query) or batch.query == found.query:
        return
    raise ConfigError(
        f"Batch {batch.number} of the query {batch.query} cannot be written to {storage.uri}: batches up to "
        f"{found.batch} of the stream {batch.identifier!r} were written by another query, {found.query}, whose "
        "batch numbers are not comparable. Give this stream a name of its own: "
        "hoodie.datasource.write.streaming.checkpoint.identifier; or its former checkpointLocation."
    )


SINK_MODES = ("append", "update", "complete", "overwrite")
"""Modes of a sink: Spark's output modes, and the save mode ``overwrite``."""

STATEFUL_MODES = ("update", "complete")
"""Modes of queries whose state Spark stores while the rows of a batch are evaluated."""

_OPERATION = "hoodie.datasource.write.operation"
_KEY = "hoodie.datasource.write.recordkey.field"
_COMBINE = "hoodie.combine.before.insert"
_REPLACING = "insert_overwrite_table"
_ALLOWED = {
    "update": ("upsert",),
    "complete": ("upsert", "insert", "bulk_insert", _REPLACING),
}


def with_output_mode(options: Mapping[str, Any], mode: str) -> dict[str, Any]:
    """The options of the write of every batch.

    Args:
        options: of the sink.
        mode: one of :data:`SINK_MODES`.

    Raises:
        ConfigError: an unknown mode, or one that the operation of the options contradicts.
    """
    if mode not in SINK_MODES:
        raise ConfigError(f"A stream writes with one of the modes {', '.join(SINK_MODES)}; got {mode!r}.")
    allowed = _ALLOWED.get(mode)
    if allowed is None:
        return dict(options)
    operation = str(_given(options, _OPERATION) or "upsert").lower()
    if operation not in allowed:
        raise ConfigError(
            f"{_OPERATION}={operation} contradicts the output mode {mode}: its batches are written by "
            f"{'an upsert' if mode == 'update' else _REPLACING}. Leave the option out, or use the output mode append."
        )
    rest = {key: value for key, value in options.items() if not _is(key, _OPERATION)}
    if mode == "update":
        return {**rest, _OPERATION: "upsert"}
    merges = operation == "upsert" and _given(options, _KEY) is not None and _given(options, _COMBINE) is None
    return {**rest, _OPERATION: _REPLACING, **({_COMBINE: "true"} if merges else {})}


def save_mode_of(mode: str) -> str:
    """The save mode of every batch."""
    return "overwrite" if mode == "overwrite" else "append"


def _given(options: Mapping[str, Any], key: str) -> Any:
    """The value of an option in any spelling; None where it is not given."""
    return next((value for name, value in options.items() if _is(name, key)), None)


def _is(name: str, key: str) -> bool:
    option = find_option(name)
    return option is not None and option.key == key
