"""Looks up incoming keys in file slices, including log files.

::

    slice with a base file      the keys of the base file, ignoring its log (HoodieSimpleIndex, Hudi 1.2.0)
    its log files older than    the keys of their records: a compaction may omit a key that was deleted and then logged
    the base file               again; Apache Hudi inserts such a key a second time
    its log files with inserts  the keys of their records; Apache Hudi's Flink writers put new keys there, and its Spark
                                writers insert such a key a second time
    slice of log files alone    the keys of its log records; its rows have no number

A key deleted by the log counts as stored: new rows with it are logged to the same slice, because the base file still
holds it. For an index that may place the incoming row elsewhere, :func:`living` and :func:`beats_stored` use the row
that a reader sees, so a key deleted by the log is not stored (``HoodieIndexUtils.mergeForPartitionUpdatesIfNeeded``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.formats.varlen import gather, gather_array, single_chunk, varlen_buffers
from hudi_fast.index.metadata_lookup import Candidate, candidates
from hudi_fast.index.tagging import IncomingKeys, IndexSettings, SliceMatches, file_keys, match_slice
from hudi_fast.kernels.key_table import KeyTable
from hudi_fast.merging.base_merge import incoming_beats_stored, stored_table
from hudi_fast.merging.fold import fold
from hudi_fast.merging.log_entries import LogEntries, read_entries
from hudi_fast.merging.log_scan import visible_blocks
from hudi_fast.merging.rules import SliceMerge, default_ordering, merge_schema, ordering_columns
from hudi_fast.metadata_table.state import metadata_of
from hudi_fast.storage.concurrency import is_little
from hudi_fast.values import dataclass
from hudi_fast.view.base_files import open_base
from hudi_fast.view.file_names import BaseFile, LogFile
from hudi_fast.view.slices import FileSlice
from hudi_fast.writing.write_plan import Incoming, WritePlan

__all__ = [
    "Runner",
    "StoredKeys",
    "beats_stored",
    "living",
    "look_up",
    "look_up_all",
    "look_up_each",
    "look_up_logged",
    "merge_settings",
    "stored_keys",
    "with_logged_keys",
]

Rows = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Runner = Callable[..., Iterable[SliceMatches | None]]
"""``map``, or the ``map`` of a pool."""

_NO_COLUMNS = pa.schema([])


def look_up(
    plan: WritePlan, slice_: FileSlice, keys: IncomingKeys, settings: IndexSettings | None = None
) -> SliceMatches | None:
    """Incoming keys that one slice holds; None when it holds none.

    Args:
        plan: the write.
        slice_: the slice.
        keys: incoming keys.
        settings: checks before reading the keys of a base file; None for the settings of the plan's index.

    Raises:
        CorruptTableError: a file of the slice cannot be read.
    """
    if slice_.base_file is not None:
        based = match_slice(plan.storage, slice_, keys, settings or plan.index, plan.stored_key_config)
        early = with_logged_keys(plan, slice_)
        return based if early is None else _with_logged(plan, based, slice_, early, keys)
    if keys.low is None:
        return None
    found = np.flatnonzero(_probe(_log_entries(plan, slice_, _NO_COLUMNS).keys, keys.keys) >= 0)
    if not len(found):
        return None
    return SliceMatches(slice_, np.full(len(found), -1, dtype=np.int64), keys.rows[found])


def look_up_all(plan: WritePlan, slices: Sequence[FileSlice], keys: IncomingKeys, run: Runner) -> list[SliceMatches]:
    """The matches of many slices; slices ruled out by the metadata table are not opened.

    Args:
        plan: the write.
        slices: of one partition or of many.
        keys: incoming keys.
        run: runs the lookups: ``map``, or the ``map`` of a pool.

    Raises:
        CorruptTableError: a file of a slice cannot be read.
    """
    return look_up_each(plan, [(slices, keys)], run)[0]


def look_up_each(
    plan: WritePlan, parts: Sequence[tuple[Sequence[FileSlice], IncomingKeys]], run: Runner
) -> list[list[SliceMatches]]:
    """:func:`look_up_all` for several parts, each with slices and keys of its own, in one call of ``run``.

    Returns:
        The matches of each part.
    """
    left = [(one, number) for number, part in enumerate(parts) for one in _left_to_read(plan, *part)]
    if is_little(plan.storage.is_local, (one.slice.weight for one, _ in left)):
        run = map
    keys = [each for _, each in parts]
    found = run(lambda item: look_up(plan, item[0].slice, keys[item[1]], item[0].settings), left)
    matches: list[list[SliceMatches]] = [[] for _ in parts]
    for (_, number), match in zip(left, found, strict=True):
        if match is not None:
            matches[number].append(match)
    return matches


def _left_to_read(plan: WritePlan, slices: Sequence[FileSlice], keys: IncomingKeys) -> list[Candidate]:
    """The slices that the metadata table does not rule out."""
    early = [with_logged_keys(plan, one) is not None for one in slices]
    based = [one for one, logged in zip(slices, early, strict=True) if not logged]
    left = candidates(metadata_of(plan.view), based, keys, plan.index)
    return left + [Candidate(one, plan.index) for one, logged in zip(slices, early, strict=True) if logged]


def look_up_logged(plan: WritePlan, slice_: FileSlice, keys: IncomingKeys) -> SliceMatches | None:
    """Like :func:`look_up`; for a slice with a base file also keys found only in its log, as rows -1."""
    found = look_up(plan, slice_, keys)
    return found if slice_.base_file is None else _with_logged(plan, found, slice_, slice_, keys)


def with_logged_keys(plan: WritePlan, slice_: FileSlice) -> FileSlice | None:
    """The slice with only the log files that may hold keys missing in its base file; None without such log files.

    These are log files whose writers may have begun before the base file existed, and log files with inserts.

    Raises:
        CorruptTableError: the archived timeline or the metadata of a commit is needed and cannot be read.
    """
    base, logs = slice_.base_file, slice_.log_files
    if base is None or not logs:
        return None
    found = set(_logged_early(plan, base, logs))
    if plan.view.logged is not None and len(found) < len(logs):
        found.update(plan.view.logged.among(plan.view.timeline, base, logs))
    return replace(slice_, log_files=tuple(one for one in logs if one in found)) if found else None


def _logged_early(plan: WritePlan, base: BaseFile, logs: tuple[LogFile, ...]) -> tuple[LogFile, ...]:
    """The log files whose writers may have begun before the base file existed.

    Before table version 8 log files do not name their writer, so the result has all of them or none. It has all if
    writes began before a compaction was complete, or if the base file's instant is archived: its times are unknown.
    """
    view = plan.view
    if plan.config.layout_version < 2:
        unknown = view.timeline.find(base.instant) is None
        return logs if unknown or base.instant in view.timeline.overlapped else ()
    completion = view.timeline.completion_of(base.instant)
    if completion is None and view.archive is not None:
        completion = view.archive.completions([base.instant]).get(base.instant)
    return tuple(one for one in logs if completion is None or one.instant < completion)


def _with_logged(
    plan: WritePlan, found: SliceMatches | None, slice_: FileSlice, logged_in: FileSlice, keys: IncomingKeys
) -> SliceMatches | None:
    """The matches in a base file, and matches of keys found only in log files, as rows -1."""
    if not logged_in.log_files or keys.low is None:
        return found
    logged = _probe(_log_entries(plan, logged_in, _NO_COLUMNS).keys, keys.keys) >= 0
    if found is not None:
        logged &= ~np.isin(keys.rows, found.incoming_rows)
    if not logged.any():
        return found
    rows, none = keys.rows[logged], np.full(int(logged.sum()), -1, dtype=np.int64)
    if found is None:
        return SliceMatches(slice_, none, rows)
    return SliceMatches(slice_, np.concatenate([found.base_rows, none]), np.concatenate([found.incoming_rows, rows]))


def living(plan: WritePlan, incoming: Incoming, match: SliceMatches) -> SliceMatches:
    """The matches of :func:`look_up` whose stored row is visible to a reader."""
    if not match.slice.log_files or not len(match.incoming_rows):
        return match
    every = np.ones(len(match.incoming_rows), dtype=np.bool_)
    kept = ~_seen_of(plan, incoming, match, every).gone
    return SliceMatches(match.slice, match.base_rows[kept], match.incoming_rows[kept])


def beats_stored(plan: WritePlan, incoming: Incoming, match: SliceMatches, pairs: Flags) -> Flags:
    """Whether incoming rows, which are not deletes, win over the stored rows that a reader sees.

    Args:
        plan: the write.
        incoming: rows of the write.
        match: of :func:`look_up`.
        pairs: bool[m], the matches to compare.
    """
    sources = match.incoming_rows[pairs]
    if not plan.rules.compares or not incoming.ordering:
        return np.ones(len(sources), dtype=np.bool_)
    seen = _seen_of(plan, incoming, match, pairs)
    new = [gather_array(column, sources) for column in incoming.ordering]
    none = np.zeros(len(sources), dtype=np.bool_)
    return seen.gone | incoming_beats_stored(
        plan.rules, none, default_ordering(new, len(sources)), new, ordering_columns(plan.rules, seen.rows)
    )


@dataclass(frozen=True)
class StoredKeys:
    """Keys of a slice, and their rows as a reader sees them.

    Attributes:
        keys: string[n].
        rows: n rows of the requested columns, from the log where it has changed a row.
        gone: bool[n], keys whose row the log has deleted.
    """

    keys: pa.Array
    rows: pa.Table
    gone: Flags


def stored_keys(plan: WritePlan, slice_: FileSlice) -> StoredKeys:
    """The keys that :func:`look_up` finds in a slice, with the columns of their ordering values."""
    columns = _ordering_roots(plan)
    if slice_.base_file is None:
        keys = _log_entries(plan, slice_, _NO_COLUMNS).keys.unique()
        return _seen(plan, slice_, keys, _nulls(columns, len(keys)))
    with open_base(plan.storage, slice_.base_file) as reader:
        keys = single_chunk(pa.chunked_array(list(file_keys(reader, plan.stored_key_config)), pa.string()))
    based, early = _base_columns(plan, slice_, columns), with_logged_keys(plan, slice_)
    if early is None:
        return _seen(plan, slice_, keys, based)
    more = _log_entries(plan, early, _NO_COLUMNS).keys.unique()
    more = more.filter(pc.invert(pc.is_in(more, keys)))
    logged = np.arange(len(keys) + len(more)) >= len(keys)
    both = pa.concat_tables([based, _nulls(columns, len(more))]).combine_chunks()
    return _seen(plan, slice_, pa.concat_arrays([keys, more]), both, logged)


def _seen_of(plan: WritePlan, incoming: Incoming, match: SliceMatches, pairs: Flags) -> StoredKeys:
    """The ordering values of some matches as a reader sees them."""
    columns = _ordering_roots(plan)
    keys, rows = gather_array(incoming.key_array(), match.incoming_rows[pairs]), match.base_rows[pairs]
    if match.slice.base_file is None:
        return _seen(plan, match.slice, keys, _nulls(columns, len(keys)))
    based, logged = _base_columns(plan, match.slice, columns), rows < 0
    if logged.any():  # keys that only the log has use a row of nulls after the rows of the file
        rows = np.where(logged, based.num_rows, rows)
        based = pa.concat_tables([based, _nulls(columns, 1)]).combine_chunks()
    return _seen(plan, match.slice, keys, gather(based, rows), logged)


def _seen(
    plan: WritePlan, slice_: FileSlice, keys: pa.Array, stored: pa.Table, logged: Flags | None = None
) -> StoredKeys:
    """Apply the log to ``stored``, rows of the base file, one for each key.

    ``logged``: keys that the base file lacks.
    """
    gone = np.zeros(len(keys), dtype=np.bool_)
    if not slice_.log_files:
        return StoredKeys(keys, stored, gone)
    entries = fold(plan.rules, _log_entries(plan, slice_, stored.schema))
    hits = _probe(entries.keys, keys)
    there = np.flatnonzero(hits >= 0)
    entry = hits[there]
    wins = incoming_beats_stored(
        plan.rules,
        entries.deletes[entry],
        entries.default_ordering[entry],
        [gather_array(column, entry) for column in entries.ordering],
        ordering_columns(plan.rules, gather(stored, there)),
    )
    wins |= slice_.base_file is None if logged is None else logged[there]
    gone[there] = wins & entries.deletes[entry]
    chosen = np.arange(len(keys), dtype=np.int64)
    shown = wins & ~entries.deletes[entry]
    chosen[there[shown]] = len(keys) + np.arange(np.count_nonzero(shown))
    logged_rows = entries.take(entries.row[entry[shown]], stored.column_names).cast(stored.schema)
    both = pa.concat_tables([stored, logged_rows])
    return StoredKeys(keys, gather(both.combine_chunks(), chosen), gone)


def merge_settings(plan: WritePlan) -> SliceMerge:
    """The merge settings of slices in the plan's view."""
    return SliceMerge(
        storage=plan.storage,
        timeline=plan.view.timeline,
        table_version=plan.config.version,
        rules=plan.rules,
        as_of=plan.view.as_of,
        key_config=plan.stored_key_config,
        history=plan.view.history,
    )


def _log_entries(plan: WritePlan, slice_: FileSlice, columns: pa.Schema) -> LogEntries:
    merge = merge_settings(plan)
    return read_entries(merge, visible_blocks(merge, slice_), merge_schema(merge, columns, plan.file_schema))


def _ordering_roots(plan: WritePlan) -> pa.Schema:
    fields = plan.rules.ordering_fields if plan.rules.compares else ()
    names = dict.fromkeys(name.split(".")[0] for name in fields)
    return pa.schema([plan.schema.field(name).with_nullable(True) for name in names])


def _base_columns(plan: WritePlan, slice_: FileSlice, columns: pa.Schema) -> pa.Table:
    """Columns of a base file in the table's types; null where the file is older than the column."""
    if slice_.base_file is None:
        raise ValueError("the slice has no base file")
    with open_base(plan.storage, slice_.base_file) as reader:
        return stored_table(reader, columns)


def _nulls(columns: pa.Schema, count: int) -> pa.Table:
    return pa.table([pa.nulls(count, field.type) for field in columns], schema=columns)


def _probe(keys: pa.Array, wanted: pa.Array) -> Rows:
    """For each wanted key the position of an equal key in ``keys``, -1 if there is no such key."""
    have, want = varlen_buffers(keys), varlen_buffers(wanted)
    return KeyTable.build(have.offsets, have.data).probe(want.offsets, want.data).astype(np.int64)
