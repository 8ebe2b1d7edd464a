"""Run a bootstrap, in a folder beside the base path if a table is there.

Runs a bootstrap: turns a folder of Parquet files into a table.

::

    plan       folder + options ─► BootstrapPlan                                      refuses unsupported input
    stage      a new table in a staging folder; an existing table is locked
    keep       skeletons ─► bootstrap index ─► commit 00000000000001                  METADATA_ONLY partitions
    copy       rows ─► bulk insert ─► commit 00000000000002                           FULL_RECORD partitions
    publish    rename the staging folder to the base path                             the table is visible

The table is invisible before *publish*; an earlier failure leaves no table.

Source: ``SparkBootstrapCommitActionExecutor`` (Hudi 1.2.0).

Stages a new table in a folder next to the base path, and renames it when it is complete.

::

    find_place   check the base path and the save mode
    stage        .<name>.bootstrap-<id> next to it; leftovers of failed attempts are deleted
    (write)
    publish      rename, or (when replacing a table) exchange the folders           the table is visible

Where no staging folder is possible (a mount point, a read-only parent, anything but local disk) the table is written in
place: a crash then leaves a table without a complete commit, which the next attempt replaces.
"""

from __future__ import annotations

import contextlib
import os
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from hudi_fast.bootstrapping.bootstrap_plan import BootstrapPlan, CopiedFile, bootstrap_plan
from hudi_fast.config.concurrency_options import LockOptions
from hudi_fast.config.defaults_file import with_table_defaults
from hudi_fast.config.new_table import create_table_layout
from hudi_fast.config.properties_file import load_properties
from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import (
    CommitError,
    CommitStateUnknownError,
    ConfigError,
    InvalidDataError,
    TableExistsError,
    UnsupportedFeatureError,
)
from hudi_fast.formats.avro.schema import arrow_to_avro
from hudi_fast.formats.base_file import BaseFileReader
from hudi_fast.formats.parquet.base_file import open_base_file
from hudi_fast.formats.parquet.stitched_base import folder_scalar
from hudi_fast.keys.key_generator import record_keys, refuse_stand_ins
from hudi_fast.locking.machine import is_held, machine_lock
from hudi_fast.locking.table_lock import HeldLock, table_lock
from hudi_fast.schema.conform import ConformPlan, plan_conform
from hudi_fast.storage.base import Storage
from hudi_fast.storage.failures import telling_failures
from hudi_fast.storage.local_store import folders_beside
from hudi_fast.timeline.commit_metadata import CommitMetadata, WriteStat
from hudi_fast.timeline.instants import FULL_BOOTSTRAP_INSTANT, METADATA_BOOTSTRAP_INSTANT, load_timeline
from hudi_fast.values import dataclass
from hudi_fast.view.base_files import folder_values, open_source
from hudi_fast.view.bootstrap_index import SourceFile, write_bootstrap_index
from hudi_fast.view.file_names import require_own_files
from hudi_fast.writing.backend import BatchSource
from hudi_fast.writing.draft import draft_plan
from hudi_fast.writing.flow import WriteResult, write_at
from hudi_fast.writing.markers import ensure_partition_marker
from hudi_fast.writing.metadata_commit import ensure_metadata, record_in_metadata
from hudi_fast.writing.open_table import (
    OVERWRITE,
    discard,
    empty_table,
    exchange,
    known_mode,
    real_folder,
    table_exists,
)
from hudi_fast.writing.output_file import META_COLUMNS, KeyFooter, OutputFile, new_meta_columns, writer_schema
from hudi_fast.writing.session import Call, TableSession
from hudi_fast.writing.settings import Settings
from hudi_fast.writing.table_schema import schema_metadata
from hudi_fast.writing.transaction import begin, publish
from hudi_fast.writing.write_plan import PART_ROWS, FileGroupWork, FilePlan, TaskToken

__all__ = ["BootstrapResult", "Place", "copied_batches", "copied_rows", "find_place", "run_bootstrap", "staged"]


@dataclass(frozen=True, slots=True)
class Place:
    """Target of a bootstrap.

    Attributes:
        storage: base path.
        replaces: whether an existing table is replaced.
    """

    storage: Storage
    replaces: bool


def find_place(storage: Storage, source: Storage, mode: str) -> Place | None:
    """Check the target of a bootstrap; None when the mode is ``ignore`` and the table exists.

    Args:
        storage: the base path of the new table.
        source: the folder of Parquet files.
        mode: ``errorifexists``, ``append`` (the same, because a bootstrap cannot append), ``overwrite`` or ``ignore``.

    Raises:
        TableExistsError: the table exists, and the mode does not allow that.
        ConfigError: unknown mode, other files at the base path, or one folder inside the other.
        UnsupportedFeatureError: a storage without conditional writes; replacing a table that is not on local disk.
    """
    mode = known_mode(storage, mode)
    if source.is_local:
        here, there = (os.path.realpath(one.fs_path("")) + "/" for one in (storage, source))
        if here.startswith(there) or there.startswith(here):
            raise ConfigError(
                f"A table at {storage.uri} cannot be bootstrapped from {source.uri}: one folder would be inside the "
                "other. Choose a path next to it."
            )
    exists = table_exists(storage, broken_counts=mode == "overwrite")
    if exists and mode == "overwrite" and not storage.is_local:
        raise UnsupportedFeatureError(
            f"The table {storage.uri} cannot be replaced: only local folders can be swapped. Delete the table first, "
            "or bootstrap elsewhere."
        )
    if exists and mode == "ignore":
        return None
    if exists and mode != "overwrite" and not _is_unfinished(storage):
        raise TableExistsError(f"hoodie table at {storage.uri} already exists. Bootstrap elsewhere, or overwrite it.")
    foreign = [] if exists else [entry.name for entry in storage.list_dir("") if entry.name != ".hoodie"]
    if foreign:
        raise ConfigError(
            f"{storage.uri} is not a Hudi table and holds {foreign[0]!r}; a bootstrap needs a new or an empty folder."
        )
    return Place(storage, exists)


@contextlib.contextmanager
def staged(place: Place, lock: LockOptions) -> Iterator[Storage]:
    """The staging folder; published at the end of the block, deleted on failure.

    Args:
        place: the target.
        lock: of the replaced table.

    Raises:
        TableExistsError: another process has created a table in the meantime.
        CommitError: publishing failed.
    """
    storage = place.storage
    with contextlib.ExitStack() as held:
        replaced = held.enter_context(table_lock(storage, lock)) if place.replaces else HeldLock()
        beside = _stage(storage)
        if beside is None:
            with _in_place(place):
                yield storage
            return
        try:
            beside.make_dir(".hoodie")
            with machine_lock(beside, lock.wait_ms / 1000):
                yield beside
                replaced.require()
                _publish(place, beside)
        finally:
            discard(beside)


def _stage(storage: Storage) -> Storage | None:
    if not storage.is_local:
        return None
    parent, name = real_folder(storage)
    neighbours = storage.rooted_at(parent)
    neighbours.make_dir("")
    if not name or os.path.ismount(f"{parent}/{name}") or not os.access(parent or "/", os.W_OK | os.X_OK):
        return None
    prefix = f".{name}.bootstrap-"
    for folder in folders_beside(parent, prefix):
        left = storage.rooted_at(folder)
        if not is_held(left):
            discard(left)
    beside = storage.rooted_at(f"{parent}/{prefix}{uuid.uuid4().hex}")
    beside.make_dir("")
    return beside


def _publish(place: Place, beside: Storage) -> None:
    storage = place.storage
    if place.replaces:
        exchange(storage, beside)
        return
    parent, name = real_folder(storage)
    neighbours = storage.rooted_at(parent)
    try:
        if not table_exists(storage, broken_counts=True):
            storage.delete_dir(".hoodie")  # of a failed bootstrap without table properties
        neighbours.move(beside.fs_path("").rpartition("/")[2], name)
    except OSError as error:
        if beside.exists(""):
            if table_exists(storage, broken_counts=True):
                raise TableExistsError(f"Another process created a table at {storage.uri} in the meantime.") from error
            raise CommitError(
                f"The new table could not be put at {storage.uri}: {error}. Nothing is there; run it again."
            ) from error
        if not table_exists(storage, broken_counts=True):
            raise CommitStateUnknownError(
                f"Publishing the new table at {storage.uri} failed ({error}). Check whether it is there before you "
                "run anything again."
            ) from error


@contextlib.contextmanager
def _in_place(place: Place) -> Iterator[None]:
    storage = place.storage
    if place.replaces:
        empty_table(storage)
    try:
        yield
    except (CommitStateUnknownError, TableExistsError):
        raise
    except BaseException:
        with contextlib.suppress(OSError):
            empty_table(storage)
            storage.delete_dir(".hoodie")
        raise


def _is_unfinished(storage: Storage) -> bool:
    """Whether it is a leftover of a failed bootstrap."""
    config = TableConfig.from_properties(load_properties(storage), storage.uri)
    return config.bootstrap_base_path is not None and not load_timeline(storage, config).completed()


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
            session = TableSession(Call(made, settings, backend, is_private=True))
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
        files, weights = _skeleton_plan(draft), [float(one.size) for one in plan.skeletons]
        make = partial(_make_skeleton, files)
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


# ---- reads the rows that a bootstrap copies, in the columns of the new table


_BATCH_ROWS = 1 << 17


def copied_batches(storage: Storage, file: CopiedFile, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of a file.

    Args:
        storage: rooted at the folder.
        file: the file.
        schema: columns of the table.

    Raises:
        CorruptTableError: the file cannot be read.
        InvalidDataError: a value does not fit.
    """
    with open_base_file(storage, file.path, f"{storage.uri}/{file.path}") as reader:
        stored = [name for name in schema.names if reader.has(name)]
        conforming = plan_conform(pa.schema([reader.schema.field(name) for name in stored]), schema)
        named = {name: text for name, text in file.values.items() if name not in stored}
        for batch in reader.batches(stored, _BATCH_ROWS):
            rows = conforming.apply(batch)
            for name, text in named.items():
                at = schema.get_field_index(name)
                values = pa.repeat(pa.scalar(text, pa.string()), rows.num_rows)
                rows = rows.set_column(at, schema.field(at), values)
            yield rows


def copied_rows(plan: BootstrapPlan) -> BatchSource:
    """The rows of all copied files, read by the tasks that write them."""
    return BatchSource(plan.copied, partial(_read, plan.source.storage, plan.schema), plan.schema)


def _read(storage: Storage, schema: pa.Schema, file: CopiedFile) -> Iterator[pa.RecordBatch]:
    return copied_batches(storage, file, schema)


# ---- skeleton files: base files with only the meta columns, built from the key columns of one source file each
#
# Only key columns are read, one batch at a time. Row n of a skeleton belongs to row n of its source file, so each
# source file has one skeleton, of any size. A repeated attempt writes the same rows under another name.
#
# Source: ``HoodieBootstrapHandle``, ``ParquetBootstrapMetadataHandler`` (Hudi 1.2.0).


_NO_ROWS = np.empty(0, np.int64)
_META = pa.schema([pa.field(name, pa.string()) for name in META_COLUMNS])


def _skeleton_plan(plan: FilePlan) -> FilePlan:
    """The plan of a write with files of meta columns only; ranges of data columns come from the source files."""
    avro = arrow_to_avro(_META, "HoodieRecordKey", "", meta_fields=True)
    table = replace(plan.table, file_schema=_META, avro_schema=avro)
    return FilePlan(table=table, files=replace(plan.files, stats_columns=()), instant=plan.instant)


def _make_skeleton(plan: FilePlan, source: SourceFile, token: TaskToken) -> list[WriteStat]:
    """Write the skeleton file of one source file.

    Args:
        plan: from :func:`_skeleton_plan`; it has its instant.
        source: the file.
        token: of the task.

    Raises:
        InvalidDataError: a row has no key.
        CorruptTableError: the file cannot be read.
    """
    ensure_partition_marker(plan.storage, source.partition, plan.instant, plan.config.partition_metafile_in_base_format)
    unit = FileGroupWork(source.partition, source.file_id, None, _NO_ROWS, _NO_ROWS, None, _NO_ROWS, token)
    with (
        open_source(plan.storage, source) as reader,
        OutputFile(plan, unit, source.file_id, "CREATE", KeyFooter.for_new_file(plan)) as output,
    ):
        schema = writer_schema(plan)
        try:
            for keys in _keys(plan, source, reader, token.task):
                meta = new_meta_columns(plan, keys, source.partition, output.name, token.task, output.rows)
                output.write(pa.Table.from_arrays(meta, schema=schema))
                output.footer.add(keys)
        except InvalidDataError as error:
            error.add_note(f"The rows are those of {source.uri}.")
            raise
        size = output.close()
    return [
        WriteStat(
            file_id=source.file_id,
            path=output.path,
            prev_commit="null",
            partition_path=source.partition,
            num_writes=output.rows,
            num_inserts=output.rows,
            total_write_bytes=size,
            file_size=size,
        )
    ]


def _keys(plan: FilePlan, source: SourceFile, reader: BaseFileReader, task: int) -> Iterator[pa.Array]:
    """The record keys of a file, some rows at a time."""
    roots = list(dict.fromkeys(name.split(".")[0] for name in plan.key_config.record_key_fields))
    stored = [name for name in roots if reader.has(name)]
    wanted = pa.schema([plan.schema.field(name) for name in roots])
    if not roots:  # keys are generated: only the number of rows matters
        for start in range(0, reader.num_rows, PART_ROWS):
            empty = pa.RecordBatch.from_struct_array(pa.nulls(min(PART_ROWS, reader.num_rows - start), pa.struct([])))
            yield record_keys(plan.key_config, empty, f"{plan.instant}_{task}", start)
        return
    values = folder_values(source.source_partition, [name for name in roots if name not in stored])
    conforming: ConformPlan | None = None
    first = 0
    for batch in reader.batches(stored, PART_ROWS):
        for name, text in values.items():
            batch = batch.append_column(name, pa.repeat(folder_scalar(text), batch.num_rows))
        conforming = conforming or plan_conform(batch.schema, wanted)
        rows = conforming.apply(batch)
        refuse_stand_ins(plan.key_config, rows, first)
        yield record_keys(plan.key_config, rows, None, first)
        first += batch.num_rows
