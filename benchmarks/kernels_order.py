"""Space-filling curves, radix sort, and sort keys of strings. One thread."""

from __future__ import annotations

import numpy as np
from hudi_fast.kernels.sorting import byte_words, common_prefix, hilbert_values, radix_order, z_values

from . import counting_keys

ROWS = 1_000_000


class Curves:
    params = (2, 3, 4)
    param_names = ("columns",)

    def setup(self, columns):
        random = np.random.default_rng(7)
        self.planes = random.integers(0, 2**63, columns * ROWS).astype(np.uint64) << np.uint64(1)
        self.places = z_values(self.planes, columns)
        hilbert_values(self.planes[:columns].copy(), columns)
        radix_order(self.planes[:columns].copy(), columns)

    def time_z_values(self, columns):
        z_values(self.planes, columns)

    def time_hilbert_values_of_32_bits(self, columns):
        hilbert_values(self.planes, columns, 32)

    def time_radix_order(self, columns):
        radix_order(self.places, columns)

    def time_lexsort_instead(self, columns):
        np.lexsort(self.places.reshape(columns, -1)[::-1])

    def peakmem_radix_order(self, columns):
        radix_order(self.places, columns)


class Texts:
    def setup(self):
        self.offsets, self.data = counting_keys(ROWS)
        self.rows = np.random.default_rng(7).permutation(ROWS)
        self.time_common_prefix()
        self.time_byte_words()

    def time_common_prefix(self):
        common_prefix(self.offsets, self.data)

    def time_byte_words(self):
        byte_words(self.offsets, self.data, self.rows, 4)
