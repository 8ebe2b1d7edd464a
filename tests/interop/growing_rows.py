"""Rows of three schemas, each of which holds all that the one before it holds: new columns, wider types."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa

__all__ = ["SMALL", "WIDE", "WIDEST", "only", "rows_of", "widened"]

SMALL = pa.schema(
    {
        "id": pa.string(),
        "part": pa.string(),
        "ts": pa.int64(),
        "n": pa.int32(),
        "m": pa.int32(),
        "f": pa.float32(),
        "dec": pa.decimal128(5, 2),
        "box": pa.struct([("x", pa.int32())]),
        "all": pa.list_(pa.int32()),
        "word": pa.string(),
    }
)
WIDE = pa.schema(
    {
        **{name: SMALL.field(name).type for name in SMALL.names},
        "n": pa.int64(),
        "m": pa.float64(),
        "f": pa.float64(),
        "box": pa.struct([("x", pa.int32()), ("y", pa.string())]),
        "added": pa.string(),
    }
)
WIDEST = pa.schema({**{name: WIDE.field(name).type for name in WIDE.names}, "again": pa.list_(pa.float64())})


def rows_of(schema: pa.Schema, ids: range, ts: int) -> pa.Table:
    """Rows whose values fit every schema here."""
    values = {
        "id": [f"k{i:02d}" for i in ids],
        "part": [f"p{i % 2}" for i in ids],
        "ts": [ts] * len(ids),
        "n": [None if i % 4 == 0 else -i for i in ids],
        "m": [i * ts for i in ids],
        "f": [i / 4 for i in ids],
        "dec": [Decimal(i * ts).scaleb(-2) for i in ids],
        "box": [{"x": i, "y": f"y{i}"} for i in ids],
        "all": [[i] * (i % 3) for i in ids],
        "word": [f"w{i}" for i in ids],
        "added": [f"a{i}" for i in ids],
        "again": [[i / 2] for i in ids],
    }
    columns = dict(values)
    columns["box"] = [{field.name: each[field.name] for field in schema.field("box").type} for each in values["box"]]
    return pa.table([pa.array(columns[name], schema.field(name).type) for name in schema.names], schema=schema)


def widened(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows of an older schema as the newer one shows them."""
    columns = {name: rows[name].to_pylist() for name in rows.column_names}
    return pa.table(
        [pa.array(columns.get(name, [None] * rows.num_rows), schema.field(name).type) for name in schema.names],
        schema=schema,
    )


def only(rows: pa.Table, part: str) -> pa.Table:
    """The rows of one partition."""
    return rows.filter(pa.compute.equal(rows["part"], part))
