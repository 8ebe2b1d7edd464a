"""Tables that were saved under a name: what the session remembers of them, as one of its settings.

::

    setting hudi_fast.accelerate.tables ─► {name: NamedTable} ─► the same, changed

As the mark of the session it goes where the session goes, and ends with it.
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
        view: ``DataFrame.semanticHash`` of that view, by which it is known from others; None when there is no view.
    """

    path: str
    seen: str
    view: int | None


def named_tables(spark: Any) -> dict[str, NamedTable]:
    """The tables that have a name in a session, by name."""
    text: str | None = spark.conf.get(_SETTING, None)
    if text is None:
        return {}
    return {name: NamedTable(**said) for name, said in json.loads(text).items()}


def keep_names(spark: Any, names: Mapping[str, NamedTable]) -> None:
    """Let the session remember these instead."""
    if names:
        spark.conf.set(_SETTING, json.dumps({name: asdict(table) for name, table in names.items()}))
    else:
        spark.conf.unset(_SETTING)


def table_name(said: Any, case_sensitive: bool) -> str:
    """The name of a table as Spark takes it: letters, digits, underscores; small where the case means nothing.

    Args:
        said: what ``saveAsTable`` was given.
        case_sensitive: the session's ``spark.sql.caseSensitive``.

    Raises:
        ConfigError: no name.
        UnsupportedFeatureError: the name has a database or a catalogue before it.
    """
    text = str(said).strip()
    if _QUALIFIED.fullmatch(text):
        raise UnsupportedFeatureError(
            f"saveAsTable({text!r}): names with a database or a catalogue are not supported, for that would need a "
            "catalogue that knows Hudi; here a name is one of the session. Leave the database out."
        )
    bare = text[1:-1] if len(text) > 2 and text[0] == text[-1] == "`" else text
    if not _NAME.fullmatch(bare):
        raise ConfigError(
            f"saveAsTable({text!r}): not a name of a table, which consists of letters, digits and underscores."
        )
    return bare if case_sensitive else bare.lower()
