"""Scanning log files: real ones, torn ones, damaged ones, local and distant."""

from __future__ import annotations

import os
import pickle
import struct

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_fast.errors import CorruptTableError, FileGoneError, HudiError, UnsupportedFeatureError
from hudi_fast.formats.log.blocks import BlockType, HeaderKey, LogBlock, encode_block, read_content, scan_log_blocks
from hudi_fast.storage.base import Storage
from tests.formats.format_files import DistantStorage, damaged, log_files, real_files
from tests.naive import log_blocks as naive

REAL = real_files("log_files")
INSTANT = {HeaderKey.INSTANT_TIME: "20250101000000000"}


def block_bytes(content=b"content", kind=BlockType.AVRO_DATA, headers=INSTANT):
    return b"".join(bytes(part) for part in encode_block(kind, headers, content))


def framed(body):
    """A block whose frame is sound, around anything."""
    size = len(body) + 8
    return b"#HUDI#" + struct.pack(">q", size) + body + struct.pack(">q", size + 6)


def header_map(*entries):
    return struct.pack(">i", len(entries)) + b"".join(struct.pack(">ii", k, len(v)) + v for k, v in entries)


def body(version=1, kind=3, headers=b"\0\0\0\0", content=b"abc", length=None, footer=b"\0\0\0\0"):
    length = len(content) if length is None else length
    return struct.pack(">ii", version, kind) + headers + struct.pack(">q", length) + content + footer


def scanned(folder, raw, storage_class=Storage):
    """(offset, type, headers, content) of each block, or the class of the error."""
    (folder / "file.log").write_bytes(raw)
    storage = storage_class(str(folder))
    try:
        return [
            (block.offset, block.kind, dict(block.headers), read_content(storage, block).to_pybytes())
            for block in scan_log_blocks(storage, "file.log")
        ]
    except HudiError as error:
        return type(error)


def expected(raw):
    try:
        return naive.scan(raw)
    except HudiError as error:
        return type(error)


def error_of(folder, raw):
    (folder / "file.log").write_bytes(raw)
    with pytest.raises(HudiError) as caught:
        list(scan_log_blocks(Storage(str(folder)), "file.log"))
    return caught.value


@pytest.mark.parametrize("name", REAL)
def test_real_files_are_read_as_the_layout_says(tmp_path, name):
    assert scanned(tmp_path, REAL[name]) == naive.scan(REAL[name])
    assert scanned(tmp_path, REAL[name], DistantStorage) == naive.scan(REAL[name])


@pytest.mark.parametrize(
    ("part", "kind", "keys", "length"),
    [
        ("avro_data", BlockType.AVRO_DATA, {0, 2}, 240),
        ("delete", BlockType.DELETE, {0, 2}, 190),
        ("parquet_data", BlockType.PARQUET_DATA, {0, 2}, 4373),
        ("rollback", BlockType.COMMAND, {0, 1, 3}, 0),
    ],
)
def test_kinds_headers_and_content_of_real_files(tmp_path, part, kind, keys, length):
    (name,) = (name for name in REAL if part in name)
    (tmp_path / name).write_bytes(REAL[name])
    blocks = list(scan_log_blocks(Storage(str(tmp_path)), name))
    found = next(block for block in blocks if block.kind == kind)
    assert set(found.headers) == keys
    assert found.content_length == length
    assert found.instant == found.headers[HeaderKey.INSTANT_TIME]
    assert found.instant.startswith("2025")
    assert {block.path for block in blocks} == {name}


@pytest.mark.parametrize(
    ("table", "kinds"),
    [
        ("mor_v6_mixed", {BlockType.AVRO_DATA: 6, BlockType.DELETE: 3}),
        ("mor_v9_partial_update_logs", {BlockType.AVRO_DATA: 12, BlockType.DELETE: 3}),
        ("h015_mor_rollback_compacted", {BlockType.AVRO_DATA: 15, BlockType.COMMAND: 3}),
    ],
)
def test_log_files_of_real_tables(golden, table, kinds):
    folder = golden(table).table
    storage, found = Storage(str(folder)), dict.fromkeys(kinds, 0)
    for path in log_files(folder):
        relative = str(path.relative_to(folder))
        blocks = list(scan_log_blocks(storage, relative))
        assert [(b.offset, b.kind, b.headers) for b in blocks] == [b[:3] for b in naive.scan(path.read_bytes())]
        if not relative.startswith(".hoodie"):
            for block in blocks:
                found[block.kind] += 1
    assert found == kinds


def test_an_empty_file_and_one_that_ends_within_its_first_magic_have_no_blocks(tmp_path):
    for length in range(6):
        assert scanned(tmp_path, b"#HUDI#"[:length]) == []
    assert scanned(tmp_path, b"") == scanned(tmp_path, b"", DistantStorage) == []


@pytest.mark.parametrize("storage_class", [Storage, DistantStorage])
def test_a_file_cut_off_anywhere_keeps_its_complete_blocks(tmp_path, storage_class):
    blocks = [block_bytes(b"one"), block_bytes(b"", BlockType.COMMAND), block_bytes(b"three" * 3)]
    raw = b"".join(blocks)
    ends = [len(b"".join(blocks[:count])) for count in range(4)]
    for length in range(len(raw) + 1):
        found = scanned(tmp_path, raw[:length], storage_class)
        whole = max(count for count in range(4) if ends[count] <= length)
        torn = length - ends[whole] >= 6  # less is no magic yet
        assert [block[1] for block in found] == [3, 0, 3][:whole] + [2] * torn
        assert found == naive.scan(raw[:length])


@pytest.mark.parametrize(
    ("damage", "what"),
    [
        (lambda raw: raw[:6] + struct.pack(">q", 10**15) + raw[14:], "length past the end"),
        (lambda raw: raw[:6] + struct.pack(">q", -5) + raw[14:], "negative length"),
        (lambda raw: raw[:6] + struct.pack(">q", len(raw) - 15) + raw[14:], "length that is one short"),
        (lambda raw: raw[:-8] + struct.pack(">q", 0) + raw[-8:][8:], "length field that differs"),
        (lambda raw: raw + b"something", "no magic behind"),
        (lambda raw: raw[:-20], "torn"),
    ],
)
def test_a_damaged_frame_makes_a_corrupt_block_up_to_the_next_magic(tmp_path, damage, what):
    first, last = block_bytes(b"first"), block_bytes(b"last")
    raw = first + damage(block_bytes(b"middle")) + last
    found = scanned(tmp_path, raw)
    assert [block[1] for block in found] == [BlockType.AVRO_DATA, BlockType.CORRUPT, BlockType.AVRO_DATA], what
    assert found[1] == (len(first), 2, {}, raw[len(first) + 6 : -len(last)])
    assert [found[0][3], found[2][3]] == [b"first", b"last"]


@pytest.mark.parametrize("storage_class", [Storage, DistantStorage])
@pytest.mark.parametrize("shift", range(-7, 8))
def test_the_next_magic_is_found_wherever_the_scan_steps(tmp_path, shift, storage_class):
    torn = block_bytes(b"x" * 4_000_000)[: (1 << 20) + shift]
    last = block_bytes(b"last")
    found = scanned(tmp_path, torn + last, storage_class)
    assert [(block[0], block[1]) for block in found] == [(0, 2), (len(torn), 3)]


def test_many_magics_in_a_row_are_as_many_corrupt_blocks(tmp_path):
    found = scanned(tmp_path, b"#HUDI#" * 500)
    assert [block[:2] for block in found] == [(6 * i, 2) for i in range(500)]


def test_bytes_where_the_first_magic_belongs_are_an_error_with_their_place(tmp_path):
    error = error_of(tmp_path, b"PAR1 and more")
    assert isinstance(error, CorruptTableError)
    assert (error.path, error.offset) == ("file.log", 0)
    assert "PAR1" in str(error)


@pytest.mark.parametrize(
    ("inner", "kind", "told"),
    [
        (body(version=0), UnsupportedFeatureError, "found 0"),
        (body(version=2), UnsupportedFeatureError, "found 2"),
        (body(version=-1), CorruptTableError, "found -1"),
        (body(kind=7), UnsupportedFeatureError, "found 7"),
        (body(kind=2), CorruptTableError, "never written"),
        (body(kind=-1), CorruptTableError, "found -1"),
        (body(headers=header_map((9, b"x"))), UnsupportedFeatureError, "header keys"),
        (body(headers=header_map((-2, b"x"))), CorruptTableError, "found -2"),
        (body(headers=header_map((0, b"1"), (0, b"2"))), CorruptTableError, "INSTANT_TIME again"),
        (body(headers=header_map((0, b"\xff\xfe"))), CorruptTableError, "UTF-8"),
        (body(headers=struct.pack(">i", 2**31 - 1)), CorruptTableError, "number of block headers"),
        (body(headers=struct.pack(">i", -1)), CorruptTableError, "number of block headers"),
        (body(headers=struct.pack(">iii", 1, 0, 2**31 - 1)), CorruptTableError, "found 2147483647"),
        (body(headers=struct.pack(">iii", 1, 0, -3)), CorruptTableError, "found -3"),
        (body(length=4), CorruptTableError, "content length of at most 3"),
        (body(length=-1), CorruptTableError, "found -1"),
        (body(length=2**62), CorruptTableError, "content length of at most 3"),
        (body(footer=struct.pack(">i", 1)), CorruptTableError, "number of block footers, found 1"),
        (body(footer=struct.pack(">i", -1)), CorruptTableError, "number of block footers, found -1"),
        (body(footer=header_map((9, b"x"))), UnsupportedFeatureError, "block footer keys"),
        (body(footer=header_map((0, b"1"), (0, b"2"))), CorruptTableError, "block footer once"),
        (body(footer=struct.pack(">iii", 1, 0, 9)), CorruptTableError, "block footer INSTANT_TIME, found 9"),
        (b"\0\0\0\1\0\0\0\3", CorruptTableError, "at least"),
    ],
)
def test_nonsense_in_a_sound_frame_is_an_error_that_names_file_and_byte(tmp_path, inner, kind, told):
    first = block_bytes()
    error = error_of(tmp_path, first + framed(inner) + block_bytes())
    assert type(error) is kind
    assert told in str(error)
    assert "file.log, byte " in str(error)
    assert int(str(error).rpartition("byte ")[2].split("]")[0]) >= len(first)


@pytest.mark.parametrize("storage_class", [Storage, DistantStorage])
@pytest.mark.parametrize("gap", [b"", b"\0", b"12345", b"#HUDI#" + bytes(30), b"x" * 100_000])
def test_footers_are_read_and_bytes_after_them_are_ignored(tmp_path, gap, storage_class):
    headers, footers = header_map((0, b"20250101000000000")), header_map((2, b"{}"), (1, "é".encode()))
    raw = b"".join(framed(body(headers=headers, footer=each + gap)) for each in (footers, b"\0\0\0\0"))
    found = scanned(tmp_path, raw + block_bytes(b"last"), storage_class)
    assert [block[1:] for block in found[:2]] == [(3, {0: "20250101000000000"}, b"abc")] * 2
    assert [block[3] for block in found] == [b"abc", b"abc", b"last"]
    assert found == naive.scan(raw + block_bytes(b"last"))
    first, second, last = scan_log_blocks(storage_class(str(tmp_path)), "file.log")
    assert first.footers == {HeaderKey.SCHEMA: "{}", HeaderKey.TARGET_INSTANT_TIME: "é"}
    assert second.footers == last.footers == {}


def test_blocks_of_the_first_releases_are_refused_by_their_version(tmp_path):
    """``HUDI``, type, size, content: com.uber.hoodie before 0.4.1 (HoodieLogFormat, OLD_MAGIC)."""
    for raw in (b"HUDI" + struct.pack(">ii", 1, 20) + bytes(20), framed(body(version=0))):
        error = error_of(tmp_path, raw)
        assert isinstance(error, UnsupportedFeatureError)
        assert "log format version 1, found 0" in str(error)
        assert "do not name the write" in str(error)


@pytest.mark.parametrize("name", REAL)
@given(data=st.data())
def test_damaged_files_give_blocks_or_one_of_two_errors(tmp_path_factory, name, data):
    folder = tmp_path_factory.mktemp("damaged")
    raw = data.draw(damaged(REAL[name][:1500] if "parquet" not in name else REAL[name]))
    assert scanned(folder, raw) == scanned(folder, raw, DistantStorage) == expected(raw)


def test_scanning_a_distant_file_reads_heads_and_tails_only(tmp_path):
    raw = b"".join(block_bytes(b"x" * 3_000_000, headers=INSTANT | {HeaderKey.SCHEMA: "s" * 5000}) for _ in range(4))
    (tmp_path / "file.log").write_bytes(raw)
    sizes = []

    class Source:
        closed = False

        def __init__(self, path):
            self.file = open(path, "rb")

        def __getattr__(self, name):
            return getattr(self.file, name)

        def read(self, length=-1):
            sizes.append(length)
            return self.file.read(length)

    class Watched(DistantStorage):
        def open_input(self, path, size=None):
            return pa.PythonFile(Source(self.fs_path(path)), mode="r")

    storage = Watched(str(tmp_path))
    assert len(list(scan_log_blocks(storage, "file.log"))) == 4
    assert sum(sizes) <= 5 * (64 << 10)
    assert len(sizes) <= 8


def test_content_of_a_local_file_is_mapped_and_outlives_the_file(tmp_path):
    content = os.urandom(100_000)
    (tmp_path / "file.log").write_bytes(block_bytes(content))
    storage = Storage(str(tmp_path))
    before = pa.total_allocated_bytes()
    (block,) = scan_log_blocks(storage, "file.log")
    found = read_content(storage, block)
    assert pa.total_allocated_bytes() == before
    (tmp_path / "file.log").unlink()
    assert found.to_pybytes() == content


@pytest.mark.parametrize("storage_class", [Storage, DistantStorage])
def test_content_that_is_no_longer_there_is_an_error(tmp_path, storage_class):
    (tmp_path / "file.log").write_bytes(block_bytes(b"x" * 300_000))
    storage = storage_class(str(tmp_path))
    (block,) = scan_log_blocks(storage, "file.log")
    (tmp_path / "file.log").write_bytes(b"#HUDI#")
    with pytest.raises(CorruptTableError, match=r"Expected 300000 bytes of block content, found 0"):
        read_content(storage, block)
    (tmp_path / "file.log").unlink()
    with pytest.raises(FileGoneError, match=r"deleted a log file while it was read\. Read again"):
        read_content(storage, block)
    with pytest.raises(FileNotFoundError):
        list(scan_log_blocks(storage, "file.log"))


def test_content_of_a_small_distant_file_is_read_with_its_heads(tmp_path):
    (tmp_path / "file.log").write_bytes(block_bytes(b"x" * 50) + block_bytes(b"y" * 70))
    storage = DistantStorage(str(tmp_path))
    blocks = list(scan_log_blocks(storage, "file.log"))
    (tmp_path / "file.log").unlink()
    assert [read_content(storage, block).to_pybytes() for block in blocks] == [b"x" * 50, b"y" * 70]


def test_a_block_without_its_instant_says_so():
    block = LogBlock("a.log", 7, BlockType.DELETE, {HeaderKey.SCHEMA: "{}"}, 40, 0)
    with pytest.raises(CorruptTableError, match=r"INSTANT_TIME.*DELETE.*SCHEMA.*file a.log, byte 7"):
        _ = block.instant
    assert pickle.loads(pickle.dumps(block)) == block
