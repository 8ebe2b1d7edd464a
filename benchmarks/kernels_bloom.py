"""Bloom filter kernels with Hudi's default filter: 60 000 entries at 1e-9. One thread."""

from __future__ import annotations

import numpy as np
from hudi_fast.kernels.bloom import bloom_add, bloom_probe

from . import counting_keys, random_keys

BIT_COUNT, HASH_COUNT, ENTRIES = 2_587_966, 30, 60_000


class Bloom:
    params = ("36 bytes", "counting")
    param_names = ("keys",)

    def setup(self, kind):
        make = random_keys if kind == "36 bytes" else counting_keys
        self.keys = make(ENTRIES)
        self.absent = random_keys(4 * ENTRIES, seed=2)
        self.bits = np.zeros((BIT_COUNT + 7) // 8, np.uint8)
        self.out = np.empty(4 * ENTRIES, np.uint8)
        bloom_add(*self.keys, self.bits, BIT_COUNT, HASH_COUNT)
        bloom_probe(*self.keys, self.bits, BIT_COUNT, HASH_COUNT, self.out)

    def time_add_60k_keys(self, kind):
        bloom_add(*self.keys, self.bits, BIT_COUNT, HASH_COUNT)

    def time_probe_60k_hits(self, kind):
        bloom_probe(*self.keys, self.bits, BIT_COUNT, HASH_COUNT, self.out)

    def time_probe_240k_misses(self, kind):
        bloom_probe(*self.absent, self.bits, BIT_COUNT, HASH_COUNT, self.out)
