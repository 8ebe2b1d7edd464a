"""Merge settings of a table's file slices, and the columns that merging has to read.

::

    visible_blocks(merge, slice) ─► read_entries(merge, blocks, schema) ─► fold ─► resolve_slice ─► merged rows

A :class:`SliceMerge` applies to a whole table and is made once. The functions that take it depend only on it and on the
slice, so a retried task returns the same result.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import UnsupportedFeatureError
from hudi_fast.keys.key_generator import KeyConfig
from hudi_fast.merging.rules import Merger, MergeRules, merge_rules_of, merging_columns
from hudi_fast.schema.history import SchemaHistory
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.active import Timeline
from hudi_fast.view.table_state import TableState, column_defaults

__all__ = [
    "RECORD_KEY",
    "SliceMerge",
    "kept_columns",
    "key_columns",
    "merge_schema",
    "slice_merge",
    "stored_key_config",
]

RECORD_KEY, PARTITION_PATH = "_hoodie_record_key", "_hoodie_partition_path"
"""Names of the meta columns of record key and partition path."""

_USER_PROVIDED = "USER_PROVIDED"


@dataclass(frozen=True)
class SliceMerge:
    """Inputs of merging a slice. Picklable.

    Attributes:
        timeline: the active timeline; before table version 8 it decides which blocks are visible.
        as_of: newest requested time that is visible; None for the end of the timeline.
        key_config: how keys are computed from data columns; None for a table whose rows have the meta columns.
        use_positions: whether entries may be matched to rows of the base file by position.
        commit_times: commit times of the base rows that are merged with the log; None for all. Other base rows are
            unchanged, and entries with their keys become rows of their own.
        history: the table's schema history, to read log blocks in current names; None without history.
        config: the table's configuration, for :func:`kept_columns`; None to take all columns from the newer row.
    """

    storage: Storage
    timeline: Timeline
    table_version: int
    rules: MergeRules
    as_of: str | None = None
    key_config: KeyConfig | None = None
    use_positions: bool = False
    commit_times: tuple[str, ...] | None = None
    history: SchemaHistory | None = None
    config: TableConfig | None = None


def slice_merge(state: TableState, merger: Merger | None = None, use_positions: bool = False) -> SliceMerge:
    """The merge settings of a table's slices in the state's view.

    ``merger`` is for merge mode CUSTOM.

    Raises:
        UnsupportedFeatureError: the merge mode is not supported, or rows store no keys and the table's key generator
            cannot recompute them.
        ConfigError: a merger is given and the table has another merge mode.
    """
    return SliceMerge(
        state.storage,
        state.timeline,
        state.config.version,
        merge_rules_of(state.config, merger=merger, defaults=column_defaults(state)),
        state.view.as_of,
        stored_key_config(state.config),
        use_positions,
        history=state.view.history,
        config=state.config,
    )


def stored_key_config(config: TableConfig) -> KeyConfig | None:
    """How the keys of stored rows are computed from their columns; None when the rows store them.

    Raises:
        UnsupportedFeatureError: the table has a key generator of the user, or generated keys.
    """
    if config.populate_meta_fields:
        return None
    if config.key_generator == "USER_PROVIDED" or not config.record_key_fields:
        raise UnsupportedFeatureError(
            f"Table {config.name} stores no record keys (hoodie.populate.meta.fields=false), and they cannot be "
            f"computed from its columns: its key generator is {config.key_generator_class or 'one that invents keys'}."
        )
    return KeyConfig(config.key_generator, config.record_key_fields, config.partition_fields, config.partition_types)


def kept_columns(config: TableConfig, schema: pa.Schema) -> frozenset[str]:
    """The columns of ``schema`` that all rows of one key in one partition share, so that an update keeps their values.

    A single key column is included: the record key is its text, unless the user's key generator made the key.
    """
    kept = {RECORD_KEY, PARTITION_PATH} if config.populate_meta_fields else set()
    fields = config.record_key_fields
    if len(fields) == 1 and fields[0] in schema.names and config.key_generator != _USER_PROVIDED:
        kind = schema.field(fields[0]).type
        if pa.types.is_string(kind) or pa.types.is_integer(kind) or pa.types.is_date32(kind):
            kept |= {*fields}
    return frozenset(kept.intersection(schema.names))


def key_columns(merge: SliceMerge) -> list[str]:
    """The columns that a row's key is computed from."""
    if merge.key_config is None:
        return [RECORD_KEY]
    return list(dict.fromkeys(name.split(".")[0] for name in merge.key_config.record_key_fields))


def merge_schema(merge: SliceMerge, wanted: pa.Schema, full: pa.Schema) -> pa.Schema:
    """The columns of ``wanted``, followed by the columns that merging needs: keys, ordering values, delete flags.

    All are nullable: rows of partial blocks lack columns until they are merged. A custom merger needs all columns.

    ``full`` has all columns of the table, with the meta columns if rows store them.
    """
    others = merging_columns(merge.rules, full.names)
    needed = [*key_columns(merge), *(full.names if others is None else others)]
    names = list(dict.fromkeys([*wanted.names, *needed]))
    fields = {**{field.name: field for field in full}, **{field.name: field for field in wanted}}
    return pa.schema([fields.get(name, pa.field(name, pa.string())).with_nullable(True) for name in names])
