"""Rows of DML: a merge, an update or a delete by condition computes them from stored rows.

Such rows have additional columns::

    __hudi_fast_action   action of each row: update, delete, insert, upsert (int8)
    __hudi_fast_group    id of the file group where its row is stored; null for inserts
    __hudi_fast_order    ordering values of the source row (struct), where they decide between source rows
    _hoodie_record_key, _hoodie_partition_path    of the stored row; null for inserts

With them keys need no second lookup, generated keys are known, and a row stays in its file group even if its partition
column differs from the partition path. Rows of a merge executed as an upsert have no file group: their keys are looked
up.

::

    rows ─► prepare_dml_rows ─► keys, paths, deletes, file groups ─► match_dml_rows ─► matches of each slice; the rest:
    inserts

If several rows change one stored row, or insert one new key, the row whose source row has the greatest ordering value
wins, as in Apache Hudi 1.2. Equal ordering values are refused, as in SQL's MERGE.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.errors import CommitError, DuplicateKeyError, InvalidDataError, UnsupportedFeatureError
from hudi_fast.formats.avro.schema import OPERATION_FIELD
from hudi_fast.formats.column_limits import joined_chunks
from hudi_fast.formats.varlen import gather_array, single_chunk, varlen_buffers
from hudi_fast.index.metadata_lookup import KeyLocations
from hudi_fast.index.tagging import IncomingKeys, SliceMatches, untagged_rows
from hudi_fast.kernels.key_table import pick_winners_grouped
from hudi_fast.keys.key_generator import partition_paths, record_keys, refuse_stand_ins
from hudi_fast.merging.row_buffer import BatchedRows
from hudi_fast.merging.rules import delete_mask, ordering_columns, ordering_rank
from hudi_fast.schema.conform import conform
from hudi_fast.view.slices import FileSlice, latest_slices
from hudi_fast.writing.indexed_keys import refuse_long_entries
from hudi_fast.writing.located import match_slices
from hudi_fast.writing.lookup import Runner, living, look_up_all
from hudi_fast.writing.write_plan import Incoming, WritePlan

__all__ = [
    "ACTION",
    "CHECK",
    "DELETE",
    "DML_COLUMNS",
    "GROUP",
    "INSERT",
    "KEY",
    "ORDER",
    "PATH",
    "UPDATE",
    "UPSERT",
    "match_dml_rows",
    "one_change_per_row",
    "prepare_dml_rows",
    "refuse_lost",
]

ACTION, GROUP = "__hudi_fast_action", "__hudi_fast_group"
CHECK = "__hudi_fast_check"
"""Column that is present when inserted keys may be stored: the join did not use all key columns."""
ORDER = "__hudi_fast_order"
"""Column of ordering values by which source rows of one key are compared, each null where the source has none."""
KEY, PATH = "_hoodie_record_key", "_hoodie_partition_path"
DML_COLUMNS = (ACTION, GROUP, CHECK, ORDER, KEY, PATH)
"""Additional columns of changed rows: the action, the order, and the stored row's file group and key."""

UPDATE, DELETE, INSERT, UPSERT = 0, 1, 2, 3
"""Values of the column :data:`ACTION`."""

_OPERATIONS = pa.array(["U", "D", "I", None], pa.string())
"""Values of ``_hoodie_operation`` by action; null for an upsert, which may update or insert."""

Rows = npt.NDArray[np.int64]

_PATHS = pa.dictionary(pa.int32(), pa.string())
_EXAMPLES = 3
_MANY_DELETE_VALUES = 9


def prepare_dml_rows(plan: WritePlan, table: pa.Table, release: Callable[[], None] | None = None) -> Incoming:
    """DML rows as rows to write.

    Args:
        plan: the write.
        table: columns of the table, or of the partial update; keys and ordering values suffice for deletes. It also
            has the action column, and the other additional columns that stored rows have.
        release: see :func:`hudi_fast.writing.prepare.prepare_rows`.

    Raises:
        InvalidDataError: a null in a non-nullable column, or no key.
        UnsupportedFeatureError: deletes that readers of the table cannot distinguish from updates.
    """
    deleted = table.column(ACTION).to_numpy() == DELETE
    if plan.table.stores_operations:
        operations = _OPERATIONS.take(single_chunk(table.column(ACTION)))
        table = table.drop_columns([name for name in table.column_names if name == OPERATION_FIELD])
        table = table.append_column(OPERATION_FIELD, operations)
    schema = plan.row_schema
    given = [field for field in schema if field.name in table.column_names]
    brought = table.select([field.name for field in given])
    rows = conform(brought, pa.schema([field.with_nullable(True) for field in given]))
    if release is None:
        rows = joined_chunks(rows)
    _refuse_nulls(plan, rows, schema, deleted)
    deletes = deleted
    if deleted.all():
        ordering: tuple[pa.Array, ...] = ()
    else:
        ordering = tuple(single_chunk(column) for column in ordering_columns(plan.rules, rows))
        marked = delete_mask(plan.rules, rows)
        deletes = deleted if marked is None else deleted | marked
    _refuse_buried(plan, ordering, deleted)
    let_go = release or (lambda: None)  # releases the pages that were read, after each column
    let_go()
    places = _places(table)
    let_go()
    keys = _keys(plan, table, rows)
    let_go()
    incoming = Incoming(
        rows=rows,
        keys=keys,
        partitions=_paths(plan, table, rows),
        deletes=deletes if deletes.any() else None,
        ordering=ordering,
        groups=places,
        inserted=None if places is None else table.column(ACTION).to_numpy() == INSERT,
        checked=CHECK in table.column_names,
        order=single_chunk(table.column(ORDER)) if ORDER in table.column_names else None,
        batched=None if release is None else BatchedRows(rows, release),
    )
    refuse_long_entries(plan, incoming, None)
    return incoming


def one_change_per_row(incoming: Incoming, rows: Rows) -> Rows:
    """``rows`` without rows that lose to another row that changes the same stored row, or inserts the same key.

    Raises:
        InvalidDataError: two such rows have equal ordering values, or none; names examples.
    """
    if len(rows) < 2:
        return rows
    keys = gather_array(incoming.key_array(), rows)
    groups = np.empty(0, dtype=np.int32) if incoming.groups is None else incoming.groups.numbers[rows]
    buffers = varlen_buffers(keys)
    last = pick_winners_grouped(buffers.offsets, buffers.data, groups, np.zeros(len(rows), dtype=np.int64))
    if len(last) == len(rows):
        return rows
    values = () if incoming.order is None else tuple(gather_array(incoming.order, rows).flatten())
    rank = ordering_rank(values, len(rows))
    winners = pick_winners_grouped(buffers.offsets, buffers.data, groups, rank)
    losers = np.delete(np.arange(len(rows)), winners)
    names = pc.dictionary_encode(keys).indices.to_numpy().astype(np.int64)
    number = names if not len(groups) else names * (int(groups.max()) + 2) + groups
    by_number = winners[np.argsort(number[winners])]
    beaten_by = by_number[np.searchsorted(number[by_number], number[losers])]
    tied = losers[rank[losers] == rank[beaten_by]]
    if len(tied):
        raise _ambiguous(incoming, keys.take(pa.array(tied)), rows[tied])
    return rows[winners]


def _ambiguous(incoming: Incoming, keys: pa.Array, rows: Rows) -> InvalidDataError:
    several = pc.unique(keys).to_pylist()
    examples = []
    for at, key in enumerate(keys.to_pylist()):
        values = {} if incoming.order is None else incoming.order[int(rows[at])].as_py() or {}
        shown = " and ".join(f"{name} = {value!r}" for name, value in values.items())
        examples.append(f"{key!r} with {shown}" if shown else repr(key))
    examples = list(dict.fromkeys(examples))
    why = "no order decides between them" if incoming.order is None else "they have the same ordering values"
    return InvalidDataError(
        f"Several source rows change or insert one row of the table, and {why}: "
        f"{len(several)} rows, with the keys {', '.join(examples[:_EXAMPLES])}"
        f"{' and others' if len(several) > _EXAMPLES else ''}. Keep one source row for each key, or give the "
        "clauses conditions that only one of them meets. (If the table itself holds a key several times in a file "
        "group, DML cannot change these rows.)"
    )


def match_dml_rows(
    plan: WritePlan, incoming: Incoming, rows: Rows, slices: Sequence[FileSlice], run: Runner = map
) -> list[SliceMatches]:
    """The matches of a partition's rows: in their known file group, or where a log has deleted their key.

    Args:
        plan: the write.
        incoming: rows of :func:`prepare_dml_rows`.
        rows: int64[n], ascending, of one partition.
        slices: the partition's slices.
        run: runs the lookups in slices: ``map``, or the ``map`` of a pool.

    Raises:
        DuplicateKeyError: the key of an insert is stored.
        CommitError: a row is no longer in the file group where it was read.
    """
    places = incoming.groups
    assert places is not None, "rows without places are looked up as any others"
    numbers = places.numbers[rows]
    stored = numbers >= 0
    placed, free = (rows, rows[:0]) if stored.all() else (rows[stored], rows[~stored])
    found = KeyLocations(places.groups, numbers[stored])
    if plan.config.is_mor:
        matches = _as_read(slices, placed, found)
    else:
        matches = match_slices(plan, incoming, placed, found, slices, run)
    refuse_lost(plan, incoming, untagged_rows(placed, matches, incoming.count))
    return _joined([*matches, *_beside(plan, incoming, free, slices, run)])


def refuse_lost(plan: WritePlan, incoming: Incoming, rows: Rows) -> None:
    """Fail if any stored rows were not found again.

    Raises:
        CommitError: there are such rows; names an example.
    """
    if len(rows):
        key = incoming.key_array()[int(rows[0])].as_py()
        raise CommitError(
            f"{len(rows)} rows of {plan.storage.uri} are not in the file groups where they were read, for example "
            f"{key!r}. The table is as before; this is a bug of hudi_fast."
        )


def _beside(
    plan: WritePlan, incoming: Incoming, free: Rows, slices: Sequence[FileSlice], run: Runner
) -> list[SliceMatches]:
    """Inserts whose key a slice holds: a log has deleted its row, so new rows with the key are logged there."""
    if not len(free) or not plan.key_config.record_key_fields:
        return []
    if incoming.checked and plan.index.is_global:
        slices = [one for name in plan.view.lister.partitions() for one in latest_slices(plan.view, name)]
    elif not incoming.checked:
        slices = [one for one in slices if one.log_files]
    keys = IncomingKeys.of(gather_array(incoming.key_array(), free), free)
    return _without_taken(plan, incoming, look_up_all(plan, slices, keys, run)) if slices else []


def _without_taken(plan: WritePlan, incoming: Incoming, matches: list[SliceMatches]) -> list[SliceMatches]:
    """The matches; raises where the key of an insert is stored."""
    inserted = incoming.inserted
    if inserted is None or not incoming.checked:
        return matches
    for match in matches:
        seen = living(plan, incoming, match).incoming_rows
        taken = seen[inserted[seen]]
        if len(taken):
            examples = [incoming.key_array()[int(row)].as_py() for row in taken[:_EXAMPLES]]
            raise DuplicateKeyError(
                f"Rows to insert have keys that {plan.storage.uri} already holds, in rows that the condition of the "
                f"merge did not match: {', '.join(map(repr, examples))} in partition {match.slice.partition!r}. Match "
                "on all record key columns, or give the insert a condition."
            )
    return matches


def _as_read(slices: Sequence[FileSlice], rows: Rows, found: KeyLocations) -> list[SliceMatches]:
    """Matches for logs. They need no row numbers, and the group holds the keys, because they were read there."""
    by_group = {(one.partition, one.file_id): one for one in slices}
    matches = []
    for group, here in zip(found.groups, found.split(rows), strict=True):
        if len(here) and group in by_group:
            matches.append(SliceMatches(by_group[group], np.full(len(here), -1, dtype=np.int64), here))
    return matches


def _joined(matches: Sequence[SliceMatches]) -> list[SliceMatches]:
    """The matches, joined so that each slice has one."""
    by_group: dict[tuple[str, str], list[SliceMatches]] = {}
    for one in matches:
        by_group.setdefault((one.slice.partition, one.slice.file_id), []).append(one)
    return [
        some[0]
        if len(some) == 1
        else replace(
            some[0],
            base_rows=np.concatenate([one.base_rows for one in some]),
            incoming_rows=np.concatenate([one.incoming_rows for one in some]),
        )
        for some in by_group.values()
    ]


# ---- columns of the rows


def _refuse_nulls(plan: WritePlan, rows: pa.Table, schema: pa.Schema, deleted: npt.NDArray[np.bool_]) -> None:
    for field in schema:
        if field.nullable or deleted.all():
            continue
        empty = np.ones(rows.num_rows, dtype=np.bool_)
        if field.name in rows.column_names:
            empty = rows.column(field.name).is_null().to_numpy()
        count = int((empty & ~deleted).sum())
        if count:
            raise InvalidDataError(
                f"Column {field.name!r} of table {plan.config.name} is not nullable, and it is null in {count} of the "
                "rows to insert or to update. Give the column a value in every clause."
            )


def _refuse_buried(plan: WritePlan, ordering: tuple[pa.Array, ...], deleted: npt.NDArray[np.bool_]) -> None:
    several = len(ordering) > 1 and plan.config.version < _MANY_DELETE_VALUES
    if several and plan.index.bucket is not None and plan.config.is_mor and deleted.any():
        raise UnsupportedFeatureError(
            f"Deleting rows of {plan.storage.uri} by condition is not supported: it is a table of version "
            f"{plan.config.version} with a bucket index and several ordering fields. Delete by keys."
        )


def _keys(plan: WritePlan, table: pa.Table, rows: pa.Table) -> pa.Array:
    """Keys of stored and new rows; null where the write generates the key later."""
    stored = single_chunk(table.column(KEY)) if KEY in table.column_names else pa.nulls(rows.num_rows, pa.string())
    if not stored.null_count or not plan.key_config.record_key_fields:
        return stored
    new = stored.is_null()
    keyed = _keyed(plan, rows).filter(new)
    refuse_stand_ins(plan.key_config, keyed)
    return _filled(stored, new, single_chunk(record_keys(plan.key_config, keyed)))


def _paths(plan: WritePlan, table: pa.Table, rows: pa.Table) -> pa.DictionaryArray:
    encoded = _encoded(table, PATH)
    if encoded.null_count:
        stored = encoded.dictionary_decode()
        new = stored.is_null()
        made = single_chunk(partition_paths(plan.key_config, _keyed(plan, rows).filter(new)))
        encoded = pc.dictionary_encode(_filled(stored, new, made.dictionary_decode()))
    return encoded.cast(_PATHS)


def _encoded(table: pa.Table, name: str) -> pa.DictionaryArray:
    """A column of texts that repeat, one chunk; all null if the table lacks it. The texts are not copied as a whole."""
    if name not in table.column_names:
        return pa.nulls(table.num_rows, _PATHS)
    return single_chunk(pc.dictionary_encode(table.column(name)))


def _keyed(plan: WritePlan, rows: pa.Table) -> pa.Table:
    """The columns from which keys and partition paths are computed."""
    fields = (*plan.key_config.record_key_fields, *plan.key_config.partition_fields)
    roots = {name.split(".")[0] for name in fields}
    names = [name for name in rows.column_names if name in roots or name in fields]
    return rows.select(names or rows.column_names[:1])  # one column keeps the number of rows


def _filled(stored: pa.Array, gaps: pa.Array, values: pa.Array) -> pa.Array:
    return values if len(values) == len(stored) else single_chunk(pc.replace_with_mask(stored, gaps, values))


def _places(table: pa.Table) -> KeyLocations | None:
    """The file groups of stored rows; None where the table has no meta columns."""
    if GROUP not in table.column_names:
        return None
    paths, ids = _encoded(table, PATH), _encoded(table, GROUP)
    names, files = paths.dictionary.to_pylist(), ids.dictionary.to_pylist()
    pairs = pc.add(pc.multiply(paths.indices.cast(pa.int64()), len(files)), ids.indices)  # null for inserts
    both = pc.dictionary_encode(pairs)
    groups = tuple((names[pair // len(files)], files[pair % len(files)]) for pair in both.dictionary.to_pylist())
    return KeyLocations(groups, np.asarray(pc.fill_null(both.indices, -1)).astype(np.int32, copy=False))
