"""The storable form of any Arrow schema.

Hudi's schema is an Avro schema, so many Arrow types that differ only in layout or width share one storable type
(``formats.avro.schema`` has the list). A type is mapped if its storable type holds every value, or every value that a
later check accepts. All other types are rejected by name in one message. ``schema.conform`` converts the data
accordingly.

=====================================================  ====================================
input                                                  stored
=====================================================  ====================================
int8, int16, uint8, uint16                             int32
uint32                                                 int64
float16                                                float32
large_string, string_view                              string
large_binary, binary_view                              binary
large_list, list_view, large_list_view, list of n      list
dictionary, run-end encoded                            their value type
timestamp of any unit, with any zone                   timestamp[us, UTC]
timestamp of any unit, no zone                         timestamp[us]
time32, time64 of any unit                             time32[ms], time64[us]
date64                                                 date32
decimal32, decimal64, decimal256 (up to 38 digits)     decimal128
null                                                   the table's type for that column
any list with the metadata ``hudi_type`` VECTOR(n)     fixed-size list of n
struct with the metadata ``hudi_type`` BLOB            Hudi's blob (:mod:`hudi_fast.formats.logical_types`)
=====================================================  ====================================
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa

from hudi_fast.errors import HudiError, SchemaMismatchError, UnsupportedFeatureError
from hudi_fast.formats.avro.schema import check_column_name, is_meta_field
from hudi_fast.formats.column_limits import check_type_limits
from hudi_fast.formats.logical_types import BLOB, HUDI_TYPE, is_vector, vector_of_descriptor

__all__ = ["bare_schema", "bare_type", "normalize_input_schema", "storable_type"]

_SIMPLE: Mapping[pa.DataType, pa.DataType] = {
    **{each: each for each in (pa.bool_(), pa.int32(), pa.int64(), pa.float32(), pa.float64())},
    **{each: each for each in (pa.string(), pa.binary(), pa.date32(), pa.time32("ms"), pa.time64("us"))},
    **{each: pa.int32() for each in (pa.int8(), pa.int16(), pa.uint8(), pa.uint16())},
    pa.uint32(): pa.int64(),
    pa.float16(): pa.float32(),
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
    pa.date64(): pa.date32(),
    pa.time32("s"): pa.time32("ms"),
    pa.time64("ns"): pa.time64("us"),
}


def normalize_input_schema(schema: pa.Schema, table: pa.Schema | None = None) -> pa.Schema:
    """The storable form of a schema, which is the schema of a new table with these columns.

    Hudi's meta columns and all metadata are dropped; order and nullability are kept.

    Args:
        schema: schema of the incoming data.
        table: schema of the table, if it exists: defines the type of columns of Arrow's ``null`` type.

    Raises:
        SchemaMismatchError: names that differ only in case, names that Avro cannot store, uint64, a column of type null
            that the table does not have, a struct without fields; the message lists all of them.
        UnsupportedFeatureError: durations, intervals, unions, extension types, maps with keys that are not strings,
            decimals over 38 digits; the message lists all of them. Also for types beyond the limits of a table's types.
    """
    columns = [each for each in schema if not is_meta_field(each.name)]
    check_type_limits(columns)
    known = {} if table is None else {each.name: each.type for each in table}
    problems: list[HudiError] = []
    fields = _normal_fields(columns, "", known, problems)
    if problems:
        kind = type(problems[0]) if len({type(each) for each in problems}) == 1 else SchemaMismatchError
        listed = "\n".join(f"  - {each}" for each in problems)
        raise kind(f"The incoming schema cannot be stored in a Hudi table ({len(problems)} problem(s)):\n{listed}")
    return pa.schema(fields)


def bare_schema(schema: pa.Schema) -> pa.Schema:
    """A schema of storable types without metadata, at all levels."""
    return pa.schema([_bare_field(each) for each in schema])


def bare_type(kind: pa.DataType) -> pa.DataType:
    """A storable type without the metadata of its inner fields (such as Parquet's field ids)."""
    if pa.types.is_struct(kind):
        return pa.struct([_bare_field(each) for each in kind])
    if pa.types.is_list(kind):
        return pa.list_(_bare_field(kind.value_field))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, _bare_field(kind.item_field))
    return kind


def _bare_field(column: pa.Field) -> pa.Field:
    return pa.field(column.name, bare_type(column.type), nullable=column.nullable)


def storable_type(kind: pa.DataType, path: str, known: pa.DataType | None = None) -> pa.DataType:
    """The storable type for one Arrow type.

    Args:
        kind: any Arrow type.
        path: dotted path of the column, for messages.
        known: the table's type of that column, used if ``kind`` is null.

    Raises:
        SchemaMismatchError, UnsupportedFeatureError: see :func:`normalize_input_schema`; the first problem.
    """
    check_type_limits([pa.field(path, kind)])
    problems: list[HudiError] = []
    result = _normal_type(kind, path, known, problems)
    if problems:
        raise problems[0]
    return result


def _normal_fields(
    columns: Iterable[pa.Field], path: str, known: Mapping[str, pa.DataType], problems: list[HudiError]
) -> list[pa.Field]:
    seen: dict[str, str] = {}
    fields: list[pa.Field] = []
    for column in columns:
        where = f"{path}.{column.name}" if path else column.name
        twin = seen.get(column.name.lower())
        if twin is not None:
            clash = "occurs twice" if twin == column.name else f"differs from column {twin!r} only in case"
            problems.append(SchemaMismatchError(f"Column {where!r} {clash}; rename or drop one of the two."))
            continue
        seen[column.name.lower()] = column.name
        try:
            check_column_name(column.name, f"column {where}")
        except SchemaMismatchError as error:
            problems.append(error)
        kind = _normal_column(column, where, known.get(column.name), problems)
        fields.append(pa.field(column.name, kind, nullable=column.nullable))
    return fields


def _normal_column(column: pa.Field, path: str, known: pa.DataType | None, problems: list[HudiError]) -> pa.DataType:
    """The storable type of a column, whose metadata may name one of Hudi's own types."""
    text = _hudi_type(column)
    if text is None and known is not None and is_vector(known) and _is_any_list(column.type):
        return known
    if text is None:
        return _normal_type(column.type, path, known, problems)
    if text.strip().upper() == "BLOB" and pa.types.is_struct(column.type):
        if [member.name for member in column.type] == [member.name for member in BLOB]:
            return BLOB
        problems.append(SchemaMismatchError(f"Column {path!r} is {column.type}; a blob is {BLOB}."))
        return column.type
    if not text.strip().upper().startswith("VECTOR"):
        problems.append(UnsupportedFeatureError(f"Column {path!r} has Hudi's type {text} ({HUDI_TYPE})."))
        return column.type
    if "." in path or not _is_any_list(column.type):
        problems.append(SchemaMismatchError(f"Column {path!r} is {column.type}; {text} takes a list at the top level."))
        return column.type
    try:
        return vector_of_descriptor(text, path)
    except SchemaMismatchError as error:
        problems.append(error)
        return column.type


def _hudi_type(column: pa.Field) -> str | None:
    raw = (column.metadata or {}).get(HUDI_TYPE.encode())
    return None if raw is None else raw.decode("utf-8", "replace")


def _is_any_list(kind: pa.DataType) -> bool:
    return pa.types.is_nested(kind) and hasattr(kind, "value_field")


def _normal_type(kind: pa.DataType, path: str, known: pa.DataType | None, problems: list[HudiError]) -> pa.DataType:
    """The storable type; on failure ``kind`` itself, with an error added to ``problems``."""
    simple = _SIMPLE.get(kind)
    if simple is not None:
        return simple
    if pa.types.is_null(kind) and known is not None:
        return known
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", tz=None if kind.tz is None else "UTC")
    if pa.types.is_fixed_size_binary(kind) and kind.byte_width > 0:
        return kind
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return _normal_type(kind.value_type, path, known, problems)
    if pa.types.is_decimal(kind):
        return _normal_decimal(kind, path, problems)
    if pa.types.is_nested(kind) and not pa.types.is_union(kind):
        return _normal_nested(kind, path, known, problems)
    problems.append(_refusal(kind, path))
    return kind


def _normal_nested(kind: pa.DataType, path: str, known: pa.DataType | None, problems: list[HudiError]) -> pa.DataType:
    if pa.types.is_struct(kind):
        inner = {} if known is None or not pa.types.is_struct(known) else {each.name: each.type for each in known}
        if kind.num_fields == 0:
            problems.append(SchemaMismatchError(f"Column {path!r} is a struct without fields; drop it."))
        return pa.struct(_normal_fields(list(kind), path, inner, problems))
    if pa.types.is_map(kind):
        if _storable_key(kind.key_type) is None:
            problems.append(
                UnsupportedFeatureError(
                    f"Column {path!r} is a map with keys of type {kind.key_type}; Hudi's maps have string keys only."
                )
            )
        inner_known = known.item_type if known is not None and pa.types.is_map(known) else None
        value = _normal_type(kind.item_type, f"{path}.value", inner_known, problems)
        return pa.map_(pa.string(), pa.field("value", value, nullable=kind.item_field.nullable))
    inner_known = known.value_type if known is not None and pa.types.is_list(known) else None
    element = _normal_type(kind.value_type, f"{path}.element", inner_known, problems)
    return pa.list_(pa.field("element", element, nullable=kind.value_field.nullable))


def _storable_key(kind: pa.DataType) -> pa.DataType | None:
    """``string`` for all string types of Arrow; None for a type that cannot be a map's key."""
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    return pa.string() if _SIMPLE.get(plain) == pa.string() else None


def _normal_decimal(kind: pa.DataType, path: str, problems: list[HudiError]) -> pa.DataType:
    # Avro, unlike Arrow, requires 0 <= scale <= precision; a few more digits keep every value
    scale = max(kind.scale, 0)
    precision = max(kind.precision - min(kind.scale, 0), scale)
    if precision > 38:
        problems.append(
            UnsupportedFeatureError(f"Column {path!r} has type {kind}: {precision} digits; decimals hold up to 38.")
        )
        return kind
    return pa.decimal128(precision, scale)


def _refusal(kind: pa.DataType, path: str) -> HudiError:
    if pa.types.is_null(kind):
        return SchemaMismatchError(
            f"Column {path!r} has no type (Arrow's null type: all values are null) and the table has no such column "
            "to take the type from; cast it to the intended type, or drop it."
        )
    if kind == pa.uint64():
        return SchemaMismatchError(
            f"Column {path!r} has type uint64, but Hudi's widest integer is a signed 64-bit one; "
            "cast it to int64, decimal128(20, 0) or string."
        )
    if isinstance(kind, pa.BaseExtensionType):
        return UnsupportedFeatureError(
            f"Column {path!r} has the extension type {kind}; cast it to its storage type {kind.storage_type}."
        )
    return UnsupportedFeatureError(f"Column {path!r} has type {kind}, which Hudi cannot hold; cast it to another type.")
