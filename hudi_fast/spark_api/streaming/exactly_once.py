"""A batch of a stream, written at most once.

::

    engine ─► _ExactlyOnceEngine ─► run_write:  under the table's lock, before the write begins: is the batch stored?
                                   the commit stores its number

The check uses the same lock as the commit. Another running writer of the same stream (a driver that lost its session
but still runs) therefore checks before or after it, and one of the two finds the batch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from hudi_fast.config.properties_file import load_properties
from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import ConfigError, TableNotFoundError
from hudi_fast.spark_api.streaming.checkpoints import Checkpoint, checkpoint_metadata, find_checkpoint
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.active import load_timeline
from hudi_fast.view.table_state import TableState
from hudi_fast.writing.backend import Engine
from hudi_fast.writing.flow import WriteResult, run_write
from hudi_fast.writing.session import TableSession
from hudi_fast.writing.settings import Settings
from hudi_fast.writing.write_plan import WriteOutcome, WritePlan

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
    try:
        return run_write(session, _ExactlyOnceEngine(engine, batch), mode)
    except _Written:
        return None


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
    return _is_in(storage, config, batch)


class _Written(Exception):
    """Raised when the table holds the batch."""


class _ExactlyOnceEngine:
    """An engine that checks for its batch before its rows are evaluated."""

    def __init__(self, engine: Engine, batch: Batch) -> None:
        self._engine = engine
        self._batch = batch

    def input_schema(self, state: TableState) -> pa.Schema:
        return self._engine.input_schema(state)

    def prepare(self, plan: WritePlan) -> None:
        """Called under the table's lock; for a new table before its lock exists."""
        if _is_in(plan.storage, plan.config, self._batch):
            raise _Written
        self._engine.prepare(plan)

    def execute(self, plan: WritePlan) -> WriteOutcome:
        return self._engine.execute(plan)


def _is_in(storage: Storage, config: TableConfig, batch: Batch) -> bool:
    timeline = load_timeline(storage, config)
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
