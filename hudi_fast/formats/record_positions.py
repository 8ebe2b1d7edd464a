"""The header RECORD_POSITIONS of a log block <-> row numbers in the base file."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["decode_positions", "encode_positions"]


def decode_positions(text: str) -> npt.NDArray[np.int64]:
    """Positions, int64[n], ascending."""
    raise NotImplementedError


def encode_positions(positions: npt.NDArray[np.int64]) -> str:
    """Header text for distinct non-negative positions, int64[n]."""
    raise NotImplementedError
