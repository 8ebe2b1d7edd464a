"""The outcome for rows whose column has another type than the table's column, from one table of pairs.

:func:`outcome_of` looks a pair of scalar types up. Rows never change their meaning silently: any change but a widening
that keeps each value needs an option, causes a warning, or is refused with the cast to write.

==========  ========================================================  =================================================
outcome     a write of rows                                           a value of SQL, of an update or of a merge
==========  ========================================================  =================================================
SAME        is stored                                                 is stored
ROWS        the rows become the table's type; each value fits         is cast
CHECKED     the same, if each value fits; else nothing is written     is cast
COLUMN      the column becomes the rows' type; each value fits        is cast; the column stays as it is
TEXT        the column becomes text, with a warning                   is cast; the column stays as it is
ROUNDED     the column becomes the rows' type with                    is cast; the column stays as it is
            ``hudi_fast.allow.rounding`` only, with a warning
ZONED       is refused: the value depends on a time zone              is cast in the zone of a Spark session; refused
                                                                      in one process
CAST        is refused                                                is cast
NEVER       is refused                                                is refused
==========  ========================================================  =================================================

On Spark, rows with timestamps of the other kind are cast in the session's zone before this table is used.

Source: ``HoodieSchemaCompatibilityChecker`` of Hudi 1.2.0, and Spark's ``Cast.canANSIStoreAssign``.
docs/schema-evolution.md lists the differences from Hudi.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum

import pyarrow as pa

from hudi_fast.errors import SchemaMismatchError, UnsupportedFeatureError
from hudi_fast.schema.normalize import storable_type

__all__ = [
    "KINDS",
    "PAIRS",
    "Outcome",
    "cast_to_write",
    "is_assignable",
    "keeps_text",
    "kind_of",
    "outcome_of",
    "require_assignable",
]


class Outcome(Enum):
    """The outcome of one pair of types; the module describes each."""

    SAME = "="
    ROWS = "rows"
    CHECKED = "check"
    COLUMN = "column"
    TEXT = "text"
    ROUNDED = "round"
    ZONED = "zone"
    CAST = "cast"
    NEVER = "-"

    @property
    def keeps_column(self) -> bool:
        """Whether the rows are stored, and the column keeps its type."""
        return self in (Outcome.SAME, Outcome.ROWS, Outcome.CHECKED)


_TABLE = """
          bool  int   long   float  double  string  bytes  date  time   instant  local  decimal
bool      =     -     -      -      -       cast    cast   -     -      -        -      -
int       -     =     column round  column  text    cast   -     -      -        -      cast
long      -     rows  =      round  round   text    cast   -     -      -        -      cast
float     -     check check  =      column  text    cast   -     -      -        -      cast
double    -     rows  check  rows   =       text    cast   -     -      -        -      cast
string    cast  rows  rows   rows   rows    =       check  cast  cast   zone     cast   cast
bytes     cast  cast  cast   cast   cast    rows    =      cast  cast   cast     cast   cast
date      -     -     -      -      -       cast    cast   =     -      zone     cast   -
time      -     -     -      -      -       cast    cast   -     check  -        -      -
instant   -     -     -      -      -       cast    cast   zone  -      check    zone   -
local     -     -     -      -      -       cast    cast   cast  -      zone     check  -
decimal   -     cast  cast   cast   cast    cast    cast   -     -      -        -      cast
"""
"""A line for each type in the table, a column for each type of the rows."""


def _parsed(text: str) -> tuple[tuple[str, ...], Mapping[tuple[str, str], Outcome]]:
    head, *lines = [line.split() for line in text.strip().splitlines()]
    pairs = {(line[0], kind): Outcome(said) for line in lines for kind, said in zip(head, line[1:], strict=True)}
    return tuple(head), pairs


KINDS, PAIRS = _parsed(_TABLE)
"""The kinds of scalar types, and (kind in the table, kind of the rows) -> outcome, for types that differ."""

_KINDS: Mapping[pa.DataType, str] = {
    pa.bool_(): "bool",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "bytes",
    pa.date32(): "date",
}


def kind_of(kind: pa.DataType) -> str | None:
    """The kind of a scalar storable type, as :data:`KINDS` names it; None for nested types and bytes of fixed width."""
    if pa.types.is_timestamp(kind):
        return "local" if kind.tz is None else "instant"
    if pa.types.is_time(kind):
        return "time"
    return "decimal" if pa.types.is_decimal128(kind) else _KINDS.get(kind)


def outcome_of(table: pa.DataType, rows: pa.DataType) -> Outcome:
    """The outcome for rows whose type may differ from the column's.

    Args:
        table: type of the column, storable (``normalize.storable_type``).
        rows: storable type of the rows. Nested types are not compared part by part: call this for each part.
    """
    if table == rows:
        return Outcome.SAME
    pair = kind_of(table), kind_of(rows)
    if pair == ("decimal", "decimal"):
        if _holds(table, rows):
            return Outcome.ROWS
        return Outcome.COLUMN if _holds(rows, table) else Outcome.CAST
    if None in pair:
        nested = pa.types.is_nested(table) or pa.types.is_nested(rows)
        return Outcome.NEVER if nested else Outcome.CAST
    return PAIRS[pair]  # type: ignore[index]


def keeps_text(table: pa.DataType, rows: pa.DataType) -> bool:
    """Whether a column that takes the rows' type keeps the text of each value; keys and paths contain that text."""
    if pa.types.is_decimal(table) and pa.types.is_decimal(rows):
        return bool(table.scale == rows.scale)
    return (table, rows) in ((pa.int32(), pa.int64()), (pa.float32(), pa.float64()))


def _holds(wide: pa.DataType, narrow: pa.DataType) -> bool:
    """Whether one decimal type has at least as many digits as another on both sides of the point."""
    return bool(wide.scale >= narrow.scale and wide.precision - wide.scale >= narrow.precision - narrow.scale)


def require_assignable(table: pa.DataType, value: pa.DataType, column: str, where: str, has_zone: bool = False) -> None:
    """Refuse a value of SQL, of an update or of a merge whose meaning a cast to the column's type would change.

    Args:
        table: type of the column.
        value: type of the value; any Arrow type.
        column: name of the column.
        where: statement or clause, for the message.
        has_zone: whether the cast uses the time zone of a session.

    Raises:
        SchemaMismatchError: the cast would change the meaning; the message names both types and the cast to write.
    """
    for one, other, path in _unassignable(table, value, column, has_zone):
        raise SchemaMismatchError(
            f"{where}: column {path!r} is {one} in the table and the value is {other}: "
            f"{cast_to_write(one, other, path)}. The table is as before."
        )


def is_assignable(table: pa.DataType, value: pa.DataType) -> bool:
    """Whether a cast without a time zone keeps the meaning of values: :func:`require_assignable` without an error."""
    return not any(_unassignable(table, value, "", False))


def _unassignable(
    table: pa.DataType, value: pa.DataType, column: str, has_zone: bool
) -> Iterator[tuple[pa.DataType, pa.DataType, str]]:
    for one, other, path in _leaves(table, value, column):
        outcome = outcome_of(one, other)
        if outcome is Outcome.NEVER or (outcome is Outcome.ZONED and not has_zone):
            yield one, other, path


def _leaves(table: pa.DataType, value: pa.DataType, path: str) -> Iterator[tuple[pa.DataType, pa.DataType, str]]:
    """Pairs of storable scalar types at the same path. Other differences are left out: the cast refuses them."""
    if pa.types.is_struct(table) and pa.types.is_struct(value):
        given = {field.name: field.type for field in value}
        for field in table:
            if field.name in given:
                yield from _leaves(field.type, given[field.name], f"{path}.{field.name}")
    elif pa.types.is_map(table) and pa.types.is_map(value):
        yield from _leaves(table.item_type, value.item_type, f"{path}.value")
    elif pa.types.is_list(table) and pa.types.is_list(value):
        yield from _leaves(table.value_type, value.value_type, f"{path}.element")
    elif not pa.types.is_nested(table) and not pa.types.is_nested(value):
        try:
            storable = storable_type(value, path, table)
        except (SchemaMismatchError, UnsupportedFeatureError):
            return
        yield table, storable, path


# ---- messages


def cast_to_write(table: pa.DataType, rows: pa.DataType, column: str) -> str:
    """The cast to write to store rows of one type in a column of another type, as the end of a message.

    Args:
        table: type of the column.
        rows: storable type of the rows, or any type of the same kind.
        column: name of the column.
    """
    pair = kind_of(table), kind_of(rows)
    if pair in (("instant", "local"), ("instant", "date")):
        return (
            "say in which zone the rows' clock runs: pyarrow.compute.assume_timezone(column, 'Europe/Oslo'), or "
            f"CAST({column} AS TIMESTAMP) in a Spark session of that zone"
        )
    if pair == ("string", "instant"):
        return (
            "say in which zone to read the clock: pyarrow.compute.strftime(pyarrow.compute.local_timestamp(column.cast("
            f"pa.timestamp('s', 'Europe/Oslo'))), '%Y-%m-%d %H:%M:%S'), or CAST({column} AS STRING) in a Spark session "
            "of that zone"
        )
    if pair in (("local", "instant"), ("date", "instant")):
        return (
            "say in which zone to read the clock: pyarrow.compute.local_timestamp(column.cast(pa.timestamp('us', "
            f"'Europe/Oslo'))), or CAST({column} AS TIMESTAMP_NTZ) in a Spark session of that zone"
        )
    if pair[0] in ("instant", "local") and pair[1] in ("int", "long"):
        return (
            f"say the unit of the numbers: column.cast(pa.int64()).cast({_arrow_text(table, unit='ms')}), or "
            f"timestamp_millis({column}) in Spark; 's' and timestamp_seconds, 'us' and timestamp_micros likewise"
        )
    if pair[0] in ("int", "long") and pair[1] in ("instant", "local"):
        return (
            "say the unit of the numbers: column.cast(pa.timestamp('ms', column.type.tz)).cast(pa.int64()), or "
            f"unix_millis({column}) in Spark; 's' and unix_seconds, 'us' and unix_micros likewise"
        )
    spark = _SPARK_NAMES.get(kind_of(table) or "")
    if pa.types.is_decimal(table):
        spark = f"DECIMAL({table.precision}, {table.scale})"
    return f"cast the rows: column.cast({_arrow_text(table)})" + (f", or CAST({column} AS {spark})" if spark else "")


_SPARK_NAMES: Mapping[str, str] = {
    "bool": "BOOLEAN",
    "int": "INT",
    "long": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "STRING",
    "bytes": "BINARY",
    "date": "DATE",
    "instant": "TIMESTAMP",
    "local": "TIMESTAMP_NTZ",
}
_ARROW_NAMES: Mapping[str, str] = {
    "bool": "pa.bool_()",
    "int": "pa.int32()",
    "long": "pa.int64()",
    "float": "pa.float32()",
    "double": "pa.float64()",
    "string": "pa.string()",
    "bytes": "pa.binary()",
    "date": "pa.date32()",
}


def _arrow_text(kind: pa.DataType, unit: str = "") -> str:
    """The Python expression of a type."""
    if pa.types.is_timestamp(kind):
        return f"pa.timestamp({unit or kind.unit!r}{', ' if kind.tz else ''}{repr(kind.tz) if kind.tz else ''})"
    if pa.types.is_decimal(kind):
        return f"pa.decimal128({kind.precision}, {kind.scale})"
    if pa.types.is_time(kind):
        return f"pa.time{kind.bit_width}({kind.unit!r})"
    return _ARROW_NAMES.get(kind_of(kind) or "", str(kind))
