"""Ranged reads of an HFile inside a file."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hudi_fast.errors import CorruptTableError
from hudi_fast.formats.hfile.blocks import BlockReference, HFileSource

KIB = 1024
BEFORE, SIZE = 10, 600 * KIB
CONTENT = bytes(number % 251 for number in range(SIZE))


class Counting:
    """A file that notes the ranges that are read."""

    def __init__(self, file: pa.NativeFile) -> None:
        self.file = file
        self.ranges: list[tuple[int, int]] = []

    def size(self) -> int:
        return int(self.file.size())

    def read_at(self, size: int, at: int) -> bytes:
        self.ranges.append((at, at + size))
        return bytes(self.file.read_at(size, at))


@pytest.fixture
def file(tmp_path: Path) -> Counting:
    path = tmp_path / "a.log"
    path.write_bytes(b"x" * BEFORE + CONTENT)
    return Counting(pa.OSFile(str(path)))


def test_the_end_is_read_at_once_and_kept(file: Counting) -> None:
    source = HFileSource(file, "a.log", BEFORE, None)
    assert source.length == SIZE
    assert len(file.ranges) == 1
    assert bytes(source.read(SIZE - 100, SIZE).data) == CONTENT[-100:]
    assert len(file.ranges) == 1
    part = source.read(5, 50)
    assert (bytes(part.data), part.start, part.end) == (CONTENT[5:50], 5, 50)
    assert file.ranges[1:] == [(BEFORE + 5, BEFORE + 5 + KIB)]  # pyarrow repeats no refused request of a few bytes


def test_neighbouring_blocks_share_a_read(file: Counting) -> None:
    source = HFileSource(file, "a.log", BEFORE, None)
    blocks = [BlockReference(at * KIB, KIB, b"") for at in (0, 1, 3, 200, 201)]
    parts = list(source.parts(blocks))
    assert len(file.ranges) == 1 + 2
    for block, part in zip(blocks, parts, strict=True):
        assert bytes(part.cut(block.offset, block.end).data) == CONTENT[block.offset : block.end]


def test_a_buffer_is_not_copied() -> None:
    source = HFileSource(pa.py_buffer(b"x" * BEFORE + CONTENT), "a.log", BEFORE, 100)
    assert bytes(source.read(90, 100).data) == CONTENT[90:100]


def test_bytes_outside_the_hfile_are_damage(file: Counting) -> None:
    source = HFileSource(file, "a.log", BEFORE, 100)
    with pytest.raises(CorruptTableError, match="bytes 50 to 101") as raised:
        source.read(50, 101)
    assert raised.value.path == "a.log"
    with pytest.raises(CorruptTableError, match=f"Expected {SIZE + 1} bytes"):
        HFileSource(file, "a.log", BEFORE, SIZE + 1)


def test_a_closed_source_is_not_read(file: Counting) -> None:
    source = HFileSource(file, "a.log", BEFORE, None)
    source.close()
    with pytest.raises(ValueError, match="closed"):
        source.read(0, 1)
