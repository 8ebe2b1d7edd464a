"""The routed plan's task where rows blend: what it is given of one batch becomes one row, small files included."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import hudi_fast as hf
from hudi_fast.config.write_options import WriteOptions
from hudi_fast.spark.writing.tasks import write_buckets
from hudi_fast.storage.base import Storage
from hudi_fast.view.slices import latest_slices
from hudi_fast.view.table_state import load_state
from hudi_fast.writing.draft import draft_plan
from hudi_fast.writing.file_group import BUCKET, MOVED, SLICE
from hudi_fast.writing.markers import make_marker_folder
from tests.support.small_tables import options

PAYLOAD = "org.apache.hudi.common.model.PartialUpdateAvroPayload"


def rows(*each: tuple[str, int, str | None, int | None]) -> pa.Table:
    names = ["id", "ts", "text", "n"]
    table = pa.Table.from_pylist([dict(zip(names, one, strict=True)) for one in each])
    return table.append_column("part", pa.array(["p"] * len(each)))


def test_new_keys_that_wait_for_a_small_file_blend_with_each_other(tmp_path: Path) -> None:
    settings = options() | {"hoodie.datasource.write.payload.class": PAYLOAD}
    hf.write(rows(("old", 1, "a", None), ("other", 1, "b", 2)), tmp_path / "t", settings)
    given = rows(("new", 1, None, 3), ("new", 2, "x", None), ("old", 2, None, 5), ("old", 3, None, None))
    state = load_state(Storage(tmp_path / "t"))
    plan = draft_plan(state, WriteOptions.from_options(settings), given.schema)
    plan = replace(plan, instant="20990101000000000")
    make_marker_folder(plan.storage, plan.instant)
    slices = latest_slices(plan.view, "p")
    routed = given.append_column(SLICE, pa.array([None, None, 0, 0], pa.int32()))
    routed = routed.append_column(MOVED, pa.array([False] * 4)).append_column(BUCKET, pa.array([0] * 4, pa.int32()))
    answer = write_buckets(plan, slices)(iter(routed.to_batches()))
    assert [(stat.num_inserts, stat.num_update_writes) for stat in answer.stats] == [(1, 1)]
    written = pq.read_table(tmp_path / "t" / answer.stats[0].path, columns=["id", "ts", "text", "n"]).to_pylist()
    assert [tuple(row.values()) for row in written] == [("old", 3, "a", 5), ("other", 1, "b", 2), ("new", 2, "x", 3)]
