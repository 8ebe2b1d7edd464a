"""Lance base files: rows, ranges of rows, Hudi's keys, types, files on other storage, damage.

Modules: hudi_fast.formats.lance.base_file, hudi_fast.formats.lance.decoding, hudi_fast.formats.lance.decoder.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest

from hudi_fast.errors import ConfigError, CorruptTableError, FileGoneError, HudiError, UnsupportedFeatureError
from hudi_fast.formats.avro.schema import arrow_to_avro
from hudi_fast.formats.base_file import BaseFileFooter
from hudi_fast.formats.lance import decoding
from hudi_fast.formats.lance.base_file import LanceSettings, LanceWriter, lance_files, open_lance_file, table_schema
from hudi_fast.formats.logical_types import vector_type
from hudi_fast.storage.base import Storage
from tests.formats.lance_rows import ROWS, SCHEMA, UTC, written
from tests.servers.s3 import S3Server


def test_dictionary_encoded_texts_are_stored_as_texts(tmp_path: Path) -> None:
    storage, values = Storage(tmp_path), ["a", "b", None, "a"]
    rows = pa.table({"_hoodie_file_name": pa.array(values).dictionary_encode()})
    avro = arrow_to_avro(pa.schema([("_hoodie_file_name", pa.string())]), "r", "n")
    writer = LanceWriter(storage, "a.lance", rows.schema, LanceSettings(), avro)
    writer.write(rows)
    writer.close(BaseFileFooter())
    assert lance_files().LanceFileReader(str(tmp_path / "a.lance")).metadata().schema.types == [pa.string()]
    with open_lance_file(storage, "a.lance") as reader:
        assert reader.read(["_hoodie_file_name"])["_hoodie_file_name"].to_pylist() == values
        assert reader.footer() == BaseFileFooter()


def test_the_metadata_has_hudis_keys_and_the_version_is_that_of_hudi(tmp_path: Path) -> None:
    written(Storage(tmp_path), [ROWS])
    found = lance_files().LanceFileReader(str(tmp_path / "p" / "a.lance")).metadata()
    assert (found.major_version, found.minor_version) == (2, 1)
    assert sorted(found.schema.metadata) == [
        b"hoodie.vector.columns",
        b"hoodie_bloom_filter_type_code",
        b"hoodie_max_record_key",
        b"hoodie_min_record_key",
        b"hudi_fast.avro.schema",
        b"org.apache.hudi.bloomfilter",
    ]
    assert found.schema.metadata[b"hoodie.vector.columns"] == b"vector:VECTOR(3),wide:VECTOR(2, DOUBLE)"


def test_a_long_file_is_read_in_ranges_of_rows(tmp_path: Path) -> None:
    storage, count = Storage(tmp_path), 300_000
    rows = pa.table({"n": pa.array(range(count), pa.int64()), "text": [f"text {at % 1000}" for at in range(count)]})
    written(storage, [rows.slice(at, 100_000) for at in range(0, count, 100_000)])
    with open_lance_file(storage, "p/a.lance") as reader:
        sizes = reader.row_group_rows()
        assert (len(sizes), sum(sizes)) == (reader.num_row_groups, count)
        assert len(sizes) >= 3
        start = sum(sizes[:1])
        assert reader.read(["text", "n"], [1]).equals(rows.select(["text", "n"]).slice(start, sizes[1]))
        last = list(reader.batches(["n"], 1000, [len(sizes) - 1]))
        assert last[-1].column(0)[-1].as_py() == count - 1
        assert {one.num_rows for one in last[:-1]} == {1000}
        assert reader.read(["n"]).equals(rows.select(["n"]))


def test_columns_of_another_writer_have_the_nearest_types_of_a_table(tmp_path: Path) -> None:
    rows = pa.table(
        {
            "text": pa.array(["x", None], pa.large_string()),
            "raw": pa.array([b"x", None], pa.large_binary()),
            "tiny": pa.array([1, None], pa.int8()),
            "many": pa.array([2**32 - 1, None], pa.uint32()),
            "half": pa.array([1.5, None], pa.float16()),
            "vector": pa.array([[1, 2], None], pa.list_(pa.float32(), 2)),
            "list": pa.array([["x"], None], pa.large_list(pa.large_string())),
            "part": pa.array([{"a": 1}, None], pa.struct([("a", pa.int16())])),
            "second": pa.array([1, None], pa.timestamp("s", "UTC")),
        }
    )
    stored(tmp_path, rows)
    types = [
        *(pa.string(), pa.binary(), pa.int32(), pa.int64(), pa.float32(), vector_type(2, pa.float32())),
        *(pa.list_(pa.field("element", pa.string())), pa.struct([("a", pa.int32())]), UTC),
    ]
    with open_lance_file(Storage(tmp_path), "a.lance") as reader:
        assert reader.schema.types == types
        assert reader.read(reader.schema.names).to_pylist() == rows.to_pylist()
    with pytest.raises(UnsupportedFeatureError, match=r"'span\.x'.*duration"):
        table_schema(pa.schema([("span", pa.struct([("x", pa.duration("s"))]))]), pa.schema([]), "a.lance")


def stored(folder: Path, rows: pa.Table, version: str = "2.1", **metadata: str) -> bytes:
    """A file of another writer, ``a.lance``; its content."""
    path = folder / "a.lance"
    writer = lance_files().LanceFileWriter(str(path), rows.schema, version=version)
    for batch in rows.to_batches():
        writer.write_batch(batch)
    for key, value in metadata.items():
        writer.add_schema_metadata(key, value)
    writer.close()
    return path.read_bytes()


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_files_of_every_version_of_the_format_are_read(version: str, tmp_path: Path) -> None:
    rows = pa.table({"id": [f"k{at}" for at in range(1000)], "n": pa.array([None, 1] * 500, pa.int64())})
    stored(tmp_path, rows, version, hoodie_min_record_key="k0")
    with open_lance_file(Storage(tmp_path), "a.lance") as reader:
        assert reader.read(["id", "n"]).equals(rows)
        assert reader.footer() == BaseFileFooter(min_key="k0")


def decoders() -> list[int]:
    """Process ids of the idle decoders."""
    return [one._process.pid for one in decoding._idle]


def end_decoders() -> None:
    """Start the next read with a new process."""
    while decoding._idle:
        decoding._idle.pop().end()


@pytest.fixture
def many(tmp_path: Path) -> Storage:
    """``p/a.lance`` with 300 000 rows, more than a pipe holds."""
    rows = pa.table({"n": pa.array(range(300_000), pa.int64())})
    written(Storage(tmp_path), [rows])
    return Storage(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "error", "text"),
    [
        (signal.SIGABRT, CorruptTableError, r"pylance ended its process with SIGABRT.*a\.lance"),
        (signal.SIGSEGV, CorruptTableError, r"pylance ended its process with SIGSEGV.*a\.lance"),
        (signal.SIGKILL, HudiError, "SIGKILL ended it, perhaps for lack of memory"),
    ],
)
def test_the_end_of_a_decoder_is_an_error_and_the_next_read_has_another(
    number: signal.Signals, error: type[HudiError], text: str, many: Storage
) -> None:
    with open_lance_file(many, "p/a.lance") as reader:
        end_decoders()
        batches = reader.batches(["n"], 1000)
        next(batches)
        with (
            mock.patch.object(decoding._Decoder, "_read", autospec=True, side_effect=killed_first(number)),
            pytest.raises(error, match=text) as caught,
        ):
            list(batches)
        assert type(caught.value) is error
        assert decoders() == []
        assert reader.read(["n"]).num_rows == 300_000


def killed_first(number: signal.Signals) -> Callable[[Any, int], bytes]:
    """``_Decoder._read`` of a process that gets a signal before."""
    read = decoding._Decoder._read

    def kill_and_read(process: Any, size: int) -> bytes:
        process._process.send_signal(number)
        process._process.wait()
        while True:
            read(process, size)  # what the pipe holds

    return kill_and_read


@pytest.mark.slow
def test_a_decoder_that_was_killed_while_idle_is_replaced(many: Storage) -> None:
    with open_lance_file(many, "p/a.lance") as reader:
        for one in decoders():
            os.kill(one, signal.SIGKILL)
        while any(one.is_running for one in decoding._idle):
            time.sleep(0.01)
        assert reader.read(["n"]).num_rows == 300_000


@pytest.mark.slow
def test_a_read_that_is_given_up_ends_its_decoder(many: Storage) -> None:
    with open_lance_file(many, "p/a.lance") as reader:
        end_decoders()
        batches = reader.batches(["n"], 1000)
        next(batches)
        batches.close()
        assert decoders() == []
        assert sum(one.num_rows for one in reader.batches(["n"], 1000)) == 300_000
        first = decoders()
        assert len(first) == 1
        assert reader.read(["n"]).num_rows == 300_000
        assert decoders() == first


@pytest.mark.slow
def test_a_fork_has_decoders_of_its_own(many: Storage) -> None:
    with open_lance_file(many, "p/a.lance") as reader:
        kept = decoders()
        assert kept
        child = os.fork()
        if child == 0:
            try:
                right = decoders() == [] and reader.read(["n"]).num_rows == 300_000 and decoders() != kept
            finally:
                end_decoders()
                os._exit(0 if right else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert reader.read(["n"]).num_rows == 300_000
        assert decoders() == kept


def test_a_decoder_that_cannot_start_is_an_error(many: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    end_decoders()
    for python, text in (("false", "gave no answer: it printed nothing"), ("/nothing", "cannot start")):
        monkeypatch.setattr(sys, "executable", python)
        with pytest.raises(HudiError, match=text) as caught:
            open_lance_file(many, "p/a.lance")
        assert not isinstance(caught.value, CorruptTableError)


@pytest.mark.slow
def test_a_file_with_any_changed_byte_is_read_or_refused(tmp_path: Path) -> None:
    """pylance 14 ends its process at some of them."""
    rows = pa.table({"id": [f"k{at}" for at in range(30)], "list": [[at, None] for at in range(30)]})
    raw = stored(tmp_path, rows)
    storage, ends = Storage(tmp_path), []
    for at in range(0, len(raw), max(1, len(raw) // 60)):
        (tmp_path / "b.lance").write_bytes(raw[:at] + bytes([raw[at] ^ 0xFF]) + raw[at + 1 :])
        try:
            with open_lance_file(storage, "b.lance") as reader:
                reader.read(reader.schema.names)
        except CorruptTableError as error:
            ends.append(str(error))
    assert ends
    assert all("b.lance" in one for one in ends)


def test_an_aborted_file_leaves_nothing(tmp_path: Path) -> None:
    writer = LanceWriter(Storage(tmp_path), "p/a.lance", ROWS.schema, LanceSettings(), "{}")
    writer.write(ROWS)
    assert writer.bytes_encoded > 0
    writer.abort()
    assert list((tmp_path / "p").iterdir()) == []


def test_files_in_an_object_store_are_copied_and_the_copies_deleted(
    s3_server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    storage = Storage(s3_server.path("lance"), s3_server.options)
    size = written(storage, [ROWS] * 10)
    assert list(tmp_path.iterdir()) == []
    found = storage.stat("p/a.lance")
    assert found is not None
    assert found.size == size
    with open_lance_file(storage, "p/a.lance", size) as reader:
        assert len(list(tmp_path.iterdir())) == 1
        assert reader.read(SCHEMA.names).equals(pa.concat_tables([ROWS] * 10))
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(FileGoneError, match=r"b\.lance"):
        open_lance_file(storage, "p/b.lance")
    storage.write_bytes("p/c.lance", b"no Lance")
    with pytest.raises(CorruptTableError, match=r"c\.lance"):
        open_lance_file(storage, "p/c.lance")
    writer = LanceWriter(storage, "p/d.lance", ROWS.schema, LanceSettings(), "{}")
    writer.write(ROWS)
    writer.abort()
    assert storage.stat("p/d.lance") is None
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def without_pylance(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lance", None)
    monkeypatch.setitem(sys.modules, "lance.file", None)


def test_without_the_package_the_error_says_how_to_install_it(without_pylance: None, tmp_path: Path) -> None:
    (tmp_path / "a.lance").write_bytes(b"LANC")
    with pytest.raises(ConfigError, match=r"pip install 'hudi-fast\[lance\]'"):
        open_lance_file(Storage(tmp_path), "a.lance")


@pytest.mark.slow
def test_threads_read_one_file_at_once(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    written(storage, [ROWS] * 100)
    found: list[Any] = []

    def read() -> None:
        with open_lance_file(storage, "p/a.lance") as reader:
            found.append(reader.read(SCHEMA.names).num_rows)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert found == [900] * 4


def test_a_cut_file_is_refused_wherever_it_ends(tmp_path: Path) -> None:
    rows = pa.table({"id": [f"k{at:04d}" for at in range(60)], "s": ["x", None, "yy"] * 20})
    raw = stored(tmp_path, rows)
    for end in range(0, len(raw), 37):
        (tmp_path / "b.lance").write_bytes(raw[:end])
        with pytest.raises(CorruptTableError, match=r"b\.lance"):
            open_lance_file(Storage(tmp_path), "b.lance")


def test_changed_bytes_of_values_are_read_or_refused(tmp_path: Path) -> None:
    """Texts that are no longer UTF-8 are found; other values have no checksum."""
    rows = pa.table({"s": [f"text number {at}" for at in range(40)]})
    raw = stored(tmp_path, rows)
    at = raw.index(b"text number 1")
    (tmp_path / "b.lance").write_bytes(raw[:at] + b"\xff" + raw[at + 1 :])
    with open_lance_file(Storage(tmp_path), "b.lance") as reader, pytest.raises(CorruptTableError, match=r"b\.lance"):
        reader.read(["s"])
    (tmp_path / "b.lance").write_bytes(raw[:at] + b"T" + raw[at + 1 :])
    with open_lance_file(Storage(tmp_path), "b.lance") as reader:
        assert reader.read(["s"])["s"].to_pylist()[1] == "Text number 1"


def test_a_file_that_is_deleted_while_it_is_open_is_gone(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    written(storage, [ROWS])
    with open_lance_file(storage, "p/a.lance") as reader:
        (tmp_path / "p" / "a.lance").unlink()
        with pytest.raises(FileGoneError, match=r"a\.lance"):
            reader.read(["key"])
