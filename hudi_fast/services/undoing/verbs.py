"""``HudiTable.services``: rollback, savepoints and restore."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from hudi_fast.services.undoing.values import (
    PlannedRestore,
    PlannedRollback,
    RestoreResult,
    RollbackResult,
    SavepointResult,
)
from hudi_fast.services.verbs import Options, ServiceVerbs

__all__ = ["UndoVerbs"]


class UndoVerbs(ServiceVerbs):
    """Rollback, savepoints and restore."""

    def plan_rollback(self, instant: str | None = None, options: Options | None = None) -> PlannedRollback:
        """What :meth:`rollback` would do; nothing is written."""
        raise NotImplementedError

    def rollback(
        self,
        instant: str | None = None,
        options: Options | None = None,
        spark: Any = None,
        plan: PlannedRollback | None = None,
    ) -> RollbackResult:
        """Undo an instant."""
        raise NotImplementedError

    def savepoint(
        self, instant: str | None = None, user: str = "", comment: str = "", options: Options | None = None
    ) -> SavepointResult:
        """Keep the files of a commit."""
        raise NotImplementedError

    def delete_savepoint(self, instant: str, options: Options | None = None) -> None:
        """Let the cleaner have the files of a savepoint again."""
        raise NotImplementedError

    def savepoints(self) -> pa.Table:
        """The table's savepoints."""
        raise NotImplementedError

    def plan_restore(self, savepoint: str, options: Options | None = None) -> PlannedRestore:
        """What :meth:`restore` would do; nothing is written."""
        raise NotImplementedError

    def restore(
        self,
        savepoint: str,
        options: Options | None = None,
        spark: Any = None,
        plan: PlannedRestore | None = None,
    ) -> RestoreResult:
        """Take the table back to a savepoint."""
        raise NotImplementedError
