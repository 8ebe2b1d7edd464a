"""Read HFiles, by ranges and as a whole.

Read HFiles by ranges: whole files block by block, many keys at once, or all entries with some prefixes.

::

    open     end of the file ─► trailer ─► root index, index of meta blocks, file info        one read, or two
    scan     all data blocks ─► keys and values of each
    lookup   keys ─► block of each by the index ─► required blocks: from the cache, or read, decompressed, cached
    prefix   prefixes ─► blocks of each ─┘              ─► binary search in each block ─► values of the entries found

Files may be larger than memory: a reader holds the indexes, a few MiB of blocks in flight, and the cache.
Source: HFile reference section 1; HFileReaderImpl, Hudi 1.2.0.

The entries of one data block of an HFile, as Arrow arrays in key order.

::

    payload ─► keys, values ─► within the bounds of the index? ─► ascending?
                                                                    by bytes: unchanged
                                                                    by Java's string order: sort by bytes
                                                                    neither: damaged

Searches rely on byte order. Source: HFile reference section 1.5.

A bounded cache of decompressed HFile data blocks, shared by readers.

::

    HFileReader --(file, block offset)--> BlockCache --miss--> read, decompress, split into entries --> stored
                                              |                                                          |
                                              +-- evicts the least recently used block above max_bytes --+

The caller creates the cache and passes it to readers. Files are identified by the path given to the reader, and HFiles
never change under their name, so one cache serves one root folder.

HFiles of version 3: sorted keys and values in blocks, as in Hudi's HFile log blocks and metadata table.

::

    data blocks (leaf index blocks between them) | meta blocks | intermediate index
        | root index | index of meta blocks | file info | trailer
          ^ load-on-open offset                           4096 bytes

    trailer -> root index -> (intermediate -> leaf index, if HBase was the writer) -> data blocks -> entries

Modules that read and write one part each: ``blocks`` (frames), ``codecs`` (compression), ``trailer`` (trailer and file
info), ``index``, ``entries``. ``reader`` (ranged reads, look-ups) and ``writer`` build on them. This module reads a
whole in-memory file in one call, and exports the public names of the package.

Stored checksums are not verified, as in Hudi's own reader. Keys are the contents alone, without HBase's suffix.
Source: HFile reference section 1; HFileReaderImpl, HFileBlock and HFileTrailer, Hudi 1.2.0; files by HBase 2.4 and
Hudi 0.15 and 1.2.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.errors import UnsupportedFeatureError
from hudi_fast.formats.hfile.blocks import (
    DATA,
    FILE_INFO,
    META,
    ROOT_INDEX,
    BlockReference,
    Codec,
    HFileContent,
    HFileSource,
    block_end,
    read_block,
)
from hudi_fast.formats.hfile.layout import (
    TRAILER_SIZE,
    HFileTrailer,
    data_blocks,
    index_keys,
    inner_blocks,
    java_order,
    key_content,
    read_file_info,
    read_root,
    read_trailer,
)
from hudi_fast.formats.varlen import VARLEN, VarlenBuffers, string_array, varlen_buffers
from hudi_fast.kernels.hfile import (
    copy_entries,
    find_keys,
    find_prefixes,
    first_unordered,
    key_heads,
    mark_rare_keys,
    measure_entries,
    route_keys,
)
from hudi_fast.kernels.sorting import group_rows
from hudi_fast.storage.forks import new_lock
from hudi_fast.values import dataclass

__all__ = [
    "BlockCache",
    "BlockEntries",
    "BlockReference",
    "Codec",
    "HFileContent",
    "HFileReader",
    "HFileTrailer",
    "data_blocks",
    "hfile_arrays",
    "ordered_entries",
    "read_block",
    "read_entries",
    "read_hfile",
    "read_trailer",
]


def read_entries(file: HFileContent, offset: int, payload: memoryview) -> tuple[pa.Array, pa.Array]:
    """Keys and values of a data block, binary[n] each, in stored order. ``file`` and ``offset`` are for messages.

    Raises:
        CorruptTableError: an entry is malformed.
    """
    data = np.frombuffer(payload, np.uint8)
    sizes = np.empty(2, np.int64)
    count = int(measure_entries(data, sizes))
    if count < 0:
        raise file.corrupt(f"Expected an entry at byte {-1 - count} of an HFile block, found other bytes.", offset)
    key_offsets, value_offsets = np.empty(count + 1, np.int32), np.empty(count + 1, np.int32)
    keys, values = np.empty(int(sizes[0]), np.uint8), np.empty(int(sizes[1]), np.uint8)
    copy_entries(data, key_offsets, keys, value_offsets, values)
    return string_array(key_offsets, keys, pa.binary()), string_array(value_offsets, values, pa.binary())


def ordered_entries(
    file: HFileContent, offset: int, payload: memoryview, low: bytes, high: bytes | None
) -> tuple[pa.Array, pa.Array]:
    """Keys and values of a data block sorted by the keys' bytes; equal keys keep their stored order.

    ``low`` is the block's key in the index: no key may be below it. ``high`` is the next block's key: no key may be
    above it; None for the last block. ``file`` and ``offset`` are for messages.

    Raises:
        CorruptTableError: an entry is malformed, or the keys contradict the index.
    """
    keys, values = read_entries(file, offset, payload)
    if not len(keys):
        return keys, values
    first, last = keys[0].as_py(), keys[-1].as_py()
    bounds = [low, first, last] if high is None else [low, first, last, high]
    ascends = int(first_unordered(*varlen_buffers(keys), False)) < 0
    if ascends and bounds == sorted(bounds):
        return keys, values
    texts = [low, *keys.to_pylist(), *bounds[3:]]
    if texts != sorted(texts, key=java_order):
        raise file.corrupt("Expected ascending keys in an HFile block, found unsorted keys.", offset)
    order = pc.sort_indices(keys)
    return keys.take(order), values.take(order)


@dataclass(frozen=True, slots=True)
class BlockEntries:
    """The n entries of one data block, in key order; created by :meth:`of`.

    Attributes:
        keys: binary[n], contents without HBase's suffix.
        values: binary[n].
        shared: bytes of the prefix that all keys share.
        heads: uint64[n], the eight bytes after that prefix, most significant first.
    """

    keys: pa.Array
    values: pa.Array
    shared: int
    heads: npt.NDArray[np.uint64]

    @classmethod
    def of(cls, keys: pa.Array, values: pa.Array) -> BlockEntries:
        """Prepare entries in key order for search."""
        heads = np.empty(len(keys), np.uint64)
        return cls(keys, values, int(key_heads(*varlen_buffers(keys), heads)), heads)

    @property
    def nbytes(self) -> int:
        """Memory use in bytes."""
        return int(self.keys.nbytes + self.values.nbytes + self.heads.nbytes)


class BlockCache:
    """A least-recently-used cache of blocks; thread-safe. Two threads may load the same block.

    Args:
        max_bytes: limit for keys and values; a larger block is not cached.
    """

    def __init__(self, max_bytes: int = 256 << 20) -> None:
        self.max_bytes = max_bytes
        self._blocks: OrderedDict[Hashable, BlockEntries] = OrderedDict()
        self._lock = new_lock()
        self._bytes = 0

    @property
    def nbytes(self) -> int:
        """Bytes of the cached blocks."""
        return self._bytes

    def get(self, key: Hashable) -> BlockEntries | None:
        """Return the block and mark it as used; None if it is not cached."""
        with self._lock:
            block = self._blocks.get(key)
            if block is not None:
                self._blocks.move_to_end(key)
            return block

    def put(self, key: Hashable, block: BlockEntries) -> None:
        """Store a block; may evict others."""
        size = block.nbytes
        if size > self.max_bytes:
            return
        with self._lock:
            before = self._blocks.pop(key, None)
            self._bytes += size - (0 if before is None else before.nbytes)
            self._blocks[key] = block
            while self._bytes > self.max_bytes:
                self._bytes -= self._blocks.popitem(last=False)[1].nbytes

    def __len__(self) -> int:
        return len(self._blocks)


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


def read_hfile(content: pa.Buffer, path: str = "<memory>", offset: int = 0) -> tuple[pa.Array, pa.Array]:
    """Keys and values of a whole HFile, binary[n] each, in key order; equal keys keep their stored order.

    ``path`` and ``offset``, the HFile's position in that file, are for messages.

    Raises:
        CorruptTableError: the content is not an HFile, or is damaged.
        UnsupportedFeatureError: the HFile has another version, is compressed with LZO or BZIP2, or has more than 2 GiB
            of keys or values (use :func:`hfile_arrays`).
    """
    pairs = list(hfile_arrays(content, path, offset))
    if not pairs:
        return pa.array([], pa.binary()), pa.array([], pa.binary())
    if len(pairs) == 1:
        return pairs[0]
    try:
        return pa.concat_arrays([keys for keys, _ in pairs]), pa.concat_arrays([values for _, values in pairs])
    except pa.ArrowInvalid as error:
        raise UnsupportedFeatureError(
            f"The HFile holds more than an Arrow array can (2 GiB): {error} [file {path}, byte {offset}]"
        ) from error


def hfile_arrays(content: pa.Buffer, path: str = "<memory>", offset: int = 0) -> Iterator[tuple[pa.Array, pa.Array]]:
    """Keys and values of each data block, in key order; arguments and errors as for :func:`read_hfile`."""
    return HFileReader(HFileSource(content, path, 0, content.size, offset), None).scan()
