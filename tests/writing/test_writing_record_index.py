"""Writers that find keys by the record index: the rows are those of any other index, and fewer files are opened."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import hudi_fast as hf
from hudi_fast.config.write_options import WriteOptions
from hudi_fast.index.metadata_lookup import KeyLocations, is_by_partition, locate_keys
from hudi_fast.metadata_table.state import metadata_of, open_state
from hudi_fast.storage.base import Storage
from hudi_fast.view.slices import latest_slices
from hudi_fast.writing.draft import draft_plan
from hudi_fast.writing.global_index import assign_table
from hudi_fast.writing.located import match_slices, with_row_numbers
from hudi_fast.writing.prepare import prepare_rows
from hudi_fast.writing.write_plan import FileGroupWork, Incoming, TaskToken, WritePlan
from tests.support.golden import Golden
from tests.support.instrumented_storage import RecordingStorage
from tests.support.metadata_checks import assert_metadata_true
from tests.support.mor_tables import VERSIONS, stats_of
from tests.support.small_tables import OPTIONS, plain_rows, table_rows, write_to

INDEX = "hoodie.index.type"
GLOBAL = "GLOBAL_RECORD_LEVEL_INDEX"
BY_PARTITION = "RECORD_LEVEL_INDEX"
MOVES = "hoodie.record.index.update.partition.path"
KINDS = [("COPY_ON_WRITE", "9"), ("MERGE_ON_READ", "9"), ("COPY_ON_WRITE", "6"), ("MERGE_ON_READ", "8")]


def settings_of(table_type: str, version: str, index: str, **more: str) -> dict[str, Any]:
    return {
        **OPTIONS,
        "hoodie.datasource.write.table.type": table_type,
        "hoodie.write.table.version": version,
        "hoodie.compact.inline": "false",
        INDEX: index,
        **more,
    }


def placed(numbers: Any, part: str, ts: int = 1, text: str = "a") -> pa.Table:
    """Rows of one partition, whatever their key."""
    rows = plain_rows(numbers, ts, text)
    return rows.set_column(1, "part", pa.array([part] * rows.num_rows))


def assert_index_is_right(path: Path) -> None:
    """Every row is where the record index says."""
    rows = hf.HudiTable.open(path).to_arrow()
    table = metadata_of(open_state(Storage(path)))
    assert table is not None
    kept_apart = is_by_partition(table)
    for partition in rows["_hoodie_partition_path"].unique().to_pylist() if kept_apart else [None]:
        here = rows if partition is None else rows.filter(pc.field("_hoodie_partition_path") == partition)
        where = locate_keys(table, here["_hoodie_record_key"].combine_chunks(), partition)
        paths, files = here["_hoodie_partition_path"].to_pylist(), here["_hoodie_file_name"].to_pylist()
        for number, path_, file in zip(where.numbers.tolist(), paths, files, strict=True):
            assert number >= 0
            assert where.groups[number][0] == path_
            assert file.startswith(where.groups[number][1])


# ---- the plan of a write, on tables of real Hudi


def drafted(golden: Golden, rows: pa.Table, **settings: str) -> tuple[WritePlan, Incoming]:
    state = open_state(RecordingStorage(golden.table))
    plan = draft_plan(state, WriteOptions.from_options(settings), rows.schema)
    return plan, prepare_rows(plan, rows)


def changes_of(golden: Golden) -> pa.Table:
    """Stored rows, every second of them in a partition that is not its own, and one that is new."""
    rows = golden.snapshot()
    rows = rows.select([name for name in rows.column_names if not name.startswith("_hoodie_")])
    rows = rows.take(pa.array(range(0, rows.num_rows, 3)))
    parts = rows["part"].to_pylist()
    others = {part: sorted(set(parts) - {part})[0] for part in parts}
    moved = [others[part] if number % 2 else part for number, part in enumerate(parts)]
    rows = rows.set_column(rows.schema.get_field_index("part"), "part", pa.array(moved))
    new = rows.slice(0, 1)
    key = new.schema.get_field_index("id")
    return pa.concat_tables([rows, new.set_column(key, "id", pa.array(["quite new"]))])


@pytest.mark.parametrize("moves", ["false", "true"])
@pytest.mark.parametrize("name", ["h015_cow_record_index", "mor_v9_record_index"])
def test_work_is_dealt_out_as_by_looking_everywhere(golden: Callable[[str], Golden], name: str, moves: str) -> None:
    found = golden(name)
    rows = changes_of(found)
    plan, incoming = drafted(found, rows, **{INDEX: GLOBAL, MOVES: moves})
    works = assign_table(plan, incoming)
    simple = {INDEX: "GLOBAL_SIMPLE", "hoodie.simple.index.update.partition.path": moves}
    expected = assign_table(*drafted(found, rows, **simple))

    def content(work: FileGroupWork) -> tuple[Any, ...]:
        gone = None if work.moved is None else sorted(work.incoming_rows[work.moved].tolist())
        return work.partition, sorted(work.incoming_rows.tolist()), gone, len(work.inserts), work.slice is None

    assert sorted(map(content, works), key=str) == sorted(map(content, expected), key=str)
    opened = [call.path for call in plan.storage.calls if call.name == "open_input" and call.path.endswith(".parquet")]
    if plan.config.is_mor and moves == "false":
        assert opened == []
        assert all((work.base_rows == -1).all() for work in works)
    else:
        slices = {work.slice.base_file.path for work in works if work.slice and work.slice.base_file}
        assert {path for path in opened if not path.startswith(".hoodie/")} <= slices


# ---- what the index says and the file groups do not


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_places_that_are_stale(tmp_path: Path, table_type: str) -> None:
    hf.write(placed(range(4), "p0"), tmp_path, settings_of(table_type, "9", "SIMPLE"))
    rows = placed([1, 7, 2, 3], "p0", ts=2)
    state = open_state(Storage(tmp_path))
    settings = settings_of(table_type, "9", BY_PARTITION)
    plan = draft_plan(state, WriteOptions.from_options(settings), rows.schema)
    incoming = prepare_rows(plan, rows)
    (slice_,) = latest_slices(state.view, "p0")
    groups = (("p0", slice_.file_id), ("p0", "00000000-0000-0000-0000-000000000000-0"))
    says = KeyLocations(groups, np.array([0, 0, 1, -1], np.int32))
    (match,) = match_slices(plan, incoming, np.arange(4), says, [slice_])
    if table_type == "COPY_ON_WRITE":
        assert (match.base_rows.tolist(), match.incoming_rows.tolist()) == ([1], [0])
        return
    assert (match.base_rows.tolist(), match.incoming_rows.tolist()) == ([-1, -1], [0, 1])
    none = np.zeros(0, dtype=np.int64)
    work = FileGroupWork(
        "p0", slice_.file_id, slice_, match.base_rows, match.incoming_rows, None, np.array([3]), TaskToken(0)
    )
    settled = with_row_numbers(plan, work, incoming)
    assert (settled.base_rows.tolist(), settled.incoming_rows.tolist()) == ([1], [0])
    assert sorted(settled.inserts.tolist()) == [1, 3]
    leaves = with_row_numbers(plan, replace(work, moved=np.array([True, True]), inserts=none), incoming)
    assert (leaves.incoming_rows.tolist(), leaves.inserts.tolist()) == ([0], [])
    assert leaves.moved is not None
    assert leaves.moved.tolist() == [True]


def test_a_key_that_its_file_lacks_is_inserted(tmp_path: Path) -> None:
    settings = settings_of("COPY_ON_WRITE", "9", GLOBAL)
    hf.write(placed(range(6), "p0"), tmp_path, settings)
    (stale,) = latest_slices(open_state(Storage(tmp_path)).view, "p0")
    assert stale.base_file is not None
    file = tmp_path / stale.base_file.path
    rows = pq.read_table(file, partitioning=None)
    pq.write_table(rows.filter(~pc.field("id").isin(["k00002", "k00004"])), file)
    deletes = hf.write(placed([2], "p0"), tmp_path, settings | {"hoodie.datasource.write.operation": "delete"})
    assert (deletes.deletes, deletes.files_written) == (0, 0)
    result = hf.write(placed([1, 4], "p0", ts=2, text="b"), tmp_path, settings)
    assert (result.inserts, result.updates) == (1, 1)
    assert {key: row[2] for key, row in table_rows(tmp_path).items() if key >= "k00003"} == {
        "k00003": "a3",
        "k00004": "b4",
        "k00005": "a5",
    }
    assert_index_is_right(tmp_path)


# ---- writes


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table_type", "version", "index"),
    [
        *((*kind, GLOBAL) for kind in KINDS[:3]),
        pytest.param(*KINDS[3], GLOBAL, marks=pytest.mark.long),  # as version 9
        *((*kind, BY_PARTITION) for kind in KINDS[:2]),
        (*KINDS[2], "RECORD_INDEX"),
    ],
)
def test_writes_in_turn_leave_the_rows_of_any_other_index(
    tmp_path: Path, table_type: str, version: str, index: str
) -> None:
    steps = [
        ("bulk_insert", plain_rows(range(20))),
        ("upsert", plain_rows([*range(5, 25), 5], ts=2, text="b")),
        ("upsert", plain_rows(range(8), ts=1, text="late")),
        ("delete", plain_rows([1, 2, 10, 99], ts=3)),
        ("upsert", plain_rows([1, 2, 40], ts=4, text="back")),
        ("upsert", plain_rows([3, 8, 30, 31], ts=7, text="gone")),
        ("insert", plain_rows([50, 51], ts=5)),
        ("upsert", plain_rows([3, 50, 51, 52], ts=9, text="z")),
        ("insert_overwrite", plain_rows([60, 62], ts=1)),
        ("upsert", plain_rows([0, 4, 60, 61], ts=9, text="o")),
    ]
    for operation, plain in steps:
        flags = [text in ("gone3", "gone8", "gone30") for text in plain["text"].to_pylist()]
        rows = plain.append_column("_hoodie_is_deleted", pa.array(flags))
        done = {"hoodie.datasource.write.operation": operation}
        by_index = hf.write(rows, tmp_path / "i", {**settings_of(table_type, version, index), **done})
        simple = "SIMPLE" if index == BY_PARTITION else "GLOBAL_SIMPLE"
        hf.write(rows, tmp_path / "s", {**settings_of(table_type, version, simple), **done})
        assert table_rows(tmp_path / "i") == table_rows(tmp_path / "s"), by_index
        assert_index_is_right(tmp_path / "i")


@pytest.mark.slow
@pytest.mark.parametrize(("table_type", "version"), KINDS)
def test_a_row_stays_in_its_partition_or_moves_as_it_is_told(tmp_path: Path, table_type: str, version: str) -> None:
    settings = settings_of(table_type, version, GLOBAL)
    for moves, part in (("false", "p1"), ("true", "p0")):
        path = tmp_path / moves
        hf.write(plain_rows(range(6)), path, settings)
        hf.write(placed([1, 3, 9], "p0", ts=2, text="m"), path, {**settings, MOVES: moves})
        rows = hf.HudiTable.open(path).to_arrow()
        stored = dict(zip(rows["id"].to_pylist(), rows["_hoodie_partition_path"].to_pylist(), strict=True))
        assert (stored["k00001"], stored["k00003"], stored["k00009"]) == (part, part, "p0")
        assert table_rows(path)["k00001"][1:] == (2, "m1")
        assert len(stored) == 7
        assert_index_is_right(path)
        hf.write(placed([1, 3], "p2", ts=1, text="late"), path, {**settings, MOVES: moves})
        assert table_rows(path)["k00001"][1:] == (2, "m1")
        assert len(table_rows(path)) == 7
        assert_index_is_right(path)


@pytest.mark.slow("COPY_ON_WRITE")
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_key_may_be_in_several_partitions_where_the_index_is_by_partition(tmp_path: Path, table_type: str) -> None:
    settings = settings_of(table_type, "9", BY_PARTITION)
    hf.write(placed(range(3), "p0"), tmp_path, settings)
    hf.write(placed(range(1, 4), "p1"), tmp_path, settings)
    hf.write(placed(range(4), "p1", ts=2, text="b"), tmp_path, settings)
    rows = hf.HudiTable.open(tmp_path).to_arrow().select(["part", "id", "text"]).to_pylist()
    found = sorted((row["part"], row["id"], row["text"]) for row in rows)
    expected = [("p0", f"k0000{n}", f"a{n}") for n in range(3)] + [("p1", f"k0000{n}", f"b{n}") for n in range(4)]
    assert found == expected
    assert_index_is_right(tmp_path)


@pytest.mark.slow(but="9")
@pytest.mark.parametrize("version", VERSIONS)
def test_a_deleted_key_that_another_index_writes_again_is_found(version: str, tmp_path: Path) -> None:
    """The base file still holds the key: a log file hides its row, and a later one brings it back."""
    kept = {"hoodie.metadata.global.record.level.index.enable": "true"}
    settings = settings_of("MERGE_ON_READ", version, "SIMPLE", **kept)
    hf.write(plain_rows(range(6)), tmp_path, settings)
    hf.HudiTable.open(tmp_path).delete(plain_rows([2, 4], ts=2), settings)
    assert_index_is_right(tmp_path)
    hf.write(plain_rows([2, 3], ts=3, text="again"), tmp_path, settings)
    assert "record_index" in assert_metadata_true(tmp_path)
    assert_index_is_right(tmp_path)
    result = hf.write(plain_rows([2, 4], ts=4, text="later"), tmp_path, {**settings, INDEX: GLOBAL})
    assert (result.updates, result.inserts) == (1, 1)
    rows = table_rows(tmp_path)
    assert (len(rows), rows["k00002"], rows["k00004"]) == (6, ("p0", 4, "later2"), ("p0", 4, "later4"))


def test_rows_go_to_logs_without_a_look_at_base_files(tmp_path: Path) -> None:
    settings = settings_of("MERGE_ON_READ", "9", GLOBAL)
    hf.write(plain_rows(range(50)), tmp_path, settings)
    storage = RecordingStorage(tmp_path)
    result = write_to(storage, plain_rows([3, 4, 10], ts=2, text="b"), settings)
    assert (result.updates, result.inserts, result.files_written) == (3, 0, 2)
    logs = {stat.path for stat in stats_of(tmp_path)}
    written = [call.number for call in storage.calls if call.name == "open_output" and call.path in logs]
    assert len(written) == 2
    before = [call.path for call in storage.calls[: max(written)] if call.name == "open_input"]
    assert [path for path in before if path.endswith(".parquet")] == []


def test_a_group_that_takes_up_inserts_is_rewritten_with_its_updates(tmp_path: Path) -> None:
    settings = settings_of("MERGE_ON_READ", "9", GLOBAL)
    hf.write(placed(range(6), "p0"), tmp_path, settings)
    result = hf.write(placed([2, 4, 20, 21], "p0", ts=2, text="b"), tmp_path, settings)
    assert (result.updates, result.inserts) == (2, 2)
    (stat,) = stats_of(tmp_path)
    assert stat.path.endswith(".parquet")
    rows = table_rows(tmp_path)
    assert len(rows) == 8
    assert [rows[key][2] for key in ("k00002", "k00003", "k00020")] == ["b2", "a3", "b20"]
    assert_index_is_right(tmp_path)


@pytest.mark.slow("GLOBAL_RECORD_LEVEL_INDEX-kept0")
@pytest.mark.parametrize(("index", "kept"), [(GLOBAL, ["a1"]), (BY_PARTITION, ["a1", "b1"])])
def test_inserts_of_stored_keys_are_dropped_wherever_the_key_is(tmp_path: Path, index: str, kept: list[str]) -> None:
    settings = settings_of("COPY_ON_WRITE", "9", index)
    hf.write(placed([1, 2], "p0"), tmp_path, settings)
    drop = {"hoodie.datasource.write.operation": "insert", "hoodie.datasource.insert.dup.policy": "drop"}
    hf.write(pa.concat_tables([placed([1, 3], "p1", text="b"), placed([2], "p0", text="b")]), tmp_path, settings | drop)
    rows = hf.HudiTable.open(tmp_path).to_arrow()
    assert sorted(rows.filter(pc.field("id") == "k00001")["text"].to_pylist()) == kept
    assert rows.filter(pc.field("id") != "k00001").sort_by("id")["text"].to_pylist() == ["a2", "b3"]
    assert_index_is_right(tmp_path)


def test_without_a_metadata_table_another_index_stands_in(tmp_path: Path) -> None:
    settings = settings_of("COPY_ON_WRITE", "9", GLOBAL, **{"hoodie.metadata.enable": "false"})
    with pytest.warns(hf.HudiWarning, match="written without its record index"):
        hf.write(plain_rows(range(6)), tmp_path, settings)
    with pytest.warns(hf.HudiWarning, match="GLOBAL_SIMPLE"):
        hf.write(plain_rows(range(3, 9), ts=2, text="b"), tmp_path, settings)
    rows = table_rows(tmp_path)
    assert [rows[f"k0000{number}"][2] for number in (2, 3, 8)] == ["a2", "b3", "b8"]
    assert len(rows) == 9
