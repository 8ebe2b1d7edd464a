"""Columns that hold one text are not read from the file, and every batch is as if they were."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_fast.formats.parquet.base_file import ParquetReader
from hudi_fast.formats.parquet.leaf_columns import ConstantColumns

TEXTS = st.sampled_from(["", "a", "b", "é😀", "a" * 100]) | st.none()


def reader_of(path: Path, table: pa.Table, group_rows: int, **options: object) -> ParquetReader:
    pq.write_table(table, path, row_group_size=group_rows, store_schema=False, **options)
    return ParquetReader(str(path), pq.ParquetFile(path))


def constant(reader: ParquetReader, columns: list[str], groups: list[int]) -> set[str]:
    found = ConstantColumns(reader.statistics, reader.column_numbers, reader.schema, columns, groups)
    return set(columns) - set(found.others)


@pytest.fixture
def reader(tmp_path: Path) -> ParquetReader:
    """Three row groups of two rows."""
    columns = {
        "one": ["x"] * 6,
        "by_group": ["a", "a", "b", "b", "b", "b"],
        "two": ["a", "b"] * 3,
        "some": ["x", None] * 3,
        "none": pa.array([None] * 6, pa.string()),
        "number": [1] * 6,
        "nested": [{"one": "x"}] * 6,
    }
    return reader_of(tmp_path / "file.parquet", pa.table(columns), 2)


def test_a_column_is_constant_if_all_rows_that_are_read_have_its_text(reader: ParquetReader) -> None:
    names = reader.schema.names
    assert constant(reader, names, [0, 1, 2]) == {"one"}
    assert constant(reader, names, [1, 2]) == {"one", "by_group"}
    assert constant(reader, names, []) == set()


def test_no_column_is_constant_among_leaves_of_nested_columns(reader: ParquetReader) -> None:
    assert constant(reader, ["one", "nested.one"], [0]) == set()


def test_only_constant_columns_are_read_as_many_rows_as_there_are(reader: ParquetReader) -> None:
    batches = list(reader.batches(["by_group", "one"], 3, [1, 2]))
    assert pa.Table.from_batches(batches).to_pydict() == {"by_group": ["b"] * 4, "one": ["x"] * 4}


def test_batches_share_the_memory_of_a_constant_column(tmp_path: Path) -> None:
    table = pa.table({"name": ["file" * 20] * 10_000, "number": range(10_000)})
    batches = list(reader_of(tmp_path / "file.parquet", table, 10_000).batches(["name", "number"], 1000))
    assert len({batch.column("name").buffers()[2].address for batch in batches}) == 1


def test_a_column_without_statistics_is_read(tmp_path: Path) -> None:
    table = pa.table({"one": ["x"] * 6})
    reader = reader_of(tmp_path / "file.parquet", table, 2, write_statistics=False)
    assert constant(reader, ["one"], [0, 1, 2]) == set()
    assert pa.Table.from_batches(reader.batches(["one"])).equals(table)


def test_text_that_is_not_utf_8_is_left_to_arrow(tmp_path: Path) -> None:
    invalid = pa.Array.from_buffers(
        pa.string(), 2, [None, pa.array([0, 1, 2], pa.int32()).buffers()[1], pa.py_buffer(b"\xff\xff")]
    )
    reader = reader_of(tmp_path / "file.parquet", pa.table({"one": invalid}), 2)
    assert constant(reader, ["one"], [0]) == set()


@given(
    rows=st.lists(st.tuples(TEXTS, TEXTS, st.integers(0, 3)), min_size=1, max_size=12),
    group_rows=st.integers(1, 5),
    batch_rows=st.integers(1, 7),
    data=st.data(),
)
def test_batches_are_those_of_a_plain_read(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[str | None, str | None, int]],
    group_rows: int,
    batch_rows: int,
    data: st.DataObject,
) -> None:
    left, right, numbers = (list(column) for column in zip(*rows, strict=True))
    table = pa.table({"left": pa.array(left, pa.string()), "right": pa.array(right, pa.string()), "number": numbers})
    reader = reader_of(tmp_path_factory.mktemp("constant") / "file.parquet", table, group_rows)
    columns = data.draw(st.permutations(["left", "right", "number"]).map(lambda names: names[: 1 + len(rows) % 3]))
    groups = data.draw(st.lists(st.integers(0, reader.num_row_groups - 1), unique=True, min_size=1).map(sorted))
    expected = reader.read(columns, groups).select(columns)
    batches = list(reader.batches(columns, batch_rows, groups))
    assert all(0 < batch.num_rows <= batch_rows for batch in batches)
    assert pa.Table.from_batches(batches, batches[0].schema).equals(expected)


def test_a_column_that_no_chunk_names_is_not_constant(reader: ParquetReader) -> None:
    found = ConstantColumns(reader.statistics, {}, reader.schema, ["one"], [0])
    assert found.others == ["one"]
