"""The options that all inline table services share, as one frozen value.

Data flow: ``{"hoodie...": ...}`` -> :meth:`ServiceOptions.from_options` -> the services before and after a write. Each
service has options of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

from hudi_fast.config.option_fields import normalise_fields, option_field
from hudi_fast.config.option_values import OptionValues

__all__ = ["ServiceOptions"]


@dataclass(frozen=True, slots=True, repr=False)
class ServiceOptions(OptionValues):
    """Whether inline services run, and whether a failing service fails the call."""

    enabled: bool = option_field("hoodie.table.services.enabled")
    fail_writes: bool = option_field("hoodie.fail.writes.on.inline.table.service.exception")
    ignore_failures: bool = option_field("hoodie.write.can.ignore.post.commit.failures")

    def __post_init__(self) -> None:
        normalise_fields(self)

    @property
    def failures_raise(self) -> bool:
        """Whether a service that fails after a write raises an error; otherwise it warns."""
        return self.fail_writes and not self.ignore_failures
