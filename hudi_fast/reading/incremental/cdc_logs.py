"""Changes in change logs, with images that the logs do not store looked up in base files.

::

    DATA_BEFORE_AFTER   op, before, after ─► JSON
    DATA_BEFORE         op, key, before ─► JSON; the row after: by key, from the base file that the commit wrote
    OP_KEY_ONLY         op, key; both rows by key, from the base files before and after

As in Hudi, logged images are formatted as Avro records, with a null image as the text ``null``; looked-up images are
formatted as rows, with a null image as null. A log is read with the table's current schema, so columns added later are
null. If Avro cannot resolve the two schemas (a decimal has been widened), the log is read with its own schema.

Source: ``CDCFileGroupIterator``, ``HoodieCDCLogRecordIterator`` (Hudi 1.2.0).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.errors import CorruptTableError, SchemaMismatchError
from hudi_fast.formats.avro.rows import AvroDecoder
from hudi_fast.formats.avro.schema import avro_to_arrow
from hudi_fast.formats.avro.types import parse_record
from hudi_fast.formats.json_rows import JsonStyle, json_rows
from hudi_fast.formats.log.blocks import BlockType, HeaderKey, LogBlock, read_content
from hudi_fast.formats.log.cdc_records import (
    AFTER,
    BEFORE,
    DATA_BEFORE_AFTER,
    DELETE,
    INSERT,
    OP,
    OP_KEY_ONLY,
    RECORD_KEY,
    cdc_schema,
)
from hudi_fast.merging.log_scan import log_blocks
from hudi_fast.reading.incremental.cdc_images import CdcScan, change_batch, images_of_keys
from hudi_fast.reading.incremental.cdc_units import CdcUnit
from hudi_fast.schema.history import Renames, renamed_avro, renames_at
from hudi_fast.storage.stored_json import stored_json
from hudi_fast.view.slices import FileSlice

__all__ = ["logged_changes", "record_columns"]

_NULL = pa.scalar("null")
_LOOKED_UP_ROWS = 1 << 18
"""Records whose images are in memory together; base files are read once per this many."""


def record_columns(mode: str, table_avro: str) -> pa.Schema:
    """The columns of a change record in a mode, as Avro stores their values.

    Raises:
        UnsupportedFeatureError: an unknown mode.
    """
    return avro_to_arrow(_stored(cdc_schema(mode, table_avro)), "the schema of change logs")


def logged_changes(scan: CdcScan, unit: CdcUnit) -> Iterator[pa.RecordBatch]:
    """The changes of a unit with change logs.

    Raises:
        CorruptTableError: a file is corrupt, or lacks a row that a log names.
    """
    batches = (
        batch for log in unit.logs for block in log_blocks(scan.rows.storage, log) for batch in _read(scan, block)
    )
    if scan.mode == DATA_BEFORE_AFTER:
        for batch in batches:
            before, after = (_image(scan, batch, name) for name in (BEFORE, AFTER))
            yield change_batch(unit.instant, batch.column(OP), before, after)
    else:
        for records in _groups(batches):
            yield _with_images(scan, unit, records)


def _read(scan: CdcScan, block: LogBlock) -> Iterator[pa.RecordBatch]:
    """The records of a block; none for a block of another kind."""
    if block.kind is not BlockType.CDC_DATA:
        return
    text = block.headers.get(HeaderKey.SCHEMA)
    if text is None:
        raise CorruptTableError("A change log block has no schema in its header.", block.path, block.offset)
    where = f"{block.path}, byte {block.offset}"
    parse_record(text, where)  # raises for schemas that the steps below do not handle: no record, or nested too deeply
    names = None if scan.history is None else renames_at(scan.history, block.instant)
    own = _stored(text if names is None else _in_names_of_today(text, names, where))
    try:
        decoder = AvroDecoder.compile(own, scan.records, where)
    except SchemaMismatchError:
        decoder = AvroDecoder.compile(own, avro_to_arrow(own, where), where)
    yield from decoder.decode_block(read_content(scan.rows.storage, block), block.path, block.content_start)


def _groups(batches: Iterator[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    """Batches grouped to about the number of records that are looked up together."""
    group: list[pa.RecordBatch] = []
    for batch in batches:
        group.append(batch)
        if sum(one.num_rows for one in group) >= _LOOKED_UP_ROWS:
            yield group
            group = []
    if group:
        yield group


def _with_images(scan: CdcScan, unit: CdcUnit, records: list[pa.RecordBatch]) -> pa.RecordBatch:
    assert unit.after is not None
    ops = pa.concat_arrays([batch.column(OP) for batch in records])
    keys = pa.concat_arrays([batch.column(RECORD_KEY) for batch in records])
    before = after = pa.nulls(len(keys), pa.string())
    if AFTER in scan.images:
        after = _placed(scan, FileSlice(unit.partition, unit.file_id, unit.after), keys, pc.not_equal(ops, DELETE))
    if scan.mode != OP_KEY_ONLY:
        before = pa.concat_arrays([_image(scan, batch, BEFORE) for batch in records])
    elif BEFORE in scan.images:
        assert unit.before is not None
        before = _placed(scan, unit.before, keys, pc.not_equal(ops, INSERT))
    return change_batch(unit.instant, ops, before, after)


def _placed(scan: CdcScan, slice_: FileSlice, keys: pa.StringArray, wanted: pa.BooleanArray) -> pa.StringArray:
    """The images of the ``wanted`` keys; null for the others."""
    found = images_of_keys(scan, slice_, keys.filter(wanted))
    return pc.replace_with_mask(pa.nulls(len(keys), pa.string()), wanted, found)


def _image(scan: CdcScan, batch: pa.RecordBatch, name: str) -> pa.StringArray:
    if name not in scan.images:
        return pa.nulls(batch.num_rows, pa.string())
    return pc.fill_null(json_rows(batch.column(name), JsonStyle.AVRO), _NULL)


# ---- schemas


def _stored(avro_json: str) -> str:
    """The schema without logical types, so that decoded values are the stored ones."""
    return json.dumps(_plain(stored_json(avro_json)))


def _in_names_of_today(text: str, names: Renames, where: str) -> str:
    """The schema of change records with current names in their images; the second image refers to the first."""
    record = stored_json(text)
    for field in record["fields"]:
        kinds = field["type"]
        field["type"] = [
            stored_json(renamed_avro(json.dumps(one), names, where)) if isinstance(one, dict) else one for one in kinds
        ]
    return json.dumps(record)


def _plain(avro: Any) -> Any:
    if isinstance(avro, list):
        return [_plain(one) for one in avro]
    if not isinstance(avro, dict):
        return avro
    return {key: _plain(value) if key in _NESTING else value for key, value in avro.items() if key != "logicalType"}


_NESTING = frozenset({"type", "fields", "items", "values"})
