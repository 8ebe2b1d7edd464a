"""Entries of one data block of an HFile."""

from __future__ import annotations

import struct

import pytest

from hudi_fast.errors import CorruptTableError
from hudi_fast.formats.hfile.blocks import HFileContent
from hudi_fast.formats.hfile.layout import full_key
from hudi_fast.formats.hfile.reader import ordered_entries, read_entries

FILE = HFileContent.of(b"", "f.hfile", 100)


def payload(*entries: tuple[str, str]) -> memoryview:
    """A data block with these keys and values; an entry ends with a timestamp of zero in one byte."""
    parts = []
    for key, value in entries:
        stored = full_key(key.encode())
        parts.append(struct.pack(">ii", len(stored), len(value)) + stored + value.encode() + b"\0")
    return memoryview(b"".join(parts))


def texts(arrays: tuple[object, object]) -> list[tuple[str, str]]:
    keys, values = (one.to_pylist() for one in arrays)  # type: ignore[attr-defined]
    return [(key.decode(), value.decode()) for key, value in zip(keys, values, strict=True)]


def test_keys_and_values_are_read_in_stored_order() -> None:
    entries = [("a", "1"), ("a", ""), ("bb", "22")]
    assert texts(read_entries(FILE, 0, payload(*entries))) == entries
    assert texts(read_entries(FILE, 0, payload())) == []


def test_ascending_keys_stay_as_they_are() -> None:
    entries = [("a", "1"), ("a", "0"), ("b", "2")]
    assert texts(ordered_entries(FILE, 0, payload(*entries), b"a", b"c")) == entries


def test_keys_in_the_order_of_java_are_sorted_by_bytes() -> None:
    entries = [("\U00010000", "1"), ("\uffee", "2")]
    assert texts(ordered_entries(FILE, 0, payload(*entries), b"", None)) == entries[::-1]


@pytest.mark.parametrize(
    ("entries", "low", "high"),
    [
        ([("b", "1"), ("a", "2")], b"", None),
        ([("a", "1")], b"b", None),
        ([("c", "1")], b"a", b"b"),
    ],
)
def test_keys_that_contradict_the_index_are_damage(
    entries: list[tuple[str, str]], low: bytes, high: bytes | None
) -> None:
    with pytest.raises(CorruptTableError) as raised:
        ordered_entries(FILE, 7, payload(*entries), low, high)
    assert (raised.value.path, raised.value.offset) == ("f.hfile", 107)


def test_an_entry_that_is_cut_off_is_damage() -> None:
    with pytest.raises(CorruptTableError, match="Expected an entry"):
        read_entries(FILE, 0, payload(("a", "1"))[:-1])
