"""The options of streaming sinks and sources as frozen values.

Data flow: ``{"hoodie...": ...}`` -> :class:`SinkOptions` in addition to
:class:`~hudi_fast.config.write_options.WriteOptions`, and :class:`SourceOptions` in addition to
:class:`~hudi_fast.config.read_options.ReadOptions`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from hudi_fast.config.option_fields import differing_repr, given_fields, normalise_fields, option_field
from hudi_fast.config.option_values import OptionValues
from hudi_fast.config.options import READ, resolve

__all__ = ["SinkOptions", "SourceOptions"]

_SINK = "hoodie.datasource.write.streaming."


@dataclass(frozen=True, slots=True, repr=False)
class SinkOptions(OptionValues):
    """How a streaming sink identifies, retries and limits its batches."""

    identifier: str = option_field(f"{_SINK}checkpoint.identifier")
    max_attempts: int = option_field(f"{_SINK}retry.count")
    retry_interval_ms: int = option_field(f"{_SINK}retry.interval.ms")
    ignores_failures: bool = option_field(f"{_SINK}ignore.failed.batch")
    disables_compaction: bool = option_field(f"{_SINK}disable.compaction")
    spool_max_bytes: int = option_field("hudi_fast.spool.max.bytes")

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

    start: str = option_field("hoodie.datasource.streaming.startOffset")
    pushdown: bool = option_field("hudi_fast.source.pushdown")
    max_commits: int | None = option_field("hudi_fast.stream.max.commits")
    max_bytes: int | None = option_field("hudi_fast.stream.max.bytes")

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> Self:
        """Resolve a dictionary of read options; options of other dataclasses are ignored.

        Raises:
            ConfigError: a key or value is invalid.
            UnsupportedFeatureError: an option requests an unsupported feature.
        """
        given: dict[str, Any] = given_fields(cls, resolve(options, READ[0]))
        return cls(**given)

    def __post_init__(self) -> None:
        normalise_fields(self)

    def __repr__(self) -> str:
        return differing_repr(self)
