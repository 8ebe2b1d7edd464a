"""Options that Spark passes to Python data sources: keys in lower case, Spark's own options included."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hudi_fast.config.options import OPTIONS
from hudi_fast.errors import ConfigError

__all__ = ["base_path", "hudi_options"]

_PREFIXES = ("hoodie.", "_hoodie.", "hudi_fast.", "fs.s3a.", "_")


def hudi_options(given: Mapping[str, str]) -> dict[str, Any]:
    """hudi_fast's options with canonical keys; without ``path`` and Spark's own.

    Args:
        given: keys in lower case.
    """
    spelt = {key.lower(): key for option in OPTIONS for key in option.keys}
    named = {spelt.get(key.lower(), key): value for key, value in given.items()}
    return {key: value for key, value in named.items() if key in _NAMED or key.startswith(_PREFIXES)}


def base_path(given: Mapping[str, str]) -> str:
    """The table's path.

    Raises:
        ConfigError: no path given.
    """
    path = given.get("path") or given.get("hoodie.base.path")
    if not path:
        raise ConfigError('format("hudi_fast") needs the base path of a table: load(path), save(path) or start(path).')
    return path


_NAMED = frozenset({"as.of.instant"})
