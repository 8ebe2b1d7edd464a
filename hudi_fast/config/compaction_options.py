"""The options of compaction and log compaction as one frozen value.

Data flow: ``{"hoodie...": ...}`` -> :meth:`CompactionOptions.from_options` -> the services. The
:class:`~hudi_fast.config.write_options.WriteOptions` from the same dictionary control how files are written.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hudi_fast.config.option_descriptor import Kind
from hudi_fast.config.option_fields import (
    OptionValues,
    normalise_fields,
    option,
    options_of,
)
from hudi_fast.errors import ConfigError

__all__ = ["COMPACTION_OPTIONS", "CompactionOptions"]

_TRIGGERS = ("NUM_COMMITS", "NUM_COMMITS_AFTER_LAST_REQUEST", "TIME_ELAPSED", "NUM_OR_TIME", "NUM_AND_TIME")
_STRATEGY = "org.apache.hudi.table.action.compact.strategy.LogFileSizeBasedCompactionStrategy"

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

    inline: bool = option(
        "hoodie.compact.inline",
        Kind.BOOL,
        False,
        "Compact a MERGE_ON_READ table after a write when due. `hudi_fast.write` enables this unless this option, "
        "`hoodie.compact.schedule.inline` or `hoodie.datasource.compaction.async.enable` is given.",
    )
    schedule_inline: bool = option(
        "hoodie.compact.schedule.inline",
        Kind.BOOL,
        False,
        "Plan a compaction after a write when due and none is pending; another process executes it.",
    )
    asynchronous: bool = option(
        "hoodie.datasource.compaction.async.enable",
        Kind.BOOL,
        True,
        "Another process compacts. If given as true, a write compacts only with `hoodie.compact.inline=true`. A stream "
        "compacts in a background thread unless this is false.",
    )
    trigger: str = option(
        "hoodie.compact.inline.trigger.strategy",
        Kind.ENUM,
        "NUM_COMMITS",
        "When compaction is due: by delta commits, by time since the last compaction, or by both.",
        choices=_TRIGGERS,
    )
    max_delta_commits: int = option(
        "hoodie.compact.inline.max.delta.commits",
        Kind.INT,
        5,
        "Delta commits after which compaction is due.",
        unit="delta commits",
        minimum=1,
    )
    max_delta_seconds: int = option(
        "hoodie.compact.inline.max.delta.seconds",
        Kind.INT,
        3600,
        "Time after which compaction is due.",
        unit="seconds",
        minimum=0,
    )
    strategies: tuple[str, ...] = option(
        "hoodie.compaction.strategy",
        Kind.LIST,
        (_STRATEGY,),
        "Strategies that select and order file slices, applied in turn: class names, with or without package.",
    )
    target_io_mb: int = option(
        "hoodie.compaction.target.io",
        Kind.INT,
        500 * 1024,
        "Maximum megabytes that one compaction reads and writes.",
        unit="megabytes",
        minimum=0,
    )
    log_size_threshold: int = option(
        "hoodie.compaction.logfile.size.threshold",
        Kind.INT,
        0,
        "LogFileSizeBasedCompactionStrategy: minimum log size of a file slice to compact.",
        unit="bytes",
        minimum=0,
    )
    log_count_threshold: int = option(
        "hoodie.compaction.logfile.num.threshold",
        Kind.INT,
        0,
        "LogFileNumBasedCompactionStrategy: minimum number of log files of a file slice to compact.",
        unit="files",
        minimum=0,
    )
    day_partitions: int = option(
        "hoodie.compaction.daybased.target.partitions",
        Kind.INT,
        10,
        "Day-based strategies: number of partitions or days.",
        unit="partitions",
        minimum=0,
    )
    partition_regex: str = option(
        "hoodie.compaction.partition.path.regex",
        Kind.TEXT,
        "",
        "PartitionRegexBasedCompactionStrategy: regular expression for the partition paths to compact.",
    )
    log_inline: bool = option(
        "hoodie.log.compaction.inline", Kind.BOOL, False, "Run log compaction after a write when due."
    )
    log_blocks_threshold: int = option(
        "hoodie.log.compaction.blocks.threshold",
        Kind.INT,
        5,
        "Delta commits after which log compaction is due, and minimum number of log files or blocks of a file slice.",
        unit="blocks",
        minimum=1,
    )
    incremental: bool = option(
        "hoodie.table.services.incremental.enabled",
        Kind.BOOL,
        True,
        "Plan only for partitions that were written since the last plan or that it left out.",
    )
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


COMPACTION_OPTIONS = options_of(CompactionOptions)
"""Options of compaction and log compaction."""
