"""The options of partition TTL as one frozen value."""

from __future__ import annotations

from dataclasses import dataclass

from hudi_fast.config.option_fields import normalise_fields, option_field
from hudi_fast.config.option_values import OptionValues

__all__ = ["TtlOptions"]

_TTL = "hoodie.partition.ttl."
_DAY_MS = 24 * 3600 * 1000


@dataclass(frozen=True, slots=True, repr=False)
class TtlOptions(OptionValues):
    """Which partitions expire, and whether they are deleted after a write."""

    inline: bool = option_field(f"{_TTL}inline")
    days: int = option_field(f"{_TTL}strategy.days.retain")
    strategy: str = option_field(f"{_TTL}management.strategy.type")
    strategy_class: str | None = option_field(f"{_TTL}strategy.class")
    selected: tuple[str, ...] = option_field(f"{_TTL}strategy.partition.selected")
    most_partitions: int = option_field(f"{_TTL}strategy.max.delete.partitions")

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
