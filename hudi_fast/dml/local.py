"""DML without Spark: computes the changed rows of a merge, an update or a delete, as Arrow.

::

    source ─► its join columns in the table's types ─► keys ─► filter ─┐
                                                   rows of the table ◄─┘  (all, unless all key columns are equal)
    both ─► pairs ─► matched rows, unmatched rows of either ─► clauses, the first that holds ─► changed rows
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.dml.assignments import (
    assigned,
    check_condition,
    is_upsert,
    mentioned,
    order_values,
    parse_value,
    true_of,
    values_of,
)
from hudi_fast.dml.statement import BY_SOURCE, MATCHED, NOT_MATCHED, Clause, MergeSpec
from hudi_fast.dml.target import (
    PLACES,
    check_columns,
    identity_columns,
    key_filter,
    names_rows,
    pinned_state,
    read_rows,
    roots,
)
from hudi_fast.errors import ConfigError, InvalidDataError
from hudi_fast.formats.varlen import gather, single_chunk
from hudi_fast.keys.key_generator import partition_paths
from hudi_fast.merging.rules import ordering_rank
from hudi_fast.schema.assignment import kind_of, require_assignable
from hudi_fast.schema.conform import assigned_values, conform
from hudi_fast.values import dataclass
from hudi_fast.view.table_state import column_defaults
from hudi_fast.writing.dml_rows import ACTION, CHECK, DELETE, INSERT, KEY, ORDER, PATH, UPDATE, UPSERT
from hudi_fast.writing.write_plan import WritePlan

__all__ = ["Pairs", "beside", "match_rows", "merged_rows", "updated_rows"]

Rows = npt.NDArray[np.int64]

_Chosen: TypeAlias = tuple[Clause, Rows, pa.Table]
"""A clause, the numbers of the rows that it applies to, and these rows."""


@dataclass(frozen=True)
class _Change:
    """Common state of a DML statement.

    Attributes:
        plan: the write.
        spec: the merge; an update or a delete is a merge without a source.
        source: columns of the source.
        columns: data columns of updated rows.
        prefix: prefix of the table's columns in the rows that clauses see.
    """

    plan: WritePlan
    spec: MergeSpec
    source: tuple[str, ...]
    columns: tuple[str, ...]
    prefix: str


def merged_rows(plan: WritePlan, spec: MergeSpec, source: pa.Table) -> pa.Table:
    """The changed rows of a merge, in the form of :mod:`hudi_fast.writing.dml_rows`.

    Raises:
        ConfigError: the merge does not fit the table or the source.
        InvalidDataError: values do not fit.
    """
    condition = check_condition(spec.condition, "on")
    source = _comparable(plan, spec, source)
    change = _Change(plan, spec, tuple(source.column_names), _brought(plan), f"{spec.aliases[0]}.")
    columns = _looked_at(change, condition)
    if is_upsert(plan, spec, change.source):
        rows = source.rename_columns([f"{spec.aliases[1]}.{name}" for name in source.column_names])
        clause = spec.of_kind(NOT_MATCHED)[0]
        values = assigned(clause, plan.config, plan.schema.names, change.source, spec)
        return _acted(values_of(values, rows, plan.schema, clause), UPSERT, _ordered(change, clause, rows))
    by_key = set(plan.config.record_key_fields) <= {one for one, _ in spec.pairs} and bool(
        plan.config.record_key_fields
    )
    narrowed = by_key and not spec.of_kind(BY_SOURCE)
    target = read_rows(plan, columns, key_filter(plan, source, spec.pairs) if narrowed else None)
    pairs = match_rows(target, source, spec, condition)
    parts = _apply(change, spec.of_kind(MATCHED), beside(target, source, pairs, spec), pairs.target)
    if clauses := spec.of_kind(NOT_MATCHED):
        rest = _others(source.num_rows, pairs.source)
        rows = gather(source, rest).rename_columns([f"{spec.aliases[1]}.{name}" for name in source.column_names])
        parts += _apply(change, clauses, rows)
    if clauses := spec.of_kind(BY_SOURCE):
        nothing = source.slice(0, 0).select([])
        alone = Pairs(_others(target.num_rows, pairs.target), np.zeros(0, dtype=np.int64))
        parts += _apply(change, clauses, beside(target, nothing, alone, spec))
    return _together(plan, change, parts, checked=not names_rows(plan, spec))


def updated_rows(plan: WritePlan, clause: Clause, where: pc.Expression | None) -> pa.Table:
    """The changed rows of an update or a delete.

    Args:
        plan: the write.
        clause: of kind :data:`MATCHED`, without a condition.
        where: filter; None for all rows.

    Raises:
        ConfigError: the statement does not fit the table.
        InvalidDataError: values do not fit.
    """
    change = _Change(plan, MergeSpec(clauses=(clause,)), (), _brought(plan), "")
    target = read_rows(plan, _looked_at(change, None), where)
    return _together(plan, change, _apply(change, (clause,), target), checked=False)


# ---- reading


def _brought(plan: WritePlan) -> tuple[str, ...]:
    return tuple(plan.schema.names if plan.partial is None else plan.partial.schema.names)


def _looked_at(change: _Change, condition: pc.Expression | None) -> list[str]:
    """Columns of the table that are read."""
    names = change.plan.schema.names
    prefixed = {f"{change.prefix}{name}": name for name in names}
    wanted = set(identity_columns(change.plan)) | {one for one, _ in change.spec.pairs}
    expressions: list[Any] = [condition]
    for clause in change.spec.clauses:
        expressions.append(check_condition(clause.condition, f"when {clause.kind} {clause.effect}"))
        if clause.effect == "delete":
            continue
        values = assigned(clause, change.plan.config, names, change.source, change.spec)
        visible = [*prefixed, *(f"{change.spec.aliases[1]}.{name}" for name in change.source)]
        for name, value in values.items():
            expressions.append(parse_value(value, visible, f"when {clause.kind} {clause.effect}, column {name!r}"))
        if clause.effect == "update":
            wanted |= set(change.columns) - set(values)
    for one in expressions:
        wanted |= {prefixed[full] for full in mentioned(one, list(prefixed))}
    return [name for name in names if name in wanted]


def _comparable(plan: WritePlan, spec: MergeSpec, source: pa.Table) -> pa.Table:
    """The source with its join columns cast to the table's types; doubles beside a float are compared as doubles."""
    keys = plan.config.record_key_fields
    check_columns([one for one, _ in spec.pairs], plan.schema.names, "on, columns of the table")
    check_columns([one for _, one in spec.pairs], source.column_names, "on, columns of the source")
    for one, other in spec.pairs:
        kind, column = plan.schema.field(one).type, source.column(other)
        if column.type == kind or (kind == pa.float32() and column.type == pa.float64() and one not in keys):
            continue
        require_assignable(kind, column.type, one, f"on, compared with {other!r} of the source")
        try:
            cast = assigned_values(column, kind, one, "on")
            _require_same(column, cast, other)
        except InvalidDataError as error:
            raise InvalidDataError(
                f"on: {other!r} of the source is of type {column.type} and cannot be compared with {one!r} of the "
                f"table, which is {kind}: {error}"
            ) from error
        source = source.set_column(source.column_names.index(other), other, cast)
    return source


def _require_same(values: pa.ChunkedArray, cast: pa.ChunkedArray, column: str) -> None:
    """Refuse values that a cast has changed: they would match rows with another value."""
    one, other = kind_of(values.type), kind_of(cast.type)
    if not {one, other}.isdisjoint({None, "string", "bytes"}):
        return
    changed = pc.not_equal(assigned_values(cast, values.type, column, "on"), values)
    if pa.types.is_floating(values.type):
        changed = pc.and_not(changed, pc.is_nan(values))
    if pc.any(changed, min_count=0).as_py():
        raise InvalidDataError(f"{values.filter(changed)[0].as_py()} is no value of type {cast.type}")


def _others(count: int, taken: Rows) -> Rows:
    left = np.ones(count, dtype=np.bool_)
    left[taken] = False
    return np.flatnonzero(left)


# ---- changed rows


def _apply(change: _Change, clauses: Sequence[Clause], rows: pa.Table, stored: Rows | None = None) -> list[pa.Table]:
    """Apply clauses to rows; the first clause whose condition holds applies to a row.

    ``stored``: int64[n], the number of the table's row for each row; several rows may have the same number.
    """
    chosen = []
    left = np.ones(rows.num_rows, dtype=np.bool_)
    for clause in clauses:
        condition = check_condition(clause.condition, "condition")
        here = np.flatnonzero(left & true_of(condition, rows, f"when {clause.kind} {clause.effect}"))
        left[here] = False
        chosen.append((clause, here, _ordered(change, clause, gather(rows, here))))
    if stored is not None:
        chosen = _undefeated(chosen, stored)
    return [part for clause, _, here in chosen for part in _effect(change, clause, here)]


def _undefeated(chosen: Sequence[_Chosen], stored: Rows) -> list[_Chosen]:
    """Drop chosen rows that lose to another change of the same stored row.

    Rows that tie are kept, to be refused: each of them changes the stored row, or deletes it to move it.
    """
    numbers = stored[np.concatenate([here for _, here, _ in chosen])] if chosen else stored[:0]
    if not len(numbers) or ORDER not in chosen[0][2].column_names or np.bincount(numbers).max() < 2:
        return list(chosen)
    order = single_chunk(pa.chunked_array([chunk for _, _, rows in chosen for chunk in rows.column(ORDER).chunks]))
    rank = ordering_rank(order.flatten(), len(numbers))
    best = np.full(numbers.max() + 1, np.iinfo(np.int64).min)
    np.maximum.at(best, numbers, rank)
    wins = np.split(rank == best[numbers], np.cumsum([len(here) for _, here, _ in chosen])[:-1])
    return [
        (clause, here[kept], gather(rows, np.flatnonzero(kept)))
        for (clause, here, rows), kept in zip(chosen, wins, strict=True)
    ]


def _effect(change: _Change, clause: Clause, rows: pa.Table) -> list[pa.Table]:
    plan = change.plan
    if clause.effect == "delete":
        names = [*identity_columns(plan), *PLACES]
        return [_acted(_stored(change, rows, names), DELETE, rows)]
    values = assigned(clause, plan.config, plan.schema.names, change.source, change.spec)
    made = values_of(values, rows, plan.schema, clause)
    if clause.effect == "insert":
        return [_acted(_inserted(plan, made), INSERT, rows)]
    kept = [name for name in change.columns if name not in values]
    updated = _stored(change, rows, [*kept, *PLACES])
    for name in made.column_names:
        updated = updated.append_column(name, made.column(name))
    return _placed(change, rows, updated)


def _ordered(change: _Change, clause: Clause, rows: pa.Table) -> pa.Table:
    """Rows that a clause applies to, with the ordering values of their source rows where these decide."""
    plan, alias = change.plan, change.spec.aliases[1]

    def comparable(name: str, own: str) -> bool:
        one, other = plan.schema.field(name).type, rows.schema.field(f"{alias}.{own}").type
        return bool(one == other or (pa.types.is_integer(one) and pa.types.is_integer(other)))

    values = order_values(clause, plan.config, plan.schema.names, change.source, change.spec, comparable)
    if values is None:
        return rows
    found = values_of(values, rows, plan.schema, clause)
    fields = _order_fields(plan)
    columns = [
        single_chunk(found.column(one.name)) if one.name in values else pa.nulls(rows.num_rows, one.type)
        for one in fields
    ]
    return rows.append_column(ORDER, pa.StructArray.from_arrays(columns, fields=fields))


def _order_fields(plan: WritePlan) -> list[pa.Field]:
    return [plan.schema.field(name).with_nullable(True) for name in plan.config.ordering_fields]


def _stored(change: _Change, rows: pa.Table, names: Sequence[str]) -> pa.Table:
    return rows.select([f"{change.prefix}{name}" for name in names]).rename_columns(list(names))


def _acted(made: pa.Table, action: int, rows: pa.Table) -> pa.Table:
    """Changed rows with their action, and with the ordering values of ``rows``, from which they are computed."""
    if ORDER in rows.column_names:
        made = made.append_column(ORDER, rows.column(ORDER))
    return made.append_column(ACTION, pa.repeat(pa.scalar(action, pa.int8()), made.num_rows))


def _inserted(plan: WritePlan, made: pa.Table) -> pa.Table:
    """Add the defaults of columns that were not named."""
    for name, value in column_defaults(pinned_state(plan)).items():
        if name in plan.schema.names and name not in made.column_names:
            kind = plan.schema.field(name).type
            try:
                made = made.append_column(name, pa.repeat(pa.scalar(value, kind), made.num_rows))
            except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
                raise ConfigError(
                    f"Column {name!r} of table {plan.config.name} has the default {value!r}, which is not supported "
                    f"for its type {kind}; give the column a value."
                ) from error
    return made


def _placed(change: _Change, rows: pa.Table, updated: pa.Table) -> list[pa.Table]:
    """Updated rows; rows that change partition become a delete in the old and an insert into the new partition."""
    plan = change.plan
    named = [name for name in roots(plan.config.partition_fields) if name in updated.column_names]
    moved = np.zeros(updated.num_rows, dtype=np.bool_)
    for name in named if plan.config.is_partitioned and updated.num_rows else ():
        moved |= _differ(rows.column(f"{change.prefix}{name}"), updated.column(name))
    if moved.any():
        paths = partition_paths(plan.key_config, updated).cast(pa.string())
        moved &= _differ(pa.chunked_array([paths]), updated.column(PATH))
    if not moved.any():
        return [_acted(updated, UPDATE, rows)]
    staying, going = np.flatnonzero(~moved), np.flatnonzero(moved)
    leaving, new = gather(rows, going), gather(updated, going)
    old = _stored(change, leaving, [*identity_columns(plan), *PLACES])
    new = new.drop_columns(list(PLACES)).append_column(KEY, new.column(KEY))
    stays = _acted(gather(updated, staying), UPDATE, gather(rows, staying))
    return [stays, _acted(old, DELETE, leaving), _acted(new, INSERT, leaving)]


def _differ(one: pa.ChunkedArray, other: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    same = pc.fill_null(pc.equal(one, other), False)
    both_null = pc.and_(one.is_null(), other.is_null())
    return ~np.asarray(pc.or_(same, both_null), dtype=np.bool_)


def _together(plan: WritePlan, change: _Change, parts: Sequence[pa.Table], checked: bool) -> pa.Table:
    """All changed rows as one table."""
    wanted: Mapping[str, pa.DataType] = {name: plan.schema.field(name).type for name in change.columns}
    places = dict.fromkeys(PLACES, pa.string())
    order = {ORDER: pa.struct(_order_fields(plan))} if any(ORDER in part.column_names for part in parts) else {}
    schema = pa.schema({**wanted, **places, ACTION: pa.int8(), **order})
    extended = [conform(part, pa.schema([schema.field(name) for name in part.column_names])) for part in parts]
    rows = pa.concat_tables([schema.empty_table(), *extended], promote_options="default")
    if checked:
        rows = rows.append_column(CHECK, pa.nulls(rows.num_rows))
    return pa.table({name: single_chunk(rows.column(name)) for name in rows.column_names}) if rows.num_rows else rows


# ---- matches rows of the table and of the source: a hash join of row numbers, then the remaining condition


_CROSSED = 1 << 20
"""Pairs evaluated together in a merge without equal columns."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """Pairs of matched rows.

    Attributes:
        target: int64[m], rows of the table.
        source: int64[m], rows of the source.
    """

    target: Rows
    source: Rows


def match_rows(target: pa.Table, source: pa.Table, spec: MergeSpec, condition: pc.Expression | None) -> Pairs:
    """The matching pairs of rows, in the order of the table's rows.

    Args:
        target: rows of the table.
        source: rows of the source; its join columns have the table's types.
        spec: the merge.
        condition: condition in addition to the equal columns.

    Raises:
        ConfigError: the condition does not fit the columns.
    """
    found = []
    for pairs in _joined(target, source, spec) if spec.pairs else _crossed(target.num_rows, source.num_rows):
        if condition is not None and len(pairs.target):
            kept = true_of(condition, beside(target, source, pairs, spec), "on")
            pairs = Pairs(pairs.target[kept], pairs.source[kept])
        found.append(pairs)
    rows = np.concatenate([one.target for one in found] or [np.zeros(0, dtype=np.int64)])
    sources = np.concatenate([one.source for one in found] or [np.zeros(0, dtype=np.int64)])
    order = np.lexsort((sources, rows))
    return Pairs(rows[order], sources[order])


def beside(target: pa.Table, source: pa.Table, pairs: Pairs, spec: MergeSpec) -> pa.Table:
    """The columns of both rows of each pair, with the prefixes used in conditions and values."""
    left, right = gather(target, pairs.target), gather(source, pairs.source)
    names = [
        f"{alias}.{name}" for alias, one in zip(spec.aliases, (left, right), strict=True) for name in one.column_names
    ]
    return pa.table([*left.columns, *right.columns], names=names)


def _joined(target: pa.Table, source: pa.Table, spec: MergeSpec) -> Iterator[Pairs]:
    keys = [f"key{number}" for number in range(len(spec.pairs))]
    left = pa.table([_as_compared(target.column(one)) for one, _ in spec.pairs], names=keys)
    right = pa.table([_as_compared(source.column(one)) for _, one in spec.pairs], names=keys)
    left = left.append_column("target", pa.array(np.arange(target.num_rows)))
    right = right.append_column("source", pa.array(np.arange(source.num_rows)))
    found = left.join(right, keys, join_type="inner")
    yield Pairs(found.column("target").to_numpy(), found.column("source").to_numpy())


def _as_compared(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column whose equal values have equal bits, because Arrow joins by bits: zero has two signs, NaN many forms."""
    if not pa.types.is_floating(column.type):
        return column
    numbers = pc.add(column.cast(pa.float64()), 0.0)  # a negative zero becomes zero
    return pc.if_else(pc.is_nan(numbers), math.nan, numbers)


def _crossed(targets: int, sources: int) -> Iterator[Pairs]:
    step = max(1, _CROSSED // max(1, sources))
    for first in range(0, targets, step):
        rows = np.arange(first, min(first + step, targets), dtype=np.int64)
        yield Pairs(np.repeat(rows, sources), np.tile(np.arange(sources, dtype=np.int64), len(rows)))
