"""Limits that the indexes of a table set: *prepare* refuses keys and values that are too long for an index."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.config.write_options import WriteOptions
from hudi_fast.keys.key_generator import KeyLimits, limits_of
from hudi_fast.metadata_table.keys import IndexedColumn
from hudi_fast.metadata_table.layout import PartitionKind
from hudi_fast.metadata_table.state import metadata_of
from hudi_fast.metadata_table.updates.build import requested_indexes
from hudi_fast.view.table_state import TableState
from hudi_fast.writing.metadata_commit import dropped_partitions
from hudi_fast.writing.write_plan import Incoming, WritePlan

__all__ = ["indexed_columns", "key_limits", "refuse_long_entries"]

_GENERATED_KEY = "0" * 64
"""As long as the longest generated record key: an instant and two numbers."""


def key_limits(state: TableState, options: WriteOptions) -> KeyLimits:
    """The limits of record keys and partition paths.

    Args:
        state: the table before the write.
        options: which indexes the write keeps, builds and drops.
    """
    config, metadata = state.config, options.metadata
    present = {*metadata.wanted_partitions(config), *config.metadata_partitions}
    kept = present.difference(dropped_partitions(metadata, present)) if metadata.enabled else ()
    return limits_of(state.storage, kept, config.is_mor and options.log.block_format == "hfile")


def indexed_columns(state: TableState, options: WriteOptions) -> tuple[IndexedColumn, ...]:
    """The columns with secondary indexes once a write is visible.

    Args:
        state: the table before the write.
        options: which indexes the write keeps, builds and drops.
    """
    metadata, table = options.metadata, metadata_of(state)
    if not metadata.enabled:
        return ()
    found = requested_indexes(metadata, state.config)
    present = () if table is None else (*table.partitions, *table.building)
    if table is not None:
        found = {**{name: one for name, one in table.definitions.items() if name in present}, **found}
    dropped = dropped_partitions(metadata, found)
    return tuple(
        IndexedColumn(name, one.source_fields[0])
        for name, one in found.items()
        if name.startswith(PartitionKind.SECONDARY_INDEX.value) and name not in dropped and len(one.source_fields) == 1
    )


def refuse_long_entries(plan: WritePlan, incoming: Incoming, first_row: int | None = 0) -> None:
    """Refuse rows whose value and record key are too long for a secondary index; rows that delete have no entry.

    Args:
        plan: the write.
        incoming: its rows.
        first_row: number of the first row, for messages; None for rows without numbers.

    Raises:
        InvalidDataError: with the column, the index and the first such row.
    """
    for column in plan.table.indexed_columns:
        root = column.root(incoming.rows.column_names)
        if root not in incoming.rows.column_names:  # a partial update without the column, or deletes by key
            continue
        start = 0
        for batch in incoming.rows.select([root]).to_batches():
            end = start + batch.num_rows
            if incoming.keys is None:
                keys = pa.repeat(_GENERATED_KEY, batch.num_rows)
            else:
                keys = incoming.keys.slice(start, batch.num_rows).fill_null(_GENERATED_KEY)
            values = column.values(batch)
            if incoming.deletes is not None:
                values = _without(values, incoming.deletes[start:end])
            where = f"table {plan.config.name} ({plan.storage.uri})"
            column.refuse_long(values, keys, where, None if first_row is None else first_row + start)
            start = end


def _without(values: pa.Array, deletes: np.ndarray) -> pa.Array:
    """The values, null in rows that delete."""
    return pc.if_else(pa.array(deletes), None, values) if deletes.any() else values
