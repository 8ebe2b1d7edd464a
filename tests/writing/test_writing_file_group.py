"""One file group's rows as files: new ones, rewritten ones, log files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import hudi_fast as hf
from hudi_fast.timeline.commit_metadata import WriteStat
from hudi_fast.view.slices import latest_slices
from hudi_fast.writing.assign import assign_partition
from hudi_fast.writing.file_group import write_file_group
from hudi_fast.writing.log_file import append_log
from hudi_fast.writing.markers import make_marker_folder, marked_files
from hudi_fast.writing.output_file import chunks, new_rows
from hudi_fast.writing.rewrite import rewrite_file_group
from hudi_fast.writing.write_plan import FileGroupWork, Incoming, WritePlan
from tests.support.small_tables import options, plain_rows
from tests.writing.plans import INSTANT, TOKEN, drafted


def work_of(path: Path, rows: pa.Table, kind: str, **more: str) -> tuple[WritePlan, Incoming, FileGroupWork]:
    """The plan of an upsert into a table with the keys 0, 4 and 8 in one file group, and the work for that group."""
    settings: dict[str, Any] = {**options(), "hoodie.datasource.write.table.type": kind, **more}
    hf.write(plain_rows([0, 4, 8], text="old"), path, settings)
    plan, incoming = drafted(path, rows, settings)
    make_marker_folder(plan.storage, INSTANT)
    (work, *_) = assign_partition(plan, "p0", incoming, np.arange(incoming.count), TOKEN)
    return plan, incoming, work


def texts(path: Path, stat: WriteStat) -> dict[str, str]:
    table = pq.read_table(path / stat.path, columns=["id", "text", "_hoodie_file_name"])
    assert set(table["_hoodie_file_name"].to_pylist()) == {stat.path.rpartition("/")[2]}
    return dict(zip(table["id"].to_pylist(), table["text"].to_pylist(), strict=True))


def test_a_copy_on_write_group_is_rewritten_with_updates_and_inserts(tmp_path: Path) -> None:
    plan, incoming, work = work_of(tmp_path, plain_rows([4, 12], ts=2, text="new"), "COPY_ON_WRITE")
    (stat,) = write_file_group(plan, work, incoming)
    assert (stat.num_writes, stat.num_update_writes, stat.num_inserts) == (4, 1, 1)
    assert texts(tmp_path, stat) == {"k00000": "old0", "k00004": "new4", "k00008": "old8", "k00012": "new12"}
    assert marked_files(plan.storage, INSTANT) == {stat.path: "MERGE"}
    assert work.slice is not None
    assert work.slice.base_file is not None
    assert stat.prev_base_file == work.slice.base_file.name


def test_a_rewrite_that_drops_every_row_leaves_an_empty_file(tmp_path: Path) -> None:
    rows = plain_rows([0, 4, 8], ts=2).append_column("_hoodie_is_deleted", pa.array([True] * 3))
    plan, incoming, work = work_of(tmp_path, rows, "COPY_ON_WRITE")
    assert work.slice is not None
    assert work.slice.base_file is not None
    stat = rewrite_file_group(plan, work, work.slice.base_file, incoming)
    assert (stat.num_writes, stat.num_deletes) == (0, 3)
    assert pq.read_metadata(tmp_path / stat.path).num_rows == 0


def test_updates_of_a_merge_on_read_group_are_logged(tmp_path: Path) -> None:
    plan, incoming, work = work_of(tmp_path, plain_rows([4, 8], ts=2, text="new"), "MERGE_ON_READ")
    (stat,) = write_file_group(plan, work, incoming)
    assert ".log." in stat.path
    assert (stat.num_update_writes, stat.num_inserts) == (2, 0)
    with pytest.raises(ValueError, match="existing slice"):
        append_log(plan, replace(work, slice=None), incoming)


def test_a_new_group_is_split_into_files_of_the_maximum_size(tmp_path: Path) -> None:
    more = {"hoodie.parquet.small.file.limit": "0", "hoodie.parquet.max.file.size": "1"}
    ids = range(1000, 1000 + 4 * 700, 4)
    plan, incoming, _ = work_of(tmp_path, plain_rows(ids, ts=2), "COPY_ON_WRITE", **more)
    none = np.zeros(0, np.int64)
    work = FileGroupWork("p0", "22222222-2222-2222-2222-222222222222-0", None, none, none, None, np.arange(700), TOKEN)
    stats = write_file_group(plan, work, incoming)
    assert len(stats) > 1
    assert sum(stat.num_inserts for stat in stats) == 700
    assert [stat.file_id[-2:] for stat in stats] == [f"-{number}" for number in range(len(stats))]


@pytest.mark.parametrize(("operation", "counts"), [("insert", [10, 30, 30, 30]), ("bulk_insert", [1, 33, 33, 33])])
def test_a_new_group_is_split_into_files_of_the_maximum_rows(tmp_path: Path, operation: str, counts: list[int]) -> None:
    settings = {**options(), "hudi_fast.max.file.rows": "30"}
    hf.write(plain_rows(range(0, 400, 4)), tmp_path, {**settings, "hoodie.datasource.write.operation": operation})
    rows = hf.HudiTable.open(tmp_path).to_arrow()
    assert sorted(pc.value_counts(rows["_hoodie_file_name"]).field("counts").to_pylist()) == counts
    assert sorted(rows["id"].to_pylist()) == [f"k{number:05d}" for number in range(0, 400, 4)]


def test_new_rows_have_meta_columns_of_the_file(tmp_path: Path) -> None:
    plan, incoming, work = work_of(tmp_path, plain_rows([4, 12], ts=2), "COPY_ON_WRITE")
    made = new_rows(plan, work, incoming, np.array([1]), "f.parquet", 7).to_pylist()
    assert [(row["_hoodie_record_key"], row["_hoodie_commit_seqno"]) for row in made] == [("k00012", f"{INSTANT}_0_7")]
    assert [part.tolist() for part in chunks(np.arange(5), 2)] == [[0, 1], [2, 3], [4]]
    assert latest_slices(plan.view, "p0")[0].file_id == work.file_id
