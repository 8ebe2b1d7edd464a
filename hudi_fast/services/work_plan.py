"""How a service writes files and merges rows: drafted as a write that brings no rows would be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa

from hudi_fast.merging.rules import MergeRules
from hudi_fast.merging.slice_merge import SliceMerge
from hudi_fast.schema.history import schema_at
from hudi_fast.services.settings import ServiceSettings
from hudi_fast.view.table_state import TableState, column_defaults, table_schema
from hudi_fast.writing.draft import draft_plan
from hudi_fast.writing.plan import WritePlan

__all__ = ["service_merge", "service_plan"]

_IN_PARTITIONS = "SIMPLE"
"""Any index that looks for keys where the rows are: a service moves none."""


def service_plan(state: TableState, settings: ServiceSettings, planned: str | None = None) -> WritePlan:
    """The plan of a service that rewrites what is stored; it has no instant yet.

    Args:
        state: the pinned table.
        settings: how files are written.
        planned: requested time of a service that was planned before: if the schema was altered since, files are
            written with the columns of that time, for that is what their names will say. None for now.

    Raises:
        ConfigError: options clash with the table.
        UnsupportedFeatureError: the table is not supported.
    """
    state = _with_columns_of(state, planned)
    # Of all operations this is the one that neither brings columns nor needs keys.
    options = replace(
        settings.write, operation="delete_partition", partitions_to_delete=("*",), index_type=_IN_PARTITIONS
    )
    plan = draft_plan(state, options, table_schema(state) or pa.schema([]), settings.merger)
    rules = replace(plan.rules, defaults=plan.rules.defaults or _defaults(state, plan.rules))
    return replace(plan, operation="compact", rules=rules)


def _with_columns_of(state: TableState, planned: str | None) -> TableState:
    history = state.view.history
    if history is None or planned is None or schema_at(history, planned) is schema_at(history, None):
        return state
    return replace(state, view=replace(state.view, history=replace(history, as_of=planned)))


def _defaults(state: TableState, rules: MergeRules) -> Mapping[str, object]:
    return {} if rules.partial_payload else column_defaults(state)


def service_merge(state: TableState, plan: WritePlan) -> SliceMerge:
    """How the slices of the table merge."""
    return SliceMerge(
        state.storage,
        state.timeline,
        state.config.version,
        plan.rules,
        key_config=plan.stored_key_config,
        history=plan.view.history,
    )
