"""Log compaction of tables of our own.

Modules: hudi_fast.services.merge_slices.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import hudi_fast as hf
from hudi_fast.formats.log.blocks import BlockType, HeaderKey
from hudi_fast.services.compact import schedule_log_compaction
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.instants import State
from hudi_fast.timeline.transition import to_inflight
from hudi_fast.view.table_state import load_state
from hudi_fast.writing.markers import create_marker, make_marker_folder
from tests.support.mor_tables import VERSIONS, blocks_of, log_files, mor_options, newest_commit
from tests.support.sessions import session_of
from tests.support.small_tables import assert_tidy, listing, plain_rows, rows_of, table_rows

TWO = {"hoodie.log.compaction.blocks.threshold": "2"}


def make(path: Path, version: str, more: dict[str, Any] | None = None) -> dict[str, Any]:
    """Eight rows in one partition, logged about three times."""
    settings = mor_options(more, table_version=version)
    hf.write(plain_rows(range(8), partitions=1), path, settings)
    hf.write(plain_rows(range(2, 6), ts=2, text="b", partitions=1), path, settings)
    hf.write(plain_rows([2, 3], ts=1, text="late", partitions=1), path, settings)
    hf.write(plain_rows([4], partitions=1), path, {**settings, "hoodie.datasource.write.operation": "delete"})
    return settings


def services(path: Path) -> Any:
    return hf.HudiTable.open(path).services


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_one_log_file_stands_for_all_that_were_there(version: str, tmp_path: Path) -> None:
    settings = make(tmp_path, version)
    rows, before = table_rows(tmp_path), log_files(tmp_path)
    result = services(tmp_path).compact_logs()  # by default five log files or blocks
    assert result.instant == ""
    result = services(tmp_path).compact_logs(TWO)
    assert (result.operation, result.file_groups, result.log_files, result.files_written) == ("compact_logs", 1, 3, 1)
    assert (result.rows, result.updates, result.deletes) == (3, 3, 1)
    (new,) = [log for log in log_files(tmp_path) if log not in before]
    base = load_state(Storage(tmp_path)).timeline.writes()[0].requested
    assert (new.instant, new.version) == ((base, 4) if version == "6" else (result.instant, 1))
    data, deletes = [block for block in blocks_of(tmp_path) if block.file == new.name]
    assert (data.kind, deletes.kind) == (BlockType.AVRO_DATA, BlockType.DELETE)
    stands_for = data.headers[HeaderKey.COMPACTED_BLOCK_TIMES].split(",")
    written = [one.requested for one in load_state(Storage(tmp_path)).timeline.writes()]
    assert stands_for == sorted(stands_for) == written[1:4]
    assert table_rows(tmp_path) == rows
    instant, commit = newest_commit(tmp_path)
    assert (instant.action, commit.operation_type, commit.compacted) == ("deltacommit", "LOG_COMPACT", True)
    change = plain_rows([3, 4, 9], ts=7, text="n", partitions=1)
    hf.write(change, tmp_path, settings)
    rows |= rows_of(change)
    assert table_rows(tmp_path) == rows
    assert services(tmp_path).compact_logs(TWO).instant == ""  # one delta commit since
    hf.write(change, tmp_path, settings)
    again = services(tmp_path).compact_logs(TWO)
    assert (again.log_files, again.rows, again.deletes) == (6, 4, 0)
    times = {block.headers.get(HeaderKey.COMPACTED_BLOCK_TIMES, "").partition(",")[0] for block in blocks_of(tmp_path)}
    assert times == {"", written[1], result.instant}  # and not once more what that one stands for
    assert table_rows(tmp_path) == rows
    services(tmp_path).compact()
    assert table_rows(tmp_path) == rows
    assert_tidy(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_one_that_died_is_rolled_back_and_forgotten(version: str, tmp_path: Path) -> None:
    make(tmp_path, version)
    rows = table_rows(tmp_path)
    planned = services(tmp_path).schedule_compact_logs(TWO)
    storage = Storage(tmp_path)
    state = load_state(storage)
    to_inflight(storage, state.config, state.timeline.pending_log_compactions[0])
    make_marker_folder(storage, planned.instant)
    last = log_files(tmp_path)[-1]
    name = last.name.replace(".log.1_", ".log.2_") if version != "6" else last.name.replace(".log.3_", ".log.4_")
    if version != "6":
        name = name.replace(last.instant, planned.instant).replace(".log.2_", ".log.1_")
    create_marker(storage, planned.instant, f"p0/{name}", "APPEND" if version == "6" else "CREATE")
    storage.write_bytes(f"p0/{name}", b"")
    with pytest.raises(hf.CommitConflictError, match="not pending"):
        services(tmp_path).compact_logs(TWO, plan=planned)
    timeline = load_state(storage).timeline
    assert timeline.pending() == ()
    assert [one.state for one in timeline.of_action("rollback")] == [State.COMPLETED]
    assert table_rows(tmp_path) == rows
    assert services(tmp_path).compact_logs(TWO).log_files >= 3
    assert table_rows(tmp_path) == rows
    assert_tidy(tmp_path)


@pytest.mark.slow
def test_a_plan_that_a_compaction_came_after_is_withdrawn(tmp_path: Path) -> None:
    make(tmp_path, "9")
    planned = services(tmp_path).schedule_compact_logs(TWO)
    services(tmp_path).compact()
    with pytest.raises(hf.CommitConflictError, match="out of date"):
        services(tmp_path).compact_logs(TWO, plan=planned)
    assert load_state(Storage(tmp_path)).timeline.pending() == ()
    assert_tidy(tmp_path)


@pytest.mark.slow
def test_plans_that_wait_are_carried_out_first(tmp_path: Path) -> None:
    make(tmp_path, "9")
    planned = services(tmp_path).schedule_compact_logs(TWO)
    assert services(tmp_path).schedule_compact_logs(TWO) is None
    assert services(tmp_path).compact_logs({"hoodie.log.compaction.blocks.threshold": "9"}).instants == (
        planned.instant,
    )


def test_slices_that_are_about_to_be_compacted_are_left_alone(tmp_path: Path) -> None:
    make(tmp_path, "9")
    services(tmp_path).schedule_compact()
    files = listing(tmp_path)
    assert services(tmp_path).schedule_compact_logs(TWO) is None
    assert listing(tmp_path) == files


def test_blocks_count_where_there_are_few_files(tmp_path: Path) -> None:
    make(tmp_path, "9", {"hoodie.logfile.data.block.max.size": "1"})  # a block for each row
    assert len(log_files(tmp_path)) == 3
    due = session_of(tmp_path, {"hoodie.log.compaction.blocks.threshold": "7"})
    more = session_of(tmp_path, {"hoodie.log.compaction.blocks.threshold": "8"})
    assert schedule_log_compaction(more, if_due=False) is None
    assert schedule_log_compaction(due, if_due=False) is not None


def test_one_that_fails_leaves_nothing(tmp_path: Path) -> None:
    make(tmp_path, "9")
    planned = services(tmp_path).schedule_compact_logs(TWO)
    (tmp_path / log_files(tmp_path)[0].path).unlink()
    with pytest.raises(hf.CorruptTableError, match="missing"):
        services(tmp_path).compact_logs(TWO, plan=planned)
    assert load_state(Storage(tmp_path)).timeline.pending() == ()
