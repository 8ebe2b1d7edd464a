"""Executes a merge, an update or a delete by condition as one write.

::

    Merge | update | delete ─► columns of the changed rows ─► DmlEngine ─► run_write, with inline services
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.config.words import checked_options
from hudi_fast.config.write_options import WriteOptions
from hudi_fast.dml.assignments import (
    check_condition,
    column_of,
    is_literal,
    partial_columns_of,
    resolved_spec,
    unset_columns,
)
from hudi_fast.dml.local import merged_rows, updated_rows
from hudi_fast.dml.statement import MATCHED, Clause, MergeSpec
from hudi_fast.dml.target import DmlEngine, roots
from hudi_fast.errors import ConfigError
from hudi_fast.expressions.sql_filters import sql_filter, sql_value
from hudi_fast.merging.rules import merge_rules_of
from hudi_fast.reading.scan import filter_of
from hudi_fast.schema.conform import storable_rows
from hudi_fast.services.inline import check_inline, write_with_services
from hudi_fast.view.slices import latest_slices
from hudi_fast.view.table_state import TableState, table_schema
from hudi_fast.writing.backend import Engine
from hudi_fast.writing.flow import WriteResult, run_write
from hudi_fast.writing.local import LocalEngine
from hudi_fast.writing.session import TableSession
from hudi_fast.writing.settings import Settings
from hudi_fast.writing.write_plan import WritePlan

__all__ = ["check_update", "delete_locally", "dml_settings", "merge_locally", "run_dml", "update_locally"]


def dml_settings(options: Mapping[str, Any] | None) -> Settings:
    """The settings of a merge, an update or a delete by condition.

    Args:
        options: ``hoodie.*`` keys as for a write; the operation follows from the statement.

    Raises:
        ConfigError: an option is wrong.
    """
    given = {"hoodie.datasource.write.operation": "upsert", **(checked_options(options) or {})}
    if str(given["hoodie.datasource.write.operation"]).lower() not in ("upsert", "delete"):
        raise ConfigError(
            f"hoodie.datasource.write.operation={given['hoodie.datasource.write.operation']} does not apply to merge, "
            "update or delete by condition; leave it out."
        )
    settings = Settings.for_write(given, given.get("hudi_fast.merger"))
    if settings.write.partial_update:
        raise ConfigError(
            "hudi_fast.partial.update=true is for upserts of partial rows; whether a merge or an update logs only the "
            "columns that it sets follows from hoodie.spark.sql.merge.into.partial.updates."
        )
    check_inline(settings)
    return settings


def run_dml(
    session: TableSession, spec: MergeSpec, source: Sequence[str], make_engine: Callable[[WritePlan, MergeSpec], Engine]
) -> WriteResult:
    """Execute a DML statement.

    Args:
        session: the call.
        spec: the statement; an update or a delete has one clause without pairs.
        source: columns of the source; none without one.
        make_engine: the engine with the changed rows, from the plan of the write and the resolved statement.

    Raises:
        HudiError: see :mod:`hudi_fast.errors`. Unless it is ``CommitStateUnknownError`` or ``PostCommitError``, the
            table is as before.
    """
    state = session.reload()
    schema = _schema(state)
    spec = resolved_spec(spec, schema.names, source)
    options = session.settings.write
    partial = partial_columns_of(state.config, options, spec, source, schema.names)
    if partial is not None and _may_hold_late_rows(state, options):
        partial = None
    if partial is not None:
        options = replace(options, partial_update=True)
    elif all(clause.effect == "delete" for clause in spec.clauses):
        options = replace(options, operation="delete")
    columns = schema if partial is None else _with_identity(state, schema, partial)
    unset = unset_columns(state.config, spec, source, schema.names)
    engine = DmlEngine(columns, lambda plan: make_engine(plan, spec), unset)
    own = session.with_write(options)
    result = write_with_services(own, lambda: run_write(own, engine, "append"))
    assert result is not None
    return result


def merge_locally(session: TableSession, source: pa.Table, spec: MergeSpec) -> WriteResult:
    """Merge rows of this process into the table.

    Raises:
        ConfigError: a condition or a value does not fit the table or the source.
    """
    if not isinstance(spec.condition, str):
        check_condition(spec.condition, "on")
    source = storable_rows(source)

    def engine(plan: WritePlan, resolved: MergeSpec) -> Engine:
        understood = _in_expressions(resolved, plan.schema, source.schema)
        return LocalEngine(merged_rows(plan, understood, source), "local", _REASON)

    return run_dml(session, spec, source.column_names, engine)


def update_locally(session: TableSession, where: Any, set_: Mapping[str, Any], alias: str = "") -> WriteResult:
    """Update the rows that a filter selects: an expression, SQL text, or None for all rows.

    Args:
        session: the call.
        where: the filter.
        set_: column -> value: a literal, an expression, or SQL text.
        alias: a name of the table in SQL text.

    Raises:
        ConfigError: the filter or a value is missing, or does not fit the table.
    """
    return _select(session, check_update(set_), filter_of(where, session.state, alias), alias)


def delete_locally(session: TableSession, where: Any, alias: str = "") -> WriteResult:
    """Delete the rows that a filter selects.

    Raises:
        ConfigError: the filter is missing, or does not fit the table.
    """
    return _select(session, Clause(MATCHED, "delete"), filter_of(where, session.state, alias), alias)


def check_update(set_: Any) -> Clause:
    """The clause of an update.

    Raises:
        ConfigError: it sets no column.
    """
    if not isinstance(set_, Mapping) or not set_:
        raise ConfigError(f"An update sets columns: {{column: value}}; got {set_!r}.")
    return Clause(MATCHED, "update", None, dict(set_))


_REASON = "the rows were computed in this process"


def _select(session: TableSession, clause: Clause, where: pc.Expression | None, alias: str) -> WriteResult:
    def engine(plan: WritePlan, spec: MergeSpec) -> Engine:
        (understood,) = _in_expressions(spec, plan.schema, alias=alias).clauses
        return LocalEngine(updated_rows(plan, understood, where), "local", _REASON)

    return run_dml(session, MergeSpec(clauses=(clause,)), (), engine)


def _schema(state: TableState) -> pa.Schema:
    schema = table_schema(state)
    if schema is None:
        raise ConfigError(f"There is nothing to change: {state.storage.uri} has no commit yet. Write rows first.")
    return schema


def _may_hold_late_rows(state: TableState, options: WriteOptions) -> bool:
    """Whether a log file may hold a row that loses against the base file by its ordering value.

    Readers merge the rows of a log before they merge the result with the base file. A partial row on a late row would
    return the values of the late row.
    """
    if not merge_rules_of(
        state.config, options.merging.delete_field, options.merging.delete_marker, options.engine.merger
    ).orders:
        return False
    slices = (one for path in state.view.lister.partitions() for one in latest_slices(state.view, path))
    return any(one.base_file is not None and one.log_files for one in slices)


def _with_identity(state: TableState, schema: pa.Schema, partial: Sequence[str]) -> pa.Schema:
    """Partial updates also contain the key, partition and ordering columns."""
    config = state.config
    partitioned = config.partition_fields if config.is_partitioned else ()
    named = {*partial, *roots([*config.record_key_fields, *partitioned, *config.ordering_fields])}
    return pa.schema([field for field in schema if field.name in named])


# ---- SQL text in a DML statement without Spark: conditions and values become pyarrow.compute expressions
#
# ::
#
#     Merge | update | delete, with text ─► columns that clauses see, with types ─► the same, with expressions
#
# Text that is the name of a column stays text, which shows that a merge copies a column.


def _in_expressions(spec: MergeSpec, target: pa.Schema, source: pa.Schema | None = None, alias: str = "") -> MergeSpec:
    """The statement with expressions in place of its SQL text.

    Args:
        spec: the statement.
        target: columns of the table.
        source: columns of the source; None for an update or a delete.
        alias: of the table in an update or a delete; empty without one.

    Raises:
        ConfigError: a text is wrong, or does not fit the columns.
        UnsupportedFeatureError: a function that only Spark has.
    """
    columns = target
    if source is not None:
        sides = zip(spec.aliases, (target, source), strict=True)
        columns = pa.schema([(f"{name}.{one.name}", one.type) for name, schema in sides for one in schema])
    names = columns.names
    clauses = tuple(_clause(clause, names, columns, alias) for clause in spec.clauses)
    return replace(spec, condition=_condition(spec.condition, columns, alias), clauses=clauses)


def _clause(clause: Clause, names: Sequence[str], columns: pa.Schema, alias: str) -> Clause:
    values = clause.values
    if values is not None:
        values = {column: _value(column, value, names, columns, alias) for column, value in values.items()}
    return replace(clause, condition=_condition(clause.condition, columns, alias), values=values)


def _condition(condition: Any, columns: pa.Schema, alias: str) -> Any:
    return sql_filter(condition, columns, alias) if isinstance(condition, str) else condition


def _value(column: str, value: Any, names: Sequence[str], columns: pa.Schema, alias: str) -> Any:
    if not isinstance(value, str):
        return value
    text = value.strip()
    plain = text.replace("`", "")
    if alias and plain.lower().startswith(f"{alias.lower()}."):
        plain = plain.partition(".")[2]
    if (found := column_of(plain, names, f"column {column!r}")) is not None:
        return found
    if is_literal(text):
        return text
    return sql_value(text, columns, alias)
