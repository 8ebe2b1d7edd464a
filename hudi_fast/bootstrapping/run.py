"""THE BOOTSTRAP, top to bottom: a folder of Parquet files becomes a table.

::

    plan       folder + options ─► BootstrapPlan                                      refuses what it can
    stage      a new table beside its place; the old one, if there is one, is locked
    keep       skeletons ─► bootstrap index ─► commit 00000000000001                  METADATA_ONLY partitions
    copy       rows ─► bulk insert ─► commit 00000000000002                           FULL_RECORD partitions
    publish    the new table is put into its place                                    visible, at once

Up to *publish* nothing is to be seen of the table, so whatever fails before leaves none.

Source: ``SparkBootstrapCommitActionExecutor`` (Hudi 1.2.0).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from hudi_fast.bootstrapping.plan import BootstrapPlan, bootstrap_plan
from hudi_fast.bootstrapping.rows import local_engine
from hudi_fast.bootstrapping.skeletons import Skeletons, SkeletonWork, in_threads, skeleton_plan
from hudi_fast.bootstrapping.staging import find_place, staged
from hudi_fast.config.table_layout import create_table_layout
from hudi_fast.config.write_options import WriteOptions
from hudi_fast.errors import CommitError
from hudi_fast.metadata_table.state import open_state
from hudi_fast.metadata_table.updates.runner import Runner
from hudi_fast.metadata_table.updates.runner import in_threads as index_in_threads
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.clock import InstantClock
from hudi_fast.timeline.commit_metadata import CommitMetadata, WriteStat
from hudi_fast.timeline.instant import FULL_BOOTSTRAP_INSTANT, METADATA_BOOTSTRAP_INSTANT, Instant
from hudi_fast.view.bootstrap_index import write_bootstrap_index
from hudi_fast.writing.draft import draft_plan
from hudi_fast.writing.flow import Engine, WriteResult, write_at
from hudi_fast.writing.metadata_commit import ensure_metadata, record_in_metadata
from hudi_fast.writing.schema_commit import schema_metadata
from hudi_fast.writing.transaction import begin, commit

__all__ = ["BootstrapCarriers", "BootstrapResult", "in_process", "run_bootstrap"]


@dataclass(frozen=True, slots=True)
class BootstrapCarriers:
    """Who does the work.

    Attributes:
        skeletons: makes skeletons.
        engine: what writes the rows that are copied.
        index: makes the records of the metadata table.
        name: of the physical plan, for the result.
    """

    skeletons: Skeletons
    engine: Callable[[BootstrapPlan], Engine]
    index: Runner
    name: str


@dataclass(frozen=True, slots=True)
class BootstrapResult(WriteResult):
    """What a bootstrap did.

    Attributes:
        kept: partition paths whose data stays in the folder.
        copied: partition paths whose rows were copied.
    """

    kept: tuple[str, ...] = ()
    copied: tuple[str, ...] = ()


def in_process(options: WriteOptions) -> BootstrapCarriers:
    """Threads of this process, whatever the options say."""
    return BootstrapCarriers(in_threads, local_engine, index_in_threads(), "local")


def run_bootstrap(
    source: Storage,
    storage: Storage,
    options: Mapping[str, Any],
    mode: str,
    carriers_for: Callable[[WriteOptions], BootstrapCarriers],
) -> BootstrapResult:
    """Make a table of a folder.

    Args:
        source: rooted at the folder of Parquet files.
        storage: the base path of the table to come.
        options: ``hoodie.*`` keys.
        mode: ``errorifexists``, ``append``, ``overwrite`` or ``ignore``.
        carriers_for: who does the work, by how files are written.

    Raises:
        HudiError: see :mod:`hudi_fast.errors`; unless it is ``CommitStateUnknownError`` there is no table.
    """
    started = time.monotonic()
    place = find_place(storage, source, mode)
    if place is None:
        return BootstrapResult("", "bootstrap", 0, 0, 0, 0, 0, 0.0, "none", "the table exists already")
    plan = bootstrap_plan(source, options)
    carriers = carriers_for(plan.write)
    instant, kept, rows, files, size = "", [], 0, 0, 0
    try:
        with staged(place, plan.write.lock) as made:
            create_table_layout(made, plan.properties, int(plan.properties["hoodie.timeline.layout.version"]))
            if plan.skeletons:
                instant, kept = METADATA_BOOTSTRAP_INSTANT, _keep(made, plan, carriers)
                rows = sum(stat.num_inserts for stat in kept)
                files, size = len(kept), sum(stat.file_size for stat in kept)
            if plan.copied:
                result = write_at(carriers.engine(plan), made, plan.write, FULL_BOOTSTRAP_INSTANT)
                instant, rows = result.instant or instant, rows + result.inserts
                files, size = files + result.files_written, size + result.bytes_written
    except OSError as error:
        raise CommitError(
            f"The bootstrap of {storage.uri} failed because of storage: {error}. There is no table; run it again."
        ) from error
    return BootstrapResult(
        instant=instant,
        operation="bootstrap",
        inserts=rows,
        updates=0,
        deletes=0,
        files_written=files,
        bytes_written=size,
        seconds=time.monotonic() - started,
        plan=carriers.name,
        reason=f"{len(plan.skeletons)} files stay where they are, {len(plan.copied)} are copied",
        kept=tuple(dict.fromkeys(one.partition for one in plan.skeletons)),
        copied=tuple(dict.fromkeys(one.path.rpartition("/")[0] for one in plan.copied)),
    )


def _keep(storage: Storage, plan: BootstrapPlan, carriers: BootstrapCarriers) -> list[WriteStat]:
    """Make and commit the skeletons of files that stay where they are."""
    options = plan.write
    state = open_state(storage)
    clock = InstantClock(state.config.timezone, options.clock_skew_ms)
    draft = draft_plan(state, options, plan.schema)
    state = ensure_metadata(state, draft, options.metadata, clock, carriers.index)
    transaction = begin(state, clock, "BOOTSTRAP", False, METADATA_BOOTSTRAP_INSTANT)
    draft = replace(draft, config=state.config, view=state.view, instant=METADATA_BOOTSTRAP_INSTANT)
    stats = carriers.skeletons(SkeletonWork(skeleton_plan(draft), plan.skeletons))
    write_bootstrap_index(storage, plan.source.storage.uri, plan.skeletons, time.time_ns() // 1_000_000)
    by_partition: dict[str, list[WriteStat]] = {}
    for stat in sorted(stats, key=lambda one: one.path):
        by_partition.setdefault(stat.partition_path, []).append(stat)
    metadata = CommitMetadata(by_partition, {**options.extra_metadata, **schema_metadata(draft)}, "BOOTSTRAP")

    def record(_storage: Storage, instant: Instant, done: CommitMetadata) -> None:
        record_in_metadata(state, draft, options.metadata, instant.requested, done, clock, carriers.index)

    commit(transaction, metadata, [record])
    return stats
