"""Columns of a base file in the current types of the table."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_fast.errors import SchemaMismatchError
from hudi_fast.formats.parquet.base_file import open_base_file
from hudi_fast.merging.base_merge import stored_batches, stored_table
from hudi_fast.storage.base import Storage

STORED = pa.table({"a": pa.array(range(10), pa.int32()), "b": [f"t{number}" for number in range(10)]})


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    pq.write_table(STORED, tmp_path / "f.parquet", row_group_size=4)
    return Storage(tmp_path)


def test_columns_are_widened_ordered_and_added(storage: Storage) -> None:
    wanted = pa.schema({"new": pa.date32(), "b": pa.string(), "a": pa.int64()})
    expected = [{"new": None, "b": f"t{number}", "a": number} for number in range(10)]
    with open_base_file(storage, "f.parquet") as reader:
        table = stored_table(reader, wanted)
        batches = list(stored_batches(reader, wanted, batch_rows=3))
    assert table.schema == wanted
    assert table.to_pylist() == expected
    assert all(column.num_chunks == 1 for column in table.columns)
    assert [batch.schema for batch in batches] == [wanted] * len(batches)
    assert [row for batch in batches for row in batch.to_pylist()] == expected
    assert max(batch.num_rows for batch in batches) <= 3


def test_columns_that_the_file_lacks_are_nulls_for_each_row(storage: Storage) -> None:
    wanted = pa.schema({"new": pa.string()})
    with open_base_file(storage, "f.parquet") as reader:
        assert stored_table(reader, wanted).to_pylist() == [{"new": None}] * 10
        assert [batch.num_rows for batch in stored_batches(reader, wanted)] == [4, 4, 2]


def test_a_type_that_cannot_be_converted_is_refused(storage: Storage) -> None:
    with open_base_file(storage, "f.parquet") as reader, pytest.raises(SchemaMismatchError):
        stored_table(reader, pa.schema({"b": pa.int64()}))
