"""Rows with a column of every type that Hudi and Spark share, each with extreme values and nulls."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

__all__ = ["SPARK_TYPES", "all_types"]

_POINT = pa.struct([("x", pa.int32()), ("label", pa.string())])
_INNER = pa.struct([("when", pa.timestamp("us", "UTC")), ("d", pa.decimal128(9, 3))])
_DEEP = pa.struct([("n", pa.int64()), ("inner", _INNER)])

_COLUMNS: dict[str, tuple[pa.DataType, str, Any]] = {
    # name: Arrow type, Spark type, value of the i-th row
    "b": (pa.bool_(), "boolean", lambda i: i % 2 == 0),
    "i": (pa.int32(), "int", lambda i: (-1) ** i * (2**31 - 1 - i)),
    "l": (pa.int64(), "bigint", lambda i: (-1) ** i * (2**63 - 1 - i)),
    "f": (pa.float32(), "float", lambda i: [0.5, -1.25, float("inf"), 3e38][i % 4]),
    "d": (pa.float64(), "double", lambda i: [0.1, -1e300, float("-inf"), 5e-324][i % 4]),
    "s": (pa.string(), "string", lambda i: ["", "ü€😀", "a" * 300, "line\n\ttab\x00"][i % 4]),
    "bin": (pa.binary(), "binary", lambda i: [b"", b"\x00\xff", bytes(range(256)), b"a"][i % 4]),
    "date": (pa.date32(), "date", lambda i: dt.date(1583, 1, 3 + i % 20) if i % 3 else dt.date(1965, 5, 1 + i % 20)),
    "at": (
        pa.timestamp("us", "UTC"),
        "timestamp",
        lambda i: dt.datetime([1955, 2024, 9999, 1970][i % 4], 1, 1, 12, 30, 5, i, tzinfo=dt.UTC),
    ),
    "wall": (
        pa.timestamp("us"),
        "timestamp_ntz",
        lambda i: dt.datetime([1955, 2024, 9999, 1970][i % 4], 12, 31, 23, 59, 59, 999_999 - i),
    ),
    "dec5": (pa.decimal128(5, 2), "decimal(5,2)", lambda i: Decimal(f"{(-1) ** i * (99999 - i)}E-2")),
    "dec15": (pa.decimal128(15, 3), "decimal(15,3)", lambda i: Decimal(f"{(-1) ** i * (10**15 - 1 - i)}E-3")),
    "dec20": (pa.decimal128(20, 0), "decimal(20,0)", lambda i: Decimal((-1) ** i * (10**20 - 1 - i))),
    "dec38": (pa.decimal128(38, 10), "decimal(38,10)", lambda i: Decimal(f"{(-1) ** i * (10**38 - 1 - i)}E-10")),
    "ints": (pa.list_(pa.int32()), "array<int>", lambda i: list(range(i % 4))),
    "texts": (pa.list_(pa.string()), "array<string>", lambda i: ["", "ü"][: i % 3]),
    "lists": (pa.list_(pa.list_(pa.int64())), "array<array<bigint>>", lambda i: [[1, 2], [], [i]][: i % 4]),
    "points": (
        pa.list_(_POINT),
        "array<struct<x:int,label:string>>",
        lambda i: [{"x": i, "label": "p"}, {"x": None, "label": None}][: i % 3],
    ),
    "singles": (
        pa.list_(pa.struct([("only", pa.string())])),
        "array<struct<only:string>>",
        lambda i: [{"only": str(i)}, {"only": None}][: i % 3],
    ),
    "counts": (pa.map_(pa.string(), pa.int32()), "map<string,int>", lambda i: [("a", i), ("b", None)][: i % 3]),
    "places": (
        pa.map_(pa.string(), _POINT),
        "map<string,struct<x:int,label:string>>",
        lambda i: [("home", {"x": i, "label": None})][: i % 2],
    ),
    "series": (
        pa.map_(pa.string(), pa.list_(pa.float64())),
        "map<string,array<double>>",
        lambda i: [("up", [1.0, 2.0]), ("none", [])][: i % 3],
    ),
    "deep": (
        _DEEP,
        "struct<n:bigint,inner:struct<when:timestamp,d:decimal(9,3)>>",
        lambda i: {
            "n": i,
            "inner": None
            if i % 3 == 0
            else {"when": dt.datetime(1960, 1, 1, 0, 0, 0, i, tzinfo=dt.UTC), "d": Decimal(i).scaleb(-3)},
        },
    ),
}

SPARK_TYPES = {name: spark for name, (_, spark, _) in _COLUMNS.items()}
"""What Spark calls the type of each column."""


def all_types(ids: Sequence[int], ts: int = 1) -> pa.Table:
    """Rows with key ``id``, partition ``part``, ordering ``ts``; every fifth value of every other column is null."""
    columns: dict[str, pa.Array] = {
        "id": pa.array([f"k{i:03d}" for i in ids]),
        "part": pa.array([f"p{i % 2}" for i in ids]),
        "ts": pa.array([ts] * len(ids), pa.int64()),
    }
    for number, (name, (kind, _, value)) in enumerate(_COLUMNS.items()):
        columns[name] = pa.array([None if (i + number) % 5 == 0 else value(i + ts) for i in ids], kind)
    return pa.table(columns)
