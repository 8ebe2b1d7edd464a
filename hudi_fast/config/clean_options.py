"""The options of cleaning as one frozen value."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from hudi_fast.config.option_descriptor import Kind
from hudi_fast.config.option_fields import (
    OptionValues,
    normalise_fields,
    option,
    options_of,
)
from hudi_fast.errors import ConfigError

__all__ = ["CLEAN_OPTIONS", "CleanOptions"]


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
