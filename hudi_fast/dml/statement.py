"""DML statements as values, independent of a table.

::

    Merge (a builder) ─► MergeSpec ─► the engine's function
    on                the match of rows of the table and of the source
    clauses           in the given order; of one kind the first whose condition holds applies

Conditions and values have the form of the engine: SQL text, or Columns with Spark and ``pyarrow.compute`` expressions
without Spark.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from html import escape
from typing import TYPE_CHECKING, Any

from hudi_fast.config.words import MERGE_GUESSES, missing
from hudi_fast.errors import ConfigError
from hudi_fast.schema.names import resolve_name
from hudi_fast.values import dataclass
from hudi_fast.writing.flow import WriteResult

__all__ = ["BY_SOURCE", "MATCHED", "NOT_MATCHED", "Clause", "Merge", "MergeSpec", "all_columns"]

MATCHED, NOT_MATCHED, BY_SOURCE = "matched", "not matched", "not matched by source"
"""Kinds of clauses: matched rows, unmatched source rows, unmatched table rows."""

_ALIAS = re.compile(r"[^\W\d]\w*$")
_NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)?$")


@dataclass(frozen=True, slots=True)
class Clause:
    """One clause of a statement.

    Attributes:
        kind: :data:`MATCHED`, :data:`NOT_MATCHED` or :data:`BY_SOURCE`.
        effect: ``update``, ``delete`` or ``insert``.
        condition: selects rows of that kind; None for all.
        values: column of the table -> value; None for all columns of the source, and for deletes.
    """

    kind: str
    effect: str
    condition: Any = None
    values: Mapping[str, Any] | None = None

    def as_text(self) -> str:
        """The clause as a line of a statement, for people to read."""
        condition = "" if self.condition is None else f" AND {self.condition}"
        when = f"WHEN {self.kind.upper()}{condition} THEN {self.effect.upper()}"
        if self.effect == "delete":
            return when
        if self.values is None:
            return f"{when} *"
        return f"{when} {', '.join(f'{name} = {value}' for name, value in self.values.items())}"


@dataclass(frozen=True, slots=True)
class MergeSpec:
    """A whole merge.

    Attributes:
        pairs: (column of the table, column of the source) with equal values in matched rows.
        condition: further condition of the match; None without one.
        clauses: in the given order.
        aliases: prefixes of the columns of the table and of the source.
        exact_names: whether names of columns that differ in upper and lower case are different names.

    Raises:
        ConfigError: aliases that are not two different names.
    """

    pairs: tuple[tuple[str, str], ...] = ()
    condition: Any = None
    clauses: tuple[Clause, ...] = ()
    aliases: tuple[str, str] = ("target", "source")
    exact_names: bool = False

    def __post_init__(self) -> None:
        names = () if isinstance(self.aliases, str) else tuple(self.aliases)
        if (
            len(names) != 2
            or not all(isinstance(one, str) and _ALIAS.match(one) for one in names)
            or names[0].lower() == names[1].lower()
        ):
            raise ConfigError(
                "aliases are two different names, of the table and of the source, such as ('t', 's'); got "
                f"{self.aliases!r}."
            )

    def of_kind(self, kind: str) -> tuple[Clause, ...]:
        """The clauses of one kind."""
        return tuple(clause for clause in self.clauses if clause.kind == kind)

    def as_text(self) -> str:
        """The merge as a statement, for people to read."""
        target, source = self.aliases
        pairs = [f"{target}.{one} = {source}.{other}" for one, other in self.pairs]
        match = " AND ".join([*pairs, *([] if self.condition is None else [str(self.condition)])])
        lines = [f"MERGE INTO {target} USING {source}", f"ON {match or '...'}"]
        return "\n".join([*lines, *(one.as_text() for one in self.clauses)])


@dataclass(frozen=True, slots=True, repr=False)
class Merge:
    """A merge builder: each method returns a new builder, :meth:`execute` runs the merge.

    Attributes:
        run: the engine's function.
        spec: the merge so far.
    """

    run: Callable[[MergeSpec], WriteResult]
    spec: MergeSpec = field(default_factory=MergeSpec)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise missing("Merge", name, {} if name.startswith("_") else MERGE_GUESSES, dir(type(self)))

    def __repr__(self) -> str:
        return f"Merge({' '.join(str(self).split())!r})"

    def __str__(self) -> str:
        """The statement, as SQL; :meth:`execute` runs it."""
        return self.spec.as_text()

    def _repr_html_(self) -> str:
        """HTML for notebooks: the statement, as SQL."""
        return f"<pre>{escape(str(self))}</pre>"

    def on(self, columns: Any, condition: Any = None) -> Merge:
        """Set the match of rows of the table and rows of the source.

        Args:
            columns: name of a column that both have; a list of names; a mapping from columns of the table to columns of
                the source; or a condition: SQL text, a Column with Spark, or a ``pyarrow.compute`` expression without,
                over columns named ``target.x`` and ``source.x``. A null never matches.
            condition: further condition of the match.

        Raises:
            ConfigError: ``on`` was called before, or without columns.
        """
        if self.spec.pairs or self.spec.condition is not None:
            raise ConfigError("The merge has a condition already; call `on` once.")
        pairs, whole = _pairs(columns)
        if whole is not None and condition is not None:
            raise ConfigError("`on` takes one condition; join the two by `and`.")
        return replace(self, spec=replace(self.spec, pairs=pairs, condition=condition if whole is None else whole))

    def when_matched_update(self, set: Mapping[str, Any] | str | None = None, condition: Any = None) -> Merge:
        """Update rows of the table that match a row of the source.

        Args:
            set: column of the table -> value; ``"*"`` or None for every column that the source also has. A value is a
                literal, an expression, or SQL text (``"source.x + 1"``, ``"'text'"``, ``"null"``).
            condition: which of these rows.
        """
        return self._with(MATCHED, "update", condition, _values(set))

    def when_matched_delete(self, condition: Any = None) -> Merge:
        """Delete rows of the table that match a row of the source."""
        return self._with(MATCHED, "delete", condition)

    def when_not_matched_insert(self, values: Mapping[str, Any] | str | None = None, condition: Any = None) -> Merge:
        """Insert rows of the source that match no row of the table.

        Args:
            values: as ``set`` of :meth:`when_matched_update`, over columns of the source; columns that are not named
                get their default.
            condition: which of these rows.
        """
        return self._with(NOT_MATCHED, "insert", condition, _values(values))

    def when_not_matched_by_source_update(self, set: Mapping[str, Any], condition: Any = None) -> Merge:
        """Update rows of the table that match no row of the source; values and condition over ``target.x``."""
        values = _values(set)
        if values is None:
            raise ConfigError("when_not_matched_by_source_update has no source to take all columns from; name columns.")
        return self._with(BY_SOURCE, "update", condition, values)

    def when_not_matched_by_source_delete(self, condition: Any = None) -> Merge:
        """Delete rows of the table that match no row of the source."""
        return self._with(BY_SOURCE, "delete", condition)

    def execute(self) -> WriteResult:
        """Run the merge as one commit; without changes an empty commit, or no commit (``hoodie.allow.empty.commit``).

        Returns:
            The result of the write.

        Raises:
            ConfigError: a part is missing, unknown or contradicts the table.
            InvalidDataError: several source rows change one row of the table, or values do not fit.
            DuplicateKeyError: the key of an insert is stored.
            CommitConflictError: another writer changed the table in the meantime.
            HudiError: see :mod:`hudi_fast.errors`.
        """
        if not self.spec.pairs and self.spec.condition is None:
            raise ConfigError("The merge has no condition that matches rows; pass it as `on`.")
        if not self.spec.clauses:
            raise ConfigError("The merge does nothing: it has no `when_...` clause.")
        return self.run(self.spec)

    def _with(self, kind: str, effect: str, condition: Any, values: Mapping[str, Any] | None = None) -> Merge:
        earlier = self.spec.of_kind(kind)
        if earlier and earlier[-1].condition is None:
            raise ConfigError(
                f"The clause `when {kind} ... {effect}` can never come to anything: the {earlier[-1].effect} before it "
                "has no condition. Give that one a condition, or say this one first."
            )
        clause = Clause(kind, effect, condition, values)
        return replace(self, spec=replace(self.spec, clauses=(*self.spec.clauses, clause)))


def all_columns(names: Sequence[str], given: Sequence[str], exact: bool = False) -> dict[str, str]:
    """Column of the table -> column of the source, for the columns that ``*`` selects: all that both have.

    Args:
        names: columns of the table.
        given: columns of the source.
        exact: whether names that differ in upper and lower case are different names.

    Raises:
        ConfigError: no common column, or columns of the source that differ only in case.
    """
    found = {name: resolve_name(name, given, "`*`, columns of the source", exact) for name in names}
    both = {name: other for name, other in found.items() if other is not None}
    if not both:
        raise ConfigError(f"`*` matches no column: the table has {list(names)}, the source {list(given)}.")
    return both


def _pairs(columns: Any) -> tuple[tuple[tuple[str, str], ...], Any]:
    if isinstance(columns, str):
        return (((columns, columns),), None) if _NAME.match(columns) else ((), columns)
    if isinstance(columns, Mapping):
        pairs = tuple((str(one), str(other)) for one, other in columns.items())
    elif isinstance(columns, list | tuple) and all(isinstance(name, str) for name in columns):
        pairs = tuple((name, name) for name in columns)
    elif columns is None:
        pairs = ()
    else:
        return (), columns
    if not pairs:
        raise ConfigError("`on` needs a column or a condition.")
    return pairs, None


def _values(given: Mapping[str, Any] | str | None) -> Mapping[str, Any] | None:
    if given is None or (isinstance(given, str) and given.strip() == "*"):
        return None
    if not isinstance(given, Mapping) or not given:
        raise ConfigError(f"Columns to set are given as {{column: value}}, or all by '*'; got {given!r}.")
    return dict(given)
