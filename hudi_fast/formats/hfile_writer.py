"""Write HFiles that Hudi's own reader and HBase's (Hudi 0.15) both understand: whole ones in memory, or as a stream."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from hudi_fast.formats.bloom_filter import BloomFilter
from hudi_fast.formats.hfile_blocks import Codec
from hudi_fast.formats.log_writer import Part

__all__ = ["HFileWriter", "encode_hfile"]


def encode_hfile(
    keys: pa.Array,
    values: pa.Array,
    schema: str,
    codec: Codec = Codec.GZ,
    block_size: int = 1 << 20,
    bloom: BloomFilter | None = None,
) -> list[Part]:
    """A whole HFile in memory, as parts that follow each other.

    Args:
        keys: string[n] or binary[n], strictly ascending by their bytes, none null.
        values: binary[n], none null.
        schema: Avro JSON of the values.
        codec: GZ or NONE.
        block_size: bytes of entries from which on another data block begins.
        bloom: an empty filter, which is filled and stored (base files of the metadata table:
            ``BloomFilter.create(10000, 1e-9, 100000)``); None: no filter and no range of keys are stored (log blocks).

    Raises:
        InvalidDataError: a key is null, too long, or not above the one before it.
        ConfigError: another codec, or a block size below 1 KiB.
    """
    raise NotImplementedError


class HFileWriter:
    """One HFile as a stream, for base files larger than memory wants; a context manager.

    Args:
        sink: takes the bytes (``write``); stays the caller's, who closes it.
        schema: Avro JSON of the values.
        codec: GZ or NONE.
        block_size: bytes of entries from which on another data block begins.
        bloom: as for :func:`encode_hfile`.

    Attributes:
        entry_count: entries so far.
        size: bytes written so far.
    """

    entry_count: int
    size: int

    def __init__(
        self,
        sink: Any,
        schema: str,
        codec: Codec = Codec.GZ,
        block_size: int = 1 << 20,
        bloom: BloomFilter | None = None,
    ) -> None:
        raise NotImplementedError

    def append(self, keys: pa.Array, values: pa.Array) -> None:
        """Add entries, all of them above those before; arguments and errors as for :func:`encode_hfile`."""
        raise NotImplementedError

    def close(self) -> int:
        """Write what is left, indexes and trailer; returns the size of the file in bytes. Fine if that was done."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
