"""A storage whose files cannot all be read and written at the first attempt of a task."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa

from hudi_fast.storage.base import Storage

__all__ = ["ALWAYS", "LOG", "FlakyStorage"]

LOG = "FLAKY_STORAGE_LOG"
"""Environment variable: a folder that gets a file for each failure; storages cross to workers without their fields."""

ALWAYS = "FLAKY_STORAGE_ALWAYS"
"""Environment variable: a file; while it exists, every attempt fails."""


class FlakyStorage(Storage):
    """Refuses to write the second data file of a stage's first task, and to read the first one of its second task.

    Both succeed at the second attempt of the task.
    """

    def open_input(self, path: str, size: int | None = None) -> pa.NativeFile:
        """Fail, or a stream from a file."""
        from pyspark import TaskContext

        task = TaskContext.get()
        if task is not None and task.partitionId() == 1 and task.attemptNumber() == 0 and path.endswith(".parquet"):
            failed = Path(os.environ[LOG]) / f"{task.stageId()}.unread"
            if not failed.exists():
                failed.touch()
                raise OSError(f"SLOW_DOWN during the read of {path}")
        return super().open_input(path, size)

    def open_output(self, path: str) -> pa.NativeFile:
        """Fail, or a stream into a new file."""
        from pyspark import TaskContext

        task = TaskContext.get()
        is_data = path.endswith(".parquet") and ".hoodie_partition" not in path
        if task is not None and task.partitionId() == 0 and is_data:
            always = Path(os.environ[ALWAYS]).exists()
            name = f"{task.stageId()}-{task.attemptNumber()}"
            first = Path(os.environ[LOG]) / f"{name}.first"
            if first.exists() and (always or task.attemptNumber() == 0):
                (Path(os.environ[LOG]) / f"{name}.failed").touch()
                raise OSError(f"no room for {path}")
            first.touch()
        return super().open_output(path)
