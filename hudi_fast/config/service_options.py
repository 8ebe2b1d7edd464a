"""The options that all table services beside a write share, as one frozen value.

Data flow: ``{"hoodie...": ...}`` -> :meth:`ServiceOptions.from_options` -> what runs before and after a write. What a
service does is told by options of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hudi_fast.config.option_fields import differing_repr, given_fields, normalise_fields, option_field
from hudi_fast.config.options import WRITE, resolve, text_of

__all__ = ["ServiceOptions"]

_PREFIX_KEY = "hoodie.datasource.write.commitmeta.key.prefix"


@dataclass(frozen=True, slots=True, repr=False)
class ServiceOptions:
    """Whether services run beside a write, and what becomes of the call when one fails."""

    enabled: bool = option_field("hoodie.table.services.enabled")
    fail_writes: bool = option_field("hoodie.fail.writes.on.inline.table.service.exception")
    ignore_failures: bool = option_field("hoodie.write.can.ignore.post.commit.failures")

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> ServiceOptions:
        """Resolve a dictionary of options; those that a write takes are fine.

        Raises:
            ConfigError: a key or value is wrong.

        Warns:
            HudiWarning: an unknown ``hoodie.`` key.
        """
        values = resolve(options, WRITE[0], free_prefix=text_of(_PREFIX_KEY, options.get(_PREFIX_KEY, "_")))
        given: dict[str, Any] = given_fields(cls, values)
        return cls(**given)

    def __post_init__(self) -> None:
        normalise_fields(self)

    def __repr__(self) -> str:
        return differing_repr(self)

    @property
    def failures_count(self) -> bool:
        """Whether a service that fails after a write fails the call; otherwise it is a warning."""
        return self.fail_writes and not self.ignore_failures
