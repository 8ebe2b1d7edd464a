"""Taking log blocks back before table version 8: a command block in a log file of its own says to pass over them.

::

    slice ─► its log files ─► the next version ─► marker ─► log file with one command block

A rollback that is carried out again finds by their markers what it made before: such a file is whole, it does, and the
metadata table may list it already.

Source: ``RollbackHelperV1`` (Hudi 1.2.0).
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection

from hudi_fast.formats.log.writer import command_block
from hudi_fast.storage.base import Storage, check_relative
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
        rollback: requested time of the rollback; its marker folder is there.
        failed: requested time of the instant whose blocks are passed over from now on.
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
        with contextlib.suppress(FileExistsError):  # an earlier attempt came as far as that
            create_marker(storage, rollback, path, "APPEND")
        storage.create_exclusive(path, block)
        made[path] = len(block)
    return made


def _logs(storage: Storage, partition: str, slices: Collection[tuple[str, str]]) -> list[LogFile]:
    found = (parse_log_file(entry) for entry in StorageLister(storage).files(partition))
    wanted = set(slices)
    return [log for log in found if log is not None and (log.file_id, log.instant) in wanted]
