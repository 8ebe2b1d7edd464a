"""The work of a clustering without its timeline: what rewrites groups can be tested on its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_fast.metadata_table.state import open_state
from hudi_fast.services.clustering.cluster_work import ClusteringWork, Ordering
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.commit_metadata import WriteStat
from hudi_fast.timeline.service_plans import ClusteringGroup, ClusteringSlice
from hudi_fast.view.slices import FileSlice, latest_slices
from hudi_fast.writing.draft import draft_files
from hudi_fast.writing.markers import make_marker_folder
from hudi_fast.writing.settings import Settings

__all__ = ["INSTANT", "work_of", "written"]

INSTANT = "29990101000000000"


@dataclass(frozen=True, kw_only=True)
class GroupedWork(ClusteringWork):
    """A clustering and its groups."""

    groups: tuple[ClusteringGroup, ...] = ()


def work_of(
    path: Path,
    settings: dict[str, Any],
    ordering: Ordering | None = None,
    *,
    outputs: int = 1,
    target: int = 1 << 30,
    measured: Sequence[str] = (),
) -> GroupedWork:
    """A clustering of every partition of a table: one group each, with all its slices."""
    storage = Storage(path)
    state = open_state(storage)
    plan = draft_files(state, Settings.from_options(settings).write)
    plan = replace(plan, instant=INSTANT, files=replace(plan.files, stats_columns=tuple(measured)))
    groups = [
        ClusteringGroup(tuple(_planned(storage, one) for one in latest_slices(state.view, partition)), outputs)
        for partition in state.view.lister.partitions()
    ]
    make_marker_folder(storage, INSTANT)
    return GroupedWork(
        plan=plan,
        merge=plan.merge_of(state),
        group_count=len(groups),
        ordering=ordering or Ordering(),
        target_bytes=target,
        groups=tuple(groups),
    )


def written(path: Path, stats: Sequence[WriteStat]) -> list[pa.Table]:
    """The rows of each new file."""
    return [pq.read_table(path / stat.path, partitioning=None) for stat in stats]


def _planned(storage: Storage, one: FileSlice) -> ClusteringSlice:
    base = "" if one.base_file is None else storage.absolute(one.base_file.path)
    logs = tuple(storage.absolute(log.path) for log in one.log_files)
    return ClusteringSlice(one.partition, one.file_id, base, logs)
