"""Values and conditions of DML without Spark: ``pyarrow.compute`` expressions, computed over Arrow tables.

::

    literal, expression or text ─► parse_value ─► an expression ─► evaluate ─► a column in the requested type

Text is a column (``source.fare``), or a literal as SQL writes it: ``'text'`` (a quote in it doubled), a number,
``true``, ``false``, ``null``. :mod:`hudi_fast.dml.dml` turns other SQL text into an expression first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.acero as acero
import pyarrow.compute as pc

from hudi_fast.errors import ConfigError, InvalidDataError
from hudi_fast.schema.assignment import require_assignable
from hudi_fast.schema.conform import assigned_values
from hudi_fast.schema.names import renamed_fields

__all__ = ["check_condition", "evaluate", "is_literal", "literal_value", "mentioned", "parse_value", "true_of"]

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
