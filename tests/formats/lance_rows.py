"""Rows with a column of every type of a Lance file that Hudi knows, and how tests write them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa

from hudi_fast.formats.avro.schema import arrow_to_avro
from hudi_fast.formats.base_file import BaseFileFooter
from hudi_fast.formats.lance.base_file import LanceSettings, LanceWriter
from hudi_fast.formats.logical_types import vector_type
from hudi_fast.storage.base import Storage

__all__ = ["KEYS", "ROWS", "SCHEMA", "UTC", "written"]

UTC, WALL = pa.timestamp("us", "UTC"), pa.timestamp("us")
PART = pa.struct([("at", UTC), ("walls", pa.list_(pa.field("element", WALL)))])
SCHEMA = pa.schema(
    [
        ("key", pa.string()),
        ("truth", pa.bool_()),
        ("small", pa.int32()),
        ("large", pa.int64()),
        ("single", pa.float32()),
        ("double", pa.float64()),
        ("raw", pa.binary()),
        ("day", pa.date32()),
        ("at", UTC),
        ("wall", WALL),
        ("short", pa.timestamp("ms", "UTC")),
        ("time", pa.time64("us")),
        ("clock", pa.time32("ms")),
        ("fixed", pa.binary(3)),
        ("amount", pa.decimal128(38, 2)),
        ("part", PART),
        ("parts", pa.list_(pa.field("element", PART))),
        ("vector", vector_type(3, pa.float32())),
        ("wide", vector_type(2, pa.float64())),
    ]
)
AT = dt.datetime(1955, 1, 2, 3, 4, 5, 678901, tzinfo=dt.UTC)
LATE = dt.datetime(9999, 12, 31, 23, 59, 59, 999999)
FULL = {
    "key": "kü😀",
    "truth": False,
    "small": -(2**31),
    "large": 2**63 - 1,
    "single": -1.25,
    "double": 5e-324,
    "raw": b"\0\xff",
    "day": dt.date(1583, 1, 3),
    "at": AT,
    "wall": LATE,
    "short": AT.replace(microsecond=678000),
    "time": dt.time(1, 2, 3, 4),
    "clock": dt.time(1, 2, 3, 4000),
    "fixed": b"\0\xff.",
    "amount": Decimal("-123456789012345678901234567890123456.90"),
    "part": {"at": AT, "walls": [LATE, None]},
    "parts": [{"at": None, "walls": []}, None],
    "vector": [1.5, -2.0, 3.0],
    "wide": [0.1, float("inf")],
}
EMPTY = {**FULL, "key": "", "raw": b"", "part": {"at": None, "walls": None}, "parts": []}
ROWS = pa.Table.from_pylist([FULL, dict.fromkeys(SCHEMA.names), EMPTY] * 3, SCHEMA)
KEYS = BaseFileFooter("Ymxvb20=", "DYNAMIC_V0", "a", "é" * 3000)


def written(storage: Storage, tables: list[pa.Table], path: str = "p/a.lance") -> int:
    """Write a file of these rows with :data:`KEYS` in its footer; its size."""
    schema = tables[0].schema
    writer = LanceWriter(storage, path, schema, LanceSettings(), arrow_to_avro(schema, "r", "n"))
    for table in tables:
        writer.write(table)
    return writer.close(KEYS)
