"""Columns with required parts, and rows in which their parents are null, as Arrow, Spark and Debezium make them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

__all__ = ["SHAPES", "rows_with_null_parents"]

NUMBER = pa.struct([pa.field("no", pa.int32(), nullable=False)])

SHAPES: dict[str, tuple[pa.DataType, Any]] = {
    "s": (NUMBER, {"no": 5}),
    "inner": (
        pa.struct([pa.field("s", NUMBER, nullable=False), pa.field("t", pa.string(), nullable=False)]),
        {"s": {"no": 1}, "t": "x"},
    ),
    "partial": (pa.struct([pa.field("s", NUMBER), pa.field("f", pa.bool_(), nullable=False)]), {"s": None, "f": True}),
    "list": (pa.list_(pa.field("element", NUMBER)), [{"no": 1}, None, {"no": 2}]),
    "items": (pa.list_(pa.field("element", NUMBER, nullable=False)), [{"no": 1}, {"no": 2}]),
    "map": (pa.map_(pa.string(), pa.field("value", NUMBER)), [("k", {"no": 1}), ("l", None)]),
    "held": (
        pa.struct([pa.field("l", pa.list_(pa.field("element", pa.int64(), nullable=False)), nullable=False)]),
        {"l": [1, 2]},
    ),
    "mapped": (
        pa.struct(
            [pa.field("m", pa.map_(pa.string(), pa.field("value", pa.float64(), nullable=False)), nullable=False)]
        ),
        {"m": [("k", 0.5)]},
    ),
}
"""Name of a column: its type, with required parts at different places, and a value."""


def rows_with_null_parents(keys: range, ts: int = 1, shapes: tuple[str, ...] = tuple(SHAPES)) -> pa.Table:
    """Rows whose columns are null for odd keys; Arrow marks nulls of required parts there."""
    places = pa.array([None if key % 2 else 0 for key in keys], pa.int64())
    columns = {name: pa.array([SHAPES[name][1]], SHAPES[name][0]).take(places) for name in shapes}
    return pa.table({"id": [f"k{key}" for key in keys], "part": ["a"] * len(keys), "ts": [ts] * len(keys), **columns})
