"""Read entries of delete blocks of versions 1 and 2, Java objects that Kryo serialised, as Arrow columns.

::

    version 1   HoodieKey[]      record keys and partition paths
    version 2   DeleteRecord[]   the same, and an ordering value of one of the classes below

    class                                            Arrow
    Integer, Long, Float, Double, Boolean            int32, int64, float32, float64, bool
    String, org.apache.avro.util.Utf8                string
    java.math.BigDecimal                             decimal128(38, largest scale)
    java.time.LocalDate, java.sql.Timestamp          date32, timestamp[ms, UTC]

A stream names its classes, so it could name any Java class. This reader knows only the classes above; it creates no
objects, and ``kernels.kryo_deletes`` checks every byte. Apache Hudi 1.2.0 still reads both versions, except texts that
are Utf8; no release since 0.13 writes them. Source: HoodieDeleteBlock, DeleteRecord, HoodieKey and SerializationUtils,
Hudi 0.5 to 1.2.0; Kryo 4.0.2.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.errors import HudiError
from hudi_fast.formats.log.delete_ordering import BlockPlace, checked, validity_of
from hudi_fast.formats.varlen import string_array
from hudi_fast.kernels import kryo_deletes as kernels
from hudi_fast.values import dataclass

__all__ = ["read_kryo_deletes"]

Columns: TypeAlias = tuple[pa.Array, pa.Array, tuple[pa.Array, ...], npt.NDArray[np.bool_]]

_ARRAY = 97  # the code of the array's own class, which no entry may have
_KEYS = ("org.apache.hudi.common.model.HoodieKey", "com.uber.hoodie.common.model.HoodieKey")
_RECORD = "org.apache.hudi.common.model.DeleteRecord"
_ROOTS = {1: [f"[L{name};" for name in _KEYS], 2: [f"[L{_RECORD};"]}
_CLASSES = {
    **dict.fromkeys(_KEYS, kernels.KEY),
    _RECORD: kernels.RECORD,
    "org.apache.avro.util.Utf8": kernels.UTF8,
    "java.math.BigDecimal": kernels.DECIMAL,
    "java.time.LocalDate": kernels.LOCAL_DATE,
    "java.sql.Timestamp": kernels.TIMESTAMP,
}
_CODES = np.array(list(_CLASSES.values()), np.int32)
_TEXTS = np.frombuffer("".join(_CLASSES).encode(), np.uint8)
_TEXT_OFFSETS = np.cumsum([0, *(len(name) for name in _CLASSES)]).astype(np.int32)
_BUILT_IN = ("int", "String", "float", "boolean", "byte", "char", "short", "long", "double", "void", "Utf8")

_NUMBERS: dict[int, pa.DataType] = {
    kernels.INT: pa.int32(),
    kernels.LONG: pa.int64(),
    kernels.FLOAT: pa.float32(),
    kernels.DOUBLE: pa.float64(),
    kernels.BOOLEAN: pa.bool_(),
    kernels.LOCAL_DATE: pa.date32(),
    kernels.TIMESTAMP: pa.timestamp("ms", tz="UTC"),
}
_TEXT_KINDS = (kernels.STRING, kernels.UTF8, kernels.UTF8_BYTES)
_ENTRY_BYTES = 3  # minimum bytes of an entry: class, name, reference to an earlier entry
_ENTRY_OBJECTS = 7  # maximum objects in an entry
# A reference of few bytes repeats a whole string. More text than this is refused before memory is allocated.
_MAX_TEXT, _MAX_RATIO = 32 << 20, 100
_MAX_OFFSET = 2**31 - 1


def read_kryo_deletes(data: npt.NDArray[np.uint8], version: int, place: BlockPlace) -> Columns:
    """Record keys, partition paths, ordering columns and default flags of n entries, as in ``DeleteRecords``.

    Args:
        data: uint8[], the stream.
        version: version of the block, 1 or 2.
        place: position of the stream, for messages.

    Raises:
        CorruptTableError: the bytes are not such a stream.
        UnsupportedFeatureError: an object has another class, or ordering values have different classes.
    """
    count, start = _root(data, version, place)
    # Avro 1.10 added a field to Utf8, and the stream does not store its Avro version. Decoding with the wrong version
    # does not end where the stream ends.
    entries, problem = _walk(data, version, count, start, has_hash=False)
    if problem is not None and kernels.UTF8 in entries.kind:
        others, second = _walk(data, version, count, start, has_hash=True)
        if second is None or second[1] > problem[1]:
            entries, problem = others, second
    if problem is not None:
        raise _refusal(data, version, problem, place)
    return _columns(data, entries, place)


@dataclass(frozen=True, slots=True)
class _Entries:
    """The arrays that ``walk_entries`` fills for n entries."""

    key_at: npt.NDArray[np.int64]
    partition_at: npt.NDArray[np.int64]
    kind: npt.NDArray[np.int32]
    value_at: npt.NDArray[np.int64]
    value_size: npt.NDArray[np.int64]


def _walk(
    data: npt.NDArray[np.uint8], version: int, count: int, start: int, has_hash: bool
) -> tuple[_Entries, npt.NDArray[np.int64] | None]:
    """The entries; and None, or the kernel's ``problem`` for malformed bytes."""
    entries = _Entries(
        np.empty(count, np.int64),
        np.empty(count, np.int64),
        np.full(count, kernels.NO_CLASS, np.int32),
        np.empty(count, np.int64),
        np.empty(count, np.int64),
    )
    names = np.full(len(_CLASSES) + 2, _ARRAY, np.int64)
    names[0] = 1
    objects = min(_ENTRY_OBJECTS * count, data.size) + 1
    problem = np.zeros(3, np.int64)
    end = kernels.walk_entries(
        data,
        start,
        version == 1,
        has_hash,
        _TEXT_OFFSETS,
        _TEXTS,
        _CODES,
        names,
        np.empty(objects, np.uint8),
        np.empty(objects, np.int32),
        entries.key_at,
        entries.partition_at,
        entries.kind,
        entries.value_at,
        entries.value_size,
        problem,
    )
    if end == data.size:
        return entries, None
    if end >= 0:
        problem[:] = kernels.MALFORMED, end, 0
    return entries, problem


def _refusal(data: npt.NDArray[np.uint8], version: int, problem: npt.NDArray[np.int64], place: BlockPlace) -> HudiError:
    reason, at, code = problem.tolist()
    if reason == kernels.MALFORMED:
        return place.corrupt(f"Expected an entry of a delete block of version {version}, found other bytes.", at)
    if reason == kernels.UNKNOWN_CLASS:
        name = repr(_text(data, at) or "a malformed name")
    elif code >= len(_BUILT_IN) and code not in _CODES:
        name = f"number {code - kernels.NO_SUCH_CLASS}"
    else:
        name = repr(next((name for name, known in _CLASSES.items() if known == code), None) or _BUILT_IN[code])
    return place.unsupported(
        f"Delete blocks of version {version} hold Java objects of few classes; found {name} at byte {at} of the "
        f"entries. Compact the file group with Apache Hudi, if that class is one of an ordering value."
    )


# ---- the array


def _root(data: npt.NDArray[np.uint8], version: int, place: BlockPlace) -> tuple[int, int]:
    """Number of entries, and position of the first entry."""
    kind, at = _number(data, 0)
    number, at = _number(data, at)
    name = _text(data, at) if (kind, number) == (1, 0) else ""
    if not name:
        raise place.corrupt(f"Expected an array of Java objects in a delete block of version {version}.")
    if name not in _ROOTS[version]:
        raise place.unsupported(
            f"Expected {_ROOTS[version][0]} in a delete block of version {version}, found an object of class {name!r}."
        )
    reference, at = _number(data, at + len(name))
    held, at = _number(data, at)
    if reference != 1 or held < 1 or held - 1 > (data.size - at) // _ENTRY_BYTES:
        raise place.corrupt(f"Expected a number of deletes that {data.size} bytes can hold, found {held - 1}.", at)
    return held - 1, at


def _number(data: npt.NDArray[np.uint8], at: int) -> tuple[int, int]:
    """A number of up to five bytes and the position after it; -1 if it is cut off."""
    value = 0
    for i in range(5):
        if at + i >= data.size:
            break
        value |= (int(data[at + i]) & 0x7F) << 7 * i
        if data[at + i] < 0x80:
            return value, at + i + 1
    return -1, data.size


def _text(data: npt.NDArray[np.uint8], at: int) -> str:
    """The class name at ``at``, up to 300 characters; empty if there is none."""
    raw = data[at : at + 300].tobytes()
    if raw and raw[0] >= 0x80:  # 64 characters or more: length + 1, then the characters
        size, start = raw[0] & 0x3F, 1
        if raw[0] & 0x40 and len(raw) > 1:
            size, start = size | (raw[1] & 0x7F) << 6, 2
        return raw[start : start + max(size - 1, 0)].decode("ascii", "replace")
    end = next((i for i, byte in enumerate(raw) if byte >= 0x80), -1)
    return "" if end < 0 else (raw[:end] + bytes([raw[end] & 0x7F])).decode("ascii", "replace")


# ---- columns


def _columns(data: npt.NDArray[np.uint8], entries: _Entries, place: BlockPlace) -> Columns:
    every = np.ones(len(entries.key_at), np.bool_)
    kind = entries.kind
    is_default = kind == kernels.NO_CLASS
    zero = kind == kernels.INT
    if zero.any():
        numbers = np.empty(kind.size, np.int64)
        kernels.read_kryo_numbers(data, entries.value_at, zero, kernels.INT, numbers)
        is_default |= zero & (numbers == 0)
    keys = _strings(data, entries.key_at, every, "record keys", place)
    partitions = _strings(data, entries.partition_at, entries.partition_at >= 0, "partition paths", place)
    kinds = np.unique(kind[~is_default]).tolist()
    if not kinds:
        return keys, partitions, (), is_default
    if len(kinds) > 1 and not all(each in _TEXT_KINDS for each in kinds):
        raise place.unsupported(f"Deletes with ordering values of different classes ({_listed(kinds)}) in one block")
    return keys, partitions, (_ordering(data, entries, kinds, ~is_default, place),), is_default


def _listed(kinds: list[int]) -> str:
    names = {code: name for name, code in reversed(_CLASSES.items())}
    return ", ".join(names.get(kind) or _BUILT_IN[kind] for kind in kinds)


def _ordering(
    data: npt.NDArray[np.uint8],
    entries: _Entries,
    kinds: list[int],
    present: npt.NDArray[np.bool_],
    place: BlockPlace,
) -> pa.Array:
    if kinds[0] in _TEXT_KINDS:
        texts = _strings(data, entries.value_at, present & (entries.kind == kernels.STRING), "ordering values", place)
        if kinds == [kernels.STRING]:
            return texts
        return pc.coalesce(_spans(data, entries, present & (entries.kind != kernels.STRING), place), texts)
    validity, nulls = validity_of(present)
    if kinds[0] == kernels.DECIMAL:
        return _decimals(data, entries, present, place)
    numbers = np.empty(present.size, np.int64)
    bad = int(kernels.read_kryo_numbers(data, entries.value_at, present, kinds[0], numbers))
    if bad >= 0:
        raise place.corrupt("Expected a date as ordering value.", int(entries.value_at[bad]))
    kind = _NUMBERS[kinds[0]]
    if pa.types.is_boolean(kind):
        bits = pa.py_buffer(np.packbits(numbers != 0, bitorder="little"))
        return pa.Array.from_buffers(kind, len(numbers), [validity, bits], nulls)
    if kind.bit_width == 32:
        items: npt.NDArray[np.generic] = numbers.astype(np.uint32) if kind == pa.float32() else numbers.astype(np.int32)
        if kind == pa.date32() and not np.array_equal(items, numbers):
            raise place.corrupt("Expected a date as ordering value, found a year out of range.")
        return pa.Array.from_buffers(kind, len(numbers), [validity, pa.py_buffer(items)], nulls)
    return pa.Array.from_buffers(kind, len(numbers), [validity, pa.py_buffer(numbers)], nulls)


def _strings(
    data: npt.NDArray[np.uint8],
    at: npt.NDArray[np.int64],
    present: npt.NDArray[np.bool_],
    what: str,
    place: BlockPlace,
) -> pa.Array:
    offsets = np.empty(at.size + 1, np.int32)
    size = int(kernels.measure_strings(data, at, present, _limit(data), offsets))
    values = np.empty(_within(size, what, place), np.uint8)
    kernels.copy_strings(data, at, present, offsets, values)
    validity, nulls = validity_of(present)
    return checked(string_array(offsets, values, pa.string(), validity, nulls), what, place)


def _spans(
    data: npt.NDArray[np.uint8], entries: _Entries, present: npt.NDArray[np.bool_], place: BlockPlace
) -> pa.Array:
    """Texts of Utf8 objects, which are UTF-8 in the stream."""
    offsets = np.empty(present.size + 1, np.int32)
    size = int(kernels.measure_spans(entries.value_size, present, _limit(data), offsets))
    values = np.empty(_within(size, "ordering values", place), np.uint8)
    kernels.copy_spans(data, entries.value_at, present, offsets, values)
    validity, nulls = validity_of(present)
    return checked(string_array(offsets, values, pa.string(), validity, nulls), "ordering values", place)


def _limit(data: npt.NDArray[np.uint8]) -> int:
    return min(_MAX_TEXT + _MAX_RATIO * data.size, _MAX_OFFSET)


def _within(size: int, what: str, place: BlockPlace) -> int:
    if size < 0:
        raise place.unsupported(f"The {what} of a delete block become too large: references repeat long texts.")
    return size


def _decimals(
    data: npt.NDArray[np.uint8], entries: _Entries, present: npt.NDArray[np.bool_], place: BlockPlace
) -> pa.Array:
    values: list[Decimal | None] = [None] * present.size
    for row in np.flatnonzero(present).tolist():
        start, size = int(entries.value_at[row]), int(entries.value_size[row])
        bits, _ = _number(data, start + size)
        scale = (bits >> 1) ^ -(bits & 1)
        unscaled = int.from_bytes(data[start : start + size].tobytes(), "big", signed=True)
        digits = tuple(int(digit) for digit in str(abs(unscaled))) if size <= 16 else ()
        if not digits or not 0 <= scale <= 38 or len(digits) > 38:
            raise place.unsupported(f"A delete has a decimal of {size} bytes and scale {scale} as ordering value")
        values[row] = Decimal((int(unscaled < 0), digits, -scale))
    scale = max(-int(value.as_tuple().exponent) for value in values if value is not None)
    try:
        return pa.array(values, pa.decimal128(38, scale))
    except pa.ArrowInvalid as error:
        raise place.unsupported(f"Deletes have decimals of more than 38 digits as ordering values: {error}") from error
