"""Defaults of Avro fields as Arrow values. Source: Avro 1.11 specification, "Complex Types"."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa

from hudi_fast.errors import CorruptTableError, UnsupportedFeatureError
from hudi_fast.formats.avro.types import AvroType, is_general_union, union_members
from hudi_fast.formats.type_limits import MAX_UNSTORED

__all__ = ["default_array"]


def default_array(avro: AvroType, default: Any, kind: pa.DataType, path: str) -> pa.Array | None:
    """The default of a field as an array of one value of type ``kind``; None for null.

    ``default`` is a JSON value or null; for a union it is a value of the first branch. ``path`` names the column in
    messages.

    Raises:
        CorruptTableError: the default does not have the type.
        UnsupportedFeatureError: the default takes more than 64 KiB, in every row that lacks the column.
    """
    if default is None:
        return None
    try:
        made = pa.array([_default(avro, default)], kind)
    except (pa.ArrowException, ArithmeticError, AttributeError, KeyError, TypeError, ValueError) as error:
        shown = repr(default)[:100]
        raise CorruptTableError(f"The default {shown} of column {path} does not have its type, {kind}.") from error
    if made.nbytes > MAX_UNSTORED:
        raise UnsupportedFeatureError(
            f"The default of column {path} takes {made.nbytes} bytes in each row that lacks it; at most {MAX_UNSTORED} "
            "are supported."
        )
    return made


def _default(avro: AvroType, value: Any) -> Any:
    if value is None:
        return None
    if is_general_union(avro):
        name, part = union_members(avro)[0]
        return dict.fromkeys((name, "member0"), _default(part, value))  # the struct has one of the names
    if avro.kind == "union":
        return _default(next(part for part in avro.parts if part.kind != "null"), value)
    if avro.kind == "record":
        return {each.name: _default(each.type, value.get(each.name, each.default)) for each in avro.fields}
    if avro.kind == "array":
        return [_default(avro.parts[0], each) for each in value]
    if avro.kind == "map":
        return [(key, _default(avro.parts[0], each)) for key, each in value.items()]
    if avro.kind in ("bytes", "fixed"):
        raw = value.encode("latin-1")
        declared = avro.json if isinstance(avro.json, Mapping) else {}
        if declared.get("logicalType") == "decimal":
            return Decimal(int.from_bytes(raw, "big", signed=True)).scaleb(-int(declared.get("scale", 0)))
        return raw
    return value
