"""Stream the commits of a table: where the stream begins, where each batch ends, and the query of a batch.

::

    options ─► StreamQuery ─► start ─► end_after(start) ─► end_after(that) ...     times, stored as StreamOffset
                         └──► batch_options(begin, end) ─► an incremental query, or a query for changes

Both streaming sources use this module: ``format("hudi_fast")`` of PySpark 4 and :func:`hudi_fast.stream_changes`. An
offset has Apache Hudi's format, ``{"offsetCommitTime": "<time>"}``: the completion time of a commit; before table
version 8, and for changes, its requested time. A stream that Apache Hudi began therefore continues from its checkpoint.

Sources: ``HoodieSourceOffset``, ``HoodieStreamSourceV2`` (1.2.0).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from hudi_fast.config.moments import normalise_instant, timeline_zone
from hudi_fast.config.options import find_option
from hudi_fast.config.read_options import EARLIEST, ReadOptions
from hudi_fast.config.stream_options import SourceOptions
from hudi_fast.errors import ConfigError, CorruptTableError
from hudi_fast.reading.incremental.offsets import BatchLimits, newest_readable, next_offset, waiting
from hudi_fast.storage.base import Storage
from hudi_fast.view.table_state import load_state

__all__ = ["FIRST", "StreamOffset", "StreamQuery", "check_stream_options"]

FIRST = "00000000000000"
"""Apache Hudi's offset before all commits."""

_TIME = "offsetCommitTime"
_BEGIN = "begin"
_TYPE_KEY = "hoodie.datasource.query.type"
_BEGIN_KEY = "hoodie.datasource.read.begin.instanttime"
_END_KEY = "hoodie.datasource.read.end.instanttime"
_START_KEY = "hoodie.datasource.streaming.startOffset"
_HOLES_KEY = "hoodie.read.timeline.holes.resolution.policy"
_OF_ONE_QUERY = (_BEGIN_KEY, _END_KEY, "as.of.instant")
_FROM_THE_LATEST = "latest"


@dataclass(frozen=True, slots=True)
class StreamOffset:
    """The end of a batch, as a checkpoint stores it.

    Attributes:
        time: time of the newest commit of the batch.
        begin: where the batch begins, exclusive; None = at the end of the batch before it.
    """

    time: str
    begin: str | None = None

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Self:
        """The offset of a checkpoint.

        Raises:
            CorruptTableError: the checkpoint holds no offset of a Hudi table.
        """
        if not isinstance(stored, Mapping) or not isinstance(stored.get(_TIME), str):
            raise CorruptTableError(f"The offset {stored!r} of the stream's checkpoint has no {_TIME}.")
        return cls(stored[_TIME], stored.get(_BEGIN))

    def stored(self) -> dict[str, str]:
        """The offset as a checkpoint stores it."""
        return {_TIME: self.time} if self.begin is None else {_TIME: self.time, _BEGIN: self.begin}


@dataclass(frozen=True)
class StreamQuery:
    """The query of a stream. Picklable.

    Attributes:
        storage: the table's storage.
        settings: options of every batch.
        source: start offset and batch limits.
    """

    storage: Storage
    settings: ReadOptions
    source: SourceOptions

    @classmethod
    def from_options(cls, storage: Storage, options: Mapping[str, Any]) -> Self:
        """The stream that the options describe.

        Raises:
            ConfigError: an option is wrong, or applies only to a query of one range or one time.
            UnsupportedFeatureError: an option is not supported.
        """
        check_stream_options(options)
        incremental = str(options.get(_TYPE_KEY, "")).lower() == "incremental"
        given = {**options, _BEGIN_KEY: "earliest"} if incremental else options
        settings = ReadOptions.from_options(given, timeline_zone(storage))
        return cls(storage, settings, SourceOptions.from_options(options))

    @property
    def is_cdc(self) -> bool:
        """Whether the stream returns changes instead of rows."""
        return self.settings.query_type == "incremental" and self.settings.incremental_format == "cdc"

    @property
    def limits(self) -> BatchLimits:
        """The largest batch that the options allow."""
        return BatchLimits(self.source.max_commits, self.source.max_bytes)

    @property
    def starts_at_latest(self) -> bool:
        """Whether a new stream begins after the current commits, so that a restart could begin at another commit."""
        return self.source.start.lower() == _FROM_THE_LATEST

    def start(self) -> str:
        """The time after which a new stream begins."""
        start = self.source.start
        if start.lower() == "earliest":
            return FIRST
        if self.starts_at_latest:
            return self.newest() or FIRST
        return normalise_instant(start, _START_KEY, timeline_zone(self.storage))

    def newest(self) -> str | None:
        """The newest time that a batch can end at; None without completed writes."""
        return newest_readable(load_state(self.storage), self._of_offsets())

    def end_after(self, begin: str, limits: BatchLimits, until: str | None = None) -> str:
        """The end of the batch that begins after ``begin``; ``begin`` itself if there is nothing new.

        Args:
            begin: end of the batch before it, or the start of the stream.
            limits: limits of the batch.
            until: the latest end; None for the newest commit.

        Raises:
            CorruptTableError: a new commit cannot be read.
        """
        bound = _bound(begin)
        end = next_offset(load_state(self.storage), bound, limits, self._of_offsets(), until)
        return begin if end == bound else end

    def batch_settings(self, begin: str, end: str) -> ReadOptions:
        """The settings of the query for the commits after ``begin`` up to ``end``."""
        settings = waiting(self.settings)
        return replace(settings, query_type="incremental", begin=_bound(begin), end=end)

    def _of_offsets(self) -> ReadOptions:
        """Changes are ordered by requested times in every table version."""
        return replace(self.settings, incremental_table_version=6) if self.is_cdc else self.settings

    @staticmethod
    def batch_options(options: Mapping[str, Any], begin: str, end: str) -> dict[str, Any]:
        """The stream's options, changed to query the commits after ``begin`` up to ``end``."""
        return {
            _HOLES_KEY: "BLOCK",
            **{key: value for key, value in options.items() if not _is_default_policy(key, value)},
            _TYPE_KEY: "incremental",
            _BEGIN_KEY: _bound(begin),
            _END_KEY: end,
        }


def check_stream_options(options: Mapping[str, Any]) -> None:
    """Refuse options that do not apply to a stream, which has a start and no other bounds.

    Raises:
        ConfigError: such an option is given.
    """
    for key in options:
        option = find_option(key)
        if option is not None and option.key in _OF_ONE_QUERY and options[key] is not None:
            raise ConfigError(
                f"{key} belongs to a query of one range or one time; a stream begins at {_START_KEY} and has no end."
            )
    if str(options.get(_TYPE_KEY, "")).lower() == "read_optimized":
        raise ConfigError(
            f"{_TYPE_KEY}=read_optimized does not apply to a stream, which reads the rows of commits, those in log "
            "files among them."
        )


def _is_default_policy(key: str, value: Any) -> bool:
    """Whether the option is the policy that fails at a hollow commit; a stream waits for that commit instead."""
    option = find_option(key)
    return option is not None and option.key == _HOLES_KEY and str(value).upper() == "FAIL"


def _bound(time: str) -> str:
    """An offset as the begin of a range."""
    return time if time.strip("0") else EARLIEST
