"""Base of the option dataclasses of a write and its services: construction from a dictionary of options.

::

    {"hoodie...": ...} ─► written_options ─► {Option: typed value} ─► OptionValues.of: one dataclass of bound fields

Several dataclasses are built from one dictionary; each takes its own options.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from hudi_fast.config.option_fields import differing_repr, given_fields
from hudi_fast.config.options import WRITE, Option, resolve, text_of

__all__ = ["OptionValues", "written_options"]

_PREFIX_KEY = "hoodie.datasource.write.commitmeta.key.prefix"
_EXPLICIT = "explicit"


class OptionValues:
    """Base of frozen dataclasses whose fields are bound to options.

    A field ``explicit``, if present, holds the newest keys of the given options.
    """

    __slots__ = ()

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> Self:
        """Resolve a dictionary of write options; options of other dataclasses are ignored.

        Raises:
            ConfigError: a key or value is invalid, or options contradict each other.
            UnsupportedFeatureError: an option requests an unsupported feature.

        Warns:
            HudiWarning: an unknown ``hoodie.`` key.
        """
        return cls.of(written_options(options))

    @classmethod
    def of(cls, values: Mapping[Option, Any]) -> Self:
        """Build from resolved options; options of other dataclasses are ignored.

        Raises:
            ConfigError: options contradict each other.
        """
        given: dict[str, Any] = given_fields(cls, values)
        if hasattr(cls, _EXPLICIT):
            given[_EXPLICIT] = frozenset(option.key for option in values)
        return cls(**given)

    def __repr__(self) -> str:
        return differing_repr(self)


def written_options(options: Mapping[str, Any]) -> dict[Option, Any]:
    """Typed values of the given write options.

    Raises:
        ConfigError: a key or value is invalid.
        UnsupportedFeatureError: an option requests an unsupported feature.

    Warns:
        HudiWarning: an unknown ``hoodie.`` key.
    """
    return resolve(options, WRITE[0], free_prefix=text_of(_PREFIX_KEY, options.get(_PREFIX_KEY, "_")))
