"""Micro-benchmarks for asv, and their shared seeded data.

Run in the current environment with ``asv run --environment existing:.venv/bin/python --set-commit-hash HEAD``, or
against another commit with ``asv continuous``. Compare ratios between commits on one machine, not single numbers.
"""

from __future__ import annotations

import numpy as np

__all__ = ["counting_keys", "random_keys"]


def random_keys(rows: int, width: int = 36, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Offsets int32[rows + 1] and data uint8[] of random keys, ``width`` bytes each."""
    offsets = (np.arange(rows + 1) * width).astype(np.int32)
    data = np.random.default_rng(seed).integers(48, 102, int(offsets[-1])).astype(np.uint8)
    return offsets, data


def counting_keys(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Offsets and data of ``key-0``, ``key-1``, ...: short keys of different lengths."""
    texts = [b"key-%d" % number for number in range(rows)]
    offsets = np.cumsum([0, *map(len, texts)]).astype(np.int32)
    return offsets, np.frombuffer(b"".join(texts), np.uint8)
