"""The indexes of a table as one Arrow table: existing ones, indexes being built, and planned ones."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from hudi_fast.errors import HudiError
from hudi_fast.metadata_table.definitions import IndexDefinition, load_definitions
from hudi_fast.metadata_table.layout import kind_of
from hudi_fast.metadata_table.state import metadata_of
from hudi_fast.metadata_table.table import MetadataTable
from hudi_fast.services.indexing.index_plan import scheduled_indexes
from hudi_fast.view.table_state import TableState

__all__ = ["INDEXES", "indexes_table"]

INDEXES = pa.schema(
    [
        pa.field("partition", pa.string(), nullable=False),
        pa.field("kind", pa.string()),
        pa.field("columns", pa.list_(pa.string())),
        pa.field("function", pa.string()),
        pa.field("state", pa.string(), nullable=False),
        pa.field("file_groups", pa.int64()),
        pa.field("bytes", pa.int64()),
        pa.field("reason", pa.string()),
    ]
)
"""``state``: ``ready``, ``unusable`` (``reason`` says why), ``building`` or ``planned``."""


def indexes_table(state: TableState) -> pa.Table:
    """One row of :data:`INDEXES` per partition of the metadata table, sorted by partition."""
    config, table = state.config, metadata_of(state)
    definitions = load_definitions(state.storage, config)
    rows = [_row(table, name, definitions.get(name)) for name in config.metadata_partitions]
    rows += [
        {"partition": name, "state": "building", **_described(name, definitions.get(name))}
        for name in config.metadata_partitions_inflight
    ]
    named = {str(row["partition"]) for row in rows}
    planned = {name: one.instant for one in scheduled_indexes(state) for name in one.partitions if name not in named}
    rows += [
        {"partition": name, "state": "planned", "reason": f"indexing {instant}", **_described(name, None)}
        for name, instant in planned.items()
    ]
    return pa.Table.from_pylist(sorted(rows, key=lambda row: str(row["partition"])), INDEXES)


def _row(table: MetadataTable | None, name: str, definition: IndexDefinition | None) -> dict[str, object]:
    row = {"partition": name, **_described(name, definition)}
    reason = "the metadata table is not to be trusted" if table is None else table.unusable(name)
    if table is None or reason is not None:
        return {**row, "state": "unusable", "reason": reason}
    groups = table.groups(name)
    files = [file for one in groups for file in one.files]
    return {**row, "state": "ready", "file_groups": len(groups), "bytes": _bytes(file.size for file in files)}


def _described(name: str, definition: IndexDefinition | None) -> dict[str, object]:
    try:
        row: dict[str, object] = {"kind": kind_of(name).name.lower()}
    except HudiError:
        row = {}
    if definition is not None:
        row |= {"columns": list(definition.source_fields) or None, "function": definition.function or None}
    return row


def _bytes(sizes: Iterable[int]) -> int:
    return sum(sizes)
