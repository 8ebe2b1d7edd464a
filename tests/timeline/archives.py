"""Archives for tests: made-up instants, archives that Apache Hudi made, and what is read of them."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from hudi_fast.config.properties_file import load_properties
from hudi_fast.config.table_config import TableConfig
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.archive.timeline import ArchivedInstant, ArchivedTimeline
from hudi_fast.timeline.commit_metadata import CommitMetadata, WriteStat, encode_commit_metadata
from hudi_fast.timeline.plans import CleanMetadata, CleanPlan, encode_clean_metadata, encode_clean_plan
from tests.support.instrumented_storage import RecordingStorage

__all__ = ["archive_of", "config_of", "made_up", "new_archive", "opened", "time_of"]

PROPERTIES = {
    "hoodie.table.name": "t",
    "hoodie.table.type": "COPY_ON_WRITE",
    "hoodie.archivelog.folder": "archived",
}


def config_of(storage: Storage) -> TableConfig:
    return TableConfig.from_properties(load_properties(storage), storage.uri)


def archive_of(path: Path) -> ArchivedTimeline:
    """The archive of a stored table, which notes what is read."""
    storage = RecordingStorage(path)
    return ArchivedTimeline(storage, config_of(storage))


def new_archive(path: Path, layout: int) -> ArchivedTimeline:
    """The archive of a table that has nothing else."""
    version = "6" if layout == 1 else "9"
    return ArchivedTimeline(
        RecordingStorage(path), TableConfig.from_properties({**PROPERTIES, "hoodie.table.version": version}, str(path))
    )


def opened(archive: ArchivedTimeline) -> list[str]:
    """Names of the files that were opened since the last time."""
    storage = archive.storage
    assert isinstance(storage, RecordingStorage)
    names = [call.path.rpartition("/")[2] for call in storage.calls if call.name in ("open_input", "read_bytes")]
    storage.calls.clear()
    return names


def time_of(number: int) -> str:
    return f"2026{number:013d}"


def made_up(number: int, layout: int, action: str = "commit", **changes: Any) -> ArchivedInstant:
    """A complete instant; its bodies say which it is."""
    requested = time_of(10 * number)
    row = ArchivedInstant(requested, time_of(10 * number + 5), action)
    if action == "clean":
        plan = CleanPlan("KEEP_LATEST_COMMITS", requested, files={"p": (f"/t/p/{number}",)})
        row = dataclasses.replace(
            row, metadata=encode_clean_metadata(CleanMetadata(requested, requested)), plan=encode_clean_plan(plan)
        )
    else:
        replaced = {"p": [f"g{number}"]} if action == "replacecommit" else None
        stat = WriteStat(file_id=f"f{number}", path=f"p/f{number}", partition_path="p", num_writes=number)
        metadata = CommitMetadata({"p": [stat]}, {"schema": "{}"}, "UPSERT", partition_to_replace_file_ids=replaced)
        row = dataclasses.replace(row, metadata=encode_commit_metadata(metadata, layout, action == "replacecommit"))
    if layout == 1:
        row = dataclasses.replace(row, requested_at=time_of(10 * number + 1), inflight_at=time_of(10 * number + 2))
    return dataclasses.replace(row, **changes)
