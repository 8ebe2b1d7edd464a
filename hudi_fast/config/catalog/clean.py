"""Options of cleaning: which file slices are retained, and when the others are deleted.

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
        "Clean after a write when due.",
    ),
    Option(
        "hoodie.clean.async.enabled",
        Kind.BOOL,
        False,
        "With `hoodie.clean.automatic`: the clean after a write waits until the write has released the table's lock, "
        "so that other writers go on beside it. The call still returns after the clean.",
        aliases=("hoodie.clean.async",),
    ),
    Option(
        "hoodie.prewrite.cleaner.policy",
        Kind.ENUM,
        "NONE",
        "Before a write: clean, roll back failed writes, or neither.",
        choices=("NONE", "CLEAN", "ROLLBACK_FAILED_WRITES"),
    ),
    Option(
        "hoodie.clean.policy",
        Kind.ENUM,
        "KEEP_LATEST_COMMITS",
        "File slices to retain. Default if exactly one of the three retention options is given: its policy.",
        aliases=("hoodie.cleaner.policy",),
        choices=("KEEP_LATEST_COMMITS", "KEEP_LATEST_FILE_VERSIONS", "KEEP_LATEST_BY_HOURS"),
    ),
    Option(
        "hoodie.clean.commits.retained",
        Kind.INT,
        10,
        "KEEP_LATEST_COMMITS: number of newest commits whose table state stays readable.",
        aliases=("hoodie.cleaner.commits.retained",),
        unit="commits",
        minimum=1,
    ),
    Option(
        "hoodie.clean.hours.retained",
        Kind.INT,
        24,
        "KEEP_LATEST_BY_HOURS: hours for which a table state stays readable.",
        aliases=("hoodie.cleaner.hours.retained",),
        unit="hours",
        minimum=1,
    ),
    Option(
        "hoodie.clean.fileversions.retained",
        Kind.INT,
        3,
        "KEEP_LATEST_FILE_VERSIONS: number of newest file slices to retain per file group.",
        aliases=("hoodie.cleaner.fileversions.retained",),
        unit="file slices",
        minimum=1,
    ),
    Option(
        "hoodie.clean.trigger.strategy",
        Kind.ENUM,
        "NUM_COMMITS",
        "When a clean is due: after a number of commits.",
        choices=("NUM_COMMITS",),
    ),
    Option(
        "hoodie.clean.trigger.max.commits",
        Kind.INT,
        1,
        "Commits since the last clean after which the next one is due.",
        aliases=("hoodie.clean.max.commits",),
        unit="commits",
        minimum=1,
    ),
    Option(
        "hoodie.clean.max.commits.to.clean",
        Kind.INT,
        None,
        "Maximum number of commits by which one clean advances the earliest retained commit; unlimited by default.",
        unit="commits",
        minimum=1,
    ),
    Option(
        "hoodie.clean.incremental.enabled",
        Kind.BOOL,
        True,
        "Where possible, clean only partitions that were written since the last clean.",
        aliases=("hoodie.cleaner.incremental.mode",),
    ),
    Option(
        "hoodie.clean.partition.filter.regex",
        Kind.TEXT,
        "",
        "Regular expression for the partition paths to clean; requires `hoodie.clean.incremental.enabled=false`.",
        aliases=("hoodie.cleaner.partition.filter.regex",),
    ),
    Option(
        "hoodie.clean.partition.filter.selected",
        Kind.LIST,
        (),
        "Partition paths to clean; requires `hoodie.clean.incremental.enabled=false`.",
        aliases=("hoodie.cleaner.partition.filter.selected",),
    ),
    Option(
        "hoodie.write.empty.clean.interval.hours",
        Kind.INT,
        -1,
        "Hours since the last clean after which a clean is recorded even without files to delete; later incremental "
        "cleans start from it. -1 and 0: never.",
        unit="hours",
        minimum=-1,
    ),
)
"""Options of cleaning."""
