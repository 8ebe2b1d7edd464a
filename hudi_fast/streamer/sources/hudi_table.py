"""The commits of another Hudi table: the newest row of each key that they wrote. Deletes are not passed on.

The position is the time of the newest commit that was read: its completion time if the fed table has version 8 or
later, else its requested time.

Source: ``HoodieIncrSource`` (1.2.0).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from hudi_fast.errors import ConfigError
from hudi_fast.formats.avro.schema import is_meta_field
from hudi_fast.reading.incremental.commit_range import FIRST, BatchLimits, StreamQuery
from hudi_fast.reading.incremental.query import plan_query
from hudi_fast.reading.scan import scan_batches
from hudi_fast.storage.base import Storage
from hudi_fast.streamer.settings import StreamSettings, open_place
from hudi_fast.streamer.sources.source import Fetched

__all__ = ["HudiTableSource"]

_PREFIX = "source.hoodieincr."
_STRATEGY_KEY = f"{_PREFIX}missing.checkpoint.strategy"
_STRATEGIES = ("READ_LATEST", "READ_UPTO_LATEST_COMMIT")
_FALLBACK_KEY = "hoodie.datasource.read.incr.fallback.fulltablescan.enable"
_COMMITS = 5
_BOOTSTRAPPED = "0000"
"""Begin of the instants of a bootstrap, which are no times."""
_SECONDS = 14
"""Digits of an instant without milliseconds."""


class HudiTableSource:
    """A source of commits.

    Args:
        settings: of the streamer.
        version: of the fed table; it decides what positions are.
        storage_options: how to reach the other table.

    Raises:
        ConfigError: a property is missing or wrong.
    """

    def __init__(self, settings: StreamSettings, version: int, storage_options: Mapping[str, Any] | None) -> None:
        self._storage = self._opened(settings.required(f"{_PREFIX}path"), storage_options)
        self._strategy = settings.stream.get(_STRATEGY_KEY, "").upper()
        if settings.flag(f"{_PREFIX}read_latest_on_missing_ckpt"):
            self._strategy = "READ_LATEST"
        if self._strategy and self._strategy not in _STRATEGIES:
            raise ConfigError(
                f"hoodie.streamer.{_STRATEGY_KEY} is one of {', '.join(_STRATEGIES)}; got {self._strategy}."
            )
        self._commits = settings.count(f"{_PREFIX}num_instants", _COMMITS)
        self._options = {"hoodie.datasource.read.incr.table.version": str(version)}
        if _FALLBACK_KEY in settings.options:  # the error about cleaned commits names it
            self._options[_FALLBACK_KEY] = settings.options[_FALLBACK_KEY]
        self._query = StreamQuery.from_options(self._storage, self._options)

    def fetch(self, position: str | None, limit: int | None) -> Fetched:
        """See :class:`~hudi_fast.streamer.sources.source.Source`; the limit is a number of commits.

        Raises:
            ConfigError: there is no position, and no strategy for that; or it is no time; or its commits were cleaned.
        """
        query, limit = self._query, self._commits if limit is None else limit
        if position is not None and not position.isdecimal():
            raise ConfigError(
                f"The position {position!r} is not the time of a commit of {self._storage.uri}, such as "
                "20240131093000000. Give --checkpoint the time alone, or --ignore-checkpoint if the source changed."
            )
        begin = self._start(query) if position is None else position
        end = query.end_after(begin, BatchLimits(limit, None))
        if end == begin:
            return Fetched(None, position)
        return Fetched(self._rows(begin, end), end)

    def committed(self, position: str | None) -> None:
        """Nothing to do: the commits stay until they are cleaned."""

    def close(self) -> None:
        """Nothing to do."""

    def _start(self, query: StreamQuery) -> str:
        if not self._strategy:
            raise ConfigError(
                f"The stream from {self._storage.uri} has no position yet. Set hoodie.streamer.{_STRATEGY_KEY} to "
                "READ_UPTO_LATEST_COMMIT to begin with its first commit, or to READ_LATEST to begin with its newest."
            )
        if self._strategy == "READ_UPTO_LATEST_COMMIT":
            return FIRST
        newest = query.newest()
        return FIRST if newest is None or newest.startswith(_BOOTSTRAPPED) else _before(newest)

    def _opened(self, path: str, storage_options: Mapping[str, Any] | None) -> Storage:
        return open_place(None, path, storage_options)

    def _rows(self, begin: str, end: str) -> Any:
        plan = plan_query(self._storage, StreamQuery.batch_options(self._options, begin, end))
        rows = scan_batches(plan)
        names = [name for name in rows.schema.names if not is_meta_field(name)]
        schema = pa.schema([rows.schema.field(name) for name in names])
        return pa.RecordBatchReader.from_batches(schema, (batch.select(names) for batch in rows))


def _before(instant: str) -> str:
    """The time just before an instant of 17 or 14 digits."""
    has_millis = len(instant) > _SECONDS
    found = datetime.strptime(instant, "%Y%m%d%H%M%S%f" if has_millis else "%Y%m%d%H%M%S")
    before = found - (timedelta(milliseconds=1) if has_millis else timedelta(seconds=1))
    return before.strftime("%Y%m%d%H%M%S%f")[: len(instant)]
