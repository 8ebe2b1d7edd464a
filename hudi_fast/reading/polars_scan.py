"""A scan as a polars LazyFrame: polars asks for columns, rows that match, and a number of rows.

::

    polars query ─► with_columns, predicate, n_rows ─► arrow_condition ─► plan_scan ─► batches ─► predicate ─► frames

The predicate is applied by polars to all rows that are read, so its meaning is that of polars. Its parts that mean the
same in a filter of Arrow are pushed down as well, to skip files, row groups and rows.

:func:`arrow_condition` reads an expression by polars' public functions: ``meta.pop`` returns the arguments of an
expression, and an expression is ``a < b`` if it equals the one that is made of its arguments by ``<``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.expressions.conditions import chain
from hudi_fast.reading.dataset import Scan
from hudi_fast.storage.extras import import_extra

if TYPE_CHECKING:
    import polars as pl

__all__ = ["arrow_condition", "lazy_frame"]

_COMPARISONS: tuple[Callable[[Any, Any], Any], ...] = (
    operator.eq,
    operator.ne,
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
)
_BETWEEN = {
    "both": (operator.ge, operator.le),
    "left": (operator.ge, operator.lt),
    "right": (operator.gt, operator.le),
    "none": (operator.gt, operator.lt),
}
_DEEPEST = 100
_FAMILIES: tuple[tuple[Callable[[pa.DataType], bool], ...], ...] = (
    (pa.types.is_boolean,),
    (pa.types.is_integer,),
    (pa.types.is_floating,),
    (pa.types.is_decimal,),
    (pa.types.is_date32,),
    (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view),
    (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view),
)
"""Types whose values polars and Arrow compare alike, apart from NaN, which a scan compares as polars does."""


def lazy_frame(scan: Scan) -> pl.LazyFrame:
    """A LazyFrame that reads a scan when it is collected.

    Raises:
        ConfigError: polars is not installed.
    """
    polars = import_extra("polars", "polars", "to_polars")
    plugins = import_extra("polars.io.plugins", "polars", "to_polars")
    frame: pl.LazyFrame = plugins.register_io_source(
        partial(_frames, scan), schema=polars.from_arrow(scan.schema.empty_table()).schema, is_pure=True
    )
    return frame


def _frames(
    scan: Scan, columns: Sequence[str] | None, predicate: pl.Expr | None, n_rows: int | None, batch_size: int | None
) -> Iterator[pl.DataFrame]:
    """The frames that polars asks for; it takes the first ``n_rows`` before it applies the predicate."""
    import polars

    asked = list(columns) if columns else None
    if n_rows is not None:
        batches = scan.first_batches(n_rows, asked)
    else:
        batches = scan.to_batches(asked, None if predicate is None else arrow_condition(predicate, scan.schema))
    for batch in batches:
        frame = polars.DataFrame(batch)
        yield frame if predicate is None else frame.filter(predicate)


def arrow_condition(predicate: pl.Expr, schema: pa.Schema) -> pc.Expression | None:
    """A condition that is true for all rows for which the predicate is true; None if nothing is known of them.

    Args:
        predicate: a condition of polars.
        schema: the columns that it names.
    """
    parts = [part for one in chain(predicate, _both_sides) if (part := _implied(one, schema, _DEEPEST)) is not None]
    return reduce(operator.and_, parts) if parts else None


def _both_sides(one: pl.Expr) -> list[pl.Expr] | None:
    """The two sides of an ``and``; None for others."""
    both = _arguments(one, 2)
    return both if both is not None and one.meta.eq(operator.and_(*both)) else None


def _implied(one: pl.Expr, schema: pa.Schema, depth: int) -> pc.Expression | None:
    """A condition that is true where ``one`` is true, and maybe elsewhere."""
    both = _arguments(one, 2)
    if both is None or not depth:
        return _exact(one, schema, depth)
    for join in (operator.and_, operator.or_):
        if one.meta.eq(join(*both)):
            found = [part for each in both if (part := _implied(each, schema, depth - 1)) is not None]
            return reduce(join, found) if len(found) == 2 or (found and join is operator.and_) else None
    if one.meta.eq(both[0].is_in(both[1])):
        return _listed(both[0], both[1], schema)
    return _exact(one, schema, depth)


def _exact(one: pl.Expr, schema: pa.Schema, depth: int) -> pc.Expression | None:
    """A condition that is true, false and null where ``one`` is."""
    column = _column(one, schema)
    if column is not None:
        return column[0] if pa.types.is_boolean(column[1]) else None
    arguments = one.meta.pop()[::-1]
    if not depth or not 1 <= len(arguments) <= 3:
        return None
    if len(arguments) == 1:
        return _of_one(one, arguments[0], schema, depth)
    if len(arguments) == 3:
        return _between(one, arguments[0], arguments[1], arguments[2], schema)
    left, right = arguments
    for join in (operator.and_, operator.or_):
        if one.meta.eq(join(left, right)):
            parts = [_exact(each, schema, depth - 1) for each in arguments]
            return None if parts[0] is None or parts[1] is None else join(*parts)
    for compare in _COMPARISONS:
        if one.meta.eq(compare(left, right)):
            return _compared(compare, left, right, schema)
    column = _column(left, schema)
    if column is not None and pa.types.is_string(column[1]) and one.meta.eq(left.str.starts_with(right)):
        prefix = _constant(right, column[1])
        return None if prefix is None else pc.starts_with(column[0], prefix.as_py())
    return None


def _of_one(one: pl.Expr, part: pl.Expr, schema: pa.Schema, depth: int) -> pc.Expression | None:
    if one.meta.eq(~part):
        found = _exact(part, schema, depth - 1)
        return None if found is None else ~found
    column = _column(part, schema)
    if column is None:
        return None
    field, kind = column
    if one.meta.eq(part.is_null()):
        return field.is_null()
    if one.meta.eq(part.is_not_null()):
        return field.is_valid()
    if pa.types.is_floating(kind) and one.meta.eq(part.is_nan()):
        return pc.is_nan(field)
    return None


def _between(one: pl.Expr, value: pl.Expr, low: pl.Expr, high: pl.Expr, schema: pa.Schema) -> pc.Expression | None:
    for closed, (above, below) in _BETWEEN.items():
        if one.meta.eq(value.is_between(low, high, closed)):  # type: ignore[arg-type]
            parts = _compared(above, value, low, schema), _compared(below, value, high, schema)
            return None if parts[0] is None or parts[1] is None else parts[0] & parts[1]
    return None


def _compared(
    compare: Callable[[Any, Any], Any], left: pl.Expr, right: pl.Expr, schema: pa.Schema
) -> pc.Expression | None:
    one, other = _column(left, schema), _column(right, schema)
    if one is not None and other is not None:
        return compare(one[0], other[0]) if one[1] == other[1] else None
    if one is not None and (value := _constant(right, one[1])) is not None:
        return compare(one[0], value)
    if other is not None and (value := _constant(left, other[1])) is not None:
        return compare(pc.scalar(value), other[0])
    return None


def _listed(value: pl.Expr, values: pl.Expr, schema: pa.Schema) -> pc.Expression | None:
    """Whether a column is one of some values; false instead of null for a null."""
    column, found = _column(value, schema), _evaluated(values)
    if column is None or found is None:
        return None
    if found.dtype.is_nested():
        if len(found) != 1 or found[0] is None:
            return None
        found = found[0]
    wanted = []
    for each in found.drop_nulls().to_arrow():
        value_of_type = _as_type(each, column[1])
        if value_of_type is None:
            return None
        wanted.append(value_of_type.as_py())
    return column[0].isin(pa.array(wanted, column[1]))


def _column(one: pl.Expr, schema: pa.Schema) -> tuple[pc.Expression, pa.DataType] | None:
    """A column or a field of a struct, and its type, if polars and Arrow compare its values alike."""
    found = _path(one, schema)
    if found is None or not (pa.types.is_timestamp(found[1]) or _family(found[1]) is not None):
        return None
    return pc.field(*found[0]), found[1]


def _path(one: pl.Expr, schema: pa.Schema) -> tuple[tuple[str, ...], pa.DataType] | None:
    parents = _arguments(one, 1)
    if parents is None:
        names = one.meta.root_names()
        is_column = len(names) == 1 and names[0] in schema.names and one.meta.eq(_of_name(names[0]))
        return ((names[0],), schema.field(names[0]).type) if is_column else None
    struct = _path(parents[0], schema)
    if struct is None or not pa.types.is_struct(struct[1]):
        return None
    for field in struct[1]:
        if one.meta.eq(parents[0].struct.field(field.name)):
            return (*struct[0], field.name), field.type
    return None


def _of_name(name: str) -> pl.Expr:
    import polars

    return polars.col(name)


def _constant(one: pl.Expr, kind: pa.DataType) -> pa.Scalar | None:
    """The value of a literal as one of a type; None for another expression, a null, or a value that the type lacks."""
    found = _evaluated(one)
    return None if found is None or len(found) != 1 else _as_type(found.to_arrow()[0], kind)


def _evaluated(one: pl.Expr) -> pl.Series | None:
    """The value of a literal, or of a cast of one."""
    import polars

    parts = _arguments(one, 1)
    if not one.meta.is_literal() and (parts is None or not parts[0].meta.is_literal()):
        return None
    found = polars.select(one).to_series()
    return found if parts is None or one.meta.eq(parts[0].cast(found.dtype)) else None


def _as_type(value: pa.Scalar, kind: pa.DataType) -> pa.Scalar | None:
    if not value.is_valid:
        return None
    if value.type == kind:
        return value
    if pa.types.is_timestamp(kind):
        same = pa.types.is_timestamp(value.type) and value.type.tz == kind.tz
    else:
        same = _family(kind) is not None and _family(kind) == _family(value.type)
    if not same:
        return None
    try:
        cast = value.cast(kind)
        return cast if cast.cast(value.type).equals(value) else None
    except pa.ArrowInvalid:
        return None


def _family(kind: pa.DataType) -> int | None:
    return next((at for at, tests in enumerate(_FAMILIES) if any(test(kind) for test in tests)), None)


def _arguments(one: pl.Expr, count: int) -> list[pl.Expr] | None:
    """The arguments of an expression, if it has this number of them."""
    found = one.meta.pop()[::-1]
    return found if len(found) == count else None
