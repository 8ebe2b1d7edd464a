"""Change queries as methods of ``HudiTable``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hudi_fast.storage.failures import tells_failures

if TYPE_CHECKING:
    import pyarrow as pa

    from hudi_fast.config.moments import Moment
    from hudi_fast.merging.rules import Merger
    from hudi_fast.reading.incremental.cdc import CdcPlan
    from hudi_fast.reading.scan import Filter
    from hudi_fast.storage.base import Storage

__all__ = ["IncrementalReads"]


@tells_failures
class IncrementalReads:
    """The change queries of a table."""

    _storage: Storage
    _merger: Merger | None

    def cdc(
        self,
        begin: Moment,
        end: Moment | None = None,
        options: Mapping[str, Any] | None = None,
        *,
        columns: Sequence[str] | None = None,
        filter: Filter | None = None,
    ) -> pa.Table:
        """The changes of commits: op (i, u or d), ts_ms (the commit's instant), before and after (the row as JSON).

        Args:
            begin: exclusive: requested time of a commit, in any form that ``as_of`` accepts; ``earliest`` for the
                first.
            end: inclusive; None for the newest.
            options: further options of the query.
            columns: of op, ts_ms, before and after, in this order; None for all.
            filter: condition of the changes: SQL text (``"op <> 'd'"``), or a ``pyarrow.compute`` expression.

        Raises:
            ConfigError: the table logs no changes, a column or filter does not fit, or the range is not available: it
                begins before the active timeline, or files have been cleaned.
            CorruptTableError: a base file was rewritten without a change log.
        """
        from hudi_fast.reading.incremental.cdc import changes_table

        return changes_table(self._changes_plan(begin, end, options), columns, filter)

    def cdc_batches(
        self,
        begin: Moment,
        end: Moment | None = None,
        options: Mapping[str, Any] | None = None,
        *,
        columns: Sequence[str] | None = None,
        filter: Filter | None = None,
    ) -> pa.RecordBatchReader:
        """Like :meth:`cdc`, as a stream in no particular order, in bounded memory."""
        from hudi_fast.reading.incremental.cdc import changes_batches

        return changes_batches(self._changes_plan(begin, end, options), columns, filter)

    def _changes_plan(self, begin: Moment, end: Moment | None, options: Mapping[str, Any] | None) -> CdcPlan:
        from hudi_fast.reading.incremental.cdc import change_options, plan_query

        return plan_query(self._storage, change_options(begin, end, options, self._merger))
