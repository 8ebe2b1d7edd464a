"""A streamer: turn after turn, the new rows of a source become a commit of the table.

::

    position in the table ─► source: rows after it ─► transforms ─► one write, whose commit stores the new position
                                                                 └► guard: the table is still at the old position

A turn is one commit. A process that fails in the middle of a turn leaves the old rows and the old position, and the
next process repeats the turn. Of two streamers at the same position one writes; the other finds the new position under
the lock and gives its turn up. So each row of the source is written once, as long as the source gives the same rows
for the same position.

Source: ``HoodieStreamer`` and ``StreamSync`` (1.2.0), whose property files, arguments and positions are used.
"""

from __future__ import annotations

import logging
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from hudi_fast.config.defaults_file import read_settings
from hudi_fast.config.properties_file import load_properties
from hudi_fast.config.table_config import TableConfig
from hudi_fast.config.words import checked_options
from hudi_fast.errors import CommitConflictError, ConfigError, PostCommitError, SourceError, TableNotFoundError
from hudi_fast.events import note, warn
from hudi_fast.reading.inspecting.results import ShownResult
from hudi_fast.services.inline import write_with_services
from hudi_fast.sessions import check_spark, open_session
from hudi_fast.streamer.messages import open_error_table
from hudi_fast.streamer.on_spark.engine import no_rows, require_engine, task_errors
from hudi_fast.streamer.on_spark.sources import by_function, frame_of
from hudi_fast.streamer.position import Position, find_position, position_metadata, start_of
from hudi_fast.streamer.settings import StreamSettings, open_place, require_store
from hudi_fast.streamer.sources.open_source import open_source, open_transforms, options_for
from hudi_fast.streamer.sources.s3_events import shown_position
from hudi_fast.streamer.sources.source import Fetched, Source
from hudi_fast.streamer.transform import of_function, transformed
from hudi_fast.timeline.instants import load_timeline
from hudi_fast.values import dataclass
from hudi_fast.view.table_state import TableState, load_state, table_schema
from hudi_fast.writing.flow import WriteResult, run_write
from hudi_fast.writing.settings import Settings

__all__ = ["Streamer", "Turn", "properties_of"]

Result = TypeVar("Result")

_IDLE_SECONDS = 0.2
_TRIES = 3
_ROUNDS_KEY, _QUIET_ROUNDS = "max.rounds.without.new.data.to.shutdown", "3"


@dataclass(frozen=True, slots=True)
class Turn(ShownResult):
    """What a turn did.

    Attributes:
        instant: requested time of its commit; empty when there was nothing to commit.
        inserts: number of added rows.
        updates: number of changed rows.
        deletes: number of removed rows.
        position: of the stream after it; None if the source has none. For a queue of S3's events, how many it knows.
        seconds: how long it took.
        lag: what was left in the source when it was planned, by part of the source.
    """

    instant: str
    inserts: int
    updates: int
    deletes: int
    position: str | None
    seconds: float
    lag: Mapping[str, int] = field(default_factory=dict)


class Streamer:
    """Feeds a table from a source: once, or until it is stopped.

    Properties and arguments are those of Apache Hudi's HoodieStreamer, and so is the position that each commit stores:
    a job moves here by changing its command, and can move back.

    Args:
        properties: HoodieStreamer's properties, or the path of a property file.
        source: an object with the methods of :class:`~hudi_fast.streamer.sources.source.Source`; by default the one
            that ``source_class`` names.
        transforms: functions of a ``pyarrow.RecordBatch``, after the transformers of the properties; each returns a
            batch, a table, or None to drop it.
        storage_options: how to reach the table and folders of the source, see docs/object-stores.md; on Spark None uses
            the session's settings.
        spark: a Spark session whose tasks read, transform and write the rows of each turn; None for this process.
        arguments: HoodieStreamer's arguments with underscores: ``target_base_path``, ``source_class``,
            ``source_limit``, ``op``, ``continuous`` ...

    Raises:
        ConfigError: a property or an argument is wrong, or one is missing.
        UnsupportedFeatureError: a source, transformer or argument is not supported.

    Example:
        >>> import hudi_fast as hf, pathlib, tempfile
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> (folder / "in").mkdir()
        >>> _ = (folder / "in" / "1.json").write_text('{"id": 1, "fare": 9.5}')
        >>> keys = {"hoodie.datasource.write.recordkey.field": "id", "hoodie.streamer.source.dfs.root": folder / "in"}
        >>> streamer = hf.Streamer(keys, source_class="JsonDFSSource", target_base_path=folder / "trips")
        >>> streamer.turn().inserts
        1
        >>> streamer.turn().inserts  # nothing is new
        0
    """

    def __init__(
        self,
        properties: Mapping[str, Any] | str | os.PathLike[str] | None = None,
        *,
        source: Source | None = None,
        transforms: Sequence[Callable[[pa.RecordBatch], Any]] = (),
        storage_options: Mapping[str, Any] | None = None,
        spark: Any = None,
        **arguments: Any,
    ) -> None:
        check_spark(spark)
        given = properties_of(properties) if isinstance(properties, str | os.PathLike) else properties
        if source is not None:
            missing = [name for name in ("fetch", "committed", "close") if not callable(getattr(source, name, None))]
            if missing:
                raise ConfigError(
                    f"A source has the methods fetch, committed and close; {source!r} lacks {missing[0]}."
                )
            arguments.setdefault("source_class", type(source).__name__)
        self._settings = StreamSettings.of(checked_options(given) or {}, arguments)
        require_engine(self._settings, spark)
        require_store(self._settings, storage_options)
        self._spark, self._storage = spark, open_place(spark, self._settings.path, storage_options)
        config = self._config()
        version = Settings.for_write(self._settings.options).write.table.version if config is None else config.version
        self._write = Settings.for_write(options_for(self._settings, version))
        self._transforms = (
            *open_transforms(self._settings, storage_options, spark),
            *(of_function(one) if spark is None else by_function(spark, one) for one in transforms),
        )
        self._errors = open_error_table(self._settings, storage_options, spark)
        takes = None if self._errors is None else self._errors.add
        self._source = source or open_source(self._settings, version, storage_options, takes, spark)
        self._stopped = threading.Event()
        self._is_fetching = spark is None
        """Whether any error of files and connections is one of the source."""
        self._begun: str | None = None
        """Position as long as no table stores it: a stream that begins with the newest rows stays where it began."""

    def run(self) -> Iterator[Turn]:
        """The turns, as they are done.

        With ``continuous`` they follow each other until :meth:`stop`. Without, it is one with ``source_limit``, and
        otherwise as many as bring in what the source has.

        Raises:
            PostCommitError: a turn is committed, and a service after it failed. A continuous stream warns instead.
            HudiError: a turn failed. The table is at the position before it.
        """
        settings = self._settings
        interval, quiet = settings.number("min-sync-interval-seconds") or 0.0, 0
        while not self._stopped.is_set():
            started = time.monotonic()
            turn = self.turn()
            yield turn
            if not self.is_continuous:
                if "source-limit" in settings.arguments or not (turn.instant and any(turn.lag.values())):
                    return
                continue
            quiet = 0 if turn.instant else quiet + 1
            if quiet and quiet >= self._quiet_rounds():
                return
            pause = interval - (time.monotonic() - started)
            self._stopped.wait(max(pause, 0.0 if turn.instant else _IDLE_SECONDS))

    @property
    def path(self) -> str:
        """Path of the table."""
        return self._settings.path

    def check(self) -> dict[str, Any]:
        """What the settings do, and where the next turn begins. Nothing is fetched or written.

        Returns:
            ``table``, ``exists``, ``source``, ``operation``, ``position`` (None: where the source begins),
            ``transformers``, ``engine`` if it is ``spark``, and the arguments that were given ``without_effect``.

        Raises:
            HudiError: the table cannot be read.
        """
        settings, (found, config) = self._settings, self._position()
        return {
            "table": self._storage.uri,
            "exists": config is not None,
            "source": settings.source_class,
            "operation": self._write.write.operation,
            "position": shown_position(start_of(found, settings.checkpoint, settings.ignored, self._storage.uri)),
            "transformers": len(self._transforms),
            **({} if self._spark is None else {"engine": "spark"}),
            "without_effect": list(settings.without_effect),
        }

    @property
    def is_continuous(self) -> bool:
        """Whether :meth:`run` goes on until it is stopped."""
        return self._settings.is_set("continuous")

    def stop(self) -> None:
        """End after the turn that is under way. Any thread or signal handler may call it."""
        self._stopped.set()

    def close(self) -> None:
        """Give the connections of the source back."""
        self._source.close()

    def turn(self) -> Turn:
        """One turn: fetch what is new, and commit it.

        Raises:
            CommitConflictError: another streamer moved the position each time that this one had fetched rows.
            HudiError: as :meth:`run`.
        """
        for _ in range(_TRIES):
            try:
                return self._turn() if self._spark is None else self._retried(self._turn)
            except _MovedError as error:
                note("streaming", logging.INFO, "%s", error, table=self._storage.uri)
        raise CommitConflictError(
            f"Another streamer feeds {self._storage.uri}: it moved the position {_TRIES} times while this one fetched "
            "rows. No row is written twice. Stop one of the two; or, if their sources differ, give each a name: "
            "hudi_fast.streamer.name."
        )

    def _turn(self) -> Turn:
        started, settings, uri = time.monotonic(), self._settings, self._storage.uri
        found, config = self._position()
        version = self._write.write.table.version if config is None else config.version
        start = start_of(found, settings.checkpoint, settings.ignored, uri)
        if self._errors is not None:
            self._errors.begin()
        fetched = self._fetch(self._begun if found is None and start is None else start)
        known = None if found is None else found.text
        is_due = fetched.position != known or settings.is_set("allow-commit-on-no-checkpoint-change")
        result = self._commit(fetched, found, version) if fetched.rows is not None or is_due else None
        if result is None:
            self._begun = fetched.position
            return Turn("", 0, 0, 0, shown_position(known), time.monotonic() - started, fetched.lag)
        counts = result.inserts, result.updates, result.deletes
        if result.instant:
            self._source.committed(fetched.position)
        text = "Turn of %s: %d inserts, %d updates, %d deletes; position %s"
        position = shown_position(fetched.position)
        values = settings.source_class, *counts, position
        note("streaming", logging.INFO, text, *values, table=uri, instant=result.instant)
        return Turn(result.instant, *counts, position, time.monotonic() - started, fetched.lag)

    def _position(self) -> tuple[Position | None, TableConfig | None]:
        """The position in the table, and the configuration of the table; None for each if there is no table."""
        config = self._config()
        if config is None:
            return None, None
        timeline = load_timeline(self._storage, config)
        return find_position(self._storage, config, timeline, self._settings.name), config

    def _config(self) -> TableConfig | None:
        """The configuration of the table; None as long as there is no table."""
        try:
            return TableConfig.from_properties(load_properties(self._storage), self._storage.uri)
        except TableNotFoundError:
            return None

    def _fetch(self, start: str | None) -> Fetched:
        """What is new in the source."""
        limit = self._settings.number("source-limit")
        count = None if limit is None else int(limit)
        if self._spark is None:
            return self._retried(lambda: self._source.fetch(start, count))
        self._is_fetching = True  # tasks read the rows while they are written: the whole turn is tried again
        fetched = self._source.fetch(start, count)
        self._is_fetching = False
        return fetched

    def _retried(self, call: Callable[[], Result]) -> Result:
        """The result of a call that reads the source, after as many tries as the settings allow."""
        settings, wanted = self._settings, self._settings.is_set("retry-on-source-failures")
        retries = int(settings.number("max-retry-count") or 0) if wanted else 0
        for left in reversed(range(retries + 1)):
            try:
                return call()
            except OSError as error:
                is_source = self._is_fetching or isinstance(error, SourceError)
                if not left or not is_source or self._stopped.wait(settings.number("retry-interval-seconds")):
                    raise
                warn(f"The source {settings.source_class} failed, tries left: {left}. {error}")
        raise AssertionError("there is one try at least")

    def _commit(self, fetched: Fetched, found: Position | None, version: int) -> WriteResult | None:
        """Write the rows of a turn and the position after it in one commit; None: no rows, and no table yet."""
        settings, metadata = self._settings, dict[str, str]()
        if not settings.flag("checkpoint.force.skip"):
            metadata = position_metadata(
                fetched.position, settings.checkpoint, settings.ignored, version, settings.name
            )
        write = self._write.write
        noted = replace(write, extra_metadata={**write.extra_metadata, **metadata})
        guard = partial(_require_position, found, settings.name)
        session = open_session(self._storage, replace(self._write, write=noted), self._spark, guard=guard)
        left_out = 0 if self._errors is None else self._errors.write()
        if left_out:
            note("streaming", logging.INFO, "%d messages are in the error table", left_out, table=self._storage.uri)
        rows = self._no_rows() if fetched.rows is None else transformed(fetched.rows, self._transforms)
        if rows is None:
            return None
        try:
            with task_errors(self._spark), closing(session.backend.engine(self._readable(rows), noted)) as engine:
                return write_with_services(session, lambda: run_write(session, engine, "append"))
        except PostCommitError as error:
            if not self.is_continuous or error.result is None:
                raise
            warn(f"{error} The stream continues.")
            result: WriteResult = error.result
            return result

    def _readable(self, rows: Any) -> Any:
        """The rows as the engine of the write takes them."""
        return rows if self._spark is None else frame_of(self._spark, rows)

    def _no_rows(self) -> Any:
        """No rows, with the columns of the table; None without a table or columns."""
        try:
            schema = table_schema(load_state(self._storage))
        except TableNotFoundError:
            return None
        if schema is None:
            return None
        return pa.RecordBatchReader.from_batches(schema, []) if self._spark is None else no_rows(self._spark, schema)

    def _quiet_rounds(self) -> float:
        """Turns without rows after which a continuous stream ends."""
        if self._settings.arguments.get("post-write-termination-strategy-class", "") == "":
            return float("inf")
        return float(self._settings.client.get(_ROUNDS_KEY, _QUIET_ROUNDS))


class _MovedError(Exception):
    """Raised when the table is at another position than the rows of a turn begin at."""


def _require_position(expected: Position | None, name: str | None, state: TableState) -> None:
    found = find_position(state.storage, state.config, state.timeline, name)
    if found != expected:
        texts = ["no position" if one is None else repr(shown_position(one.text)) for one in (expected, found)]
        raise _MovedError(
            f"The table {state.storage.uri} moved from {texts[0]} to {texts[1]} while a turn fetched rows; another "
            "streamer is at work. The turn is given up, and the next one begins there."
        )


def properties_of(file: str | os.PathLike[str]) -> dict[str, str]:
    """The properties of a file, and of the files that it includes.

    Args:
        file: its path, or its ``file:`` address.

    Raises:
        ConfigError: a file cannot be read, or is not on this machine.
    """
    text = os.fspath(file)
    path = re.sub(r"^file:/+", "/", text)
    if "://" in path:
        raise ConfigError(f"The property file {text} is not on this machine. Copy it here first, and give its path.")
    return read_settings(Path(path), "The properties of the streamer", "it was given as the file of its properties")
