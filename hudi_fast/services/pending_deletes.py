"""Files that are about to go: a plan that named them could never be carried out.

::

    pending rollbacks          ─► the files that their plans delete
    before table version 8     ─► log files on top of what was taken back, while writes are pending: one that had begun
                                  before that left them, and its rollback is going to delete them

Under the table's lock nobody is at a rollback; but one whose process died a moment ago is left alone until its signs of
life have ceased. (Apache Hudi plans with such files.)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from hudi_fast.view.slices import FileSlice
from hudi_fast.view.table_state import TableState
from hudi_fast.writing.rollback import relative_path
from hudi_fast.writing.rollback_plan import pending_rollbacks, taken_back

__all__ = ["PendingDeletes"]


@dataclass(frozen=True)
class PendingDeletes:
    """What is about to go from a table; it is looked up when the first slice is asked for.

    Attributes:
        state: the table, under its lock.
    """

    state: TableState = field(repr=False)

    def has(self, slice_: FileSlice) -> bool:
        """Whether a file of the slice is about to go.

        Args:
            slice_: a newest slice of the state.

        Raises:
            CorruptTableError: the plan of a rollback names files outside the table.
        """
        if any(file.path in self._files for file in slice_.files):
            return True
        return slice_.base_file is None and self._rests_on_nothing(slice_.base_instant)

    def _rests_on_nothing(self, begin: str) -> bool:
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
