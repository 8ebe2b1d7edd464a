"""Runs a bootstrap: turns a folder of Parquet files into a table.

::

    plan       folder + options ─► BootstrapPlan                                      refuses unsupported input
    stage      a new table in a staging folder; an existing table is locked
    keep       skeletons ─► bootstrap index ─► commit 00000000000001                  METADATA_ONLY partitions
    copy       rows ─► bulk insert ─► commit 00000000000002                           FULL_RECORD partitions
    publish    rename the staging folder to the base path                             the table is visible

The table is invisible before *publish*; an earlier failure leaves no table.

Source: ``SparkBootstrapCommitActionExecutor`` (Hudi 1.2.0).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from hudi_fast.bootstrapping.plan import BootstrapPlan, bootstrap_plan
from hudi_fast.bootstrapping.rows import copied_rows
from hudi_fast.bootstrapping.skeletons import make_skeleton, skeleton_plan
from hudi_fast.bootstrapping.staging import find_place, staged
from hudi_fast.config.defaults_file import with_table_defaults
from hudi_fast.config.table_layout import create_table_layout
from hudi_fast.errors import CommitError
from hudi_fast.storage.base import Storage
from hudi_fast.storage.failures import telling_failures
from hudi_fast.timeline.commit_metadata import CommitMetadata, WriteStat
from hudi_fast.timeline.instant import FULL_BOOTSTRAP_INSTANT, METADATA_BOOTSTRAP_INSTANT
from hudi_fast.view.bootstrap_index import write_bootstrap_index
from hudi_fast.view.own_files import require_own_files
from hudi_fast.writing.draft import draft_plan
from hudi_fast.writing.flow import WriteResult, write_at
from hudi_fast.writing.metadata_commit import ensure_metadata, record_in_metadata
from hudi_fast.writing.overwrite import OVERWRITE
from hudi_fast.writing.schema_commit import schema_metadata
from hudi_fast.writing.session import TableSession
from hudi_fast.writing.settings import Settings
from hudi_fast.writing.transaction import begin, publish

__all__ = ["BootstrapResult", "run_bootstrap"]


@dataclass(frozen=True, slots=True)
class BootstrapResult(WriteResult):
    """Result of a bootstrap.

    Attributes:
        kept: partition paths whose data stays in the folder.
        copied: partition paths whose rows were copied.
    """

    kept: tuple[str, ...] = ()
    copied: tuple[str, ...] = ()


def run_bootstrap(
    source: Storage,
    storage: Storage,
    options: Mapping[str, Any],
    mode: str,
    opened: Callable[[Settings], TableSession],
) -> BootstrapResult:
    """Create a table from a folder of Parquet files.

    Args:
        source: rooted at the folder.
        storage: the base path of the new table.
        options: ``hoodie.*`` keys.
        mode: ``errorifexists``, ``append``, ``overwrite`` or ``ignore``.
        opened: opens a session at the base path, on the engine that executes the work.

    Raises:
        HudiError: see :mod:`hudi_fast.errors`; unless it is ``CommitStateUnknownError`` there is no table.
    """
    with telling_failures(f"The bootstrap of {storage.uri}", "There is no table; run it again."):
        return _run(source, storage, options, mode, opened)


def _run(
    source: Storage, storage: Storage, options: Mapping[str, Any], mode: str, opened: Callable[[Settings], TableSession]
) -> BootstrapResult:
    started = time.monotonic()
    place = find_place(storage, source, mode)
    if place is None:
        return BootstrapResult("", "bootstrap", 0, 0, 0, 0, 0, 0.0, "none", "the table exists already")
    plan = bootstrap_plan(source, with_table_defaults(options), storage.uri)
    if place.replaces:
        require_own_files(storage, plan.write.deletes_other_files, OVERWRITE)
    settings = replace(Settings.from_options({}), write=plan.write)
    backend = opened(settings).backend
    instant, kept, rows, files, size = "", [], 0, 0, 0
    try:
        with staged(place, plan.write.lock) as made:
            create_table_layout(made, plan.properties, int(plan.properties["hoodie.timeline.layout.version"]))
            session = TableSession(made, settings, backend, private=True)
            if plan.skeletons:
                instant, kept = METADATA_BOOTSTRAP_INSTANT, _keep(session, plan)
                rows = sum(stat.num_inserts for stat in kept)
                files, size = len(kept), sum(stat.file_size for stat in kept)
            if plan.copied:
                engine = backend.engine(copied_rows(plan), plan.write)
                result = write_at(session, engine, FULL_BOOTSTRAP_INSTANT)
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
        plan=backend.name,
        reason=f"{len(plan.skeletons)} files stay where they are, {len(plan.copied)} are copied",
        kept=tuple(dict.fromkeys(one.partition for one in plan.skeletons)),
        copied=tuple(dict.fromkeys(one.path.rpartition("/")[0] for one in plan.copied)),
    )


def _keep(session: TableSession, plan: BootstrapPlan) -> list[WriteStat]:
    """Write and commit the skeleton files of files that are not copied."""
    storage, options = session.storage, plan.write
    with session.locked():
        draft = draft_plan(session.state, options, plan.schema)
        state = ensure_metadata(session, draft)
        transaction = begin(session, "BOOTSTRAP", False, METADATA_BOOTSTRAP_INSTANT)
        table = replace(draft.table, config=state.config, view=state.view)
        draft = replace(draft, table=table, instant=METADATA_BOOTSTRAP_INSTANT)
        files, weights = skeleton_plan(draft), [float(one.size) for one in plan.skeletons]
        make = partial(make_skeleton, files)
        stats = session.backend.map_units(files, plan.skeletons, weights, make)
        write_bootstrap_index(storage, plan.source.storage.uri, plan.skeletons, time.time_ns() // 1_000_000)
        by_partition: dict[str, list[WriteStat]] = {}
        for stat in sorted(stats, key=lambda one: one.path):
            by_partition.setdefault(stat.partition_path, []).append(stat)
        metadata = CommitMetadata(by_partition, {**options.extra_metadata, **schema_metadata(draft)}, "BOOTSTRAP")

        def record() -> None:
            record_in_metadata(session, draft, metadata)

        publish(transaction, metadata, record)
        session.changed()
    return stats
