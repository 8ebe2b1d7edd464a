"""The options of streaming sinks and sources as frozen values.

Data flow: ``{"hoodie...": ...}`` -> :class:`SinkOptions` in addition to
:class:`~hudi_fast.config.write_options.WriteOptions`, and :class:`SourceOptions` in addition to
:class:`~hudi_fast.config.read_options.ReadOptions`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from hudi_fast.config.option_fields import (
    READ,
    Kind,
    OptionValues,
    differing_repr,
    given_fields,
    normalise_fields,
    option,
    options_of,
)
from hudi_fast.values import dataclass

__all__ = ["STREAM_OPTIONS", "SinkOptions", "SourceOptions"]


_SINK = "hoodie.datasource.write.streaming."


@dataclass(frozen=True, slots=True, repr=False)
class SinkOptions(OptionValues):
    """How a streaming sink identifies, retries and limits its batches."""

    identifier: str = option(
        f"{_SINK}checkpoint.identifier",
        Kind.TEXT,
        "default_single_writer",
        "Streams: name under which commits record the newest batch of the stream. Each stream that writes to a table "
        "needs its own name.",
    )
    max_attempts: int = option(
        f"{_SINK}retry.count",
        Kind.INT,
        3,
        "Streams: maximum number of attempts for a failing batch.",
        unit="attempts",
        minimum=1,
    )
    retry_interval_ms: int = option(
        f"{_SINK}retry.interval.ms",
        Kind.INT,
        2000,
        "Streams: wait before the second attempt of a batch; it doubles with each further attempt.",
        unit="ms",
        minimum=0,
    )
    ignores_failures: bool = option(
        f"{_SINK}ignore.failed.batch",
        Kind.BOOL,
        False,
        "Streams: skip a batch with a warning if all attempts fail, and continue the stream.",
    )
    disables_compaction: bool = option(
        f"{_SINK}disable.compaction",
        Kind.BOOL,
        False,
        "Streams: neither plan nor execute compactions in the background.",
    )
    spool_max_bytes: int = option(
        "hudi_fast.spool.max.bytes",
        Kind.INT,
        4 << 30,
        'Writes by `format("hudi_fast")`: maximum in-memory size of the rows of one write. The driver writes all rows.',
        unit="bytes",
        minimum=1,
    )

    def __post_init__(self) -> None:
        normalise_fields(self)


@dataclass(frozen=True, slots=True, repr=False)
class SourceOptions:
    """Where a stream starts, how large a batch may be, and whether Spark pushes filters down.

    Attributes:
        start: ``earliest``, ``latest``, or a time.
        pushdown: whether the data source accepts filters from Spark.
        max_commits: commits per batch; None = unlimited.
        max_bytes: bytes per batch; None = unlimited.
    """

    start: str = option(
        "hoodie.datasource.streaming.startOffset",
        Kind.TEXT,
        "earliest",
        "Streams: start of a new stream: `earliest`, `latest`, or a time; commits up to that time are skipped.",
        families=READ,
    )
    pushdown: bool = option(
        "hudi_fast.source.pushdown",
        Kind.BOOL,
        False,
        'Reads by `format("hudi_fast")`: let Spark push filters down to skip files and rows. Use such a DataFrame for '
        "one query only: PySpark 4.1 to 4.3 apply the filters of its first query to later ones.",
        families=READ,
    )
    max_commits: int | None = option(
        "hudi_fast.stream.max.commits",
        Kind.INT,
        None,
        "Streams: maximum commits per batch; unlimited by default.",
        unit="commits",
        minimum=1,
        families=READ,
    )
    max_bytes: int | None = option(
        "hudi_fast.stream.max.bytes",
        Kind.INT,
        None,
        "Streams: maximum bytes written by the commits of a batch; a batch has at least one commit.",
        unit="bytes",
        minimum=1,
        families=READ,
    )

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> Self:
        """Resolve a dictionary of read options; options of other dataclasses are ignored.

        Raises:
            ConfigError: a key or value is invalid.
            UnsupportedFeatureError: an option requests an unsupported feature.
        """
        from hudi_fast.config.options import resolve  # it imports all classes of options

        given: dict[str, Any] = given_fields(cls, resolve(options, READ[0]))
        return cls(**given)

    def __post_init__(self) -> None:
        normalise_fields(self)

    def __repr__(self) -> str:
        return differing_repr(self)


STREAM_OPTIONS = options_of(SinkOptions) + options_of(SourceOptions)
"""Options of streaming writes and reads."""
