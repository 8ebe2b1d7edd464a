"""The compactions of real Hudi's tables over again: same plans, same commits, same rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.formats.log.blocks import HeaderKey
from hudi_fast.services.compact import schedule_log_compaction
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.service_plans import CompactionPlan
from hudi_fast.view.table_state import load_state, read_commit
from tests.services.golden_compactions import before_compaction, logical_stats, rows_of_files
from tests.support.golden import Golden, golden_names
from tests.support.mor_tables import blocks_of
from tests.support.sessions import session_of

pytestmark = pytest.mark.filterwarnings("ignore:The metadata table of:hudi_fast.HudiWarning")

TABLES = [(f"mor_v{version}_compacted", number) for version in (6, 8, 9) for number in range(3)]
LOGS = {"hoodie.log.compaction.blocks.threshold": "2"}


def by_group(plan: CompactionPlan) -> dict[tuple[str, str], object]:
    return {(one.partition_path, one.file_id): replace(one, metrics=dict(one.metrics)) for one in plan.operations}


@pytest.mark.parametrize(("name", "number"), TABLES)
def test_plans_commits_and_rows_are_those_of_real_hudi(golden: Callable[[str], Golden], name: str, number: int) -> None:
    found = golden(name)
    before = before_compaction(found, number)
    planned = before.table.services.schedule_compact()
    assert planned is not None
    assert by_group(planned.plan) == by_group(before.plan)
    sizes = [one.metrics["TOTAL_LOG_FILES_SIZE"] for one in planned.plan.operations]
    assert sizes == [one.metrics["TOTAL_LOG_FILES_SIZE"] for one in before.plan.operations]
    assert replace(planned.plan, operations=()) == replace(before.plan, operations=())
    result = before.table.services.compact(plan=planned)
    state = load_state(Storage(found.table))
    done = state.timeline.last_completed_write
    assert done is not None
    assert (done.requested, done.action) == (result.instant, "commit")
    commit = read_commit(state.storage, state.config, done)
    assert logical_stats(commit) == logical_stats(before.commit)
    assert replace(commit, partition_to_write_stats={}) == replace(before.commit, partition_to_write_stats={})
    assert rows_of_files(found.table, commit).equals(before.rows)


def test_a_compaction_of_a_release_before_1_0(golden: Callable[[str], Golden]) -> None:
    found = golden("h015_mor_rollback_compacted")
    before = before_compaction(found, 0)
    planned = before.table.services.schedule_compact()
    assert planned is not None
    assert by_group(planned.plan) == by_group(before.plan)
    before.table.services.compact(plan=planned)
    state = load_state(Storage(found.table))
    commit = read_commit(state.storage, state.config, state.timeline.writes()[-1])
    later = {"prev_base_file", "total_log_size_compacted"}  # not there, and another meaning, before 1.0
    for file_id, stat in logical_stats(before.commit).items():
        ours = logical_stats(commit)[file_id]
        assert {key: ours[key] for key in ours.keys() - later} == {key: stat[key] for key in stat.keys() - later}
    assert rows_of_files(found.table, commit).equals(before.rows)


@pytest.mark.parametrize("number", range(3))
def test_log_compactions_are_those_of_real_hudi(golden: Callable[[str], Golden], number: int) -> None:
    found = golden("mor_v9_log_compacted")
    theirs = blocks_of(found.table)
    before = before_compaction(found, number, "LOG_COMPACT")
    (stat,) = before.commit.write_stats()
    real = [block for block in theirs if block.file == stat.path.rpartition("/")[2]]
    rows = before.table.to_arrow()
    planned = before.table.services.schedule_compact_logs(LOGS)
    assert planned is not None
    assert by_group(planned.plan) == by_group(before.plan)
    assert replace(planned.plan, operations=()) == replace(before.plan, operations=())
    result = before.table.services.compact_logs(LOGS, plan=planned)
    state = load_state(Storage(found.table))
    done = state.timeline.last_completed_write
    assert done is not None
    assert (done.requested, done.action) == (result.instant, "deltacommit")
    commit = read_commit(state.storage, state.config, done)
    assert logical_stats(commit) == logical_stats(before.commit)
    assert replace(commit, partition_to_write_stats={}) == replace(before.commit, partition_to_write_stats={})
    ours = [block for block in blocks_of(found.table) if result.instant in block.file]
    assert [block.kind for block in ours] == [block.kind for block in real]
    for block, one in zip(ours, real, strict=True):
        assert block.headers.keys() == one.headers.keys()
        times = HeaderKey.COMPACTED_BLOCK_TIMES
        assert block.headers[times] == one.headers[times]
        assert block.headers[HeaderKey.INSTANT_TIME] == result.instant
        assert without_meta(block.rows) == without_meta(one.rows)
        assert sorted(block.deletes) == sorted(one.deletes)
        assert {row["_hoodie_commit_time"] for row in block.rows} <= {result.instant}
        assert {row["_hoodie_file_name"] for row in block.rows} <= {stat.file_id}
    data = [name for name in rows.column_names if not name.startswith("_hoodie_")]
    assert same(before.table.to_arrow(columns=data), rows.select(data))


def without_meta(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows by key, without what every log compaction makes anew."""
    new = ("_hoodie_commit_time", "_hoodie_commit_seqno")
    plain = [{name: value for name, value in row.items() if name not in new} for row in rows]
    return sorted(plain, key=lambda row: row["_hoodie_record_key"])


def same(one: pa.Table, other: pa.Table) -> bool:
    return one.sort_by("id").equals(other.sort_by("id"))


def test_log_compaction_is_not_due_before_enough_delta_commits(golden: Callable[[str], Golden]) -> None:
    before = before_compaction(golden("mor_v9_log_compacted"), 1, "LOG_COMPACT")
    session = session_of(before.table.path, {**LOGS, "hoodie.log.compaction.blocks.threshold": "3"})
    assert schedule_log_compaction(session, if_due=True) is None
    assert schedule_log_compaction(session, if_due=False) is not None


def sorted_rows(table: hf.HudiTable, leave_out: tuple[str, ...], query_type: str = "snapshot") -> pa.Table:
    rows = table.to_arrow(query_type=query_type)
    rows = rows.drop_columns([name for name in leave_out if name in rows.column_names])
    keys = [name for name in ("_hoodie_partition_path", "_hoodie_record_key", "id") if name in rows.column_names]
    return rows.sort_by([(name, "ascending") for name in keys])


@pytest.mark.slow
@pytest.mark.parametrize("name", [*golden_names("mor_"), *golden_names("h015_mor"), *golden_names("hudi_rs/mor_")])
def test_tables_of_all_kinds_hold_the_same_rows_after_either_compaction(
    golden: Callable[[str], Golden], name: str
) -> None:
    table = hf.HudiTable.open(golden(name).table)
    changed = ("_hoodie_file_name", "_hoodie_commit_time", "_hoodie_commit_seqno")
    before = sorted_rows(table, changed)
    files = table.files().num_rows
    table.services.compact_logs({"hoodie.log.compaction.blocks.threshold": "1"})
    assert sorted_rows(table, changed).equals(before)
    logged = sorted_rows(table, changed[:1])
    table.services.compact()
    assert sorted_rows(table, changed[:1], "read_optimized").equals(logged)
    assert sorted_rows(table, changed[:1]).equals(logged)
    assert table.files().num_rows == files
    assert table.services.schedule_compact() is None
