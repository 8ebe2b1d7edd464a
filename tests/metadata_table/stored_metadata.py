"""Tables with a metadata table whose commits are made by hand, without data files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from hudi_fast.metadata_table.layout import PartitionKind
from hudi_fast.metadata_table.read import scan
from hudi_fast.metadata_table.records import FILES, encode_records
from hudi_fast.metadata_table.state import metadata_of, open_state
from hudi_fast.metadata_table.table import MetadataTable
from hudi_fast.metadata_table.updates.commit import finish_delta_commit, log_writer, start_delta_commit
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.clock import InstantClock
from hudi_fast.timeline.commit_metadata import CommitMetadata, encode_commit_metadata
from hudi_fast.timeline.instants import Instant, State
from hudi_fast.timeline.transition import complete, create_requested, to_inflight
from hudi_fast.view.table_state import TableState


def state_of(path: Path) -> TableState:
    for sidecar in path.rglob("*.crc"):
        sidecar.unlink()
    return open_state(Storage(path))


def metadata_at(path: Path) -> MetadataTable:
    table = metadata_of(state_of(path))
    assert table is not None
    return table


def clock_of(state: TableState) -> InstantClock:
    return InstantClock(state.config.timezone)


def records(path: Path) -> dict[str, list[str]]:
    """All live records of every partition, as sorted text."""
    table = metadata_at(path)
    return {name: sorted(map(str, scan(table, name).to_pylist())) for name in table.partitions}


def live_files(path: Path, partition: str) -> dict[str, int]:
    rows = scan(metadata_at(path), "files").to_pylist()
    return {row["name"]: row["size"] for row in rows if row["key"] == partition}


def begin_data(path: Path) -> str:
    """A write of the data table that is inflight; its requested time."""
    state = state_of(path)
    action = "deltacommit" if state.config.is_mor else "commit"
    instant = Instant(clock_of(state).next_time(state.timeline.newest_time), action, State.REQUESTED)
    create_requested(state.storage, state.config, instant)
    body = encode_commit_metadata(CommitMetadata(operation_type="UPSERT"), state.config.layout_version)
    to_inflight(state.storage, state.config, instant, body)
    return instant.requested


def complete_data(path: Path, requested: str) -> None:
    state = state_of(path)
    action = "deltacommit" if state.config.is_mor else "commit"
    body = encode_commit_metadata(CommitMetadata(operation_type="UPSERT"), state.config.layout_version)
    complete(
        state.storage,
        state.config,
        Instant(requested, action, State.INFLIGHT),
        body,
        lambda: clock_of(state).next_time(state.timeline.newest_time),
    )


def files_table(rows: list[tuple[str, str, int, bool]]) -> pa.Table:
    columns: dict[str, list[Any]] = {
        "key": [row[0] for row in rows],
        "type": [2] * len(rows),
        "name": [row[1] for row in rows],
        "size": [row[2] for row in rows],
        "deleted": [row[3] for row in rows],
    }
    return pa.Table.from_pydict(columns, schema=FILES)


def log_files(path: Path, instant: str, rows: list[tuple[str, str, int, bool]], finish: bool = True) -> None:
    """A delta commit of the metadata table: (partition, name, size, deleted) into ``files``."""
    state = state_of(path)
    table = metadata_of(state)
    assert table is not None
    start_delta_commit(table.storage, table.config, instant)
    writer = log_writer(table, instant, ["files"])
    stat = writer.write("files", 0, [encode_records(PartitionKind.FILES, files_table(rows), writer.schema)])
    if finish:
        clock = clock_of(state)
        finish_delta_commit(table.storage, table.config, instant, [stat], writer.schema, "UPSERT_PREPPED", clock)


def commit_files(path: Path, rows: list[tuple[str, str, int, bool]]) -> str:
    """A whole write of the data table as far as the two timelines and ``files`` show it."""
    instant = begin_data(path)
    log_files(path, instant, rows)
    complete_data(path, instant)
    return instant
