"""Names that a session defines: temporary views over Hudi tables, and on Spark Connect saved tables.

::

    setting hudi_fast.accelerate.names ─► {name: Definition} ─► the same, changed

Spark has a temporary view of the same name, so that its catalog lists the name. hudi_fast answers queries from the
definition, with the rows of the table at that time. If a program replaces that view, queries use the new view.
The setting is shared by all Python objects and clones of the session, and ends with it.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from hudi_fast.spark.session import as_it_was
from hudi_fast.values import dataclass

__all__ = ["Definition", "define", "defined", "drop_names"]

_SETTING = "hudi_fast.accelerate.names"
_LOCK = threading.Lock()


@dataclass(frozen=True, slots=True)
class Definition:
    """The meaning of a name: a table, or the query of a view.

    Attributes:
        path: base path of a table; empty for a query.
        query: text of a view; empty for a table.
        database: the database of unqualified names in ``query``.
        view: ``DataFrame.semanticHash`` of the temporary view in the session, which identifies it.
    """

    path: str
    query: str
    database: str
    view: int = 0


def define(spark: Any, name: str, definition: Definition, frame: Any, replace: bool = True) -> None:
    """Define a name, and create its temporary view.

    Args:
        spark: the session.
        name: one identifier.
        definition: what it means.
        frame: rows of the temporary view.
        replace: False to raise Spark's error where there is a view of that name.
    """
    (frame.createOrReplaceTempView if replace else frame.createTempView)(name)
    with _LOCK:
        said = Definition(definition.path, definition.query, definition.database, _hash(spark, name))
        _keep(spark, {**_names(spark), name.lower(): said})


def defined(spark: Any, name: str) -> Definition | None:
    """The definition; None without one, or if another view has replaced it."""
    found = _names(spark).get(name.lower())
    if found is None or not spark.catalog.tableExists(name) or _hash(spark, name) != found.view:
        return None
    return found


def drop_names(spark: Any) -> None:
    """Remove all names of a session, and their temporary views."""
    with _LOCK:
        for name in _names(spark):
            if defined(spark, name) is not None:
                spark.catalog.dropTempView(name)
        _keep(spark, {})


def _names(spark: Any) -> dict[str, Definition]:
    text: str | None = spark.conf.get(_SETTING, None)
    return {} if text is None else {name: Definition(**said) for name, said in json.loads(text).items()}


def _keep(spark: Any, names: Mapping[str, Definition]) -> None:
    if names:
        spark.conf.set(_SETTING, json.dumps({name: asdict(one) for name, one in names.items()}))
    else:
        spark.conf.unset(_SETTING)


def _hash(spark: Any, name: str) -> int:
    reader = spark.read
    return int(as_it_was(type(reader).table)(reader, name).semanticHash())
