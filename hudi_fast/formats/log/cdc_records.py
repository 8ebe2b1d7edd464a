"""The records of change logs: the content of a CDC log block in each supplemental logging mode.

::

    OP_KEY_ONLY         record ``Record``                 op | record_key
    DATA_BEFORE         record ``CDC``, table's namespace op | record_key | before
    DATA_BEFORE_AFTER   record ``CDC``, table's namespace op | ts_ms      | before | after

``op`` is ``i``, ``u`` or ``d``; ``ts_ms`` the requested time of the write. ``before`` and ``after`` are rows of the
table without its meta columns, or null. A block has the layout of an Avro data block
(:mod:`hudi_fast.formats.avro.rows`) and its schema in the header SCHEMA.

Source: spec section 9; HoodieCDCUtils and HoodieCDCDataBlock, Hudi 1.2.0. The schema texts equal the headers of files
that Hudi wrote.
"""

from __future__ import annotations

import json
from typing import Any

from hudi_fast.errors import UnsupportedFeatureError
from hudi_fast.formats.avro.schema import META_FIELDS, OPERATION_FIELD
from hudi_fast.storage.untrusted import stored_json

__all__ = [
    "AFTER",
    "BEFORE",
    "CDC_MODES",
    "DATA_BEFORE",
    "DATA_BEFORE_AFTER",
    "DELETE",
    "INSERT",
    "OP",
    "OP_KEY_ONLY",
    "RECORD_KEY",
    "TS_MS",
    "UPDATE",
    "cdc_columns",
    "cdc_schema",
    "check_cdc_mode",
]

OP_KEY_ONLY = "OP_KEY_ONLY"
DATA_BEFORE = "DATA_BEFORE"
DATA_BEFORE_AFTER = "DATA_BEFORE_AFTER"
"""CDC logging modes (`hoodie.table.cdc.supplemental.logging.mode`)."""

CDC_MODES = (DATA_BEFORE_AFTER, DATA_BEFORE, OP_KEY_ONLY)
"""Supplemental logging modes, the default first."""

OP, TS_MS, RECORD_KEY, BEFORE, AFTER = "op", "ts_ms", "record_key", "before", "after"
INSERT, UPDATE, DELETE = "i", "u", "d"
"""Columns of change records, and values of the column `op`."""

_COLUMNS = {
    OP_KEY_ONLY: (OP, RECORD_KEY),
    DATA_BEFORE: (OP, RECORD_KEY, BEFORE),
    DATA_BEFORE_AFTER: (OP, TS_MS, BEFORE, AFTER),
}
_META = frozenset({*META_FIELDS, OPERATION_FIELD})


def check_cdc_mode(mode: str, where: str) -> str:
    """Return ``mode`` if it is one of :data:`CDC_MODES`; ``where`` names the table in the message.

    Raises:
        UnsupportedFeatureError: the mode is unknown.
    """
    if mode not in _COLUMNS:
        raise UnsupportedFeatureError(
            f"Table {where}: unknown hoodie.table.cdc.supplemental.logging.mode {mode!r}; expected one of "
            f"{', '.join(CDC_MODES)}."
        )
    return mode


def cdc_columns(mode: str) -> tuple[str, ...]:
    """Fields of a record in a mode, in order."""
    return _COLUMNS[check_cdc_mode(mode, "of a change log")]


def cdc_schema(mode: str, table_avro: str) -> str:
    """The Avro JSON of a change log's records, for the header SCHEMA of its blocks.

    ``table_avro`` is the Avro JSON of the table; its meta columns, if any, are omitted.

    Raises:
        UnsupportedFeatureError: the mode is unknown.
    """
    columns = cdc_columns(mode)
    if mode == OP_KEY_ONLY:
        fields: list[dict[str, Any]] = [{"name": name, "type": ["string", "null"]} for name in columns]
        return _text({"type": "record", "name": "Record", "fields": fields})
    image = _image(stored_json(table_avro))
    namespace = image.pop("namespace", None)
    first = True
    fields = []
    for name in columns:
        kind: Any = "string"
        if name in (BEFORE, AFTER):
            kind, first = (image if first else image["name"]), False
        fields.append({"name": name, "type": ["null", kind], "doc": "", "default": None})
    record: dict[str, Any] = {"type": "record", "name": "CDC"}
    if namespace:
        record["namespace"] = namespace
    return _text(record | {"doc": "", "fields": fields})


def _image(table: dict[str, Any]) -> dict[str, Any]:
    """The table's record without meta columns, in the namespace of the enclosing record."""
    return table | {"fields": [each for each in table["fields"] if each["name"] not in _META]}


def _text(schema: dict[str, Any]) -> str:
    return json.dumps(schema, separators=(",", ":"), ensure_ascii=False)
