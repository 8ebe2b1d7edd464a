"""Incremental queries: the rows that commits of a range wrote, as they are at its end."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow.compute as pc

from hudi_fast.config.read_options import ReadOptions
from hudi_fast.reading.scan import ScanPlan
from hudi_fast.view.table_state import TableState

__all__ = ["plan_incremental"]


def plan_incremental(
    state: TableState,
    options: ReadOptions,
    columns: Sequence[str] | None = None,
    filter: pc.Expression | None = None,
) -> ScanPlan:
    """Decide what to read.

    Raises:
        ConfigError: the range cannot be answered.
    """
    raise NotImplementedError
