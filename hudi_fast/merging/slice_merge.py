"""What merging the log of a file slice needs, and which columns it has to read.

::

    visible_blocks(merge, slice) ─► read_entries(merge, blocks, schema) ─► fold ─► match_base ─► settle ─► merged rows

A :class:`SliceMerge` is true for a whole table and is made once; the functions around it are pure in it and in the
slice, so a task that runs twice answers the same.
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

__all__ = ["RECORD_KEY", "SliceMerge", "key_columns", "merge_schema", "slice_merge", "stored_key_config"]

RECORD_KEY = "_hoodie_record_key"


@dataclass(frozen=True)
class SliceMerge:
    """What merging a slice needs. Picklable.

    Attributes:
        storage: the table's storage.
        timeline: the active timeline; before table version 8 it says which blocks count.
        table_version: of the table.
        rules: which of two rows with one key stays.
        as_of: newest requested time that counts; None for the end of the timeline.
        key_config: how keys follow from data columns; None for a table whose rows carry the meta columns.
        use_positions: whether entries may be matched to rows of the base file by position.
        commit_times: of the rows of base files that the log is merged with; None for all. The others stay as they are,
            and entries with their keys are rows of their own.
        history: what the table's schema has been: log blocks are read in today's names; None without history.
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


def slice_merge(state: TableState, merger: Merger | None = None, use_positions: bool = False) -> SliceMerge:
    """How the slices of a table merge, as the state's view sees it.

    Args:
        state: the table.
        merger: the user's function for a table whose merge mode is CUSTOM.
        use_positions: whether entries may be matched to rows of the base file by position.

    Raises:
        UnsupportedFeatureError: the table merges in a way that is unknown here, or rows carry no keys and the table's
            key generator cannot be run again.
        ConfigError: a merger for a table that says how it merges.
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
    )


def stored_key_config(config: TableConfig) -> KeyConfig | None:
    """How the keys of stored rows follow from their columns; None when the rows carry them.

    Raises:
        UnsupportedFeatureError: a key generator of the user, or generated keys.
    """
    if config.populate_meta_fields:
        return None
    if config.key_generator == "USER_PROVIDED" or not config.record_key_fields:
        raise UnsupportedFeatureError(
            f"Table {config.name} stores no record keys (hoodie.populate.meta.fields=false), and they do not follow "
            f"from its columns: its key generator is {config.key_generator_class or 'one that makes them up'}."
        )
    return KeyConfig(config.key_generator, config.record_key_fields, config.partition_fields, config.partition_types)


def key_columns(merge: SliceMerge) -> list[str]:
    """The columns that a row's key is read from."""
    if merge.key_config is None:
        return [RECORD_KEY]
    return list(dict.fromkeys(name.split(".")[0] for name in merge.key_config.record_key_fields))


def merge_schema(merge: SliceMerge, wanted: pa.Schema, full: pa.Schema) -> pa.Schema:
    """The columns of ``wanted``, and after them those that merging needs: keys, ordering values, delete flags.

    All may be null: rows of partial blocks lack columns until they are merged. A custom merger sees every column.

    Args:
        merge: how slices merge.
        wanted: columns that are asked for.
        full: all columns of the table, meta columns among them if rows carry them.
    """
    others = merging_columns(merge.rules, full.names)
    needed = [*key_columns(merge), *(full.names if others is None else others)]
    names = list(dict.fromkeys([*wanted.names, *needed]))
    fields = {**{field.name: field for field in full}, **{field.name: field for field in wanted}}
    return pa.schema([fields.get(name, pa.field(name, pa.string())).with_nullable(True) for name in names])
