"""The schema of a commit when other writers evolved the table meanwhile."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.errors import CommitConflictError
from hudi_fast.storage.base import Storage
from hudi_fast.view.table_state import TableState, load_state, table_schema
from hudi_fast.writing.conflicts import merged_schema
from tests.support.small_tables import options, plain_rows

LATE, EARLY = "99980101000000000", "20200101000000000"


def with_column(name: str) -> pa.Table:
    return plain_rows([0]).append_column(name, pa.array([1], pa.int64()))


@pytest.fixture
def before(tmp_path: Path) -> TableState:
    hf.write(plain_rows(range(2)), tmp_path, options())
    return load_state(Storage(tmp_path))


def landed(before: TableState, own: pa.Schema, instant: str = LATE) -> list[str]:
    then = table_schema(before)
    now = load_state(before.storage)
    return merged_schema(then, before.timeline, now, own, instant).names


def test_without_other_commits_the_own_schema_counts(before: TableState) -> None:
    assert landed(before, with_column("mine").schema) == with_column("mine").schema.names


def test_a_write_that_changed_nothing_takes_over_new_columns(before: TableState, tmp_path: Path) -> None:
    hf.write(with_column("theirs"), tmp_path, options())
    schema = table_schema(before)
    assert schema is not None
    assert landed(before, schema) == [*schema.names, "theirs"]


def test_the_own_change_counts_when_others_changed_nothing(before: TableState, tmp_path: Path) -> None:
    hf.write(plain_rows([1]), tmp_path, options())
    own = with_column("mine").schema
    assert landed(before, own) == own.names
    with pytest.raises(CommitConflictError, match="mine"):
        landed(before, own, EARLY)  # a later commit has landed, whose columns are those of the table


def test_two_changes_are_a_conflict(before: TableState, tmp_path: Path) -> None:
    hf.write(with_column("theirs"), tmp_path, options())
    with pytest.raises(CommitConflictError, match=r"mine, theirs"):
        landed(before, with_column("mine").schema)
