"""How a service writes files and merges rows: drafted as a write that brings no rows would be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa

from hudi_fast.merge.rules import MergeRules
from hudi_fast.merge.slice_merge import SliceMerge
from hudi_fast.services.settings import ServiceSettings
from hudi_fast.view.table_state import TableState, column_defaults, table_schema
from hudi_fast.writing.draft import draft_plan
from hudi_fast.writing.plan import WritePlan

__all__ = ["service_merge", "service_plan"]

_IN_PARTITIONS = "SIMPLE"
"""Any index that looks for keys where the rows are: a service moves none."""


def service_plan(state: TableState, settings: ServiceSettings) -> WritePlan:
    """The plan of a service that rewrites what is stored; it has no instant yet.

    Args:
        state: the pinned table.
        settings: how files are written.

    Raises:
        ConfigError: options clash with the table.
        UnsupportedFeatureError: the table is not supported.
    """
    # Of all operations this is the one that neither brings columns nor needs keys.
    options = replace(
        settings.write, operation="delete_partition", partitions_to_delete=("*",), index_type=_IN_PARTITIONS
    )
    plan = draft_plan(state, options, table_schema(state) or pa.schema([]), settings.merger)
    rules = replace(plan.rules, defaults=plan.rules.defaults or _defaults(state, plan.rules))
    return replace(plan, operation="compact", rules=rules)


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
