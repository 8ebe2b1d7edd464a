"""A change as a write: the services beside it, the lock, the one commit.

::

    Merge | update | delete ─► columns that changed rows bring ─► DmlEngine ─► run_write ─► services
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.config.write_options import WriteOptions
from hudi_fast.dml.assignments import partial_columns_of
from hudi_fast.dml.engine import DmlEngine
from hudi_fast.dml.expressions import check_condition
from hudi_fast.dml.local import merged_rows, updated_rows
from hudi_fast.dml.matching_columns import resolved_spec
from hudi_fast.dml.statement import MATCHED, Clause, MergeSpec
from hudi_fast.dml.target import roots
from hudi_fast.errors import ConfigError
from hudi_fast.metadata_table.state import open_state
from hudi_fast.services.carriers import Carriers, in_process
from hudi_fast.services.inline import check_inline, inline_by_default, serve, serve_before
from hudi_fast.services.settings import ServiceSettings
from hudi_fast.storage.base import Storage
from hudi_fast.view.table_state import TableState, table_schema
from hudi_fast.writing.flow import Engine, WriteResult, run_write
from hudi_fast.writing.local import LocalEngine
from hudi_fast.writing.plan import WritePlan

__all__ = ["ChangeRun", "check_update", "delete_locally", "merge_locally", "run_dml", "update_locally"]


@dataclass(frozen=True)
class ChangeRun:
    """A table that is to be changed, and by whom.

    Attributes:
        storage: the table.
        settings: options of the write and of the services after it.
        carriers: who does the work of these.
        inline: whether a merge-on-read table is compacted after the write unless the options say otherwise.
    """

    storage: Storage
    settings: ServiceSettings
    carriers: Carriers
    inline: bool = True

    @classmethod
    def of(
        cls,
        storage: Storage,
        options: Mapping[str, Any] | None,
        carriers: Callable[[WriteOptions], Carriers] | None = None,
        inline: bool = True,
    ) -> ChangeRun:
        """The run that options ask for.

        Args:
            storage: the table.
            options: ``hoodie.*`` keys as for a write; the operation follows from the change.
            carriers: who does the work of services; None for this process.
            inline: see the attribute.

        Raises:
            ConfigError: an option is wrong.
        """
        given = {"hoodie.datasource.write.operation": "upsert", **(options or {})}
        if str(given["hoodie.datasource.write.operation"]).lower() not in ("upsert", "delete"):
            raise ConfigError(
                f"hoodie.datasource.write.operation={given['hoodie.datasource.write.operation']} says nothing to a "
                "merge, an update or a delete by condition; leave it out."
            )
        settings = ServiceSettings.from_options(given)
        if settings.write.partial_update:
            raise ConfigError(
                "hudi_fast.partial.update=true is for upserts of partial rows; whether a merge or an update logs the "
                "columns that it sets alone follows from hoodie.spark.sql.merge.into.partial.updates."
            )
        check_inline(settings)
        made = in_process(settings.write.threads) if carriers is None else carriers(settings.write)
        return cls(storage, settings, made, inline)


def run_dml(
    run: ChangeRun, spec: MergeSpec, source: Sequence[str], work_out: Callable[[WritePlan, MergeSpec], Engine]
) -> WriteResult:
    """Carry a change out.

    Args:
        run: the table.
        spec: what changes; of an update or a delete one clause without pairs.
        source: columns of the source; none without one.
        work_out: the engine that has the changed rows, from the plan of the write and the change, settled.

    Raises:
        HudiError: see :mod:`hudi_fast.errors`; unless it is ``CommitStateUnknownError`` the table is as before.
    """
    serve_before(run.storage, run.settings, run.carriers)
    state = open_state(run.storage)
    schema = _schema(state)
    spec = resolved_spec(spec, schema.names, source)
    options = run.settings.write
    partial = partial_columns_of(state.config, options, spec, source, schema.names)
    only_deletes = all(clause.effect == "delete" for clause in spec.clauses)
    if partial is not None:
        options = replace(options, partial_update=True)
    elif only_deletes:
        options = replace(options, operation="delete")
    columns = schema if partial is None else _with_identity(state, schema, partial)
    result = run_write(DmlEngine(columns, lambda plan: work_out(plan, spec)), run.storage, options, "append")
    settings = inline_by_default(run.settings) if run.inline else run.settings
    serve(run.storage, settings, result.instant, run.carriers)
    return result


def merge_locally(run: ChangeRun, source: pa.Table, spec: MergeSpec) -> WriteResult:
    """Merge rows of this process into the table."""
    check_condition(spec.condition, "on")
    return run_dml(
        run,
        spec,
        source.column_names,
        lambda plan, said: LocalEngine(merged_rows(plan, said, source), "local", _REASON),
    )


def update_locally(run: ChangeRun, where: Any, set_: Mapping[str, Any]) -> WriteResult:
    """Update the rows that a filter selects.

    Raises:
        ConfigError: the filter or a value is none, or does not fit the table.
    """
    return _select(run, check_update(set_), check_condition(where, "where"))


def delete_locally(run: ChangeRun, where: Any) -> WriteResult:
    """Delete the rows that a filter selects.

    Raises:
        ConfigError: the filter is none, or does not fit the table.
    """
    return _select(run, Clause(MATCHED, "delete"), check_condition(where, "where"))


def check_update(set_: Any) -> Clause:
    """The clause of an update.

    Raises:
        ConfigError: it sets nothing.
    """
    if not isinstance(set_, Mapping) or not set_:
        raise ConfigError(f"An update sets columns: {{column: value}}; got {set_!r}.")
    return Clause(MATCHED, "update", None, dict(set_))


_REASON = "the rows were worked out in this process"


def _select(run: ChangeRun, clause: Clause, where: pc.Expression | None) -> WriteResult:
    spec = MergeSpec(clauses=(clause,))
    return run_dml(run, spec, (), lambda plan, _: LocalEngine(updated_rows(plan, clause, where), "local", _REASON))


def _schema(state: TableState) -> pa.Schema:
    schema = table_schema(state)
    if schema is None:
        raise ConfigError(f"There is nothing to change: {state.storage.uri} has no commit yet. Write rows first.")
    return schema


def _with_identity(state: TableState, schema: pa.Schema, partial: Sequence[str]) -> pa.Schema:
    """Partial updates bring key, partition and ordering columns, too."""
    config = state.config
    partitioned = config.partition_fields if config.is_partitioned else ()
    named = {*partial, *roots([*config.record_key_fields, *partitioned, *config.ordering_fields])}
    return pa.schema([field for field in schema if field.name in named])
