"""Options of inline table services, heartbeats, compaction and log compaction.

Sources: ``HoodieCompactionConfig``, ``HoodieWriteConfig`` (1.2.0).
"""

from __future__ import annotations

from hudi_fast.config.option_descriptor import Kind, Option

__all__ = ["COMPACTION_OPTIONS", "SERVICE_OPTIONS"]

_TRIGGERS = ("NUM_COMMITS", "NUM_COMMITS_AFTER_LAST_REQUEST", "TIME_ELAPSED", "NUM_OR_TIME", "NUM_AND_TIME")
_STRATEGY = "org.apache.hudi.table.action.compact.strategy.LogFileSizeBasedCompactionStrategy"

SERVICE_OPTIONS = (
    Option("hoodie.table.services.enabled", Kind.BOOL, True, "Run inline table services."),
    Option(
        "hoodie.table.services.incremental.enabled",
        Kind.BOOL,
        True,
        "Plan only for partitions that were written since the last plan or that it left out.",
    ),
    Option(
        "hoodie.fail.writes.on.inline.table.service.exception",
        Kind.BOOL,
        True,
        "A service that fails after a write fails the call. The write stays committed in any case.",
    ),
    Option(
        "hoodie.write.can.ignore.post.commit.failures",
        Kind.BOOL,
        False,
        "Failures after the commit of a write are warnings.",
    ),
    Option(
        "hoodie.client.heartbeat.interval_in_ms",
        Kind.INT,
        60_000,
        "Interval between two heartbeats of a running write or service.",
        unit="ms",
        minimum=1000,
    ),
    Option(
        "hoodie.client.heartbeat.tolerable.misses",
        Kind.INT,
        2,
        "Missed heartbeats before a pending write or service counts as abandoned.",
        unit="heartbeats",
        minimum=1,
    ),
)
"""Options of all table services."""

COMPACTION_OPTIONS = (
    Option(
        "hoodie.compact.inline",
        Kind.BOOL,
        False,
        "Compact a MERGE_ON_READ table after a write when due. `hudi_fast.write` enables this unless this option, "
        "`hoodie.compact.schedule.inline` or `hoodie.datasource.compaction.async.enable` is given.",
    ),
    Option(
        "hoodie.compact.schedule.inline",
        Kind.BOOL,
        False,
        "Plan a compaction after a write when due and none is pending; another process executes it.",
    ),
    Option(
        "hoodie.datasource.compaction.async.enable",
        Kind.BOOL,
        True,
        "Another process compacts. If given as true, a write compacts only with `hoodie.compact.inline=true`. A stream "
        "compacts in a background thread unless this is false.",
    ),
    Option(
        "hoodie.compact.inline.trigger.strategy",
        Kind.ENUM,
        "NUM_COMMITS",
        "When compaction is due: by delta commits, by time since the last compaction, or by both.",
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
        "Strategies that select and order file slices, applied in turn: class names, with or without package.",
    ),
    Option(
        "hoodie.compaction.target.io",
        Kind.INT,
        500 * 1024,
        "Maximum megabytes that one compaction reads and writes.",
        unit="megabytes",
        minimum=0,
    ),
    Option(
        "hoodie.compaction.logfile.size.threshold",
        Kind.INT,
        0,
        "LogFileSizeBasedCompactionStrategy: minimum log size of a file slice to compact.",
        unit="bytes",
        minimum=0,
    ),
    Option(
        "hoodie.compaction.logfile.num.threshold",
        Kind.INT,
        0,
        "LogFileNumBasedCompactionStrategy: minimum number of log files of a file slice to compact.",
        unit="files",
        minimum=0,
    ),
    Option(
        "hoodie.compaction.daybased.target.partitions",
        Kind.INT,
        10,
        "Day-based strategies: number of partitions or days.",
        unit="partitions",
        minimum=0,
    ),
    Option(
        "hoodie.compaction.partition.path.regex",
        Kind.TEXT,
        "",
        "PartitionRegexBasedCompactionStrategy: regular expression for the partition paths to compact.",
    ),
    Option("hoodie.log.compaction.inline", Kind.BOOL, False, "Run log compaction after a write when due."),
    Option(
        "hoodie.log.compaction.blocks.threshold",
        Kind.INT,
        5,
        "Delta commits after which log compaction is due, and minimum number of log files or blocks of a file slice.",
        unit="blocks",
        minimum=1,
    ),
)
"""Options of compaction and log compaction."""
