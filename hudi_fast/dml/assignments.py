"""Assignments, values and conditions of DML without Spark.

Assignments of a DML statement: columns of the table and their values, checked against the table.

Key columns cannot be set, because the key identifies the row; a merge may assign a key column that its condition makes
equal to the source column. A row whose partition columns change moves: it is deleted in the old partition and inserted
into the new one, in one commit.

Values and conditions of DML without Spark: ``pyarrow.compute`` expressions, computed over Arrow tables.

::

    literal, expression or text ─► parse_value ─► an expression ─► evaluate ─► a column in the requested type

Text is a column (``source.fare``), or a literal as SQL writes it: ``'text'`` (a quote in it doubled), a number,
``true``, ``false``, ``null``. :mod:`hudi_fast.dml.dml` turns other SQL text into an expression first.

Resolves the column names written in a merge to columns of the table and of the source.

::

    "t.id = s.id and t.day = s.day", or the same as an expression ─► pairs ─► rows are looked up by key, not compared
    {"Fare": "S.fare"}, in upper or lower case ─► {"fare": "s.fare"}

Pairs allow data skipping by the keys of the source, and let ``*`` omit columns that are equal anyway. Conditions and
computed values stay as written: the engine resolves their names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.acero as acero
import pyarrow.compute as pc

from hudi_fast.config.table_config import TableConfig
from hudi_fast.config.write_options import WriteOptions
from hudi_fast.dml.statement import BY_SOURCE, MATCHED, NOT_MATCHED, Clause, MergeSpec, all_columns
from hudi_fast.dml.target import check_columns, roots
from hudi_fast.errors import ConfigError, InvalidDataError
from hudi_fast.merging.rules import MergeRules, merge_rules_of
from hudi_fast.schema.assignment import require_assignable
from hudi_fast.schema.conform import assigned_values
from hudi_fast.schema.names import renamed_fields, resolve_name
from hudi_fast.writing.write_plan import WritePlan

__all__ = [
    "assigned",
    "check_condition",
    "column_of",
    "evaluate",
    "is_literal",
    "is_upsert",
    "literal_value",
    "mentioned",
    "order_values",
    "parse_value",
    "partial_columns_of",
    "resolved_spec",
    "true_of",
    "unset_columns",
    "values_of",
]

_TEXT = re.compile(r"'((?:[^']|'')*)'$")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$")
_WORDS = {"true": True, "false": False, "null": None}


def parse_value(value: Any, columns: Sequence[str], where: str) -> pc.Expression:
    """A value of a DML statement as an expression.

    Args:
        value: a literal, an expression, or text.
        columns: columns that it may name.
        where: clause and column, for messages.

    Raises:
        ConfigError: text that is neither a column nor a literal, or an unsupported value.
    """
    if isinstance(value, pc.Expression):
        return value
    if isinstance(value, str):
        return _parse_text(value.strip(), columns, where)
    try:
        return pc.scalar(value)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError) as error:
        raise ConfigError(
            f"{where}: a column cannot hold {value!r}. Without Spark give a literal, text, or a pyarrow.compute "
            "expression."
        ) from error


def is_literal(text: str) -> bool:
    """Whether a text is a literal of :func:`parse_value`."""
    return bool(_TEXT.match(text) or _NUMBER.match(text)) or text.lower() in _WORDS


def literal_value(text: str) -> Any:
    """The value of a literal, for which :func:`is_literal` is true."""
    if quoted := _TEXT.match(text):
        return quoted[1].replace("''", "'")
    if _NUMBER.match(text):
        return int(text) if re.fullmatch(r"[+-]?\d+", text) else float(text)
    return _WORDS[text.lower()]


def check_condition(condition: Any, where: str) -> pc.Expression | None:
    """Validate a condition.

    Raises:
        ConfigError: not an expression.
    """
    if condition is None or isinstance(condition, pc.Expression):
        return condition
    raise ConfigError(
        f"{where}: {condition!r} is not a condition. Without Spark a condition is SQL text such as 'source.fare > 10', "
        "or a pyarrow.compute expression such as field('source.fare') > 10; Columns are for Spark."
    )


def mentioned(expression: pc.Expression | None, columns: Sequence[str]) -> list[str]:
    """A superset of the columns that the expression uses."""
    text = "" if expression is None else str(expression)
    return [name for name in columns if name in text]


def true_of(condition: pc.Expression | None, rows: pa.Table, where: str) -> npt.NDArray[np.bool_]:
    """bool[n]: rows for which the condition is true; null counts as false.

    Raises:
        ConfigError: the condition does not fit the columns.
    """
    if condition is None:
        return np.ones(rows.num_rows, dtype=np.bool_)
    column = evaluate(rows, {"it": condition}, {"it": pa.bool_()}, where).column("it")
    found: npt.NDArray[np.bool_] = np.asarray(pc.fill_null(column, False), dtype=np.bool_)
    return found


def evaluate(
    rows: pa.Table,
    expressions: Mapping[str, pc.Expression],
    types: Mapping[str, pa.DataType],
    where: str,
    assigns: bool = False,
) -> pa.Table:
    """The values of expressions for each row, in the order of the rows.

    Args:
        rows: n rows.
        expressions: by the name of the result.
        types: of the results.
        where: the clause, for messages.
        assigns: whether the values are for columns of the table.

    Raises:
        ConfigError: an expression names an unknown column, or its operands do not allow the operation.
        InvalidDataError: a value does not fit the type.
        SchemaMismatchError: the column would give the value another meaning.
    """
    if not expressions:
        return rows.select([])
    try:
        computed = _project(rows, list(expressions.values()), list(expressions))
    except (pa.ArrowNotImplementedError, pa.ArrowTypeError, pa.ArrowKeyError) as error:
        raise ConfigError(f"{where}: {error}") from error
    except pa.ArrowInvalid as error:
        reason = str(error)
        if reason.startswith("No match for"):
            reason = f"{reason.partition(' in ')[0]}; {_meant(reason, rows.column_names)}"
            raise ConfigError(f"{where}: {reason}") from error
        raise InvalidDataError(f"{where}: {reason}") from error
    named = {
        name: renamed_fields(computed.column(name), types[name], f"{where}, column {name!r}") for name in expressions
    }
    for name in expressions if assigns else ():
        require_assignable(types[name], named[name].type, name, where)
    return pa.table({name: assigned_values(named[name], types[name], name, where) for name in expressions})


def _project(rows: pa.Table, expressions: list[pc.Expression], names: list[str]) -> pa.Table:
    source = acero.Declaration("table_source", acero.TableSourceNodeOptions(rows))
    project = acero.Declaration("project", acero.ProjectNodeOptions(expressions, names), [source])
    return project.to_table(use_threads=False)


def _parse_text(text: str, columns: Sequence[str], where: str) -> pc.Expression:
    if text in columns:
        return pc.field(text)
    if is_literal(text):
        return pc.scalar(literal_value(text))
    raise ConfigError(
        f"{where}: the text {text!r} is neither a column ({', '.join(_shown(columns))}) nor a literal. A literal text "
        "stands in quotes of its own (\"'text'\"); what computes is a pyarrow.compute expression, or needs Spark."
    )


def _meant(reason: str, columns: Sequence[str]) -> str:
    """A hint for an unknown column name."""
    name = reason.partition("FieldRef.Name(")[2].partition(")")[0]
    if not name or not any(one.rpartition(".")[2] == name for one in _shown(columns)):
        return "there is no such column."
    sides = sorted({one.partition(".")[0] for one in columns}, reverse=True)
    return f"say of which side: {' or '.join(f'{side}.{name}' for side in sides)}."


def _shown(columns: Sequence[str]) -> list[str]:
    """Columns without the columns that locate a stored row."""
    return [one for one in columns if not one.rpartition(".")[2].startswith(("_hoodie_", "__hudi_fast_"))]


_FIRST_PARTIAL = 8


def assigned(
    clause: Clause, config: TableConfig, names: Sequence[str], source: Sequence[str], spec: MergeSpec
) -> Mapping[str, Any]:
    """Column of the table -> value, for each column that a clause sets.

    Args:
        clause: an update or an insert.
        config: of the table.
        names: columns of the table.
        source: columns of the source; empty without a source.
        spec: the merge; an update has no pairs.

    Raises:
        ConfigError: an unknown column, or a key column.
    """
    where = f"when {clause.kind} {clause.effect}"
    keys = roots(config.record_key_fields)
    equal = {target: name for target, name in spec.pairs if target in keys}
    if clause.values is None:
        named = all_columns(names, source, spec.exact_names)
        values: dict[str, Any] = {name: f"{spec.aliases[1]}.{other}" for name, other in named.items()}
    else:
        check_columns(clause.values, names, where)
        values = dict(clause.values)
    if clause.kind == NOT_MATCHED:
        return values
    for name in keys:
        if name in values and equal.get(name) is not None and values[name] == f"{spec.aliases[1]}.{equal[name]}":
            del values[name]
    set_keys = [name for name in values if name in keys]
    if set_keys and clause.values is None:
        raise ConfigError(
            f"{where}: `*` would set the record key columns {set_keys} of table {config.name}, which identify "
            "the row. Name them in `on`, as columns that are equal, or name the columns to set."
        )
    if set_keys:
        raise ConfigError(
            f"{where}: the record key columns {set_keys} of table {config.name} cannot be set, because they identify "
            "the row. Delete the row and insert another, or match on these columns."
        )
    if not values:
        raise ConfigError(f"{where}: there are no columns to set besides those that the merge matches on.")
    return values


def partial_columns_of(
    config: TableConfig, options: WriteOptions, spec: MergeSpec, source: Sequence[str], names: Sequence[str]
) -> list[str] | None:
    """The columns that all updated rows set, if they can be written as a partial update; None for whole rows.

    As in Apache Hudi's MERGE INTO, for MERGE_ON_READ tables of version 8 and later, unless
    ``hoodie.spark.sql.merge.into.partial.updates`` is false. Here also only without inserts, and if all updates set the
    same columns.
    """
    updates = [clause for clause in spec.clauses if clause.effect == "update"]
    inserts = any(clause.effect == "insert" for clause in spec.clauses)
    if not updates or inserts or not options.merge_partial_updates:
        return None
    sets = {frozenset(assigned(clause, config, names, source, spec)) for clause in updates}
    moves = config.is_partitioned and any(set(roots(config.partition_fields)) & one for one in sets)
    if len(sets) > 1 or moves or not config.is_mor or config.version < _FIRST_PARTIAL:
        return None
    rules: MergeRules = merge_rules_of(
        config, options.merging.delete_field, options.merging.delete_marker, options.engine.merger
    )
    if rules.blends or (options.index.is_global and options.index.updates_partition):
        return None
    (columns,) = sets
    return [name for name in names if name in columns]


def order_values(
    clause: Clause,
    config: TableConfig,
    names: Sequence[str],
    source: Sequence[str],
    spec: MergeSpec,
    comparable: Callable[[str, str], bool],
) -> Mapping[str, Any] | None:
    """Ordering field -> the value that decides between source rows of one key; None where no order decides.

    It is the value that the clause sets, else the source's column of that name, as in Apache Hudi's MERGE INTO.
    Fields of structs do not decide.

    Args:
        clause: any clause.
        config: of the table.
        names: columns of the table.
        source: columns of the source; empty without a source.
        spec: the merge.
        comparable: whether a column of the table and one of the source have values that can be compared.
    """
    fields = config.ordering_fields
    if clause.kind == BY_SOURCE or not source or not fields or any(name not in names for name in fields):
        return None
    values = {} if clause.effect == "delete" else assigned(clause, config, names, source, spec)
    found: dict[str, Any] = {}
    for name in fields:
        if name in values:
            found[name] = values[name]
            continue
        own = resolve_name(name, source, "columns of the source", spec.exact_names)
        if own is not None and comparable(name, own):
            found[name] = f"{spec.aliases[1]}.{own}"
    return found


def unset_columns(config: TableConfig, spec: MergeSpec, source: Sequence[str], names: Sequence[str]) -> frozenset[str]:
    """The columns of the table that no update of the statement sets: updated rows keep their values.

    Arguments as for :func:`assigned`.
    """
    updates = [clause for clause in spec.clauses if clause.effect == "update"]
    return frozenset(names).difference(*(assigned(clause, config, names, source, spec) for clause in updates))


def is_upsert(plan: WritePlan, spec: MergeSpec, source: Sequence[str]) -> bool:
    """Whether a merge by key sets every column of matched and unmatched rows from the source.

    Then the table need not be read, unless a row may be stored in another partition than the source row's.

    Args:
        plan: the write.
        spec: the merge.
        source: columns of the source.
    """
    kinds = sorted(clause.kind for clause in spec.clauses)
    if kinds != [MATCHED, NOT_MATCHED] or any(clause.condition is not None for clause in spec.clauses):
        return False
    keys, named = set(plan.config.record_key_fields), {one for one, _ in spec.pairs}
    places = set(plan.config.partition_fields) if plan.config.is_partitioned else set()
    if not keys or spec.condition is not None or named != keys | places or (places and plan.index.is_global):
        return False
    update, insert = (spec.of_kind(kind)[0] for kind in (MATCHED, NOT_MATCHED))
    if update.effect != "update":
        return False
    names = plan.schema.names
    new = assigned(insert, plan.config, names, source, spec)
    old = {**{one: f"{spec.aliases[1]}.{other}" for one, other in spec.pairs}}
    old.update(assigned(update, plan.config, names, source, spec))
    columns = {f"{spec.aliases[1]}.{name}" for name in source}
    copies = all(isinstance(value, str) and value in columns for value in (*old.values(), *new.values()))
    return copies and old == new and set(new) == set(names)


def values_of(values: Mapping[str, Any], rows: pa.Table, schema: pa.Schema, clause: Clause) -> pa.Table:
    """The values that a clause sets.

    Args:
        values: of :func:`assigned`.
        rows: n rows selected by the clause; texts and expressions name their columns.
        schema: of the table.
        clause: for messages.

    Returns:
        n rows of the columns set, in the table's types.
    """
    where = f"when {clause.kind} {clause.effect}"
    expressions = {
        name: parse_value(value, rows.column_names, f"{where}, column {name!r}") for name, value in values.items()
    }
    return evaluate(rows, expressions, {name: schema.field(name).type for name in values}, where, assigns=True)


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
