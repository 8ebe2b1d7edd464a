"""HFile base files: rows by record key, Hudi's keys, damage."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hudi_fast.errors import CorruptTableError, FileGoneError
from hudi_fast.formats.avro.rows import AvroEncoder
from hudi_fast.formats.avro.schema import arrow_to_avro
from hudi_fast.formats.hfile.base_file import open_hfile
from hudi_fast.formats.hfile.writer import encode_hfile
from hudi_fast.storage.base import Storage

ROWS = pa.table({"_hoodie_record_key": ["a", "b", "c"], "n": [1, None, 3], "key": ["", "", ""]})


def stored(folder: Path, rows: pa.Table) -> Storage:
    avro = arrow_to_avro(rows.schema, "r", "n")
    batch = rows.combine_chunks().to_batches()[0]
    values = AvroEncoder.compile(rows.schema, avro).encode_values(batch)
    content = b"".join(bytes(part) for part in encode_hfile(rows["_hoodie_record_key"].combine_chunks(), values, avro))
    (folder / "a.hfile").write_bytes(content)
    return Storage(folder)


def test_rows_come_in_key_order_with_the_key_that_records_leave_out(tmp_path: Path) -> None:
    with open_hfile(stored(tmp_path, ROWS), "a.hfile") as reader:
        assert (reader.num_rows, reader.row_group_rows(), reader.metadata) == (3, [3], None)
        assert reader.schema.names == ROWS.column_names
        expected = ROWS.set_column(2, "key", [["a", "b", "c"]])
        assert reader.read(ROWS.column_names).to_pylist() == expected.to_pylist()
        assert reader.read(["n"]).to_pylist() == [{"n": 1}, {"n": None}, {"n": 3}]
        assert [one.num_rows for one in reader.batches(["n"], 2)] == [2, 1]
        assert [one.num_rows for one in reader.batches([], 2)] == [2, 1]
        assert reader.read(["n"], []).num_rows == 0


def test_a_missing_or_damaged_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    storage = stored(tmp_path, ROWS)
    raw = (tmp_path / "a.hfile").read_bytes()
    with pytest.raises(FileGoneError, match=r"b\.hfile"):
        open_hfile(storage, "b.hfile")
    for content in (b"", raw[:-1], raw[: len(raw) // 2]):
        (tmp_path / "b.hfile").write_bytes(content)
        with pytest.raises(CorruptTableError, match=r"b\.hfile"):
            open_hfile(storage, "b.hfile")
