"""CHANGE QUERIES, top to bottom: what was inserted, updated and deleted, with the rows before and after as JSON.

::

    plan_cdc         state, bounds ─► commits ─► units: a file group that a commit changed          (a value)
    read_changes     unit ─► change records, or rows before and after ─► JSON ─► batches            (pure)
    changes_batches  units ─► read_changes in threads ─► batches, as they come
    changes_table    units ─► read_changes in threads ─► one table
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from hudi_fast.config.read_options import ReadOptions
from hudi_fast.reading.changes.cdc_units import CdcUnit
from hudi_fast.storage.base import Storage
from hudi_fast.view.table_state import TableState

__all__ = ["CHANGE_SCHEMA", "CdcPlan", "changes_batches", "changes_table", "plan_cdc", "read_changes"]

CHANGE_SCHEMA = pa.schema({"op": pa.string(), "ts_ms": pa.string(), "before": pa.string(), "after": pa.string()})
"""Columns of a change query (``CDCRelation``, Hudi 1.2.0): i, u or d; the commit's instant; the row's JSON."""


@dataclass(frozen=True)
class CdcPlan:
    """What a change query will read. Picklable.

    Attributes:
        storage: the table's storage.
        units: what is read, by instant and file group.
        threads: units read at once.
    """

    storage: Storage
    units: tuple[CdcUnit, ...]
    threads: int


def plan_cdc(state: TableState, options: ReadOptions, threads: int | None = None) -> CdcPlan:
    """Decide what to read.

    Args:
        state: the table, now.
        options: begin (exclusive) and end (inclusive): requested times of commits.
        threads: units to read at once; None for one per processor.

    Raises:
        ConfigError: the table logs no changes, or the range cannot be answered.
    """
    raise NotImplementedError


def read_changes(plan: CdcPlan, unit: CdcUnit) -> Iterator[pa.RecordBatch]:
    """The changes of one unit, a bounded number at a time, in :data:`CHANGE_SCHEMA`.

    Raises:
        CorruptTableError: one of its files cannot be read.
    """
    raise NotImplementedError


def changes_table(plan: CdcPlan) -> pa.Table:
    """All changes at once, in the order of the units."""
    raise NotImplementedError


def changes_batches(plan: CdcPlan) -> pa.RecordBatchReader:
    """All changes as a stream, in no particular order."""
    raise NotImplementedError
