"""Validators: checks of the table before and after a write that is not committed yet.

::

    state before ─┬─ SQL queries, by the backend ─► the same, different, or one value?
    state after  ─┴─ a Python function of two scans

The state after the write is the table with the write's files, as if its instant were completed. A refused write is
rolled back like any other failed write.

Sources: ``SparkValidatorUtils``, ``SqlQueryPreCommitValidator`` and its classes (1.2.0).
"""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from hudi_fast.config.monitoring_options import SqlCheck
from hudi_fast.errors import HudiError, ValidationError
from hudi_fast.reading.dataset import Scan
from hudi_fast.timeline.commit_metadata import CommitMetadata
from hudi_fast.timeline.instants import Instant, State, with_state
from hudi_fast.view.table_state import TableState, table_schema
from hudi_fast.writing.session import TableSession

__all__ = ["scan_or_nothing", "validate"]

_BEFORE, _AFTER = "hudi_fast_before", "hudi_fast_after"
_SHOWN_ROWS = 3


def validate(session: TableSession, instant: Instant, metadata: CommitMetadata) -> None:
    """Call the validators of the options; under the table's lock, right before the commit.

    Args:
        session: the call.
        instant: the inflight write; all of its files exist.
        metadata: its commit metadata.

    Raises:
        ValidationError: a validator refuses the write.
        ConfigError: a query cannot be answered.
    """
    hooks, state = session.settings.hooks, session.state
    with session.phase("validate"):
        done = with_state(instant, State.COMPLETED, session.next_time())
        after = state.with_uncommitted(done, metadata)
        where = f"the {instant.action} {instant.requested} of {session.storage.uri}"
        if hooks.checks:
            with session.backend.answering({_BEFORE: state, _AFTER: after}) as rows_of:
                for check in hooks.checks:
                    _check(check, where, rows_of)
        if hooks.validator is not None:
            _call(hooks.validator, where, state, after)


def scan_or_nothing(state: TableState, like: TableState) -> ds.Dataset:
    """A scan of a state; if it has no commit, a scan without rows that has the columns of ``like``."""
    if table_schema(state) is not None:
        return Scan(state)
    return ds.dataset(pa.Table.from_batches([], Scan(like).schema))


def _check(check: SqlCheck, where: str, rows_of: Any) -> None:
    after = rows_of(check.on(_AFTER))
    if check.kind == "single":
        if after.num_rows != 1 or after.num_columns != 1:
            found = f"{after.num_rows} rows of {after.num_columns} columns"
            raise _refused(check, where, f"one value, {check.expected!r}", found)
        found = _text(after[0][0].as_py())
        if found != check.expected:
            raise _refused(check, where, repr(check.expected), repr(found))
        return
    before = rows_of(check.on(_BEFORE))
    same = Counter(_rows(before)) == Counter(_rows(after))
    if same != (check.kind == "equality"):
        wanted = "the rows before the write, " if check.kind == "equality" else "other rows than before the write, "
        raise _refused(check, where, f"{wanted}{_few(before)}", _few(after))


def _refused(check: SqlCheck, where: str, expected: str, found: str) -> ValidationError:
    return ValidationError(
        f"{check.validator.rpartition('.')[2]} refuses {where}: the query {check.query!r} has {found} after the write; "
        f"expected {expected}. The write is rolled back, and the table is as before."
    )


def _call(function: Any, where: str, before: TableState, after: TableState) -> None:
    try:
        function(scan_or_nothing(before, after), Scan(after))
    except HudiError:
        raise
    except Exception as error:
        name = getattr(function, "__qualname__", repr(function))
        raise ValidationError(
            f"The validator {name} refuses {where}: {type(error).__name__}: {error}. The write is rolled back, and the "
            "table is as before."
        ) from error


def _rows(table: pa.Table) -> list[str]:
    """Rows as texts, which can be counted whatever their types are."""
    return [
        repr(tuple(row.values())) for row in table.rename_columns(list(map(str, range(table.num_columns)))).to_pylist()
    ]


def _few(table: pa.Table) -> str:
    shown = ", ".join(_rows(table.slice(0, _SHOWN_ROWS)))
    more = f" and {table.num_rows - _SHOWN_ROWS} more" if table.num_rows > _SHOWN_ROWS else ""
    return f"{shown or 'no rows'}{more}"


def _text(value: Any) -> str:
    """A value as Java prints it, for values that Python prints differently."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return format(value, "f") if isinstance(value, Decimal) else str(value)
