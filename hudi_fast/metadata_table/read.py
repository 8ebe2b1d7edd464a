"""Read records of the metadata table: a whole partition, given keys, or key prefixes.

::

    keys ─► numbers of their groups ─► per group, in threads:
        base HFile, blocks that can hold the keys ─┐
        log blocks, in order of application ───────┴─► layers ─► fold ─► flat table

Only groups that can hold a key are opened, and only the base file blocks that can hold it are read. Blocks are cached
in the table's block cache. Source: metadata reference 2.3 and 2.8; HoodieBackedTableMetadata, release 1.2.0.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from hudi_fast.errors import ConfigError, CorruptTableError, FileGoneError
from hudi_fast.formats.hfile.reader import HFileReader
from hudi_fast.formats.log.blocks import BlockType, HeaderKey, LogBlock, read_content
from hudi_fast.formats.log.delete_block import decode_delete_block
from hudi_fast.formats.varlen import gather_array, varlen_buffers
from hudi_fast.kernels.key_table import first_equal
from hudi_fast.merging.log_scan import blocks_in_order, log_blocks, scanned
from hudi_fast.metadata_table.fold import Layer, fold
from hudi_fast.metadata_table.layout import PartitionKind, group_file_id_prefix, group_numbers, kind_of
from hudi_fast.metadata_table.records import flat_schema
from hudi_fast.metadata_table.table import MetadataTable
from hudi_fast.storage.concurrency import in_threads
from hudi_fast.view.file_names import BaseFile, LogFile
from hudi_fast.view.lost_files import writes_of
from hudi_fast.view.slices import FileSlice

__all__ = ["layer_streams", "lookup", "prefix", "record_kind", "scan"]

Entries = tuple[pa.Array, pa.Array]
HFileQuery = Callable[[HFileReader], Iterable[Entries]]
"""A query of an HFile: returns keys (binary or string) and values (binary), in any number of pieces."""

_LAYER_BYTES = 128 << 20
_MAX_THREADS = 8
_FEW_KEYS = 1000
"""Answers to queries with up to this number of keys are kept: statistics that the next read of the table wants, too."""
_WHOLE_BYTES = 8 << 20
"""Log blocks up to this size are read whole; larger blocks are read only in the needed ranges."""


def scan(table: MetadataTable, partition: str, groups: Sequence[int] | None = None) -> pa.Table:
    """All live records of a partition, as the flat table of its kind (:mod:`hudi_fast.metadata_table.records`).

    Returns:
        Rows by group number; unordered within a group.

    Raises:
        CorruptTableError: a file is missing or corrupt.
        UnsupportedFeatureError: the kind of the partition is unknown, or values have an unsupported type.
    """
    chosen = range(len(table.groups(partition))) if groups is None else groups
    return _read(table, partition, dict.fromkeys(chosen, HFileReader.scan), keep_blocks=False)


def lookup(
    table: MetadataTable,
    partition: str,
    keys: pa.Array,
    hashed: pa.Array | None = None,
    data_partition: str | None = None,
) -> pa.Table:
    """The live records of the given keys; missing keys have no rows.

    ``keys`` are strings in any order; duplicates are ignored. ``hashed`` is the text of each key that is hashed to find
    its group, if not the key itself. ``data_partition`` is the data partition to search, for a partitioned record
    index.

    Returns:
        Rows as of :func:`scan`.

    Raises:
        CorruptTableError: a file is missing or corrupt.
        UnsupportedFeatureError: the kind of the partition is unknown, or values have an unsupported type.
        ConfigError: ``data_partition`` is given for an index that is not partitioned, or missing for a partitioned one.
    """
    if len(keys) > _FEW_KEYS or hashed is not None:
        return _looked_up(table, partition, keys, hashed, data_partition)
    query = "lookup", partition, data_partition, tuple(keys.to_pylist())
    return table.answer(query, lambda: _looked_up(table, partition, keys, None, data_partition))


def _looked_up(
    table: MetadataTable, partition: str, keys: pa.Array, hashed: pa.Array | None, data_partition: str | None
) -> pa.Table:
    candidates = _candidate_groups(table, partition, data_partition)
    keys, hashed = _distinct(keys, hashed)
    if not len(keys) or not len(candidates):
        return flat_schema(record_kind(table, partition)).empty_table()
    numbers = candidates[group_numbers(hashed, len(candidates))]
    order = np.argsort(numbers, kind="stable")
    bounds = np.flatnonzero(np.diff(numbers[order], prepend=-1))
    ordered = gather_array(keys, order)
    queries: dict[int, HFileQuery] = {}
    for start, end in zip(bounds, [*bounds[1:], len(order)], strict=True):
        queries[int(numbers[order[start]])] = _lookup_query(ordered.slice(start, end - start))
    return _read(table, partition, queries)


def prefix(table: MetadataTable, partition: str, prefixes: Sequence[str]) -> pa.Table:
    """The live records whose keys start with one of the prefixes.

    Prefixes of a secondary index come from :func:`hudi_fast.metadata_table.keys.secondary_prefix`.

    Returns:
        Rows as of :func:`scan`.

    Raises:
        CorruptTableError: a file is missing or corrupt.
        UnsupportedFeatureError: the kind of the partition is unknown, or values have an unsupported type.
    """
    distinct = tuple(sorted(set(prefixes)))
    if len(distinct) > _FEW_KEYS:
        return _with_prefix(table, partition, distinct)
    return table.answer(("prefix", partition, distinct), lambda: _with_prefix(table, partition, distinct))


def _with_prefix(table: MetadataTable, partition: str, prefixes: tuple[str, ...]) -> pa.Table:
    wanted = pa.array(prefixes, pa.string())
    groups = len(table.groups(partition))
    queries: dict[int, HFileQuery] = {}
    if table.hashes_secondary_values(partition):
        numbers = group_numbers(wanted, groups)
        for number in np.unique(numbers):
            queries[int(number)] = _prefix_query(wanted.filter(pa.array(numbers == number)))
    elif len(wanted):
        queries = {number: _prefix_query(wanted) for number in range(groups)}
    return _read(table, partition, queries)


def layer_streams(table: MetadataTable, slice_: FileSlice) -> list[Iterator[Layer]]:
    """The entries of a slice: a stream for its base file, if it has one, then one for each log block, oldest first.

    A stream opens its file when it is first read, and returns one block of an HFile at a time. Keys of an HFile ascend
    by their bytes, unless Hudi 1.x has sorted keys with characters above U+DFFF.

    Raises:
        CorruptTableError: a log file is missing or corrupt.
    """
    streams = [] if slice_.base_file is None else [_base_layers(table, slice_.base_file, HFileReader.scan, False, 0)]
    return [*streams, *(_block_layers(table, one, HFileReader.scan, False, 0) for one in _blocks_of(table, slice_))]


def record_kind(table: MetadataTable, partition: str) -> PartitionKind:
    """The kind of a partition's records: an expression index holds statistics or bloom filters.

    Raises:
        UnsupportedFeatureError: the kind of the partition is unknown.
    """
    kind = kind_of(partition)
    definition = table.definitions.get(partition)
    if kind is PartitionKind.EXPRESSION_INDEX and definition is not None and definition.kind == "bloom_filters":
        return PartitionKind.BLOOM_FILTERS
    return kind


# ---- groups


def _candidate_groups(
    table: MetadataTable, partition: str, data_partition: str | None
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The numbers of the groups that may hold keys."""
    groups = table.groups(partition)
    by_partition = table.is_by_partition(partition)
    if by_partition != (data_partition is not None):
        raise ConfigError(
            f"Keys of the partition {partition} of the metadata table of {table.data_storage.uri} are unique in "
            + (
                "their data partition: pass data_partition."
                if by_partition
                else "the whole table: omit data_partition."
            )
        )
    if data_partition is None:
        return np.arange(len(groups))
    own = group_file_id_prefix(partition, data_partition)
    return np.array(
        [number for number, one in enumerate(groups) if one.file_id.rsplit("-", 2)[0] + "-" == own], np.int64
    )


def _distinct(keys: pa.Array, hashed: pa.Array | None) -> tuple[pa.Array, pa.Array]:
    """The distinct keys without nulls, and the text to hash for each."""
    if keys.null_count:
        hashed = None if hashed is None else hashed.filter(keys.is_valid())
        keys = keys.drop_null()
    again = first_equal(*varlen_buffers(keys)) != np.arange(len(keys))
    if again.any():
        rows = np.flatnonzero(~again)
        hashed = None if hashed is None else hashed.take(pa.array(rows))
        keys = gather_array(keys, rows)
    return keys, keys if hashed is None else hashed


# ---- reading


def _read(
    table: MetadataTable, partition: str, queries: Mapping[int, HFileQuery], keep_blocks: bool = True
) -> pa.Table:
    kind, groups = record_kind(table, partition), table.groups(partition)

    def read_group(number: int) -> pa.Table:
        return fold(kind, list(_layers(table, groups[number], queries[number], keep_blocks)))

    tables = in_threads(read_group, sorted(queries), min(_MAX_THREADS, os.cpu_count() or 1))
    return pa.concat_tables([flat_schema(kind).empty_table(), *tables])


def _layers(table: MetadataTable, slice_: FileSlice, query: HFileQuery, keep_blocks: bool) -> Iterator[Layer]:
    """The entries that the slice's files return, oldest first."""
    if slice_.base_file is not None:
        yield from _base_layers(table, slice_.base_file, query, keep_blocks)
    for block in _blocks_of(table, slice_):
        yield from _block_layers(table, block, query, keep_blocks)


def _base_layers(
    table: MetadataTable, file: BaseFile, query: HFileQuery, keep_blocks: bool, limit: int = _LAYER_BYTES
) -> Iterator[Layer]:
    try:
        with table.storage.open_input(file.path, file.size) as source:
            yield from _hfile_layers(table, source, file.path, query, keep_blocks, limit=limit)
    except FileNotFoundError as error:
        raise FileGoneError(
            f"The metadata table of {table.data_storage.uri}: a base file was cleaned after it was listed. Read again.",
            file.path,
        ) from error


def _blocks_of(table: MetadataTable, slice_: FileSlice) -> Iterable[LogBlock]:
    """The visible blocks of a slice's log files in order of application."""
    blocks = scanned(table.storage, slice_.log_files, lambda log: _checked_blocks(table, log))
    return blocks_in_order(blocks, lambda one: table.is_visible(one.instant))


def _checked_blocks(table: MetadataTable, log: LogFile) -> Iterator[LogBlock]:
    """The blocks of a log file; raises if a required block is missing.

    Since version 8 a visible log file belongs to one completed delta commit, and all its blocks are whole. Before,
    truncated blocks may be left by a failed write: the commits list the instants whose blocks the file must have.
    """
    found: set[str] = set()
    truncated: LogBlock | None = None
    for block in log_blocks(table.storage, log):
        if block.kind is BlockType.CORRUPT:
            truncated = block
        elif HeaderKey.INSTANT_TIME in block.headers:
            found.add(block.instant)
        yield block
    by_write = table.config.layout_version > 1
    if by_write:
        is_lost = truncated is not None or not found
    else:
        others = writes_of(table.storage, table.timeline, log.path, "", besides=found)
        is_lost = truncated is not None and any(True for _ in others)
    if is_lost:
        raise CorruptTableError(
            "Expected whole blocks in a log file of completed delta commits of the metadata table, found "
            f"{'none' if truncated is None else 'a truncated one'}.",
            log.path,
            None if truncated is None else truncated.offset,
        )


def _block_layers(
    table: MetadataTable, block: LogBlock, query: HFileQuery, keep_blocks: bool, limit: int = _LAYER_BYTES
) -> Iterator[Layer]:
    if block.kind is BlockType.DELETE:
        content = read_content(table.storage, block)
        yield Layer(decode_delete_block(content, block.path, block.content_start).keys, None, "", block.path)
    elif block.kind is not BlockType.HFILE_DATA:
        raise CorruptTableError(
            f"Expected HFile and delete blocks in a log file of the metadata table, found {block.kind.name}.",
            block.path,
            block.offset,
        )
    elif block.content_length <= _WHOLE_BYTES:
        # The block cache identifies files by path: the content offset distinguishes the blocks of one log file.
        path = f"{block.path}@{block.content_start}"
        content = read_content(table.storage, block)
        yield from _hfile_layers(table, content, path, query, keep_blocks, block, limit=limit)
    else:
        with table.storage.open_input(block.path) as source:
            yield from _hfile_layers(table, source, block.path, query, keep_blocks, block, block.content_start, limit)


def _hfile_layers(
    table: MetadataTable,
    source: pa.NativeFile | pa.Buffer,
    path: str,
    query: HFileQuery,
    keep_blocks: bool,
    block: LogBlock | None = None,
    offset: int = 0,
    limit: int = _LAYER_BYTES,
) -> Iterator[Layer]:
    """The entries that one HFile returns, in pieces.

    ``source`` is the file, or the content of a log block; the HFile starts at ``offset``. ``block`` is None for a base
    file. A piece ends when its values exceed ``limit`` bytes.
    """
    length = None if block is None else block.content_length
    cache = table.blocks if keep_blocks else None
    with HFileReader.open(source, path, offset, length, cache) as reader:
        schema = (None if block is None else block.headers.get(HeaderKey.SCHEMA)) or reader.schema
        if schema is None:
            raise CorruptTableError("An HFile of the metadata table does not store the schema of its values.", path)
        piece: list[Entries] = []
        size = 0
        for keys, values in query(reader):
            piece.append((keys, values))
            size += values.nbytes
            if size > limit:
                yield _layer(piece, schema, path)
                piece, size = [], 0
        if piece:
            yield _layer(piece, schema, path)


def _layer(piece: Sequence[Entries], schema: str, path: str) -> Layer:
    keys = pa.concat_arrays([keys.cast(pa.string()) for keys, _ in piece])
    return Layer(keys, pa.concat_arrays([values for _, values in piece]), schema, path)


def _lookup_query(keys: pa.Array) -> HFileQuery:
    def run(reader: HFileReader) -> Iterator[Entries]:
        positions, values = reader.lookup(keys)
        yield keys.take(pa.array(positions)), values

    return run


def _prefix_query(prefixes: pa.Array) -> HFileQuery:
    return lambda reader: [reader.prefix(prefixes)]
