"""Date strings of fixed width, parsed by column.

::

    "2024-01-15 11:45:00"    bytes as a matrix   ──► digits of each field ──► milliseconds of local time
    "2024-01-16 09:30:00"    one row per string      checked against its range

Most date strings are written with all their digits (``yyyy-MM-dd HH:mm:ss``): then each field has the same position in
every string. All other strings, including invalid ones, are left to :func:`hudi_fast.keys.joda_pattern.parse_time`,
which also reports errors; results are the same.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.keys.joda_pattern import Pattern

__all__ = ["parse_fixed"]

_WIDTHS = {"y": 4, "Y": 4, "M": 2, "d": 2, "H": 2, "m": 2, "s": 2}
_LIMITS = {"y": (2, 9998), "M": (1, 12), "d": (1, 31), "H": (0, 23), "m": (0, 59), "s": (0, 59)}
_STEPS = {"H": 3_600_000, "m": 60_000, "s": 1_000}
_OFFSET_WIDTHS = (1, 5, 6)  # Z, +hhmm, +hh:mm
_DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class _Layout:
    """Positions of the fields in a string of ``width`` bytes."""

    width: int
    fields: tuple[tuple[str, int, int], ...]
    literals: tuple[tuple[int, bytes], ...]


def parse_fixed(
    pattern: Pattern, texts: pa.Array
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Parse the strings that have every digit of the pattern.

    Args:
        pattern: the expected form.
        texts: ``pa.string()`` or ``pa.large_string()`` array.

    Returns:
        ``(parsed, local_ms, offset_ms)``, each of the array's length: whether this function parsed the string; its
        local time in milliseconds since 1970-01-01 local; its offset from UTC in milliseconds, 0 if the pattern has
        none.
    """
    parsed = np.zeros(len(texts), dtype=np.bool_)
    local = np.zeros(len(texts), dtype=np.int64)
    offset = np.zeros(len(texts), dtype=np.int64)
    zoned = any(letter == "Z" for letter, _ in pattern.tokens)
    lengths = pc.fill_null(pc.binary_length(texts), -1).to_numpy(zero_copy_only=False)
    for zone_width in _OFFSET_WIDTHS if zoned else (0,):
        layout = _layout(pattern, zone_width)
        rows = np.flatnonzero(lengths == layout.width) if layout is not None else np.empty(0, np.int64)
        if layout is None or not len(rows):
            continue
        matrix = _matrix(texts if len(rows) == len(texts) else texts.take(pa.array(rows)), layout.width)
        fine, millis, away = _parse_matrix(matrix, layout)
        parsed[rows], local[rows], offset[rows] = fine, millis, away
    return parsed, local, offset


def _layout(pattern: Pattern, zone_width: int) -> _Layout | None:
    """Positions of fields and literal text; None if the pattern has no fixed width."""
    position = 0
    fields: list[tuple[str, int, int]] = []
    literals: list[tuple[int, bytes]] = []
    for letter, size in pattern.tokens:
        if isinstance(size, str):
            # A digit after a year would be parsed as part of the year.
            if not size.isascii() or size[:1].isdecimal():
                return None
            literals.append((position, size.encode()))
            position += len(size)
            continue
        width = zone_width if letter == "Z" else size
        if letter not in "ZS" and _WIDTHS.get(letter) != size:
            return None
        fields.append(("y" if letter == "Y" else letter, position, width))
        position += width
    names = [name for name, _, _ in fields]
    # The offset must come last: following digits could be parsed as part of it.
    if len(set(names)) < len(names) or ("Z" in names and names[-1] != "Z"):
        return None
    return _Layout(position, tuple(fields), tuple(literals))


def _matrix(texts: pa.Array, width: int) -> npt.NDArray[np.uint8]:
    """uint8[n, width] of strings of exactly ``width`` bytes."""
    _, ends, data = texts.buffers()
    offsets = np.frombuffer(ends, dtype=np.int64 if pa.types.is_large_string(texts.type) else np.int32)
    start = int(offsets[texts.offset])
    content = np.frombuffer(data, dtype=np.uint8) if data is not None else np.empty(0, np.uint8)
    return content[start : start + len(texts) * width].reshape(len(texts), width)


def _parse_matrix(
    matrix: npt.NDArray[np.uint8], layout: _Layout
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    fine = np.ones(len(matrix), dtype=np.bool_)
    for place, text in layout.literals:
        for index, byte in enumerate(text):
            fine &= matrix[:, place + index] == byte
    offset = np.zeros(len(matrix), dtype=np.int64)
    values: dict[str, npt.NDArray[np.int64]] = {}
    for name, place, width in layout.fields:
        part = matrix[:, place : place + width]
        if name == "Z":
            good, offset = _offset(part)
        else:
            good, values[name] = _digits(part)
            low, high = _LIMITS.get(name, (0, 10**18))
            good &= (values[name] >= low) & (values[name] <= high)
            if name == "S":
                values[name] = values[name] // 10 ** (width - 3) if width > 3 else values[name] * 10 ** (3 - width)
        fine &= good
    dated = not values.keys().isdisjoint("Md")
    days, real = _days(values, 2000 if dated else 1970, len(matrix))
    millis = days * _DAY_MS + values.get("S", 0)
    for name, step in _STEPS.items():
        millis = millis + values.get(name, 0) * step
    return fine & real, millis, offset


def _digits(part: npt.NDArray[np.uint8]) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
    good = np.ones(len(part), dtype=np.bool_)
    number = np.zeros(len(part), dtype=np.int64)
    for index in range(part.shape[1]):
        digit = part[:, index] - np.uint8(ord("0"))  # wraps around below "0", so one comparison is enough
        good &= digit <= 9
        number = number * 10 + digit
    return good, number


def _offset(part: npt.NDArray[np.uint8]) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
    """Offsets written ``Z``, ``+hhmm`` or ``+hh:mm``, in milliseconds."""
    first = part[:, 0]
    width = part.shape[1]
    if width == 1:
        return (first == ord("Z")) | (first == ord("z")), np.zeros(len(part), dtype=np.int64)
    good_hours, hours = _digits(part[:, 1:3])
    good_minutes, minutes = _digits(part[:, width - 2 :])
    good = good_hours & good_minutes & (hours <= 23) & (minutes <= 59) & ((first == ord("+")) | (first == ord("-")))
    if width == 6:
        good &= part[:, 3] == ord(":")
    millis = (hours * 60 + minutes) * 60_000
    return good, np.where(first == ord("-"), -millis, millis)


def _days(
    values: dict[str, npt.NDArray[np.int64]], default_year: int, rows: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Days since 1970-01-01, and whether the month has that day."""
    year = values.get("y", np.full(rows, default_year, dtype=np.int64))
    month = values.get("M", np.ones(rows, dtype=np.int64))
    day = values.get("d", np.ones(rows, dtype=np.int64))
    months = (year - 1970) * 12 + month - 1
    first = months.astype("M8[M]").astype("M8[D]").astype(np.int64)
    following = (months + 1).astype("M8[M]").astype("M8[D]").astype(np.int64)
    return first + day - 1, day <= following - first
