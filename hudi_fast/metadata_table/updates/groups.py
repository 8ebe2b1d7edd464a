"""Read sources, and write their records into file groups of a metadata table.

Write one file group of a metadata table: sorted, unique keys to a log file, or to a base file in a build.

::

    sorted keys, values (null = delete)
        ─► log file   .<file id>_<instant>.log.<n>_<token>   HFILE_DATA block, DELETE block        an update
        ─► base file  <file id>_<token>_<instant>.hfile                                            a build
        ─► WriteStat

Records come in pieces, and memory holds a piece and a few MiB of encoded blocks. For a log file memory holds
:data:`_LOG_BLOCK_BYTES` of records, because the header of a block states its length. Only log files before table
version 8 are built in memory as a whole.

Tasks receive a :class:`GroupWriter` as a value: it holds the file id and log version of every group, so no folder is
listed while records are written. A file's name depends on the group and the commit alone, and its content appears
atomically, so a retried task leaves one file.

Sources: HoodieAppendHandle, HoodieHFileDataBlock, HoodieDeleteBlock, HoodieAvroHFileWriter, Hudi 1.2.0.

Read sources and write their records, group by group: in threads here, as tasks in spark/metadata_records.py.

::

    sources ─ read ─► EncodedRecords ─ route ─► by (partition, group) ─► sorted by key, one per key ─► GroupSink
                                                  └ above a memory budget: on local disk (record_bins.py)
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import CommitConflictError
from hudi_fast.formats.bloom_filter import BloomFilter
from hudi_fast.formats.hfile.writer import HFileWriter, encode_hfile
from hudi_fast.formats.log.blocks import BlockType, HeaderKey, Part, encode_block
from hudi_fast.formats.log.delete_block import DeleteRecords, encode_delete_block
from hudi_fast.formats.varlen import gather_array, single_chunk
from hudi_fast.kernels.sorting import group_rows
from hudi_fast.metadata_table.layout import group_file_id_prefix, group_numbers
from hudi_fast.metadata_table.updates.produce import EncodedRecords
from hudi_fast.metadata_table.updates.produce_base import RecordSource
from hudi_fast.metadata_table.updates.record_bins import RECORDS, Bin, Entries, GroupBins
from hudi_fast.storage.base import Storage
from hudi_fast.storage.concurrency import MAX_FAR, heaviest_first, in_threads, is_little, units_at_once
from hudi_fast.timeline.commit_metadata import RuntimeStats, WriteStat
from hudi_fast.values import dataclass
from hudi_fast.view.file_names import LogFile, base_file_name, log_file_name
from hudi_fast.view.slices import FileSlice

__all__ = [
    "GroupSink",
    "GroupTarget",
    "GroupVisitor",
    "GroupWriter",
    "LateFile",
    "MapGroups",
    "Router",
    "WriteRecords",
    "base_bloom",
    "empty_group_log",
    "late_file",
    "put_new",
    "routed",
    "run_in_threads",
    "target_of",
    "views_of",
    "visit_in_order",
]

_LOG_BLOCK_BYTES = 64 << 20
"""Maximum bytes of keys and values in a block of a log file, unless one piece has more."""

_FIRST_TOKEN = "0-0-0"


@dataclass(frozen=True, slots=True)
class GroupTarget:
    """A file group and its newest slice.

    Attributes:
        base_instant: instant of its newest slice; empty when it has none.
        base_file: name of the slice's base file; empty when it has none.
        log_version: largest version of the slice's log files; 0 for none.
    """

    file_id: str
    base_instant: str = ""
    base_file: str = ""
    log_version: int = 0


@dataclass(frozen=True, slots=True)
class GroupWriter:
    """Writes records of one metadata table commit, group by group; picklable, for tasks on any machine.

    Attributes:
        instant: requested time of the commit.
        schema: Avro schema of the values as JSON, with meta columns.
        targets: groups by metadata table partition; the index of a group is its number.
        places: for a partitioned record index: group numbers by the file id prefix of a data partition.
        building: whether to write base files instead of log files.
    """

    storage: Storage
    config: TableConfig
    instant: str
    schema: str
    targets: Mapping[str, tuple[GroupTarget, ...]]
    places: Mapping[str, Mapping[str, tuple[int, ...]]] = field(default_factory=dict)
    building: bool = False

    def has_groups(self, records: EncodedRecords) -> bool:
        """Whether the commit has groups for the records, so that :meth:`route` accepts them."""
        if records.data_partition is None:
            return records.partition in self.targets
        prefix = group_file_id_prefix(records.partition, records.data_partition)
        return prefix in self.places.get(records.partition, {})

    def route(self, records: EncodedRecords) -> npt.NDArray[np.int32]:
        """The file group number (within its partition) of each record: int32[n].

        Raises:
            KeyError: the commit has no groups for that partition, or for that data partition.
        """
        hashed = records.keys if records.hashed is None else records.hashed
        if records.data_partition is None:
            return group_numbers(hashed, len(self.targets[records.partition]))
        prefix = group_file_id_prefix(records.partition, records.data_partition)
        places = np.array(self.places[records.partition][prefix], np.int32)
        return places[group_numbers(hashed, len(places))]

    def write(self, partition: str, group: int, entries: Iterable[Entries]) -> WriteStat:
        """Write all records of one group, piece by piece; call it at most once per group and commit.

        Args:
            partition: partition of the metadata table.
            group: number of the file group.
            entries: keys, string[n], and values, binary[n]: Avro records, null to delete the key. Keys ascend by their
                bytes over all pieces, without repetition.

        Raises:
            InvalidDataError: keys are not in order.
        """
        target = self.targets[partition][group]
        pieces = ((single_chunk(keys), single_chunk(values)) for keys, values in entries)
        write = self._write_base if self.building else self._write_log
        return write(partition, group, target, pieces)

    def compacted(
        self, partition: str, group: int, entries: Iterable[tuple[pa.Array, pa.Array]], logs: Sequence[LogFile]
    ) -> WriteStat:
        """Write the base file of a compacted slice, piece by piece.

        ``entries`` are keys and values, ascending by bytes over all pieces; ``logs`` are the slice's log files.
        """
        target = self.targets[partition][group]
        path = f"{partition}/{base_file_name(target.file_id, f'{group}-0-0', self.instant, 'hfile')}"
        with late_file(self.storage, path) as sink, HFileWriter(sink, self.schema, bloom=base_bloom()) as writer:
            for keys, values in entries:
                writer.append(keys, values)
        size = sink.size
        return WriteStat(
            file_id=target.file_id,
            path=path,
            prev_commit=target.base_instant if target.base_file else "null",
            num_writes=writer.entry_count,
            num_inserts=writer.entry_count,
            total_write_bytes=size,
            file_size=size,
            partition_path=partition,
            runtime_stats=RuntimeStats(),
            total_log_records=writer.entry_count,
            total_log_blocks=len(logs),
            total_log_files_compacted=len(logs),
            total_log_size_compacted=sum(log.size for log in logs),
            total_updated_records_compacted=writer.entry_count,
        )

    def _write_base(self, partition: str, group: int, target: GroupTarget, entries: Iterable[Entries]) -> WriteStat:
        path = f"{partition}/{base_file_name(target.file_id, f'{group}-0-0', self.instant, 'hfile')}"
        with late_file(self.storage, path) as sink, HFileWriter(sink, self.schema, bloom=base_bloom()) as writer:
            for keys, values in entries:
                kept = pc.is_valid(values)
                writer.append(keys.filter(kept), values.filter(kept))
        return WriteStat(
            file_id=target.file_id,
            path=path,
            num_writes=writer.entry_count,
            num_inserts=writer.entry_count,
            total_write_bytes=sink.size,
            file_size=sink.size,
            partition_path=partition,
            runtime_stats=RuntimeStats(),
        )

    def _write_log(self, partition: str, group: int, target: GroupTarget, entries: Iterable[Entries]) -> WriteStat:
        by_write = self.config.layout_version > 1
        base_instant = self.instant if by_write else target.base_instant
        version = target.log_version + 1 if base_instant == target.base_instant else 1
        name = log_file_name(target.file_id, base_instant, version, f"{group}-0-0")
        path = f"{partition}/{name}"
        counts = _LogCounts()
        blocks = self._log_blocks(partition, entries, counts)
        if by_write:
            with late_file(self.storage, path) as sink:
                for part in blocks:
                    sink.write(part)
            size = sink.size
        else:
            size = put_new(self.storage, path, list(blocks))
        return WriteStat(
            file_id=target.file_id,
            path=path,
            prev_commit=base_instant,
            num_writes=counts.written,
            num_deletes=counts.deleted,
            num_update_writes=counts.written,
            total_write_bytes=size,
            file_size=size,
            partition_path=partition,
            base_file="" if by_write else target.base_file,
            log_files=(name,),
            log_version=version,
            log_offset=0,
            runtime_stats=RuntimeStats(),
        )

    def _log_blocks(self, partition: str, entries: Iterable[Entries], counts: _LogCounts) -> Iterator[Part]:
        """The blocks of a log file, one after another, of bounded size; each is encoded in memory."""
        headers = {HeaderKey.SCHEMA: self.schema, HeaderKey.INSTANT_TIME: self.instant}
        for keys, values in _in_blocks(entries):
            alive = pc.is_valid(values)
            deletes = values.null_count
            if deletes < len(keys):
                content = encode_hfile(*((keys, values) if not deletes else _both(keys, values, alive)), self.schema)
                yield from encode_block(BlockType.HFILE_DATA, headers, content)
            if deletes:
                gone = keys.filter(pc.invert(alive))
                yield from encode_block(BlockType.DELETE, headers, _deletes(gone, partition))
            counts.written += len(keys) - deletes
            counts.deleted += deletes


def target_of(slice_: FileSlice) -> GroupTarget:
    """The target for a group whose newest slice is ``slice_``."""
    return GroupTarget(
        slice_.file_id,
        slice_.base_instant,
        "" if slice_.base_file is None else slice_.base_file.name,
        max((log.version for log in slice_.log_files), default=0),
    )


def empty_group_log(storage: Storage, partition: str, file_id: str, instant: str) -> WriteStat:
    """Write the first file of a group, which makes it visible: a log file with an empty delete block."""
    name = log_file_name(file_id, instant, 1, _FIRST_TOKEN)
    content = _deletes(pa.array([], pa.string()), partition)
    block = b"".join(views_of(encode_block(BlockType.DELETE, {HeaderKey.INSTANT_TIME: instant}, content)))
    storage.write_bytes(f"{partition}/{name}", block)
    size = len(block)
    return WriteStat(
        file_id=file_id,
        path=f"{partition}/{name}",
        prev_commit=instant,
        total_write_bytes=size,
        file_size=size,
        partition_path=partition,
        base_file="",
        log_files=(name,),
        log_version=1,
        log_offset=0,
    )


def base_bloom() -> BloomFilter:
    """An empty bloom filter for a base file (``hoodie.metadata.bloom.filter.*``, defaults of 1.2.0)."""
    return BloomFilter.create(10_000, 1e-9, 100_000)


# ---- files


def _deletes(keys: pa.Array, partition: str) -> pa.Buffer:
    count = len(keys)
    partitions = pa.repeat(pa.scalar(partition), count)
    return encode_delete_block(DeleteRecords(keys.cast(pa.string()), partitions, (), np.ones(count, np.bool_)))


def put_new(storage: Storage, path: str, parts: list[Part]) -> int:
    """Write a file whose name does not identify its writer, like log files before table version 8; returns its size.

    Raises:
        CommitConflictError: another writer has created the file: this writer was paused so long that it lost the lock.
    """
    content = b"".join(views_of(parts))
    try:
        storage.create_exclusive(path, content)
    except FileExistsError as error:
        if storage.read_bytes(path) == content:  # an earlier attempt of this task
            return len(content)
        raise CommitConflictError(
            f"The metadata table {storage.uri}: another process, which now holds the lock, has written {path}. "
            "Nothing of this write is visible; run it again."
        ) from error
    return len(content)


@dataclass(slots=True)
class _LogCounts:
    """Numbers of records in a log file."""

    written: int = 0
    deleted: int = 0


def _in_blocks(entries: Iterable[Entries]) -> Iterator[Entries]:
    """Pieces of up to :data:`_LOG_BLOCK_BYTES`."""
    waiting: list[Entries] = []
    size = 0
    for keys, values in entries:
        more = keys.nbytes + values.nbytes
        if waiting and size + more > _LOG_BLOCK_BYTES:
            yield _joined(waiting)
            waiting, size = [], 0
        waiting.append((keys, values))
        size += more
    if waiting:
        yield _joined(waiting)


def _joined(pieces: Sequence[Entries]) -> Entries:
    if len(pieces) == 1:
        return pieces[0]
    return pa.concat_arrays([keys for keys, _ in pieces]), pa.concat_arrays([values for _, values in pieces])


def _both(keys: pa.Array, values: pa.Array, chosen: pa.Array) -> Entries:
    return keys.filter(chosen), values.filter(chosen)


# ---- a file that is written in one call if it is small, and as a stream if it is large


_WHOLE_BYTES = 64 << 20
"""Files up to this size are written in one call: an object store needs one request for it."""


class LateFile:
    """A sink that keeps its parts in memory until they are too large for one call.

    Attributes:
        size: bytes so far.
    """

    def __init__(self, storage: Storage, path: str, stack: contextlib.ExitStack) -> None:
        self.size = 0
        self._storage, self._path, self._stack = storage, path, stack
        self._parts: list[Part] = []
        self._sink: Any = None

    def write(self, part: Part, /) -> None:
        """Accept the next bytes: contiguous, with the buffer protocol, and not modified later."""
        self.size += memoryview(part).nbytes  # type: ignore[arg-type]  # an Arrow buffer supports the buffer protocol
        if self._sink is not None:
            self._sink.write(part)
            return
        self._parts.append(part)
        if self.size > _WHOLE_BYTES:
            self._sink = self._stack.enter_context(self._storage.replacing(self._path))
            for each in self._parts:
                self._sink.write(each)
            self._parts.clear()

    def finish(self) -> None:
        """Write the parts in memory."""
        if self._sink is None:
            self._storage.write_bytes(self._path, b"".join(views_of(self._parts)))


@contextlib.contextmanager
def late_file(storage: Storage, path: str) -> Iterator[LateFile]:
    """A sink whose content becomes the file when the block ends; replaces the file of an earlier attempt.

    After an error in the block, the file is unchanged on local disk, and undefined in an object store.
    """
    with contextlib.ExitStack() as stack:
        file = LateFile(storage, path, stack)
        yield file
        file.finish()


def views_of(parts: list[Part]) -> list[memoryview]:
    """Views of parts, for joining."""
    return [memoryview(part) for part in parts]  # type: ignore[arg-type]  # an Arrow buffer supports the buffer protocol


class Router(Protocol):
    """Sends records to the file groups of metadata partitions; picklable."""

    @property
    def schema(self) -> str:
        """Avro JSON of the values."""
        ...

    def route(self, records: EncodedRecords) -> npt.NDArray[np.int32]:
        """int32[n]: the file group (position among the groups of the partition) of each record."""
        ...


class GroupSink(Router, Protocol):
    """Writes the records of one file group of a metadata partition."""

    def write(self, partition: str, group: int, entries: Iterable[Entries]) -> WriteStat:
        """Write keys (string[n], ascending by bytes, distinct) and values (binary[n], null for a delete), in pieces."""
        ...


class GroupVisitor(Router, Protocol):
    """Computes a result from the records of each file group, one group after another, without writing files."""

    @property
    def groups(self) -> Sequence[Bin]:
        """Groups to visit even if they get no records."""
        ...

    def visit(self, partition: str, group: int, entries: Iterable[Entries]) -> Any:
        """The result for one group, picklable. Entries are in any order, and keys may repeat."""
        ...


WriteRecords: TypeAlias = Callable[[Sequence[RecordSource], GroupSink], list[WriteStat]]
"""Reads all sources and writes their records; one stat for each file group that received records."""

MapGroups: TypeAlias = Callable[[Sequence[Any], Sequence[int], Callable[[Any], WriteStat]], list[WriteStat]]
"""Applies a function to file groups, each with the bytes to read for it; one stat for each, in any order."""


def run_in_threads(
    sources: Sequence[RecordSource], writer: GroupSink, threads: int = 2, is_local: bool = False
) -> list[WriteStat]:
    """Read sources and write their records in threads of this process.

    Args:
        sources: sources of the records.
        writer: writes the records.
        threads: number of threads.
        is_local: whether files are on local disk, so that one thread is best for a few records.
    """
    with GroupBins() as bins:
        weights = [one.weight for one in sources]
        readers = 1 if is_little(is_local, weights) else threads
        heaviest_first(weights, lambda number: _collect(sources[number], writer, bins), readers)
        names = bins.names()
        writers = 1 if is_little(is_local, [bins.nbytes]) else threads
        if not is_local:  # a log file takes one or two requests, so its thread mostly waits
            writers = units_at_once([bins.nbytes / len(names)] * len(names), threads, MAX_FAR) if names else 1
        return in_threads(lambda one: writer.write(one[0], one[1], bins.take(one)), names, writers)


def visit_in_order(sources: Sequence[RecordSource], visitor: GroupVisitor, threads: int = 2) -> Iterator[Any]:
    """Read sources in threads of this process, then visit the groups, one at a time."""
    with GroupBins(ordered=False) as bins:
        in_threads(lambda source: _collect(source, visitor, bins), sources, threads)
        for name in sorted({*bins.names(), *visitor.groups}):
            yield visitor.visit(*name, bins.take(name))


def routed(records: EncodedRecords, writer: Router) -> Iterator[tuple[int, pa.Table]]:
    """Records by file group, as tables of :data:`RECORDS`."""
    groups = writer.route(records)
    if not len(groups):
        return
    order, bounds = group_rows(groups, int(groups.max()) + 1)
    keys, values = single_chunk(records.keys), single_chunk(records.values)
    for group in np.flatnonzero(np.diff(bounds)):
        rows = order[bounds[group] : bounds[group + 1]].astype(np.int64)
        columns = [gather_array(keys, rows), gather_array(values, rows)]
        yield int(group), pa.Table.from_arrays(columns, schema=RECORDS)


def _collect(source: RecordSource, writer: Router, bins: GroupBins) -> None:
    for records in source.read(writer.schema):
        for group, table in routed(records, writer):
            bins.put((str(records.partition), group), table)
