"""The options of cleaning as one frozen value."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from hudi_fast.config.option_fields import normalise_fields, option_field
from hudi_fast.config.option_values import OptionValues
from hudi_fast.errors import ConfigError

__all__ = ["CleanOptions"]

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

    automatic: bool = option_field("hoodie.clean.automatic")
    asynchronous: bool = option_field("hoodie.clean.async.enabled")
    before_write: str = option_field("hoodie.prewrite.cleaner.policy")
    policy: str = option_field(_POLICY_KEY)
    commits_retained: int = option_field("hoodie.clean.commits.retained")
    hours_retained: int = option_field("hoodie.clean.hours.retained")
    versions_retained: int = option_field("hoodie.clean.fileversions.retained")
    trigger: str = option_field("hoodie.clean.trigger.strategy")
    trigger_commits: int = option_field("hoodie.clean.trigger.max.commits")
    max_commits_to_clean: int | None = option_field("hoodie.clean.max.commits.to.clean")
    incremental: bool = option_field(_INCREMENTAL_KEY)
    partition_regex: str = option_field("hoodie.clean.partition.filter.regex")
    partitions_selected: tuple[str, ...] = option_field("hoodie.clean.partition.filter.selected")
    empty_clean_hours: int = option_field("hoodie.write.empty.clean.interval.hours")
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
