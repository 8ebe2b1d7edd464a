"""The options of services that rewrite files: compaction, log compaction and clustering.

The options of compaction and log compaction as one frozen value.

Data flow: ``{"hoodie...": ...}`` -> :meth:`CompactionOptions.from_options` -> the services. The
:class:`~hudi_fast.config.write_options.WriteOptions` from the same dictionary control how files are written.

The options of clustering as one frozen value.

Data flow: ``{"hoodie...": ...}`` -> :meth:`ClusteringOptions.from_options` -> planning, execution, and writers that
conflict with a pending clustering. Java class names are interpreted by their last part, where they are used.
"""

from __future__ import annotations

from dataclasses import field

from hudi_fast.config.option_fields import Kind, OptionValues, normalise_fields, option, options_of, same_option
from hudi_fast.errors import ConfigError, UnsupportedFeatureError
from hudi_fast.values import dataclass

__all__ = ["CLUSTERING_OPTIONS", "COMPACTION_OPTIONS", "ClusteringOptions", "CompactionOptions", "allows_updates"]

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


_MIB = 1 << 20
_GIB = 1 << 30

_PLAN = "hoodie.clustering.plan.strategy."
_LAYOUT = "hoodie.layout.optimize."
_UPDATES = "hoodie.clustering.updates.strategy"
_SORTS = ("SIZE", "INSTANT_TIME")
_ALLOWS = {
    "SparkRejectUpdateStrategy": False,
    "SparkAllowUpdateStrategy": True,
    "SparkConsistentBucketDuplicateUpdateStrategy": False,  # Apache Hudi writes twice; hudi_fast refuses the write
}


@dataclass(frozen=True, slots=True, repr=False)
class ClusteringOptions(OptionValues):
    """When file groups are clustered, which, and how. Sizes are bytes.

    Attributes:
        explicit: newest keys of the options that were given or differ from their defaults.
    """

    inline: bool = option(
        "hoodie.clustering.inline",
        Kind.BOOL,
        False,
        "Cluster after a write when due; pending clustering plans are executed first.",
        aliases=("hoodie.datasource.clustering.inline.enable",),
    )
    schedule_inline: bool = option(
        "hoodie.clustering.schedule.inline",
        Kind.BOOL,
        False,
        "Plan a clustering after a write when due; another process executes it.",
    )
    asynchronous: bool = option(
        "hoodie.clustering.async.enabled",
        Kind.BOOL,
        False,
        "Another process clusters in parallel to writes; due after `hoodie.clustering.async.max.commits`.",
        aliases=("hoodie.datasource.clustering.async.enable",),
    )
    inline_max_commits: int = option(
        "hoodie.clustering.inline.max.commits",
        Kind.INT,
        4,
        "With `hoodie.clustering.inline`: commits since the last clustering after which the next one is due.",
        unit="commits",
        minimum=0,
    )
    async_max_commits: int = option(
        "hoodie.clustering.async.max.commits",
        Kind.INT,
        4,
        "With `hoodie.clustering.async.enabled` or `hoodie.clustering.schedule.inline`: commits since the last "
        "clustering after which the next one is due.",
        unit="commits",
        minimum=0,
    )
    plan_class: str = option(
        f"{_PLAN}class",
        Kind.TEXT,
        "org.apache.hudi.client.clustering.plan.strategy.SparkSizeBasedClusteringPlanStrategy",
        "Strategy that selects and groups file groups: class name, with or without package.",
    )
    partition_filter: str = option(
        "hoodie.clustering.plan.partition.filter.mode",
        Kind.ENUM,
        "NONE",
        "Partitions to plan for: all, the last ones by name, those between two names, or one 24th of all partitions "
        "per hour of the day.",
        choices=("NONE", "RECENT_DAYS", "SELECTED_PARTITIONS", "DAY_ROLLING"),
    )
    lookback_partitions: int = option(
        f"{_PLAN}daybased.lookback.partitions",
        Kind.INT,
        2,
        "RECENT_DAYS: number of partitions; 0 = all.",
        unit="partitions",
        minimum=0,
    )
    skip_partitions: int = option(
        f"{_PLAN}daybased.skipfromlatest.partitions",
        Kind.INT,
        0,
        "RECENT_DAYS: number of last partitions to skip.",
        unit="partitions",
        minimum=0,
    )
    begin_partition: str = option(
        f"{_PLAN}cluster.begin.partition", Kind.TEXT, "", "SELECTED_PARTITIONS: first partition."
    )
    end_partition: str = option(f"{_PLAN}cluster.end.partition", Kind.TEXT, "", "SELECTED_PARTITIONS: last partition.")
    partitions: tuple[str, ...] = option(
        f"{_PLAN}partition.selected", Kind.LIST, (), "Partition paths to plan for; empty = all."
    )
    partition_regex: str = option(
        f"{_PLAN}partition.regex.pattern",
        Kind.TEXT,
        "",
        "Regular expression that must match the whole partition path; empty = all.",
    )
    earliest_commit: str = option(
        f"{_PLAN}earliest.commit.to.cluster",
        Kind.TEXT,
        "",
        "CommitBasedClusteringPlanStrategy: cluster the files of commits after this instant.",
    )
    small_file_limit: int = option(
        f"{_PLAN}small.file.limit",
        Kind.INT,
        300 * _MIB,
        "Cluster file slices whose base file is smaller than this.",
        unit="bytes",
        minimum=0,
    )
    max_group_bytes: int = option(
        f"{_PLAN}max.bytes.per.group",
        Kind.INT,
        2 * _GIB,
        "Maximum total size of the base files in one clustering group.",
        unit="bytes",
        minimum=1,
    )
    max_groups: int = option(
        f"{_PLAN}max.num.groups", Kind.INT, 30, "Maximum number of groups per plan.", unit="groups", minimum=1
    )
    single_groups: bool = option(
        f"{_PLAN}single.group.clustering.enabled",
        Kind.BOOL,
        True,
        "Without sort columns, also rewrite groups of one file slice that fit one file.",
    )
    slice_order: tuple[str, ...] = option(
        f"{_PLAN}file.slices.sort.by",
        Kind.LIST,
        ("SIZE",),
        "Order in which file slices are grouped: SIZE (largest first), INSTANT_TIME (oldest first), or both in turn.",
        choices=("SIZE", "INSTANT_TIME"),
    )
    execution_class: str = option(
        "hoodie.clustering.execution.strategy.class",
        Kind.TEXT,
        "org.apache.hudi.client.clustering.run.strategy.SparkSortAndSizeExecutionStrategy",
        "Strategy that rewrites the groups: class name, with or without package.",
    )
    target_bytes: int = option(
        f"{_PLAN}target.file.max.bytes",
        Kind.INT,
        _GIB,
        "Target size of rewritten files.",
        unit="bytes",
        minimum=1,
    )
    sort_columns: tuple[str, ...] = option(
        f"{_PLAN}sort.columns",
        Kind.LIST,
        (),
        "Columns to sort rows by, dotted within structs; empty = keep their order.",
    )
    copy_evolved: bool = option(
        f"{_PLAN}binary.copy.schema.evolution.enable",
        Kind.BOOL,
        False,
        "With binary copy: group files with different columns.",
        aliases=("hoodie.file.stitching.binary.copy.schema.evolution.enable",),
    )
    curve: str = option(
        f"{_LAYOUT}strategy",
        Kind.ENUM,
        "LINEAR",
        "Sort order: by one column after the other, or along a space-filling curve over all sort columns.",
        choices=("LINEAR", "ZORDER", "HILBERT"),
        spellings=(("z-order", "ZORDER"),),
    )
    curve_build: str = option(
        f"{_LAYOUT}curve.build.method",
        Kind.ENUM,
        "DIRECT",
        "Input of the curve: the values, or their ranks in a sample.",
        choices=("DIRECT", "SAMPLE"),
    )
    curve_sample_rows: int = option(
        f"{_LAYOUT}build.curve.sample.size", Kind.INT, 200_000, "Size of the sample.", unit="rows", minimum=1
    )
    updates_class: str = option(
        "hoodie.clustering.updates.strategy",
        Kind.TEXT,
        "org.apache.hudi.client.clustering.update.strategy.SparkRejectUpdateStrategy",
        "Effect of a write that changes rows of a pending clustering: `SparkRejectUpdateStrategy` refuses the write; "
        "`SparkAllowUpdateStrategy` accepts it, and the clustering fails. Apache Hudi does not detect this conflict: "
        "do not allow updates if Apache Hudi executes the plans. Class name, with or without package.",
    )
    incremental: bool = same_option(CompactionOptions, "incremental")
    explicit: frozenset[str] = field(default=frozenset(), repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "explicit", self.explicit | normalise_fields(self))
        if self.inline and self.schedule_inline:
            raise ConfigError(
                "Either of inline clustering (hoodie.clustering.inline) or schedule inline clustering "
                "(hoodie.clustering.schedule.inline) can be enabled, not both."
            )
        order = tuple(one.upper() for one in self.slice_order)
        if not order or not set(order) <= set(_SORTS):
            raise ConfigError(
                f"{_PLAN}file.slices.sort.by={','.join(self.slice_order)!r} is not valid; valid entries: "
                f"{', '.join(_SORTS)}."
            )
        object.__setattr__(self, "slice_order", order)
        allows_updates(self.updates_class)

    @property
    def allows_updates(self) -> bool:
        """Whether a write may change rows of file groups in a pending clustering."""
        return allows_updates(self.updates_class)

    @property
    def max_commits(self) -> int:
        """Commits between two clusterings in the enabled modes; 0 if none is enabled."""
        gates = [self.inline_max_commits] if self.inline else []
        gates += [self.async_max_commits] if self.asynchronous or self.schedule_inline else []
        return max(gates, default=0)


def allows_updates(class_name: str) -> bool:
    """Whether a write with this update strategy may change rows of file groups in a pending clustering.

    Args:
        class_name: ``hoodie.clustering.updates.strategy``, with or without package.

    Raises:
        UnsupportedFeatureError: an unknown or unsupported strategy.
    """
    allows = _ALLOWS.get(class_name.rpartition(".")[2])
    if allows is None:
        raise UnsupportedFeatureError(
            f"{_UPDATES}={class_name} is not supported; supported: {', '.join(_ALLOWS)}. Use one of these, or Apache "
            "Hudi."
        )
    return allows


CLUSTERING_OPTIONS = options_of(ClusteringOptions)
"""Options of clustering."""
