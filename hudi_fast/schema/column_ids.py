"""Column ids after a write to a table with a schema history.

New columns get new ids, and all other columns keep theirs. A write that replaces the columns gives new ids to all.

::

    previous InternalSchema, columns of the write ─► InternalSchema of the write

Source: ``AvroSchemaEvolutionUtils.reconcileSchema`` (Hudi 1.2.0), which never drops or renames a column.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from hudi_fast.formats.avro.schema import is_meta_field
from hudi_fast.schema.internal import ArrayType, Field, InternalSchema, InternalType, MapType, RecordType, highest_id
from hudi_fast.schema.internal_types import internal_type, plain_arrow_type

__all__ = ["evolved_ids", "replaced_ids"]


def evolved_ids(before: InternalSchema, columns: pa.Schema, version: int) -> InternalSchema:
    """The internal schema of a table after a write with these columns.

    ``columns`` are the data columns of the table after the write. ``before`` is the newest schema; its columns that are
    missing in ``columns`` are kept at the end: files of some tables do not store their partition columns. If the result
    differs from ``before``, it has ``version``, the requested time of the write.

    Raises:
        UnsupportedFeatureError: a new column has a type that internal schemas do not have.
    """
    ids = itertools.count(before.max_column_id + 1)
    meta = tuple(field for field in before.record.fields if is_meta_field(field.name))
    data = tuple(field for field in before.record.fields if not is_meta_field(field.name))
    record = RecordType((*meta, *_fields(data, list(columns), "", ids)))
    if record == before.record:
        return before
    return InternalSchema(version, max(before.max_column_id, highest_id(record)), record)


def replaced_ids(before: InternalSchema, columns: pa.Schema, version: int) -> InternalSchema:
    """The internal schema of a table after a write that replaced all rows and columns: no column keeps its id.

    Args:
        before: the newest schema.
        columns: data columns of the table after the write.
        version: requested time of the write.

    Raises:
        UnsupportedFeatureError: a column has a type that internal schemas do not have.
    """
    ids = itertools.count(before.max_column_id + 1)
    meta = tuple(field for field in before.record.fields if is_meta_field(field.name))
    record = RecordType((*meta, *_fields((), list(columns), "", ids)))
    return InternalSchema(version, highest_id(record), record)


def _fields(before: Sequence[Field], columns: Sequence[pa.Field], path: str, ids: Iterator[int]) -> tuple[Field, ...]:
    known = {field.name: field for field in before}
    made = []
    for column in columns:
        where = f"{path}.{column.name}" if path else column.name
        old = known.pop(column.name, None)
        if old is None:
            own = next(ids)
            made.append(Field(own, column.name, column.nullable, internal_type(column.type, where, ids)))
        else:
            kind = _type(old.type, column.type, where, ids)
            made.append(replace(old, optional=column.nullable, type=kind))
    return (*made, *known.values())


def _type(before: InternalType, kind: pa.DataType, path: str, ids: Iterator[int]) -> InternalType:
    match before:
        case RecordType(fields) if pa.types.is_struct(kind):
            return RecordType(_fields(fields, list(kind), path, ids))
        case ArrayType(element) if pa.types.is_list(kind):
            inner = _type(element.type, kind.value_type, f"{path}.element", ids)
            return ArrayType(replace(element, optional=kind.value_field.nullable, type=inner))
        case MapType(key, value) if pa.types.is_map(kind):
            inner = _type(value.type, kind.item_type, f"{path}.value", ids)
            return MapType(key, replace(value, optional=kind.item_field.nullable, type=inner))
        case str() as text if plain_arrow_type(text) == kind:
            return text
    return internal_type(kind, path, ids)
