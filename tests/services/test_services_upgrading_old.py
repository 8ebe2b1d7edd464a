"""Tables that releases before 0.14 wrote: read as they answered, and the same in every later version.

Modules: hudi_fast.services.upgrading.upgrade_plan, hudi_fast.services.upgrading.upgrade.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudi_fast as hf
from hudi_fast.config.properties_file import UPDATED_PATH, load_properties, update_properties
from hudi_fast.errors import ConfigError, UnsupportedFeatureError
from hudi_fast.metadata_table.table import examine_metadata
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.archive.timeline import ArchivedTimeline
from hudi_fast.view.table_state import load_state
from tests.support.golden import Golden, golden_names
from tests.support.rows import assert_same_rows

OLD = golden_names("old/")
FEW = frozenset({"old/h009_mor", "old/h010_cow", "old/h013_mor_v4"})
EACH = [name if name in FEW else pytest.param(name, marks=pytest.mark.long) for name in OLD]
BEFORE_6 = [one for one, name in zip(EACH, OLD, strict=True) if not name.startswith(("old/h014", "old/h100"))]
ALL_THE_SAME = {"hoodie.skip.default.partition.validation": "true", "hudi_fast.threads": 1}
IGNORED = ("_hoodie_file_name", "_hoodie_commit_seqno")

Unzip = Callable[[str], Golden]
Instants = set[tuple[str, str]]


def version_of(path: Path) -> int:
    return load_state(Storage(path)).config.version


def instants(path: Path) -> Instants:
    state = load_state(Storage(path))
    found = {(one.requested, one.action) for one in state.timeline.completed()}
    return found | {(one.requested, one.action) for one in ArchivedTimeline(state.storage, state.config).instants()}


def upgrade(path: Path, version: int, **more: Any) -> Any:
    return hf.HudiTable.open(path).services.upgrade(version, {**ALL_THE_SAME, **more})


def new_rows(path: Path, ids: list[str], ts: int) -> pa.Table:
    """Rows of the table with other keys and ordering values."""
    found = hf.HudiTable.open(path).to_arrow().slice(0, len(ids))
    found = found.drop_columns([name for name in found.column_names if name.startswith("_hoodie")])
    found = found.set_column(found.column_names.index("id"), "id", pa.array(ids))
    return found.set_column(found.column_names.index("ts"), "ts", pa.array([ts] * len(ids), found["ts"].type))


def test_there_are_tables_of_every_version_from_2_on(golden: Unzip) -> None:
    assert {version_of(golden(name).table) for name in OLD} == {2, 3, 4, 5, 6, 8}


@pytest.mark.parametrize("name", OLD)
def test_a_snapshot_holds_the_rows_that_the_release_answered(name: str, golden: Unzip) -> None:
    found = golden(name)
    answer = found.snapshot()
    if version_of(found.table) < 5 and not load_state(Storage(found.table)).config.is_mor:
        # Spark shows the folder's name of COPY_ON_WRITE tables; the rows store null, as later releases show it.
        cities = pc.if_else(pc.equal(answer["city"], "default"), None, answer["city"])
        answer = answer.set_column(answer.column_names.index("city"), "city", cities)
    assert_same_rows(hf.HudiTable.open(found.table).to_arrow(), answer, ignore=())
    if found.has("read_optimized"):
        rows = hf.HudiTable.open(found.table).to_arrow(query_type="read_optimized")
        assert_same_rows(rows, found.answer("read_optimized"), ignore=())


@pytest.mark.parametrize("name", OLD)
def test_filters_prune_partitions_by_the_values_of_the_rows(name: str, golden: Unzip) -> None:
    table = hf.HudiTable.open(golden(name).table)
    rows = table.to_arrow()
    (column,) = load_state(Storage(table.path)).config.partition_fields
    for value in rows[column].unique().to_pylist():
        field = pc.field(column)
        wanted = field.is_null() if value is None else field == value
        assert_same_rows(table.to_arrow(filter=wanted), rows.filter(wanted), ignore=())


@pytest.mark.slow("old/h010_cow")
@pytest.mark.parametrize("name", EACH)
def test_rows_and_history_are_the_same_in_every_version(name: str, golden: Unzip) -> None:
    path = golden(name, own=True).table
    before, known = hf.HudiTable.open(path).to_arrow(), instants(path)
    for version in [one for one in (5, 6, 8, 9, 5) if one > version_of(path) or one == 5]:
        result = upgrade(path, version)
        assert (result.after, version_of(path)) == (version, version)
        assert_same_rows(hf.HudiTable.open(path).to_arrow(), before, ignore=IGNORED)
        assert known <= instants(path)
        assert hf.HudiTable.open(path).services.plan_upgrade(version, ALL_THE_SAME).steps == ()
        state = load_state(Storage(path))
        if state.config.metadata_partitions:
            assert examine_metadata(state.storage, state.config, state.timeline)[1] is None
            assert hf.HudiTable.open(path).services.validate().differences.to_pylist() == []


@pytest.mark.slow
@pytest.mark.parametrize("name", BEFORE_6)
def test_writes_go_on_in_version_5_and_after_an_upgrade(name: str, golden: Unzip) -> None:
    path = golden(name).table
    if version_of(path) < 5:
        with pytest.raises(UnsupportedFeatureError, match=r"only 5, 6, 8, 9 are written; upgrade.*services.upgrade"):
            hf.HudiTable.open(path).write(new_rows(path, ["k0"], 90))
        upgrade(path, 5)
    table = hf.HudiTable.open(path)
    for version in (5, 6, 9):
        upgrade(path, version)
        rows = table.to_arrow().num_rows
        table.write(new_rows(path, ["k0", f"new{version}"], 90 + version))
        found = table.to_arrow(filter=pc.field("id").isin(["k0", f"new{version}"]))
        assert set(found["ts"].to_pylist()) >= {90 + version}
        assert table.to_arrow().num_rows >= rows + 1
        gone = table.to_arrow(filter=pc.field("id") == f"new{version}")
        table.delete(gone.drop_columns([one for one in gone.column_names if one.startswith("_hoodie")]))
        assert f"new{version}" not in table.to_arrow()["id"].to_pylist()


def test_the_partition_of_nulls_of_older_versions_stops_an_upgrade(golden: Unzip) -> None:
    path = golden("old/h010_cow").table
    assert (path / "default").is_dir()
    services = hf.HudiTable.open(path).services
    with pytest.raises(ConfigError, match=r"has the partition default.*hoodie\.skip\.default\.partition\.validation"):
        services.upgrade(6)
    assert version_of(path) == 3
    table = hf.HudiTable.open(path)
    upgrade(path, 6)
    before = table.to_arrow()
    rows = table.to_arrow(filter=pc.field("city").is_null())
    table.write(rows.drop_columns([name for name in rows.column_names if name.startswith("_hoodie")]))
    table.delete_partitions(["default"])
    assert_same_rows(table.to_arrow(), before, ignore=(*IGNORED, "_hoodie_commit_time", "_hoodie_partition_path"))


def test_what_a_failed_upgrade_of_an_old_release_left_is_deleted(golden: Unzip) -> None:
    path = golden("old/h009_cow").table
    storage = Storage(path)
    storage.write_bytes(UPDATED_PATH, b"hoodie.table.name=trips\nhoodie.table.vers")
    upgrade(path, 6)
    assert not storage.exists(UPDATED_PATH)


def test_a_failed_write_is_rolled_back_before_the_version_changes(golden: Unzip) -> None:
    for name in ("old/h010_mor", "old/h012_cow"):
        path = golden(name).table
        newest = load_state(Storage(path)).timeline.writes()[-1]
        (path / ".hoodie" / str(newest.file_name)).unlink()
        before = hf.HudiTable.open(path).to_arrow()
        steps = hf.HudiTable.open(path).services.plan_upgrade(6, ALL_THE_SAME).steps
        assert f"roll back the failed {newest.action} {newest.requested}" in steps
        upgrade(path, 6)
        assert_same_rows(hf.HudiTable.open(path).to_arrow(), before, ignore=())
        assert load_state(Storage(path)).timeline.pending_writes == ()


def test_paths_tell_the_style_that_version_2_does_not_store(golden: Unzip) -> None:
    path = golden("old/h009_mor").table
    assert "hoodie.datasource.write.hive_style_partitioning" not in load_properties(Storage(path))
    with pytest.raises(ConfigError, match="contradicts"):
        upgrade(path, 6, **{"hoodie.datasource.write.hive_style_partitioning": "false"})
    upgrade(path, 6)
    assert load_state(Storage(path)).config.hive_style


def test_a_table_of_version_7_is_read_and_upgraded_but_not_written(golden: Unzip) -> None:
    path = golden("old/h014_mor").table
    update_properties(Storage(path), {"hoodie.table.version": "7"})
    before = hf.HudiTable.open(path).to_arrow()
    with pytest.raises(UnsupportedFeatureError, match="table version 7"):
        hf.HudiTable.open(path).write(new_rows(path, ["k0"], 90))
    upgrade(path, 8)
    assert_same_rows(hf.HudiTable.open(path).to_arrow(), before, ignore=IGNORED)
