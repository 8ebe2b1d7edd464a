"""Resolves the column names written in a merge to columns of the table and of the source.

::

    "t.id = s.id and t.day = s.day", or the same as an expression ─► pairs ─► rows are looked up by key, not compared
    {"Fare": "S.fare"}, in upper or lower case ─► {"fare": "s.fare"}

Pairs allow data skipping by the keys of the source, and let ``*`` omit columns that are equal anyway. Conditions and
computed values stay as written: the engine resolves their names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow.compute as pc

from hudi_fast.dml.statement import Clause, MergeSpec
from hudi_fast.errors import ConfigError
from hudi_fast.schema.names import resolve_name

__all__ = ["column_of", "resolved_spec"]

_EQUALITY = re.compile(r"\s*\(*\s*(\w+)\.(\w+)\s*={1,2}\s*(\w+)\.(\w+)\s*\)*\s*$")


def resolved_spec(spec: MergeSpec, names: Sequence[str], source: Sequence[str]) -> MergeSpec:
    """A merge with its equal columns as pairs, and with the names that the table and the source have.

    Args:
        spec: the merge as built; an update or a delete is a merge without a source.
        names: columns of the table.
        source: columns of the source; empty without one.

    Raises:
        ConfigError: a name is unknown or ambiguous, or a column is set twice.
    """
    exact, pairs = spec.exact_names, spec.pairs
    if not pairs:
        pairs = _equal_columns(spec.condition, spec.aliases)
        known = all(
            resolve_name(one, names, _TABLE, exact) and resolve_name(other, source, _SOURCE, exact)
            for one, other in pairs
        )
        if pairs and known:
            spec = replace(spec, condition=None)
        else:
            pairs = ()
    both = tuple((_known(one, names, _TABLE, exact), _known(other, source, _SOURCE, exact)) for one, other in pairs)
    columns = _sides(spec.aliases, names, source) if source else []
    clauses = tuple(_clause(clause, names, columns, exact) for clause in spec.clauses)
    return replace(spec, pairs=tuple(dict.fromkeys(both)), clauses=clauses)


def column_of(text: str, columns: Iterable[str], where: str, exact: bool = False) -> str | None:
    """The column that SQL text names; None for text that is not the name of a column.

    Raises:
        ConfigError: several names differ only in case.
    """
    return resolve_name(text.strip().replace("`", ""), columns, where, exact)


_TABLE, _SOURCE = "on, columns of the table", "on, columns of the source"


def _known(name: str, names: Sequence[str], where: str, exact: bool) -> str:
    found = resolve_name(name, names, where, exact)
    if found is None:
        raise ConfigError(f"{where}: there are no columns {[name]}; there are {list(names)}.")
    return found


def _sides(aliases: tuple[str, str], names: Sequence[str], source: Sequence[str]) -> list[str]:
    sides = zip(aliases, (names, source), strict=True)
    return [f"{alias}.{name}" for alias, columns in sides for name in columns]


def _clause(clause: Clause, names: Sequence[str], columns: Sequence[str], exact: bool) -> Clause:
    if clause.values is None:
        return clause
    where = f"when {clause.kind} {clause.effect}"
    found: dict[str, Any] = {}
    for written, value in clause.values.items():
        name = _known(written, names, where, exact)
        if name in found:
            raise ConfigError(f"{where}: the column {name!r} is set twice.")
        copied = column_of(value, columns, f"{where}, column {name!r}", exact) if isinstance(value, str) else None
        found[name] = value if copied is None else copied
    return replace(clause, values=found)


def _equal_columns(condition: Any, aliases: tuple[str, str]) -> tuple[tuple[str, str], ...]:
    """(column of the table, column of the source) of a condition of equalities joined by `and`; empty otherwise."""
    if not isinstance(condition, str | pc.Expression):
        return ()
    target, source = (alias.lower() for alias in aliases)
    pairs = []
    for part in re.split(r"\band\b", str(condition), flags=re.IGNORECASE):
        found = _EQUALITY.match(part)
        if found is None or {found[1].lower(), found[3].lower()} != {target, source}:
            return ()
        sides = {found[1].lower(): found[2], found[3].lower(): found[4]}
        pairs.append((sides[target], sides[source]))
    return tuple(dict.fromkeys(pairs))
