"""The options of streams as frozen values, one for each end.

Data flow: ``{"hoodie...": ...}`` -> :class:`SinkOptions` beside the
:class:`~hudi_fast.config.write_options.WriteOptions` of its writes, and :class:`SourceOptions` beside the
:class:`~hudi_fast.config.read_options.ReadOptions` of its reads.
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
    """What becomes of the batches of a stream."""

    identifier: str = option_field(f"{_SINK}checkpoint.identifier")
    tries: int = option_field(f"{_SINK}retry.count")
    retry_interval_ms: int = option_field(f"{_SINK}retry.interval.ms")
    ignores_failures: bool = option_field(f"{_SINK}ignore.failed.batch")
    without_compaction: bool = option_field(f"{_SINK}disable.compaction")
    spool_max_bytes: int = option_field("hudi_fast.spool.max.bytes")

    def __post_init__(self) -> None:
        normalise_fields(self)


@dataclass(frozen=True, slots=True, repr=False)
class SourceOptions:
    """Where a stream begins, and how much a batch brings; what reads of the data source let Spark hand down.

    Attributes:
        start: ``earliest``, ``latest``, or a time.
        pushdown: whether filters are taken from Spark.
        max_commits: None for all.
        max_bytes: None for all.
    """

    start: str = option_field("hoodie.datasource.streaming.startOffset")
    pushdown: bool = option_field("hudi_fast.source.pushdown")
    max_commits: int | None = option_field("hudi_fast.stream.max.commits")
    max_bytes: int | None = option_field("hudi_fast.stream.max.bytes")

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> Self:
        """Resolve a dictionary of options; all that a read takes are fine.

        Raises:
            ConfigError: a key or value is wrong.
            UnsupportedFeatureError: an option asks for something that hudi_fast does not do.
        """
        given: dict[str, Any] = given_fields(cls, resolve(options, READ[0]))
        return cls(**given)

    def __post_init__(self) -> None:
        normalise_fields(self)

    def __repr__(self) -> str:
        return differing_repr(self)
