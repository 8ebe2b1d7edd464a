"""``saveAsTable``: writes a table to its path and registers its name in the session.

::

    name, mode ─► name free, ours or foreign? ─► path: the option, the name's, the database's folder
                              hudi_fast.write ◄────────┘ └──────► view of that name (views.py)

Save modes are those of Spark's ``saveAsTable``. They check for a table of that name and, because names end with the
session, also for a table at the path.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from posixpath import isabs
from typing import Any
from urllib.parse import urlparse

from hudi_fast.api import write
from hudi_fast.config.properties_file import load_properties
from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import ConfigError, HudiWarning, TableExistsError, TableNotFoundError, UnsupportedFeatureError
from hudi_fast.spark.dropin.actions import frame_of, own_path, session_of
from hudi_fast.spark.dropin.calls import Request
from hudi_fast.spark.dropin.names import NamedTable, named_tables, table_name
from hudi_fast.spark.dropin.session import FALLBACK, mark_of
from hudi_fast.spark.dropin.translate import save_mode, table_path, write_options
from hudi_fast.spark.dropin.views import known_table, name_table
from hudi_fast.spark.storage import split_options, storage_of
from hudi_fast.storage.base import Storage
from hudi_fast.storage.places import normal_uri

__all__ = ["save_table"]

_NAME_KEY = "hoodie.table.name"
_SHORT = {
    "primarykey": "hoodie.datasource.write.recordkey.field",
    "type": "hoodie.datasource.write.table.type",
    "orderingfields": "hoodie.datasource.write.precombine.field",
    "precombinefield": "hoodie.datasource.write.precombine.field",
    "payloadclass": "hoodie.datasource.write.payload.class",
    "recordmergemode": "hoodie.write.record.merge.mode",
    "recordmergestrategyid": "hoodie.write.record.merge.strategy.id",
}
"""Short keys of ``CREATE TABLE`` and ``saveAsTable`` (``HoodieOptionConfig`` of Hudi 1.2.0)."""
_TYPES = {"cow": "COPY_ON_WRITE", "mor": "MERGE_ON_READ"}


def save_table(made_of: tuple[Any, ...], request: Request) -> None:
    """``df.write.format("hudi")...saveAsTable(name)``.

    Raises:
        ConfigError: invalid name, name of another table or view, or a path that differs from the named table's.
        TableExistsError: the table exists and the mode is ``errorifexists``.
        UnsupportedFeatureError: a name with a database; with fallback on, a catalogue that knows Hudi.
        HudiError: as :func:`hudi_fast.write`.

    Warns:
        HudiWarning: for the first name of the session: names end with the session.
    """
    spark = session_of(made_of)
    _leave_to_catalogue(spark)
    request = replace(request, options=_long_keys(request.options))
    name = table_name(request.table, str(spark.conf.get("spark.sql.caseSensitive", "false")).lower() == "true")
    mode = save_mode(request.mode)
    known = known_table(spark, name)
    if _nothing_to_do(spark, name, mode, known):
        return
    path = _path_of(spark, name, request, known if mode == "append" else None)
    options, storage = split_options(write_options(request))
    options.setdefault(_NAME_KEY, _stored_name(storage_of(spark, path, storage)) or name)
    write(frame_of(made_of), path, options, mode, storage)
    first = not named_tables(spark)
    name_table(spark, name, path)
    if first:
        warnings.warn(
            f"The name {name} lives as long as this session, as a temporary view; the table is {path}.",
            HudiWarning,
            stacklevel=3,
        )


def _long_keys(options: Mapping[str, tuple[str, str]]) -> dict[str, tuple[str, str]]:
    """Replace short keys by long ones; a given long key wins over its short one."""
    long = {}
    for key, (_, value) in options.items():
        if key in _SHORT:
            long[_SHORT[key]] = (_SHORT[key], _TYPES.get(value.lower(), value) if key == "type" else value)
    return long | {key: said for key, said in options.items() if key not in _SHORT}


def _leave_to_catalogue(spark: Any) -> None:
    """Refuse names in a session with fallback and Apache Hudi's catalogue, which keeps its tables for all sessions."""
    catalogue = str(spark.conf.get("spark.sql.catalog.spark_catalog", ""))
    if mark_of(spark) == FALLBACK and catalogue.endswith("HoodieCatalog"):
        raise UnsupportedFeatureError(
            f"Writing by name into a catalogue that knows Hudi ({catalogue}) is not supported; save(path) is."
        )


def _nothing_to_do(spark: Any, name: str, mode: str, known: NamedTable | None) -> bool:
    """Whether mode ``ignore`` skips the write; raises where the mode or the existing table forbids it."""
    if known is not None:
        if mode == "errorifexists":
            raise TableExistsError(
                f"There is a table {name} in this session ({known.path}), and the mode is errorifexists: use mode "
                "append, overwrite or ignore."
            )
        return mode == "ignore"
    if not spark.catalog.tableExists(name):
        return False
    temporary = spark.catalog.getTable(name).isTemporary
    if mode == "ignore" and not temporary:
        return True
    kind = "temporary view" if temporary else "table or view in the session's catalogue"
    raise ConfigError(
        f"saveAsTable({name!r}): there is a {kind} of that name that is not a Hudi table saved in this session. Drop "
        "it or use another name."
    )


def _path_of(spark: Any, name: str, request: Request, known: NamedTable | None) -> str:
    """Path of the table; ``known`` is the existing table of that name."""
    if "path" not in request.options:
        return normal_uri(_in_database(spark, name)) if known is None else known.path
    said = table_path(request, "saveAsTable()")
    absolute = bool(urlparse(said).scheme) or isabs(said)
    path = normal_uri(own_path(spark, said) if absolute else _in_database(spark, said))
    if known is not None and known.path != path:
        raise ConfigError(
            f"The table {name} of this session is {known.path}, not {path}: leave the option 'path' out, or use "
            "another name."
        )
    return path


def _in_database(spark: Any, path: str) -> str:
    """A path below the folder of the session's current database; the warehouse for the default database."""
    folder = str(spark.catalog.getDatabase(spark.catalog.currentDatabase()).locationUri)
    return own_path(spark, f"{folder.rstrip('/')}/{path}")


def _stored_name(storage: Storage) -> str | None:
    """The name in the table's configuration; None without a table."""
    try:
        return TableConfig.from_properties(load_properties(storage), storage.uri).name
    except TableNotFoundError:
        return None
