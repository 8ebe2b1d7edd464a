"""Options of clustering: when it is due, which file groups, how rows are ordered, and conflicts with writers.

Sources: ``HoodieClusteringConfig``, ``ClusteringPlanPartitionFilterMode``, ``ClusteringFileSliceSortByField`` (1.2.0).
"""

from __future__ import annotations

from hudi_fast.config.option_descriptor import Kind, Option

__all__ = ["CLUSTERING_OPTIONS"]

_PLAN = "hoodie.clustering.plan.strategy."
_LAYOUT = "hoodie.layout.optimize."
_MIB = 1 << 20
_GIB = 1 << 30

_WHEN = (
    Option(
        "hoodie.clustering.inline",
        Kind.BOOL,
        False,
        "Cluster after a write when due; pending clustering plans are executed first.",
        aliases=("hoodie.datasource.clustering.inline.enable",),
    ),
    Option(
        "hoodie.clustering.schedule.inline",
        Kind.BOOL,
        False,
        "Plan a clustering after a write when due; another process executes it.",
    ),
    Option(
        "hoodie.clustering.async.enabled",
        Kind.BOOL,
        False,
        "Another process clusters in parallel to writes; due after `hoodie.clustering.async.max.commits`.",
        aliases=("hoodie.datasource.clustering.async.enable",),
    ),
    Option(
        "hoodie.clustering.inline.max.commits",
        Kind.INT,
        4,
        "With `hoodie.clustering.inline`: commits since the last clustering after which the next one is due.",
        unit="commits",
        minimum=0,
    ),
    Option(
        "hoodie.clustering.async.max.commits",
        Kind.INT,
        4,
        "With `hoodie.clustering.async.enabled` or `hoodie.clustering.schedule.inline`: commits since the last "
        "clustering after which the next one is due.",
        unit="commits",
        minimum=0,
    ),
)

_WHICH = (
    Option(
        f"{_PLAN}class",
        Kind.TEXT,
        "org.apache.hudi.client.clustering.plan.strategy.SparkSizeBasedClusteringPlanStrategy",
        "Strategy that selects and groups file groups: class name, with or without package.",
    ),
    Option(
        "hoodie.clustering.plan.partition.filter.mode",
        Kind.ENUM,
        "NONE",
        "Partitions to plan for: all, the last ones by name, those between two names, or one 24th of all partitions "
        "per hour of the day.",
        choices=("NONE", "RECENT_DAYS", "SELECTED_PARTITIONS", "DAY_ROLLING"),
    ),
    Option(
        f"{_PLAN}daybased.lookback.partitions",
        Kind.INT,
        2,
        "RECENT_DAYS: number of partitions; 0 = all.",
        unit="partitions",
        minimum=0,
    ),
    Option(
        f"{_PLAN}daybased.skipfromlatest.partitions",
        Kind.INT,
        0,
        "RECENT_DAYS: number of last partitions to skip.",
        unit="partitions",
        minimum=0,
    ),
    Option(f"{_PLAN}cluster.begin.partition", Kind.TEXT, "", "SELECTED_PARTITIONS: first partition."),
    Option(f"{_PLAN}cluster.end.partition", Kind.TEXT, "", "SELECTED_PARTITIONS: last partition."),
    Option(f"{_PLAN}partition.selected", Kind.LIST, (), "Partition paths to plan for; empty = all."),
    Option(
        f"{_PLAN}partition.regex.pattern",
        Kind.TEXT,
        "",
        "Regular expression that must match the whole partition path; empty = all.",
    ),
    Option(
        f"{_PLAN}earliest.commit.to.cluster",
        Kind.TEXT,
        "",
        "CommitBasedClusteringPlanStrategy: cluster the files of commits after this instant.",
    ),
    Option(
        f"{_PLAN}small.file.limit",
        Kind.INT,
        300 * _MIB,
        "Cluster file slices whose base file is smaller than this.",
        unit="bytes",
        minimum=0,
    ),
    Option(
        f"{_PLAN}max.bytes.per.group",
        Kind.INT,
        2 * _GIB,
        "Maximum total size of the base files in one clustering group.",
        unit="bytes",
        minimum=1,
    ),
    Option(f"{_PLAN}max.num.groups", Kind.INT, 30, "Maximum number of groups per plan.", unit="groups", minimum=1),
    Option(
        f"{_PLAN}single.group.clustering.enabled",
        Kind.BOOL,
        True,
        "Without sort columns, also rewrite groups of one file slice that fit one file.",
    ),
    Option(
        f"{_PLAN}file.slices.sort.by",
        Kind.LIST,
        ("SIZE",),
        "Order in which file slices are grouped: SIZE (largest first), INSTANT_TIME (oldest first), or both in turn.",
        choices=("SIZE", "INSTANT_TIME"),
    ),
)

_HOW = (
    Option(
        "hoodie.clustering.execution.strategy.class",
        Kind.TEXT,
        "org.apache.hudi.client.clustering.run.strategy.SparkSortAndSizeExecutionStrategy",
        "Strategy that rewrites the groups: class name, with or without package.",
    ),
    Option(
        f"{_PLAN}target.file.max.bytes",
        Kind.INT,
        _GIB,
        "Target size of rewritten files.",
        unit="bytes",
        minimum=1,
    ),
    Option(
        f"{_PLAN}sort.columns",
        Kind.LIST,
        (),
        "Columns to sort rows by, dotted within structs; empty = keep their order.",
    ),
    Option(
        f"{_PLAN}binary.copy.schema.evolution.enable",
        Kind.BOOL,
        False,
        "With binary copy: group files with different columns.",
        aliases=("hoodie.file.stitching.binary.copy.schema.evolution.enable",),
    ),
    Option(
        f"{_LAYOUT}strategy",
        Kind.ENUM,
        "LINEAR",
        "Sort order: by one column after the other, or along a space-filling curve over all sort columns.",
        choices=("LINEAR", "ZORDER", "HILBERT"),
        spellings=(("z-order", "ZORDER"),),
    ),
    Option(
        f"{_LAYOUT}curve.build.method",
        Kind.ENUM,
        "DIRECT",
        "Input of the curve: the values, or their ranks in a sample.",
        choices=("DIRECT", "SAMPLE"),
    ),
    Option(f"{_LAYOUT}build.curve.sample.size", Kind.INT, 200_000, "Size of the sample.", unit="rows", minimum=1),
)

_CONFLICTS = (
    Option(
        "hoodie.clustering.updates.strategy",
        Kind.TEXT,
        "org.apache.hudi.client.clustering.update.strategy.SparkRejectUpdateStrategy",
        "Effect of a write that changes rows of a pending clustering: `SparkRejectUpdateStrategy` refuses the write; "
        "`SparkAllowUpdateStrategy` accepts it, and the clustering fails. Apache Hudi does not detect this conflict: "
        "do not allow updates if Apache Hudi executes the plans. Class name, with or without package.",
    ),
    Option(
        "hoodie.clustering.rollback.pending.replacecommit.on.conflict",
        Kind.BOOL,
        False,
        "With `SparkAllowUpdateStrategy`: such a write first rolls back the pending clustering.",
    ),
    Option(
        "hoodie.clustering.enable.expirations",
        Kind.BOOL,
        False,
        "Roll back expired pending clusterings that no process executes.",
    ),
    Option(
        "hoodie.clustering.expiration.threshold.mins",
        Kind.INT,
        60,
        "Age at which a pending clustering expires.",
        unit="minutes",
        minimum=0,
    ),
)

CLUSTERING_OPTIONS = _WHEN + _WHICH + _HOW + _CONFLICTS
"""Options of clustering."""
