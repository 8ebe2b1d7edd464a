"""The columns of a result: names in upper or lower case, and fields of structs, as in Spark's ``SELECT``.

::

    ["ID", "s.x"] ─► shown_columns ─► ShownColumns ─► the columns to read: id, s
                                           └─ apply(rows) ─► rows with the columns ID and x

A column of the result has the requested name; the column of a field has the last part of that name. A name that matches
a column exactly means that column, even if another one differs only in case.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.errors import ConfigError
from hudi_fast.schema.names import resolve_name
from hudi_fast.values import dataclass

__all__ = ["ShownColumns", "shown_columns"]

Rows = TypeVar("Rows", pa.RecordBatch, pa.Table)


@dataclass(frozen=True, slots=True)
class ShownColumns:
    """Columns of a result, and where their values come from. Picklable.

    Attributes:
        schema: columns of the result.
        paths: for each column, the column that is read and the fields of structs in it.
    """

    schema: pa.Schema
    paths: tuple[tuple[str, ...], ...]

    @property
    def roots(self) -> list[str]:
        """The columns that are read, each once."""
        return list(dict.fromkeys(path[0] for path in self.paths))

    @property
    def is_plain(self) -> bool:
        """Whether the result has the columns that are read, under their own names."""
        return all(path == (name,) for path, name in zip(self.paths, self.schema.names, strict=True))

    def apply(self, rows: Rows) -> Rows:
        """The columns of the result.

        Args:
            rows: with the columns :attr:`roots`.
        """
        columns = [
            rows.column(path[0]) if len(path) == 1 else pc.struct_field(rows.column(path[0]), list(path[1:]))
            for path in self.paths
        ]
        return type(rows).from_arrays(columns, schema=self.schema)


def shown_columns(columns: Sequence[str], schema: pa.Schema, where: str, exact: bool = False) -> ShownColumns:
    """The columns of a result that a caller requests.

    Args:
        columns: names, dotted within structs.
        schema: the available columns.
        where: name of their source in messages.
        exact: whether names are case-sensitive.

    Raises:
        ConfigError: ``columns`` is one text instead of a list, a name is unknown or ambiguous, or two columns have one
            name.
    """
    if isinstance(columns, str):
        raise ConfigError(f"columns takes a list of names; got the text {columns!r}.")
    unnamed = [name for name in columns if not isinstance(name, str)]
    if unnamed:
        raise ConfigError(f"columns takes a list of names; got {unnamed[0]!r} in it.")
    fields, paths = [], []
    for name in columns:
        path, kind = _found(name, schema, where, exact)
        nullable = len(path) > 1 or schema.field(path[0]).nullable
        shown = name if len(path) == 1 else name.rpartition(".")[2]
        fields.append(schema.field(name) if path == (name,) else pa.field(shown, kind, nullable=nullable))
        paths.append(path)
    shown_names = [field.name for field in fields]
    if twice := sorted({name for name in shown_names if shown_names.count(name) > 1}):
        raise ConfigError(f"columns names {twice} more than once.")
    return ShownColumns(pa.schema(fields), tuple(paths))


def _found(name: str, schema: pa.Schema, where: str, exact: bool) -> tuple[tuple[str, ...], pa.DataType]:
    """The path of a column, and the type of its values."""
    whole = _named(name, schema.names, where, exact)
    if whole is not None:
        return (whole,), schema.field(whole).type
    path: tuple[str, ...] = ()
    kind: pa.DataType = pa.struct(list(schema))
    for part in name.split("."):
        names = [field.name for field in kind] if pa.types.is_struct(kind) else []
        own = _named(part, names, where, exact)
        if own is None:
            raise ConfigError(f"{where} has no column {name!r}; it has {schema.names}.")
        path, kind = (*path, own), kind.field(own).type
    return path, kind


def _named(name: str, names: Sequence[str], where: str, exact: bool) -> str | None:
    return name if name in names else resolve_name(name, names, where, exact)
