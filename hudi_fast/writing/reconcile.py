"""The columns of a table after a write; refuses rows that do not fit them.

::

    table's columns + incoming columns + options ─► reconciled ─► the columns of the write, or SchemaMismatchError
                                                      └► changed_columns ─► what the write changes, for its result
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from hudi_fast.config.table_config import TableConfig
from hudi_fast.config.write_options import WriteOptions
from hudi_fast.errors import ConfigError, SchemaMismatchError
from hudi_fast.schema.changes import SchemaChange, schema_changes
from hudi_fast.schema.evolution import ORDERING, EvolutionRules, deduce_writer_schema, require_fit
from hudi_fast.schema.normalize import normalize_input_schema
from hudi_fast.view.table_state import TableState, table_schema

__all__ = ["DELETES", "changed_columns", "known_columns", "reconciled"]

DELETES = frozenset({"delete", "delete_partition"})
"""Operations whose rows only name keys or partitions."""


def known_columns(state: TableState, incoming: pa.Schema) -> pa.Schema | None:
    """The table's columns; None for a table without any.

    Args:
        state: the table.
        incoming: columns of the rows, from which columns stored only in the path get their types.
    """
    known = table_schema(state)
    if known is None or not state.config.drop_partition_columns:
        return known
    given = normalize_input_schema(incoming, known)
    named = [given.field(name).with_nullable(True) for name in state.config.partition_fields if name in given.names]
    return pa.schema([*(field for field in known if field.name not in state.config.partition_fields), *named])


def reconciled(
    state: TableState,
    options: WriteOptions,
    known: pa.Schema | None,
    incoming: pa.Schema,
    operation: str,
    partial: bool,
) -> pa.Schema:
    """The columns of the table after a write.

    Args:
        state: the table.
        options: of the write.
        known: :func:`known_columns`.
        incoming: columns of the rows.
        operation: of the write.
        partial: whether rows have only some of the columns.

    Raises:
        ConfigError: a delete from a table without columns.
        SchemaMismatchError: the rows do not fit.
    """
    rules = _rules(state, options)
    try:
        if operation not in DELETES and not partial:
            return deduce_writer_schema(known, incoming, rules)
        if known is None:
            raise ConfigError(f"There is nothing to delete: {state.storage.uri} has no commit yet.")
        roots = {name.split(".")[0] for name in rules.roles}
        require_fit(known, incoming if partial else pa.schema([one for one in incoming if one.name in roots]), rules)
        return known
    except SchemaMismatchError as error:
        raise SchemaMismatchError(f"{error}\nTable {state.config.name} ({state.storage.uri}) is as before.") from error


def changed_columns(
    state: TableState, options: WriteOptions, known: pa.Schema, schema: pa.Schema
) -> tuple[SchemaChange, ...]:
    """The changes that a write makes to the columns of a table.

    Args:
        state: the table.
        options: of the write.
        known: :func:`known_columns`.
        schema: :func:`reconciled`.
    """
    config = state.config
    if config.drop_partition_columns:
        known = pa.schema([one for one in known if one.name in schema.names or one.name not in config.partition_fields])
    return schema_changes(known, schema, _rules(state, options).refuses_missing)


def _rules(state: TableState, options: WriteOptions) -> EvolutionRules:
    return EvolutionRules(
        options.schema.reconcile,
        options.schema.validates,
        options.schema.allow_column_drop,
        options.schema.null_for_missing_columns,
        state.config.partition_fields,
        state.config.drop_partition_columns,
        state.view.history is not None,
        options.schema.allow_rounding,
        _roles(state.config),
    )


def _roles(config: TableConfig) -> Mapping[str, str]:
    partitioned = config.partition_fields if config.is_partitioned else ()
    return {
        **dict.fromkeys(config.ordering_fields, ORDERING),
        **dict.fromkeys(partitioned, "partition path"),
        **dict.fromkeys(config.record_key_fields, "record key"),
    }
