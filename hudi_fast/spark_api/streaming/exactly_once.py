"""A batch of a stream, written at most once.

::

    session.guard ─► run_write:  before the rows are evaluated, and before the commit: does the table have the batch?
                                 the commit stores its number

The second check holds the lock of the commit. Of two running writers of one stream (a driver that lost its session may
still run), the later one therefore finds the batch and gives its write up. A single writer holds the lock from the
first check on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from hudi_fast.config.properties_file import load_properties
from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import ConfigError, TableNotFoundError
from hudi_fast.spark_api.streaming.checkpoints import Checkpoint, checkpoint_metadata, find_checkpoint
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.active import Timeline, load_timeline
from hudi_fast.view.table_state import TableState
from hudi_fast.writing.backend import Engine
from hudi_fast.writing.flow import WriteResult, run_write
from hudi_fast.writing.session import TableSession
from hudi_fast.writing.settings import Settings

__all__ = ["Batch", "is_written", "noting", "write_exactly_once"]


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
        session: the call, with the settings of :func:`noting`.
        engine: holds the rows.
        mode: save mode.
        batch: the batch.

    Returns:
        Result of the write; None when the table has the batch.

    Raises:
        ConfigError: another query uses the name of the stream.
        ValueError: the session does not note the batch.
        HudiError: as :func:`hudi_fast.writing.flow.run_write`.
    """
    if noting(session.settings, batch) != session.settings:
        raise ValueError(f"The commit would not store batch {batch.number}: open the session with noting(...).")
    if mode == "overwrite" and is_written(session.storage, batch):  # the new table has no history
        return None

    def guard(state: TableState) -> None:
        if _is_in(state.storage, state.config, state.timeline, batch):
            raise _Written

    session.guard = guard
    try:
        return run_write(session, engine, mode)
    except _Written:
        return None
    finally:
        session.guard = None


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
