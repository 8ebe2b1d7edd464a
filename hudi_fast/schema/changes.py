"""The differences between a table's columns before and after a write, with warnings for the table's users."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from hudi_fast.schema.assignment import Outcome, outcome_of

__all__ = ["SchemaChange", "schema_changes"]


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
    for name, field in old.items():
        if name not in new:
            yield SchemaChange("dropped", path + name, str(field.type), None)
    for name, field in new.items():
        if name in old:
            yield from _of_field(old[name], field, path + name, refuses_missing)
        else:
            later = (
                f"later writes without {path + name!r} are refused, unless they set "
                "hoodie.write.set.null.for.missing.columns=true. Leave it out if the table should not have it"
            )
            yield SchemaChange("added", path + name, None, str(field.type), later if refuses_missing else "")


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
