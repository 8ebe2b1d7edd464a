"""Invalidates log blocks before table version 8, with a command block in a new log file.

::

    slice ─► its log files ─► the next version ─► marker ─► log file with one command block

A repeated rollback finds the files of its earlier attempt by their markers: such a file is complete and valid, and the
metadata table may already list it.

Source: ``RollbackHelperV1`` (Hudi 1.2.0).
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection

from hudi_fast.formats.log.writer import command_block
from hudi_fast.storage.base import Storage
from hudi_fast.storage.relative_path import check_relative
from hudi_fast.view.file_names import LogFile, log_file_name, parse_log_file
from hudi_fast.view.listing import StorageLister
from hudi_fast.writing.markers import create_marker

__all__ = ["take_back"]

_TOKEN = "1-0-1"


def take_back(
    storage: Storage, rollback: str, failed: str, partition: str, slices: set[tuple[str, str]], marked: set[str]
) -> dict[str, int]:
    """Add a command block to slices of a partition.

    Args:
        storage: the table's storage.
        rollback: requested time of the rollback; its marker folder exists.
        failed: requested time of the instant whose blocks are invalidated.
        partition: partition path.
        slices: file id and base instant of each.
        marked: files that the rollback announced before.

    Returns:
        The log files with the command blocks, relative to the table, with their sizes.
    """
    block, logs = command_block(rollback, failed), _logs(storage, partition, slices)
    made = {log.path: log.size for log in logs if log.path in marked}
    answered = {(log.file_id, log.instant) for log in logs if log.path in marked and log.size >= len(block)}
    for file_id, base in sorted(slices - answered):
        version = max((log.version for log in logs if (log.file_id, log.instant) == (file_id, base)), default=0) + 1
        name = log_file_name(file_id, base, version, _TOKEN)
        path = check_relative(f"{partition}/{name}" if partition else name)
        with contextlib.suppress(FileExistsError):  # written by an earlier attempt
            create_marker(storage, rollback, path, "APPEND")
        storage.create_exclusive(path, block)
        made[path] = len(block)
    return made


def _logs(storage: Storage, partition: str, slices: Collection[tuple[str, str]]) -> list[LogFile]:
    found = (parse_log_file(entry) for entry in StorageLister(storage).files(partition))
    wanted = set(slices)
    return [log for log in found if log is not None and (log.file_id, log.instant) in wanted]
