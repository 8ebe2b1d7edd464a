"""Stitched base files against the obvious: both files read whole and put side by side."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hudi_fast as hf
from hudi_fast.formats.parquet.base_file import open_base_file
from hudi_fast.formats.parquet.stitched_base import StitchedBaseFile, folder_scalar
from hudi_fast.storage.base import Storage

FOLDER = {"city": "c 1", "year": "2024", "b": "not mine", "gone": None}


def make(folder: Path, rows: int, meta_group: int, data_group: int) -> tuple[StitchedBaseFile, pa.Table, list[int]]:
    numbers = list(range(rows))
    meta = pa.table({"_k": pa.array([f"k{n}" for n in numbers], pa.string()), "_n": pa.array(numbers, pa.int64())})
    data = pa.table({"a": pa.array([n * 2 for n in numbers], pa.int32()), "b": pa.array([str(n) for n in numbers])})
    pq.write_table(meta, folder / "skeleton.parquet", row_group_size=meta_group)
    pq.write_table(data, folder / "source.parquet", row_group_size=data_group)
    storage = Storage(folder)
    stitched = StitchedBaseFile(
        open_base_file(storage, "skeleton.parquet"), lambda: open_base_file(storage, "source.parquet"), FOLDER
    )
    whole = pa.table(
        {
            **{name: meta.column(name) for name in meta.column_names},
            **{name: data.column(name) for name in data.column_names},
            "city": pa.array(["c 1"] * rows, pa.string()),
            "year": pa.array([2024] * rows, pa.int32()),
            "gone": pa.nulls(rows, pa.string()),
        }
    )
    sizes = [min(data_group, rows - start) for start in range(0, rows, data_group)]
    return stitched, whole, sizes


@given(
    st.integers(0, 60),
    st.integers(1, 25),
    st.integers(1, 25),
    st.integers(1, 30),
    st.lists(st.sampled_from(["_k", "_n", "a", "b", "city", "year", "gone"]), unique=True),
    st.data(),
)
def test_batches_and_columns_are_those_of_both_files_side_by_side(
    tmp_path_factory: pytest.TempPathFactory,
    rows: int,
    meta_group: int,
    data_group: int,
    batch_rows: int,
    columns: list[str],
    more: st.DataObject,
) -> None:
    stitched, whole, sizes = make(tmp_path_factory.mktemp("s"), rows, meta_group, data_group)
    with stitched as reader:
        assert reader.num_rows == rows
        assert reader.schema == whole.schema
        assert reader.row_group_rows() == (sizes or reader.row_group_rows())
        chosen = more.draw(
            st.none() | st.lists(st.integers(0, max(reader.num_row_groups - 1, 0)), unique=True).map(sorted)
        )
        chosen = [one for one in chosen if one < reader.num_row_groups] if chosen is not None else None
        expected = whole.select(columns)
        if chosen is not None:
            starts = [sum(sizes[:group]) for group in chosen]
            parts = [whole.slice(start, sizes[group]) for start, group in zip(starts, chosen, strict=True) if sizes]
            expected = pa.concat_tables([whole.slice(0, 0), *parts]).select(columns)
        batches = list(reader.batches(columns, batch_rows, chosen))
        assert all(batch.num_rows <= batch_rows for batch in batches)
        if columns:
            assert pa.Table.from_batches(batches, expected.schema).equals(expected)
            assert reader.read(columns, chosen).equals(expected)
        else:
            assert sum(batch.num_rows for batch in batches) == expected.num_rows


def test_another_number_of_rows_is_refused(tmp_path: Path) -> None:
    stitched, _, _ = make(tmp_path, 10, 4, 4)
    pq.write_table(pa.table({"a": [1, 2]}), tmp_path / "source.parquet")
    with stitched as reader, pytest.raises(hf.CorruptTableError, match="holds 2 rows, but 10 when"):
        reader.read(["a"])


def test_the_source_is_opened_for_its_columns_alone(tmp_path: Path) -> None:
    stitched, whole, _ = make(tmp_path, 10, 4, 4)
    (tmp_path / "source.parquet").unlink()
    with stitched as reader:
        assert reader.read(["_k", "_n"]).equals(whole.select(["_k", "_n"]))
        assert sum(batch.num_rows for batch in reader.batches(["_n"])) == 10


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("2024", pa.int32()),
        ("-7", pa.int32()),
        ("0", pa.int32()),
        ("3000000000", pa.int64()),
        ("007", pa.string()),
        ("-0", pa.string()),
        ("1.5", pa.string()),
        ("", pa.string()),
        ("٣", pa.string()),
        ("99999999999999999999", pa.string()),
        (None, pa.string()),
    ],
)
def test_numbers_in_folder_names_are_numbers_if_nothing_is_lost(text: str | None, kind: pa.DataType) -> None:
    found = folder_scalar(text)
    assert found.type == kind
    assert (None if text is None else str(found.as_py())) == text
