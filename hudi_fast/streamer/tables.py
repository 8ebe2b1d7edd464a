"""Streams of several tables from one property file, as HoodieMultiTableStreamer has them.

::

    common properties: hoodie.streamer.ingestion.tablesToBeIngested=shop.orders,shop.customers
        ─► for each table: its own file, whose properties win over the common ones ─► a Streamer

Source: ``HoodieMultiTableStreamer`` (1.2.0).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hudi_fast.errors import ConfigError
from hudi_fast.streamer.settings import OLD_PREFIX, PREFIX
from hudi_fast.streamer.streamer import Streamer, Turn, properties_of

__all__ = ["TableStream", "in_turn", "table_streams"]

_PREFIXES = (PREFIX, OLD_PREFIX)
_TABLES, _PATH = "ingestion.tablesToBeIngested", "ingestion.targetBasePath"
_TRANSFORMERS = "transformer.class"
_REGISTRY, _REGISTRY_BASE, _REGISTRY_SUFFIX = (
    "schemaprovider.registry.url",
    "schemaprovider.registry.baseUrl",
    "schemaprovider.registry.urlSuffix",
)
_DEFAULT_DATABASE = "default"


class TableStream(NamedTuple):
    """A stream of one of several tables.

    Attributes:
        name: ``database.table``.
        streamer: feeds it.
    """

    name: str
    streamer: Streamer


def table_streams(
    properties: Mapping[str, Any],
    base_path_prefix: str | None = None,
    config_folder: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    **arguments: Any,
) -> Iterator[TableStream]:
    """The streams that the properties list, in their order.

    Args:
        properties: of all tables. ``hoodie.streamer.ingestion.tablesToBeIngested`` names the tables, and
            ``hoodie.streamer.ingestion.DATABASE.TABLE.configFile`` the property file of one.
        base_path_prefix: folder of the tables, whose paths are ``PREFIX/DATABASE/TABLE``, unless a file has
            ``hoodie.streamer.ingestion.targetBasePath``.
        config_folder: folder of the files that no property names: ``DATABASE_TABLE_config.properties``.
        storage_options: as for :class:`~hudi_fast.streamer.streamer.Streamer`.
        arguments: as for :class:`~hudi_fast.streamer.streamer.Streamer`, of all tables.

    Raises:
        ConfigError: no table is listed, or one has no path or no file.
        HudiError: as for :class:`~hudi_fast.streamer.streamer.Streamer`.
    """
    listed = [one.strip() for one in _value(properties, _TABLES).split(",") if one.strip()]
    if not listed:
        raise ConfigError(f"Streams of several tables need the property {PREFIX}{_TABLES}=db.table1,db.table2.")
    for one in listed:
        database, _, table = one.rpartition(".")
        name = f"{database or _DEFAULT_DATABASE}.{table}"
        given = {**_without_tables(properties), **properties_of(_file_of(properties, name, config_folder))}
        path = _value(given, _PATH) or _path_of(name, base_path_prefix)
        own = {"target_base_path": path, "target_table": table}
        transformers = _value(given, _TRANSFORMERS)
        if transformers:
            own["transformer_class"] = transformers
        _complete_registry(given)
        given = {key: value for key, value in given.items() if not _is_of_tables(key)}
        yield TableStream(name, Streamer(given, storage_options=storage_options, **{**arguments, **own}))


def in_turn(streamers: Sequence[Streamer]) -> Iterator[tuple[Streamer, Turn]]:
    """The turns of several streams: one of each, and again as long as one of them is not at its end.

    Raises:
        HudiError: as :meth:`~hudi_fast.streamer.streamer.Streamer.run`.
    """
    running = [(one, one.run()) for one in streamers]
    while running:
        ended = []
        for one, turns in running:
            turn = next(turns, None)
            if turn is None:
                ended.append(turns)
            else:
                yield one, turn
        running = [pair for pair in running if pair[1] not in ended]


def _value(properties: Mapping[str, Any], name: str) -> str:
    return next((str(properties[prefix + name]) for prefix in _PREFIXES if prefix + name in properties), "")


def _is_of_tables(key: str) -> bool:
    names = ("ingestion.", _TRANSFORMERS, _REGISTRY_BASE, _REGISTRY_SUFFIX)
    return any(key.startswith(prefix + name) for prefix in _PREFIXES for name in names)


def _without_tables(properties: Mapping[str, Any]) -> dict[str, Any]:
    """The common properties, without the list of tables and their files."""
    kept = (_PATH, _TRANSFORMERS, _REGISTRY_BASE, _REGISTRY_SUFFIX)
    own = tuple(prefix + name for prefix in _PREFIXES for name in kept)
    return {key: value for key, value in properties.items() if key.startswith(own) or not _is_of_tables(key)}


def _file_of(properties: Mapping[str, Any], name: str, folder: str | None) -> str:
    file = _value(properties, f"ingestion.{name}.configFile")
    if file:
        return file
    if folder is None:
        raise ConfigError(
            f"The table {name} has no property file: set {PREFIX}ingestion.{name}.configFile, or give "
            f"--config-folder, where {name.replace('.', '_')}_config.properties is."
        )
    return str(Path(folder) / f"{name.replace('.', '_')}_config.properties")


def _path_of(name: str, prefix: str | None) -> str:
    if not prefix:
        raise ConfigError(
            f"The table {name} has no path: give --base-path-prefix, or set {PREFIX}{_PATH} in its property file."
        )
    return f"{prefix.rstrip('/')}/{name.replace('.', '/')}"


def _complete_registry(given: dict[str, Any]) -> None:
    """Make the address of the topic's schema of the registry's base address and its suffix."""
    base, topic = _value(given, _REGISTRY_BASE), _value(given, "source.kafka.topic")
    if base and topic and not _value(given, _REGISTRY):
        given[PREFIX + _REGISTRY] = base + topic + _value(given, _REGISTRY_SUFFIX)
