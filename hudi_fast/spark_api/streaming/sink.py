"""The sink of streams, and the entry points of ``readStream`` and ``writeStream``.

The sink for ``foreachBatch``: writes each batch of a streaming query once.

::

    foreachBatch ─► Sink(df, batch id)
        before   hoodie.prewrite.cleaner.policy
        write    write_exactly_once, retried after transient errors          the commit stores the batch number
        after    clean, archive; plan compaction and clustering; catalogs    a failure is a warning
        async    a thread executes the plans (_Background)

A sink holds path and options: Spark Connect pickles it and calls it in a process of the server.

Source: ``HoodieStreamingSink`` (1.2.0). It skips batches by the newest number on the active timeline, ends the whole
process when a batch fails permanently, and stops the stream when its asynchronous services fail. Here a failed batch
fails the query, and the stream continues after failed services.

Entry points of streams: implement ``readStream`` and ``writeStream`` of a switched-on session.

::

    stream_writer   df.writeStream ─► foreachBatch(Sink) ─► StreamingQuery       PySpark 3.5 and later
    stream_reader   spark.readStream.format("hudi_fast") ─► streaming DataFrame   PySpark 4 and later
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import Any

from hudi_fast.config.defaults_file import with_new_table
from hudi_fast.config.options import written_options
from hudi_fast.config.properties_file import load_properties
from hudi_fast.config.stream_options import SinkOptions, SourceOptions
from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import CommitError, ConfigError, HudiError, LockError, PostCommitError, ServiceTakenError
from hudi_fast.events import note, warn
from hudi_fast.reading.incremental.commit_range import check_stream_options
from hudi_fast.services.clustering.cluster import run_pending_clusterings
from hudi_fast.services.inline import check_inline, write_with_services
from hudi_fast.services.pending import run_pending_services
from hudi_fast.sessions import open_session
from hudi_fast.spark.storage import prefixed, split_options, storage_settings
from hudi_fast.spark_api.source.entry import SOURCE_NAME, register_data_source
from hudi_fast.spark_api.streaming.exactly_once import (
    STATEFUL_MODES,
    Batch,
    Checkpoint,
    is_written,
    noting,
    save_mode_of,
    unless_written,
    with_output_mode,
    write_exactly_once,
)
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.instants import Timeline, load_timeline
from hudi_fast.values import dataclass
from hudi_fast.writing.backend import Backend
from hudi_fast.writing.flow import WriteResult
from hudi_fast.writing.session import Call, TableSession
from hudi_fast.writing.settings import Settings

__all__ = ["Sink", "sink", "stream_reader", "stream_writer"]

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
        self._background = _Background(self._storage, _with_half_of_the_threads(self._settings))
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
        batch = Batch(self._stream.identifier, batch_id, _query_of(spark), self._known, self._after)
        session = open_session(self._storage, noting(self._settings, batch), spark, guard=unless_written(batch))
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
            if self._works_beside and _has_work(self._timeline()):
                self._background.wake(session.backend)
        except (HudiError, OSError) as error:  # the batch is written; the next one checks again
            warn(f"Batch {batch_id} is written to {self.path}; reading the timeline after it failed: {error}")

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until no asynchronous service is running; returns False after a timeout.

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


# ---- asynchronous table services of a stream: a thread that executes pending plans and ends when none is left
#
# ::
#
#     batch ─► plan on the timeline ─► Background.wake ─► thread: pending compactions, clusterings, oldest first
#     batch ─► ...                  ─► wake: the running thread checks the timeline again before it ends
#
# The stream does not wait for the thread and does not fail with it: an error becomes a warning, and the next batch
# wakes the thread again. The plan of a compaction stays pending; a plan of a clustering is withdrawn, because later
# batches could not change the rows of its file groups. Only batches wake it, so it ends with the query. If the driver
# fails, the plan stays on the timeline and the next driver executes it. The thread uses half of the processors;
# batches use the other half.


_SERVICES = frozenset({"compact"})
_THREADS_KEY = "hudi_fast.threads"


def _has_work(timeline: Timeline) -> bool:
    """Whether a compaction or clustering may be pending; in layout 1 a pending replace commit may be one."""
    return any(one.action in ("compaction", "clustering", "replacecommit") for one in timeline.pending())


def _with_half_of_the_threads(settings: Settings) -> Settings:
    """The settings with half of the parallelism, unless the options set it."""
    if _THREADS_KEY in settings.write.explicit:
        return settings
    threads = max(1, (os.cpu_count() or 2) // 2)
    write = settings.write
    return replace(settings, write=replace(write, engine=replace(write.engine, threads=threads)))


@dataclass(slots=True)
class _Background:
    """Starts and owns the thread.

    Attributes:
        storage: the table's storage.
        settings: of the services.
    """

    storage: Storage
    settings: Settings
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _thread: threading.Thread | None = field(default=None, repr=False)
    _again: bool = field(default=False, repr=False)

    def wake(self, backend: Backend) -> None:
        """Execute pending plans in the thread; returns immediately.

        Args:
            backend: executes them.
        """
        with self._lock:
            self._again = True
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._work, args=(backend,), name="hudi_fast-services", daemon=True
                )
                self._thread.start()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until no service is running; returns False after a timeout.

        Args:
            seconds: timeout; None for no limit.
        """
        thread = self._thread
        if thread is not None:
            thread.join(seconds)
        return thread is None or not thread.is_alive()

    def _work(self, backend: Backend) -> None:
        while self._goes_on():
            note("streaming", logging.DEBUG, "Asynchronous services begin", table=self.storage.uri)
            self._try(backend, lambda session: run_pending_services(session, _SERVICES))
            self._try(backend, lambda session: run_pending_clusterings(session, withdraws=True))

    def _try(self, backend: Backend, run: Callable[[TableSession], object]) -> None:
        session, uri = TableSession(Call(self.storage, self.settings, backend)), self.storage.uri
        try:
            with session.without_waiting():
                run(session)
        except ServiceTakenError as error:
            note("streaming", logging.INFO, "An asynchronous service was left to others: %s", error, table=uri)
        except Exception as error:  # including Spark's own
            note("streaming", logging.ERROR, "An asynchronous service failed: %s", repr(error), table=uri)
            warn(
                f"An asynchronous service of the stream into {uri} failed: {type(error).__name__}: {error} The stream "
                "continues; the service is retried after a later batch."
            )

    def _goes_on(self) -> bool:
        with self._lock:
            goes_on, self._again = self._again, False
            if not goes_on:
                self._thread = None
            return goes_on


_OUTPUT_MODES = ("append", "complete", "update")


def stream_writer(
    df: Any,
    path: str | os.PathLike[str],
    options: Mapping[str, Any] | None = None,
    *,
    output_mode: str = "append",
    trigger: Mapping[str, Any] | None = None,
    checkpoint: str | None = None,
    query_name: str | None = None,
    other_options: Mapping[str, Any] | None = None,
) -> Any:
    """Start a query that writes a streaming DataFrame to a table, each batch once.

    Args:
        df: a streaming PySpark DataFrame.
        path: base path of the table.
        options: ``hoodie.*`` keys of the write and of the stream, and of the storage (``hudi_fast.storage.*``).
        output_mode: ``append``, ``update`` or ``complete``, see :mod:`.exactly_once`.
        trigger: arguments of ``DataStreamWriter.trigger``; None for its default.
        checkpoint: Spark's ``checkpointLocation``; None for the session's setting.
        query_name: of the query.
        other_options: Spark's own options for the query.

    Returns:
        The running ``StreamingQuery``.

    Raises:
        HudiError: an option is wrong; later errors fail the query.
    """
    own, storage = split_options(options or {})
    target = sink(path, own, _mode_of(output_mode), storage or storage_settings(df.sparkSession, path))
    writer = df.writeStream.foreachBatch(target).outputMode(output_mode)
    for key, value in {**(other_options or {}), "checkpointLocation": checkpoint}.items():
        writer = writer if value is None else writer.option(key, value)
    if trigger:
        writer = writer.trigger(**trigger)
    if query_name is not None:
        writer = writer.queryName(query_name)
    return writer.start()


def stream_reader(spark: Any, path: str | os.PathLike[str], options: Mapping[str, Any] | None = None) -> Any:
    """A streaming DataFrame of the commits to a table.

    Args:
        spark: the session.
        path: base path of the table.
        options: ``hoodie.datasource.streaming.startOffset``, ``hudi_fast.stream.max_commits``, ...

    Raises:
        UnsupportedFeatureError: PySpark before 4, which has no data sources in Python.
        HudiError: no table, or an option is wrong.
    """
    register_data_source(spark)
    own, storage = split_options(options or {})
    check_stream_options(own)
    SourceOptions.from_options(own)
    reader = spark.readStream.format(SOURCE_NAME).options(**own)
    return reader.options(**prefixed(storage or storage_settings(spark, path))).load(os.fspath(path))


def _mode_of(output_mode: str) -> str:
    if output_mode.lower() not in _OUTPUT_MODES:
        raise ConfigError(f"The output mode {output_mode!r} is unknown; use one of {', '.join(_OUTPUT_MODES)}.")
    return output_mode.lower()
