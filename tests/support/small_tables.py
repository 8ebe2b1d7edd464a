"""Small tables for tests of the local engine, and what must be true of a table whenever no write is under way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import hudi_fast as hf
from hudi_fast.storage.base import FileStat, Storage
from hudi_fast.timeline.archive.timeline import ArchivedTimeline
from hudi_fast.timeline.commit_metadata import decode_commit_metadata
from hudi_fast.timeline.instants import WRITE_ACTIONS, read_instant_body
from hudi_fast.timeline.plans import decode_clean_metadata
from hudi_fast.view.file_names import parse_log_file
from hudi_fast.view.table_state import TableState, commits_newest_first, load_state
from hudi_fast.writing.flow import WriteResult
from hudi_fast.writing.local import LocalEngine
from tests.support.sessions import write_engine

__all__ = [
    "OPTIONS",
    "assert_tidy",
    "listing",
    "options",
    "plain_rows",
    "rows_of",
    "table_rows",
    "write_to",
]

META = ["_hoodie_file_name", "_hoodie_partition_path", "_hoodie_commit_time"]

OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.index.bloom.num_entries": "100",  # small filters: small files
    "hudi_fast.threads": "1",
}


def options(**changes: Any) -> dict[str, Any]:
    """:data:`OPTIONS` with changes; ``table_version="6"`` stands for ``hoodie.write.table.version``, and so on."""
    names = {
        "operation": "hoodie.datasource.write.operation",
        "table_version": "hoodie.write.table.version",
        "key": "hoodie.datasource.write.recordkey.field",
        "partition": "hoodie.datasource.write.partitionpath.field",
        "ordering": "hoodie.datasource.write.precombine.field",
        "index": "hoodie.index.type",
    }
    merged: dict[str, Any] = dict(OPTIONS)
    for name, value in changes.items():
        key = names[name]
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = value
    return merged


def plain_rows(numbers: Iterable[int], ts: int = 1, text: str = "a", partitions: int = 2) -> pa.Table:
    """Rows ``id``, ``part``, ``ts``, ``text``: one for each number."""
    each = list(numbers)
    return pa.table(
        {
            "id": pa.array([f"k{number:05d}" for number in each], pa.string()),
            "part": pa.array([f"p{number % partitions}" for number in each], pa.string()),
            "ts": pa.array([ts] * len(each), pa.int64()),
            "text": pa.array([f"{text}{number}" for number in each], pa.string()),
        }
    )


def rows_of(table: pa.Table) -> dict[str, tuple[Any, ...]]:
    """Key to the other data values; fails if a key is there twice."""
    data = table.select([name for name in table.column_names if not name.startswith("_hoodie_")])
    listed = data.to_pylist()
    found = {row["id"]: tuple(row[name] for name in row if name != "id") for row in listed}
    assert len(found) == len(listed), "a key is there twice"
    return found


def table_rows(path: str | Path) -> dict[str, tuple[Any, ...]]:
    """:func:`rows_of` what a snapshot reads."""
    return rows_of(hf.HudiTable.open(path).to_arrow())


def write_to(storage: Storage, rows: pa.Table, settings: Mapping[str, Any], mode: str = "append") -> WriteResult:
    """``hf.write`` through a storage of the test's own."""
    return write_engine(LocalEngine(rows), storage, settings, mode)


def listing(path: str | Path) -> dict[str, int]:
    """Every file below a folder with its size, but for the lock; empty when there is no folder."""
    base = Path(path)
    files = (each for each in sorted(base.rglob("*")) if each.is_file() and each.parent.name != ".locks")
    return {str(each.relative_to(base)): each.stat().st_size for each in files}


def assert_tidy(path: str | Path | Storage) -> None:
    """No pending instants, no markers, no data file that no commit names, none missing, meta columns that agree.

    Commits may be archived, and files cleaned.
    """
    storage = path if isinstance(path, Storage) else Storage(path)
    state = load_state(storage)
    assert [str(instant) for instant in state.timeline.pending()] == []
    assert [entry.path for entry in storage.list_dir(".hoodie/.temp", recursive=True)] == []
    named = _named_files(state)
    present = {entry.path for entry in storage.list_dir("", recursive=True) if _is_data(entry.path)}
    if state.config.version < 8:  # what a rollback leaves of log files is passed over by readers
        present = {path for path in present if path in named or path.endswith(".cdc") or not _is_log(path)}
    assert present == named
    if state.config.populate_meta_fields:
        _assert_meta_columns(storage, {file for file in present if not _is_log(file)})


def _named_files(state: TableState) -> set[str]:
    """Data files that commits name, those of the archive among them, but for what cleans have deleted."""
    archived = list(ArchivedTimeline(state.storage, state.config).read())
    cleans = [one.metadata for one in archived if one.action == "clean" and one.metadata]
    for instant in state.timeline.of_action("clean"):
        cleans.append(read_instant_body(state.storage, state.config, instant))
    gone = {
        f"{part.partition_path}/{name}".removeprefix("/")
        for body in cleans
        for part in decode_clean_metadata(body).partitions
        for name in part.deleted
    }
    old = [decode_commit_metadata(one.metadata) for one in archived if one.action in WRITE_ACTIONS and one.metadata]
    commits = [*old, *(commit for _, commit in commits_newest_first(state))]
    stats = [stat for commit in commits for stat in commit.write_stats()]
    return {path for stat in stats for path in (stat.path, *(stat.cdc_stats or ()))} - gone


def _is_data(path: str) -> bool:
    named = path.endswith(".parquet") or _is_log(path)
    return named and not path.startswith(".hoodie/") and ".hoodie_partition" not in path


def _is_log(path: str) -> bool:
    return parse_log_file(FileStat(path, 0, 0, False)) is not None


def _assert_meta_columns(storage: Storage, files: set[str]) -> None:
    for file in files:
        meta = pq.read_table(storage.open_input(file), columns=META)
        folder, _, name = file.rpartition("/")
        assert set(meta.column(0).to_pylist()) <= {name}
        assert set(meta.column(1).to_pylist()) <= {folder}
        instant = name.rpartition("_")[2].removesuffix(".parquet")
        assert all(time <= instant for time in meta.column(2).to_pylist())
