"""Names for the array types that kernels take."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["Bools", "Bytes", "Int", "Int32s", "Int64s", "Offsets", "UInt64s"]

Int: TypeAlias = int | np.integer[Any]
Bytes: TypeAlias = npt.NDArray[np.uint8]
Bools: TypeAlias = npt.NDArray[np.bool_]
Int32s: TypeAlias = npt.NDArray[np.int32]
Int64s: TypeAlias = npt.NDArray[np.int64]
UInt64s: TypeAlias = npt.NDArray[np.uint64]
Offsets: TypeAlias = Int32s
