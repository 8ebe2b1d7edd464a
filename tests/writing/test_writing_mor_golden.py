"""MERGE_ON_READ tables of Apache Hudi are logged on: rows are those of a merge by hand, what is not touched stays."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudi_fast as hf
from tests.support.golden import Golden, golden_names
from tests.support.metadata_checks import assert_metadata_true
from tests.support.rows import assert_same_rows
from tests.writing.golden_rows import (
    changed_rows,
    key_and_place,
    merged_by_hand,
    needed,
    untouched_keep_their_commit,
)

pytestmark = pytest.mark.slow

Unzip = Callable[[str], Golden]

BLENDED = ("PartialUpdate", "OverwriteNonDefaults", "partial")
BUCKETS = "bucket"
"""Written with their own index, in another test."""

LOG_COMPARES = "h015_mor_rollback_compacted"
"""The last write wins over base files, the larger ordering value over what is in the log."""

MOR = [
    name
    for name in (*golden_names("mor_"), *golden_names("h015_mor"))
    if not any(part in name for part in (*BLENDED, BUCKETS)) and not name.endswith("_cdc") and name != LOG_COMPARES
]


def data_of(table: pa.Table) -> pa.Table:
    """With the column that marks deletes."""
    meta = [f"_hoodie_{name}" for name in ("commit_time", "commit_seqno", "record_key", "partition_path", "file_name")]
    return table.drop_columns(meta)


def write_quietly(opened: hf.HudiTable, rows: pa.Table, operation: str) -> tuple[hf.WriteResult, list[str]]:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        result = opened.write(rows, operation, {**needed(opened), "hoodie.compact.inline": "false"})
    return result, [str(each.message) for each in told]


@pytest.mark.slow
@pytest.mark.parametrize("name", MOR)
def test_upserts_and_deletes_continue_a_table_of_apache_hudi(name: str, golden: Unzip) -> None:
    table = golden(name)
    opened = hf.HudiTable.open(table.table)
    before = opened.to_arrow()
    stored = data_of(before)
    names = set(files(table))
    had_metadata = set(opened.config.metadata_partitions)
    incoming = changed_rows(opened, stored)
    wanted = merged_by_hand(opened, stored, incoming)
    result, told = write_quietly(opened, incoming, "upsert")
    assert told == []
    assert had_metadata <= set(assert_metadata_true(table.table))
    assert_same_rows(data_of(opened.to_arrow()), wanted, ignore=(), key=list(stored.column_names[:1]))
    assert result.inserts == wanted.num_rows - stored.num_rows
    assert names < set(files(table))
    untouched_keep_their_commit(opened, before, result.instant)
    gone = wanted.slice(0, wanted.num_rows // 2)
    keys = set(key_and_place(opened, gone))
    left = [row for row, key in zip(wanted.to_pylist(), key_and_place(opened, wanted), strict=True) if key not in keys]
    result, told = write_quietly(opened, gone, "delete")
    assert told == []
    assert had_metadata <= set(assert_metadata_true(table.table))
    assert result.deletes == wanted.num_rows - len(left)
    rest = data_of(opened.to_arrow())
    assert_same_rows(rest, pa.Table.from_pylist(left, wanted.schema), ignore=(), key=list(stored.column_names[:1]))
    assert_same_rows(data_of(opened.to_arrow(as_of=write_before(opened, 2))), stored, ignore=())
    actions = opened.history().filter(pc.field("instant") == result.instant)["action"].to_pylist()
    assert actions == ["deltacommit"]


def files(table: Golden) -> list[str]:
    found = (path for path in table.table.rglob("*") if path.is_file())
    return [str(path) for path in found if ".hoodie" not in path.parts and "_partition_" not in path.name]


def write_before(opened: hf.HudiTable, back: int) -> str:
    actions = pa.array(["commit", "deltacommit", "replacecommit"])
    history = opened.history().filter(pc.is_in(pc.field("action"), actions))
    return history["instant"].to_pylist()[-1 - back]
