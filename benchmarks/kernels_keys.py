"""Key tables, hashes, and selection of the winning row per key. One thread."""

from __future__ import annotations

import numpy as np
from hudi_fast.kernels.gather import gather_varlen
from hudi_fast.kernels.hashes import string_hash_codes
from hudi_fast.kernels.key_table import KeyTable, build_key_table, hash_keys, pick_winners

from . import random_keys


class Keys:
    params = (10_000, 1_000_000)
    param_names = ("rows",)

    def setup(self, rows):
        self.keys = random_keys(rows)
        self.table = KeyTable.build(*self.keys)
        order = np.random.default_rng(3).permutation(rows)
        self.shuffled = gather_varlen(*self.keys, order)
        self.absent = random_keys(rows, seed=4)
        self.rank = order.astype(np.int64)
        self.hashes = np.empty(rows, np.uint64)
        self.codes = np.empty(rows, np.int32)
        for name in dir(self):
            if name.startswith("time_"):
                getattr(self, name)(rows)

    def time_hash(self, rows):
        hash_keys(*self.keys, self.hashes)

    def time_java_hash(self, rows):
        string_hash_codes(*self.keys, self.codes)

    def time_build(self, rows):
        build_key_table(*self.keys)

    def time_probe_hits(self, rows):
        self.table.probe(*self.shuffled)

    def time_probe_misses(self, rows):
        self.table.probe(*self.absent)

    def time_pick_winners(self, rows):
        pick_winners(*self.keys, self.rank)

    def peakmem_build(self, rows):
        build_key_table(*self.keys)


class FilteredKeys:
    """Lookups in a table with a filter, as writes make them."""

    params = (10_000, 1_000_000)
    param_names = ("rows",)

    def setup(self, rows):
        keys = random_keys(rows)
        self.table = KeyTable.build(*keys, mostly_absent=True)
        self.shuffled = gather_varlen(*keys, np.random.default_rng(3).permutation(rows))
        self.absent = random_keys(rows, seed=4)
        self.time_probe_hits(rows)

    def time_probe_hits(self, rows):
        self.table.probe(*self.shuffled)

    def time_probe_misses(self, rows):
        self.table.probe(*self.absent)
