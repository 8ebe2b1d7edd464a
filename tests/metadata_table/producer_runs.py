"""Producers at work on a table: their context, and their records as flat rows that compare."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pyarrow as pa

from hudi_fast.formats.hfile.reader import read_hfile
from hudi_fast.formats.log.blocks import BlockType, HeaderKey, read_content, scan_log_blocks
from hudi_fast.formats.log.delete_block import decode_delete_block
from hudi_fast.merging.rules import slice_merge
from hudi_fast.metadata_table.layout import kind_of, load_definitions
from hudi_fast.metadata_table.records import RECORD_SCHEMA, decode_records
from hudi_fast.metadata_table.stat_values import indexed_columns
from hudi_fast.metadata_table.table import MetadataTable, open_metadata
from hudi_fast.metadata_table.updates.produce import ProducerContext, RecordSource
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.instants import Timeline
from hudi_fast.view.table_state import load_state, table_schema

Rows = dict[str, list[dict[str, Any]]]


def context_of(storage: Storage) -> tuple[ProducerContext, MetadataTable | None]:
    """What producers know of a table as it is, without its metadata table; and that."""
    state = load_state(storage)
    table = open_metadata(storage, state.config, state.timeline)
    definitions, schema = load_definitions(storage, state.config), table_schema(state)
    assert schema is not None
    if "column_stats" in definitions:
        columns = definitions["column_stats"].source_fields
    else:
        columns = tuple(indexed_columns(schema, "V2" if state.config.version > 8 else "V1", True))
    context = ProducerContext(storage, state.config, state.view, slice_merge(state), None, schema, columns, definitions)
    return context, table


def flat_rows(table: pa.Table) -> Rows:
    """Rows by key; those of one key (the files of a partition) in a settled order."""
    found: Rows = {}
    for row in table.to_pylist():
        found.setdefault(row.pop("key"), []).append(row)
    return {key: sorted(rows, key=str) for key, rows in found.items()}


def produced(sources: Iterable[RecordSource], partition: str, schema: str = RECORD_SCHEMA) -> tuple[Rows, set[str]]:
    """The records that sources put, and the keys that they delete."""
    rows: Rows = {}
    gone: set[str] = set()
    for source in sources:
        for records in source.read(schema):
            assert records.partition == partition
            alive = records.values.is_valid()
            keys, values = records.keys.filter(alive), records.values.filter(alive)
            rows |= flat_rows(decode_records(kind_of(partition), keys, values, schema, partition))
            gone |= set(records.keys.filter(records.values.is_null()).to_pylist())
    return rows, gone


def before(context: ProducerContext, instant: str) -> ProducerContext:
    """The context as it was before a write: nothing that is newer has happened."""
    view = context.view
    timeline = Timeline(tuple(one for one in view.timeline.instants if one.requested < instant and one.is_completed))
    replaced = {group: by for group, by in view.replaced.items() if by < instant}
    view = replace(view, timeline=timeline, replaced=replaced)
    return replace(context, view=view, merge=replace(context.merge, timeline=timeline))


def logged(table: MetadataTable, partition: str, instant: str) -> tuple[Rows, set[str]]:
    """What the log blocks of one instant in a metadata partition put, and the keys that they delete."""
    rows: Rows = {}
    gone: set[str] = set()
    for entry in table.storage.list_dir(partition):
        if ".log." not in entry.name or entry.name.endswith(".crc"):
            continue
        for block in scan_log_blocks(table.storage, entry.path):
            if block.instant != instant:
                continue
            content = read_content(table.storage, block)
            if block.kind is BlockType.DELETE:
                gone |= set(decode_delete_block(content, entry.path, 0).keys.to_pylist())
                continue
            keys, values = read_hfile(content, entry.path)
            schema = block.headers[HeaderKey.SCHEMA]
            rows |= flat_rows(decode_records(kind_of(partition), keys, values, schema, entry.path))
    return rows, gone
