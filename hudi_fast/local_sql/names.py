"""Resolves names in a statement without a catalog: to Hudi tables, and to rows of the program."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from hudi_fast.arrow_input import to_arrow_table
from hudi_fast.errors import ConfigError
from hudi_fast.sql_text.cursor import Cursor
from hudi_fast.table import HudiTable

__all__ = ["Tables", "name_parts"]


class Tables:
    """The tables of a statement.

    Args:
        given: name -> path, HudiTable, or rows.
        storage_options: how to reach paths.

    Raises:
        ConfigError: ``given`` is not a mapping, or has two names that differ only in upper and lower case.
    """

    def __init__(self, given: Mapping[str, Any] | None, storage_options: Mapping[str, Any] | None) -> None:
        if given is not None and not isinstance(given, Mapping):
            raise ConfigError(f"tables is a mapping from names to paths or tables; got {type(given).__name__}.")
        self._given = {name.lower(): value for name, value in (given or {}).items()}
        if len(self._given) != len(given or {}):
            raise ConfigError(f"tables has names that differ only in upper and lower case: {sorted(given or {})}.")
        self._storage_options = storage_options

    def find(self, parts: Sequence[str]) -> HudiTable | pa.Table:
        """The Hudi table, or the rows, of a name.

        Args:
            parts: of the name: a given name, a path, or ``hudi`` and a path.

        Raises:
            ConfigError: nothing has that name.
            TableNotFoundError: there is no table at the path.
        """
        name = ".".join(parts)
        if name.lower() in self._given:
            value = self._given[name.lower()]
            if isinstance(value, HudiTable):
                return value
            return self._open(value) if isinstance(value, str | os.PathLike) else to_arrow_table(value)
        if len(parts) == 2 and parts[0].lower() == "hudi":
            return self._open(parts[1])
        if len(parts) == 1 and "/" in name:
            return self._open(name)
        known = f" Known are {', '.join(sorted(self._given))}." if self._given else ""
        raise ConfigError(
            f"There is no table {name}.{known} Pass it, as tables={{{parts[-1]!r}: path}}, or write its path in "
            "back-ticks."
        )

    def table(self, parts: Sequence[str]) -> HudiTable:
        """The Hudi table of a name.

        Raises:
            ConfigError: the name belongs to rows, or is unknown.
            TableNotFoundError: there is no table at the path.
        """
        found = self.find(parts)
        if not isinstance(found, HudiTable):
            raise ConfigError(f"{'.'.join(parts)} is not a Hudi table: it has rows of the program.")
        return found

    def said(self, text: str) -> HudiTable:
        """The Hudi table that an argument of a procedure names: ``db.t``, or a path."""
        return self.table(name_parts(text))

    def _open(self, path: str | os.PathLike[str]) -> HudiTable:
        return HudiTable.open(path, self._storage_options)


def name_parts(text: str) -> Sequence[str]:
    """Parts of the name that an argument gives: ``db.t``, or a path."""
    return (text,) if "/" in text else Cursor(text).name().parts
