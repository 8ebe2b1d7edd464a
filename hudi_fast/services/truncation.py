"""Deleting all rows of partitions that are named by their exact paths, in one replace commit."""

from __future__ import annotations

from collections.abc import Sequence

from hudi_fast.errors import ConfigError
from hudi_fast.metadata_table.state import open_state
from hudi_fast.reading.prune import live_partitions
from hudi_fast.services.inline import write_with_services
from hudi_fast.writing.flow import WriteResult, run_write
from hudi_fast.writing.partition_deletion import PartitionDeletion
from hudi_fast.writing.session import TableSession

__all__ = ["truncate_partitions"]


def truncate_partitions(session: TableSession, partitions: Sequence[str]) -> WriteResult:
    """Delete the rows of partitions, then run inline services.

    Args:
        session: of the write, with the settings of a deletion of partitions.
        partitions: exact partition paths.

    Raises:
        ConfigError: a partition does not exist; nothing is deleted.
        CommitConflictError: a pending table service is about to rewrite the rows.
    """
    if isinstance(partitions, str):
        raise ConfigError(f"truncate takes a list of partition paths; got the text {partitions!r}.")
    state = open_state(session.storage)
    unknown = sorted({*partitions} - {*live_partitions(state.view)})
    if unknown:
        raise ConfigError(
            f"The table {session.storage.uri} has no rows in the partitions {unknown}; nothing was deleted."
        )
    engine = PartitionDeletion(state, lambda _: partitions)
    result = write_with_services(session, lambda: run_write(session, engine, "append"))
    assert result is not None
    return result
