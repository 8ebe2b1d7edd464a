"""Rows of one partition dealt out to file groups."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.errors import DuplicateKeyError
from hudi_fast.view.slices import latest_slices
from hudi_fast.writing.assign import assign_partition, combined_rows, files_to_fill
from hudi_fast.writing.write_plan import FileGroupWork
from tests.support.small_tables import options, plain_rows
from tests.writing.plans import TOKEN, drafted

DUPLICATES = "hoodie.datasource.insert.dup.policy"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """One file group in ``p0`` with the keys 0, 4 and 8."""
    hf.write(plain_rows([0, 4, 8]), tmp_path, options())
    return tmp_path


def works(path: Path, numbers: list[int], **more: str) -> tuple[list[FileGroupWork], str]:
    plan, incoming = drafted(
        path, plain_rows(numbers, ts=2), {**options(), **{k.replace("__", "."): v for k, v in more.items()}}
    )
    (slice_,) = latest_slices(plan.view, "p0")
    return assign_partition(plan, "p0", incoming, np.arange(incoming.count), TOKEN), slice_.file_id


def test_updates_go_to_their_file_group_and_inserts_fill_it(table: Path) -> None:
    (work,), file_id = works(table, [4, 12, 8])
    assert work.file_id == file_id
    assert dict(zip(work.base_rows.tolist(), work.incoming_rows.tolist(), strict=True)) == {1: 0, 2: 2}
    assert work.inserts.tolist() == [1]


def test_inserts_go_to_new_file_groups_when_no_file_is_small(table: Path) -> None:
    (updated, new), file_id = works(table, [4, 12], hoodie__parquet__small__file__limit="0")
    assert (updated.file_id, len(updated.inserts)) == (file_id, 0)
    assert new.slice is None
    assert new.inserts.tolist() == [1]
    assert new.first_sequence == 1
    again, _ = works(table, [4, 12], hoodie__parquet__small__file__limit="0")
    assert again[1].file_id == new.file_id  # a second attempt of the task names the same file


def test_deletes_of_unknown_keys_are_left_out(table: Path) -> None:
    rows = plain_rows([4, 12]).append_column("_hoodie_is_deleted", pa.array([True, True]))
    plan, incoming = drafted(table, rows, options())
    (work,) = assign_partition(plan, "p0", incoming, np.arange(2), TOKEN)
    assert (work.incoming_rows.tolist(), work.inserts.tolist()) == ([0], [])


@pytest.mark.parametrize(("policy", "expected"), [("none", [0, 1]), ("drop", [1])])
def test_duplicates_of_an_insert_are_kept_or_dropped(table: Path, policy: str, expected: list[int]) -> None:
    given = {"hoodie__datasource__write__operation": "insert", DUPLICATES.replace(".", "__"): policy}
    found, _ = works(table, [4, 12], **given)
    assert sorted(row for work in found for row in work.inserts.tolist()) == expected


def test_duplicates_of_an_insert_are_refused_by_key(table: Path) -> None:
    given = {"hoodie__datasource__write__operation": "insert", DUPLICATES.replace(".", "__"): "fail"}
    with pytest.raises(DuplicateKeyError, match="'k00004'"):
        works(table, [4, 12], **given)


def test_of_rows_with_one_key_the_newest_is_kept(table: Path) -> None:
    rows = pa.concat_tables([plain_rows([0, 4], ts=3), plain_rows([4, 0], ts=2)])
    plan, incoming = drafted(table, rows, options())
    assert combined_rows(plan, incoming, np.arange(4)).tolist() == [0, 1]
    plan, incoming = drafted(table, rows, options(operation="insert"))
    assert combined_rows(plan, incoming, np.arange(4)).tolist() == [0, 1, 2, 3]


def test_small_files_take_inserts(table: Path) -> None:
    plan, _ = drafted(table, plain_rows([0]), options())
    assert [one.file_id for one in files_to_fill(plan, "p0", latest_slices(plan.view, "p0"))] == [
        one.file_id for one in latest_slices(plan.view, "p0")
    ]
    plan, _ = drafted(table, plain_rows([0]), {**options(), "hoodie.parquet.small.file.limit": "0"})
    assert files_to_fill(plan, "p0", latest_slices(plan.view, "p0")) == []
