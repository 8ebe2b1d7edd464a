"""The rows of a slice with log files, merged and unmerged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.formats.parquet.base_file import open_base_file
from hudi_fast.merging.log_scan import visible_blocks
from hudi_fast.merging.merged_slice import log_rows, merged_rows
from hudi_fast.merging.rules import CUSTOM, MergeRules, merge_schema
from tests.merging.log_slices import SCHEMA, Log, base_of, data, deletes, merge_of, slice_of

WANTED = pa.schema({"id": pa.string(), "text": pa.string()})
LOGS: Sequence[Log] = (
    ("200", [data("200", [{"id": "c", "ts": 5, "text": "c5"}, {"id": "x", "ts": 1, "text": "x1"}])]),
    (
        "300",
        [data("300", [{"id": "c", "ts": 4, "text": "c4"}, {"id": "y", "ts": 1, "text": "y1"}]), deletes("300", ["e"])],
    ),
)


def rows(names: str, ts: int = 2) -> pa.Table:
    return pa.table(
        [list(names), list(names), pa.array([ts] * len(names), pa.int64()), [f"{name}{ts}" for name in names]],
        schema=SCHEMA,
    )


def texts(batches: Iterable[pa.RecordBatch]) -> list[Any]:
    return [row["text"] for batch in batches for row in batch.to_pylist()]


def test_a_log_changes_the_rows_of_the_base_file_and_adds_its_own(tmp_path: Path) -> None:
    base = base_of(tmp_path, rows("abcdefgh"))
    slice_, merge = slice_of(tmp_path, LOGS, base), merge_of(tmp_path)
    blocks, columns = visible_blocks(merge, slice_), merge_schema(merge, WANTED, SCHEMA)
    for batch_rows in (3, 1000):
        with open_base_file(merge.storage, base.path) as reader:
            batches = list(merged_rows(merge, slice_, blocks, WANTED, columns, reader, batch_rows))
        assert texts(batches) == ["a2", "b2", "c5", "d2", "f2", "g2", "h2", "x1", "y1"]
        assert max(batch.num_rows for batch in batches) <= batch_rows
        assert {batch.schema for batch in batches} == {WANTED} or all(batch.schema == WANTED for batch in batches)


def test_row_groups_that_are_ruled_out_give_replaced_rows_alone(tmp_path: Path) -> None:
    base = base_of(tmp_path, rows("abcdefgh"))
    slice_, merge = slice_of(tmp_path, LOGS, base), merge_of(tmp_path)
    blocks, columns = visible_blocks(merge, slice_), merge_schema(merge, WANTED, SCHEMA)
    with open_base_file(merge.storage, base.path) as reader:
        found = merged_rows(merge, slice_, blocks, WANTED, columns, reader, 1000, ruled_out=[0])
        assert texts(found) == ["c5", "f2", "g2", "h2", "x1", "y1"]


def test_rows_that_a_merger_deletes_and_those_of_delete_blocks_go_alike(tmp_path: Path) -> None:
    def drop_old(older: pa.Table, newer: pa.Table) -> pa.Table:
        return newer.append_column("_hoodie_is_deleted", pc.greater(newer["ts"], 4))

    base = base_of(tmp_path, rows("abcdefgh"))
    changed = [{"id": key, "ts": ts, "text": f"{key}{ts}"} for key, ts in (("b", 5), ("d", 3), ("g", 5))]
    logs = [("200", [data("200", changed), deletes("200", ["a", "c", "h"])])]
    slice_, merge = slice_of(tmp_path, logs, base), merge_of(tmp_path, rules=MergeRules(CUSTOM, (), merger=drop_old))
    blocks, columns = visible_blocks(merge, slice_), merge_schema(merge, WANTED, SCHEMA)
    for batch_rows in (3, 1000):
        with open_base_file(merge.storage, base.path) as reader:
            found = merged_rows(merge, slice_, blocks, WANTED, columns, reader, batch_rows)
            assert texts(found) == ["d3", "e2", "f2"]


def test_a_slice_without_base_file_has_the_rows_of_its_log(tmp_path: Path) -> None:
    slice_, merge = slice_of(tmp_path, LOGS), merge_of(tmp_path)
    blocks, columns = visible_blocks(merge, slice_), merge_schema(merge, WANTED, SCHEMA)
    assert texts(merged_rows(merge, slice_, blocks, WANTED, columns, None, 2)) == ["c5", "x1", "y1"]


def test_unmerged_rows_are_all_rows_of_the_log(tmp_path: Path) -> None:
    merge = merge_of(tmp_path)
    blocks = visible_blocks(merge, slice_of(tmp_path, LOGS))
    batches = list(log_rows(merge, blocks, WANTED, merge_schema(merge, WANTED, SCHEMA), 3))
    assert texts(batches) == ["c5", "x1", "c4", "y1"]
    assert [batch.num_rows for batch in batches] == [3, 1]
