"""``HudiTable.services``: indexes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from hudi_fast.metadata_table.state import open_state
from hudi_fast.services.indexing.drop import drop_index
from hudi_fast.services.indexing.listing import indexes_table
from hudi_fast.services.indexing.plan import ScheduledIndex, schedule_index, scheduled_indexes
from hudi_fast.services.indexing.request import IndexRequest
from hudi_fast.services.indexing.run import IndexResult, build_index, run_scheduled_index
from hudi_fast.services.verbs import Options, ServiceVerbs, check_plan

__all__ = ["IndexVerbs"]


class IndexVerbs(ServiceVerbs):
    """Building, dropping and listing indexes."""

    def index(
        self,
        kind: str = "",
        columns: Sequence[str] = (),
        name: str | None = None,
        function: str | None = None,
        function_options: Mapping[str, str] | None = None,
        options: Options | None = None,
        *,
        spark: Any = None,
        plan: ScheduledIndex | None = None,
    ) -> IndexResult:
        """Build an index and the indexes that it requires, while readers and writers continue.

        Nothing happens when the index exists. A missing metadata table is built first. A pending plan for the index is
        executed as planned.

        Args:
            kind: ``column_stats``, ``partition_stats``, ``bloom_filters``, ``record_index``, ``secondary_index``,
                ``expr_index``, or ``files`` for the metadata table alone.
            columns: columns of ``column_stats`` (default: the first 32 that can have statistics), or the one column of
                a secondary or expression index.
            name: of a secondary or expression index; default: the name of its column.
            function: of an expression index: ``lower``, ``year``, ``from_unixtime`` ...
            function_options: of the function, such as ``{"format": "yyyy-MM-dd"}``; of bloom filters ``numentries``,
                ``fpp``, ``filtertype`` and ``maxentries``.
            options: numbers of file groups, ``hoodie.metadata.record.level.index.enable`` for a record index whose
                keys are unique in their partition, ``hoodie.expression.index.type=bloom_filters`` for an expression
                index of bloom filters, locks.
            spark: a Spark session: its tasks read the table and write the index. Without, threads of this process do.
            plan: execute this plan; leave out ``kind`` and the arguments that describe an index.

        Raises:
            CommitConflictError: ``plan`` is no longer pending, or another process builds an index.
            CommitError: it failed; the table is as before.
            ConfigError: the table cannot have that index.
            InvalidDataError: the table's rows cannot be indexed, such as two rows with one key.
            UnsupportedFeatureError: the form of the index is not supported.
        """
        check_plan(plan, ScheduledIndex)
        session = self._session(options, spark)
        if plan is not None:
            return run_scheduled_index(session, plan)
        return build_index(session, _request(kind, columns, name, function, function_options))

    def plan_index(
        self,
        kind: str,
        columns: Sequence[str] = (),
        name: str | None = None,
        function: str | None = None,
        function_options: Mapping[str, str] | None = None,
        options: Options | None = None,
    ) -> ScheduledIndex | None:
        """Put an indexing plan on the timeline; arguments and errors as for :meth:`index`.

        Returns:
            The plan, to inspect or to pass to :meth:`index`; None when the index exists.
        """
        request = _request(kind, columns, name, function, function_options)
        return schedule_index(self._session(options), request)

    def drop_index(self, name: str, options: Options | None = None) -> tuple[str, ...]:
        """Drop an index; returns the dropped partitions of the metadata table.

        Dropping ``column_stats`` drops ``partition_stats``; dropping ``files`` drops all. A later write whose options
        ask for the index builds it again.

        Args:
            name: ``column_stats``, ``record_index`` ..., or the name of a secondary or expression index.
            options: locks.

        Raises:
            ConfigError: there is no such index, or another index requires it.
        """
        return drop_index(self._session(options), name)

    def indexes(self) -> pa.Table:
        """One row per partition of the metadata table, including partitions that are planned or being built."""
        return indexes_table(open_state(self._storage))

    def pending_indexes(self) -> list[ScheduledIndex]:
        """Pending indexings, oldest first."""
        return scheduled_indexes(open_state(self._storage))


def _request(
    kind: str,
    columns: Sequence[str],
    name: str | None,
    function: str | None,
    function_options: Mapping[str, str] | None,
) -> IndexRequest:
    named = (columns,) if isinstance(columns, str) else tuple(columns)
    return IndexRequest(kind, named, name, function, dict(function_options or {}))
