"""Change queries as methods of ``HudiTable``."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

    from hudi_fast.merging.rules import Merger
    from hudi_fast.reading.incremental.cdc import CdcPlan
    from hudi_fast.storage.base import Storage

__all__ = ["IncrementalReads"]


class IncrementalReads:
    """The change queries of a table."""

    _storage: Storage
    _merger: Merger | None

    def cdc(
        self, begin: str | date, end: str | date | None = None, options: Mapping[str, Any] | None = None
    ) -> pa.Table:
        """The changes of commits: op (i, u or d), ts_ms (the commit's instant), before and after (the row as JSON).

        Args:
            begin: exclusive: requested time of a commit, in any form that ``as_of`` accepts; ``earliest`` for the
                first.
            end: inclusive; None for the newest.
            options: further options of the query.

        Raises:
            ConfigError: the table logs no changes, or the range is not available: it begins before the active timeline,
                or files have been cleaned.
            CorruptTableError: a base file was rewritten without a change log.
        """
        from hudi_fast.reading.incremental.cdc import changes_table

        return changes_table(self._changes_plan(begin, end, options))

    def cdc_batches(
        self, begin: str | date, end: str | date | None = None, options: Mapping[str, Any] | None = None
    ) -> pa.RecordBatchReader:
        """Like :meth:`cdc`, as a stream in no particular order, in bounded memory."""
        from hudi_fast.reading.incremental.cdc import changes_batches

        return changes_batches(self._changes_plan(begin, end, options))

    def _changes_plan(self, begin: str | date, end: str | date | None, options: Mapping[str, Any] | None) -> CdcPlan:
        from hudi_fast.reading.incremental.cdc import change_options, plan_query

        return plan_query(self._storage, change_options(begin, end, options, self._merger))
