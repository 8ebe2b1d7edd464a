"""The options of compaction and log compaction as one frozen value.

Data flow: ``{"hoodie...": ...}`` -> :meth:`CompactionOptions.from_options` -> the services. The same dictionary also
makes the :class:`~hudi_fast.config.write_options.WriteOptions` that say how files are written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hudi_fast.config.option_fields import differing_repr, given_fields, normalise_fields, option_field
from hudi_fast.config.options import WRITE, resolve, text_of
from hudi_fast.errors import ConfigError

__all__ = ["CompactionOptions"]

_PREFIX_KEY = "hoodie.datasource.write.commitmeta.key.prefix"
_TRIGGER_KEYS = frozenset(
    {
        "hoodie.compact.inline.trigger.strategy",
        "hoodie.compact.inline.max.delta.commits",
        "hoodie.compact.inline.max.delta.seconds",
    }
)


@dataclass(frozen=True, slots=True, repr=False)
class CompactionOptions:
    """When slices are compacted, and which. Sizes are bytes unless the option says otherwise.

    Attributes:
        explicit: newest keys of the options that were given, or that differ from their defaults.
    """

    inline: bool = option_field("hoodie.compact.inline")
    schedule_inline: bool = option_field("hoodie.compact.schedule.inline")
    by_others: bool = option_field("hoodie.datasource.compaction.async.enable")
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

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> CompactionOptions:
        """Resolve a dictionary of options; those that a write takes are fine.

        Raises:
            ConfigError: a key or value is wrong, or compacting and only planning after a write are both asked for.
            UnsupportedFeatureError: an option asks for something that hudi_fast does not do.

        Warns:
            HudiWarning: an unknown ``hoodie.`` key.
        """
        values = resolve(options, WRITE[0], free_prefix=text_of(_PREFIX_KEY, options.get(_PREFIX_KEY, "_")))
        given: dict[str, Any] = given_fields(cls, values)
        return cls(**given, explicit=frozenset(option.key for option in values))

    def __post_init__(self) -> None:
        object.__setattr__(self, "explicit", self.explicit | normalise_fields(self))
        if self.inline and self.schedule_inline:
            raise ConfigError(
                "Either of inline compaction (hoodie.compact.inline) or schedule inline compaction "
                "(hoodie.compact.schedule.inline) can be enabled, not both."
            )

    def __repr__(self) -> str:
        return differing_repr(self)

    @property
    def has_trigger(self) -> bool:
        """Whether it was said when compaction is due."""
        return not _TRIGGER_KEYS.isdisjoint(self.explicit)

    @property
    def has_log_trigger(self) -> bool:
        """Whether it was said when log compaction is due."""
        return "hoodie.log.compaction.blocks.threshold" in self.explicit
