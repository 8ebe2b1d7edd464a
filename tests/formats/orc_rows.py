"""Rows with a column of every type of an ORC file that Hudi knows, and how tests write them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path

import pyarrow as pa

from hudi_fast.formats.avro.schema import arrow_to_avro
from hudi_fast.formats.base_file import BaseFileFooter
from hudi_fast.formats.orc.write import OrcSettings, OrcWriter
from hudi_fast.storage.base import Storage

__all__ = ["AT", "KEYS", "LONG_AGO", "PART", "ROWS", "SCHEMA", "UTC", "written"]

UTC, WALL = pa.timestamp("us", "UTC"), pa.timestamp("us")
PART = pa.struct([("at", UTC), ("walls", pa.list_(pa.field("element", WALL)))])
SCHEMA = pa.schema(
    [
        ("key", pa.string()),
        ("at", UTC),
        ("wall", WALL),
        ("short", pa.timestamp("ms", "UTC")),
        ("time", pa.time64("us")),
        ("fixed", pa.binary(3)),
        ("amount", pa.decimal128(20, 2)),
        ("part", PART),
        ("moments", pa.map_(pa.string(), pa.field("value", UTC))),
        ("parts", pa.list_(pa.field("element", PART))),
    ]
)
AT = dt.datetime(2020, 1, 2, 3, 4, 5, 678901, tzinfo=dt.UTC)
LONG_AGO = dt.datetime(1700, 1, 2, 3, 4, 5, 678901)
FULL = {
    "key": "k",
    "at": AT,
    "wall": LONG_AGO,
    "short": AT.replace(microsecond=678000),
    "time": dt.time(1, 2, 3, 4),
    "fixed": b"\0\xff.",
    "amount": Decimal("-123456789012345678.90"),
    "part": {"at": AT, "walls": [LONG_AGO, None]},
    "moments": [("a", AT), ("b", None)],
    "parts": [{"at": None, "walls": []}, None],
}
ROWS = pa.Table.from_pylist([FULL, dict.fromkeys(SCHEMA.names), {**FULL, "moments": [], "parts": []}] * 3, SCHEMA)
KEYS = BaseFileFooter("Ymxvb20=", "DYNAMIC_V0", "a", "é" * 3000)


def written(folder: Path, tables: list[pa.Table], codec: str = "zstd", stripe_bytes: int = 1 << 20) -> Storage:
    """A storage whose file ``p/a.orc`` has these rows, with :data:`KEYS` in its footer."""
    storage, schema = Storage(folder), tables[0].schema
    encoding = OrcSettings(codec, stripe_bytes)
    writer = OrcWriter(storage, "p/a.orc", schema, encoding, arrow_to_avro(schema, "r", "n"))
    for table in tables:
        writer.write(table)
    assert writer.close(KEYS) == (folder / "p" / "a.orc").stat().st_size
    return storage
