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
        spark: Any = None,
        plan: ScheduledIndex | None = None,
    ) -> IndexResult:
        """Build an index, and the indexes that it rests on, while the table goes on being read and written.

        Nothing happens when the index is there. On a table without a metadata table that is made first. A plan for the
        index that waits on the timeline is carried out as it was planned.

        Args:
            kind: ``column_stats``, ``partition_stats``, ``bloom_filters``, ``record_index``, ``secondary_index``,
                ``expr_index``, or ``files`` for the metadata table alone.
            columns: those of ``column_stats`` (default: the first 32 that can have statistics), or the one of a
                secondary or expression index.
            name: of a secondary or expression index; default: its column's.
            function: of an expression index: ``lower``, ``year``, ``from_unixtime`` ...
            function_options: of the function, such as ``{"format": "yyyy-MM-dd"}``.
            options: numbers of file groups, ``hoodie.metadata.record.level.index.enable`` for a record index whose
                keys are unique in their partition, locks.
            spark: a Spark session: the table is read and the index written in tasks there. Without, in threads.
            plan: carry out this one; ``kind`` and what describes it stay away.

        Raises:
            CommitConflictError: ``plan`` is no longer pending, or another program builds an index.
            CommitError: it failed; the table is as before.
            ConfigError: the table cannot have that index.
            InvalidDataError: rows that cannot be indexed, such as two with one key.
            UnsupportedFeatureError: the index is of a form that is not supported.
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
        """Put an indexing on the timeline for somebody to carry out; arguments and errors as of :meth:`index`.

        Returns:
            The plan, to look at or to pass to :meth:`index`; None when the index is there.
        """
        request = _request(kind, columns, name, function, function_options)
        return schedule_index(self._session(options), request)

    def drop_index(self, name: str, options: Options | None = None) -> tuple[str, ...]:
        """Take an index away; the partitions of the metadata table that are gone.

        ``partition_stats`` goes with ``column_stats``, all with ``files``. A later write whose options ask for the
        index makes it again.

        Args:
            name: ``column_stats``, ``record_index`` ..., or the name of a secondary or expression index.
            options: locks.

        Raises:
            ConfigError: there is no such index, or another one rests on it.
        """
        return drop_index(self._session(options), name)

    def indexes(self) -> pa.Table:
        """One row per partition of the metadata table, those that are planned or being built among them."""
        return indexes_table(open_state(self._storage))

    def pending_indexes(self) -> list[ScheduledIndex]:
        """Indexings that wait on the timeline, oldest first."""
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
