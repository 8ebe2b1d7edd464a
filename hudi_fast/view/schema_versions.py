"""The history of a table's schema as an Arrow table, to look at."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from hudi_fast.formats.avro_schema import is_meta_field
from hudi_fast.schema.internal import ArrayType, InternalType, MapType, with_path
from hudi_fast.view.table_state import TableState

__all__ = ["schema_versions"]

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


def schema_versions(state: TableState) -> pa.Table:
    """One row for each column, or field inside one, of each version; oldest version first, meta columns left out.

    Args:
        state: the table.
    """
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


def _text(kind: InternalType) -> str:
    if isinstance(kind, str):
        return kind
    return "list" if isinstance(kind, ArrayType) else "map" if isinstance(kind, MapType) else "struct"
