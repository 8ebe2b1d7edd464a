"""The options that all inline table services share, as one frozen value.

Data flow: ``{"hoodie...": ...}`` -> :meth:`ServiceOptions.from_options` -> the services before and after a write. Each
service has options of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

from hudi_fast.config.option_descriptor import Kind
from hudi_fast.config.option_fields import (
    OptionValues,
    normalise_fields,
    option,
    options_of,
)

__all__ = ["SERVICE_OPTIONS", "ServiceOptions"]

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
