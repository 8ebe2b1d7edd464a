"""Records that a writer with a fault would put into a metadata table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from hudi_fast.metadata_table.read import record_kind
from hudi_fast.metadata_table.records import encode_records, flat_schema
from hudi_fast.metadata_table.state import metadata_of, open_state
from hudi_fast.metadata_table.table import MetadataTable
from hudi_fast.metadata_table.updates.commit import finish_delta_commit, log_writer, start_delta_commit
from hudi_fast.metadata_table.updates.groups import routed
from hudi_fast.metadata_table.updates.produce import EncodedRecords
from hudi_fast.metadata_table.updates.record_bins import combined
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.clock import InstantClock
from hudi_fast.timeline.instants import Instant, State
from hudi_fast.timeline.service_plans import encode_index_metadata
from hudi_fast.timeline.transition import complete, create_requested, to_inflight
from hudi_fast.view.table_state import load_state

__all__ = ["metadata", "plant"]


def metadata(path: Path) -> MetadataTable:
    table = metadata_of(open_state(Storage(path)))
    assert table is not None
    return table


def plant(path: Path, partition: str, rows: list[dict[str, Any]], gone: tuple[str, ...] = ()) -> None:
    """Put records into the metadata table, and delete some keys of it, as a writer with a fault would."""
    table, kind = metadata(path), record_kind(metadata(path), partition)
    clock = InstantClock(table.config.timezone)
    instant = clock.next_time(table.data_timeline.newest_time, table.timeline.newest_time)
    writer = log_writer(table, instant, [partition])
    keys, values = encode_records(kind, pa.Table.from_pylist(rows, flat_schema(kind)), writer.schema)
    keys = pa.concat_arrays([keys, pa.array(gone, pa.string())])
    values = pa.concat_arrays([values, pa.nulls(len(gone), pa.binary())])
    hashed = None
    if table.hashes_secondary_values(partition):
        hashed = pa.array([key.partition("$")[0] + "$" for key in keys.to_pylist()], pa.string())
    start_delta_commit(table.storage, table.config, instant)
    stats = [
        writer.write(partition, group, [combined(partition, found)])
        for group, found in routed(EncodedRecords(partition, keys, values, hashed), writer)
    ]
    finish_delta_commit(table.storage, table.config, instant, stats, writer.schema, "UPSERT_PREPPED", clock)
    state = load_state(Storage(path))  # what the table knows nothing of does not count: an action that wrote nothing
    action = Instant(instant, "indexing", State.REQUESTED)
    create_requested(state.storage, state.config, action)
    to_inflight(state.storage, state.config, action)
    complete(state.storage, state.config, action, encode_index_metadata([]), clock.next_time)
