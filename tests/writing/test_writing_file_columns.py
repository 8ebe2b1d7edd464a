"""Meta columns and data columns of a base file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.writing.output_file import (
    META_COLUMNS,
    CarriedColumns,
    carried_schema,
    constant_column,
    new_meta_columns,
    sequence_numbers,
    writer_schema,
)
from hudi_fast.writing.write_plan import WritePlan
from tests.support.small_tables import options, plain_rows
from tests.writing.plans import INSTANT, drafted


@pytest.fixture
def plan(tmp_path: Path) -> WritePlan:
    hf.write(plain_rows([0]), tmp_path, options())
    return drafted(tmp_path, plain_rows([0]), options())[0]


def without_meta(plan: WritePlan) -> WritePlan:
    return replace(plan, table=replace(plan.table, config=replace(plan.config, populate_meta_fields=False)))


def test_new_rows_have_five_meta_columns(plan: WritePlan) -> None:
    columns = new_meta_columns(plan, pa.array(["a", "b"]), "p0", "f.parquet", 3, 8)
    assert [column.to_pylist()[-1] for column in columns] == [INSTANT, f"{INSTANT}_3_9", "b", "p0", "f.parquet"]
    nothing = new_meta_columns(without_meta(plan), pa.array(["a"]), "p0", "f.parquet", 3, 8)
    assert [column.to_pylist() for column in nothing] == [[None]] * 5


def test_columns_of_one_value_are_written_as_dictionaries(plan: WritePlan) -> None:
    kinds = {field.name: pa.types.is_dictionary(field.type) for field in writer_schema(plan)}
    assert [name for name, is_dictionary in kinds.items() if is_dictionary] == list(META_COLUMNS[3:])
    assert constant_column("x", 3).to_pylist() == ["x"] * 3
    assert sequence_numbers("100", 2, 9, 2).to_pylist() == ["100_2_9", "100_2_10"]


def test_stored_rows_keep_commit_and_key_and_get_the_new_file(plan: WritePlan) -> None:
    carried = CarriedColumns.of(plan, "p0", "new.parquet")
    assert carried.wanted == carried_schema(plan)
    assert set(META_COLUMNS) - set(carried.wanted.names) == set(META_COLUMNS[3:])
    stored = pa.Table.from_pylist(
        [{"_hoodie_commit_time": "100", "_hoodie_record_key": "a", "id": "a"}], carried.wanted
    )
    (row,) = carried.complete(stored).to_pylist()
    assert row["_hoodie_commit_time"] == "100"
    assert (row["_hoodie_partition_path"], row["_hoodie_file_name"]) == ("p0", "new.parquet")
    assert list(row)[:5] == list(META_COLUMNS)
