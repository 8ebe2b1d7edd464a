"""Failures of storage in tasks and on the driver: the error says what came of the write, and the table is as before.

Modules: hudi_fast.spark.writing.tasks, hudi_fast.storage.failures, hudi_fast.writing.transaction.
"""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path
from typing import Any

import pytest

import hudi_fast as hf
from hudi_fast.services.compact import run_compaction
from hudi_fast.services.compact_plan import schedule_compaction
from hudi_fast.spark.backend import SparkBackend
from hudi_fast.storage.base import Storage
from hudi_fast.view.table_state import load_state
from hudi_fast.writing.flow import run_write
from hudi_fast.writing.session import TableSession
from tests.spark.spark_writes import batch, frame
from tests.support.instrumented_storage import FaultyStorage, StorageCall
from tests.support.mor_tables import mor_options
from tests.support.sessions import session_of
from tests.support.small_tables import assert_tidy, options


def session(spark: Any, storage: Storage, settings: dict[str, Any]) -> TableSession:
    return session_of(storage, settings, SparkBackend(spark))


def failing(path: Path, number: int, place: str) -> FaultyStorage:
    """A storage that takes no data file in tasks, or not the inflight file of the driver."""

    def among(call: StorageCall) -> bool:
        if place == "driver":
            return call.changes and call.path.endswith("inflight") and "/metadata/" not in call.path
        return call.name == "open_output" and call.path.endswith(".parquet")

    return FaultyStorage(path, at=0, among=among, number=number)


@pytest.mark.parametrize(
    ("place", "number", "plan", "said"),
    [
        ("task", errno.ENOSPC, "fused", "Free space on the disk"),
        ("task", errno.EACCES, "routed", "rights"),
        ("driver", errno.ENOSPC, "fused", "Nothing changed"),
    ],
)
def test_a_write_tells_of_storage_and_leaves_the_table_as_it_was(
    spark: Any, tmp_path: Path, place: str, number: int, plan: str, said: str
) -> None:
    path = tmp_path / "t"
    settings = options() | {"hudi_fast.plan": plan}
    hf.write(batch(range(20)), path, settings)
    before = hf.HudiTable.open(path).to_arrow()
    call = session(spark, failing(path, number, place), settings)
    with pytest.raises(hf.HudiError) as caught:
        run_write(call, call.backend.engine(frame(spark, batch(range(10, 30), ts=200)), call.settings.write), "append")
    told = str(caught.value)
    assert isinstance(caught.value, hf.CommitError | hf.StorageFailedError), repr(caught.value)
    for part in (str(path), os.strerror(number), said):
        assert part in told, told
    if place == "task":
        assert "A task on" in told
        assert "The table is as before; run the operation again." in told
        assert re.search(r"^The upsert \d{17} of ", told), told
    assert hf.HudiTable.open(path).to_arrow().equals(before)
    assert load_state(Storage(path)).timeline.pending() == ()
    assert hf.write(frame(spark, batch(range(10, 30), ts=200)), path, settings).inserts == 10
    assert_tidy(path)


def test_a_compaction_tells_of_storage_and_is_pending_again(spark: Any, tmp_path: Path) -> None:
    path, settings = tmp_path / "t", mor_options() | {"hoodie.compact.inline": "false"}
    hf.write(batch(range(20)), path, settings)
    hf.write(batch(range(10), ts=200), path, settings)
    before = hf.HudiTable.open(path).count()
    call = session(spark, failing(path, errno.ENOSPC, "task"), settings)
    planned = schedule_compaction(call, if_due=False)
    assert planned is not None
    with pytest.raises(hf.CommitError, match=rf"compact {planned.instant} of .*No space left.*The table is as before"):
        run_compaction(call, planned)
    assert hf.HudiTable.open(path).count() == before
    assert hf.HudiTable.open(path).services.run_pending(settings)
    assert hf.HudiTable.open(path).count() == before
