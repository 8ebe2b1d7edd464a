"""Packages that are installed on demand: extras of hudi-fast."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from hudi_fast.errors import ConfigError

__all__ = ["import_extra"]


def import_extra(module: str, extra: str, what: str) -> Any:
    """A module of a package that is installed on demand.

    Args:
        module: dotted name.
        extra: of hudi-fast that brings it.
        what: what needs it, as the beginning of a sentence.

    Raises:
        ConfigError: it is not installed.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise ConfigError(
            f"{what} needs the package {module.partition('.')[0]}: pip install 'hudi-fast[{extra}]'."
        ) from error
