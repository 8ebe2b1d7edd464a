"""What must be true of a table's metadata table whenever no write is under way: it tells what the folders hold."""

from __future__ import annotations

import warnings
from pathlib import Path

import pyarrow.parquet as pq

import hudi_fast as hf
from hudi_fast.metadata_table.read import scan
from hudi_fast.metadata_table.state import MetadataLister
from hudi_fast.metadata_table.table import open_metadata
from hudi_fast.storage.base import FileStat, Storage
from hudi_fast.view.file_names import LogFile, parse_base_file, parse_log_file
from hudi_fast.view.listing import StorageLister
from hudi_fast.view.table_state import TableState, load_state

__all__ = ["assert_metadata_true"]


def assert_metadata_true(path: str | Path, locations: bool = True) -> tuple[str, ...]:
    """Files, statistics and record locations agree with the table; the partitions, none for no metadata table."""
    storage = Storage(path)
    state = load_state(storage)
    if not state.config.metadata_partitions:
        assert not storage.exists(".hoodie/metadata")
        return ()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = open_metadata(storage, state.config, state.timeline)
    assert table is not None
    assert not table.timeline.pending()
    lister, folders = MetadataLister(table), StorageLister(storage)
    # What was undone, or never done, leaves folders of partitions without files.
    assert set(lister.partitions()) <= set(folders.partitions())
    names: set[str] = set()
    for partition in folders.partitions():
        told = {entry.name: entry.size for entry in lister.files(partition)}
        assert told == {one.name: one.size for one in folders.files(partition) if _counts(state, one)}, partition
        names |= {entry.path for entry in lister.files(partition)}
    if "column_stats" in table.partitions:
        told_of = set(scan(table, "column_stats")["file_name"].to_pylist())
        missing = {name for name in names if name.rpartition("/")[2] not in told_of}
        # Of files without rows Apache Hudi keeps no statistics, nor of log files that a rollback left.
        bases = [name for name in missing if name.endswith(".parquet")]
        assert not [name for name in bases if pq.read_metadata(Path(path) / name).num_rows]
        assert len(bases) == len(missing) or state.config.version < 8
        assert told_of <= {name.rpartition("/")[2] for name in names}
    if locations and "record_index" in table.partitions:
        located = scan(table, "record_index").to_pylist()
        rows = hf.HudiTable.open(path).to_arrow(
            columns=["_hoodie_record_key", "_hoodie_partition_path", "_hoodie_file_name"]
        )
        stored = {
            (row["_hoodie_record_key"], row["_hoodie_partition_path"], row["_hoodie_file_name"].partition("_")[0])
            for row in rows.to_pylist()
        }
        assert {(one["key"], one["partition"], one["file_id"]) for one in located} == stored
    return table.partitions


def _counts(state: TableState, entry: FileStat) -> bool:
    """Whether a file belongs to a complete write; before version 8 names of log files do not tell.

    An empty log file, of a writer that ended before it wrote a block, is not listed.
    """
    named = parse_base_file(entry) or parse_log_file(entry)
    if isinstance(named, LogFile) and not entry.size:
        return False
    if named is None or state.timeline.is_completed_or_archived(named.instant):
        return named is not None
    planned = {one.requested for one in state.timeline.pending_compactions}
    return state.config.version < 8 and isinstance(named, LogFile) and named.instant in planned
