"""Arrow rows -> JSON text, one object per row."""

from __future__ import annotations

from enum import Enum

import pyarrow as pa

__all__ = ["JsonStyle", "json_rows"]


class JsonStyle(Enum):
    """Whose JSON it is.

    Attributes:
        ROW: of rows (``InternalRowToJsonStringConverter``, Hudi 1.2.0): no spaces, no nulls.
        AVRO: of Avro records (``GenericData.toString``, Avro 1.11): spaces behind commas and colons, nulls.
    """

    ROW = "row"
    AVRO = "avro"


def json_rows(rows: pa.RecordBatch | pa.StructArray, style: JsonStyle) -> pa.StringArray:
    """One text per row; null for a null struct."""
    raise NotImplementedError
