"""The history of a table's schema as Arrow tables, for display."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pyarrow as pa

from hudi_fast.formats.avro.schema import is_meta_field
from hudi_fast.schema.internal import ArrayType, InternalSchema, InternalType, MapType, with_path
from hudi_fast.view.table_state import TableState

__all__ = ["schema_changes", "schema_versions"]

_COLUMNS = pa.schema(
    [
        ("version", pa.string()),
        ("id", pa.int32()),
        ("column", pa.string()),
        ("type", pa.string()),
        ("nullable", pa.bool_()),
        ("comment", pa.string()),
    ]
)

_CHANGES = pa.schema([(name, pa.string()) for name in ("version", "change", "column", "before", "after")])


def schema_versions(state: TableState) -> pa.Table:
    """One row per column or nested field of each version, oldest version first, without meta columns."""
    rows: list[dict[str, Any]] = []
    for schema in () if state.view.history is None else state.view.history.versions:
        for path, field in with_path(schema.record):
            if not is_meta_field(path):
                rows.append(
                    {
                        "version": str(schema.version),
                        "id": field.id,
                        "column": path,
                        "type": _text(field.type),
                        "nullable": field.optional,
                        "comment": field.doc,
                    }
                )
    return pa.Table.from_pylist(rows, _COLUMNS)


def schema_changes(state: TableState) -> pa.Table:
    """One row per column that a version changed: version, change, column, before, after.

    ``column`` is its dotted name in that version; for a dropped column, in the version before.
    """
    versions = () if state.view.history is None else state.view.history.versions
    rows = [row for before, after in pairwise(versions) for row in _changes(before, after)]
    return pa.Table.from_pylist(rows, _CHANGES)


def _changes(before: InternalSchema, after: InternalSchema) -> Iterator[dict[str, str | None]]:
    old = {field.id: (path, field) for path, field in with_path(before.record)}
    new = {field.id: (path, field) for path, field in with_path(after.record)}

    def row(change: str, column: str, was: str | None, now: str | None) -> dict[str, str | None]:
        return {"version": str(after.version), "change": change, "column": column, "before": was, "after": now}

    for number, (path, field) in old.items():
        if number not in new:
            yield row("dropped", path, _text(field.type), None)
    for number, (path, field) in new.items():
        if number not in old:
            yield row("added", path, None, _text(field.type))
            continue
        was = old[number][1]
        if was.name != field.name:
            yield row("renamed", path, was.name, field.name)
        if _text(was.type) != _text(field.type):
            yield row("retyped", path, _text(was.type), _text(field.type))
        if was.optional != field.optional:
            yield row("nullable", path, str(was.optional).lower(), str(field.optional).lower())
        if was.doc != field.doc:
            yield row("comment", path, was.doc, field.doc)


def _text(kind: InternalType) -> str:
    if isinstance(kind, str):
        return kind
    return "list" if isinstance(kind, ArrayType) else "map" if isinstance(kind, MapType) else "struct"
