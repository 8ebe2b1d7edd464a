"""Save mode ``overwrite`` where the table's folder cannot be exchanged for another: in object stores, at mount points.

One replace commit ends all file groups of the table and adds groups of the new rows, with the new columns. Readers see
the old table until it is complete, and the new one from then on. The old rows remain in the table's history until a
clean deletes their files.

If the options also change the table's configuration, the change is announced before the commit and takes effect with
it: see :mod:`hudi_fast.timeline.announced_changes`. This module decides what changes.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from hudi_fast.config.new_table import new_table_properties
from hudi_fast.config.option_conflicts import new_table_from_options
from hudi_fast.config.properties_file import CHECKSUM_KEY
from hudi_fast.config.write_options import WriteOptions
from hudi_fast.errors import ConfigError, UnsupportedFeatureError
from hudi_fast.metadata_table.updates.bookkeeping import BUILDING_KEY, DEFINITIONS_KEY, PARTITIONS_KEY
from hudi_fast.timeline.announced_changes import ANNOUNCED_KEY
from hudi_fast.view.table_state import TableState, table_schema

__all__ = ["changed_properties", "require_same_partitions"]

_VERSION, _ZONE = "hoodie.table.version", "hoodie.table.timeline.timezone"

_KEPT = frozenset(
    {
        _VERSION,
        _ZONE,
        "hoodie.table.initial.version",
        "hoodie.table.format",
        "hoodie.timeline.layout.version",
        "hoodie.timeline.path",
        "hoodie.timeline.history.path",
        "hoodie.archivelog.folder",
        "hoodie.partition.metafile.use.base.format",
        PARTITIONS_KEY,
        BUILDING_KEY,
        DEFINITIONS_KEY,
        CHECKSUM_KEY,  # follows the names
    }
)
"""Properties that describe the timeline and files that stay, and the metadata table."""

_KEPT_PREFIX = "hoodie.bootstrap."
"""Rows of a bootstrapped table stay in its source until their file groups are cleaned."""

_GENERATOR = "hoodie.table.keygenerator.type"
_PATH_GENERATORS = frozenset({"TIMESTAMP", "CUSTOM"})
_PARTITIONED_BY = (
    "hoodie.table.partition.fields",
    "hoodie.datasource.write.hive_style_partitioning",
    "hoodie.datasource.write.partitionpath.urlencode",
    "hoodie.datasource.write.slash.separated.date.partitioning",
    "hoodie.datasource.write.drop.partition.columns",
)
"""Properties that decide the partition path of a row."""


def changed_properties(state: TableState, options: WriteOptions) -> dict[str, str | None]:
    """The properties that an overwrite changes; None for a property that it removes.

    Args:
        state: the table to overwrite.
        options: of the new table; its version and time zone default to those of the existing table.

    Raises:
        ConfigError: the options do not describe a new table, or change the table type while a compaction is pending.
        UnsupportedFeatureError: the options change the table's version, its time zone, or how partition paths are made.
    """
    config, before = state.config, state.config.raw
    kept = replace(options, table=replace(options.table, version=config.version, timezone=config.timezone))
    for key, given, existing in (
        ("hoodie.write.table.version", options.table.version, config.version),
        (_ZONE, options.table.timezone, config.timezone),
    ):
        if key in options.explicit and given != existing:
            raise _unsupported(state, f"{key} is {existing} in the table and {given} in the options")
    after = new_table_properties(new_table_from_options(kept, config.name))
    names = {*before, *after} - _KEPT - {ANNOUNCED_KEY}
    changes = {
        name: after.get(name)
        for name in sorted(names)
        if before.get(name) != after.get(name) and not name.startswith(_KEPT_PREFIX)
    }
    generators = {before.get(_GENERATOR), after.get(_GENERATOR)}
    for name in changes:
        makes_paths = name == _GENERATOR and generators & _PATH_GENERATORS
        if name in _PARTITIONED_BY or name.startswith("hoodie.keygen.") or makes_paths:
            one, other = before.get(name), after.get(name)
            raise _unsupported(state, f"{name} is {one!r} in the table and {other!r} in the options")
    if "hoodie.table.type" in changes and state.timeline.pending_compactions:
        raise ConfigError(
            f"The table {state.storage.uri} cannot become {after['hoodie.table.type']}: the compaction "
            f"{state.timeline.pending_compactions[0].requested} is pending. Run services.run_pending() first."
        )
    return changes


def require_same_partitions(state: TableState, schema: pa.Schema) -> None:
    """Refuse an overwrite that changes the type of a partition column.

    Partitions of replaced rows stay until a clean deletes their files, and Apache Hudi converts the partition paths of
    the whole table to the types of the partition columns.

    Args:
        state: the table to overwrite.
        schema: its new columns.

    Raises:
        UnsupportedFeatureError: the type of a partition column changes.
    """
    known = table_schema(state)
    for name in state.config.partition_fields:
        if known is None or name not in known.names or name not in schema.names:
            continue
        given, existing = schema.field(name).type, known.field(name).type
        if given != existing:
            raise _unsupported(state, f"the partition column {name} is {existing} in the table and {given} in the rows")


def _unsupported(state: TableState, problem: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        f"The table {state.storage.uri} cannot be overwritten where it is: {problem}. Its folder cannot be exchanged "
        "for another, and partitions with replaced rows stay. Delete the table and write it again, or write elsewhere."
    )
