"""Rows that Python reads from files, sent to the tasks of their file groups or partitions.

Looks keys up, and sends rows on as bytes: an Arrow batch for each file group.

::

    rows of a lane ─► Python: lookup ─► bucket of each row ─► one Arrow batch per bucket, as bytes ─► shuffle ─► task

A lane is a task that looks keys up: in its partitions (key_lookup.py), or in the record index (record_index.py).

Without this, looked-up rows would return to the JVM, pass its joins, expressions and shuffle one by one, and be
converted to Arrow again. The bytes of a batch pass as one value, if the session bounds Arrow batches by bytes
(:func:`~hudi_fast.spark.writing.sent_batches.packs_rows`).

Rows that Python reads from files, with record key and partition path, for tasks that give each row its bucket.

::

    splits of files ─► Python: rows + key + path ─┬─────────────────────────────────────► function of packed_rows.py
                                                  └─► bytes by lane ─► shuffle ─► lane ─►

Rows that Python reads from files, sent to the tasks of their table partitions as bytes.

::

    splits of files ─► Python: rows ─► partition path of each ─► an Arrow batch per partition ─► shuffle ─► task

Spark moves and sorts a few values instead of rows; the rows never enter the JVM.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.errors import HudiError
from hudi_fast.formats.varlen import gather, gather_array, single_chunk, varlen_buffers
from hudi_fast.kernels.key_table import first_equal, hash_keys
from hudi_fast.kernels.sorting import group_rows
from hudi_fast.keys.key_generator import partition_paths, record_keys
from hudi_fast.merging.row_buffer import ROW_BUDGET, CollectedRows, RowBuffer, write_failure
from hudi_fast.schema.conform import conform
from hudi_fast.spark.incoming.file_scan import FileScan, ScanTasks, rows_in_tasks
from hudi_fast.spark.writing.columns import addresses
from hudi_fast.spark.writing.key_lookup import IndexLanes, Lanes
from hudi_fast.spark.writing.sent_batches import ADDRESS, BYTES, binary_of, grouped, lots, sending_errors, unpacked
from hudi_fast.spark.writing.tasks import task_attempts
from hudi_fast.spark.writing.workload import TASKS_PER_CORE, Buckets
from hudi_fast.values import dataclass
from hudi_fast.writing.assign import combined_rows
from hudi_fast.writing.file_group import BUCKET, STORED_ROW
from hudi_fast.writing.located import KEYS_AT_ONCE, KeyPlaces
from hudi_fast.writing.prepare import prepare_rows
from hudi_fast.writing.write_plan import WritePlan

__all__ = [
    "FEWEST_ROWS",
    "BatchRows",
    "Find",
    "KeyLookup",
    "KeyedScan",
    "packed_partitions",
    "packed_rows",
    "sent_schema",
]

_KEYED = f"{ADDRESS} int, {BYTES} binary"

Numbers = npt.NDArray[np.int32]
Function = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


class BatchRows(Protocol):
    """Rows to which a function over Arrow batches can be applied, such as a DataFrame."""

    def mapInArrow(self, function: Any, schema: Any) -> Any:
        """A DataFrame of the results."""
        ...


@dataclass(frozen=True, slots=True)
class _Keys:
    """Adds keys and paths to rows; picklable.

    Attributes:
        plan: the write.
        rows: columns of the rows.
        key: name of the column of record keys.
        path: name of the column of partition paths.
    """

    plan: WritePlan
    rows: pa.Schema
    key: str
    path: str

    @property
    def schema(self) -> pa.Schema:
        """The rows with key and path."""
        return pa.schema([*self.rows, pa.field(self.key, pa.string()), pa.field(self.path, pa.string())])

    def added(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        config, count = self.plan.key_config, 0
        roots = {name.split(".")[0] for name in (*config.record_key_fields, *config.partition_fields)}
        for batch in batches:
            names = set(batch.schema.names) & roots
            stored = pa.schema([one for one in self.plan.input_schema if one.name in names])
            rows = conform(pa.Table.from_batches([batch]).select(stored.names), stored)
            paths = partition_paths(config, rows) if stored.names else None
            path = pa.repeat("", batch.num_rows) if paths is None else single_chunk(paths).cast(pa.string())
            if config.record_key_fields:
                key = single_chunk(record_keys(config, rows)).cast(pa.string())
            else:  # only spreads the rows
                key = pa.array(np.arange(count, count + batch.num_rows)).cast(pa.string())
            count += batch.num_rows
            yield pa.RecordBatch.from_arrays([*batch.columns, key, path], schema=self.schema)

    def lanes_of(self, rows: pa.Table, lanes: Lanes | IndexLanes) -> Numbers:
        return lanes.numbers(single_chunk(rows.column(self.key)), single_chunk(rows.column(self.path)))


@dataclass(frozen=True, slots=True)
class KeyedScan:
    """Rows of files with two more columns.

    Attributes:
        spark: the session.
        files: the rows.
        plan: the write.
        key: name of the column of record keys.
        path: name of the column of partition paths.
        tasks: maximum number of tasks that read; 0 for Spark's own number.
    """

    spark: Any
    files: FileScan
    plan: WritePlan
    key: str
    path: str
    tasks: int = 0

    def mapInArrow(self, function: Function, schema: str) -> Any:
        """The results of a function over batches of the rows with key and path."""
        read, keys = self._tasks(), self._keys
        return read.numbers.mapInArrow(read.reading(lambda batches: function(keys.added(batches))), schema)

    def in_lanes(self, lanes: Lanes | IndexLanes) -> BatchRows:
        """The rows in the lanes of their partition, or of the record index."""
        if not lanes.moves_rows:
            return KeyedScan(self.spark, self.files, self.plan, self.key, self.path, lanes.tasks)
        keys, to_lane = self._keys, np.array(addresses(lanes.tasks), dtype=np.int32)

        def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for rows in lots(keys.added(batches)):
                parts = list(grouped(rows, keys.lanes_of(rows, lanes), lanes.tasks))
                yield _keyed_message(to_lane[[lane for lane, _ in parts]].tolist(), [part for _, part in parts])

        def failed(data: pa.Buffer) -> pa.RecordBatch:
            return _keyed_message([int(to_lane[0])], [data])

        read = self._tasks()
        work = read.reading(sending_errors(self.spark, self.plan, pack, failed))
        sent = read.numbers.mapInArrow(work, _KEYED).repartition(lanes.tasks, ADDRESS).select(BYTES)
        return _SentRows(sent, keys.schema)

    @property
    def _keys(self) -> _Keys:
        return _Keys(self.plan, self.files.schema, self.key, self.path)

    def _tasks(self) -> ScanTasks:
        return rows_in_tasks(self.spark, self.files, self.tasks or len(self.files.tasks))


@dataclass(frozen=True, slots=True)
class _SentRows:
    """Rows that were sent as bytes.

    Attributes:
        sent: a DataFrame with one column of bytes.
        schema: of the rows.
    """

    sent: Any
    schema: pa.Schema

    def mapInArrow(self, function: Function, schema: str) -> Any:
        """The results of a function over batches of :attr:`schema`."""
        kind = self.schema
        return self.sent.mapInArrow(lambda batches: function(unpacked(batches, kind)), schema)


def _keyed_message(places: list[int], parts: list[pa.Buffer]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(places, pa.int32()), binary_of(parts)], names=[ADDRESS, BYTES])


_PACKED = f"{ADDRESS} int, {BUCKET} int, {BYTES} binary"
_NO_SLICE = -1
_BEFORE_ALL = -(1 << 31)
"""The bucket of an error: the task that gets it need not write rows before."""

_LOT_BYTES = 1 << 30
"""Arrow bytes of rows that one lookup takes; :data:`_LOT_BUDGET` of them are in memory, more in a local file."""

_LOT_BUDGET = TASKS_PER_CORE * ROW_BUDGET
"""Arrow bytes that a lookup holds in memory: a lane takes the rows of ``TASKS_PER_CORE`` tasks that write."""

Ints = npt.NDArray[np.int64]
Find = Callable[[pa.Array, pa.ChunkedArray, int], KeyPlaces]
"""A lookup: keys, string[n], partition paths, string[n], and the maximum number of attempts of the task -> places."""


@dataclass(frozen=True, slots=True)
class KeyLookup:
    """How the rows of a lane find the file groups of their keys.

    Attributes:
        key: name of the column of record keys; empty text is not a key.
        path: name of the column of partition paths.
        added: columns that are not sent, because they serve the lookup only.
        find: the lookup, in the slices of the write's buckets. None if all keys are new.
        only_stored: whether to leave out rows whose key is not stored. Rows without a key stay, to be refused.
        combines: whether rows in one lane may share a new key and have different partitions. They are combined here;
            other rows that share a key are combined by the task of their bucket. The keys of a lane must fit in memory.
    """

    key: str
    path: str
    added: Sequence[str] = ()
    find: Find | None = None
    only_stored: bool = False
    combines: bool = False


def packed_rows(
    spark: Any, rows: BatchRows, schema: pa.Schema, plan: WritePlan, buckets: Buckets, lookup: KeyLookup
) -> Any:
    """Look keys up, and send the rows of each bucket to its task.

    Args:
        spark: the session.
        rows: in lanes.
        schema: of :func:`sent_schema`.
        plan: the write.
        buckets: of the write.
        lookup: finds the file groups of the keys.

    Returns:
        A DataFrame with one column: Arrow bytes of rows of one bucket. Each partition is a task; its rows are sorted by
        bucket. A key that several slices hold is in the bucket of each.
    """
    attempts = task_attempts(spark)
    address = np.array(addresses(buckets.tasks), dtype=np.int32)

    def pack_lot(lot: CollectedRows) -> Iterator[pa.RecordBatch]:
        # Spark may have large strings
        keys, paths = (lot.table.column(name).cast(pa.string()) for name in (lookup.key, lookup.path))
        keys, table = _without_empty(single_chunk(keys)), lot.table.drop_columns([*lookup.added])
        found = KeyPlaces.joined([]) if lookup.find is None else lookup.find(keys, paths, attempts)
        places = _with_new(found, len(keys))
        if lookup.only_stored:
            places = places.take((places.slices != _NO_SLICE) | ~np.asarray(keys.is_valid())[places.rows])
        if lookup.combines:
            places = places.take(~_losers(plan, table, keys, paths, places, schema))
        new = np.flatnonzero(places.slices == _NO_SLICE)
        rows_of_new = places.rows[new]
        chosen = places.slices.copy()
        chosen[new] = _insert_buckets(buckets, gather_array(keys, rows_of_new), paths.take(pa.array(rows_of_new)))
        start = 0
        for batch in table.to_batches():
            part = slice(*np.searchsorted(places.rows, (start, start + batch.num_rows)))
            if part.start < part.stop:
                yield _packed(batch, places.take(part), start, chosen[part], schema, buckets, address)
            start += batch.num_rows
            if lot.release is not None:
                lot.release()

    def pack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        lots = _single(batches) if lookup.find is None else _lots(plan, batches, whole=lookup.combines)
        for lot in lots:
            yield from pack_lot(lot)
            del lot  # before the rows of the next lot are read

    def failed(data: pa.Buffer) -> pa.RecordBatch:
        places = [pa.array([number], pa.int32()) for number in (int(address[0]), _BEFORE_ALL)]
        return pa.RecordBatch.from_arrays([*places, binary_of([data])], names=[ADDRESS, BUCKET, BYTES])

    sent = rows.mapInArrow(sending_errors(spark, plan, pack, failed), _PACKED).repartition(buckets.tasks, ADDRESS)
    return sent.sortWithinPartitions(BUCKET).select(BYTES)


def sent_schema(rows: pa.Schema) -> pa.Schema:
    """The columns of sent batches.

    Args:
        rows: of the rows, without columns that serve the lookup only.
    """
    return pa.schema([*rows, pa.field(STORED_ROW, pa.int32()), pa.field(BUCKET, pa.int32())])


def _lots(plan: WritePlan, batches: Iterable[pa.RecordBatch], whole: bool) -> Iterator[CollectedRows]:
    """The rows of a lane, as many at a time as one lookup takes; all of them if ``whole``."""
    with RowBuffer(partial(write_failure, plan.storage.uri), budget=_LOT_BUDGET) as buffer:
        count = size = 0
        for batch in batches:
            buffer.add(batch)
            count, size = count + batch.num_rows, size + batch.nbytes
            full = not whole and (count >= KEYS_AT_ONCE or size >= _LOT_BYTES)
            if full and (rows := buffer.take()) is not None:
                yield rows
                del rows
                count = size = 0
        if (rows := buffer.take()) is not None:
            yield rows


def _single(batches: Iterable[pa.RecordBatch]) -> Iterator[CollectedRows]:
    """Each batch by itself."""
    for batch in batches:
        if batch.num_rows:
            yield CollectedRows(pa.Table.from_batches([batch]))


def _without_empty(keys: pa.Array) -> pa.Array:
    """Keys, string[n], with nulls for empty text."""
    lengths = np.diff(varlen_buffers(keys).offsets)
    return pc.if_else(pc.equal(keys, ""), None, keys) if len(lengths) and not lengths.all() else keys


def _with_new(places: KeyPlaces, count: int) -> KeyPlaces:
    """Places of all ``count`` rows, rows ascending; rows without a place have :data:`_NO_SLICE`."""
    missing = np.flatnonzero(np.bincount(places.rows, minlength=count) == 0)
    none = np.full(len(missing), _NO_SLICE)
    every = KeyPlaces.joined([places, KeyPlaces(missing, none, none)])
    return every.take(np.argsort(every.rows, kind="stable"))


def _losers(
    plan: WritePlan, rows: pa.Table, keys: pa.Array, paths: pa.ChunkedArray, places: KeyPlaces, schema: pa.Schema
) -> npt.NDArray[np.bool_]:
    """bool[m]: places of rows that lose to a row with the same new key in another partition."""
    lost = np.zeros(len(places.rows), dtype=np.bool_)
    new = np.flatnonzero((places.slices == _NO_SLICE) & np.asarray(keys.is_valid())[places.rows])
    first = first_equal(*varlen_buffers(gather_array(keys, places.rows[new])))
    codes = _codes(paths.take(pa.array(places.rows[new])))[0]
    low, high = np.full(len(new), len(new)), np.full(len(new), -1)
    np.minimum.at(low, first, codes)
    np.maximum.at(high, first, codes)
    shared = new[(low < high)[first]]
    if not len(shared):
        return lost
    try:
        incoming = prepare_rows(plan, _cast(gather(rows, places.rows[shared]), schema))
        kept = combined_rows(plan, incoming, np.arange(len(shared), dtype=np.int64))
    except HudiError:  # the task that writes these rows refuses them; of changes, rows that go to several tasks
        if plan.is_dml:
            raise
        return lost
    lost[shared] = True
    lost[shared[kept]] = False
    return lost


def _codes(paths: pa.ChunkedArray) -> tuple[npt.NDArray[np.int32], list[str | None]]:
    """A number for each path, int32[n], and the path of each number; the last one is None, for rows without a path."""
    coded = single_chunk(paths.dictionary_encode())
    codes = np.asarray(coded.indices.fill_null(len(coded.dictionary))).astype(np.int32)
    return codes, [*coded.dictionary.to_pylist(), None]


def _cast(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows in the types that are sent; ``schema`` may have more columns."""
    return conform(rows, pa.schema([schema.field(name).with_nullable(True) for name in rows.column_names]))


def _insert_buckets(buckets: Buckets, keys: pa.Array, paths: pa.ChunkedArray) -> Ints:
    """The bucket of each row with a new key, int64[n]; rows of one key and partition have the same one."""
    buffers = varlen_buffers(keys)
    hashes = np.empty(len(keys), dtype=np.uint64)
    hash_keys(buffers.offsets, buffers.data, hashes)
    shares = (hashes >> np.uint64(11)).astype(np.float64) / (1 << 53)
    codes, names = _codes(paths)
    order, bounds = group_rows(codes, len(names))
    found = np.empty(len(keys), dtype=np.int64)
    for code, name in enumerate(names):
        rows = order[bounds[code] : bounds[code + 1]]
        found[rows] = buckets.of_inserts(name, shares[rows])
    return found


def _packed(
    batch: pa.RecordBatch,
    places: KeyPlaces,
    start: int,
    chosen: Ints,
    schema: pa.Schema,
    buckets: Buckets,
    address: npt.NDArray[np.int32],
) -> pa.RecordBatch:
    """The rows of a batch, whose first one has the number ``start`` in ``places``, as bytes by bucket."""
    found, codes = np.unique(chosen, return_inverse=True)
    order, bounds = group_rows(codes.astype(np.int32), len(found))
    taken = _cast(gather(pa.Table.from_batches([batch]), places.rows[order] - start), schema)
    routing = [
        pa.array(places.stored[order].astype(np.int32), mask=places.slices[order] == _NO_SLICE),
        pa.array(chosen[order].astype(np.int32)),
    ]
    columns = [single_chunk(column) for column in taken.columns]
    sent = pa.RecordBatch.from_arrays([*columns, *routing], schema=schema)
    parts = [sent.slice(start, end - start).serialize() for start, end in pairwise(bounds.tolist())]
    return pa.RecordBatch.from_arrays(
        [pa.array(address[buckets.tasks_of(found)]), pa.array(found.astype(np.int32)), binary_of(parts)],
        names=[ADDRESS, BUCKET, BYTES],
    )


_ORDER = "__hudi_fast_order"
_ORDERED = f"{ADDRESS} int, {_ORDER} long, {BYTES} binary"

FEWEST_ROWS = 256
"""A batch of fewer rows, on the average, costs more than its rows would cost in the JVM."""


def packed_partitions(spark: Any, files: FileScan, plan: WritePlan, owners: Mapping[str, int], tasks: int) -> Any:
    """The rows of files, by table partition.

    Args:
        spark: the session.
        files: the rows.
        plan: the write.
        owners: the task of known partitions; the task of others follows from a hash of their path.
        tasks: number of tasks.

    Returns:
        A DataFrame with one column: Arrow bytes of rows of one partition. Each of its partitions is a task, and has the
        rows of a table partition one after the other.
    """
    numbers = {name: number for number, name in enumerate(owners)}
    known = dict(owners)
    to_task = np.array(addresses(tasks), dtype=np.int32)

    def place(path: str) -> tuple[int, int]:
        """The address of a partition, and its place among the partitions of a task."""
        if path in known:
            return int(to_task[known[path]]), numbers[path]
        hashed = int.from_bytes(hashlib.blake2b(path.encode(), digest_size=8).digest(), "little") >> 1
        return int(to_task[hashed % tasks]), max(hashed, len(numbers))

    def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for rows in lots(batches):
            names, parts = _by_partition(plan, rows)
            yield _ordered_message([place(name) for name in names], parts)

    def failed(data: pa.Buffer) -> pa.RecordBatch:
        return _ordered_message([(int(to_task[0]), -1)], [data])

    rows = rows_in_tasks(spark, files, len(files.tasks))
    work = rows.reading(sending_errors(spark, plan, pack, failed))
    sent = rows.numbers.mapInArrow(work, _ORDERED).repartition(tasks, ADDRESS)
    return sent.sortWithinPartitions(_ORDER).select(BYTES)


def _by_partition(plan: WritePlan, rows: pa.Table) -> tuple[list[str], list[pa.Buffer]]:
    """Partition paths, and the rows of each as bytes."""
    roots = {name.split(".")[0] for name in plan.key_config.partition_fields}
    keyed = pa.schema([one for one in plan.input_schema if one.name in roots and one.name in rows.column_names])
    paths = single_chunk(partition_paths(plan.key_config, conform(rows.select(keyed.names), keyed)))
    names = paths.dictionary.to_pylist()
    parts = list(grouped(rows, np.asarray(paths.indices, dtype=np.int32), len(names)))
    return [names[number] for number, _ in parts], [part for _, part in parts]


def _ordered_message(places: list[tuple[int, int]], parts: list[pa.Buffer]) -> pa.RecordBatch:
    columns = [
        pa.array([address for address, _ in places], pa.int32()),
        pa.array([order for _, order in places], pa.int64()),
        binary_of(parts),
    ]
    return pa.RecordBatch.from_arrays(columns, names=[ADDRESS, _ORDER, BYTES])
