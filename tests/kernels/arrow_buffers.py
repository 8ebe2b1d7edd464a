"""Lists of values as the buffers that kernels take, and back; with what real arrays do to them."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

# ASCII, and characters of 2, 3 and 4 bytes in UTF-8.
TEXTS = st.text(st.one_of(st.characters(max_codepoint=127), st.sampled_from("éß日ﬀ￮😀𐍈")), max_size=40)
KEYS = st.one_of(st.binary(max_size=45), TEXTS.map(str.encode), st.integers(0, 9).map(lambda n: f"key-{n}".encode()))


def buffers(values: list[bytes], before: bytes = b"", after: bytes = b"") -> tuple[np.ndarray, np.ndarray]:
    """Read-only offsets and data; ``before`` and ``after`` are what a slice leaves around its values."""
    offsets = np.cumsum([len(before), *map(len, values)], dtype=np.int64).astype(np.int32)
    offsets.flags.writeable = False
    return offsets, np.frombuffer(before + b"".join(values) + after, np.uint8)


def values_of(offsets: np.ndarray, data: np.ndarray) -> list[bytes]:
    raw = data.tobytes()
    return [raw[start:end] for start, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)]
