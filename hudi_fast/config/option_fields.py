"""Dataclass fields that are bound to an :class:`Option`, and a short ``repr`` for such dataclasses.

A field made by :func:`option_field` takes its default from the registry. Its option parses and range-checks the value,
whether the value is given in a dictionary of options or to the constructor.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from hudi_fast.config.options import Option, find_option
from hudi_fast.errors import ConfigError

__all__ = ["differing_repr", "given_fields", "normalise_fields", "option_field", "option_of_field"]


def option_field(key: str, secret: bool = False) -> Any:
    """A dataclass field bound to the option ``key``; typed ``Any`` to accept every annotation.

    The ``repr`` hides the value of a ``secret`` field.
    """
    option = find_option(key)
    if option is None:
        raise ConfigError(f"Unknown option {key}.")
    return dataclasses.field(default=option.default, repr=not secret, metadata={"option": option})


def option_of_field(field: dataclasses.Field[Any]) -> Option | None:
    """The option that a field is bound to, or None."""
    option = field.metadata.get("option")
    return option if isinstance(option, Option) else None


_known: dict[type[Any], dict[Option, str]] = {}


def _bound(cls: type[Any]) -> dict[Option, str]:
    """The options that fields of a class are bound to, and the names of the fields."""
    found = _known.get(cls)
    if found is None:
        bound = ((option_of_field(field), field.name) for field in dataclasses.fields(cls))
        found = _known[cls] = {option: name for option, name in bound if option is not None}
    return found


def given_fields(cls: type[Any], values: Mapping[Option, Any]) -> dict[str, Any]:
    """Resolved values by field name, for the options that fields of ``cls`` are bound to."""
    bound = _bound(cls)
    return {bound[option]: value for option, value in values.items() if option in bound}


def normalise_fields(instance: Any) -> frozenset[str]:
    """Parse and check the bound fields of a frozen dataclass under construction.

    Returns:
        Keys of the options whose value differs from the default.

    Raises:
        ConfigError: an invalid value.
        UnsupportedFeatureError: an unsupported value.
    """
    keys = set()
    for option, name in _bound(type(instance)).items():
        value = getattr(instance, name)
        if value != option.default:
            parsed = option.parse(value)
            option.check_supported(parsed)
            object.__setattr__(instance, name, parsed)
            if parsed != option.default:
                keys.add(option.key)
    return frozenset(keys)


def differing_repr(instance: Any) -> str:
    """``Name(field=value, ...)`` with only the fields that differ from their defaults."""
    shown = []
    for field in dataclasses.fields(instance):
        default = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
        value = getattr(instance, field.name)
        if field.repr and value != default:
            shown.append(f"{field.name}={value!r}")
    return f"{type(instance).__name__}({', '.join(shown)})"
