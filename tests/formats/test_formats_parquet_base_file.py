"""An open base file: its leaf columns, reading in small parts, and the memory of its footer."""

from __future__ import annotations

import gc
import re
import weakref
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_fast.errors import CorruptTableError
from hudi_fast.formats.parquet.base_file import open_base_file
from hudi_fast.storage.base import Storage
from tests.formats.format_files import DistantStorage

LEAVES = [("key", "BYTE_ARRAY"), ("list.list.element", "INT64"), ("when", "INT96")]


@pytest.fixture
def no_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def write_file(folder: Path, rows: int) -> str:
    columns = {
        "key": pa.array([f"key {number}" for number in range(rows)], pa.string()),
        "list": pa.array([[number] for number in range(rows)], pa.list_(pa.int64())),
        "when": pa.array(range(rows), pa.timestamp("us")),
    }
    pq.write_table(pa.table(columns), folder / "base.parquet", use_deprecated_int96_timestamps=True)
    return "base.parquet"


@pytest.mark.parametrize("rows", [0, 3])
def test_leaves_are_columns_as_stored(tmp_path: Path, rows: int) -> None:
    with open_base_file(Storage(str(tmp_path)), write_file(tmp_path, rows)) as reader:
        assert reader.leaves == LEAVES
        assert reader.column_numbers == {"key": 0, "list.list.element": 1, "when": 2}


@pytest.mark.slow
@pytest.mark.usefixtures("no_collection")
def test_closed_file_does_not_keep_its_footer(tmp_path: Path) -> None:
    """A footer has a bloom filter of 400 KB or more, and a write may look up keys in thousands of files."""
    with open_base_file(Storage(str(tmp_path)), write_file(tmp_path, 3)) as reader:
        footer = weakref.ref(reader.metadata)
        assert [batch.num_rows for batch in reader.batches(["key"])] == [3]
        assert reader.column_numbers["key"] == 0
    del reader
    assert footer() is None


@pytest.mark.slow
@pytest.mark.parametrize("storage", [Storage, DistantStorage])
def test_rows_are_equal_however_much_is_read_at_once(tmp_path: Path, storage: type[Storage]) -> None:
    """A column chunk of 800 000 bytes is read from local disk in parts."""
    path = write_file(tmp_path, 100_000)
    with open_base_file(storage(str(tmp_path)), path) as reader:
        found = pa.Table.from_batches(reader.batches(["list", "key"], 30_000))
    assert found.equals(pq.read_table(tmp_path / path).select(["list", "key"]))


def test_a_footer_whose_chunks_have_other_types_or_names_is_refused(tmp_path: Path) -> None:
    """pyarrow 26 ends the process when it looks at a chunk of another type than its column."""
    path, storage = write_file(tmp_path, 3), Storage(str(tmp_path))
    raw = (tmp_path / path).read_bytes()
    start = len(raw) - 8 - int.from_bytes(raw[-8:-4], "little")
    for name, chunk in (("key", 0), ("element", 1), ("when", 2)):
        at = raw.index(b"\x15", raw.rindex(b"\x1c\x15", start, raw.rindex(name.encode(), start)))
        (tmp_path / path).write_bytes(raw[: at + 1] + bytes([raw[at + 1] ^ 2]) + raw[at + 2 :])
        with pytest.raises(CorruptTableError, match=rf"column {chunk} of row group 0.*base\.parquet"):
            open_base_file(storage, path)
    for damaged in (b"\x18\x03key", b"parquet-cpp"):
        at = raw.rindex(damaged, start) + 2
        (tmp_path / path).write_bytes(raw[:at] + b"\xff" + raw[at + 1 :])
        with (
            open_base_file(storage, path) as reader,
            pytest.raises(CorruptTableError, match=r"utf-8.*base\.parquet"),
        ):
            assert (reader.leaves, reader.has_nan_safe_bounds) is None


def test_a_file_with_two_columns_of_one_name_is_refused(tmp_path: Path) -> None:
    twins = pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"])
    pq.write_table(twins, tmp_path / "base.parquet")
    with pytest.raises(CorruptTableError, match=r"columns have one name: \['a', 'a'\].*base\.parquet"):
        open_base_file(Storage(str(tmp_path)), "base.parquet")


@pytest.mark.parametrize("kept", [0, 4, 600])
def test_the_error_of_a_file_that_was_cut_names_the_table_the_file_and_its_size(kept: int, tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    pq.write_table(pa.table({"id": [str(number) for number in range(500)]}), tmp_path / "a.parquet")
    (tmp_path / "a.parquet").write_bytes((tmp_path / "a.parquet").read_bytes()[:kept])
    expected = rf"Table {re.escape(storage.uri)}: a base file of {kept} bytes .*services\.validate.*a\.parquet"
    with pytest.raises(CorruptTableError, match=expected), open_base_file(storage, "a.parquet"):
        pass
