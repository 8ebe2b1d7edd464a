"""Files that pending rollbacks will delete. A plan that named them could never be executed.

::

    pending rollbacks          ─► the files that their plans delete
    before table version 8     ─► log files on top of a rolled back slice, while writes are pending: a write that
                                  is still pending made them, and its rollback will delete them

No rollback runs under the table's lock, but an abandoned one stays pending until its heartbeat expires. Apache Hudi
includes such files in plans.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from hudi_fast.view.named_files import relative_path
from hudi_fast.view.slices import FileSlice
from hudi_fast.view.table_state import TableState
from hudi_fast.writing.rollback_plan import pending_rollbacks, taken_back

__all__ = ["PendingDeletes"]


@dataclass(frozen=True)
class PendingDeletes:
    """The files of a table that pending rollbacks will delete, computed on first use.

    Attributes:
        state: the table, under its lock.
    """

    state: TableState = field(repr=False)

    def has(self, slice_: FileSlice) -> bool:
        """Whether a pending rollback will delete a file of the slice.

        Args:
            slice_: a newest slice of the state.

        Raises:
            CorruptTableError: the plan of a rollback names files outside the table.
        """
        if any(file.path in self._files for file in slice_.files):
            return True
        return slice_.base_file is None and self._has_no_base(slice_.base_instant)

    def _has_no_base(self, begin: str) -> bool:
        timeline = self.state.timeline
        if self.state.config.layout_version > 1 or not timeline.pending_writes or timeline.find(begin) is not None:
            return False
        return begin in self._taken_back

    @cached_property
    def _files(self) -> frozenset[str]:
        storage = self.state.storage
        plans = pending_rollbacks(storage, self.state.config, self.state.timeline)
        requests = (one for _, plan in plans for one in plan.requests)
        return frozenset(relative_path(storage, path) for one in requests for path in one.files_to_be_deleted)

    @cached_property
    def _taken_back(self) -> set[str]:
        return taken_back(self.state.storage, self.state.config, self.state.timeline)
