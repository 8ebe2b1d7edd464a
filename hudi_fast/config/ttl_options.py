"""The options of partition TTL as one frozen value."""

from __future__ import annotations

from dataclasses import dataclass

from hudi_fast.config.option_descriptor import Kind
from hudi_fast.config.option_fields import (
    OptionValues,
    normalise_fields,
    option,
    options_of,
)

__all__ = ["TTL_OPTIONS", "TtlOptions"]

_STRATEGIES = "org.apache.hudi.table.action.ttl.strategy."

_TTL = "hoodie.partition.ttl."
_DAY_MS = 24 * 3600 * 1000


@dataclass(frozen=True, slots=True, repr=False)
class TtlOptions(OptionValues):
    """Which partitions expire, and whether they are deleted after a write."""

    inline: bool = option(f"{_TTL}inline", Kind.BOOL, False, "Delete expired partitions after a write.")
    days: int = option(
        f"{_TTL}strategy.days.retain",
        Kind.INT,
        -1,
        "A partition expires when its time is more than this many days ago; 0 or less = never.",
        unit="days",
    )
    strategy: str = option(
        f"{_TTL}management.strategy.type",
        Kind.ENUM,
        "KEEP_BY_TIME",
        "Time of a partition: the start of its newest file slice (KEEP_BY_TIME), or its creation.",
        choices=("KEEP_BY_TIME", "KEEP_BY_CREATION_TIME"),
    )
    strategy_class: str | None = option(
        f"{_TTL}strategy.class",
        Kind.TEXT,
        None,
        "Strategy class, instead of the type; user-defined classes are not supported.",
        supported=(f"{_STRATEGIES}KeepByTimeStrategy", f"{_STRATEGIES}KeepByCreationTimeStrategy"),
    )
    selected: tuple[str, ...] = option(
        f"{_TTL}strategy.partition.selected",
        Kind.LIST,
        (),
        "Partition paths that may expire; empty = all.",
    )
    max_partitions: int = option(
        f"{_TTL}strategy.max.delete.partitions",
        Kind.INT,
        1000,
        "Maximum number of partitions to delete at a time, the oldest first.",
        unit="partitions",
        minimum=0,
    )

    def __post_init__(self) -> None:
        normalise_fields(self)

    @property
    def by_creation(self) -> bool:
        """Whether the creation of a partition counts; otherwise its newest file slice."""
        if self.strategy_class is not None:
            return self.strategy_class.endswith("KeepByCreationTimeStrategy")
        return self.strategy == "KEEP_BY_CREATION_TIME"

    @property
    def milliseconds(self) -> int:
        """Time that a partition is kept; 0 or less for ever."""
        return self.days * _DAY_MS


TTL_OPTIONS = options_of(TtlOptions)
"""Options of partition TTL."""
