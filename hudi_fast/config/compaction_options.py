"""The options of compaction and log compaction as one frozen value.

Data flow: ``{"hoodie...": ...}`` -> :meth:`CompactionOptions.from_options` -> the services. The
:class:`~hudi_fast.config.write_options.WriteOptions` from the same dictionary control how files are written.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hudi_fast.config.option_fields import normalise_fields, option_field
from hudi_fast.config.option_values import OptionValues
from hudi_fast.errors import ConfigError

__all__ = ["CompactionOptions"]

_TRIGGER_KEYS = frozenset(
    {
        "hoodie.compact.inline.trigger.strategy",
        "hoodie.compact.inline.max.delta.commits",
        "hoodie.compact.inline.max.delta.seconds",
    }
)


@dataclass(frozen=True, slots=True, repr=False)
class CompactionOptions(OptionValues):
    """When file slices are compacted, and which. Sizes are bytes unless the option states another unit.

    Attributes:
        explicit: newest keys of the options that were given or differ from their defaults.
    """

    inline: bool = option_field("hoodie.compact.inline")
    schedule_inline: bool = option_field("hoodie.compact.schedule.inline")
    asynchronous: bool = option_field("hoodie.datasource.compaction.async.enable")
    trigger: str = option_field("hoodie.compact.inline.trigger.strategy")
    max_delta_commits: int = option_field("hoodie.compact.inline.max.delta.commits")
    max_delta_seconds: int = option_field("hoodie.compact.inline.max.delta.seconds")
    strategies: tuple[str, ...] = option_field("hoodie.compaction.strategy")
    target_io_mb: int = option_field("hoodie.compaction.target.io")
    log_size_threshold: int = option_field("hoodie.compaction.logfile.size.threshold")
    log_count_threshold: int = option_field("hoodie.compaction.logfile.num.threshold")
    day_partitions: int = option_field("hoodie.compaction.daybased.target.partitions")
    partition_regex: str = option_field("hoodie.compaction.partition.path.regex")
    log_inline: bool = option_field("hoodie.log.compaction.inline")
    log_blocks_threshold: int = option_field("hoodie.log.compaction.blocks.threshold")
    incremental: bool = option_field("hoodie.table.services.incremental.enabled")
    explicit: frozenset[str] = field(default=frozenset(), repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "explicit", self.explicit | normalise_fields(self))
        if self.inline and self.schedule_inline:
            raise ConfigError(
                "Either of inline compaction (hoodie.compact.inline) or schedule inline compaction "
                "(hoodie.compact.schedule.inline) can be enabled, not both."
            )

    @property
    def has_trigger(self) -> bool:
        """Whether a compaction trigger was given."""
        return not _TRIGGER_KEYS.isdisjoint(self.explicit)

    @property
    def has_log_trigger(self) -> bool:
        """Whether a log compaction trigger was given."""
        return "hoodie.log.compaction.blocks.threshold" in self.explicit
