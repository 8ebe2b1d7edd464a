"""A stream out of a table through ``foreachBatch``: PySpark 3.5, which has no data sources in Python, and later.

::

    clock: Spark's rate-micro-batch ─► foreachBatch ─► Delivery, once for each trigger
        BatchLog    the batch that was begun and not finished, else the next one: its end is stored
        read        (begin, end] ─► a DataFrame as hf.read makes it      Spark's own scan reads base files
        each_batch  the caller's function, called with it and its number
        BatchLog    the batch is finished

The rows of the clock are not used. Its query gives the stream the usual features of Spark: triggers, ``stop``,
``awaitTermination``, listeners. Batches and their numbers come from :class:`BatchLog`, not from the clock, so a batch
that is delivered again has the same number and the same commits, whatever happened to the clock.

A delivery holds path and options: Spark Connect pickles it and calls it in a process of the server.
"""

from __future__ import annotations

import json
import logging
import os
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hudi_fast.errors import ConfigError, CorruptTableError
from hudi_fast.events import note
from hudi_fast.reading.incremental.commit_range import BatchLimits, StreamOffset, StreamQuery
from hudi_fast.spark.reading.reader import read
from hudi_fast.spark.storage import spark_uri, storage_of
from hudi_fast.storage.base import Storage
from hudi_fast.storage.untrusted import stored_json
from hudi_fast.values import dataclass

__all__ = ["BatchLog", "Delivery", "stream_changes"]

_CLOCK = "clock"
_IDLE_SECONDS = 1.0
_TRIGGERS = ("availableNow", "once", "processingTime")
_TO_THE_END = ("availableNow", "once")


@dataclass(frozen=True, slots=True)
class _Batch:
    number: int
    begin: str
    end: str


class Delivery:
    """The function for ``foreachBatch`` of the clock: delivers the next batches of a stream.

    Args:
        query: of the stream.
        options: of the stream, for the reader.
        each_batch: function of a DataFrame and the number of its batch.
        checkpoint: of the stream.
        trigger: name of the trigger; None for none.
        columns: for the reader.
        filter: for the reader.
    """

    def __init__(
        self,
        query: StreamQuery,
        options: Mapping[str, Any],
        each_batch: Callable[[Any, int], object],
        checkpoint: Storage,
        trigger: str | None = None,
        columns: Sequence[str] | None = None,
        filter: Any = None,
    ) -> None:
        self._query = query
        self._options = options
        self._each_batch = each_batch
        self._checkpoint = checkpoint
        self._trigger = trigger
        self._columns = columns
        self._filter = filter
        self._log = BatchLog(checkpoint)
        self._done: tuple[int, str] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (
            self._query,
            self._options,
            self._each_batch,
            self._checkpoint,
            self._trigger,
            self._columns,
            self._filter,
        )

    def __call__(self, ticks: Any, tick: int) -> None:
        """Deliver a batch; with ``availableNow`` and ``once`` all commits that there are.

        Args:
            ticks: rows of the clock.
            tick: number of its batch.

        Raises:
            HudiError: the table or the checkpoint cannot be read; also any error of the caller's function.
        """
        spark = ticks.sparkSession
        if self._trigger in _TO_THE_END:
            until = self._query.newest()
            limits = self._query.limits if self._trigger == "availableNow" else BatchLimits()
            while self._deliver(spark, limits, until):
                pass
        elif not self._deliver(spark, self._query.limits) and self._trigger is None:
            time.sleep(_IDLE_SECONDS)

    def _deliver(self, spark: Any, limits: BatchLimits, until: str | None = None) -> bool:
        """Deliver a batch; False if there is nothing new."""
        batch = self._next(limits, until)
        if batch is None:
            return False
        table = self._query.storage
        note(
            "streaming",
            logging.INFO,
            "Batch %d of the stream out of %s: commits after %s up to %s",
            batch.number,
            table.uri,
            batch.begin,
            batch.end,
            table=table.uri,
        )
        options = StreamQuery.batch_options(self._options, batch.begin, batch.end)
        self._each_batch(read(table, spark, options, self._columns, self._filter), batch.number)
        self._log.finish(batch.number)
        self._done = batch.number, batch.end
        return True

    def _next(self, limits: BatchLimits, until: str | None) -> _Batch | None:
        """The batch to deliver, with its end stored; None if there is nothing new."""
        if self._done is None:
            newest = self._log.newest()
            if newest is not None and not newest.is_done:
                begin = newest.end.begin or (self._query.start() if newest.before is None else newest.before.time)
                return _Batch(newest.number, begin, newest.end.time)
            self._done = (-1, self._query.start()) if newest is None else (newest.number, newest.end.time)
        last, begin = self._done
        end = self._query.end_after(begin, limits, until)
        if end == begin:
            return None
        self._log.begin(last + 1, StreamOffset(end, begin if last < 0 else None))
        return _Batch(last + 1, begin, end)


def stream_changes(
    spark: Any,
    path: str | os.PathLike[str],
    each_batch: Callable[[Any, int], object],
    options: Mapping[str, Any] | None = None,
    *,
    checkpoint: str | os.PathLike[str],
    trigger: Mapping[str, Any] | None = None,
    query_name: str | None = None,
    columns: Sequence[str] | None = None,
    filter: Any = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Any:
    """Start a query that calls a function with the new rows of a table, batch by batch.

    A batch has the rows of a range of commits, as an incremental query returns them; with
    ``hoodie.datasource.query.incremental.format=cdc`` it has their changes. The end of a batch is stored in the
    checkpoint before the function is called, and its completion afterwards. A batch that fails, or whose driver fails,
    is therefore delivered again with the same number and the same commits. :func:`hudi_fast.sink` writes such a batch
    once.

    The checkpoint has the layout of Spark's own. ``spark.readStream.format("hudi_fast")`` of PySpark 4 continues the
    stream from the same location, and the other way round.

    Args:
        spark: the session, PySpark 3.5 or later; Spark Connect works, too.
        path: base path of the table.
        each_batch: a function of a DataFrame and the number of its batch, such as :func:`hudi_fast.sink` returns. It is
            not called while nothing is new.
        options: ``hoodie.datasource.streaming.startOffset``, ``hudi_fast.stream.max.commits``,
            ``hudi_fast.stream.max.bytes``, ``hoodie.datasource.query.type`` ...
        checkpoint: folder of the stream's progress; local, or in a store that the session reaches.
        trigger: arguments of ``DataStreamWriter.trigger``: ``availableNow`` delivers all current commits in batches as
            large as allowed, ``once`` in one batch, ``processingTime`` one batch in each interval. None: batches follow
            each other, and the table is checked every second while nothing is new.
        query_name: of the query.
        columns: columns of the rows, in this order; None for all.
        filter: which rows, as for :func:`hudi_fast.read`.
        storage_options: how to reach the table, see docs/object-stores.md; None uses the session's settings.

    Returns:
        The running ``StreamingQuery``. Its progress counts rows of a clock, not rows of the table.

    Raises:
        TableNotFoundError: no table at the path.
        ConfigError: an option, the trigger or the function is wrong; the checkpoint belongs to another kind of stream.
        UnsupportedFeatureError: an option is not supported, or the storage of the checkpoint cannot create files
            exclusively.
        HudiError: see :mod:`hudi_fast.errors`; later errors fail the query.
    """
    if not hasattr(spark, "readStream"):
        raise ConfigError(f"stream_changes needs a SparkSession, got {type(spark).__name__}.")
    if not callable(each_batch):
        raise ConfigError(f"each_batch is a function of a DataFrame and a number; got {each_batch!r}.")
    name = _name_of(trigger)
    given = dict(options or {})
    query = StreamQuery.from_options(storage_of(spark, path, storage_options), given)
    query.newest()  # fails without a table
    place = storage_of(spark, checkpoint)
    log = BatchLog(place)
    log.newest()
    log.open_query(_CLOCK)
    clock = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load().writeStream
    clock = clock.foreachBatch(Delivery(query, given, each_batch, place, name, columns, filter))
    clock = clock.option("checkpointLocation", spark_uri(place, _CLOCK))
    if trigger:
        clock = clock.trigger(**trigger)
    if query_name is not None:
        clock = clock.queryName(query_name)
    return clock.start()


def _name_of(trigger: Mapping[str, Any] | None) -> str | None:
    """The kind of a trigger; None without one."""
    if not trigger:
        return None
    (name, *more) = trigger
    if more or name not in _TRIGGERS:
        raise ConfigError(f"The trigger {dict(trigger)} is not supported; use one of {', '.join(_TRIGGERS)}.")
    return name


# ---- the batches of a stream in its checkpoint location, in the layout of Spark's own checkpoints
#
# ::
#
#     metadata       {"id": "<query>"}                                  created with the stream
#     offsets/<n>    v1, settings, end offset of batch n                created before the batch is delivered
#     commits/<n>    v1, settings                                       created after it
#
# The offset of a batch never changes: its file is created exclusively. A batch that has an offset and no commit is
# delivered again, with the same begin and end. With the layout of Spark, ``spark.readStream`` continues the stream from
# the same location, and the other way round.
#
# Sources: ``OffsetSeqLog``, ``CommitLog``, ``StreamMetadata`` (Spark 3.5, 4.1).

_METADATA = "metadata"
_OFFSETS = "offsets"
_COMMITS = "commits"
_VERSION = "v1"
_KEPT = 100
"""Batches that are kept, as many as Spark keeps (``spark.sql.streaming.minBatchesToRetain``)."""


@dataclass(frozen=True, slots=True)
class LoggedBatch:
    """The newest batch of a stream.

    Attributes:
        number: of the batch; the first is 0.
        end: of the batch.
        before: end of the batch before it; None for the first.
        is_done: whether the batch was delivered.
    """

    number: int
    end: StreamOffset
    before: StreamOffset | None
    is_done: bool


class BatchLog:
    """The batches of one stream.

    Args:
        storage: the checkpoint location.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def open_query(self, folder: str) -> str:
        """The id of the stream's query; a new stream gets one.

        Args:
            folder: in the location, for the checkpoint of a query of Spark that gets the same id.

        Raises:
            UnsupportedFeatureError: the storage cannot create files exclusively.
            CorruptTableError: the stored id cannot be read.
        """
        self._storage.check_writable()
        self._create(_METADATA, json.dumps({"id": str(uuid.uuid4())}))
        self._create(f"{folder}/{_METADATA}", json.dumps({"id": self._id()}))
        return self._id()

    def newest(self) -> LoggedBatch | None:
        """The newest batch that has an offset; None for a new stream.

        Raises:
            CorruptTableError: an offset cannot be read, or the one before it is missing.
            ConfigError: the location belongs to another kind of stream.
        """
        names = [entry.name for entry in self._storage.list_dir(_OFFSETS) if not entry.is_dir]
        numbers = [int(name) for name in names if name.isdecimal()]
        if not numbers:
            return None
        number = max(numbers)
        before = self._offset(number - 1) if number else None
        return LoggedBatch(number, self._offset(number), before, self._storage.has_file(f"{_COMMITS}/{number}"))

    def begin(self, number: int, end: StreamOffset) -> None:
        """Store the offset of a batch, before it is delivered.

        Raises:
            ConfigError: another driver has stored one.
        """
        head = {"batchWatermarkMs": 0, "batchTimestampMs": int(time.time() * 1000), "conf": {}}
        if not self._create(f"{_OFFSETS}/{number}", _lines(_VERSION, head, end.stored())):
            raise ConfigError(
                f"Another driver has begun batch {number} of the stream whose checkpoint is {self._storage.uri}. Stop "
                "one of the two; each stream needs a checkpoint location of its own."
            )

    def finish(self, number: int) -> None:
        """Store that a batch was delivered; forget old batches."""
        self._create(f"{_COMMITS}/{number}", _lines(_VERSION, {"nextBatchWatermarkMs": 0}))
        old = number - _KEPT
        if old >= 0:
            paths = [f"{folder}/{name}" for folder in (_OFFSETS, _COMMITS) for name in (f"{old}", f".{old}.crc")]
            self._storage.delete_files(paths)

    def _id(self) -> str:
        try:
            return str(stored_json(self._storage.read_bytes(_METADATA).decode())["id"])
        except (ValueError, KeyError, TypeError) as error:
            raise CorruptTableError(
                f"The metadata of the stream's checkpoint in {self._storage.uri} has no id.", _METADATA
            ) from error

    def _offset(self, number: int) -> StreamOffset:
        path = f"{_OFFSETS}/{number}"
        try:
            lines = self._storage.read_bytes(path).decode(errors="replace").splitlines()
        except FileNotFoundError:
            raise CorruptTableError(
                f"The checkpoint {self._storage.uri} has a later batch than {number}, and no offset of that one.", path
            ) from None
        if len(lines) != 3 or lines[0] != _VERSION:
            raise ConfigError(
                f"The checkpoint {self._storage.uri} is not that of a stream out of one Hudi table: {path} has "
                f"{max(0, len(lines) - 2)} offsets in the format {lines[0] if lines else ''!r}; expected 1 in "
                f"{_VERSION!r}. Give this stream a checkpoint location of its own."
            )
        try:
            stored = stored_json(lines[2])
        except ValueError as error:
            raise CorruptTableError(
                f"The checkpoint {self._storage.uri} has an offset that is no JSON.", path
            ) from error
        return StreamOffset.of(stored)

    def _create(self, path: str, text: str) -> bool:
        """Create a file; False if it exists."""
        try:
            self._storage.create_exclusive(path, text.encode())
        except FileExistsError:
            return False
        return True


def _lines(version: str, *parts: Mapping[str, object]) -> str:
    return "\n".join([version, *(json.dumps(part, separators=(",", ":")) for part in parts)])
