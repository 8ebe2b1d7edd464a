"""Write HFiles for both Hudi's own reader and HBase's reader (Hudi 0.15), in memory or as a stream.

::

    keys, values ─► checks ─► encoded into a payload ─► full? ─► DATA block ─► sink
                      │                                            reference ─┐
                      └► bloom filter ─► META block ─┐                        │
    close:  [META block] | root index ◄──────────────┼────────────────────────┘
            | index of meta blocks ◄─────────────────┘ | file info | trailer

The index has one level. Readers depend on two details: HBase's reader requires HBase's suffix on keys in the index and
on the last key; Hudi's own reader requires that no block has more than four bytes of checksums (see ``hfile.blocks``).
Source: HFile reference section 1; HoodieAvroHFileWriter and HFileWriterImpl, Hudi 1.2.0.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.errors import ConfigError, InvalidDataError
from hudi_fast.formats.bloom_filter import BloomFilter
from hudi_fast.formats.hfile.blocks import DATA, FILE_INFO, META, ROOT_INDEX, BlockReference, Codec, encode_block
from hudi_fast.formats.hfile.layout import HFileTrailer, encode_file_info, encode_root, encode_trailer, full_key
from hudi_fast.formats.log.blocks import Part
from hudi_fast.formats.varlen import VARLEN, VarlenBuffers, varlen_buffers
from hudi_fast.kernels.hfile import first_unordered, write_entries

__all__ = ["HFileWriter", "Sink", "encode_hfile"]

_MAX_KEY_BYTES = 2**15 - 1
_MAX_BLOCK = 1 << 30
_AROUND_ENTRY = 21  # bytes of an entry besides the key's content and the value
_BLOOM_BLOCK = "bloomFilter"


class Sink(Protocol):
    """The target of a writer, for example ``pa.NativeFile``."""

    def write(self, part: Any, /) -> Any:
        """Accept the next bytes: contiguous, with the buffer protocol, and not modified later."""


def encode_hfile(
    keys: pa.Array,
    values: pa.Array,
    schema: str,
    codec: Codec = Codec.GZ,
    block_size: int = 1 << 20,
    bloom: BloomFilter | None = None,
) -> list[Part]:
    """Encode a whole HFile in memory, as consecutive parts.

    Args:
        keys: string[n] or binary[n], strictly ascending by their bytes, without nulls.
        values: binary[n], without nulls.
        schema: Avro JSON of the values.
        codec: GZ or NONE.
        block_size: bytes of entries at which a new data block begins.
        bloom: an empty filter, which is filled and stored with the smallest and the largest key (base files of the
            metadata table: ``BloomFilter.create(10000, 1e-9, 100000)``); None: omit filter and keys (log blocks).

    Raises:
        InvalidDataError: a key is null, too long, or not above the previous key; a value is null.
        ConfigError: the codec is another one, or the block size is outside 1 byte to 1 GiB.
    """
    parts = _Parts()
    writer = HFileWriter(parts, schema, codec, block_size, bloom)
    writer.append(keys, values)
    writer.close()
    return parts.parts


class HFileWriter:
    """Streams one HFile, for base files too large for memory; a context manager.

    Args:
        sink: receives the bytes; the caller closes it.
        schema: Avro JSON of the values; empty for values that have their own schemas.
        codec: GZ or NONE.
        block_size: bytes of entries at which a new data block begins; a larger entry has a block of its own.
        bloom: as for :func:`encode_hfile`.
        info: additional entries of the file info.

    Attributes:
        entry_count: entries so far.
        size: bytes written so far.

    Raises:
        ConfigError: the codec is another one, or the block size is outside 1 byte to 1 GiB.
    """

    def __init__(
        self,
        sink: Sink,
        schema: str,
        codec: Codec = Codec.GZ,
        block_size: int = 1 << 20,
        bloom: BloomFilter | None = None,
        info: Mapping[str, bytes] | None = None,
    ) -> None:
        if codec not in (Codec.GZ, Codec.NONE):
            raise ConfigError(f"HFiles are written with GZ or NONE (hoodie.hfile.compression.algorithm), not {codec}.")
        if not 1 <= block_size <= _MAX_BLOCK:
            raise ConfigError(f"Blocks of HFiles have 1 byte to 1 GiB (hoodie.hfile.block.size), not {block_size}.")
        self.entry_count = 0
        self.size = 0
        self._sink, self._schema, self._codec, self._bloom = sink, schema, codec, bloom
        self._block_size = block_size
        self._more_info = dict(info or {})
        self._payload = np.empty(block_size, np.uint8)
        self._filled = np.zeros(1, np.int64)
        self._first_of_block = b""
        self._blocks: list[BlockReference] = []
        self._key_bytes = self._value_bytes = self._data_bytes = 0
        self._smallest: bytes | None = None
        self._largest = b""
        self._closed = False

    def append(self, keys: pa.Array, values: pa.Array) -> None:
        """Add entries whose keys are above all previous keys; adds nothing on error.

        Args:
            keys: string[n] or binary[n], strictly ascending by their bytes, without nulls.
            values: binary[n], without nulls.

        Raises:
            InvalidDataError: a key is null, too long, or not above the previous key; a value is null.
        """
        keys, values = _plain(keys, "key"), _plain(values, "value")
        if len(keys) != len(values):
            raise InvalidDataError(f"An HFile has as many values as keys; found {len(values)} and {len(keys)}.")
        if not len(keys):
            return
        stored, contents = varlen_buffers(keys), varlen_buffers(values)
        self._check(stored)
        if self._bloom is not None:
            self._bloom.add(keys)
        if self._smallest is None:
            self._smallest = _value(stored, 0)
        self._largest = _value(stored, len(keys) - 1)
        self._add_entries(stored, contents)
        self.entry_count += len(keys)
        self._key_bytes += int(stored.offsets[-1] - stored.offsets[0])
        self._value_bytes += int(contents.offsets[-1] - contents.offsets[0])

    def close(self) -> int:
        """Write remaining entries, indexes and trailer; return the size of the file in bytes. Idempotent."""
        if self._closed:
            return self.size
        self._closed = True
        self._end_block()
        metas = []
        if self._bloom is not None:
            text = self._bloom.to_base64().encode("ascii")
            metas.append(self._write(META, text, -1, _BLOOM_BLOCK.encode()))
        index = encode_root(self._blocks)
        root = self._write(ROOT_INDEX, index, -1)
        meta_index = self._write(ROOT_INDEX, encode_root(metas), root.offset)
        info = self._write(FILE_INFO, encode_file_info(self._file_info()), -1)
        assert meta_index.end == info.offset  # readers expect no gap between them
        trailer = HFileTrailer(root.offset, len(self._blocks), 1, self.entry_count, self._codec, len(metas))
        ends = [block.offset for block in (*self._blocks[:1], *self._blocks[-1:])] or [-1, -1]
        self._put(encode_trailer(trailer, info.offset, len(index), self._data_bytes, ends[0], ends[-1]))
        return self.size

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()

    # ---- internals

    def _check(self, keys: VarlenBuffers) -> None:
        sizes = np.diff(keys.offsets)
        if int(sizes.max()) > _MAX_KEY_BYTES:
            row = int(sizes.argmax())
            raise InvalidDataError(
                f"Keys of HFiles have at most {_MAX_KEY_BYTES} bytes; found one of {sizes[row]}, which begins with "
                f"{_text(_value(keys, row)[:100])}."
            )
        row = int(first_unordered(*keys, True))
        if row < 0 and self._smallest is not None and _value(keys, 0) <= self._largest:
            row = 0
        if row >= 0:
            before = self._largest if row == 0 else _value(keys, row - 1)
            raise InvalidDataError(
                "Keys of an HFile must ascend strictly by their bytes; found "
                f"{_text(_value(keys, row))} after {_text(before)}."
            )

    def _add_entries(self, keys: VarlenBuffers, values: VarlenBuffers) -> None:
        row, rows = 0, len(keys.offsets) - 1
        while row < rows:
            if not self._filled[0]:
                self._first_of_block = _value(keys, row)
                self._payload = self._room_for(keys, values, row)
            row = int(write_entries(*keys, *values, row, self._payload, self._filled))
            if row < rows:
                self._end_block()

    def _room_for(self, keys: VarlenBuffers, values: VarlenBuffers, row: int) -> npt.NDArray[np.uint8]:
        """A payload for a block that begins with the entry ``row``; never a buffer that a part still refers to."""
        size = int(keys.offsets[row + 1]) - int(keys.offsets[row]) + _AROUND_ENTRY
        size = max(size + int(values.offsets[row + 1]) - int(values.offsets[row]), self._block_size)
        reusable = self._codec == Codec.GZ and len(self._payload) == size
        return self._payload if reusable else np.empty(size, np.uint8)

    def _end_block(self) -> None:
        size = int(self._filled[0])
        if size:
            previous = self._blocks[-1].offset if self._blocks else -1
            key = full_key(self._first_of_block)
            self._blocks.append(self._write(DATA, self._payload[:size], previous, key))
            self._data_bytes += size
            self._filled[0] = 0

    def _write(self, magic: bytes, payload: Any, previous: int, key: bytes = b"") -> BlockReference:
        parts, size = encode_block(magic, payload, self._codec, previous)
        reference = BlockReference(self.size, size, key)
        for part in parts:
            self._put(part)
        return reference

    def _put(self, part: Any) -> None:
        self._sink.write(part)
        self.size += memoryview(part).nbytes

    def _file_info(self) -> dict[str, bytes]:
        count = max(self.entry_count, 1)
        overhead = len(full_key(b"")) if self.entry_count else 0
        info = {
            "KEY_VALUE_VERSION": struct.pack(">i", 1),
            "MAX_MEMSTORE_TS_KEY": bytes(8),
            "hfile.AVG_KEY_LEN": struct.pack(">i", self._key_bytes // count + overhead),
            "hfile.AVG_VALUE_LEN": struct.pack(">i", self._value_bytes // count),
            "hfile.CREATE_TIME_TS": bytes(8),
            **({"schema": self._schema.encode()} if self._schema else {}),
            **self._more_info,
        }
        if self._smallest is not None:  # HBase's reader fails on an empty key
            info["hfile.LASTKEY"] = full_key(self._largest)
        if self._bloom is not None:
            info["bloomFilterTypeCode"] = self._bloom.type_code.encode()
            info["minRecordKey"], info["maxRecordKey"] = self._smallest or b"", self._largest
        return info


class _Parts:
    """A sink that stores its parts."""

    def __init__(self) -> None:
        self.parts: list[Part] = []

    def write(self, part: Part, /) -> None:
        self.parts.append(part)


def _plain(array: pa.Array, name: str) -> pa.Array:
    if array.null_count:
        row = array.is_valid().index(pa.scalar(False)).as_py()
        raise InvalidDataError(f"An HFile has no null {name}s; found one in row {row} of {len(array)}.")
    return array if array.type in VARLEN else array.cast(pa.binary())


def _value(buffers: VarlenBuffers, row: int) -> bytes:
    return buffers.data[buffers.offsets[row] : buffers.offsets[row + 1]].tobytes()


def _text(key: bytes) -> str:
    return repr(key.decode("utf-8", "backslashreplace"))
