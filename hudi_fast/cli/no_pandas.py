"""Keeps pandas out of commands: Arrow imports it with its first array of Python values, which takes long."""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from typing import Any

__all__ = ["allow_pandas", "refuse_pandas"]


class _NoPandas(MetaPathFinder):
    """Answers that pandas is not installed."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> None:
        """Refuse pandas; leave other modules to other finders."""
        if fullname == "pandas":
            raise ModuleNotFoundError("No command needs pandas.", name=fullname)


def refuse_pandas() -> None:
    """Answer that pandas is not installed."""
    sys.meta_path.insert(0, _NoPandas())


def allow_pandas() -> None:
    """Find pandas again: PySpark needs it."""
    sys.meta_path[:] = [one for one in sys.meta_path if not isinstance(one, _NoPandas)]
