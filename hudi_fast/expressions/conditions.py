"""The tree of a condition, the form that all data skipping works on.

::

    text of SQL ─► expression of Arrow ─┬─► Condition ─┬─► files, by statistics and keys (reading/skipping/)
    column or filter of Spark ──────────┘              └─► partition paths (reading/prune.py)

Rows themselves are tested by the expression of Arrow, or by Spark. A condition only leaves out files without such rows:
what it cannot say becomes :class:`Anything`, an unknown condition, which keeps every file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, TypeAlias, TypeVar

import pyarrow as pa

from hudi_fast.values import dataclass

__all__ = [
    "OPPOSITE",
    "TURNED",
    "And",
    "Anything",
    "Cast",
    "Column",
    "Compare",
    "Condition",
    "Constant",
    "Function",
    "In",
    "IsNan",
    "IsNull",
    "Not",
    "Or",
    "StartsWith",
    "Value",
    "chain",
    "columns_of",
    "conjuncts",
    "like_condition",
]

OPPOSITE = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
"""The negation of each comparison."""
TURNED = {"==": "==", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
"""Each comparison with its sides exchanged."""
Node = TypeVar("Node")

_WILDCARD = re.compile(r"[%_\\]")


# ---- values of a row


@dataclass(frozen=True, slots=True)
class Column:
    """A column, or a field inside structs: the names from the outside in."""

    path: tuple[str, ...]

    @property
    def name(self) -> str:
        """The dotted name."""
        return ".".join(self.path)


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal."""

    value: pa.Scalar


@dataclass(frozen=True, slots=True)
class Cast:
    """A value in another type."""

    value: Value
    to: pa.DataType


@dataclass(frozen=True)
class Function:
    """A function of one value, with Arrow's ``name`` and ``options``."""

    name: str
    value: Value
    options: Mapping[str, Any] = field(default_factory=dict)


Value: TypeAlias = Column | Constant | Cast | Function


# ---- conditions on a row: true, false, or null


@dataclass(frozen=True, slots=True)
class Anything:
    """An unknown condition."""


@dataclass(frozen=True, slots=True)
class Compare:
    """``left sign right`` with one of ``== != < <= > >=``: null if one side is null; NaN equals nothing."""

    sign: str
    left: Value
    right: Value


@dataclass(frozen=True, slots=True)
class In:
    """Whether a value is one of ``values``.

    Attributes:
        values: without nulls.
        null_is: result for a null value: True, False, or None (null).
    """

    value: Value
    values: pa.Array
    null_is: bool | None = False


@dataclass(frozen=True, slots=True)
class IsNull:
    """Whether a value is null; with ``or_nan``, null or NaN."""

    value: Value
    or_nan: bool = False


@dataclass(frozen=True, slots=True)
class IsNan:
    """Whether a number is NaN: null for a null, false for a number of a type without NaN."""

    value: Value


@dataclass(frozen=True, slots=True)
class StartsWith:
    """Whether a string starts with ``prefix``.

    Attributes:
        exact: False if a string with the prefix may still not match.
    """

    value: Value
    prefix: str
    exact: bool = True


@dataclass(frozen=True, slots=True)
class Not:
    """Negation; null stays null."""

    part: Condition


@dataclass(frozen=True, slots=True)
class And:
    """All parts are true."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """At least one part is true."""

    parts: tuple[Condition, ...]


Condition: TypeAlias = Anything | Compare | In | IsNull | IsNan | StartsWith | Not | And | Or


def chain(root: Node, operands: Callable[[Node], Sequence[Node] | None]) -> list[Node]:
    """The parts of a chain of ``and``, or of ``or``, from left to right. Not recursive: a chain may be very long.

    Args:
        root: the whole condition, of any library.
        operands: the two sides of a node of the chain; None for a part.
    """
    parts: list[Node] = []
    waiting = [root]
    while waiting:
        one = waiting.pop()
        sides = operands(one)
        if sides is None:
            parts.append(one)
        else:
            waiting.extend(reversed(sides))
    return parts


def conjunction(conditions: Iterable[Condition]) -> Condition:
    """The condition that all known ones of ``conditions`` are true; :class:`Anything` without a known one."""
    known = tuple(one for one in conditions if not isinstance(one, Anything))
    if not known:
        return Anything()
    return known[0] if len(known) == 1 else And(known)


def conjuncts(condition: Condition) -> Iterator[Condition]:
    """Conditions that are true for every row for which ``condition`` is true."""
    if isinstance(condition, And):
        for part in condition.parts:
            yield from conjuncts(part)
    elif isinstance(condition, Not) and isinstance(condition.part, Not):
        yield from conjuncts(condition.part.part)
    else:
        yield condition


def columns_of(node: Condition | Value) -> frozenset[Column]:
    """The columns that a condition or value uses, without unknown conditions."""
    match node:
        case Column():
            return frozenset((node,))
        case Constant() | Anything():
            return frozenset()
        case Compare():
            return columns_of(node.left) | columns_of(node.right)
        case Not():
            return columns_of(node.part)
        case And() | Or():
            return frozenset().union(*(columns_of(part) for part in node.parts))
        case _:
            return columns_of(node.value)


def like_condition(value: Value, pattern: str) -> Condition:
    """``value LIKE pattern``, with backslash as escape; ignores the text after the first wildcard."""
    found = _WILDCARD.search(pattern)
    if found is None:
        return Compare("==", value, Constant(pa.scalar(pattern)))
    prefix, rest = pattern[: found.start()], pattern[found.start() :]
    return StartsWith(value, prefix, exact=rest == "%")
