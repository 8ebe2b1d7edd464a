"""What the option dataclasses share: fields that are bound to an :class:`Option`, and a short ``repr``.

A field made by :func:`option_field` takes its default from the registry and is parsed and range-checked by its option,
whether the value came from a dictionary of options or from the constructor.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from hudi_fast.config.options import Option, find_option
from hudi_fast.errors import ConfigError

__all__ = ["differing_repr", "given_fields", "normalise_fields", "option_field", "option_of_field"]


def option_field(key: str, secret: bool = False) -> Any:
    """A dataclass field bound to the option of that key; ``Any``, so that the field's annotation is what counts.

    The value of a secret one is not shown.
    """
    option = find_option(key)
    if option is None:
        raise ConfigError(f"There is no option {key}.")
    return dataclasses.field(default=option.default, repr=not secret, metadata={"option": option})


def option_of_field(field: dataclasses.Field[Any]) -> Option | None:
    """The option a field is bound to, or None."""
    option = field.metadata.get("option")
    return option if isinstance(option, Option) else None


def given_fields(cls: type[Any], values: Mapping[Option, Any]) -> dict[str, Any]:
    """Resolved values by the names of the fields of ``cls`` that are bound to them."""
    bound = {option_of_field(field): field.name for field in dataclasses.fields(cls)}
    return {bound[option]: value for option, value in values.items() if option in bound}


def normalise_fields(instance: Any) -> frozenset[str]:
    """Parse and check the bound fields of a frozen dataclass under construction.

    Returns:
        The keys of the options whose value is not the default.

    Raises:
        ConfigError: a value that means nothing.
        UnsupportedFeatureError: a value that hudi_fast does not do.
    """
    keys = set()
    for field in dataclasses.fields(instance):
        option, value = option_of_field(field), getattr(instance, field.name)
        if option is not None and value != option.default:
            parsed = option.parse(value)
            option.check_supported(parsed)
            object.__setattr__(instance, field.name, parsed)
            if parsed != option.default:
                keys.add(option.key)
    return frozenset(keys)


def differing_repr(instance: Any) -> str:
    """``Name(field=value, ...)`` with the fields alone that differ from their defaults."""
    shown = []
    for field in dataclasses.fields(instance):
        default = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
        value = getattr(instance, field.name)
        if field.repr and value != default:
            shown.append(f"{field.name}={value!r}")
    return f"{type(instance).__name__}({', '.join(shown)})"
