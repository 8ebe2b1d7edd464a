"""Properties of a table that its users set: keys of their own, and the few of Hudi on which no stored file depends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hudi_fast.config.option_descriptor import text_of
from hudi_fast.config.options import find_option
from hudi_fast.errors import ConfigError

__all__ = ["checked_properties", "own_properties"]

_OF_HUDI = ("hoodie.", "hudi_fast.")
_SETTABLE = ("hoodie.database.name", "hoodie.table.partition_extractor_class")
_DESCRIBING = ("hoodie.table.", "hoodie.timeline.", "hoodie.populate.", "hoodie.archivelog.", "hoodie.index.defs.")


def own_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties among those of a table that :func:`checked_properties` allows."""
    return {key: value for key, value in properties.items() if _is_own(key)}


def checked_properties(changes: Mapping[str, Any]) -> dict[str, str | None]:
    """Changes of properties as they are stored: a value as text, None for a key that is removed.

    Args:
        changes: key to a text, a boolean, a number, a list of names, or None.

    Raises:
        ConfigError: a key belongs to Hudi or hudi_fast, or is empty; a value has another type.
    """
    if not isinstance(changes, Mapping):
        raise ConfigError(f"Properties are a dict of keys and values; got {type(changes).__name__}.")
    found: dict[str, str | None] = {}
    for given, raw in changes.items():
        if not isinstance(given, str) or not (key := given.strip()):
            raise ConfigError(f"The key of a property is a text that is not blank; got {given!r}.")
        if not _is_own(key):
            raise ConfigError(_refusal(key))
        found[key] = None if raw is None else text_of(key, raw)
    return found


def _is_own(key: str) -> bool:
    return key in _SETTABLE or not key.startswith(_OF_HUDI)


def _refusal(key: str) -> str:
    allowed = f"Set keys of your own, or {' or '.join(_SETTABLE)}."
    if key.startswith(_DESCRIBING):
        return f"{key} describes how the files of the table are stored, so it cannot be set afterwards. {allowed}"
    if find_option(key) is not None:
        return f"{key} is an option of calls, not of a table: pass it as options= of the write or service. {allowed}"
    return f"{key} cannot be set: keys that begin with {' or '.join(_OF_HUDI)} belong to the format. {allowed}"
