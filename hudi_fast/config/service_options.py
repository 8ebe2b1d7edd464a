"""The options of inline table services: shared ones, archiving, cleaning, partition TTL.

The options that all inline table services share, as one frozen value.

Data flow: ``{"hoodie...": ...}`` -> :meth:`ServiceOptions.from_options` -> the services before and after a write. Each
service has options of its own.

The options of archiving as one frozen value.

The options of cleaning as one frozen value.

The options of partition TTL as one frozen value.
"""

from __future__ import annotations

import re
from dataclasses import field

from hudi_fast.config.option_fields import Kind, OptionValues, normalise_fields, option, options_of
from hudi_fast.errors import ConfigError
from hudi_fast.values import dataclass

__all__ = [
    "ARCHIVE_OPTIONS",
    "CLEAN_OPTIONS",
    "SERVICE_OPTIONS",
    "TTL_OPTIONS",
    "ArchiveOptions",
    "CleanOptions",
    "ServiceOptions",
    "TtlOptions",
]

_TRIGGERS = ("NUM_COMMITS", "NUM_COMMITS_AFTER_LAST_REQUEST", "TIME_ELAPSED", "NUM_OR_TIME", "NUM_AND_TIME")
_STRATEGY = "org.apache.hudi.table.action.compact.strategy.LogFileSizeBasedCompactionStrategy"


@dataclass(frozen=True, slots=True, repr=False)
class ServiceOptions(OptionValues):
    """Whether inline services run, and whether a failing service fails the call."""

    enabled: bool = option("hoodie.table.services.enabled", Kind.BOOL, True, "Run inline table services.")
    fail_writes: bool = option(
        "hoodie.fail.writes.on.inline.table.service.exception",
        Kind.BOOL,
        True,
        "A service that fails after a write fails the call. The write stays committed in any case.",
    )
    ignore_failures: bool = option(
        "hoodie.write.can.ignore.post.commit.failures",
        Kind.BOOL,
        False,
        "Failures after the commit of a write are warnings.",
    )

    def __post_init__(self) -> None:
        normalise_fields(self)

    @property
    def failures_raise(self) -> bool:
        """Whether a service that fails after a write raises an error; otherwise it warns."""
        return self.fail_writes and not self.ignore_failures


SERVICE_OPTIONS = options_of(ServiceOptions)
"""Options of all table services."""


@dataclass(frozen=True, slots=True, repr=False)
class ArchiveOptions(OptionValues):
    """When instants are archived, and how archive files are merged. Sizes are bytes.

    Attributes:
        explicit: newest keys of the options that were given or differ from their defaults.
    """

    automatic: bool = option("hoodie.archive.automatic", Kind.BOOL, True, "Archive after a write when due.")
    asynchronous: bool = option(
        "hoodie.archive.async",
        Kind.BOOL,
        False,
        "With `hoodie.archive.automatic`: archiving after a write waits until the write has released the table's lock, "
        "and acquires it anew. The call still returns after archiving.",
    )
    max_commits: int = option(
        "hoodie.keep.max.commits",
        Kind.INT,
        30,
        "Archive the oldest commits if the active timeline has more completed commits than this.",
        unit="commits",
        minimum=1,
    )
    min_commits: int = option(
        "hoodie.keep.min.commits",
        Kind.INT,
        20,
        "Completed commits that archiving keeps on the active timeline.",
        unit="commits",
        minimum=1,
    )
    batch_records: int = option(
        "hoodie.commits.archival.batch",
        Kind.INT,
        10,
        "Table version 6: maximum number of records (one per state of an instant) in one archive block.",
        unit="records",
        minimum=1,
    )
    limit_instants: int | None = option(
        "hoodie.archive.limit.instants",
        Kind.INT,
        None,
        "Table version 6: maximum number of instants that one run archives, the oldest first; unlimited by default. "
        "Apache Hudi 1.2 reads it for that version only.",
        unit="instants",
        minimum=0,
    )
    beyond_savepoint: bool = option(
        "hoodie.archive.beyond.savepoint",
        Kind.BOOL,
        False,
        "Also archive instants newer than the first savepoint; only savepointed commits are kept.",
    )
    block_on_clean: bool = option(
        "hoodie.archive.block.on.latest.clean.ectr",
        Kind.BOOL,
        False,
        "Table version 6: archive only commits before the earliest commit retained by the last clean.",
    )
    merge: bool = option(
        "hoodie.archive.merge.enable",
        Kind.BOOL,
        False,
        "Table version 6: merge small archive files.",
    )
    merge_files: int = option(
        "hoodie.archive.merge.files.batch.size",
        Kind.INT,
        10,
        "Table version 6: number of small archive files to merge into one.",
        unit="files",
        minimum=2,
    )
    merge_small_bytes: int = option(
        "hoodie.archive.merge.small.file.limit.bytes",
        Kind.INT,
        20 << 20,
        "Table version 6: archive files below this size are small.",
        unit="bytes",
        minimum=1,
    )
    compaction_files: int = option(
        "hoodie.timeline.compaction.batch.size",
        Kind.INT,
        10,
        "Number of archive files of one level to merge into one file of the next level.",
        unit="files",
        minimum=2,
    )
    compaction_target_bytes: int = option(
        "hoodie.timeline.compaction.target.file.max.bytes",
        Kind.INT,
        1000 << 20,
        "Archive files are merged until their total size exceeds this.",
        unit="bytes",
        minimum=1,
    )
    manifests_retained: int = option(
        "hoodie.timeline.manifest.retained.versions",
        Kind.INT,
        3,
        "Archive manifests to retain for readers that still use an older one.",
        unit="manifests",
        minimum=1,
    )
    explicit: frozenset[str] = field(default=frozenset(), repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "explicit", self.explicit | normalise_fields(self))
        if self.max_commits <= self.min_commits:
            raise ConfigError(
                f"Increase hoodie.keep.max.commits={self.max_commits} to be greater than "
                f"hoodie.keep.min.commits={self.min_commits}."
            )


ARCHIVE_OPTIONS = options_of(ArchiveOptions)
"""Options of archiving."""


_POLICY_KEY = "hoodie.clean.policy"
_INCREMENTAL_KEY = "hoodie.clean.incremental.enabled"
_POLICY_OF_KEY = {
    "hoodie.clean.commits.retained": "KEEP_LATEST_COMMITS",
    "hoodie.clean.hours.retained": "KEEP_LATEST_BY_HOURS",
    "hoodie.clean.fileversions.retained": "KEEP_LATEST_FILE_VERSIONS",
}
_TRIGGER_KEYS = frozenset({"hoodie.clean.trigger.strategy", "hoodie.clean.trigger.max.commits"})


@dataclass(frozen=True, slots=True, repr=False)
class CleanOptions(OptionValues):
    """Retention and trigger of cleaning.

    Attributes:
        policy: as given; else the policy of the retention option that was given, if exactly one was.
        explicit: newest keys of the options that were given or differ from their defaults.
    """

    automatic: bool = option(
        "hoodie.clean.automatic",
        Kind.BOOL,
        True,
        "Clean after a write when due.",
    )
    asynchronous: bool = option(
        "hoodie.clean.async.enabled",
        Kind.BOOL,
        False,
        "With `hoodie.clean.automatic`: the clean after a write waits until the write has released the table's lock, "
        "so that other writers go on beside it. The call still returns after the clean.",
        aliases=("hoodie.clean.async",),
    )
    before_write: str = option(
        "hoodie.prewrite.cleaner.policy",
        Kind.ENUM,
        "NONE",
        "Before a write: clean, roll back failed writes, or neither.",
        choices=("NONE", "CLEAN", "ROLLBACK_FAILED_WRITES"),
    )
    policy: str = option(
        "hoodie.clean.policy",
        Kind.ENUM,
        "KEEP_LATEST_COMMITS",
        "File slices to retain. Default if exactly one of the three retention options is given: its policy.",
        aliases=("hoodie.cleaner.policy",),
        choices=("KEEP_LATEST_COMMITS", "KEEP_LATEST_FILE_VERSIONS", "KEEP_LATEST_BY_HOURS"),
    )
    commits_retained: int = option(
        "hoodie.clean.commits.retained",
        Kind.INT,
        10,
        "KEEP_LATEST_COMMITS: number of newest commits whose table state stays readable.",
        aliases=("hoodie.cleaner.commits.retained",),
        unit="commits",
        minimum=1,
    )
    hours_retained: int = option(
        "hoodie.clean.hours.retained",
        Kind.INT,
        24,
        "KEEP_LATEST_BY_HOURS: hours for which a table state stays readable.",
        aliases=("hoodie.cleaner.hours.retained",),
        unit="hours",
        minimum=1,
    )
    versions_retained: int = option(
        "hoodie.clean.fileversions.retained",
        Kind.INT,
        3,
        "KEEP_LATEST_FILE_VERSIONS: number of newest file slices to retain per file group.",
        aliases=("hoodie.cleaner.fileversions.retained",),
        unit="file slices",
        minimum=1,
    )
    trigger: str = option(
        "hoodie.clean.trigger.strategy",
        Kind.ENUM,
        "NUM_COMMITS",
        "When a clean is due: after a number of commits.",
        choices=("NUM_COMMITS",),
    )
    trigger_commits: int = option(
        "hoodie.clean.trigger.max.commits",
        Kind.INT,
        1,
        "Commits since the last clean after which the next one is due.",
        aliases=("hoodie.clean.max.commits",),
        unit="commits",
        minimum=1,
    )
    max_commits_to_clean: int | None = option(
        "hoodie.clean.max.commits.to.clean",
        Kind.INT,
        None,
        "Maximum number of commits by which one clean advances the earliest retained commit; unlimited by default.",
        unit="commits",
        minimum=1,
    )
    incremental: bool = option(
        "hoodie.clean.incremental.enabled",
        Kind.BOOL,
        True,
        "Where possible, clean only partitions that were written since the last clean.",
        aliases=("hoodie.cleaner.incremental.mode",),
    )
    partition_regex: str = option(
        "hoodie.clean.partition.filter.regex",
        Kind.TEXT,
        "",
        "Regular expression for the partition paths to clean; requires `hoodie.clean.incremental.enabled=false`.",
        aliases=("hoodie.cleaner.partition.filter.regex",),
    )
    partitions_selected: tuple[str, ...] = option(
        "hoodie.clean.partition.filter.selected",
        Kind.LIST,
        (),
        "Partition paths to clean; requires `hoodie.clean.incremental.enabled=false`.",
        aliases=("hoodie.cleaner.partition.filter.selected",),
    )
    empty_clean_hours: int = option(
        "hoodie.write.empty.clean.interval.hours",
        Kind.INT,
        -1,
        "Hours since the last clean after which a clean is recorded even without files to delete; later incremental "
        "cleans start from it. -1 and 0: never.",
        unit="hours",
        minimum=-1,
    )
    explicit: frozenset[str] = field(default=frozenset(), repr=False, compare=False)

    def __post_init__(self) -> None:
        explicit = self.explicit | normalise_fields(self)
        object.__setattr__(self, "explicit", explicit)
        implied = [policy for key, policy in _POLICY_OF_KEY.items() if key in explicit]
        if _POLICY_KEY not in explicit and len(implied) == 1:
            object.__setattr__(self, "policy", implied[0])
        if self.filters_partitions and self.incremental:
            raise ConfigError(
                "With incremental cleaning, hoodie.clean.partition.filter.regex and .selected would leave the other "
                f"partitions out for good; set {_INCREMENTAL_KEY}=false."
            )
        try:
            re.compile(self.partition_regex)
        except re.error as error:
            raise ConfigError(
                f"hoodie.clean.partition.filter.regex={self.partition_regex!r} is not a valid regular expression: "
                f"{error}."
            ) from error

    @property
    def filters_partitions(self) -> bool:
        """Whether only selected partitions are cleaned."""
        return bool(self.partition_regex or self.partitions_selected)

    @property
    def has_trigger(self) -> bool:
        """Whether a trigger option was given."""
        return not _TRIGGER_KEYS.isdisjoint(self.explicit)


CLEAN_OPTIONS = options_of(CleanOptions)
"""Options of cleaning."""


_STRATEGIES = "org.apache.hudi.table.action.ttl.strategy."

_TTL = "hoodie.partition.ttl."
_DAY_MS = 24 * 3600 * 1000


@dataclass(frozen=True, slots=True, repr=False)
class TtlOptions(OptionValues):
    """Which partitions expire, and whether they are deleted after a write."""

    inline: bool = option(f"{_TTL}inline", Kind.BOOL, False, "Delete expired partitions after a write.")
    days: int = option(
        f"{_TTL}strategy.days.retain",
        Kind.INT,
        -1,
        "A partition expires when its time is more than this many days ago; 0 or less = never.",
        unit="days",
    )
    strategy: str = option(
        f"{_TTL}management.strategy.type",
        Kind.ENUM,
        "KEEP_BY_TIME",
        "Time of a partition: the start of its newest file slice (KEEP_BY_TIME), or its creation.",
        choices=("KEEP_BY_TIME", "KEEP_BY_CREATION_TIME"),
    )
    strategy_class: str | None = option(
        f"{_TTL}strategy.class",
        Kind.TEXT,
        None,
        "Strategy class, instead of the type; user-defined classes are not supported.",
        supported=(f"{_STRATEGIES}KeepByTimeStrategy", f"{_STRATEGIES}KeepByCreationTimeStrategy"),
    )
    selected: tuple[str, ...] = option(
        f"{_TTL}strategy.partition.selected",
        Kind.LIST,
        (),
        "Partition paths that may expire; empty = all.",
    )
    max_partitions: int = option(
        f"{_TTL}strategy.max.delete.partitions",
        Kind.INT,
        1000,
        "Maximum number of partitions to delete at a time, the oldest first.",
        unit="partitions",
        minimum=0,
    )

    def __post_init__(self) -> None:
        normalise_fields(self)

    @property
    def by_creation(self) -> bool:
        """Whether the creation of a partition counts; otherwise its newest file slice."""
        if self.strategy_class is not None:
            return self.strategy_class.endswith("KeepByCreationTimeStrategy")
        return self.strategy == "KEEP_BY_CREATION_TIME"

    @property
    def milliseconds(self) -> int:
        """Time that a partition is kept; 0 or less for ever."""
        return self.days * _DAY_MS


TTL_OPTIONS = options_of(TtlOptions)
"""Options of partition TTL."""
