"""Records of the metadata table: all of a partition, those of given keys, or those whose keys begin alike.

::

    keys ─► numbers of their groups ─► per group, in threads:
        base HFile, blocks that can hold the keys ─┐
        log blocks that count, in order ───────────┴─► layers ─► fold ─► flat table

Only groups that can hold a key are opened, and of their base files only the blocks that can. What is read twice comes
from the table's memory of blocks. Source: metadata reference 2.3 and 2.8; HoodieBackedTableMetadata, release 1.2.0.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pyarrow as pa

from hudi_fast.errors import ConfigError, CorruptTableError, FileGoneError
from hudi_fast.formats.hfile.reader import HFileReader
from hudi_fast.formats.log.blocks import BlockType, HeaderKey, LogBlock, read_content
from hudi_fast.formats.log.delete_block import decode_delete_block
from hudi_fast.merging.log_scan import blocks_in_order, log_blocks
from hudi_fast.metadata_table.fold import Layer, fold
from hudi_fast.metadata_table.layout import PartitionKind, group_file_id_prefix, group_numbers, kind_of
from hudi_fast.metadata_table.records import flat_schema
from hudi_fast.metadata_table.table import MetadataTable
from hudi_fast.view.file_names import LogFile
from hudi_fast.view.slices import FileSlice
from hudi_fast.view.table_state import read_commit

__all__ = ["log_layers", "lookup", "prefix", "record_kind", "scan"]

Entries = tuple[pa.Array, pa.Array]
Question = Callable[[HFileReader], Iterable[Entries]]
"""What to ask an HFile: keys (binary or string) and values (binary), in any number of pieces."""

_LAYER_BYTES = 128 << 20
_MOST_THREADS = 8
_WHOLE_BYTES = 8 << 20
"""Log blocks up to this size are read at once, of larger ones the ranges that are needed."""


def scan(table: MetadataTable, partition: str, groups: Sequence[int] | None = None) -> pa.Table:
    """All live records of a partition, as the flat table of its kind (:mod:`hudi_fast.metadata_table.records`).

    Args:
        table: the metadata table.
        partition: one that is usable.
        groups: numbers of the file groups to read; None for all.

    Returns:
        Rows by group number, each group's in no particular order.

    Raises:
        CorruptTableError: a file is gone or cannot be understood.
        UnsupportedFeatureError: an unknown kind of partition, or values that are not read.
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
    """The live records of the given keys; keys that are not there bring no rows.

    Args:
        table: the metadata table.
        partition: one that is usable.
        keys: string, in any order; repeated ones count once.
        hashed: string, one for each key: what decides on its group, where that is not the key itself.
        data_partition: the data partition to look in, for a record index that is partitioned.

    Returns:
        As of :func:`scan`.

    Raises:
        CorruptTableError: a file is gone or cannot be understood.
        UnsupportedFeatureError: an unknown kind of partition, or values that are not read.
        ConfigError: a data partition for a partition that is not by data partitions, or none for one that is.
    """
    places = _places(table, partition, data_partition)
    keys, hashed = _distinct(keys, hashed)
    if not len(keys) or not len(places):
        return flat_schema(record_kind(table, partition)).empty_table()
    numbers = places[group_numbers(hashed, len(places))]
    order = np.argsort(numbers, kind="stable")
    bounds = np.flatnonzero(np.diff(numbers[order], prepend=-1))
    ordered = keys.take(pa.array(order))
    questions: dict[int, Question] = {}
    for start, end in zip(bounds, [*bounds[1:], len(order)], strict=True):
        questions[int(numbers[order[start]])] = _asking_for(ordered.slice(start, end - start))
    return _read(table, partition, questions)


def prefix(table: MetadataTable, partition: str, prefixes: Sequence[str]) -> pa.Table:
    """The live records whose keys begin with one of the prefixes.

    Args:
        table: the metadata table.
        partition: one that is usable.
        prefixes: beginnings of keys; for a secondary index, of :func:`hudi_fast.metadata_table.keys.secondary_prefix`.

    Returns:
        As of :func:`scan`.

    Raises:
        CorruptTableError: a file is gone or cannot be understood.
        UnsupportedFeatureError: an unknown kind of partition, or values that are not read.
    """
    wanted = pa.array(sorted(set(prefixes)), pa.string())
    groups = len(table.groups(partition))
    questions: dict[int, Question] = {}
    if table.hashes_secondary_values(partition):
        numbers = group_numbers(wanted, groups)
        for number in np.unique(numbers):
            questions[int(number)] = _asking_for_prefixes(wanted.filter(pa.array(numbers == number)))
    elif len(wanted):
        questions = {number: _asking_for_prefixes(wanted) for number in range(groups)}
    return _read(table, partition, questions)


def log_layers(table: MetadataTable, slice_: FileSlice) -> list[Layer]:
    """All that the log of a slice holds, oldest first, without its base file.

    Raises:
        CorruptTableError: a file is gone or cannot be understood.
    """
    return list(_layers(table, replace(slice_, base_file=None), HFileReader.scan, keep_blocks=False))


def record_kind(table: MetadataTable, partition: str) -> PartitionKind:
    """What the records of a partition are: an expression index holds statistics or bloom filters.

    Raises:
        UnsupportedFeatureError: an unknown kind of partition.
    """
    kind = kind_of(partition)
    definition = table.definitions.get(partition)
    if kind is PartitionKind.EXPRESSION_INDEX and definition is not None and definition.kind == "bloom_filters":
        return PartitionKind.BLOOM_FILTERS
    return kind


# ---- which groups


def _places(
    table: MetadataTable, partition: str, data_partition: str | None
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The numbers of the groups that keys are spread over."""
    groups = table.groups(partition)
    by_partition = table.is_by_partition(partition)
    if by_partition != (data_partition is not None):
        raise ConfigError(
            f"Keys of the partition {partition} of the metadata table of {table.data_storage.uri} are unique in "
            + ("their data partition: say which one to look in." if by_partition else "the whole table: name none.")
        )
    if data_partition is None:
        return np.arange(len(groups))
    own = group_file_id_prefix(partition, data_partition)
    return np.array(
        [number for number, one in enumerate(groups) if one.file_id.rsplit("-", 2)[0] + "-" == own], np.int64
    )


def _distinct(keys: pa.Array, hashed: pa.Array | None) -> tuple[pa.Array, pa.Array]:
    """The keys without nulls, each once, and what is hashed for them."""
    if hashed is None:
        keys = keys.drop_null().unique()
        return keys, keys
    codes = keys.dictionary_encode().indices
    _, first = np.unique(codes.drop_null().to_numpy(), return_index=True)
    rows = pa.array(np.flatnonzero(keys.is_valid().to_numpy(zero_copy_only=False))[first])
    return keys.take(rows), hashed.take(rows)


# ---- reading


def _read(
    table: MetadataTable, partition: str, questions: Mapping[int, Question], keep_blocks: bool = True
) -> pa.Table:
    kind, groups = record_kind(table, partition), table.groups(partition)

    def answer(number: int) -> pa.Table:
        return fold(kind, list(_layers(table, groups[number], questions[number], keep_blocks)))

    numbers = sorted(questions)
    if len(numbers) <= 1:
        tables = [answer(number) for number in numbers]
    else:
        with ThreadPoolExecutor(min(_MOST_THREADS, os.cpu_count() or 1, len(numbers))) as pool:
            tables = list(pool.map(answer, numbers))
    return pa.concat_tables([flat_schema(kind).empty_table(), *tables])


def _layers(table: MetadataTable, slice_: FileSlice, question: Question, keep_blocks: bool) -> Iterator[Layer]:
    """What the slice's files answer, oldest first."""
    if slice_.base_file is not None:
        path = slice_.base_file.path
        try:
            with table.storage.open_input(path) as source:
                yield from _answers(table, source, path, question, keep_blocks)
        except FileNotFoundError as error:
            raise FileGoneError(
                f"The metadata table of {table.data_storage.uri}: a base file is gone since it was opened; it was "
                "cleaned. Read again.",
                path,
            ) from error
    blocks = (block for log in slice_.log_files for block in _sound_blocks(table, log))
    for block in blocks_in_order(blocks, lambda one: table.counts(one.instant)):
        yield from _block_layers(table, block, question, keep_blocks)


def _sound_blocks(table: MetadataTable, log: LogFile) -> Iterator[LogBlock]:
    """The blocks of a log file, none of which may be missing.

    From version 8 on a log file that counts is of one completed delta commit, and every block is whole. Before, blocks
    that are cut may be what a dead writer left: the commits say whose blocks the file must have.
    """
    found: set[str] = set()
    cut: LogBlock | None = None
    for block in log_blocks(table.storage, log):
        if block.kind is BlockType.CORRUPT:
            cut = block
        elif HeaderKey.INSTANT_TIME in block.headers:
            found.add(block.instant)
        yield block
    by_write = table.config.layout_version > 1
    if (by_write and (cut is not None or not found)) or (cut is not None and _lacks_blocks(table, log, found)):
        raise CorruptTableError(
            "Expected whole blocks in a log file of completed delta commits of the metadata table, found "
            f"{'none' if cut is None else 'one that is cut'}.",
            log.path,
            None if cut is None else cut.offset,
        )


def _lacks_blocks(table: MetadataTable, log: LogFile, found: Set[str]) -> bool:
    """Whether a completed delta commit says that it wrote to the log file, and has no block there."""
    for instant in table.timeline.writes():
        if instant.action == "deltacommit" and instant.requested not in found:
            stats = read_commit(table.storage, table.config, instant).write_stats()
            if any(log.path == stat.path for stat in stats):
                return True
    return False


def _block_layers(table: MetadataTable, block: LogBlock, question: Question, keep_blocks: bool) -> Iterator[Layer]:
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
        # The memory of blocks knows files by path: that of the content tells apart the blocks of one log file.
        path = f"{block.path}@{block.content_start}"
        yield from _answers(table, read_content(table.storage, block), path, question, keep_blocks, block)
    else:
        with table.storage.open_input(block.path) as source:
            yield from _answers(table, source, block.path, question, keep_blocks, block, block.content_start)


def _answers(
    table: MetadataTable,
    source: pa.NativeFile | pa.Buffer,
    path: str,
    question: Question,
    keep_blocks: bool,
    block: LogBlock | None = None,
    offset: int = 0,
) -> Iterator[Layer]:
    """What one HFile answers, in pieces of a bounded size.

    Args:
        table: the metadata table.
        source: the file, or the content of a log block.
        path: for messages and the memory of blocks.
        question: what to ask.
        keep_blocks: whether blocks are remembered.
        block: the log block that the HFile is in; None for a base file.
        offset: where the HFile begins in ``source``.
    """
    length = None if block is None else block.content_length
    cache = table.blocks if keep_blocks else None
    with HFileReader.open(source, path, offset, length, cache) as reader:
        schema = (None if block is None else block.headers.get(HeaderKey.SCHEMA)) or reader.schema
        if schema is None:
            raise CorruptTableError("An HFile of the metadata table does not say the schema of its values.", path)
        piece: list[Entries] = []
        size = 0
        for keys, values in question(reader):
            piece.append((keys, values))
            size += values.nbytes
            if size > _LAYER_BYTES:
                yield _layer(piece, schema, path)
                piece, size = [], 0
        if piece:
            yield _layer(piece, schema, path)


def _layer(piece: Sequence[Entries], schema: str, path: str) -> Layer:
    keys = pa.concat_arrays([keys.cast(pa.string()) for keys, _ in piece])
    return Layer(keys, pa.concat_arrays([values for _, values in piece]), schema, path)


def _asking_for(keys: pa.Array) -> Question:
    def ask(reader: HFileReader) -> Iterator[Entries]:
        positions, values = reader.lookup(keys)
        yield keys.take(pa.array(positions)), values

    return ask


def _asking_for_prefixes(prefixes: pa.Array) -> Question:
    return lambda reader: [reader.prefix(prefixes)]
