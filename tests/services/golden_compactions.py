"""Golden tables put back to the moment before one of real Hudi's compactions, with what real Hudi made of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import hudi_fast as hf
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.commit_metadata import CommitMetadata
from hudi_fast.timeline.service_plans import CompactionPlan, decode_compaction_plan
from hudi_fast.view.table_state import load_state, read_commit
from tests.support.golden import Golden

__all__ = ["Before", "before_compaction", "logical_stats", "rows_of_files"]

DIFFERS = frozenset({"path", "total_write_bytes", "file_size", "runtime_stats", "total_log_read_time_ms", "log_files"})
"""Members of a write stat that no two runs share: names, encoded sizes, times."""


@dataclass(frozen=True)
class Before:
    """A table as it was before a compaction or log compaction.

    Attributes:
        table: it.
        plan: what real Hudi then planned.
        commit: what real Hudi then did.
        rows: of the files that it wrote, without the column of their names.
    """

    table: hf.HudiTable
    plan: CompactionPlan
    commit: CommitMetadata
    rows: pa.Table


def before_compaction(golden: Golden, number: int, operation: str = "COMPACT") -> Before:
    """Take back the ``number``-th instant of that operation and all that came after it."""
    storage = Storage(golden.table)
    state = load_state(storage)
    commits = [(instant, read_commit(storage, state.config, instant)) for instant in state.timeline.writes()]
    instant, commit = [one for one in commits if one[1].operation_type == operation][number]
    rows = rows_of_files(golden.table, commit) if operation == "COMPACT" else pa.table({})
    plan = b""
    for file in (golden.table / state.config.timeline_folder).iterdir():
        if file.is_file() and file.name[:1].isdigit() and file.name[:17] >= instant.requested:
            if file.name.startswith(instant.requested) and file.name.endswith("compaction.requested"):
                plan = file.read_bytes()
            file.unlink()
    for other, later in commits:
        for stat in later.write_stats():
            if other.requested >= instant.requested:
                (golden.table / stat.path).unlink()
    return Before(hf.HudiTable.open(golden.table), decode_compaction_plan(plan), commit, rows)


def logical_stats(commit: CommitMetadata) -> dict[str, dict[str, object]]:
    """By file id: what the stats say, but for members that no two runs share."""
    return {
        stat.file_id: {name: getattr(stat, name) for name in stat.__slots__ if name not in DIFFERS}
        for stat in commit.write_stats()
    }


def rows_of_files(path: Path, commit: CommitMetadata) -> pa.Table:
    """All rows of the base files that a commit wrote, without the column of file names, by key."""
    tables = [pq.read_table(path / stat.path, partitioning=None) for stat in commit.write_stats()]
    rows = pa.concat_tables(tables).replace_schema_metadata(None).drop_columns(["_hoodie_file_name"])
    return rows.sort_by([("_hoodie_partition_path", "ascending"), ("_hoodie_record_key", "ascending")])
