"""Change queries, top to bottom: inserts, updates and deletes, with the rows before and after as JSON.

::

    plan_cdc         state, bounds ─► commits ─► units: a file group that a commit changed          (a value)
    read_changes     unit ─► change records, or rows before and after ─► JSON ─► batches            (pure)
    changes_batches  units ─► read_changes in threads ─► batches, as they become available
    changes_table    units ─► read_changes in threads ─► one table

Covers commits of the active timeline requested after ``begin`` and not after ``end``; compactions and clusterings
change no rows. Memory is bounded by the batches in flight and by the changes of one commit in the file groups in
flight: their records and the rows that they match, never whole files.

Source: ``HoodieCDCExtractor``, ``CDCRelation``, ``CDCFileGroupIterator`` (Hudi 1.2.0).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.config.moments import Moment, timeline_zone
from hudi_fast.config.read_options import ReadOptions
from hudi_fast.config.words import checked_options
from hudi_fast.errors import ConfigError, CorruptTableError, SchemaMismatchError
from hudi_fast.formats.avro.rows import AvroDecoder
from hudi_fast.formats.avro.schema import avro_to_arrow
from hudi_fast.formats.avro.types import parse_record
from hudi_fast.formats.json_rows import JsonStyle, json_rows
from hudi_fast.formats.log.blocks import BlockType, HeaderKey, LogBlock, read_content
from hudi_fast.formats.log.cdc_records import (
    AFTER,
    BEFORE,
    DATA_BEFORE_AFTER,
    DELETE,
    INSERT,
    OP,
    OP_KEY_ONLY,
    RECORD_KEY,
    UPDATE,
    cdc_schema,
    check_cdc_mode,
)
from hudi_fast.formats.varlen import gather, gather_array, single_chunk
from hudi_fast.merging.base_merge import (
    BaseRowUpdates,
    Replaced,
    entry_replacement,
    incoming_beats_stored,
    resolve_matches,
)
from hudi_fast.merging.fold import fold
from hudi_fast.merging.log_entries import LogEntries, read_entries
from hudi_fast.merging.log_scan import filter_visible_blocks, log_blocks
from hudi_fast.merging.rules import Merger, MergeRules, merge_schema, ordering_columns, slice_merge, stored_key_config
from hudi_fast.reading.incremental.cdc_units import (
    CHANGE_SCHEMA,
    YIELDING_OPERATIONS,
    CdcCase,
    CdcScan,
    CdcUnit,
    change_batch,
    commit_units,
    images,
    images_of_keys,
    rows_of_keys,
)
from hudi_fast.reading.incremental.commit_range import ChangeCommit
from hudi_fast.reading.incremental.query import incremental_options
from hudi_fast.reading.scan import Filter, check_filter, expression_of, in_threads, readable_schema
from hudi_fast.reading.shown_columns import shown_columns
from hudi_fast.reading.slice_reader import SliceScan, read_slice
from hudi_fast.reading.time_travel import state_for_query
from hudi_fast.schema.history import Renames, renamed_avro, renames_at
from hudi_fast.storage.base import Storage
from hudi_fast.storage.concurrency import reads_at_once
from hudi_fast.storage.failures import told_while_read
from hudi_fast.storage.forks import ThreadPool
from hudi_fast.storage.untrusted import stored_json
from hudi_fast.timeline.archive.timeline import ArchivedTimeline
from hudi_fast.timeline.instants import WRITE_ACTIONS
from hudi_fast.values import dataclass
from hudi_fast.view.slices import FileSlice
from hudi_fast.view.table_state import TableState, read_commit, table_avro

__all__ = [
    "CHANGE_SCHEMA",
    "CdcPlan",
    "change_options",
    "changes_batches",
    "changes_table",
    "plan_cdc",
    "plan_query",
    "read_changes",
    "with_images",
]

_READERS = 8
_FORMAT = "hoodie.datasource.query.incremental.format"


@dataclass(frozen=True)
class CdcPlan:
    """The plan of a change query. Picklable.

    Attributes:
        units: units to read, by instant.
        scan: settings for every unit; None where there are no units.
    """

    storage: Storage
    units: tuple[CdcUnit, ...]
    threads: int
    scan: CdcScan | None = None


def change_options(
    begin: Moment, end: Moment | None, options: Mapping[str, Any] | None = None, merger: Merger | None = None
) -> dict[str, Any]:
    """The options of a change query between two times.

    ``begin`` is exclusive, ``end`` inclusive and None for the newest commit; both are requested times.

    Raises:
        ConfigError: ``begin`` is missing, or the options request another query type.
    """
    if str((checked_options(options) or {}).get(_FORMAT, "cdc")).lower() != "cdc":
        raise ConfigError(f"A change query returns changes; for rows ({_FORMAT}) use HudiTable.incremental.")
    given = {**incremental_options(begin, end, options), _FORMAT: "cdc"}
    return given if merger is None else {"hudi_fast.merger": merger, **given}


def plan_query(storage: Storage, options: Mapping[str, Any]) -> CdcPlan:
    """:func:`plan_cdc` with user options.

    Raises:
        HudiError: as :class:`~hudi_fast.config.read_options.ReadOptions` and :func:`plan_cdc`.
    """
    settings = ReadOptions.from_options(options, timeline_zone(storage))
    return plan_cdc(state_for_query(storage, None, settings.metadata_enabled), settings)


def plan_cdc(state: TableState, options: ReadOptions, threads: int | None = None) -> CdcPlan:
    """Plan a change query.

    ``options`` hold begin (exclusive) and end (inclusive), requested times of commits, and merge settings.

    Raises:
        ConfigError: the table logs no changes, the range begins before the active timeline, or needed files have been
            cleaned.
        CorruptTableError: a base file was rewritten without a change log.
        UnsupportedFeatureError: base files are not Parquet, or the merge mode is unsupported.
    """
    _require_changes(state)
    commits = _commits(state, options)
    units = tuple(commit_units(state, commits))
    at_once = threads or options.threads or reads_at_once(state.storage, (one.weight for one in units))
    return CdcPlan(state.storage, units, at_once, _scan_of(state, options) if units else None)


def read_changes(plan: CdcPlan, unit: CdcUnit) -> Iterator[pa.RecordBatch]:
    """The changes of one unit, in batches of :data:`CHANGE_SCHEMA`.

    Raises:
        ConfigError: one of its files has been cleaned.
        CorruptTableError: one of its files is corrupt.
    """
    assert plan.scan is not None
    for file in unit.files:
        if not plan.storage.exists(file.path):
            raise ConfigError(
                f"The changes of commit {unit.instant} of {plan.storage.uri} are not available: {file.path} has been "
                f"cleaned. Begin after {unit.instant}, or retain more commits."
            )
    if unit.case is CdcCase.AS_IS:
        yield from logged_changes(plan.scan, unit)
    elif unit.case is CdcCase.LOG_FILE:
        yield from _replayed_changes(plan.scan, unit)
    elif unit.case is CdcCase.BASE_FILE_INSERT:
        for image in _rows(plan.scan, FileSlice(unit.partition, unit.file_id, unit.after), AFTER):
            yield change_batch(unit.instant, INSERT, None, image)
    else:
        assert unit.before is not None
        for image in _rows(plan.scan, unit.before, BEFORE):
            yield change_batch(unit.instant, DELETE, image, None)


def changes_table(plan: CdcPlan, columns: Sequence[str] | None = None, filter: Filter | None = None) -> pa.Table:
    """The changes as one table, in the order of the units.

    Args:
        plan: plan of the query.
        columns: columns of :data:`CHANGE_SCHEMA`, in this order; None for all.
        filter: condition of the changes.

    Raises:
        ConfigError: an unknown column, or a filter that does not fit.
    """
    plan, schema, finish = _finishing(plan, columns, filter)
    with ThreadPool(plan.threads) as pool:
        parts = pool.map(lambda unit: [finish(batch) for batch in read_changes(plan, unit)], plan.units)
        return pa.Table.from_batches([batch for part in parts for batch in part], schema)


def changes_batches(
    plan: CdcPlan, columns: Sequence[str] | None = None, filter: Filter | None = None
) -> pa.RecordBatchReader:
    """The changes as a stream, in no particular order; arguments and errors as for :func:`changes_table`."""
    plan, schema, finish = _finishing(plan, columns, filter)
    batches = in_threads(plan.units, lambda unit: map(finish, read_changes(plan, unit)), plan.threads)
    return pa.RecordBatchReader.from_batches(schema, told_while_read(batches, plan.storage.uri))


def with_images(plan: CdcPlan, columns: Sequence[str] | None, filter: pc.Expression | None = None) -> CdcPlan:
    """The plan without the images that neither the columns nor the filter of a query name: their JSON is not made.

    Args:
        plan: plan of the query.
        columns: columns of :data:`CHANGE_SCHEMA`; None for all.
        filter: condition of the changes, which fits :data:`CHANGE_SCHEMA`.
    """
    if columns is None or plan.scan is None:
        return plan
    shown = {name.lower() for name in columns}  # Spark finds columns in any case
    images = frozenset(name for name in (BEFORE, AFTER) if name in shown or _names(filter, name))
    return replace(plan, scan=replace(plan.scan, images=images))


def _names(filter: pc.Expression | None, column: str) -> bool:
    """Whether a filter names a column of :data:`CHANGE_SCHEMA`."""
    if filter is None:
        return False
    others = CHANGE_SCHEMA.remove(CHANGE_SCHEMA.get_field_index(column))
    try:
        others.empty_table().filter(filter)
    except pa.ArrowInvalid:
        return True
    return False


def _finishing(
    plan: CdcPlan, columns: Sequence[str] | None, filter: Filter | None
) -> tuple[CdcPlan, pa.Schema, Callable[[pa.RecordBatch], pa.RecordBatch]]:
    """The plan of the needed images, the columns of the result, and the function that makes them of a batch."""
    condition = expression_of(filter, CHANGE_SCHEMA)
    if condition is not None:
        check_filter(condition, CHANGE_SCHEMA, CHANGE_SCHEMA.names)
    shown = shown_columns(CHANGE_SCHEMA.names if columns is None else columns, CHANGE_SCHEMA, "A row of changes")

    def finish(batch: pa.RecordBatch) -> pa.RecordBatch:
        chosen = batch if condition is None else batch.filter(condition)
        return chosen.select(shown.roots) if shown.is_plain else shown.apply(chosen)

    return with_images(plan, columns, condition), shown.schema, finish


def _rows(scan: CdcScan, slice_: FileSlice, name: str) -> Iterator[pa.StringArray]:
    """The images of all rows of a slice; one column is read to count those that are not made."""
    made, rows = name in scan.images, scan.rows
    if not made:
        counted = pa.schema([rows.output.field(0)])
        merged = None if rows.merge is None else merge_schema(rows.merge, counted, rows.schema)
        rows = replace(rows, schema=counted, output=counted, merge_columns=merged)
    for batch in read_slice(rows, slice_):
        yield from images(batch, made)


def _require_changes(state: TableState) -> None:
    if not state.config.cdc_enabled:
        raise ConfigError(
            f"It isn't a CDC hudi table on {state.storage.uri}: its hoodie.table.cdc.enabled is not true, so its "
            "writers log no changes. Use an incremental query for the new rows."
        )
    check_cdc_mode(state.config.cdc_mode, state.config.name)


def _commits(state: TableState, options: ReadOptions) -> tuple[ChangeCommit, ...]:
    """The commits of the range that changed rows, oldest first."""
    begin, end = options.begin, options.end
    if begin is None:
        raise ConfigError(
            "CDC Query should provide the valid start version or timestamp: set "
            f"hoodie.datasource.read.begin.instanttime (earliest = from the first commit of {state.storage.uri})."
        )
    first = state.timeline.first_write_requested
    if first is None or begin < first:
        archived = ArchivedTimeline(state.storage, state.config).instants(begin, None, WRITE_ACTIONS)
        if any(one.requested > begin and state.timeline.find(one.requested) is None for one in archived):
            raise ConfigError(
                f"Start instant time {begin} for CDC query has to be in the active timeline. Beginning of active "
                f"timeline {first} ({state.storage.uri}): commits after it have been archived. Begin later; keep more "
                "commits (hoodie.keep.min.commits)."
            )
    found = [one for one in state.timeline.writes() if one.requested > begin and (end is None or one.requested <= end)]
    with ThreadPool(_READERS) as pool:
        commits = pool.map(lambda one: ChangeCommit(one, read_commit(state.storage, state.config, one)), found)
        return tuple(one for one in commits if one.metadata.operation_type in YIELDING_OPERATIONS)


def _scan_of(state: TableState, options: ReadOptions) -> CdcScan:
    schema = readable_schema(state)
    rows = SliceScan(state.storage, state.config, schema, schema, None)
    if state.config.is_mor:
        merge = slice_merge(state, options.merger)
        rows = SliceScan(
            state.storage,
            state.config,
            schema,
            schema,
            None,
            merge=merge,
            merge_columns=merge_schema(merge, schema, schema),
        )
    mode, avro = state.config.cdc_mode, table_avro(state)
    assert avro is not None  # a commit that changed rows has a schema
    return CdcScan(rows, stored_key_config(state.config), mode, record_columns(mode, avro), state.view.history)


# ---- changes of a log file: its records, replayed on the slice that it was written to
#
# ::
#
#     log file ─────► entries, one per key ──┬─► matched ─┬─ a row, and a delete ─────────────► d
#     slice before ─► rows of these keys ────┘            ├─ a row with a lower ordering value ► u: both merged
#                                                         └─ no row, and no delete ───────────► i
#
# As in Hudi, a delete removes its row at any ordering value, where a snapshot would keep a newer row. Memory holds
# the log file's records and the rows that they change.
#
# Source: ``CDCFileGroupIterator#loadNextLogRecord`` (Hudi 1.2.0).


Rows = npt.NDArray[np.int64]

_BATCH_ROWS = 1 << 14


def _replayed_changes(scan: CdcScan, unit: CdcUnit) -> Iterator[pa.RecordBatch]:
    """The changes of a unit whose commit wrote a log file.

    Raises:
        CorruptTableError: a file is corrupt.
    """
    assert scan.rows.merge is not None
    assert scan.rows.merge_columns is not None
    merge, columns, shown = replace(scan.rows.merge, as_of=unit.instant), scan.rows.merge_columns, scan.rows.output
    logged = (block for log in unit.logs for block in log_blocks(merge.storage, log, merge.timeline))
    blocks = filter_visible_blocks(merge, logged)
    entries = fold(merge.rules, read_entries(merge, blocks, columns))
    if not entries.count:
        return
    before, places = _rows_before(
        replace(scan, rows=replace(scan.rows, merge=merge, schema=columns, output=columns)), unit, entries
    )
    changes = _resolved(merge.rules, entries, before, places)
    yield from _updates(scan, merge.rules, unit, entries, before, changes)
    for image in images(gather(before, changes.dropped).select(shown.names), BEFORE in scan.images):
        yield change_batch(unit.instant, DELETE, image, None)
    unmatched = ~entries.deletes
    unmatched[places] = False
    for image in images(entries.take(entries.row[unmatched], shown.names), AFTER in scan.images):
        yield change_batch(unit.instant, INSERT, None, image)


def _rows_before(scan: CdcScan, unit: CdcUnit, entries: LogEntries) -> tuple[pa.Table, Rows]:
    """The stored rows of the entries, in columns of one chunk, and the entry of each."""
    assert unit.before is not None
    found = list(rows_of_keys(scan, unit.before, entries.keys))
    schema = scan.rows.output
    columns = pa.Table.from_batches([rows for rows, _ in found], schema).columns
    rows = pa.Table.from_arrays([single_chunk(column) for column in columns], schema=schema)
    return rows, np.concatenate([np.zeros(0, dtype=np.int64), *(places for _, places in found)])


def _resolved(rules: MergeRules, entries: LogEntries, before: pa.Table, places: Rows) -> BaseRowUpdates:
    deletes = entries.deletes[places]
    wins = deletes | incoming_beats_stored(
        rules,
        deletes,
        entries.default_ordering[places],
        [gather_array(column, places) for column in entries.ordering],
        ordering_columns(rules, before) if rules.compares else (),
    )
    return resolve_matches(rules, np.arange(before.num_rows), places, deletes, wins, entries.column_set is not None)


def _updates(
    scan: CdcScan, rules: MergeRules, unit: CdcUnit, entries: LogEntries, before: pa.Table, changes: BaseRowUpdates
) -> Iterator[pa.RecordBatch]:
    """Updated rows; a row that the user function deletes becomes a delete."""
    shown = scan.rows.output.names
    make = entry_replacement(rules, entries, changes, before.schema)
    for start in range(0, len(changes.replaced), _BATCH_ROWS):
        part = slice(start, min(start + _BATCH_ROWS, len(changes.replaced)))
        old = gather(before, changes.replaced[part])
        made = make(part, old if changes.blended else None)
        images_before = _images(old.select(shown), BEFORE in scan.images)
        yield _updated(unit, images_before, _images(made.rows.select(shown), AFTER in scan.images), made)


def _updated(unit: CdcUnit, before: pa.StringArray, after: pa.StringArray, made: Replaced) -> pa.RecordBatch:
    ops = pa.repeat(pa.scalar(UPDATE), len(before))
    if made.deleted is not None:
        deleted = pa.array(made.deleted)
        ops = pc.if_else(deleted, DELETE, ops)
        after = pc.if_else(deleted, pa.scalar(None, pa.string()), after)
    batch = change_batch(unit.instant, ops, before, after)
    return batch if made.kept is None else batch.filter(pa.array(~made.kept))


def _images(rows: pa.Table, made: bool) -> pa.StringArray:
    return pa.concat_arrays(list(images(rows, made)))


# ---- changes in change logs, with images that the logs do not store looked up in base files
#
# ::
#
#     DATA_BEFORE_AFTER   op, before, after ─► JSON
#     DATA_BEFORE         op, key, before ─► JSON; the row after: by key, from the base file that the commit wrote
#     OP_KEY_ONLY         op, key; both rows by key, from the base files before and after
#
# As in Hudi, logged images are formatted as Avro records, with a null image as the text ``null``; looked-up images are
# formatted as rows, with a null image as null. A log is read with the table's current schema, so columns added later
# are null. If Avro cannot resolve the two schemas (a decimal has been widened), the log is read with its own schema.
#
# Source: ``CDCFileGroupIterator``, ``HoodieCDCLogRecordIterator`` (Hudi 1.2.0).

_NULL = pa.scalar("null")
_LOOKED_UP_ROWS = 1 << 18
"""Records whose images are in memory together; base files are read once per this many."""


def record_columns(mode: str, table_avro: str) -> pa.Schema:
    """The columns of a change record in a mode, as Avro stores their values.

    Raises:
        UnsupportedFeatureError: an unknown mode.
    """
    return avro_to_arrow(_stored_schema(cdc_schema(mode, table_avro)), "the schema of change logs")


def logged_changes(scan: CdcScan, unit: CdcUnit) -> Iterator[pa.RecordBatch]:
    """The changes of a unit with change logs.

    Raises:
        CorruptTableError: a file is corrupt, or lacks a row that a log names.
    """
    batches = (
        batch
        for log in unit.logs
        for block in log_blocks(scan.rows.storage, log)
        for batch in _logged_records(scan, block)
    )
    if scan.mode == DATA_BEFORE_AFTER:
        for batch in batches:
            before, after = (_logged_image(scan, batch, name) for name in (BEFORE, AFTER))
            yield change_batch(unit.instant, batch.column(OP), before, after)
    else:
        for records in _groups_of_records(batches):
            yield _looked_up(scan, unit, records)


def _logged_records(scan: CdcScan, block: LogBlock) -> Iterator[pa.RecordBatch]:
    """The records of a block; none for a block of another kind."""
    if block.kind is not BlockType.CDC_DATA:
        return
    text = block.headers.get(HeaderKey.SCHEMA)
    if text is None:
        raise CorruptTableError("A change log block has no schema in its header.", block.path, block.offset)
    where = f"{block.path}, byte {block.offset}"
    parse_record(text, where)  # raises for schemas that the steps below do not handle: no record, or nested too deeply
    names = None if scan.history is None else renames_at(scan.history, block.instant)
    own = _stored_schema(text if names is None else _in_names_of_today(text, names, where))
    try:
        decoder = AvroDecoder.compile(own, scan.records, where)
    except SchemaMismatchError:
        decoder = AvroDecoder.compile(own, avro_to_arrow(own, where), where)
    yield from decoder.decode_block(read_content(scan.rows.storage, block), block.path, block.content_start)


def _groups_of_records(batches: Iterator[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    """Batches grouped to about the number of records that are looked up together."""
    group: list[pa.RecordBatch] = []
    for batch in batches:
        group.append(batch)
        if sum(one.num_rows for one in group) >= _LOOKED_UP_ROWS:
            yield group
            group = []
    if group:
        yield group


def _looked_up(scan: CdcScan, unit: CdcUnit, records: list[pa.RecordBatch]) -> pa.RecordBatch:
    assert unit.after is not None
    ops = pa.concat_arrays([batch.column(OP) for batch in records])
    keys = pa.concat_arrays([batch.column(RECORD_KEY) for batch in records])
    before = after = pa.nulls(len(keys), pa.string())
    if AFTER in scan.images:
        after = _looked_up_images(
            scan, FileSlice(unit.partition, unit.file_id, unit.after), keys, pc.not_equal(ops, DELETE)
        )
    if scan.mode != OP_KEY_ONLY:
        before = pa.concat_arrays([_logged_image(scan, batch, BEFORE) for batch in records])
    elif BEFORE in scan.images:
        assert unit.before is not None
        before = _looked_up_images(scan, unit.before, keys, pc.not_equal(ops, INSERT))
    return change_batch(unit.instant, ops, before, after)


def _looked_up_images(
    scan: CdcScan, slice_: FileSlice, keys: pa.StringArray, wanted: pa.BooleanArray
) -> pa.StringArray:
    """The images of the ``wanted`` keys; null for the others."""
    found = images_of_keys(scan, slice_, keys.filter(wanted))
    return pc.replace_with_mask(pa.nulls(len(keys), pa.string()), wanted, found)


def _logged_image(scan: CdcScan, batch: pa.RecordBatch, name: str) -> pa.StringArray:
    if name not in scan.images:
        return pa.nulls(batch.num_rows, pa.string())
    return pc.fill_null(json_rows(batch.column(name), JsonStyle.AVRO), _NULL)


# ---- schemas


def _stored_schema(avro_json: str) -> str:
    """The schema without logical types, so that decoded values are the stored ones."""
    return json.dumps(_plain(stored_json(avro_json)))


def _in_names_of_today(text: str, names: Renames, where: str) -> str:
    """The schema of change records with current names in their images; the second image refers to the first."""
    record = stored_json(text)
    for field in record["fields"]:
        kinds = field["type"]
        field["type"] = [
            stored_json(renamed_avro(json.dumps(one), names, where)) if isinstance(one, dict) else one for one in kinds
        ]
    return json.dumps(record)


def _plain(avro: Any) -> Any:
    if isinstance(avro, list):
        return [_plain(one) for one in avro]
    if not isinstance(avro, dict):
        return avro
    return {key: _plain(value) if key in _NESTING else value for key, value in avro.items() if key != "logicalType"}


_NESTING = frozenset({"type", "fields", "items", "values"})
