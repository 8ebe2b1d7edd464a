"""The options that all table services beside a write share, as one frozen value.

Data flow: ``{"hoodie...": ...}`` -> :meth:`ServiceOptions.from_options` -> what runs before and after a write. What a
service does is told by options of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

from hudi_fast.config.option_fields import normalise_fields, option_field
from hudi_fast.config.option_values import OptionValues

__all__ = ["ServiceOptions"]


@dataclass(frozen=True, slots=True, repr=False)
class ServiceOptions(OptionValues):
    """Whether services run beside a write, and what becomes of the call when one fails."""

    enabled: bool = option_field("hoodie.table.services.enabled")
    fail_writes: bool = option_field("hoodie.fail.writes.on.inline.table.service.exception")
    ignore_failures: bool = option_field("hoodie.write.can.ignore.post.commit.failures")

    def __post_init__(self) -> None:
        normalise_fields(self)

    @property
    def failures_count(self) -> bool:
        """Whether a service that fails after a write fails the call; otherwise it is a warning."""
        return self.fail_writes and not self.ignore_failures
