"""Why tasks do not read the files of a DataFrame themselves."""

from __future__ import annotations

from hudi_fast.errors import HudiError

__all__ = ["ScanRefusedError"]


class ScanRefusedError(HudiError):
    """Rows that Spark itself has to read, because Arrow might read other values.

    It never reaches the caller of a write: the engine lets Spark read the rows, or raises a ``ConfigError``.

    Args:
        reason: what Arrow may read differently; part of a sentence.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
