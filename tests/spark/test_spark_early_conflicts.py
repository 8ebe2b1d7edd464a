"""Early conflict detection where tasks write: the conflict is the write's, and no task is tried again for it."""

from __future__ import annotations

from pathlib import Path

import pytest

import hudi_fast as hf
from hudi_fast.errors import CommitConflictError
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.heartbeat import heartbeat_path
from hudi_fast.timeline.instants import Instant, State
from hudi_fast.timeline.transition import create_requested, to_inflight
from hudi_fast.view.slices import latest_slices
from hudi_fast.view.table_state import load_state
from hudi_fast.writing.markers import create_marker, make_marker_folder
from tests.spark.spark_writes import frame
from tests.support.small_tables import listing, options, plain_rows

OTHER = "20200101000000400"
EARLY = {
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider",
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.write.concurrency.early.conflict.detection.enable": "true",
}


def announce(storage: Storage, partition: str) -> str:
    """Another writer is about to change the file group of a partition; its file id."""
    state = load_state(storage)
    (slice_,) = latest_slices(state.view, partition)
    instant = create_requested(storage, state.config, Instant(OTHER, "commit", State.REQUESTED))
    to_inflight(storage, state.config, instant)
    make_marker_folder(storage, OTHER)
    create_marker(storage, OTHER, f"{partition}/{slice_.file_id}_0-1-0_{OTHER}.parquet", "MERGE")
    storage.write_bytes(heartbeat_path(OTHER), b"")
    return slice_.file_id


LONG = [pytest.param(plan, marks=pytest.mark.long) for plan in ("routed", "fused")]


@pytest.mark.parametrize("plan", ["broadcast", *LONG])
def test_a_task_that_meets_an_announced_file_group_ends_the_write(spark, tmp_path: Path, plan: str) -> None:
    settings = options() | EARLY | {"hudi_fast.plan": plan}
    hf.write(plain_rows(range(4)), tmp_path, options() | EARLY)
    storage = Storage(tmp_path)
    file_id = announce(storage, "p1")
    before = {path for path in listing(tmp_path) if not path.startswith((".hoodie", "p0"))}
    with pytest.raises(CommitConflictError, match="Early conflict detected") as caught:
        hf.write(frame(spark, plain_rows([0, 1], ts=9)), tmp_path, settings)
    assert (caught.value.other, caught.value.file_groups) == (OTHER, (("p1", file_id),))
    assert {path for path in listing(tmp_path) if not path.startswith((".hoodie", "p0"))} == before
    hf.write(frame(spark, plain_rows([0], ts=9)), tmp_path, settings)
