"""Named tables of a session, stored in one session setting.

::

    setting hudi_fast.accelerate.tables ─► {name: NamedTable} ─► the same, changed

The setting is shared by all Python objects and clones of the session, and ends with it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from hudi_fast.errors import ConfigError, UnsupportedFeatureError

__all__ = ["NamedTable", "keep_names", "named_tables", "table_name"]

_SETTING = "hudi_fast.accelerate.tables"
_NAME = re.compile(r"[A-Za-z0-9_]*[A-Za-z_][A-Za-z0-9_]*")
_QUALIFIED = re.compile(r"(?:`[^`]*`|[^`.]+)(?:\.(?:`[^`]*`|[^`.]+))+")


@dataclass(frozen=True, slots=True)
class NamedTable:
    """A table that has a name in a session.

    Attributes:
        path: base path.
        seen: the state of the table that the view of that name shows, see :mod:`hudi_fast.spark.dropin.views`.
        view: ``DataFrame.semanticHash`` of that view, which identifies it; None without a view.
    """

    path: str
    seen: str
    view: int | None


def named_tables(spark: Any) -> dict[str, NamedTable]:
    """The named tables of a session, by name."""
    text: str | None = spark.conf.get(_SETTING, None)
    if text is None:
        return {}
    return {name: NamedTable(**said) for name, said in json.loads(text).items()}


def keep_names(spark: Any, names: Mapping[str, NamedTable]) -> None:
    """Replace the named tables of the session."""
    if names:
        spark.conf.set(_SETTING, json.dumps({name: asdict(table) for name, table in names.items()}))
    else:
        spark.conf.unset(_SETTING)


def table_name(said: Any, case_sensitive: bool) -> str:
    """A valid Spark table name: letters, digits, underscores; in lower case unless Spark is case-sensitive.

    Args:
        said: the argument of ``saveAsTable``.
        case_sensitive: the session's ``spark.sql.caseSensitive``.

    Raises:
        ConfigError: not a valid name.
        UnsupportedFeatureError: the name includes a database or a catalogue.
    """
    text = str(said).strip()
    if _QUALIFIED.fullmatch(text):
        raise UnsupportedFeatureError(
            f"saveAsTable({text!r}): names with a database or a catalogue are not supported, because they need a "
            "catalogue that knows Hudi; hudi_fast keeps names in the session only. Leave the database out."
        )
    bare = text[1:-1] if len(text) > 2 and text[0] == text[-1] == "`" else text
    if not _NAME.fullmatch(bare):
        raise ConfigError(f"saveAsTable({text!r}): not a table name; use letters, digits and underscores.")
    return bare if case_sensitive else bare.lower()
