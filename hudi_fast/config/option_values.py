"""What the option dataclasses of a write and of its services have in common: how they are made of a dictionary.

::

    {"hoodie...": ...} ─► written_options ─► values by option ─► OptionValues.of: the fields that are bound to them

One dictionary makes several of these values, each of the options that are its own.
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

    A field ``explicit``, where there is one, gets the newest keys of the options that were given.
    """

    __slots__ = ()

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> Self:
        """Resolve a dictionary of options; all that a write takes are fine.

        Raises:
            ConfigError: a key or value is wrong, or options contradict each other.
            UnsupportedFeatureError: an option asks for something that hudi_fast does not do.

        Warns:
            HudiWarning: an unknown ``hoodie.`` key.
        """
        return cls.of(written_options(options))

    @classmethod
    def of(cls, values: Mapping[Option, Any]) -> Self:
        """From options that are resolved already; those of others are fine.

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
    """Typed values of the options of a write that were given.

    Raises:
        ConfigError: a key or value is wrong.
        UnsupportedFeatureError: an option asks for something that hudi_fast does not do.

    Warns:
        HudiWarning: an unknown ``hoodie.`` key.
    """
    return resolve(options, WRITE[0], free_prefix=text_of(_PREFIX_KEY, options.get(_PREFIX_KEY, "_")))
