"""The package pylance, which tables with Lance files need."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from hudi_fast.storage.extras import import_extra

__all__ = ["lance_files", "require_lance"]

_WHAT = "A table with Lance base files"


def lance_files() -> Any:
    """The module of single Lance files.

    Raises:
        ConfigError: pylance is not installed.
    """
    return import_extra("lance.file", "lance", _WHAT)


def require_lance() -> None:
    """Check that pylance is installed, without loading it.

    Raises:
        ConfigError: it is not.
    """
    if find_spec("lance") is None:
        lance_files()
