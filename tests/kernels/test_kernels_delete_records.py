"""Lists of deletes: bytes to columns and back, against fastavro."""

from __future__ import annotations

import numpy as np
import pytest
from hudi_fast.kernels.delete_records import (
    assemble_deletes,
    copy_values,
    decimal_items,
    locate_items,
    measure_deletes,
    measure_values,
    number_items,
    read_decimals,
    read_deletes,
    read_numbers,
    varlen_items,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.arrow_buffers import TEXTS, buffers, values_of
from tests.naive import delete_records as naive
from tests.support.examples import examples

INTS, LONGS = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
VALUES = {
    "Boolean": st.booleans(),
    "Int": INTS,
    "Long": LONGS,
    "Float": st.floats(width=32, allow_nan=False),
    "Double": st.floats(allow_nan=False),
    "Bytes": st.binary(max_size=20),
    "String": TEXTS,
    "Date": INTS,
    "Decimal": st.binary(min_size=1, max_size=20),
    "TimeMicros": LONGS,
    "TimestampMicros": LONGS,
    "LocalDate": INTS,
}
ITEMS = st.one_of(st.none(), *(st.tuples(st.just(name), values) for name, values in VALUES.items()))
PLAIN = st.one_of(
    st.none(), *(st.tuples(st.just(name), values) for name, values in VALUES.items() if name != "LocalDate")
)
ENTRIES = st.lists(st.tuples(TEXTS, st.none() | TEXTS, PLAIN | st.lists(ITEMS, min_size=1, max_size=4)), max_size=12)
NUMBERS = [*naive.BRANCHES, "Array"]


def measured(raw):
    sizes = np.empty(3, np.int64)
    return measure_deletes(np.frombuffer(raw, np.uint8), sizes), sizes.tolist()


def taken_apart(raw):
    """What read_deletes fills: keys, partition paths, presence, defaults, branches, positions, items."""
    data = np.frombuffer(raw, np.uint8)
    count, sizes = measured(raw)
    key_offsets, partition_offsets = np.empty(count + 1, np.int32), np.empty(count + 1, np.int32)
    keys, partitions = np.empty(sizes[0], np.uint8), np.empty(sizes[1], np.uint8)
    flags = np.empty(count, np.bool_), np.empty(count, np.bool_)
    branch, places = np.empty(count, np.int32), (np.empty(count, np.int64), np.empty(count, np.int64))
    read_deletes(data, key_offsets, keys, partition_offsets, partitions, *flags, branch, *places)
    return values_of(key_offsets, keys), values_of(partition_offsets, partitions), *flags, branch, *places


def branch_of(value):
    return (
        0
        if value is None
        else 12
        if isinstance(value, list) or value[0] == "LocalDate"
        else NUMBERS.index(value[0]) + 1
    )


def values_at(raw, value_at, present, name):
    """The values of one kind that begin at ``value_at``."""
    data, rows = np.frombuffer(raw, np.uint8), len(value_at)
    if name in ("Bytes", "String"):
        offsets = np.empty(rows + 1, np.int32)
        out = np.empty(measure_values(data, value_at, present, offsets), np.uint8)
        copy_values(data, value_at, present, offsets, out)
        found = values_of(offsets, out)
        return [value.decode() for value in found] if name == "String" else found
    out = np.empty(rows, np.int64)
    read_numbers(data, value_at, present, {"Boolean": 1, "Float": 4, "Double": 8}.get(name, 0), out)
    if name == "Float":
        return out.astype(np.uint32).view(np.float32).tolist()
    return out.view(np.float64).tolist() if name == "Double" else out.tolist()


@given(entries=ENTRIES)
def test_entries_are_taken_apart(entries):
    raw = naive.encode(entries)
    keys, partitions, has_partition, is_default, branch, value_at, items = taken_apart(raw)
    assert measured(raw)[1] == [sum(map(len, keys)), sum(map(len, partitions)), len(raw)]
    assert [key.decode() for key in keys] == [entry[0] for entry in entries]
    assert [p.decode() if has else None for p, has in zip(partitions, has_partition, strict=True)] == [
        entry[1] for entry in entries
    ]
    assert branch.tolist() == [branch_of(entry[2]) for entry in entries]
    assert items.tolist() == [len(entry[2]) if isinstance(entry[2], list) else 0 for entry in entries]
    assert is_default.tolist() == [entry[2] in (None, ("Int", 0)) for entry in entries]
    for row, (_, _, value) in enumerate(entries):
        if isinstance(value, tuple) and value[0] != "Decimal":
            assert values_at(raw, value_at[[row]], np.ones(1, np.bool_), value[0]) == [value[1]]


@given(
    arrays=st.integers(1, 4).flatmap(lambda k: st.lists(st.lists(ITEMS, min_size=k, max_size=k), max_size=8)),
    data=st.data(),
)
def test_items_of_arrays_are_found_column_by_column(arrays, data):
    present = np.array([data.draw(st.booleans()) for _ in arrays], np.bool_)
    entries = [("k", None, array if has else ("Int", 5)) for array, has in zip(arrays, present, strict=True)]
    raw = naive.encode(entries)
    value_at = taken_apart(raw)[5]
    width = len(arrays[0]) if arrays else 1
    branch, item_at = np.empty(width * len(arrays), np.int32), np.empty(width * len(arrays), np.int64)
    locate_items(np.frombuffer(raw, np.uint8), value_at, present, branch, item_at)
    columns = [[array[i] if has else None for array, has in zip(arrays, present, strict=True)] for i in range(width)]
    assert branch.tolist() == [branch_of(value) for column in columns for value in column]
    for place, value in enumerate(value for column in columns for value in column):
        if value is not None and value[0] != "Decimal":
            assert values_at(raw, item_at[[place]], np.ones(1, np.bool_), value[0]) == [value[1]]


def test_array_blocks_with_a_byte_count_and_several_blocks_are_read():
    entry = bytes.fromhex("02026b 00 0400")
    items = bytes.fromhex("18 02 01 04 0602 02 0604 00")  # two blocks of one item: longs 1 and 2
    raw = b"\x02" + entry + b"\x03\x0c" + entry[:4] + b"\x04\x02" + entry[:4] + items + b"\0"
    assert measured(raw) == (3, [3, 0, len(raw)])
    keys, _, _, is_default, branch, value_at, counts = taken_apart(raw)
    assert keys == [b"k"] * 3
    assert is_default.tolist() == [True, False, False]
    assert (branch.tolist(), counts.tolist()) == ([2, 2, 12], [0, 0, 2])
    found = np.empty(2, np.int32), np.empty(2, np.int64)
    locate_items(np.frombuffer(raw, np.uint8), value_at[2:], np.ones(1, np.bool_), *found)
    assert values_at(raw, found[1], np.ones(2, np.bool_), "Long") == [1, 2]


@given(entries=ENTRIES.filter(len))
def test_a_list_cut_off_anywhere_is_told_from_a_whole_one(entries):
    raw = naive.encode(entries)
    for length in range(len(raw)):
        count, _ = measured(raw[:length])
        assert -1 - length <= count <= -1


@pytest.mark.slow
@settings(max_examples=examples(300))
@given(entries=ENTRIES, data=st.data())
def test_damaged_lists_are_refused_or_readable(entries, data):
    raw = bytearray(naive.encode(entries))
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    count, _ = measured(bytes(raw))
    if count < 0:
        assert 0 <= -1 - count <= len(raw)
        return
    keys, _, _, _, branch, value_at, items = taken_apart(bytes(raw))
    assert len(keys) == count
    assert ((branch >= 0) & (branch <= 12)).all()
    assert ((value_at >= 0) & (value_at <= len(raw))).all()
    assert ((items > 0) == (branch == 12)).all()


@pytest.mark.parametrize(
    ("raw", "where"),
    [
        ("", 0),
        ("ff" * 9 + "01", 0),  # a count of more entries than there are bytes
        ("01", 0),  # a count of -1 without the byte count
        ("02 00 00 00 00", 1),  # no key
        ("02 04 00 00 00", 1),  # a third branch of the key
        ("02 02 01 00 00 00", 1),  # a length of -1
        ("02 02 02 6b 00 1a 00 00", 1),  # branch 13
        ("02 02 02 6b 00 01 00 00", 1),  # branch -1
        ("02 02 02 6b 00 18 00 00", 1),  # an array that is null
        ("02 02 02 6b 00 18 02 00 00", 1),  # an array without items
        ("02 02 02 6b 00 18 02 02 1a 00 00 00", 1),  # branch 13 in an array
        ("02 02 02 6b 00 0a 0000 00", 1),  # a double that is cut off
        ("02 02 02 6b 00 0e fe ff ff ff 0f 61 00", 1),  # a string longer than everything
        ("02 02 02 6b 00 06 ffffffffffffffffffff 00", 1),  # a long that never ends
    ],
)
def test_malformed_lists_are_refused_where_they_begin_to_be_so(raw, where):
    assert measured(bytes.fromhex(raw))[0] == -1 - where


@given(numbers=st.lists(st.none() | st.integers(-(2**127), 2**127 - 1), max_size=10), padding=st.integers(0, 3))
def test_decimals_of_any_length_are_read_and_written_short(numbers, padding):
    present = np.array([number is not None for number in numbers], np.bool_)
    shortest = [
        (n or 0).to_bytes(((n or 0) if (n or 0) >= 0 else ~(n or 0)).bit_length() // 8 + 1, "big", signed=True)
        for n in numbers
    ]
    entries = [
        ("k", None, None if n is None else ("Decimal", n.to_bytes(len(s) + padding, "big", signed=True)))
        for n, s in zip(numbers, shortest, strict=True)
    ]
    raw = naive.encode(entries)
    words = np.empty(2 * len(numbers), np.uint64)
    assert read_decimals(np.frombuffer(raw, np.uint8), taken_apart(raw)[5], present, words) == -1
    found = [int.from_bytes(words[2 * i : 2 * i + 2].tobytes(), "little", signed=True) for i in range(len(numbers))]
    assert found == [n or 0 for n in numbers]
    offsets, out = np.empty(len(numbers) + 1, np.int64), np.empty(18 * len(numbers), np.uint8)
    used = decimal_items(words, present, 9, offsets, out)
    expected = [b"\x12" + bytes([2 * len(s)]) + s if has else b"" for s, has in zip(shortest, present, strict=True)]
    assert out[:used].tobytes() == b"".join(expected)
    assert np.diff(offsets).tolist() == [len(item) for item in expected]


@pytest.mark.parametrize("number", [2**127, -(2**127) - 1, 2**150])
def test_decimals_of_more_than_128_bits_are_told_by_row(number):
    wide = ("k", None, ("Decimal", number.to_bytes(20, "big", signed=True)))
    raw = naive.encode([("k", None, ("Decimal", b"\1")), wide])
    words = np.empty(4, np.uint64)
    assert read_decimals(np.frombuffer(raw, np.uint8), taken_apart(raw)[5], np.ones(2, np.bool_), words) == 1


def encoded_items(name, values):
    """Offsets and bytes of one column's items."""
    present = np.array([value is not None for value in values], np.bool_)
    offsets, branch = np.empty(len(values) + 1, np.int64), branch_of((name, None))
    if name in ("Bytes", "String"):
        texts = [(v or b"") if name == "Bytes" else (v or "").encode() for v in values]
        value_offsets, data = buffers(texts, b"before", b"after")
        out = np.empty(6 * len(values) + sum(map(len, texts)), np.uint8)
        return offsets, out[: varlen_items(value_offsets, data, present, branch, offsets, out)]
    kinds = {"Boolean": (np.bool_, 1), "Float": (np.float32, 4), "Double": (np.float64, 8)}
    dtype, width = kinds.get(name, (np.int64, 0))
    plain = np.array([0 if value is None else value for value in values], dtype)
    bits = plain.view(np.uint32).astype(np.int64) if width == 4 else plain.view(np.int64) if width == 8 else plain
    out = np.empty(11 * len(values), np.uint8)
    return offsets, out[: number_items(bits.astype(np.int64), present, branch, width, offsets, out)]


@given(
    keys=st.lists(st.tuples(TEXTS, st.none() | TEXTS, st.booleans()), max_size=8),
    names=st.lists(st.sampled_from([name for name in naive.BRANCHES if name != "Decimal"]), min_size=1, max_size=3),
    data=st.data(),
)
def test_lists_are_written_as_fastavro_writes_them(keys, names, data):
    columns = [[data.draw(VALUES[name]) for _ in keys] for name in names]
    defaults = np.array([default for _, _, default in keys], np.bool_)
    shown = [[None if d else v for v, d in zip(column, defaults, strict=True)] for column in columns]
    items = [encoded_items(name, column) for name, column in zip(names, shown, strict=True)]
    starts = np.cumsum([0, *(len(part) for _, part in items)])
    item_offsets = np.concatenate([offsets + start for (offsets, _), start in zip(items, starts, strict=False)])
    partitions = buffers([(p or "").encode() for _, p, _ in keys])
    out = np.empty(11 + 23 * len(keys) + 200 * len(keys) + int(starts[-1]), np.uint8)
    used = assemble_deletes(
        *buffers([key.encode() for key, _, _ in keys], b"before", b"after"),
        *partitions,
        np.array([p is not None for _, p, _ in keys], np.bool_),
        defaults,
        item_offsets,
        np.concatenate([part for _, part in items]),
        len(names),
        out,
    )
    entries = []
    for row, (key, partition, default) in enumerate(keys):
        values = [(name, column[row]) for name, column in zip(names, columns, strict=True)]
        entries.append((key, partition, ("Int", 0) if default else values if len(names) > 1 else values[0]))
    assert out[:used].tobytes() == naive.encode(entries)
