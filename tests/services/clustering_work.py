"""The work of a clustering without its timeline: what rewrites groups can be tested on its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_fast.metadata_table.state import open_state
from hudi_fast.services.clustering.work import ClusteringWork, Ordering
from hudi_fast.writing.settings import Settings
from hudi_fast.services.work_plan import service_merge, service_plan
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.commit_metadata import WriteStat
from hudi_fast.timeline.service_plans import ClusteringGroup, ClusteringSlice
from hudi_fast.view.slices import FileSlice, latest_slices
from hudi_fast.writing.markers import make_marker_folder

__all__ = ["INSTANT", "work_of", "written"]

INSTANT = "29990101000000000"


def work_of(
    path: Path,
    settings: dict[str, Any],
    ordering: Ordering | None = None,
    *,
    outputs: int = 1,
    target: int = 1 << 30,
    measured: Sequence[str] = (),
) -> ClusteringWork:
    """A clustering of every partition of a table: one group each, with all its slices."""
    storage = Storage(path)
    state = open_state(storage)
    plan = service_plan(state, Settings.from_options(settings))
    plan = replace(plan, instant=INSTANT, stats_columns=tuple(measured))
    groups = [
        ClusteringGroup(tuple(_planned(storage, one) for one in latest_slices(state.view, partition)), outputs)
        for partition in state.view.lister.partitions()
    ]
    make_marker_folder(storage, INSTANT)
    merge = service_merge(state, plan)
    return ClusteringWork(plan, merge, tuple(groups), ordering or Ordering(), target)


def written(path: Path, stats: Sequence[WriteStat]) -> list[pa.Table]:
    """The rows of each new file."""
    return [pq.read_table(path / stat.path, partitioning=None) for stat in stats]


def _planned(storage: Storage, one: FileSlice) -> ClusteringSlice:
    base = "" if one.base_file is None else storage.absolute(one.base_file.path)
    logs = tuple(storage.absolute(log.path) for log in one.log_files)
    return ClusteringSlice(one.partition, one.file_id, base, logs)
