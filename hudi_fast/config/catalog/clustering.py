"""Options of clustering: when it is due, what it takes in, how rows are ordered, and what writers do about it.

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
        "Cluster after a write, if that is due; what waits goes first.",
        aliases=("hoodie.datasource.clustering.inline.enable",),
    ),
    Option(
        "hoodie.clustering.schedule.inline",
        Kind.BOOL,
        False,
        "Plan a clustering after a write, if it is due; somebody else carries it out.",
    ),
    Option(
        "hoodie.clustering.async.enabled",
        Kind.BOOL,
        False,
        "Somebody else clusters beside the writes; `hoodie.clustering.async.max.commits` says when it is due.",
        aliases=("hoodie.datasource.clustering.async.enable",),
    ),
    Option(
        "hoodie.clustering.inline.max.commits",
        Kind.INT,
        4,
        "Writes since the last clustering after which the next one is due, with `hoodie.clustering.inline`.",
        unit="commits",
        minimum=0,
    ),
    Option(
        "hoodie.clustering.async.max.commits",
        Kind.INT,
        4,
        "The same with `hoodie.clustering.async.enabled` or `hoodie.clustering.schedule.inline`.",
        unit="commits",
        minimum=0,
    ),
)

_WHICH = (
    Option(
        f"{_PLAN}class",
        Kind.TEXT,
        "org.apache.hudi.client.clustering.plan.strategy.SparkSizeBasedClusteringPlanStrategy",
        "Which file groups are clustered together: class name, with or without package.",
    ),
    Option(
        "hoodie.clustering.plan.partition.filter.mode",
        Kind.ENUM,
        "NONE",
        "Which partitions are looked at: all, the last ones by name, those between two names, or a 24th of them in "
        "each hour of the day.",
        choices=("NONE", "RECENT_DAYS", "SELECTED_PARTITIONS", "DAY_ROLLING"),
    ),
    Option(
        f"{_PLAN}daybased.lookback.partitions",
        Kind.INT,
        2,
        "RECENT_DAYS: how many partitions; 0 for all.",
        unit="partitions",
        minimum=0,
    ),
    Option(
        f"{_PLAN}daybased.skipfromlatest.partitions",
        Kind.INT,
        0,
        "RECENT_DAYS: how many of the last partitions are passed over.",
        unit="partitions",
        minimum=0,
    ),
    Option(f"{_PLAN}cluster.begin.partition", Kind.TEXT, "", "SELECTED_PARTITIONS: the first one."),
    Option(f"{_PLAN}cluster.end.partition", Kind.TEXT, "", "SELECTED_PARTITIONS: the last one."),
    Option(f"{_PLAN}partition.selected", Kind.LIST, (), "The partition paths that are looked at; none for all."),
    Option(f"{_PLAN}partition.regex.pattern", Kind.TEXT, "", "Partition paths must match this as a whole."),
    Option(
        f"{_PLAN}earliest.commit.to.cluster",
        Kind.TEXT,
        "",
        "CommitBasedClusteringPlanStrategy: files of writes after this instant are clustered.",
    ),
    Option(
        f"{_PLAN}small.file.limit",
        Kind.INT,
        300 * _MIB,
        "Slices whose base file is no smaller are left alone.",
        unit="bytes",
        minimum=0,
    ),
    Option(
        f"{_PLAN}max.bytes.per.group",
        Kind.INT,
        2 * _GIB,
        "Base file bytes after which a group of slices is full.",
        unit="bytes",
        minimum=1,
    ),
    Option(f"{_PLAN}max.num.groups", Kind.INT, 30, "Groups that one plan takes in.", unit="groups", minimum=1),
    Option(
        f"{_PLAN}single.group.clustering.enabled",
        Kind.BOOL,
        True,
        "Rewrite single slices into single files, too, where nothing is sorted.",
    ),
    Option(
        f"{_PLAN}file.slices.sort.by",
        Kind.LIST,
        ("SIZE",),
        "In which order slices are put into groups: SIZE (largest first), INSTANT_TIME (oldest first), or one after "
        "the other.",
        choices=("SIZE", "INSTANT_TIME"),
    ),
)

_HOW = (
    Option(
        "hoodie.clustering.execution.strategy.class",
        Kind.TEXT,
        "org.apache.hudi.client.clustering.run.strategy.SparkSortAndSizeExecutionStrategy",
        "How groups are rewritten: class name, with or without package.",
    ),
    Option(
        f"{_PLAN}target.file.max.bytes",
        Kind.INT,
        _GIB,
        "Size after which the next file begins.",
        unit="bytes",
        minimum=1,
    ),
    Option(f"{_PLAN}sort.columns", Kind.LIST, (), "Columns that rows are sorted by; none: they keep their order."),
    Option(
        f"{_PLAN}binary.copy.schema.evolution.enable",
        Kind.BOOL,
        False,
        "Put files of different columns into one group, where groups are copied as they are stored.",
        aliases=("hoodie.file.stitching.binary.copy.schema.evolution.enable",),
    ),
    Option(
        f"{_LAYOUT}strategy",
        Kind.ENUM,
        "LINEAR",
        "Sort by one column after the other, or along a curve through all of them.",
        choices=("LINEAR", "ZORDER", "HILBERT"),
    ),
    Option(
        f"{_LAYOUT}curve.build.method",
        Kind.ENUM,
        "DIRECT",
        "What a curve is made of: the values, or their ranks in a sample.",
        choices=("DIRECT", "SAMPLE"),
    ),
    Option(f"{_LAYOUT}build.curve.sample.size", Kind.INT, 200_000, "Size of that sample.", unit="rows", minimum=1),
)

_CONFLICTS = (
    Option(
        "hoodie.clustering.updates.strategy",
        Kind.TEXT,
        "org.apache.hudi.client.clustering.update.strategy.SparkRejectUpdateStrategy",
        "What a write does that changes rows of a pending clustering: SparkRejectUpdateStrategy refuses, "
        "SparkAllowUpdateStrategy goes on, and the clustering fails; Apache Hudi's does not notice, so do not allow it "
        "where Apache Hudi carries plans out. Class name, with or without package.",
    ),
    Option(
        "hoodie.clustering.rollback.pending.replacecommit.on.conflict",
        Kind.BOOL,
        False,
        "Where such a write goes on: it rolls the pending clustering back first.",
    ),
    Option(
        "hoodie.clustering.enable.expirations",
        Kind.BOOL,
        False,
        "Roll back pending clusterings that are old and that nobody carries out.",
    ),
    Option(
        "hoodie.clustering.expiration.threshold.mins",
        Kind.INT,
        60,
        "How old they are then, at least.",
        unit="minutes",
        minimum=0,
    ),
)

CLUSTERING_OPTIONS = _WHEN + _WHICH + _HOW + _CONFLICTS
