"""Gather, interleave, splice, grouping and sequence numbers. One thread."""

from __future__ import annotations

import numpy as np
from hudi_fast.kernels.gather import (
    gather_varlen,
    splice_fixed,
    splice_varlen,
    take_two_bits,
    take_two_fixed,
    take_two_varlen,
)
from hudi_fast.kernels.hudi_texts import format_sequence_numbers
from hudi_fast.kernels.sorting import group_rows

from . import random_keys

PREFIX = np.frombuffer(b"20240101120000000_1_", np.uint8)


class Rows:
    params = (10_000, 1_000_000)
    param_names = ("rows",)

    def setup(self, rows):
        random = np.random.default_rng(5)
        self.a, self.b = random_keys(rows), random_keys(rows, seed=6)
        self.order = random.permutation(rows)
        numbers = np.arange(rows)
        self.selectors = np.where(random.random(rows) < 0.1, ~numbers, numbers).astype(np.int32)
        self.changed = np.flatnonzero(random.random(rows) < 0.01)
        self.sources = np.arange(self.changed.size)
        self.bits = np.full((rows + 7) // 8, 0x5A, np.uint8)
        self.codes = random.integers(0, 20, rows).astype(np.int32)
        for name in dir(self):
            if name.startswith("time_"):
                getattr(self, name)(rows)

    def time_gather_varlen(self, rows):
        gather_varlen(*self.a, self.order)

    def time_take_two_varlen(self, rows):
        take_two_varlen(*self.a, *self.b, self.selectors)

    def time_take_two_fixed(self, rows):
        take_two_fixed(self.order, self.order, self.selectors)

    def time_splice_varlen(self, rows):
        splice_varlen(*self.a, *self.b, self.changed, self.sources)

    def time_splice_fixed(self, rows):
        splice_fixed(self.order, self.order, self.changed, self.sources)

    def time_take_two_bits(self, rows):
        take_two_bits(self.bits, 0, rows, None, 0, rows, self.selectors)

    def time_group_rows(self, rows):
        group_rows(self.codes, 20)

    def time_format_sequence_numbers(self, rows):
        format_sequence_numbers(PREFIX, 0, rows)

    def peakmem_gather_varlen(self, rows):
        gather_varlen(*self.a, self.order)
