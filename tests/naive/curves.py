"""Space-filling curves, sort orders and words of bytes with Python's integers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def z_value(coordinates: list[int]) -> int:
    """The bits of 64-bit coordinates in turns, highest first."""
    texts = [format(value, "064b") for value in coordinates]
    return int("".join("".join(bits) for bits in zip(*texts, strict=True)), 2)


def hilbert_value(coordinates: list[int], bits: int) -> int:
    """The place of a cell on the Hilbert curve through a cube of ``2**bits`` cells a side."""
    cell = list(coordinates)
    side = 1 << (bits - 1)
    while side > 1:
        for axis in range(len(cell)):
            if cell[axis] & side:
                cell[0] ^= side - 1
            else:
                swapped = (cell[0] ^ cell[axis]) & (side - 1)
                cell[0] ^= swapped
                cell[axis] ^= swapped
        side >>= 1
    for axis in range(1, len(cell)):
        cell[axis] ^= cell[axis - 1]
    turned = 0
    side = 1 << (bits - 1)
    while side > 1:
        if cell[-1] & side:
            turned ^= side - 1
        side >>= 1
    texts = [format(value ^ turned, f"0{bits}b") for value in cell]
    return int("".join("".join(one) for one in zip(*texts, strict=True)), 2)


def sorted_rows(keys: list[tuple[int, ...]]) -> list[int]:
    return sorted(range(len(keys)), key=lambda row: keys[row])


def common_prefix(values: list[bytes]) -> int:
    length = min((len(value) for value in values), default=0)
    while any(value[:length] != values[0][:length] for value in values):
        length -= 1
    return length


def byte_word(value: bytes, skip: int) -> tuple[int, int]:
    part = value[skip : skip + 8]
    return int.from_bytes(part.ljust(8, b"\0"), "big"), len(part)


def byte_rows(planes: npt.NDArray[np.uint64], count: int) -> npt.NDArray[np.uint8]:
    """Words in planes (uint64[count * n]) as rows of bytes (uint8[n, 8 * count]) that sort as the words do."""
    words = planes.reshape(count, -1).T.astype(">u8", order="C")
    return words.view(np.uint8).reshape(words.shape[0], 8 * count)
