"""The sink for ``foreachBatch``: writes each batch of a streaming query once.

::

    foreachBatch ─► Sink(df, batch id)
        before   hoodie.prewrite.cleaner.policy
        write    write_exactly_once, retried after transient errors          the commit stores the batch number
        after    clean, archive; plan compaction and clustering; catalogs    a failure is a warning
        async    a thread executes the plans (Background)

A sink holds path and options: Spark Connect pickles it and calls it in a process of the server.

Source: ``HoodieStreamingSink`` (1.2.0). It skips batches by the newest number on the active timeline, ends the whole
process when a batch fails permanently, and stops the stream when its asynchronous services fail. Here a failed batch
fails the query, and the stream continues after failed services.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

from hudi_fast.config.defaults_file import with_new_table
from hudi_fast.config.option_values import written_options
from hudi_fast.config.properties_file import load_properties
from hudi_fast.config.stream_options import SinkOptions
from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import CommitError, ConfigError, HudiError, LockError, PostCommitError
from hudi_fast.events import warn
from hudi_fast.services.inline import check_inline, write_with_services
from hudi_fast.sessions import open_session
from hudi_fast.spark_api.streaming.background import Background, has_work, with_half_of_the_threads
from hudi_fast.spark_api.streaming.checkpoints import Checkpoint
from hudi_fast.spark_api.streaming.exactly_once import Batch, is_written, write_exactly_once
from hudi_fast.spark_api.streaming.output_modes import STATEFUL_MODES, save_mode_of, with_output_mode
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.active import Timeline, load_timeline
from hudi_fast.writing.flow import WriteResult
from hudi_fast.writing.session import TableSession
from hudi_fast.writing.settings import Settings

__all__ = ["Sink", "sink"]

_QUERY_PROPERTY = "sql.streaming.queryId"


class Sink:
    """The function for ``foreachBatch``: writes a batch to a table once, even if called repeatedly.

    Args:
        path: base path of the table.
        options: as :func:`sink`.
        mode: as :func:`sink`.
        storage_options: as :func:`sink`.
    """

    def __init__(
        self,
        path: str,
        options: Mapping[str, Any],
        mode: str = "append",
        storage_options: Mapping[str, Any] | None = None,
    ) -> None:
        with_output_mode(options, mode)
        self.path = path
        self._storage = Storage(path, storage_options)
        self.options = with_new_table(options, self._storage, save_mode_of(mode))
        self.mode = mode
        written = with_output_mode(self.options, mode)
        self._stream = SinkOptions.of(written_options(written))
        self._settings = Settings.for_stream(written, self._stream)
        check_inline(self._settings)
        self._background = Background(self._storage, with_half_of_the_threads(self._settings))
        self._known: Checkpoint | None = None
        self._after: str | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.path, self.options, self.mode, self._storage.options)

    def __call__(self, df: Any, batch_id: int) -> None:
        """Write a batch, unless the table holds it.

        Args:
            df: its rows, not a stream.
            batch_id: its number.

        Raises:
            HudiError: the write failed after all retries that the options allow.

        Warns:
            HudiWarning: a service failed after the batch was committed; or the batch failed, and the options skip
                failed batches.
        """
        if not hasattr(df, "sparkSession") or not isinstance(batch_id, int):
            raise ConfigError(
                "foreachBatch calls a sink with a PySpark DataFrame and the number of its batch; got "
                f"{type(df).__name__} and {batch_id!r}."
            )
        spark = df.sparkSession
        session = open_session(self._storage, self._settings, spark)
        batch = Batch(self._stream.identifier, batch_id, _query_of(spark), self._known, self._after)
        written: list[WriteResult | None] = []

        def write() -> WriteResult | None:
            written.append(self._try(session, df, batch))
            return written[0]

        try:
            result = write_with_services(session, write)
        except Exception as error:
            if written or not self._stream.ignores_failures:
                raise
            warn(
                f"Batch {batch_id} of the stream {batch.identifier!r} into {self.path} failed and is skipped: "
                f"{type(error).__name__}: {error}"
            )
            return
        if result is None and self.mode in STATEFUL_MODES:  # Spark 4.3 fails a batch whose state no task has stored
            df.write.format("noop").mode("overwrite").save()
        try:
            if result is not None:
                self._remember(batch, result.instant)
            if self._works_beside and has_work(self._timeline()):
                self._background.wake(session.backend)
        except (HudiError, OSError) as error:  # the batch is written; the next one looks again
            warn(f"Batch {batch_id} is written to {self.path}; reading the timeline after it failed: {error}")

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until no asynchronous service is running; returns whether that is the case.

        Args:
            seconds: timeout; None for no limit.
        """
        return self._background.wait(seconds)

    def _try(self, session: TableSession, df: Any, batch: Batch) -> WriteResult | None:
        if batch.after is None and is_written(self._storage, batch):  # after a restart: the rows are not evaluated
            return None
        wait = self._stream.retry_interval_ms / 1000
        for left in reversed(range(self._stream.max_attempts)):
            try:
                engine = session.backend.engine(df, self._settings.write)
                return write_exactly_once(session, engine, save_mode_of(self.mode), batch)
            except PostCommitError as error:
                warn(str(error))
                return None
            except Exception as error:
                if left == 0 or not _may_pass(error):
                    raise
                session.changed()
                time.sleep(wait)
                wait *= 2
        raise AssertionError("there is one try at least")

    def _remember(self, batch: Batch, instant: str) -> None:
        """Remember the commit, so that the next batch searches only later ones; not when the table is replaced."""
        commit = self._timeline().find(instant) if instant and self.mode != "overwrite" else None
        if commit is not None and commit.completion is not None:
            self._known, self._after = Checkpoint(batch.number, batch.query), commit.completion

    def _timeline(self) -> Timeline:
        config = TableConfig.from_properties(load_properties(self._storage), self._storage.uri)
        return load_timeline(self._storage, config)

    @property
    def _works_beside(self) -> bool:
        settings = self._settings
        return settings.services.enabled and (
            settings.compaction.schedule_inline or settings.clustering.schedule_inline
        )


def sink(
    path: str | os.PathLike[str],
    options: Mapping[str, Any] | None = None,
    mode: str = "append",
    storage_options: Mapping[str, Any] | None = None,
) -> Sink:
    """Create the function for ``df.writeStream.foreachBatch``: each batch becomes one commit, exactly once.

    As in Apache Hudi's sink, cleaning and archiving run after a batch when due. Compaction of a MERGE_ON_READ table
    (``hoodie.datasource.compaction.async.enable``) and clustering (``hoodie.clustering.async.enabled``) are planned
    after a batch and executed by a thread of the driver.

    Args:
        path: base path of the table; created if missing.
        options: ``hoodie.*`` keys of the write and of the stream.
        mode: Spark's output mode of the query: ``append``; ``update``, whose batches are upserts; ``complete``, whose
            batches replace all rows of the table, each in one replace commit. Or ``overwrite``: every batch replaces
            the table with a new one, whose columns and configuration may differ.
        storage_options: connection options of the table's storage, see docs/object-stores.md.

    Returns:
        A picklable function of a batch and its number.

    Raises:
        ConfigError: an option is wrong, or contradicts the mode.
        UnsupportedFeatureError: an option is not supported.
    """
    return Sink(os.fspath(path) if isinstance(path, os.PathLike) else path, options or {}, mode, storage_options)


def _may_pass(error: Exception) -> bool:
    """Whether to retry: after errors of storage, locks, other writers or Spark tasks; not after caller errors."""
    return isinstance(error, CommitError | LockError) or not isinstance(error, HudiError)


def _query_of(spark: Any) -> str | None:
    """Id of the streaming query whose batch this thread writes; None if unknown (Spark Connect)."""
    context = getattr(spark, "_sc", None)
    found = None if context is None else context.getLocalProperty(_QUERY_PROPERTY)
    return None if found is None else str(found)
