"""Options of cleaning: which file slices stay for readers, and when the others are deleted.

Sources: ``HoodieCleanConfig``, ``HoodieWriteConfig`` (1.2.0).
"""

from __future__ import annotations

from hudi_fast.config.option_descriptor import Kind, Option

__all__ = ["CLEAN_OPTIONS"]

CLEAN_OPTIONS = (
    Option(
        "hoodie.clean.automatic",
        Kind.BOOL,
        True,
        "Clean after a write, if that is due.",
    ),
    Option(
        "hoodie.prewrite.cleaner.policy",
        Kind.ENUM,
        "NONE",
        "Before a write: clean, roll failed writes back, or neither.",
        choices=("NONE", "CLEAN", "ROLLBACK_FAILED_WRITES"),
    ),
    Option(
        "hoodie.clean.policy",
        Kind.ENUM,
        "KEEP_LATEST_COMMITS",
        "Which file slices stay. If it is not given and exactly one of the three retention options is, that one says.",
        aliases=("hoodie.cleaner.policy",),
        choices=("KEEP_LATEST_COMMITS", "KEEP_LATEST_FILE_VERSIONS", "KEEP_LATEST_BY_HOURS"),
    ),
    Option(
        "hoodie.clean.commits.retained",
        Kind.INT,
        10,
        "KEEP_LATEST_COMMITS: newest commits whose state of the table stays readable.",
        aliases=("hoodie.cleaner.commits.retained",),
        unit="commits",
        minimum=1,
    ),
    Option(
        "hoodie.clean.hours.retained",
        Kind.INT,
        24,
        "KEEP_LATEST_BY_HOURS: hours in which a state of the table stays readable.",
        aliases=("hoodie.cleaner.hours.retained",),
        unit="hours",
        minimum=1,
    ),
    Option(
        "hoodie.clean.fileversions.retained",
        Kind.INT,
        3,
        "KEEP_LATEST_FILE_VERSIONS: newest file slices of each file group that stay.",
        aliases=("hoodie.cleaner.fileversions.retained",),
        unit="file slices",
        minimum=1,
    ),
    Option(
        "hoodie.clean.trigger.strategy",
        Kind.ENUM,
        "NUM_COMMITS",
        "What makes a clean after a write due.",
        choices=("NUM_COMMITS",),
    ),
    Option(
        "hoodie.clean.trigger.max.commits",
        Kind.INT,
        1,
        "Commits since the last clean after which one is due.",
        aliases=("hoodie.clean.max.commits",),
        unit="commits",
        minimum=1,
    ),
    Option(
        "hoodie.clean.max.commits.to.clean",
        Kind.INT,
        None,
        "Most commits by which one clean after another moves the earliest retained commit on; not given: any number.",
        unit="commits",
        minimum=1,
    ),
    Option(
        "hoodie.clean.incremental.enabled",
        Kind.BOOL,
        True,
        "Look only into partitions that were written since the last clean, where that is enough.",
        aliases=("hoodie.cleaner.incremental.mode",),
    ),
    Option(
        "hoodie.clean.partition.filter.regex",
        Kind.TEXT,
        "",
        "Partition paths that are cleaned; not with incremental cleaning.",
        aliases=("hoodie.cleaner.partition.filter.regex",),
    ),
    Option(
        "hoodie.clean.partition.filter.selected",
        Kind.LIST,
        (),
        "Partition paths that are cleaned; not with incremental cleaning.",
        aliases=("hoodie.cleaner.partition.filter.selected",),
    ),
    Option(
        "hoodie.write.empty.clean.interval.hours",
        Kind.INT,
        -1,
        "Hours since the last clean after which one is recorded even if there is nothing to delete, so that the next "
        "ones begin where it ends; -1 and 0: never.",
        unit="hours",
        minimum=-1,
    ),
)
