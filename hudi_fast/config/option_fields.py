"""Dataclass fields that declare options, and the construction of such dataclasses.

::

    codec: str = option("hoodie.parquet.compression.codec", Kind.ENUM, "zstd", "Codec of ...", choices=...)

The field has the default of its option. The option parses and range-checks the value, whether the value is given in a
dictionary of options or to the constructor.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Self

from hudi_fast.config.option_descriptor import Kind, Option

__all__ = [
    "OptionValues",
    "bound",
    "differing_keys",
    "differing_repr",
    "given_fields",
    "normalise_fields",
    "option",
    "option_of_field",
    "options_of",
    "same_option",
]

_EXPLICIT = "explicit"
_SHARED = "shared"


# ---- declaration


def option(key: str, kind: Kind, default: Any, doc: str, *, secret: bool = False, **more: Any) -> Any:
    """A dataclass field that declares an option; typed ``Any`` to accept every annotation.

    Args:
        key: spelling in the newest Hudi release.
        kind: type of the value.
        default: typed value if the key is absent; None if absence has a meaning of its own.
        doc: effect of the option, as shown in docs/options.md.
        secret: whether the ``repr`` hides the value.
        more: further attributes of :class:`Option`.
    """
    return bound(Option(key, kind, default, doc, **more), secret)


def bound(declared: Option, secret: bool = False) -> Any:
    """A dataclass field for an option that is declared elsewhere in its module."""
    return dataclasses.field(default=declared.default, repr=not secret, metadata={"option": declared})


def same_option(cls: type[Any], name: str) -> Any:
    """A dataclass field for an option that a field of another class declares."""
    found = {field.name: field for field in dataclasses.fields(cls)}[name]
    return dataclasses.field(default=found.default, metadata={**found.metadata, _SHARED: True})


def option_of_field(field: dataclasses.Field[Any]) -> Option | None:
    """The option that a field declares, or None."""
    found = field.metadata.get("option")
    return found if isinstance(found, Option) else None


def options_of(cls: type[Any]) -> tuple[Option, ...]:
    """The options that a class declares, in the order of its fields; without options of other classes."""
    fields = [field for field in dataclasses.fields(cls) if _SHARED not in field.metadata]
    return tuple(filter(None, map(option_of_field, fields)))


# ---- values


_known: dict[type[Any], dict[Option, str]] = {}


def _bound(cls: type[Any]) -> dict[Option, str]:
    """The options that fields of a class declare, and the names of the fields."""
    found = _known.get(cls)
    if found is None:
        named = ((option_of_field(field), field.name) for field in dataclasses.fields(cls))
        found = _known[cls] = {declared: name for declared, name in named if declared is not None}
    return found


def given_fields(cls: type[Any], values: Mapping[Option, Any]) -> dict[str, Any]:
    """Resolved values by field name, for the options that fields of ``cls`` declare."""
    named = _bound(cls)
    return {named[declared]: value for declared, value in values.items() if declared in named}


def normalise_fields(instance: Any) -> frozenset[str]:
    """Parse and check the fields of a frozen dataclass under construction.

    Returns:
        Keys of the options whose value differs from the default.

    Raises:
        ConfigError: an invalid value.
        UnsupportedFeatureError: an unsupported value.
    """
    keys = set()
    for declared, name in _bound(type(instance)).items():
        value = getattr(instance, name)
        if value != declared.default:
            parsed = declared.parse(value)
            declared.check_supported(parsed)
            object.__setattr__(instance, name, parsed)
            if parsed != declared.default:
                keys.add(declared.key)
    return frozenset(keys)


def differing_keys(instance: Any) -> frozenset[str]:
    """Keys of the options whose value differs from the default."""
    return frozenset(
        declared.key for declared, name in _bound(type(instance)).items() if getattr(instance, name) != declared.default
    )


def differing_repr(instance: Any) -> str:
    """``Name(field=value, ...)`` with only the fields that differ from their defaults."""
    shown = []
    for field in dataclasses.fields(instance):
        default = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
        value = getattr(instance, field.name)
        if field.repr and value != default:
            shown.append(f"{field.name}={value!r}")
    return f"{type(instance).__name__}({', '.join(shown)})"


class OptionValues:
    """Base of frozen dataclasses whose fields declare options.

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
        from hudi_fast.config.options import written_options  # it imports all classes of options

        return cls.of(written_options(options))

    @classmethod
    def of(cls, values: Mapping[Option, Any]) -> Self:
        """Build from resolved options; options of other dataclasses are ignored.

        Raises:
            ConfigError: options contradict each other.
        """
        given: dict[str, Any] = given_fields(cls, values)
        if hasattr(cls, _EXPLICIT):
            given[_EXPLICIT] = frozenset(declared.key for declared in values)
        return cls(**given)

    def __post_init__(self) -> None:
        normalise_fields(self)

    def __repr__(self) -> str:
        return differing_repr(self)
