"""Read HFiles by ranges: whole files block by block, many keys at once, or all entries with some prefixes.

::

    open     end of the file ─► trailer ─► root index, index of meta blocks, file info        one read, or two
    scan     all data blocks ─► keys and values of each
    lookup   keys ─► block of each by the index ─► required blocks: from the cache, or read, decompressed, cached
    prefix   prefixes ─► blocks of each ─┘              ─► binary search in each block ─► values of the entries found

Files may be larger than memory: a reader holds the indexes, a few MiB of blocks in flight, and the cache.
Source: HFile reference section 1; HFileReaderImpl, Hudi 1.2.0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.formats.hfile.blocks import (
    DATA,
    FILE_INFO,
    META,
    ROOT_INDEX,
    BlockReference,
    HFileContent,
    block_end,
    read_block,
)
from hudi_fast.formats.hfile.cache import BlockCache, BlockEntries
from hudi_fast.formats.hfile.entries import ordered_entries
from hudi_fast.formats.hfile.index import index_keys, inner_blocks, key_content, read_root
from hudi_fast.formats.hfile.source import HFileSource
from hudi_fast.formats.hfile.trailer import TRAILER_SIZE, read_file_info, read_trailer
from hudi_fast.formats.varlen import VARLEN, VarlenBuffers, varlen_buffers
from hudi_fast.kernels.grouping import group_rows
from hudi_fast.kernels.hfile_search import find_keys, find_prefixes, first_unordered, mark_rare_keys, route_keys

__all__ = ["HFileReader"]

Rows: TypeAlias = npt.NDArray[np.int64]

_LAST_KEY = "hfile.LASTKEY"


class HFileReader:
    """An open HFile; created by :meth:`open`. Thread-safe.

    All entries with equal keys, which few files have, are returned in stored order.

    Attributes:
        path: the file.
        entry_count: entries of the file.
        file_info: values by name, as written (``schema``, ``minRecordKey``, ``hfile.LASTKEY`` ...).
        schema: Avro JSON of the values; None if the file does not store it (log blocks have it in their header, too).
    """

    entry_count: int
    file_info: Mapping[str, bytes]
    schema: str | None

    def __init__(self, source: HFileSource, cache: BlockCache | None) -> None:
        self._source, self._cache = source, cache
        self.path = source.path
        self._trailer = trailer = read_trailer(source.end)
        self.entry_count = trailer.entry_count
        self._body = source.length - TRAILER_SIZE
        start = trailer.load_on_open_offset
        part = source.read(start, self._body)
        codec = trailer.codec
        self._root = read_root(part, start, read_block(part, start, None, ROOT_INDEX, codec), trailer.index_count)
        meta_at = block_end(part, start)
        metas = read_root(part, meta_at, read_block(part, meta_at, None, ROOT_INDEX, codec), trailer.meta_count)
        self._metas = {reference.key: reference for reference in metas}
        info_at = block_end(part, meta_at)
        self.file_info = read_file_info(part, info_at, read_block(part, info_at, None, FILE_INFO, codec))
        schema = self.file_info.get("schema")
        self.schema = None if schema is None else schema.decode("utf-8", "replace")
        if bool(self._root) != bool(self.entry_count):
            raise part.corrupt(f"Expected data blocks for {self.entry_count} entries, found {len(self._root)}.", start)
        self._found_blocks: _DataBlocks | None = None

    @classmethod
    def open(
        cls,
        source: pa.NativeFile | pa.Buffer,
        path: str,
        offset: int = 0,
        length: int | None = None,
        cache: BlockCache | None = None,
    ) -> HFileReader:
        """Read the trailer and the indexes.

        Args:
            source: the file (for random access), or its content; the caller closes it.
            path: path of the file below the root of the table, for messages and the cache.
            offset: byte position of the HFile in ``source`` (log blocks).
            length: bytes of the HFile; None: up to the end of ``source``.
            cache: stores data blocks for later calls of this and other readers; None: no caching.

        Raises:
            CorruptTableError: the source is not an HFile, or is damaged.
            UnsupportedFeatureError: the version is not 3, or the file is compressed with LZO or BZIP2.
        """
        return cls(HFileSource(source, path, offset, length), cache)

    def scan(self) -> Iterator[tuple[pa.Array, pa.Array]]:
        """Keys and values, binary[n] each, per data block in key order; does not fill the cache.

        The order is byte order. If Hudi 1.x has sorted keys with characters above U+DFFF, the blocks of the file are in
        Java's string order.

        Raises:
            CorruptTableError: a block is damaged, or entries are missing.
        """
        left = self.entry_count
        for block in self._load(range(len(self._blocks.references)), keep=False):
            left -= len(block.keys)
            yield block.keys, block.values
        if left:
            raise self._source.end.corrupt(
                f"Expected {self.entry_count} entries in an HFile, found {self.entry_count - left}.", self._body
            )

    def lookup(self, keys: pa.Array) -> tuple[npt.NDArray[np.int64], pa.Array]:
        """Find the entries of some keys.

        Args:
            keys: string[n] or binary[n], in any order; nulls are not found.

        Returns:
            Positions in ``keys``, int64[hits], ascending (repeated if the file has several entries of a key), and the
            entries' values, binary[hits].

        Raises:
            CorruptTableError: a block that was read is damaged.
            pa.ArrowInvalid: the values exceed 2 GiB; pass fewer keys.
        """
        positions, keys = _present(keys)
        asked, values = [], []
        for block, wanted, first, end in self._matches(keys, prefix=False):
            counts = end - first
            if (counts > 1).any():
                wanted, first = np.repeat(wanted, counts), _spread(first, counts)
            else:
                hits = counts > 0
                wanted, first = wanted[hits], first[hits]
            asked.append(wanted)
            values.append(block.values.take(pa.array(first)))
        if not asked:
            return np.empty(0, np.int64), pa.array([], pa.binary())
        rows, found = np.concatenate(asked), pa.concat_arrays(values)
        if (np.diff(rows) < 0).any():
            order = np.argsort(rows, kind="stable")
            rows, found = rows[order], found.take(pa.array(order))
        return rows if positions is None else positions[rows], found

    def prefix(self, prefixes: pa.Array) -> tuple[pa.Array, pa.Array]:
        """Find all entries whose key begins with one of ``prefixes`` (string or binary, any order).

        Returns:
            Keys and values, binary[hits] each, in key order; each entry once, even if it matches several prefixes.

        Raises:
            CorruptTableError: a block that was read is damaged.
            pa.ArrowInvalid: the keys or the values exceed 2 GiB; pass fewer prefixes.
        """
        keys, values = [], []
        for block, _, first, end in self._matches(_shortest(prefixes), prefix=True):
            rows = pa.array(_spread(first, end - first))
            keys.append(block.keys.take(rows))
            values.append(block.values.take(rows))
        if not keys:
            return pa.array([], pa.binary()), pa.array([], pa.binary())
        found, contents = pa.concat_arrays(keys), pa.concat_arrays(values)
        if int(first_unordered(*varlen_buffers(found), False)) >= 0:  # the blocks are in Java's string order
            order = pc.sort_indices(found)
            found, contents = found.take(order), contents.take(order)
        return found, contents

    def meta(self, name: str) -> bytes | None:
        """The content of a meta block, for example ``bloomFilter``; None if there is no such block."""
        reference = self._metas.get(name.encode())
        if reference is None:
            return None
        part = self._source.read(reference.offset, min(reference.end, self._body))
        return bytes(read_block(part, reference.offset, reference.size, META, self._trailer.codec))

    def close(self) -> None:
        """Release the source without closing it; later reads fail."""
        self._source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # ---- internals

    @property
    def _blocks(self) -> _DataBlocks:
        """The data blocks; lower levels of the index are read on first use."""
        if self._found_blocks is None:
            references = inner_blocks(self._root, self._trailer, self._source.parts)
            keys = index_keys(self._source.end, self._trailer.load_on_open_offset, references)
            last = key_content(self.file_info.get(_LAST_KEY, b""))
            routing = keys if last is None else pa.concat_arrays([keys, pa.array([last], pa.binary())])
            self._found_blocks = _DataBlocks(references, keys.to_pylist(), varlen_buffers(routing), last is not None)
        return self._found_blocks

    def _load(self, numbers: Sequence[int], keep: bool) -> Iterator[BlockEntries]:
        """The data blocks with these ascending numbers, in order."""
        blocks = self._blocks
        places = [(self.path, self._source.message_offset, blocks.references[number].offset) for number in numbers]
        cache = self._cache
        known = [None if cache is None else cache.get(place) for place in places]
        missing = [blocks.references[number] for number, block in zip(numbers, known, strict=True) if block is None]
        parts = self._source.parts(missing)
        for number, place, block in zip(numbers, places, known, strict=True):
            if block is None:
                block = self._decode(next(parts), number)
                if keep and cache is not None:
                    cache.put(place, block)
            yield block

    def _decode(self, part: HFileContent, number: int) -> BlockEntries:
        blocks = self._blocks
        reference = blocks.references[number]
        payload = read_block(part, reference.offset, reference.size, DATA, self._trailer.codec)
        high = blocks.keys[number + 1] if number + 1 < len(blocks.keys) else None
        return BlockEntries.of(*ordered_entries(part, reference.offset, payload, blocks.keys[number], high))

    def _matches(self, wanted: pa.Array, prefix: bool) -> Iterator[tuple[BlockEntries, Rows, Rows, Rows]]:
        """Blocks in key order, each with rows of ``wanted``, the first entry of each, and the entry after its last."""
        if not len(wanted) or not self.entry_count:
            return
        blocks, (offsets, data) = self._blocks, varlen_buffers(wanted)
        rows, numbers = _route(blocks, offsets, data, prefix)
        order, bounds = group_rows(numbers, len(blocks.references))
        touched = np.flatnonzero(np.diff(bounds)).tolist()
        for number, block in zip(touched, self._load(touched, keep=True), strict=True):
            mine = rows[order[bounds[number] : bounds[number + 1]]]
            first, end = np.empty(len(mine), np.int64), np.empty(len(mine), np.int64)
            if prefix:
                find_prefixes(*varlen_buffers(block.keys), offsets, data, mine, first, end)
            else:
                find_keys(*varlen_buffers(block.keys), block.heads, block.shared, offsets, data, mine, first, end)
            yield block, mine, first, end


@dataclass(frozen=True, slots=True)
class _DataBlocks:
    """The data blocks of a file and their keys; ``routing`` ends with the last key of the file if it is known."""

    references: Sequence[BlockReference]
    keys: Sequence[bytes]
    routing: VarlenBuffers
    has_last: bool


def _route(
    blocks: _DataBlocks, offsets: npt.NDArray[np.int32], data: npt.NDArray[np.uint8], prefix: bool
) -> tuple[Rows, npt.NDArray[np.int32]]:
    """Pairs of a requested row and a block that can hold it, ordered by row."""
    count = len(offsets) - 1
    first, last = np.empty(count, np.int32), np.empty(count, np.int32)
    route_keys(*blocks.routing, blocks.has_last, prefix, False, offsets, data, first, last)
    rows, numbers = _spread_blocks(first, last)
    rare = np.empty(count, np.bool_)
    if len(blocks.references) == 1 or not mark_rare_keys(offsets, data, rare):
        return rows, numbers
    keys = VarlenBuffers(blocks.routing.offsets[: len(blocks.references) + 1], blocks.routing.data)
    route_keys(*keys, False, prefix, True, offsets, data, first, last)
    others, elsewhere = _spread_blocks(first, np.where(rare, last, first - 1))
    pairs = np.unique(np.concatenate([rows, others]) * len(blocks.references) + np.concatenate([numbers, elsewhere]))
    rows, found = np.divmod(pairs, len(blocks.references))
    return rows, found.astype(np.int32)


def _spread_blocks(first: npt.NDArray[np.int32], last: npt.NDArray[np.int32]) -> tuple[Rows, npt.NDArray[np.int32]]:
    counts = np.maximum(last.astype(np.int64) - first + 1, 0)
    return np.repeat(np.arange(len(first)), counts), _spread(first, counts).astype(np.int32)


def _spread(first: npt.NDArray[Any], counts: Rows) -> Rows:
    """``counts[i]`` consecutive numbers from ``first[i]`` on, for each i."""
    ends = np.cumsum(counts)
    spread: Rows = np.arange(ends[-1] if len(ends) else 0) + np.repeat(first - (ends - counts), counts)
    return spread


def _present(keys: pa.Array) -> tuple[Rows | None, pa.Array]:
    """The non-null keys and their positions; None for all."""
    keys = keys if keys.type in VARLEN else keys.cast(pa.binary())
    if not keys.null_count:
        return None, keys
    positions = np.flatnonzero(keys.is_valid().to_numpy(zero_copy_only=False))
    return positions, keys.drop_null()


def _shortest(prefixes: pa.Array) -> pa.Array:
    """The ascending prefixes that do not begin with another prefix."""
    kept: list[bytes] = []
    for prefix in sorted(set(prefixes.drop_null().cast(pa.binary()).to_pylist())):
        if not kept or not prefix.startswith(kept[-1]):
            kept.append(prefix)
    return pa.array(kept, pa.binary())
