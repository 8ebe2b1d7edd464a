"""Options of the table services that run after a write or on request: compaction and log compaction.

Sources: ``HoodieCompactionConfig``, ``HoodieWriteConfig`` (1.2.0).
"""

from __future__ import annotations

from hudi_fast.config.option_descriptor import Kind, Option

__all__ = ["COMPACTION_OPTIONS", "SERVICE_OPTIONS"]

_TRIGGERS = ("NUM_COMMITS", "NUM_COMMITS_AFTER_LAST_REQUEST", "TIME_ELAPSED", "NUM_OR_TIME", "NUM_AND_TIME")
_STRATEGY = "org.apache.hudi.table.action.compact.strategy.LogFileSizeBasedCompactionStrategy"

SERVICE_OPTIONS = (
    Option("hoodie.table.services.enabled", Kind.BOOL, True, "Whether services run after a write at all."),
    Option(
        "hoodie.table.services.incremental.enabled",
        Kind.BOOL,
        True,
        "Plan only for partitions that were written since the last plan, or that it left out.",
    ),
    Option(
        "hoodie.fail.writes.on.inline.table.service.exception",
        Kind.BOOL,
        True,
        "A service that fails after a write fails the call; the write itself stays either way.",
    ),
    Option(
        "hoodie.write.can.ignore.post.commit.failures",
        Kind.BOOL,
        False,
        "What fails after the commit of a write is a warning.",
    ),
    Option(
        "hoodie.client.heartbeat.interval_in_ms",
        Kind.INT,
        60_000,
        "Time between two signs of life of what is being worked on.",
        unit="ms",
        minimum=1000,
    ),
    Option(
        "hoodie.client.heartbeat.tolerable.misses",
        Kind.INT,
        2,
        "Signs of life that may be missed before work is taken for dead.",
        unit="signs",
        minimum=1,
    ),
)

COMPACTION_OPTIONS = (
    Option(
        "hoodie.compact.inline",
        Kind.BOOL,
        False,
        "Compact a MERGE_ON_READ table after a write, if that is due. `hudi_fast.write` does so unless this option, "
        "`hoodie.compact.schedule.inline` or `hoodie.datasource.compaction.async.enable` is given.",
    ),
    Option(
        "hoodie.compact.schedule.inline",
        Kind.BOOL,
        False,
        "Plan a compaction after a write, if it is due and none is planned; somebody else carries it out.",
    ),
    Option(
        "hoodie.datasource.compaction.async.enable",
        Kind.BOOL,
        True,
        "Somebody else compacts: given as true, a write does not compact unless `hoodie.compact.inline` says so. A "
        "stream compacts beside itself, in a thread of its own, unless this is false.",
    ),
    Option(
        "hoodie.compact.inline.trigger.strategy",
        Kind.ENUM,
        "NUM_COMMITS",
        "When compaction is due: by delta commits, by time since the last one, or by both.",
        choices=_TRIGGERS,
    ),
    Option(
        "hoodie.compact.inline.max.delta.commits",
        Kind.INT,
        5,
        "Delta commits after which compaction is due.",
        unit="delta commits",
        minimum=1,
    ),
    Option(
        "hoodie.compact.inline.max.delta.seconds",
        Kind.INT,
        3600,
        "Time after which compaction is due.",
        unit="seconds",
        minimum=0,
    ),
    Option(
        "hoodie.compaction.strategy",
        Kind.LIST,
        (_STRATEGY,),
        "Which file slices are compacted, in which order: class names, with or without package; several follow each "
        "other.",
    ),
    Option(
        "hoodie.compaction.target.io",
        Kind.INT,
        500 * 1024,
        "Megabytes that one compaction may read and write.",
        unit="megabytes",
        minimum=0,
    ),
    Option(
        "hoodie.compaction.logfile.size.threshold",
        Kind.INT,
        0,
        "LogFileSizeBasedCompactionStrategy: log bytes below which a slice is left alone.",
        unit="bytes",
        minimum=0,
    ),
    Option(
        "hoodie.compaction.logfile.num.threshold",
        Kind.INT,
        0,
        "LogFileNumBasedCompactionStrategy: log files below which a slice is left alone.",
        unit="files",
        minimum=0,
    ),
    Option(
        "hoodie.compaction.daybased.target.partitions",
        Kind.INT,
        10,
        "Day-based strategies: how many partitions, or how many days.",
        unit="partitions",
        minimum=0,
    ),
    Option(
        "hoodie.compaction.partition.path.regex",
        Kind.TEXT,
        "",
        "PartitionRegexBasedCompactionStrategy: the partition paths that are compacted.",
    ),
    Option("hoodie.log.compaction.inline", Kind.BOOL, False, "Compact log files after a write, if that is due."),
    Option(
        "hoodie.log.compaction.blocks.threshold",
        Kind.INT,
        5,
        "Delta commits after which log compaction is due, and log files or blocks that a slice needs for it.",
        unit="blocks",
        minimum=1,
    ),
)
