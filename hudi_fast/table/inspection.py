"""``HudiTable``: what happened to a table, and which files it has."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hudi_fast.config.properties_file import load_properties
from hudi_fast.config.table_config import TableConfig
from hudi_fast.storage.failures import tells_failures
from hudi_fast.table.reads import TableReads

if TYPE_CHECKING:
    import pyarrow as pa

    from hudi_fast.config.moments import Moment
    from hudi_fast.config.option_names import SnapshotType
    from hudi_fast.reading.scan import Filter

__all__ = ["TableInspection"]


@tells_failures
class TableInspection(TableReads):
    """History, files, statistics and data skipping of a table, as Arrow tables."""

    @property
    def config(self) -> TableConfig:
        """``hoodie.properties``, typed."""
        return TableConfig.from_properties(load_properties(self._storage), self._storage.uri)

    def history(self, begin: Moment | None = None, end: Moment | None = None, archived: bool = False) -> pa.Table:
        """One row per instant of the timeline, newest last: times, action, duration, sizes.

        Args:
            begin: smallest requested time, in any form that :meth:`to_arrow` takes for ``as_of``; None for no bound.
            end: largest requested time.
            archived: include the archived timeline.

        Raises:
            ConfigError: invalid time.
            CorruptTableError: the archived timeline cannot be read.

        Example:
            >>> table.history().column("action").to_pylist()
            ['commit', 'commit']
        """
        from hudi_fast.config.moments import normalise_instant
        from hudi_fast.reading.inspecting.history import history_table
        from hudi_fast.timeline.instants import load_timeline

        config = self.config
        first, last = (
            None if time is None else normalise_instant(time, key, lambda: config.timezone)
            for key, time in (("begin", begin), ("end", end))
        )
        return history_table(self._storage, config, load_timeline(self._storage, config), first, last, archived)

    def plot(
        self,
        file: str | os.PathLike[str],
        begin: Moment | None = None,
        end: Moment | None = None,
        archived: bool = False,
    ) -> None:
        """Draw the instants of the timeline and the sizes of the files; needs the extra ``plot``.

        Args:
            file: the picture: a ``.png``, ``.svg`` or ``.pdf`` file.
            begin: as for :meth:`history`.
            end: as for :meth:`history`.
            archived: as for :meth:`history`.

        Raises:
            ConfigError: the file has another ending, or the extra ``plot`` is not installed.
        """
        from hudi_fast.reading.inspecting.plot import draw_history, require_picture

        place, config = os.fspath(file), self.config
        require_picture(place)
        draw_history(place, config.name, self.history(begin, end, archived), self.files(), config.timezone)

    def files(self, filter: Filter | None = None) -> pa.Table:
        """One row per file slice that a snapshot query with this filter reads."""
        from hudi_fast.metadata_table.state import open_state
        from hudi_fast.reading.inspecting.contents import files_table

        if filter is None:
            return files_table(open_state(self._storage))
        plan = self._plan([], filter, None, "snapshot")
        return files_table(plan.state, plan.slices)

    def explain(
        self, filter: Filter | None = None, as_of: Moment | None = None, query_type: SnapshotType = "snapshot"
    ) -> pa.Table:
        """Explain data skipping: one row per step, with the file counts before and after it.

        The steps are partition pruning and each consulted index of the metadata table; the last row, ``read``,
        shows what :meth:`to_arrow` reads with these arguments. ``note`` explains why an index did not help.

        Example:
            >>> table.explain("fare > 100").select(["index", "before", "after"]).to_pylist()[0]
            {'index': 'column_stats', 'before': 1, 'after': 0}
        """
        from hudi_fast.reading.inspecting.contents import explain_table

        return explain_table(self._plan([], filter, as_of, query_type))

    def partitions(self) -> pa.Table:
        """One row per partition: files, rows, bytes of base and log files, small files."""
        from hudi_fast.metadata_table.state import open_state
        from hudi_fast.reading.inspecting.contents import partitions_table

        return partitions_table(open_state(self._storage))

    def stats(self) -> pa.Table:
        """One row: sizes, obsolete files, pending services, and the latest time of each service.

        The last column lists the partitions of the metadata table.
        """
        from hudi_fast.metadata_table.state import open_state
        from hudi_fast.reading.inspecting.contents import stats_table

        return stats_table(open_state(self._storage))
