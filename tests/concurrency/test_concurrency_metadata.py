"""The metadata table between several writers of the table that it is about."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.metadata_table.state import metadata_of, open_state
from hudi_fast.metadata_table.updates.commit import log_writer
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.clock import InstantClock
from hudi_fast.timeline.instants import Instant, State
from hudi_fast.timeline.service_plans import CompactionPlan, encode_compaction_plan
from hudi_fast.timeline.transition import create_requested, to_inflight
from hudi_fast.view.pending import operation_of
from tests.support.interleaving import assert_sound, services, settings_for, write_during
from tests.support.small_tables import plain_rows, table_rows

STATS = {"hoodie.metadata.index.column.stats.enable": "true"}


def begin_compaction(path: Path) -> str:
    """What a writer leaves behind that is killed while it compacts the metadata table."""
    state = open_state(Storage(path))
    table = metadata_of(state)
    assert table is not None
    slices = [one for partition in table.partitions for one in table.groups(partition) if one.log_files]
    requested = InstantClock(table.config.timezone).next_time(table.timeline.newest_time, state.timeline.newest_time)
    instant = Instant(requested, "compaction", State.REQUESTED)
    plan = CompactionPlan(tuple(operation_of(one, 1) for one in slices))
    create_requested(table.storage, table.config, instant, encode_compaction_plan(plan))
    to_inflight(table.storage, table.config, instant)
    return requested


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["COW", "MOR"])
@pytest.mark.parametrize("version", ["9", pytest.param("6", marks=pytest.mark.long)])
def test_a_compaction_that_died_is_done_again_without_what_was_logged_since(
    tmp_path: Path, kind: str, version: str
) -> None:
    settings = settings_for(kind, version, STATS)
    hf.write(plain_rows(range(4)), tmp_path, settings)
    hf.write(plain_rows(range(2), ts=2), tmp_path, settings)
    left: list[str] = []
    write_during(tmp_path, plain_rows([0], ts=3), settings, lambda: left.append(begin_compaction(tmp_path)))
    hf.write(plain_rows([1], ts=4), tmp_path, settings)
    table = metadata_of(open_state(Storage(tmp_path)))
    assert table is not None
    assert left[0] in {one.requested for one in table.timeline.writes()}
    assert_sound(tmp_path, table_rows(tmp_path))


@pytest.mark.slow
def test_a_rollback_logs_beside_a_compaction_that_died(tmp_path: Path) -> None:
    """Before table version 8 it lists the log files that stay; the compaction, done again, knows nothing of that."""
    settings = settings_for("MOR", "6")
    hf.write(plain_rows(range(4)), tmp_path, settings)
    hf.write(plain_rows(range(4), ts=2), tmp_path, settings)

    def others() -> None:
        begin_compaction(tmp_path)
        raise RuntimeError("out of disk")

    with pytest.raises(RuntimeError):
        write_during(tmp_path, plain_rows([0], ts=3), settings, others)
    hf.write(plain_rows([1], ts=4), tmp_path, settings)
    assert_sound(tmp_path, table_rows(tmp_path))


def test_a_log_file_is_never_written_over_one_of_another_writer(tmp_path: Path) -> None:
    """Before table version 8 its name is that of the next log file, whoever writes it."""
    hf.write(plain_rows(range(4)), tmp_path, settings_for("COW", "6"))
    table = metadata_of(open_state(Storage(tmp_path)))
    assert table is not None
    entries = [(pa.array(["k"]), pa.array([b"v"]))]
    ours, theirs = (log_writer(table, f"2030010100000000{number}", ["files"]) for number in (1, 2))
    written = theirs.write("files", 0, entries)
    assert theirs.write("files", 0, entries) == written  # an attempt whose answer was lost
    with pytest.raises(hf.CommitConflictError, match="another process, which now holds the lock, has written"):
        ours.write("files", 0, entries)


@pytest.mark.slow
def test_a_key_that_two_writers_inserted_is_clustered_into_one_place(tmp_path: Path) -> None:
    """Nobody could know, and from then on an upsert changes both rows."""
    index = {
        "hoodie.index.type": "GLOBAL_RECORD_LEVEL_INDEX",
        "hoodie.metadata.global.record.level.index.enable": "true",
        "hoodie.parquet.small.file.limit": "0",
    }
    settings = settings_for("COW", "9", index)
    hf.write(plain_rows([4]), tmp_path, settings)
    write_during(tmp_path, plain_rows([2]), settings, lambda: hf.write(plain_rows([2], text="b"), tmp_path, settings))
    assert hf.HudiTable.open(tmp_path).to_arrow().num_rows == 3
    assert services(tmp_path).cluster(settings) is not None
    hf.write(plain_rows([2], ts=9, text="c"), tmp_path, settings)
    found = hf.HudiTable.open(tmp_path).to_arrow(columns=["text"])["text"].to_pylist()
    assert sorted(found) == ["a4", "c2", "c2"]
