"""HFiles of a record index: 36-byte keys, 60-byte values, 1 MiB blocks with GZ. One thread.

A lookup has 100 000 random keys of 1 000 000, with all blocks or no blocks in the cache. A point lookup has one key.
Scans and encoding process all entries (117 MB before compression).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hudi_fast.kernels.hfile import find_keys, key_heads

from hudi_fast.formats.hfile.reader import BlockCache, HFileReader
from hudi_fast.formats.hfile.writer import encode_hfile

ENTRIES, ASKED, SMALL = 1_000_000, 100_000, 300


def uuid_keys(rows: int, seed: int) -> pa.Array:
    """Random UUIDs as text, sorted."""
    digits = np.frombuffer(b"0123456789abcdef", np.uint8)
    texts = digits[np.random.default_rng(seed).integers(0, 16, (rows, 36))]
    texts[:, [8, 13, 18, 23]] = ord("-")
    return fixed_size(np.sort(texts.view("S36").ravel()).view(np.uint8), 36)


def fixed_size(data: np.ndarray, width: int) -> pa.Array:
    """A binary array; each value has ``width`` bytes."""
    offsets = np.arange(0, data.size + 1, width, np.int32)
    return pa.Array.from_buffers(pa.binary(), len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(data)])


def record_values(rows: int, seed: int) -> pa.Array:
    """Values of a record index, 60 bytes each: a partition, 16 random bytes of a file id, and an instant."""
    values = np.zeros((rows, 60), np.uint8)
    values[:, 8:18] = np.frombuffer(b"2026/01/02", np.uint8)
    files = np.random.default_rng(seed).integers(0, 256, (1000, 16), np.uint8)
    values[:, 20:36] = files[np.random.default_rng(seed).integers(0, 1000, rows)]
    values[:, 40:46] = 7
    return fixed_size(values.ravel(), 60)


class HFiles:
    def setup(self):
        self.keys, self.values = uuid_keys(ENTRIES, 1), record_values(ENTRIES, 2)
        self.file = pa.py_buffer(b"".join(map(bytes, map(memoryview, encode_hfile(self.keys, self.values, "{}")))))
        dice = np.random.default_rng(3)
        self.asked = self.keys.take(pa.array(dice.permutation(ENTRIES)[:ASKED]))
        self.absent = uuid_keys(ASKED, 4).take(pa.array(dice.permutation(ASKED)))
        self.one = self.asked.slice(7, 1)
        self.warm = self.opened(BlockCache(512 << 20))
        self.warm.lookup(self.asked)
        self.few = self.keys.slice(0, SMALL), self.values.slice(0, SMALL)

    def opened(self, cache=None):
        return HFileReader.open(self.file, "a.hfile", cache=cache)

    def time_look_up_100k_of_1m(self):
        self.warm.lookup(self.asked)

    def time_look_up_100k_absent(self):
        self.warm.lookup(self.absent)

    def time_look_up_100k_cold(self):
        self.opened().lookup(self.asked)

    def time_look_up_one(self):
        self.warm.lookup(self.one)

    def time_prefix(self):
        self.warm.prefix(pa.array(["abc"]))

    def time_open(self):
        self.opened()

    def time_scan_1m(self):
        for _ in self.opened().scan():
            pass

    def time_encode_1m(self):
        encode_hfile(self.keys, self.values, "{}")

    def time_encode_300(self):
        encode_hfile(*self.few, "{}")


class BlockSearch:
    """The search kernel only: 900 keys in a block of 9000 entries."""

    def setup(self):
        keys = uuid_keys(9000, 1)
        self.block = (
            np.frombuffer(keys.buffers()[1], np.int32)[:9001],
            np.frombuffer(keys.buffers()[2], np.uint8),
        )
        self.heads = np.empty(9000, np.uint64)
        self.shared = key_heads(*self.block, self.heads)
        self.rows = np.random.default_rng(2).permutation(9000)[:900]
        self.first, self.end = np.empty(900, np.int64), np.empty(900, np.int64)

    def time_find_900_of_9000(self):
        find_keys(*self.block, self.heads, self.shared, *self.block, self.rows, self.first, self.end)
