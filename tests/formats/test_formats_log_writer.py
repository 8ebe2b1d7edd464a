"""Writing log files: byte for byte as real Hudi, exclusively, without copying content."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_fast.errors import InvalidDataError
from hudi_fast.formats.log.blocks import (
    BlockType,
    HeaderKey,
    LogFileWriter,
    command_block,
    encode_block,
    read_content,
    scan_log_blocks,
)
from hudi_fast.storage.base import Storage
from tests.formats.format_files import log_files, real_files
from tests.naive import log_blocks as naive
from tests.support.instrumented_storage import FaultyStorage, InjectedFaultError

REAL = real_files("log_files")
KINDS = [kind for kind in BlockType if kind != BlockType.CORRUPT]
HEADERS = st.dictionaries(st.sampled_from(HeaderKey), st.text(max_size=30))


def copied(storage, source, target):
    """Write a file with the blocks of another; its size as the writer tells it."""
    with LogFileWriter(storage, target) as writer:
        sizes = [
            writer.append(block.kind, block.headers, read_content(storage, block))
            for block in scan_log_blocks(storage, source)
        ]
        assert sum(sizes) == writer.size
    return writer.size


@pytest.mark.parametrize("name", REAL)
def test_blocks_of_real_files_are_written_byte_for_byte(tmp_path, name):
    (tmp_path / name).write_bytes(REAL[name])
    assert copied(Storage(str(tmp_path)), name, "copy") == len(REAL[name])
    assert (tmp_path / "copy").read_bytes() == REAL[name]


@pytest.mark.parametrize("table", ["mor_v6_mixed", "mor_v9_partial_update_logs", "mor_v9_log_compacted"])
def test_log_files_of_real_tables_are_written_byte_for_byte(golden, table):
    folder = golden(table).table
    storage = Storage(str(folder))
    paths = list(log_files(folder))
    assert len(paths) >= 3
    for path in paths:
        copied(storage, str(path.relative_to(folder)), "copies/" + path.name)
        assert (folder / "copies" / path.name).read_bytes() == path.read_bytes()


def test_the_command_block_is_the_one_of_real_hudi():
    (real,) = (raw for name, raw in REAL.items() if "rollback" in name)
    assert command_block("20250126040936578", "20250126040826878") == real
    assert len(real) == 105


@pytest.mark.slow
@given(
    blocks=st.lists(
        st.tuples(st.sampled_from(KINDS), HEADERS, st.lists(st.binary(max_size=50), max_size=4)), max_size=5
    )
)
def test_what_is_written_is_what_the_layout_says(tmp_path_factory, blocks):
    folder = tmp_path_factory.mktemp("written")
    ends = []
    with LogFileWriter(Storage(str(folder)), "deep/er/file.log") as writer:
        for kind, headers, parts in blocks:
            writer.append(kind, headers, parts)
            ends.append(writer.size)
    raw = (folder / "deep/er/file.log").read_bytes()
    assert [end for end in [0, *ends] if end < len(raw)] == [block[0] for block in naive.scan(raw)]
    assert [block[1:] for block in naive.scan(raw)] == [(k, h, b"".join(parts)) for k, h, parts in blocks]


def test_every_kind_of_buffer_is_content_and_none_is_copied():
    array = np.arange(12, dtype=np.int32)
    parts = [b"ab", bytearray(b"cd"), memoryview(b"ef"), pa.py_buffer(b"gh"), array.reshape(3, 4)]
    found = encode_block(BlockType.AVRO_DATA, {}, parts)
    assert all(mine is given for mine, given in zip(found[1:-1], parts, strict=True))
    raw = b"".join(bytes(part) for part in found)
    assert naive.scan(raw) == [(0, 3, {}, b"abcdefgh" + array.tobytes())]
    for part in parts:
        alone = b"".join(bytes(piece) for piece in encode_block(BlockType.AVRO_DATA, {}, part))
        assert naive.scan(alone)[0][3] == bytes(part)


def test_a_file_that_is_there_is_left_alone(tmp_path):
    (tmp_path / "file.log").write_bytes(b"theirs")
    with pytest.raises(FileExistsError):
        LogFileWriter(Storage(str(tmp_path)), "file.log")
    assert (tmp_path / "file.log").read_bytes() == b"theirs"


def test_a_writer_whose_body_fails_leaves_no_file(tmp_path):
    with LogFileWriter(Storage(str(tmp_path)), "file.log") as writer:
        writer.append(BlockType.AVRO_DATA, {}, b"content")
    with pytest.raises(ValueError, match="CORRUPT"), LogFileWriter(Storage(str(tmp_path)), "other.log") as writer:
        writer.append(BlockType.CORRUPT, {}, b"content")
    assert [path.name for path in tmp_path.iterdir()] == ["file.log"]


@pytest.mark.parametrize("kind", ["before", "after", "tear"])
def test_a_write_that_fails_leaves_no_file_or_a_torn_one_that_readers_skip(tmp_path, kind):
    failed = 0
    for at in itertools.count():
        folder = tmp_path / str(at)
        folder.mkdir()
        try:
            with LogFileWriter(FaultyStorage(str(folder), at=at, kind=kind, die=True), "file.log") as writer:
                writer.append(BlockType.AVRO_DATA, {HeaderKey.INSTANT_TIME: "1"}, b"content" * 20)
                writer.append(BlockType.DELETE, {HeaderKey.INSTANT_TIME: "1"}, b"deletes")
        except InjectedFaultError:
            failed += 1
        else:
            break
        if (folder / "file.log").exists():
            kinds = [block.kind for block in scan_log_blocks(Storage(str(folder)), "file.log")]
            assert kinds in ([], [2], [3], [3, 2], [3, 1])
    assert failed >= 6


def test_a_block_that_hudi_cannot_read_is_refused_before_anything_is_written(tmp_path):
    huge = np.zeros(1 << 20, np.uint8)
    with LogFileWriter(Storage(str(tmp_path)), "file.log") as writer:
        with pytest.raises(InvalidDataError, match=r"hoodie.logfile.data.block.max.size"):
            writer.append(BlockType.AVRO_DATA, {}, [huge] * 2048)
        with pytest.raises(ValueError, match="CORRUPT blocks cannot be written"):
            writer.append(BlockType.CORRUPT, {}, b"")
        assert writer.size == 0
    assert (tmp_path / "file.log").read_bytes() == b""


def test_closing_twice_is_fine(tmp_path):
    with LogFileWriter(Storage(str(tmp_path)), "file.log") as writer:
        writer.append(BlockType.COMMAND, {}, [])
        writer.close()
        writer.close()
    assert (tmp_path / "file.log").stat().st_size == writer.size
