"""Optional dependencies: extras of hudi-fast."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from hudi_fast.errors import ConfigError

__all__ = ["import_extra"]


def import_extra(module: str, extra: str, what: str) -> Any:
    """Import a module of an optional dependency.

    Args:
        module: dotted name.
        extra: the extra of hudi-fast that installs it.
        what: the feature that requires it, as the beginning of a sentence.

    Raises:
        ConfigError: the package is not installed.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise ConfigError(
            f"{what} requires the package {module.partition('.')[0]}: pip install 'hudi-fast[{extra}]'."
        ) from error
