"""A bounded cache of decompressed HFile data blocks, shared by readers.

::

    HFileReader --(file, block offset)--> BlockCache --miss--> read, decompress, split into entries --> stored
                                              |                                                          |
                                              +-- evicts the least recently used block above max_bytes --+

The caller creates the cache and passes it to readers. Files are identified by the path given to the reader, and HFiles
never change under their name, so one cache serves one root folder.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.formats.varlen import varlen_buffers
from hudi_fast.kernels.hfile_search import key_heads
from hudi_fast.storage.forks import new_lock

__all__ = ["BlockCache", "BlockEntries"]


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
