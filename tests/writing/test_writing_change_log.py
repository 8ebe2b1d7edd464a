"""Change logs: what is written beside rewritten base files of tables with change data capture."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudi_fast as hf
from hudi_fast.metadata_table.state import open_state
from hudi_fast.storage.base import Storage
from hudi_fast.view.pending import read_compaction_plan
from hudi_fast.view.slices import latest_slices
from hudi_fast.view.table_state import load_state
from hudi_fast.writing.rollback_plan import plan_rollback
from tests.support.change_logs import Replay, change_logs, entries_of, logged, stats_by_instant
from tests.support.golden import Golden
from tests.support.small_tables import assert_tidy, options, plain_rows, table_rows

MODE = "hoodie.table.cdc.supplemental.logging.mode"
MOR = {"hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.compact.inline": "false"}
LOGS_ALONE = {"hoodie.parquet.small.file.limit": "0"}
METADATA = "hoodie.metadata.enable"


def settings(more: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    return {**options(**changes), "hoodie.table.cdc.enabled": "true", METADATA: "false", **(more or {})}


def write(path: Path, rows: pa.Table, more: dict[str, Any] | None = None, **changes: Any) -> str:
    return hf.write(rows, path, settings(more, **changes)).instant


def delete(path: Path, rows: pa.Table, more: dict[str, Any] | None = None) -> str:
    return write(path, rows.select(["id", "part", "ts"]), more, operation="delete")


def flagged(rows: pa.Table, deleted: list[bool]) -> pa.Table:
    return rows.append_column("_hoodie_is_deleted", pa.array(deleted))


def shown(changes: list[tuple[str, Any, Any]], mode: str, instant: str) -> list[str]:
    """Changes as entries of that mode, in an order of their own."""
    entries = []
    for op, before, after in changes:
        entry = {"op": op}
        if mode == "DATA_BEFORE_AFTER":
            entry |= {"ts_ms": instant, "before": before, "after": after}
        else:
            entry |= {"record_key": (before or after)["id"]}
            entry |= {"before": before} if mode == "DATA_BEFORE" else {}
        entries.append(entry)
    return sorted(json.dumps(entry, sort_keys=True) for entry in entries)


def seen(path: Path, instant: str) -> list[str]:
    return sorted(json.dumps(entry, sort_keys=True) for entry in logged(path, instant))


@pytest.mark.slow(but="DATA_BEFORE-9")
@pytest.mark.parametrize("version", ["6", "8", "9"])
@pytest.mark.parametrize("mode", ["DATA_BEFORE_AFTER", "DATA_BEFORE", "OP_KEY_ONLY"])
def test_entries_are_what_a_replay_of_the_writes_changes(tmp_path: Path, version: str, mode: str) -> None:
    replay, more = Replay(), {MODE: mode}
    rows = flagged(plain_rows(range(12)), [False] * 12)
    first = write(tmp_path, rows, more, table_version=version)
    replay.upsert(rows)
    assert logged(tmp_path, first) == []
    batches = (
        flagged(plain_rows(range(8, 16), ts=3, text="b"), [False] * 8),
        flagged(plain_rows(range(6, 10), ts=2, text="late"), [False] * 4),
        flagged(plain_rows(range(0, 16, 3), ts=4, text="x"), [True, False] * 3),
    )
    for batch in batches:
        instant = write(tmp_path, batch, more)
        assert seen(tmp_path, instant) == shown(replay.upsert(batch), mode, instant)
    gone = plain_rows([1, 2, 99])
    instant = delete(tmp_path, gone, more)
    assert seen(tmp_path, instant) == shown(replay.delete(gone["id"].to_pylist()), mode, instant)
    assert sorted(table_rows(tmp_path)) == sorted(replay.rows)
    assert_tidy(tmp_path)


def test_rows_that_all_lose_leave_a_log_with_one_block_of_no_entries(tmp_path: Path) -> None:
    write(tmp_path, plain_rows(range(4), ts=5))
    instant = write(tmp_path, plain_rows(range(4), ts=1, text="late"))
    names = [log for stat in stats_by_instant(tmp_path)[instant] for log in stat.cdc_stats or {}]
    assert len(names) == 2
    assert [entries_of(tmp_path, name) for name in names] == [[[]], [[]]]


def test_no_log_where_readers_infer_the_changes(tmp_path: Path) -> None:
    write(tmp_path, plain_rows(range(4), partitions=1))
    delete(tmp_path, plain_rows(range(4), partitions=1))
    write(tmp_path, plain_rows(range(4, 6), partitions=1))  # into the base file without rows
    write(tmp_path, plain_rows(range(9), partitions=1), operation="insert_overwrite")
    write(tmp_path, plain_rows(range(9), partitions=1), operation="bulk_insert")
    assert change_logs(tmp_path) == []
    assert [stat.cdc_stats for stats in stats_by_instant(tmp_path).values() for stat in stats] == [None] * 5


def test_an_upsert_that_leaves_no_row_logs_what_it_deletes(tmp_path: Path) -> None:
    rows = plain_rows(range(4), partitions=1)
    write(tmp_path, flagged(rows, [False] * 4))
    instant = write(tmp_path, flagged(plain_rows(range(4), ts=2, partitions=1), [True] * 4))
    assert [(one["op"], one["before"]["id"], one["after"]) for one in logged(tmp_path, instant)] == [
        ("d", key, None) for key in rows["id"].to_pylist()
    ]


def test_rows_inserted_into_a_small_file_are_logged(tmp_path: Path) -> None:
    write(tmp_path, plain_rows(range(4), partitions=1))
    again = plain_rows([1, 9], ts=7, text="again", partitions=1)
    instant = write(tmp_path, again, operation="insert")  # keys are not looked up: k00001 is there twice
    assert seen(tmp_path, instant) == shown(
        [("i", None, row) for row in again.to_pylist()], "DATA_BEFORE_AFTER", instant
    )


def test_a_row_that_moves_to_another_partition_goes_there_and_comes_here(tmp_path: Path) -> None:
    rows = plain_rows(range(6))
    index = {"hoodie.index.type": "GLOBAL_SIMPLE"}
    write(tmp_path, rows, index)
    moved = plain_rows([1], ts=2, text="moved").set_column(1, "part", pa.array(["p0"]))
    instant = write(tmp_path, moved, index)
    changes = [("d", rows.slice(1, 1).to_pylist()[0], None), ("i", None, moved.to_pylist()[0])]
    assert seen(tmp_path, instant) == shown(changes, "DATA_BEFORE_AFTER", instant)


def test_values_filled_from_the_stored_row_are_in_the_image_and_a_row_that_fills_nothing_is_no_change(
    tmp_path: Path,
) -> None:
    payload = "org.apache.hudi.common.model.PartialUpdateAvroPayload"
    more = {"hoodie.datasource.write.payload.class": payload}
    stored = pa.table({"id": ["a", "b", "c"], "part": ["p"] * 3, "ts": [5, 5, 5], "x": [1, None, 3], "y": [4, 5, 6]})
    write(tmp_path, stored, more)
    news = pa.table(
        {
            "id": ["a", "b", "c"],
            "part": ["p"] * 3,
            "ts": [6, 2, 2],
            "x": [None, 7, 8],
            "y": pa.array([9, 9, None], "int64"),
        }
    )
    instant = write(tmp_path, news, more)
    rows = {row["id"]: row for row in hf.HudiTable.open(tmp_path).to_arrow().to_pylist()}
    changed = {one["before"]["id"]: one["after"] for one in logged(tmp_path, instant)}
    assert sorted(changed) == ["a", "b"]  # c: late, and nothing of it is wanted
    for key, image in changed.items():
        assert image == {name: rows[key][name] for name in ("id", "part", "ts", "x", "y")}
    assert (changed["a"]["x"], changed["a"]["y"], changed["b"]["x"], changed["b"]["y"]) == (1, 9, 7, 5)


def test_what_a_merger_makes_and_lets_go_is_logged(tmp_path: Path) -> None:
    def merge(old: pa.Table, new: pa.Table) -> pa.Table:
        added = pc.add(old["ts"], new["ts"])
        gone = pc.greater(added, 10)
        return new.set_column(2, "ts", added).append_column("_hoodie_is_deleted", gone)

    more = {
        "hoodie.write.record.merge.mode": "CUSTOM",
        "hoodie.write.record.merge.strategy.id": "11111111-2222-3333-4444-555555555555",
        "hudi_fast.merger": merge,
    }
    write(tmp_path, plain_rows(range(4), ts=1, partitions=1), more)
    news = pa.concat_tables([plain_rows([0], ts=3, partitions=1), plain_rows([1], ts=30, partitions=1)])
    instant = write(tmp_path, news, more)
    found = [
        (one["op"], (one["before"] or {}).get("ts"), (one["after"] or {}).get("ts"))
        for one in logged(tmp_path, instant)
    ]
    assert found == [("u", 1, 4), ("d", 1, None)]


@pytest.mark.parametrize("mode", ["DATA_BEFORE", "OP_KEY_ONLY"])
def test_keys_are_computed_where_the_table_has_no_meta_columns(tmp_path: Path, mode: str) -> None:
    more = {"hoodie.populate.meta.fields": "false", "hoodie.index.type": "SIMPLE", MODE: mode}
    write(tmp_path, plain_rows(range(4)), more)
    instant = write(tmp_path, plain_rows([1, 8], ts=2), more)
    delete_instant = delete(tmp_path, plain_rows([2]), more)
    assert sorted((one["op"], one["record_key"]) for one in logged(tmp_path, instant)) == [
        ("i", "k00008"),
        ("u", "k00001"),
    ]
    assert [(one["op"], one["record_key"]) for one in logged(tmp_path, delete_instant)] == [("d", "k00002")]


def test_full_blocks_and_files_are_followed_by_others(tmp_path: Path) -> None:
    more = {"hoodie.logfile.data.block.max.size": "400", "hoodie.logfile.max.size": "3000"}
    write(tmp_path, plain_rows(range(40), partitions=1), more)
    instant = write(tmp_path, plain_rows(range(40), ts=2, text="new", partitions=1), more)
    (stat,) = stats_by_instant(tmp_path)[instant]
    names = sorted(stat.cdc_stats or {})
    blocks = [block for name in names for block in entries_of(tmp_path, name)]
    assert [name.split(".log.")[1][0] for name in names] == [str(number + 1) for number in range(len(names))]
    assert len(names) > 2
    assert len(blocks) > len(names)
    assert sum(map(len, blocks)) == 40
    assert_tidy(tmp_path)


def test_images_hold_values_of_every_kind(tmp_path: Path) -> None:
    kinds = {
        "price": pa.array([None, 1], pa.int32()).cast(pa.decimal128(12, 2)),
        "day": pa.array([3, None], pa.date32()),
        "at": pa.array([None, 1_700_000_000_000_001], pa.timestamp("us", "UTC")),
        "raw": pa.array([b"\x00\xff", None]),
        "place": pa.array(
            [{"x": 1, "names": ["é", None]}, None], pa.struct({"x": pa.int64(), "names": pa.list_(pa.string())})
        ),
        "tags": pa.array([[("a", 1.5)], []], pa.map_(pa.string(), pa.float64())),
        "ok": pa.array([True, None]),
    }
    rows = plain_rows(range(2), partitions=1)
    for name, column in kinds.items():
        rows = rows.append_column(name, column)
    write(tmp_path, rows)
    before = hf.HudiTable.open(tmp_path).to_arrow().select(rows.column_names).to_pylist()
    instant = write(tmp_path, rows.take([1]).set_column(2, "ts", pa.array([2])))
    (entry,) = logged(tmp_path, instant)
    stored = before[1] | {"tags": dict(before[1]["tags"])}
    assert entry["before"] == stored
    assert entry["after"] == stored | {"ts": 2}


def test_log_appends_write_no_change_log_and_their_stats_name_the_slice(tmp_path: Path) -> None:
    write(tmp_path, plain_rows(range(6), partitions=1), MOR)
    rewritten = write(tmp_path, plain_rows([2, 9], ts=2, partitions=1), MOR)  # inserts: the small file is rewritten
    (base,) = stats_by_instant(tmp_path)[rewritten]
    (change_log,) = base.cdc_stats or {}
    names = []
    for ts in (3, 4):
        instant = write(tmp_path, plain_rows([3], ts=ts, partitions=1), MOR)
        (stat,) = stats_by_instant(tmp_path)[instant]
        names.insert(0, stat.path.rpartition("/")[2])
        assert stat.cdc_stats is None
        assert (stat.prev_commit, stat.base_file) == (rewritten, base.path.rpartition("/")[2])
        assert stat.log_files == (*names[1:], change_log.rpartition("/")[2], names[0])


@pytest.mark.slow("6")
@pytest.mark.parametrize("version", ["6", "9"])
def test_compaction_logs_the_difference_to_the_base_file(tmp_path: Path, version: str) -> None:
    more = {**MOR, **LOGS_ALONE}
    write(tmp_path, plain_rows(range(6), partitions=1), more, table_version=version)
    write(tmp_path, plain_rows([1, 2, 3], ts=2, text="b", partitions=1), more)
    write(tmp_path, plain_rows([1, 2], ts=3, text="c", partitions=1), more)
    delete(tmp_path, plain_rows([2, 4], partitions=1), more)
    table = hf.HudiTable.open(tmp_path)
    instant = table.services.compact({"hoodie.compact.inline.max.delta.commits": 1}).instant
    found = {
        one["op"] + (one["before"] or one["after"])["id"]: one["after"] and one["after"]["text"]
        for one in logged(tmp_path, instant)
    }
    assert found == {"uk00001": "c1", "uk00003": "b3", "dk00002": None, "dk00004": None}
    assert {one["ts_ms"] for one in logged(tmp_path, instant)} == {instant}
    write(tmp_path, plain_rows([1], ts=9, partitions=1), more)
    table = hf.HudiTable.open(tmp_path)
    table.services.schedule_compact({"hoodie.compact.inline.max.delta.commits": 1})
    state = open_state(Storage(str(tmp_path)))
    (planned,) = state.timeline.pending_compactions
    (operation,) = read_compaction_plan(state.storage, state.config, planned).operations
    assert [name.endswith(".cdc") for name in operation.log_files] == [True, False]
    hf.HudiTable.open(tmp_path).services.compact({})
    assert_tidy(tmp_path)


def test_change_logs_are_listed_kept_and_cleaned_with_their_base_file(tmp_path: Path) -> None:
    more = {METADATA: "true"}
    for ts in range(1, 5):
        write(tmp_path, plain_rows(range(3), ts=ts, partitions=1), more)
    state = open_state(Storage(str(tmp_path)))
    listed = {entry.name for entry in state.view.lister.files("p0")}
    assert {log.name for log in change_logs(tmp_path)} <= listed
    (slice_,) = latest_slices(state.view, "p0")
    assert [log.name for log in slice_.change_logs] == [change_logs(tmp_path)[-1].name]
    assert slice_.log_files == ()
    table = hf.HudiTable.open(tmp_path)
    table.services.savepoint()
    table.services.clean({"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": 1})
    assert [log.name for log in change_logs(tmp_path)] == [log.name for log in slice_.change_logs]
    assert table_rows(tmp_path) == {f"k{n:05d}": ("p0", 4, f"a{n}") for n in range(3)}
    assert_tidy(tmp_path)


@pytest.mark.slow("6")
@pytest.mark.parametrize("version", ["6", "9"])
def test_rollback_and_restore_take_change_logs_along(tmp_path: Path, version: str) -> None:
    write(tmp_path, plain_rows(range(3)), table_version=version)
    saved = write(tmp_path, plain_rows(range(3), ts=2))
    kept = change_logs(tmp_path)
    hf.HudiTable.open(tmp_path).services.savepoint()
    write(tmp_path, plain_rows(range(3), ts=3))
    last = write(tmp_path, plain_rows(range(3), ts=4))
    assert len(change_logs(tmp_path)) == 3 * len(kept)
    hf.HudiTable.open(tmp_path).services.rollback(last)
    assert len(change_logs(tmp_path)) == 2 * len(kept)
    hf.HudiTable.open(tmp_path).services.restore(saved)
    assert change_logs(tmp_path) == kept
    assert_tidy(tmp_path)


@pytest.mark.slow("9")
@pytest.mark.parametrize("version", ["6", "9"])
def test_a_compaction_that_died_without_markers_is_rolled_back_with_its_change_log(
    tmp_path: Path, version: str
) -> None:
    more = {**MOR, **LOGS_ALONE}
    write(tmp_path, plain_rows(range(4), partitions=1), more, table_version=version)
    write(tmp_path, plain_rows([1], ts=2, partitions=1), more)
    instant = hf.HudiTable.open(tmp_path).services.compact({"hoodie.compact.inline.max.delta.commits": 1}).instant
    write(tmp_path, plain_rows([2], ts=3, partitions=1), more)
    (completed,) = [one for one in (tmp_path / ".hoodie").rglob(f"{instant}*.commit") if "metadata" not in one.parts]
    completed.unlink()
    state = load_state(Storage(str(tmp_path)))
    (died,) = state.timeline.pending_compactions
    requests = plan_rollback(state.storage, state.config, died).requests
    named = [name.rpartition("/")[2] for one in requests for name in one.files_to_be_deleted]
    assert [name.endswith(".cdc") for name in named] == [True, False]
    assert all(instant in name for name in named)


@pytest.mark.parametrize("name", ["cow_v9_cdc", "mor_v9_cdc"])
def test_a_table_that_hudi_made_is_written_with_change_logs_without_being_told(
    golden: Callable[[str], Golden], name: str
) -> None:
    table = golden(name).table
    before = hf.HudiTable.open(table).to_arrow()
    changed = before.slice(0, 3).drop_columns([one for one in before.column_names if one.startswith("_hoodie_")])
    changed = changed.set_column(changed.column_names.index("qty"), "qty", pa.array(np.arange(3), pa.int32()))
    fresh = changed.set_column(0, "id", pa.array(["new-1", "new-2", "new-3"]))
    instant = hf.write(pa.concat_tables([changed, fresh]), table).instant
    stats = stats_by_instant(table)[instant]
    rewritten = [stat for stat in stats if stat.path.endswith(".parquet") and stat.prev_commit != "null"]
    assert rewritten
    assert all(stat.cdc_stats for stat in rewritten)
    found = logged(table, instant)
    keys = set(fresh["id"].to_pylist()) | set(changed["id"].to_pylist())
    assert {(one["before"] or one["after"])["id"] for one in found} <= keys
    assert {"i", "u"} == {one["op"] for one in found}


def test_options_that_contradict_the_table_are_refused(tmp_path: Path) -> None:
    write(tmp_path, plain_rows(range(3)))
    with pytest.raises(hf.ConfigError, match=r"hoodie\.table\.cdc\.enabled:\tfalse\ttrue"):
        hf.write(plain_rows(range(3)), tmp_path, {"hoodie.table.cdc.enabled": "false"})
    with pytest.raises(hf.ConfigError, match=r"logging\.mode:\tOP_KEY_ONLY\tDATA_BEFORE_AFTER"):
        hf.write(plain_rows(range(3)), tmp_path, {MODE: "OP_KEY_ONLY"})
