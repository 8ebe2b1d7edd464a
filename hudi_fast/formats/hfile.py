"""HFiles of version 3, as Hudi's log blocks and metadata table hold them."""

from __future__ import annotations

import pyarrow as pa

__all__ = ["read_hfile"]


def read_hfile(content: pa.Buffer, path: str = "<memory>", offset: int = 0) -> tuple[pa.Array, pa.Array]:
    """Keys and values, binary[n] each, in key order."""
    raise NotImplementedError
