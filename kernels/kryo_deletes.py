"""Entries of delete blocks that Kryo serialised (versions 1 and 2): object streams to columns.

::

    walk_entries      checks every byte; per entry: positions of key, partition path and ordering value
    measure_strings + copy_strings, measure_spans + copy_spans, read_kryo_numbers
                      one column of values of one kind

The stream has the format of Kryo 4 with references and without registered classes (except Utf8, in Hudi 0.12)::

    class      varint: 0 null | 1, number of the name, the name where it is new | 2 + id of a built-in class
    reference  varint: 0 null | 1, then the object | 2 + number of an earlier object
    entry      class DeleteRecord, reference: (class HoodieKey, reference: (reference: partition path, reference: key),
               class of the ordering value, the value, after a reference unless it is a number or a boolean)
    string     ASCII of 2 and more characters, the last byte with its high bit | length + 1 with the high bit, then
               UTF-16 units of 1 to 3 bytes each

Entries of version 1 are HoodieKeys. Only these classes are read. Counts in the data are never trusted: an entry takes
at least two bytes, an object at least one, so every loop ends with the bytes. A reference is accepted only if it leads
to a finished value of the expected kind. Source: HoodieDeleteBlock and SerializationUtils, Hudi 0.5 to 0.12; Kryo
4.0.2.

Shared arguments: ``data`` uint8[], the stream; ``at`` int64[n], positions of values in it; ``present`` bool[n], which
rows have a value.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._arrays import Bools, Bytes, Int, Int32s, Int64s, Offsets
from ._bytes import copy_bytes, load_u32, load_u64, unfold_sign
from ._declared import helper
from ._kernel import kernel

__all__ = [
    "copy_spans",
    "copy_strings",
    "measure_spans",
    "measure_strings",
    "read_kryo_numbers",
    "walk_entries",
]

# Classes: ids of built-in classes, and numbers of named classes (see `formats.log.kryo_deletes`).
INT, STRING, FLOAT, BOOLEAN, LONG, DOUBLE = 0, 1, 2, 3, 7, 8
UTF8_BYTES = 10  # Utf8 in releases that register it: only its bytes
_LAST_BUILT_IN = 10
KEY, RECORD, UTF8, DECIMAL, LOCAL_DATE, TIMESTAMP = 16, 17, 18, 19, 20, 21
NO_CLASS = -1
NO_SUCH_CLASS = 1000  # added to an id that no class has, in `problem`
_BYTE_ARRAY = 5  # occurs only inside Utf8 objects, which do not store its class

# Reasons to stop, in the first item of `problem`; then come the position, and the class of WRONG_CLASS.
MALFORMED = 1
UNKNOWN_CLASS = 2
WRONG_CLASS = 3

_HIGH_BITS = np.uint64(0x8080808080808080)


@helper
def _varint(data: Bytes, at: Int, limit: Int) -> Any:
    """(value, next position) of the number of up to ``limit`` (5 or 9) bytes; the position is -1 if it is cut off."""
    bits = np.uint64(0)
    shift = np.uint64(0)
    end = min(np.int64(data.size), at + limit)
    while at < end:
        byte = np.uint64(data[at])
        at += 1
        if shift == np.uint64(56):  # the ninth byte of a long has eight bits
            return np.int64(bits | (byte << shift)), np.int64(at)
        bits |= (byte & np.uint64(0x7F)) << shift
        if byte < np.uint64(0x80):
            return np.int64(bits), np.int64(at)
        shift += np.uint64(7)
    return np.int64(0), np.int64(-1)


@helper
def _units(data: Bytes, at: Int) -> Any:
    """(UTF-16 units, position of the first) of the string at ``at``; -1 units for ASCII, position -1 if malformed."""
    if at >= data.size:
        return np.int64(0), np.int64(-1)
    byte = np.int64(data[at])
    if byte < 0x80:
        return np.int64(-1), np.int64(at)
    at += 1
    units = byte & 0x3F
    if byte & 0x40:
        shift = 6
        while True:
            if at >= data.size or shift > 27:
                return np.int64(0), np.int64(-1)
            byte = np.int64(data[at])
            at += 1
            units |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
    # 0 means null, which never occurs here; a unit takes at least one byte
    if units == 0 or units - 1 > data.size - at:
        return np.int64(0), np.int64(-1)
    return np.int64(units - 1), np.int64(at)


@helper
def _unit(data: Bytes, at: Int) -> Any:
    """(UTF-16 unit, next position) at ``at``; the position is -1 if it is malformed."""
    if at >= data.size:
        return np.int64(0), np.int64(-1)
    byte = np.int64(data[at])
    if byte < 0x80:
        return byte, np.int64(at + 1)
    if byte >> 5 == 6 and at + 1 < data.size:
        return (byte & 0x1F) << 6 | (np.int64(data[at + 1]) & 0x3F), np.int64(at + 2)
    if byte >> 4 == 14 and at + 2 < data.size:
        high = (byte & 0x0F) << 12 | (np.int64(data[at + 1]) & 0x3F) << 6
        return high | (np.int64(data[at + 2]) & 0x3F), np.int64(at + 3)
    return np.int64(0), np.int64(-1)


@helper
def _ascii_end(data: Bytes, at: Int) -> Any:
    """Position after the ASCII string at ``at``; -1 if it is cut off."""
    end = np.int64(data.size)
    while at + 8 <= end and (load_u64(data, at) & _HIGH_BITS) == np.uint64(0):
        at += 8
    while at < end:
        at += 1
        if data[at - 1] >= 0x80:
            return np.int64(at)
    return np.int64(-1)


@helper
def _after_string(data: Bytes, at: Int) -> Any:
    """Position after the string at ``at``; -1 if it is malformed."""
    units, at = _units(data, at)
    if at < 0:
        return np.int64(-1)
    if units < 0:
        return _ascii_end(data, at)
    for _ in range(units):
        _, at = _unit(data, at)
        if at < 0:
            return np.int64(-1)
    return np.int64(at)


@helper
def _class(data: Bytes, at: Int, offsets: Offsets, texts: Bytes, codes: Int32s, names: Int64s, problem: Int64s) -> Any:
    """(class, next position) at ``at``; if the class is unknown, the position is -1 and ``problem`` is filled.

    ``names[0]`` is the number of names so far, and ``names[1 + i]`` the class of name ``i``.
    """
    start = np.int64(at)
    number, at = _varint(data, at, 5)
    problem[0], problem[1] = MALFORMED, start
    if at < 0:
        return np.int64(NO_CLASS), np.int64(-1)
    if number - 2 > _LAST_BUILT_IN:
        problem[0], problem[2] = WRONG_CLASS, NO_SUCH_CLASS + min(number - 2, NO_SUCH_CLASS)
        return np.int64(NO_CLASS), np.int64(-1)
    if number != 1:
        return np.int64(number - 2 if number else NO_CLASS), at
    name, at = _varint(data, at, 5)
    if at < 0 or name > names[0]:
        return np.int64(NO_CLASS), np.int64(-1)
    if name < names[0]:
        return names[1 + name], at
    after = _after_string(data, at)
    if after < 0:
        return np.int64(NO_CLASS), np.int64(-1)
    for i in range(codes.size):
        length = np.int64(offsets[i + 1] - offsets[i])
        if length == after - at and names[0] + 1 < names.size:
            same = data[after - 1] == texts[offsets[i + 1] - 1] | 0x80
            for j in range(length - 1):
                same = same and data[at + j] == texts[offsets[i] + j]
            if same:
                names[0] += 1
                names[names[0]] = codes[i]
                return np.int64(codes[i]), after
    # Kryo does not store longer names as ASCII, and no known class has such a name
    problem[0], problem[1] = UNKNOWN_CLASS, at
    return np.int64(NO_CLASS), np.int64(-1)


@helper
def _object(data: Bytes, at: Int, kind: Int, count: Int, kinds: Bytes, places: Int32s) -> Any:
    """(place of an earlier object, next position) of the reference at ``at``.

    The place is -1 for a new object, which follows, and -2 for null. The position is -1 if the reference is cut off,
    leads to no earlier object, or leads to an object of another kind.
    """
    number, at = _varint(data, at, 5)
    if at < 0 or number - 2 >= count:
        return np.int64(-2), np.int64(-1)
    if number < 2:
        return np.int64(number - 2), at
    if kinds[number - 2] != kind:
        return np.int64(-2), np.int64(-1)
    return np.int64(places[number - 2]), at


@helper
def _string(data: Bytes, at: Int, count: Int, kinds: Bytes, places: Int32s) -> Any:
    """(place of the string or -1 for null, next position, objects) of the nullable string at ``at``; position -1 if
    it is malformed."""
    place, at = _object(data, at, STRING, count, kinds, places)
    if at < 0 or place != -1:
        return max(place, np.int64(-1)), at, np.int64(count)
    kinds[count], places[count] = STRING, at
    return np.int64(at), _after_string(data, at), np.int64(count + 1)


@helper
def _after_number(data: Bytes, at: Int, kind: Int) -> Any:
    """Position after a value without a reference; -1 if it is cut off."""
    if kind == INT:
        _, after = _varint(data, at, 5)
        return after
    if kind == LONG or kind == TIMESTAMP:
        _, after = _varint(data, at, 9)
        return after
    if kind == LOCAL_DATE:
        _, at = _varint(data, at, 5)
        size = np.int64(2)
    else:
        size = np.int64(1 if kind == BOOLEAN else 4 if kind == FLOAT else 8)
    if at < 0 or at + size > data.size:
        return np.int64(-1)
    return np.int64(at + size)


@helper
def _utf8(data: Bytes, at: Int, has_hash: Any, count: Int, kinds: Bytes, places: Int32s) -> Any:
    """(first byte, bytes, next position, objects) of the fields of an Avro Utf8: bytes, hash, length, string."""
    place, at = _object(data, at, _BYTE_ARRAY, count, kinds, places)
    if at < 0 or place == -2:
        return np.int64(0), np.int64(0), np.int64(-1), np.int64(count)
    new = place == -1
    if new:
        kinds[count], places[count] = _BYTE_ARRAY, at
        count += 1
        place = at
    held, start = _varint(data, place, 5)
    if start < 0 or held < 1 or held - 1 > data.size - start:
        return np.int64(0), np.int64(0), np.int64(-1), np.int64(count)
    if new:
        at = start + held - 1
    if has_hash:
        _, at = _varint(data, at, 5)
    size = np.int64(0)
    if at >= 0:
        size, at = _varint(data, at, 5)
        size = unfold_sign(size)
    if at >= 0:
        _, at, count = _string(data, at, count, kinds, places)
    if size < 0 or size > held - 1:
        at = np.int64(-1)
    return np.int64(start), np.int64(size), np.int64(at), np.int64(count)


@helper
def _after_decimal(data: Bytes, at: Int) -> Any:
    """(first byte, bytes, position after) of the BigDecimal at ``at``, a number of some bytes and its scale; position
    -1 if it is malformed."""
    held, start = _varint(data, at, 5)
    if start < 0 or held < 2 or held - 1 > data.size - start:
        return np.int64(0), np.int64(0), np.int64(-1)
    _, after = _varint(data, start + held - 1, 5)
    return start, np.int64(held - 1), after


@kernel("i8(ru1, i8, b1, b1, ri4, ru1, ri4, wi8, wu1, wi4, wi8, wi8, wi4, wi8, wi8, wi8)")
def walk_entries(
    data: Bytes,
    at: Int,
    only_keys: Any,
    has_hash: Any,
    class_offsets: Offsets,
    class_texts: Bytes,
    class_codes: Int32s,
    names: Int64s,
    kinds: Bytes,
    places: Int32s,
    key_at: Int64s,
    partition_at: Int64s,
    kind: Int32s,
    value_at: Int64s,
    value_size: Int64s,
    problem: Int64s,
) -> Int:
    """Check the n entries of an array and find their values.

    Args:
        data: uint8[], the stream.
        at: position of the first entry.
        only_keys: whether the entries are HoodieKeys, without ordering values.
        has_hash: whether Utf8 objects have the field ``hash`` (Avro 1.10 and later).
        class_offsets: int32[c + 1], Arrow offsets of the names of known classes.
        class_texts: uint8[], these names; at least two ASCII characters each.
        class_codes: int32[c], the codes of these classes.
        names: int64[], the number of names so far in the stream (``names[0]``), their classes, and space for more.
        kinds: uint8[m], scratch: the kind of each object; space for one per byte, or seven per entry.
        places: int32[m], scratch: the position of each object, or the row of a key or an entry.
        key_at: int64[n], filled with positions of record keys.
        partition_at: int64[n], filled with positions of partition paths; -1 for null.
        kind: int32[n], filled with the classes of ordering values; NO_CLASS for null.
        value_at: int64[n], filled with positions of ordering values; for Utf8 and decimals, with positions of bytes.
        value_size: int64[n], filled with the number of bytes of Utf8 and decimal values; 0 for other values.
        problem: int64[3], filled if a byte is malformed: the reason, the position, and the class of WRONG_CLASS.

    Returns:
        The position after the entries, or -1.
    """
    count = np.int64(1)  # the array itself is object 0
    kinds[0], places[0] = 0xFF, 0
    wanted = KEY if only_keys else RECORD
    for row in range(key_at.size):
        start = np.int64(at)
        code, at = _class(data, at, class_offsets, class_texts, class_codes, names, problem)
        if at < 0:
            return np.int64(-1)
        if code != wanted:
            problem[0], problem[1], problem[2] = WRONG_CLASS if code >= 0 else MALFORMED, start, code
            return np.int64(-1)
        problem[0], problem[1] = MALFORMED, start
        kind[row], value_at[row], value_size[row] = NO_CLASS, 0, 0
        place, at = _object(data, at, wanted, count, kinds, places)
        if at < 0 or place == -2:
            return np.int64(-1)
        if place >= 0:  # the array has this entry twice
            key_at[row], partition_at[row] = key_at[place], partition_at[place]
            kind[row], value_at[row], value_size[row] = kind[place], value_at[place], value_size[place]
            continue
        kinds[count], places[count] = wanted, row
        count += 1
        if not only_keys:
            start = np.int64(at)
            code, at = _class(data, at, class_offsets, class_texts, class_codes, names, problem)
            if at < 0:
                return np.int64(-1)
            if code != KEY:
                problem[0], problem[1], problem[2] = WRONG_CLASS if code >= 0 else MALFORMED, start, code
                return np.int64(-1)
            problem[0], problem[1] = MALFORMED, start
            place, at = _object(data, at, KEY, count, kinds, places)
            if at < 0 or place == -2:
                return np.int64(-1)
            if place == -1:
                kinds[count], places[count] = KEY, row
                count += 1
        if only_keys or place == -1:
            partition_at[row], at, count = _string(data, at, count, kinds, places)
            if at >= 0:
                key_at[row], at, count = _string(data, at, count, kinds, places)
            if at < 0 or key_at[row] < 0:
                return np.int64(-1)
        else:
            key_at[row], partition_at[row] = key_at[place], partition_at[place]
        if only_keys:
            continue
        start = np.int64(at)
        code, at = _class(data, at, class_offsets, class_texts, class_codes, names, problem)
        if at < 0:
            return np.int64(-1)
        problem[0], problem[1] = MALFORMED, start
        kind[row] = code
        if code == NO_CLASS:
            continue
        if code == INT or code == LONG or code == FLOAT or code == DOUBLE or code == BOOLEAN:
            value_at[row] = at
            at = _after_number(data, at, code)
        elif code == STRING:
            value_at[row], at, count = _string(data, at, count, kinds, places)
            if value_at[row] < 0:
                return np.int64(-1)
        elif code == UTF8 or code == UTF8_BYTES or code == DECIMAL or code == LOCAL_DATE or code == TIMESTAMP:
            place, at = _object(data, at, code, count, kinds, places)
            if at < 0 or place == -2:
                return np.int64(-1)
            if place >= 0:  # the ordering value of an earlier row
                value_at[row], value_size[row] = value_at[place], value_size[place]
                continue
            kinds[count], places[count] = code, row
            count += 1
            if code == UTF8:
                value_at[row], value_size[row], at, count = _utf8(data, at, has_hash, count, kinds, places)
            elif code == UTF8_BYTES:
                held, start = _varint(data, at, 5)
                if start < 0 or held < 1 or held - 1 > data.size - start:
                    return np.int64(-1)
                value_at[row], value_size[row] = start, held - 1
                at = start + held - 1
            elif code == DECIMAL:
                value_at[row], value_size[row], at = _after_decimal(data, at)
            else:
                value_at[row] = at
                at = _after_number(data, at, code)
        else:
            problem[0], problem[2] = WRONG_CLASS, code
            return np.int64(-1)
        if at < 0:
            return np.int64(-1)
    return np.int64(at)


@helper
def _utf8_size(data: Bytes, at: Int) -> Any:
    """Bytes of the UTF-8 form of the string at ``at``, which is not malformed."""
    units, start = _units(data, at)
    if units < 0:
        return _ascii_end(data, start) - start
    size = np.int64(0)
    at = start
    high = False
    for _ in range(units):
        unit, at = _unit(data, at)
        if high and unit >> 10 == 0x37:  # the second half of a character outside the BMP: four bytes in all
            size += 1
            high = False
            continue
        high = unit >> 10 == 0x36
        size += 1 if unit < 0x80 else 2 if unit < 0x800 else 3
    return size


@kernel("i8(ru1, ri8, rb1, i8, wi4)")
def measure_strings(data: Bytes, at: Int64s, present: Bools, limit: Int, offsets: Offsets) -> Int:
    """Fill ``offsets`` int32[n + 1] with the Arrow offsets of strings that :func:`walk_entries` has checked.

    ``data``, ``at``, ``present``: see the module docstring. Returns the total size of the strings in UTF-8, or -1 if it
    exceeds ``limit`` bytes (less than 2 GiB): with references, few bytes can stand for many strings.
    """
    total = np.int64(0)
    offsets[0] = 0
    last = np.int64(-1)
    size = np.int64(0)
    for row in range(at.size):
        if present[row]:
            if at[row] != last:
                last = at[row]
                size = _utf8_size(data, last)
            total += size
            if total > limit:
                return np.int64(-1)
        offsets[row + 1] = np.int32(total)
    return total


@kernel("void(ru1, ri8, rb1, ri4, wu1)")
def copy_strings(data: Bytes, at: Int64s, present: Bools, offsets: Offsets, out: Bytes) -> None:
    """Copy strings in UTF-8 into ``out`` uint8[], at ``offsets`` from :func:`measure_strings`.

    A lone surrogate keeps its three bytes, which are not valid UTF-8. ``data``, ``at``, ``present``: see the module
    docstring.
    """
    for row in range(at.size):
        if not present[row]:
            continue
        to = np.int64(offsets[row])
        end = np.int64(offsets[row + 1])
        units, place = _units(data, at[row])
        if units < 0:
            copy_bytes(out, to, data, place, end - to)
            out[end - 1] &= 0x7F
            continue
        high = np.int64(0)
        for _ in range(units):
            unit, place = _unit(data, place)
            if high and unit >> 10 == 0x37:
                point = 0x10000 + ((high & 0x3FF) << 10 | (unit & 0x3FF))
                to -= 3
                out[to] = np.uint8(0xF0 | point >> 18)
                out[to + 1] = np.uint8(0x80 | (point >> 12 & 0x3F))
                out[to + 2] = np.uint8(0x80 | (point >> 6 & 0x3F))
                out[to + 3] = np.uint8(0x80 | (point & 0x3F))
                to += 4
                high = np.int64(0)
                continue
            high = unit if unit >> 10 == 0x36 else np.int64(0)
            if unit < 0x80:
                out[to] = np.uint8(unit)
                to += 1
            elif unit < 0x800:
                out[to] = np.uint8(0xC0 | unit >> 6)
                out[to + 1] = np.uint8(0x80 | (unit & 0x3F))
                to += 2
            else:
                out[to] = np.uint8(0xE0 | unit >> 12)
                out[to + 1] = np.uint8(0x80 | (unit >> 6 & 0x3F))
                out[to + 2] = np.uint8(0x80 | (unit & 0x3F))
                to += 3


@kernel("i8(ri8, rb1, i8, wi4)")
def measure_spans(size: Int64s, present: Bools, limit: Int, offsets: Offsets) -> Int:
    """Fill ``offsets`` int32[n + 1] with the Arrow offsets of values of ``size`` int64[n] bytes.

    ``present``: see the module docstring. Returns the total size, or -1 if it exceeds ``limit`` bytes.
    """
    total = np.int64(0)
    offsets[0] = 0
    for row in range(size.size):
        if present[row]:
            total += size[row]
            if total > limit:
                return np.int64(-1)
        offsets[row + 1] = np.int32(total)
    return total


@kernel("void(ru1, ri8, rb1, ri4, wu1)")
def copy_spans(data: Bytes, at: Int64s, present: Bools, offsets: Offsets, out: Bytes) -> None:
    """Copy bytes into ``out`` uint8[], at ``offsets`` from :func:`measure_spans`.

    ``data``, ``at``, ``present``: see the module docstring.
    """
    for row in range(at.size):
        if present[row]:
            copy_bytes(out, np.int64(offsets[row]), data, at[row], np.int64(offsets[row + 1] - offsets[row]))


@helper
def _reversed32(word: Any) -> Any:
    word = np.uint64(word)
    return (
        (word & np.uint64(0xFF)) << np.uint64(24)
        | (word & np.uint64(0xFF00)) << np.uint64(8)
        | (word >> np.uint64(8)) & np.uint64(0xFF00)
        | word >> np.uint64(24)
    )


@kernel("i8(ru1, ri8, rb1, i8, wi8)")
def read_kryo_numbers(data: Bytes, at: Int64s, present: Bools, kind: Int, out: Int64s) -> Int:
    """Read values of the class ``kind`` into ``out`` int64[n]; 0 for rows without a value.

    Floats and doubles become bits, dates days since 1970, timestamps milliseconds. ``data``, ``at``, ``present``: see
    the module docstring. Returns -1; or the first row with a date that does not exist.
    """
    for row in range(at.size):
        out[row] = 0
        if not present[row]:
            continue
        place = at[row]
        if kind == INT or kind == LONG:
            bits, _ = _varint(data, place, 5 if kind == INT else 9)
            out[row] = unfold_sign(bits)
        elif kind == TIMESTAMP:
            out[row], _ = _varint(data, place, 9)
        elif kind == BOOLEAN:
            out[row] = np.int64(data[place] == 1)
        elif kind == FLOAT:
            out[row] = np.int64(_reversed32(load_u32(data, place)))
        elif kind == DOUBLE:
            high = _reversed32(load_u32(data, place))
            out[row] = np.int64(high << np.uint64(32) | _reversed32(load_u32(data, place + 4)))
        else:
            year, place = _varint(data, place, 5)
            if year >= 2**31:
                year -= 2**32
            month, day = np.int64(data[place]), np.int64(data[place + 1])
            if month < 1 or month > 12 or day < 1 or day > _days_of(year, month):
                return row
            out[row] = _days_since_1970(year, month, day)
    return -1


@helper
def _days_of(year: Int, month: Int) -> Any:
    if month == 2:
        leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
        return np.int64(29 if leap else 28)
    return np.int64(30 if month == 4 or month == 6 or month == 9 or month == 11 else 31)


@helper
def _days_since_1970(year: Int, month: Int, day: Int) -> Any:
    """Days of the proleptic Gregorian calendar; a year begins in March here."""
    if month < 3:
        year -= 1
        month += 12
    era = year // 400
    of_era = year - era * 400
    of_year = (153 * (month - 3) + 2) // 5 + day - 1
    return np.int64(era * 146097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719468)
