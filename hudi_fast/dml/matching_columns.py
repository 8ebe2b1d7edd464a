"""Finds the columns that a merge matches on, if its condition consists of equalities of columns.

::

    "t.id = s.id and t.day = s.day", or the same as an expression ─► pairs ─► rows are looked up by key, not compared

Pairs allow data skipping by the keys of the source, and let ``*`` omit columns that are equal anyway.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow.compute as pc

from hudi_fast.dml.statement import MergeSpec
from hudi_fast.dml.target import check_columns

__all__ = ["resolved_spec"]

_EQUALITY = re.compile(r"\s*\(*\s*(\w+)\.(\w+)\s*={1,2}\s*(\w+)\.(\w+)\s*\)*\s*$")


def resolved_spec(spec: MergeSpec, names: Sequence[str], source: Sequence[str]) -> MergeSpec:
    """A merge with its equal columns as validated pairs.

    Args:
        spec: the merge as built.
        names: columns of the table.
        source: columns of the source.

    Raises:
        ConfigError: `on` names an unknown column.
    """
    if not spec.pairs:
        pairs = _equal_columns(spec.condition, spec.aliases)
        if pairs and all(one in names and other in source for one, other in pairs):
            spec = replace(spec, pairs=pairs, condition=None)
    check_columns([one for one, _ in spec.pairs], names, "on, columns of the table")
    check_columns([other for _, other in spec.pairs], source, "on, columns of the source")
    return spec


def _equal_columns(condition: Any, aliases: tuple[str, str]) -> tuple[tuple[str, str], ...]:
    """(column of the table, column of the source) of a condition of equalities joined by `and`; empty otherwise."""
    if not isinstance(condition, str | pc.Expression):
        return ()
    pairs = []
    for part in re.split(r"\band\b", str(condition), flags=re.IGNORECASE):
        found = _EQUALITY.match(part)
        if found is None or {found[1], found[3]} != set(aliases):
            return ()
        sides = {found[1]: found[2], found[3]: found[4]}
        pairs.append((sides[aliases[0]], sides[aliases[1]]))
    return tuple(dict.fromkeys(pairs))
