"""Data blocks of HFiles that have been read once: a bounded memory of decompressed blocks for readers to share.

::

    HFileReader --(file, block offset)--> BlockCache --miss--> read, decompress, split into entries --> kept
                                              |                                                          |
                                              +-- the block used longest ago goes when the bytes are too many

The cache is a value that whoever opens readers makes and hands in. It knows files by the path that the reader was
given, and HFiles never change below their name; so one cache serves one root folder.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.formats.varlen import varlen_buffers
from hudi_fast.kernels.hfile_search import key_heads

__all__ = ["BlockCache", "BlockEntries"]


@dataclass(frozen=True, slots=True)
class BlockEntries:
    """The n entries of one data block, in key order; made by :meth:`of`.

    Attributes:
        keys: binary[n], contents without HBase's suffix.
        values: binary[n].
        shared: bytes with which all keys begin.
        heads: uint64[n], the eight bytes behind these, most significant first.
    """

    keys: pa.Array
    values: pa.Array
    shared: int
    heads: npt.NDArray[np.uint64]

    @classmethod
    def of(cls, keys: pa.Array, values: pa.Array) -> BlockEntries:
        """Entries in key order, made ready for being searched."""
        heads = np.empty(len(keys), np.uint64)
        return cls(keys, values, int(key_heads(*varlen_buffers(keys), heads)), heads)

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        return int(self.keys.nbytes + self.values.nbytes + self.heads.nbytes)


class BlockCache:
    """Blocks by any key, at most ``max_bytes`` of them; thread-safe, and two threads may load the same block.

    Args:
        max_bytes: of keys and values; a larger block is not kept.
    """

    def __init__(self, max_bytes: int = 256 << 20) -> None:
        self.max_bytes = max_bytes
        self._blocks: OrderedDict[Hashable, BlockEntries] = OrderedDict()
        self._lock = threading.Lock()
        self._bytes = 0

    @property
    def nbytes(self) -> int:
        """Bytes of the blocks that are kept."""
        return self._bytes

    def get(self, key: Hashable) -> BlockEntries | None:
        """The block, which now is the one used last; None when it is not kept."""
        with self._lock:
            block = self._blocks.get(key)
            if block is not None:
                self._blocks.move_to_end(key)
            return block

    def put(self, key: Hashable, block: BlockEntries) -> None:
        """Keep a block; others may go for it."""
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
