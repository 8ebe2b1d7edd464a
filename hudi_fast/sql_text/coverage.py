"""Which statements of a script hudi_fast executes in a switched-on Spark session.

::

    script ─► statements ─► parse_statement, references ─► Coverage: executed, or the reason why not
"""

from __future__ import annotations

from collections.abc import Iterator

from hudi_fast.sql_text.cursor import Cursor, StatementError, references_in
from hudi_fast.sql_text.grammar import parse_statement
from hudi_fast.sql_text.procedures import SIGNATURES, SUPPORTED
from hudi_fast.sql_text.statements import (
    AlterColumn,
    Call,
    CreateTable,
    CreateView,
    NotSupported,
    Statement,
)
from hudi_fast.values import dataclass

__all__ = ["REFUSED_FUNCTIONS", "Coverage", "coverage_of", "refusal"]

REFUSED_FUNCTIONS = {
    "hudi_metadata": "HudiTable.services.indexes() shows the metadata table's partitions.",
}
"""Apache Hudi's table functions that are refused, and what to do instead."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """One statement of a script.

    Attributes:
        text: the statement.
        refusal: why hudi_fast refuses it, and what to do; empty if it, or Spark, executes it.
        is_known: False for a text that is not a statement.
        setting: key and value of ``SET``; None for other statements.
    """

    text: str
    refusal: str = ""
    is_known: bool = True
    setting: tuple[str, str] | None = None


def coverage_of(script: str) -> Iterator[Coverage]:
    """The statements of a script, in order."""
    for text in _split(script):
        try:
            statement = parse_statement(text)
        except StatementError as error:
            yield Coverage(text, str(error))
            continue
        if statement is not None:
            yield Coverage(text, refusal(statement))
            continue
        yield _of_spark(text)


def refusal(statement: Statement) -> str:
    """Why hudi_fast refuses a statement about a Hudi table, and what to do; empty if it does not."""
    if isinstance(statement, Call):
        name = statement.table.parts[-1].lower()
        known = name in SIGNATURES and name not in SUPPORTED
        return f"The procedure {name} is not supported; see HudiTable.services and HudiTable.history." if known else ""
    if isinstance(statement, CreateTable) and (statement.clauses or statement.replace):
        said = ", ".join(statement.clauses) or "OR REPLACE"
        return f"{said} is not supported for Hudi tables."
    if isinstance(statement, CreateView) and statement.temporary == "global":
        return "Global temporary views over Hudi tables are not supported; use a view of the session or of the catalog."
    if isinstance(statement, NotSupported):
        return f"{statement.what} of a Hudi table is not supported. {statement.advice}"
    if isinstance(statement, AlterColumn) and statement.nullable is False:
        return "A column cannot become NOT NULL."
    return ""


def _of_spark(text: str) -> Coverage:
    cursor = Cursor(text)
    if cursor.take("SET"):
        key, _, value = text[cursor.offset :].partition("=")
        return Coverage(text, setting=(key.strip(), value.strip()))
    for one in references_in(text):
        name = one.name.parts[0].lower()
        if one.arguments is not None and name in REFUSED_FUNCTIONS:
            return Coverage(text, f"The table function {name} is not supported. {REFUSED_FUNCTIONS[name]}")
    return Coverage(text, is_known=cursor.done or cursor.tokens[0].text.upper() in _FIRST)


_FIRST = frozenset(
    """
    SELECT WITH FROM VALUES TABLE EXPLAIN ( USE ADD ALTER ANALYZE CACHE CLEAR COMMENT CREATE DECLARE DESC
    DESCRIBE DFS DROP EXECUTE INSERT LIST LOAD LOCK MSCK REFRESH REPAIR RESET SHOW UNCACHE UNLOCK BEGIN GRANT
    REVOKE MAP
    """.split()
)
"""First words of statements that Spark executes."""


def _split(script: str) -> Iterator[str]:
    """The texts between semicolons that are not in quotes or comments."""
    try:
        tokens = Cursor(script).tokens
    except StatementError:
        yield script.strip()
        return
    start = 0
    for token in (*(one for one in tokens if one.kind == "symbol" and one.text == ";"), None):
        part = script[start : len(script) if token is None else token.start].strip()
        if part and Cursor(part).tokens:
            yield part
        start = len(script) if token is None else token.end
