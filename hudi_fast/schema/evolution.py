"""The schema of a table after a write, and what differs from before.

The schema of a table after a write: the table's and the incoming schema merged, or an error.

One recursive merge of two schemas collects all problems, then raises them together. A column, or a struct's field, is

1. in both: it has the type that :mod:`hudi_fast.schema.assignment` gives for the pair, or is a problem. It is nullable
   if either column is. Record key, partition path and ordering fields never change their meaning: see
   :class:`EvolutionRules`.
2. only in the table: it is rejected, kept as nullable, or dropped, as the rules define (:func:`_missing_policy`).
3. only incoming: it is added after the table's columns, and must be nullable: stored rows have no value for it.

Shared columns keep the table's order. Names are matched exactly, but a name that differs from the table's only in case
is rejected: Spark SQL and Hive cannot distinguish the two columns.

Source: HoodieSchemaUtils.deduceWriterSchema, HoodieSchemaCompatibilityChecker of Hudi 1.2.0. If columns may be dropped,
Hudi checks nothing at all; here types must be compatible even then, because old files could not be read otherwise.
Reconciling never drops a column, as Hudi documents that option.

The differences between a table's columns before and after a write, with warnings for the table's users.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from enum import Enum

import pyarrow as pa

from hudi_fast.errors import SchemaMismatchError
from hudi_fast.formats.avro.schema import without_meta
from hudi_fast.schema.assignment import Outcome, cast_to_write, keeps_text, outcome_of
from hudi_fast.schema.normalize import bare_schema, normalize_input_schema
from hudi_fast.values import dataclass

__all__ = [
    "ALLOW_ROUNDING",
    "ORDERING",
    "EvolutionRules",
    "SchemaChange",
    "deduce_writer_schema",
    "require_fit",
    "schema_changes",
]

ALLOW_ROUNDING = "hudi_fast.allow.rounding"
"""Option that lets a column of large integers become double, which rounds them."""

ORDERING = "ordering"
"""Role, in messages, of the columns that decide between rows with one record key."""


@dataclass(frozen=True, slots=True)
class EvolutionRules:
    """How far an incoming schema may differ from the table's.

    Attributes:
        reconcile: ``hoodie.datasource.write.reconcile.schema``: missing columns are kept and become nullable.
        validate: ``hoodie.avro.schema.validate``: disables ``set_null_for_missing``.
        allow_column_drop: ``hoodie.datasource.write.schema.allow.auto.evolution.column.drop``: missing columns leave
            the schema. Overrides ``set_null_for_missing``.
        set_null_for_missing: ``hoodie.write.set.null.for.missing.columns``: missing columns are kept, become nullable,
            and are null in the incoming rows.
        partition_fields: names of the table's partition fields.
        drop_partition_columns: ``hoodie.datasource.write.drop.partition.columns``: data files hold no partition
            columns, so the incoming schema may lack them; the result then lacks them too.
        has_history: the table has a schema history: only an ALTER drops columns; columns that may be missing are kept
            and become nullable.
        allow_rounding: ``hudi_fast.allow.rounding``: integers may become floating-point numbers that round some of
            them.
        roles: ``record key``, ``partition path`` or ``ordering`` by the dotted name of a field. Such a field may only
            become a wider number; the text of a key's or path's values may not change.
    """

    reconcile: bool = False
    validate: bool = False
    allow_column_drop: bool = False
    set_null_for_missing: bool = False
    partition_fields: tuple[str, ...] = ()
    drop_partition_columns: bool = False
    has_history: bool = False
    allow_rounding: bool = False
    roles: Mapping[str, str] = field(default_factory=dict)

    @property
    def refuses_missing(self) -> bool:
        """Whether rows must have all columns of the table."""
        return _missing_policy(self) is _MissingPolicy.REFUSE


class _MissingPolicy(Enum):
    """Treatment of a table's column that the incoming schema lacks."""

    REFUSE = "refuse"
    KEEP = "keep"
    DROP = "drop"


def deduce_writer_schema(table: pa.Schema | None, incoming: pa.Schema, rules: EvolutionRules) -> pa.Schema:
    """The schema of a write, which becomes the table's schema on commit.

    Args:
        table: the table's schema, with or without meta columns; None before the first commit.
        incoming: schema of the rows to write, any Arrow types; a column of Arrow's null type takes the table's type.
        rules: allowed differences.

    Returns:
        Storable types, without meta columns and metadata; ``schema.conform`` converts both incoming rows and rows of
        older files to it.

    Raises:
        SchemaMismatchError: columns are missing, have an incompatible type, are new but not nullable, or differ from a
            column of the table only in case; the message lists all of them.
        UnsupportedFeatureError: Hudi cannot hold an incoming type (``normalize.normalize_input_schema``).
    """
    given = normalize_input_schema(incoming, table)
    if table is None:
        return given
    merge = _Merge(rules, _missing_policy(rules), [])
    own = bare_schema(without_meta(table))
    names = set(given.names)
    if rules.drop_partition_columns:
        own = pa.schema([each for each in own if each.name in names or each.name not in rules.partition_fields])
    fields = _merge_fields(merge, list(own), list(given), "")
    merge.raise_problems("The incoming schema cannot become the table's schema")
    return pa.schema(fields)


def require_fit(table: pa.Schema, incoming: pa.Schema, rules: EvolutionRules) -> None:
    """Refuse rows that would change a column's type, for writes that change no column.

    Args:
        table: the table's schema, with or without meta columns.
        incoming: schema of the rows, any Arrow types; only columns that both have are compared.
        rules: allowed differences.

    Raises:
        SchemaMismatchError: columns have another type; the message lists all of them.
        UnsupportedFeatureError: Hudi cannot hold an incoming type.
    """
    own = [each for each in without_meta(table) if each.name in incoming.names]
    given = normalize_input_schema(pa.schema([each for each in incoming if each.name in table.names]), table)
    merge = _Merge(rules, _MissingPolicy.KEEP, [], fixed=True)
    _merge_fields(merge, list(bare_schema(pa.schema(own))), list(given), "")
    merge.raise_problems("The rows do not fit the table's columns")


def _missing_policy(rules: EvolutionRules) -> _MissingPolicy:
    if rules.reconcile:
        return _MissingPolicy.KEEP
    if rules.allow_column_drop:
        return _MissingPolicy.KEEP if rules.has_history else _MissingPolicy.DROP
    return _MissingPolicy.KEEP if rules.set_null_for_missing and not rules.validate else _MissingPolicy.REFUSE


@dataclass(frozen=True, slots=True)
class _Merge:
    """One merge of two schemas; ``problems`` collects messages. ``fixed``: no column may change."""

    rules: EvolutionRules
    missing: _MissingPolicy
    problems: list[str]
    fixed: bool = False

    def raise_problems(self, what: str) -> None:
        if self.problems:
            listed = "\n".join(f"  - {each}" for each in self.problems)
            raise SchemaMismatchError(f"{what} ({len(self.problems)} problem(s)):\n{listed}")

    def may_change(self, table: pa.DataType, incoming: pa.DataType, path: str) -> bool:
        """Whether the column takes the rows' type."""
        outcome, role = outcome_of(table, incoming), self.rules.roles.get(path)
        if self.fixed:
            return False
        if outcome is Outcome.COLUMN:
            return role is None or role == ORDERING or keeps_text(table, incoming)
        return role is None and (outcome is Outcome.TEXT or (outcome is Outcome.ROUNDED and self.rules.allow_rounding))


def _merge_fields(merge: _Merge, table: list[pa.Field], incoming: list[pa.Field], path: str) -> list[pa.Field]:
    """The columns of a schema, or the fields of a struct at ``path``."""
    given = {each.name: each for each in incoming}
    own = {each.name for each in table}
    new = [each for each in incoming if each.name not in own]
    clashing = _refuse_clashes(merge, table, new, path)
    merged: list[pa.Field] = []
    for column in table:
        where = _join(path, column.name)
        twin = given.get(column.name)
        if twin is not None:
            kind = _merge_types(merge, column.type, twin.type, where)
            merged.append(pa.field(column.name, kind, nullable=column.nullable or twin.nullable))
        elif merge.missing is _MissingPolicy.KEEP:
            merged.append(column.with_nullable(True))
        elif merge.missing is _MissingPolicy.REFUSE and column.name.lower() not in clashing:
            merge.problems.append(_missing_text(where, column.type))
    if merge.fixed:
        merge.problems.extend(f"the table has no field {_join(path, each.name)!r}: leave it out" for each in new)
        return merged
    for column in new:
        if not column.nullable and column.name.lower() not in clashing:
            merge.problems.append(
                f"column {_join(path, column.name)!r} ({column.type}) is new and not nullable, but the table's rows "
                "have no value for it: make it nullable"
            )
    return merged + new


def _merge_types(merge: _Merge, table: pa.DataType, incoming: pa.DataType, path: str) -> pa.DataType:
    """The type of a column that both have."""
    if table == incoming:
        return table
    if pa.types.is_struct(table) and pa.types.is_struct(incoming):
        return pa.struct(_merge_fields(merge, list(table), list(incoming), path))
    if pa.types.is_list(table) and pa.types.is_list(incoming):
        return pa.list_(_merge_part(merge, table.value_field, incoming.value_field, f"{path}.element"))
    if pa.types.is_map(table) and pa.types.is_map(incoming):
        return pa.map_(table.key_type, _merge_part(merge, table.item_field, incoming.item_field, f"{path}.value"))
    if outcome_of(table, incoming).keeps_column:
        return table
    if merge.may_change(table, incoming, path):
        return incoming
    merge.problems.append(_type_text(merge, path, table, incoming))
    return table


def _merge_part(merge: _Merge, table: pa.Field, incoming: pa.Field, path: str) -> pa.Field:
    kind = _merge_types(merge, table.type, incoming.type, path)
    return pa.field(table.name, kind, nullable=table.nullable or incoming.nullable)


def _refuse_clashes(merge: _Merge, table: list[pa.Field], new: list[pa.Field], path: str) -> set[str]:
    """Lower-case forms of new names that the table has in another case; each one becomes a problem."""
    known = {each.name.lower(): each.name for each in table}
    clashing = {each.name.lower() for each in new} & known.keys()
    for name in (each.name for each in new if each.name.lower() in clashing):
        own = _join(path, known[name.lower()])
        merge.problems.append(
            f"column {_join(path, name)!r} differs from the table's column {own!r} only in case: "
            "rename the incoming one to match"
        )
    return clashing


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _missing_text(path: str, kind: pa.DataType) -> str:
    return (
        f"column {path!r} ({kind}) of the table is missing from the incoming schema: add it, or set "
        "hoodie.write.set.null.for.missing.columns=true to store nulls there, or "
        "hoodie.datasource.write.schema.allow.auto.evolution.column.drop=true to drop it from the table"
    )


def _type_text(merge: _Merge, path: str, table: pa.DataType, incoming: pa.DataType) -> str:
    role, outcome = merge.rules.roles.get(path), outcome_of(table, incoming)
    reason = ""
    if outcome is Outcome.ROUNDED and not merge.fixed and role is None:
        reason = f"; as {incoming} the column would round large integers, which {ALLOW_ROUNDING}=true allows"
    elif outcome in (Outcome.TEXT, Outcome.COLUMN, Outcome.ROUNDED):
        kept = "this write changes no column" if role is None else f"{_an(role)} field keeps its type"
        reason = f"; {kept}"
    return (
        f"column {path!r} is {table} in the table and {incoming} in the incoming schema{reason}: "
        f"{cast_to_write(table, incoming, path)}"
    )


def _an(role: str) -> str:
    return f"an {role}" if role[0] in "aeiou" else f"a {role}"


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """One column that a write changed.

    Attributes:
        change: ``added``, ``dropped``, ``retyped`` or ``nullable``, as in ``HudiTable.schema_changes``.
        column: dotted name of the column.
        before: type before the write; for ``nullable``, whether the column was nullable; None if the column is new.
        after: type after the write; for ``nullable``, whether the column is nullable; None if the column is gone.
        warning: consequences for readers and for later writes; empty if nothing is lost.
    """

    change: str
    column: str
    before: str | None
    after: str | None
    warning: str = ""


def schema_changes(before: pa.Schema, after: pa.Schema, refuses_missing: bool) -> tuple[SchemaChange, ...]:
    """The changes between two schemas of one table.

    Args:
        before: columns of the table before the write.
        after: columns of the table after the write; shared columns have the types that ``deduce_writer_schema`` gives.
        refuses_missing: whether later writes with the same options must have all columns.
    """
    return tuple(_of_fields(list(before), list(after), "", refuses_missing))


def _of_fields(
    before: Sequence[pa.Field], after: Sequence[pa.Field], path: str, refuses_missing: bool
) -> Iterator[SchemaChange]:
    old, new = {each.name: each for each in before}, {each.name: each for each in after}
    for name, column in old.items():
        if name not in new:
            yield SchemaChange("dropped", path + name, str(column.type), None)
    for name, column in new.items():
        if name in old:
            yield from _of_field(old[name], column, path + name, refuses_missing)
        else:
            later = (
                f"later writes without {path + name!r} are refused, unless they set "
                "hoodie.write.set.null.for.missing.columns=true. Leave it out if the table should not have it"
            )
            yield SchemaChange("added", path + name, None, str(column.type), later if refuses_missing else "")


def _of_field(before: pa.Field, after: pa.Field, path: str, refuses_missing: bool) -> Iterator[SchemaChange]:
    if before.nullable != after.nullable:
        yield SchemaChange("nullable", path, str(before.nullable).lower(), str(after.nullable).lower())
    old, new = before.type, after.type
    if old == new:
        return
    if pa.types.is_struct(old) and pa.types.is_struct(new):
        yield from _of_fields(list(old), list(new), f"{path}.", refuses_missing)
    elif pa.types.is_list(old) and pa.types.is_list(new):
        yield from _of_field(old.value_field, new.value_field, f"{path}.element", refuses_missing)
    elif pa.types.is_map(old) and pa.types.is_map(new):
        yield from _of_field(old.item_field, new.item_field, f"{path}.value", refuses_missing)
    else:
        yield SchemaChange("retyped", path, str(old), str(new), _loss(old, new, path))


def _loss(before: pa.DataType, after: pa.DataType, path: str) -> str:
    outcome = outcome_of(before, after)
    if outcome is Outcome.TEXT:
        return f"all readers get {path!r} as text from now on. Cast the rows to {before} to keep the column as it is"
    if outcome is Outcome.ROUNDED:
        return f"{after} rounds large integers in {path!r}, stored ones, too"
    return ""
