"""``HudiTable.services``: rollback, savepoints and restore."""

from __future__ import annotations

from typing import Any

from hudi_fast.errors import UnsupportedFeatureError
from hudi_fast.services.verbs import Options, ServiceVerbs

__all__ = ["UndoVerbs"]


class UndoVerbs(ServiceVerbs):
    """Rollback, savepoints and restore."""

    def rollback(self, instant: str, options: Options | None = None, spark: Any = None) -> None:
        """Not supported yet."""
        raise UnsupportedFeatureError("Rolling back a completed commit is not supported yet. Use Apache Hudi for it.")

    def savepoint(self, instant: str | None = None, options: Options | None = None, spark: Any = None) -> None:
        """Not supported yet."""
        raise UnsupportedFeatureError("Making a savepoint is not supported yet. Use Apache Hudi for it.")

    def restore(self, savepoint: str, options: Options | None = None, spark: Any = None) -> None:
        """Not supported yet."""
        raise UnsupportedFeatureError("Restoring to a savepoint is not supported yet. Use Apache Hudi for it.")
