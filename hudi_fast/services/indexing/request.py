"""Turns the arguments of a caller into partitions of the metadata table and their definitions.

::

    "secondary_index", columns=["city"], name="by_city"
        ─► secondary_index_by_city with its definition, and before it the required record_index

Reads only the table's configuration and its metadata table; nothing is written.

Sources: metadata reference 2.2, 3.6, 3.9, 4; HoodieSparkIndexClient, Hudi 1.2.0.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from hudi_fast.config.metadata_options import FIRST_WITH_METADATA, MetadataOptions
from hudi_fast.config.option_names import INDEX_KINDS
from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import ConfigError
from hudi_fast.metadata_table.definitions import IndexDefinition
from hudi_fast.metadata_table.layout import PartitionKind, kind_of
from hudi_fast.metadata_table.updates.build import requested_indexes
from hudi_fast.storage.stored_json import stored_json

__all__ = [
    "IndexRequest",
    "WantedIndexes",
    "definition_of_text",
    "definition_text",
    "named_partition",
    "resting_on",
    "wanted_indexes",
]

_FIRST_WITH_LAYOUT_2 = 8
_LATER_KINDS = ("partition_stats", "secondary_index", "expr_index")
_NAMED = ("secondary_index", "expr_index")
_RESTS_ON = {"partition_stats": "column_stats", "secondary_index": "record_index"}


@dataclass(frozen=True, slots=True)
class IndexRequest:
    """An index as the caller describes it.

    Attributes:
        kind: one of :data:`hudi_fast.config.option_names.INDEX_KINDS`.
        columns: columns of ``column_stats`` (empty: the first ones that can have statistics); the one column of a
            secondary or expression index.
        name: of a secondary or expression index; None: the name of its column.
        function: of an expression index, such as ``upper``.
        function_options: of the function, such as ``{"format": "yyyy-MM-dd"}``.
    """

    kind: str
    columns: tuple[str, ...] = ()
    name: str | None = None
    function: str | None = None
    function_options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WantedIndexes:
    """The partitions of a request.

    Attributes:
        partition: the requested metadata partition.
        partitions: it and the partitions that it requires, unordered.
        options: settings of the partitions.
        definitions: definitions of the secondary and expression indexes among them, by partition.
    """

    partition: str
    partitions: tuple[str, ...]
    options: MetadataOptions
    definitions: Mapping[str, IndexDefinition] = field(default_factory=dict)


def wanted_indexes(request: IndexRequest, config: TableConfig, options: MetadataOptions) -> WantedIndexes:
    """The partitions that a request needs in a table.

    Args:
        request: the index.
        config: of the table.
        options: the caller's options of the metadata table.

    Raises:
        ConfigError: there is no such kind of index, arguments are missing or superfluous, or the table cannot have the
            index.
    """
    _check_words(request, config)
    _check_table(request.kind, config, options)
    kind = request.kind
    if kind in _NAMED:
        options = _options_of_named(request, options)
        definitions = requested_indexes(options, config)
        partition, made = next(iter(definitions.items()))
        if kind == "expr_index":
            settings = {"expr": request.function or "", **request.function_options}
            definitions = {partition: replace(made, options=settings)}
    else:
        definitions, partition = {}, kind
        if request.columns:
            options = replace(options, column_list=request.columns)
    partitions = [partition]
    if kind in _RESTS_ON:
        partitions.insert(0, _RESTS_ON[kind])
    return WantedIndexes(partition, tuple(partitions), options, definitions)


def named_partition(name: str, present: Collection[str]) -> str:
    """The metadata partition with a folder name or an index name.

    Args:
        name: ``record_index``, ``secondary_index_by_city``, ``by_city``.
        present: existing partitions.

    Raises:
        ConfigError: no partition has this name, or two have it.
    """
    if name in present:
        return name
    found = [one for one in (f"{prefix}_{name}" for prefix in _NAMED) if one in present]
    if len(found) == 1:
        return found[0]
    shown = ", ".join(sorted(present)) or "none at all"
    raise ConfigError(
        f"There is no index {name!r}: the table has {shown}."
        if not found
        else f"The name {name!r} is ambiguous: {' and '.join(found)}. Use the full name."
    )


def definition_text(definition: IndexDefinition) -> str:
    """A definition as JSON, for the plan of an indexing."""
    return json.dumps(
        {
            "kind": definition.kind,
            "function": definition.function,
            "source_fields": list(definition.source_fields),
            "options": dict(definition.options),
            "version": definition.version,
        }
    )


def definition_of_text(partition: str, text: str) -> IndexDefinition:
    """The definition that :func:`definition_text` wrote.

    Raises:
        ConfigError: the text is not a definition.
    """
    try:
        found = stored_json(text)
        return IndexDefinition(
            partition,
            found["kind"],
            found["function"],
            tuple(found["source_fields"]),
            dict(found["options"]),
            found["version"],
        )
    except (ValueError, TypeError, KeyError) as error:
        raise ConfigError(f"The plan of the index {partition} holds no definition of it: {error!r}.") from error


# ---- checks


def _check_words(request: IndexRequest, config: TableConfig) -> None:
    kind = request.kind
    if kind not in INDEX_KINDS:
        raise ConfigError(f"There is no kind of index {kind!r}; use {', '.join(INDEX_KINDS)}.")
    if kind in _NAMED and len(request.columns) != 1:
        raise ConfigError(f"The index {kind} is over one column; got {list(request.columns)}. Give columns=[name].")
    if kind not in (*_NAMED, "column_stats") and request.columns:
        raise ConfigError(f"The index {kind} of table {config.name} takes no columns; got {list(request.columns)}.")
    if kind not in _NAMED and request.name is not None:
        raise ConfigError(f"The index {kind} has no name of its own; got {request.name!r}.")
    if kind != "expr_index" and (request.function or request.function_options):
        raise ConfigError(f"Only an expr_index has a function; {kind} got {request.function!r}.")
    if kind == "expr_index" and not request.function:
        raise ConfigError("An expr_index is over a function of a column: give function='upper', or another.")


def _check_table(kind: str, config: TableConfig, options: MetadataOptions) -> None:
    if config.version < FIRST_WITH_METADATA:
        raise ConfigError(
            f"Table {config.name} is of version {config.version}, whose metadata table hudi_fast does not write. "
            "Upgrade the table with services.upgrade()."
        )
    if kind in _LATER_KINDS and config.version < _FIRST_WITH_LAYOUT_2:
        raise ConfigError(
            f"The index {kind} needs table version 8 or later; table {config.name} is of version {config.version}. "
            "Upgrade the table with services.upgrade()."
        )
    if options.partitioned_record_index and kind == "record_index" and config.version < _FIRST_WITH_LAYOUT_2:
        raise ConfigError(
            f"A record index by partition needs table version 8 or later; table {config.name} is of version "
            f"{config.version}. Leave hoodie.metadata.record.level.index.enable out."
        )
    if kind == "partition_stats" and not config.is_partitioned:
        raise ConfigError(f"Table {config.name} has no partitions, so it needs no partition_stats.")
    if kind == "bloom_filters" and not config.populate_meta_fields:
        raise ConfigError(
            f"Table {config.name} has no meta columns (hoodie.populate.meta.fields=false): its files have no bloom "
            "filters."
        )


def _options_of_named(request: IndexRequest, options: MetadataOptions) -> MetadataOptions:
    column = request.columns[0]
    if request.kind == "secondary_index":
        return replace(options, enabled=True, secondary_column=column, expression_column=None, index_name=request.name)
    return replace(
        options,
        enabled=True,
        secondary_column=None,
        expression_column=column,
        expression_settings="",
        expression_function=request.function,
        index_name=request.name,
    )


def resting_on(partition: str, present: Collection[str]) -> list[str]:
    """Partitions that require a given one.

    Args:
        partition: the given one.
        present: existing partitions.
    """
    if partition == PartitionKind.FILES:
        return sorted(set(present) - {partition})
    if partition == PartitionKind.COLUMN_STATS:
        return [one for one in present if one == PartitionKind.PARTITION_STATS]
    if partition == PartitionKind.RECORD_INDEX:
        return sorted(one for one in present if one.startswith(PartitionKind.SECONDARY_INDEX))
    kind_of(partition)
    return []
