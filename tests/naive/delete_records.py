"""Lists of deletes by fastavro, with the schema that Hudi was built with, and by a walk over the bytes."""

from __future__ import annotations

import io
from typing import Any

import fastavro

BRANCHES = "Boolean Int Long Float Double Bytes String Date Decimal TimeMicros TimestampMicros".split()
TYPES: dict[str, Any] = {name: name.lower() for name in BRANCHES[:7]} | {
    "Date": "int",
    "Decimal": "bytes",
    "TimeMicros": "long",
    "TimestampMicros": "long",
}
WRAPPERS: list[Any] = [
    {"type": "record", "name": f"{name}Wrapper", "fields": [{"name": "value", "type": TYPES[name]}]}
    for name in BRANCHES
]
LOCAL_DATE = {"type": "record", "name": "LocalDateWrapper", "fields": [{"name": "value", "type": "int"}]}
ARRAY = {
    "type": "record",
    "name": "ArrayWrapper",
    "fields": [
        {
            "name": "wrappedValues",
            "type": ["null", {"type": "array", "items": ["null", *(f"{n}Wrapper" for n in BRANCHES), LOCAL_DATE]}],
        }
    ],
}
ENTRY = {
    "type": "record",
    "name": "HoodieDeleteRecord",
    "fields": [
        {"name": "recordKey", "type": ["null", "string"]},
        {"name": "partitionPath", "type": ["null", "string"]},
        {"name": "orderingVal", "type": ["null", *WRAPPERS, ARRAY]},
    ],
}
SCHEMA = fastavro.parse_schema({"type": "array", "items": ENTRY})

Value = tuple[str, Any] | None
"""(wrapper without that word, value), or None for null."""


def _wrapped(value: Value) -> Any:
    return None if value is None else (f"{value[0]}Wrapper", {"value": value[1]})


def encode(entries: list[tuple[str | None, str | None, Value | list[Value]]]) -> bytes:
    """The list that entries (key, partition path, ordering value or several) are."""
    rows = []
    for key, partition, ordering in entries:
        if isinstance(ordering, list):
            union: Any = ("ArrayWrapper", {"wrappedValues": [_wrapped(value) for value in ordering]})
        else:
            union = _wrapped(ordering)
        rows.append({"recordKey": key, "partitionPath": partition, "orderingVal": union})
    out = io.BytesIO()
    fastavro.schemaless_writer(out, SCHEMA, rows)
    return out.getvalue()


def decode(raw: bytes) -> list[tuple[str | None, str | None, Value | list[Value]]]:
    """The entries of a list."""
    rows = fastavro.schemaless_reader(io.BytesIO(raw), SCHEMA, None, return_record_name=True)
    return [(row["recordKey"], row["partitionPath"], _unwrapped(row["orderingVal"])) for row in rows]


def _unwrapped(union: Any) -> Value | list[Value]:
    if union is None:
        return None
    name, record = union
    if name == "ArrayWrapper":
        return [_unwrapped(value) for value in record["wrappedValues"]]
    return name.removesuffix("Wrapper"), record["value"]
