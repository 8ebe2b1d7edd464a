"""The workload profile: balance of partitions, files for inserts, and the size of a stored row."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hudi_fast as hf
from hudi_fast.config.write_options import WriteOptions
from hudi_fast.storage.base import Storage
from hudi_fast.view.slices import FileSlice, latest_slices
from hudi_fast.view.table_state import load_state
from hudi_fast.writing.draft import draft_plan
from hudi_fast.writing.profile import (
    InsertFiles,
    WorkloadProfile,
    bulk_parts,
    encoded_row_size,
    insert_files,
    load_factor,
    may_need_row_size,
    sizing_of,
    with_measured_row_size,
    with_row_size,
)
from hudi_fast.writing.write_plan import WritePlan
from tests.support.small_tables import options, plain_rows


def plan_of(path: Path, rows: pa.Table, **settings: str) -> WritePlan:
    state = load_state(Storage(path))
    return draft_plan(state, WriteOptions.from_options(options() | settings), rows.schema)


def numbered(plan: WritePlan, partition: str) -> list[tuple[int, FileSlice]]:
    return list(enumerate(latest_slices(plan.view, partition)))


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=40), st.integers(1, 8))
def test_the_load_factor_lies_between_an_even_share_and_one_worker(weights: list[int], workers: int) -> None:
    found = load_factor(weights, workers)
    assert 1 - 1e-9 <= found <= workers + 1e-9
    if sum(weights):
        assert found * sum(weights) / workers >= max(weights) * (1 - 1e-9)


@pytest.mark.parametrize(
    ("weights", "workers", "expected"),
    [([5, 5, 5, 5], 2, 1.0), ([90, 5, 5], 2, 1.8), ([10], 4, 4.0), ([], 3, 1.0), ([3, 3, 3], 2, 4 / 3)],
)
def test_load_factor(weights: list[int], workers: int, expected: float) -> None:
    assert load_factor(weights, workers) == pytest.approx(expected)


def test_inserts_become_as_many_new_files_as_their_size_demands(tmp_path: Path) -> None:
    hf.write(plain_rows(range(4)), tmp_path / "t", options())
    plan = with_row_size(plan_of(tmp_path / "t", plain_rows([1]), **{"hoodie.parquet.max.file.size": "1000"}), 10)
    plan = replace(plan, operation="insert_overwrite")
    assert insert_files(plan, "new", [], 1000) == InsertFiles((), (100,) * 10)
    assert insert_files(plan, "new", [], 1001) == InsertFiles((), (*(100,) * 10, 1))
    assert insert_files(plan, "new", [], 0) == InsertFiles((), (1,))


def test_small_files_take_inserts_first(tmp_path: Path) -> None:
    hf.write(plain_rows(range(4)), tmp_path / "t", options())
    rows = plain_rows([1])
    plan = plan_of(tmp_path / "t", rows)
    ((number, one),) = numbered(plan, "p0")
    assert one.base_file is not None
    free = 1000
    sized = {"hoodie.parquet.max.file.size": str(one.base_file.size + 10 * free)}
    plan = with_row_size(plan_of(tmp_path / "t", rows, **sized), 10)
    assert insert_files(plan, "p0", [(number, one)], free // 2) == InsertFiles(((number, free // 2),), ())
    found = insert_files(plan, "p0", [(number, one)], free + 5)
    assert found == InsertFiles(((number, free),), (5,))
    assert found.filled_share == pytest.approx(free / (free + 5))
    fresh = replace(plan, operation="insert_overwrite")
    assert insert_files(fresh, "p0", [(number, one)], 5).filled == ()


@pytest.fixture(scope="module")
def bulk_plan(tmp_path_factory: pytest.TempPathFactory) -> WritePlan:
    folder = tmp_path_factory.mktemp("bulk")
    hf.write(plain_rows(range(4)), folder / "t", options())
    split = {"hoodie.copyonwrite.insert.auto.split": "false", "hoodie.copyonwrite.insert.split.size": "7"}
    return replace(plan_of(folder / "t", plain_rows([1]), **split), operation="bulk_insert")


@given(rows=st.integers(1, 10_000_000), fitting=st.integers(50_000, 5_000_000), wanted=st.integers(0, 64))
def test_a_bulk_insert_makes_hardly_more_files_than_its_size_asks_for(
    bulk_plan: WritePlan, rows: int, fitting: int, wanted: int
) -> None:
    plan = with_row_size(bulk_plan, bulk_plan.files.sizing.max_file_size / fitting)
    per_file = sizing_of(plan).records_per_new_file(plan.files.average_record_size)
    parts = bulk_parts(plan, rows, wanted)
    asked = -(-rows // per_file)
    assert sum(parts) == rows
    assert 0 < min(parts)
    assert max(parts) <= per_file
    assert asked <= len(parts) <= max(asked, min(wanted, asked * 1.1 + 1))
    if len(parts) > asked:
        assert max(parts) - min(parts) <= 1
    else:
        assert set(parts[:-1]) <= {per_file}


def test_a_size_is_measured_only_where_it_decides(bulk_plan: WritePlan) -> None:
    rows = plain_rows(range(200), text="some text")
    assert with_measured_row_size(bulk_plan, 100, rows) is bulk_plan
    assert with_measured_row_size(bulk_plan, 1_000_000, rows.slice(0, 0)) is bulk_plan
    found = with_measured_row_size(bulk_plan, 1_000_000, rows)
    assert found.files.average_record_size < bulk_plan.files.sizing.record_size_estimate
    assert with_measured_row_size(found, 1_000_000, rows) is found
    assert not may_need_row_size(replace(bulk_plan, operation="insert"))  # the split size decides


def test_rows_without_an_estimate_count_as_new() -> None:
    profile = WorkloadProfile({"a": 100, "b": 10}, 50, {"a": 0.101})
    assert (profile.inserts("a"), profile.inserts("b")) == (11, 10)
    assert (profile.total, profile.largest, profile.total_bytes) == (110, 100, 5500)


def test_the_size_of_a_stored_row_is_that_of_a_file_of_such_rows(tmp_path: Path) -> None:
    rows = plain_rows(range(0, 60_000, 4), text="some text ")
    hf.write(rows, tmp_path / "t", options() | {"hoodie.parquet.bloom.filter.enabled": "false"})
    plan = plan_of(tmp_path / "t", rows)
    files = [one.base_file for name in plan.view.lister.partitions() for one in latest_slices(plan.view, name)]
    stored = sum(one.size for one in files if one is not None) / rows.num_rows
    assert encoded_row_size(plan, rows) == pytest.approx(stored, rel=0.15)
