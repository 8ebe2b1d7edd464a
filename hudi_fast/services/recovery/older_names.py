"""Refuses to make file slices from before a downgrade to version 6 the newest ones again.

From table version 8 on a log file is named after the delta commit that wrote it, before that after its slice. A
downgrade compacts the newest slices and does not change older ones. Nothing reads older slices, unless a rollback or
restore undoes the compaction or the action that ended their file groups. Readers of version 6 would then take such a
log file for a slice of its own, and lose the rows of the base file below it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hudi_fast.errors import ConfigError
from hudi_fast.timeline.instant import Instant
from hudi_fast.view.file_names import LOGS_NAMED_BY_WRITE, parse_base_file, parse_log_file
from hudi_fast.view.listing import StorageLister
from hudi_fast.view.table_state import TableState, read_commit

__all__ = ["require_named_by_slice"]


def require_named_by_slice(state: TableState, undone: Iterable[Instant], what: str) -> None:
    """Refuse to undo instants if older slices whose log files have names of a later table version would be read again.

    Args:
        state: the table.
        undone: the instants to undo.
        what: beginning of the message.

    Raises:
        ConfigError: such slices exist.
    """
    if state.config.version >= LOGS_NAMED_BY_WRITE or not state.config.is_mor:
        return
    by_partition: dict[str, set[str]] = {}
    for instant in undone:
        if instant.is_completed:
            for partition, file_id in _uncovered(state, instant):
                by_partition.setdefault(partition, set()).add(file_id)
    for partition, file_ids in by_partition.items():
        for path in _named_by_write(state, partition, file_ids):
            raise ConfigError(
                f"{what}: the table was downgraded to version {state.config.version} since, which cannot read older "
                f"log files such as {path}. Upgrade the table to version {LOGS_NAMED_BY_WRITE} or later first."
            )


def _uncovered(state: TableState, instant: Instant) -> Iterator[tuple[str, str]]:
    """Partition and file id of the groups that have an older slice, or that an action ended."""
    commit = read_commit(state.storage, state.config, instant)
    if commit.operation_type == "COMPACT":
        yield from ((stat.partition_path, stat.file_id) for stat in commit.write_stats())
    for partition, file_ids in (commit.partition_to_replace_file_ids or {}).items():
        yield from ((partition, file_id) for file_id in file_ids)


def _named_by_write(state: TableState, partition: str, file_ids: set[str]) -> Iterator[str]:
    """Log files above a base file that are not named after a slice."""
    entries = StorageLister(state.storage).files(partition)
    begins: dict[str, set[str]] = {}
    for base in map(parse_base_file, entries):
        if base is not None and base.file_id in file_ids:
            begins.setdefault(base.file_id, set()).add(base.instant)
    planned = {one.requested for one in state.timeline.pending_compactions}
    for log in map(parse_log_file, entries):
        slices = set() if log is None else begins.get(log.file_id, set())
        if log is not None and slices and log.instant > min(slices) and log.instant not in slices | planned:
            yield log.path
