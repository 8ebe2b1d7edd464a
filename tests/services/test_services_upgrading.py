"""Tables of every version and kind in the other versions: same rows, same history, and what is refused.

Modules: hudi_fast.services.upgrading.upgrade_plan, hudi_fast.services.upgrading.upgrade,
hudi_fast.services.upgrading.move.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.config.properties_file import load_properties, update_properties
from hudi_fast.formats.avro.container import is_avro_container
from hudi_fast.metadata_table.layout import load_definitions
from hudi_fast.metadata_table.table import examine_metadata, metadata_storage
from hudi_fast.storage.base import Storage
from hudi_fast.table.services import TableServices
from hudi_fast.timeline.archive.timeline import ArchivedTimeline
from hudi_fast.timeline.commit_metadata import WriteStat
from hudi_fast.timeline.heartbeat import heartbeat_path
from hudi_fast.timeline.instants import Instant, State, ms_from_instant, read_instant_body
from hudi_fast.timeline.service_plans import ClusteringPlan, RequestedReplace, encode_requested_replace
from hudi_fast.timeline.transition import complete, create_requested, to_inflight
from hudi_fast.view.table_state import load_state, read_commit
from hudi_fast.writing.threads import map_in_threads
from hudi_fast.writing.write_plan import FilePlan
from tests.support.golden import Golden
from tests.support.mor_tables import mor_options
from tests.support.rows import assert_same_rows
from tests.support.sessions import InjectedServices, PartlyBackend
from tests.support.small_tables import assert_tidy, listing, options, plain_rows, rows_of, table_rows

WAYS = {6: (8, 9, 8, 6), 8: (9, 8, 6, 8), 9: (8, 6, 9)}
TABLES = [
    "cow_v6_mixed",
    "mor_v6_compacted",
    "mor_v6_PartialUpdateAvroPayload",
    "h015_cow_archived",
    "h015_cow_record_index",
    "h015_mor_rollback_compacted",
    "mor_v8_secondary_index",
    "cow_v9_archived",
    "cow_v9_clustered",
    "cow_v9_savepoint_rollback",
    "cow_v9_timestamp_keygen",
    "cow_v9_nometa",
    "mor_v9_OverwriteNonDefaultsWithLatestAvroPayload",
    "mor_v9_multi_order_logs",
    "mor_v9_partial_update_logs",
    "mor_v9_record_index",
]
NO_VALIDATION = {"hoodie.write.complex.keygen.validation.enable": "false"}

Unzip = Callable[[str], Golden]


def services(path: str | Path) -> TableServices:
    return hf.HudiTable.open(path).services


def upgrade(path: str | Path, version: int, **more: Any) -> Any:
    return services(path).upgrade(version, {"hudi_fast.threads": 1}, **more)


def history(path: str | Path) -> dict[tuple[str, str], Any]:
    """Every completed instant of both timelines by what identifies it: commits as what they hold."""
    state = load_state(Storage(path))
    found: dict[tuple[str, str], Any] = {
        (one.requested, one.action): None for one in ArchivedTimeline(state.storage, state.config).instants()
    }
    for one in state.timeline.completed():
        body = read_instant_body(state.storage, state.config, one)
        commit = one.action in ("commit", "deltacommit", "replacecommit")
        found[one.requested, one.action] = read_commit(state.storage, state.config, one) if commit else body
    return found


def comparable(value: Any) -> Any:
    """Commit metadata without members that one of the forms leaves out."""
    if value is None or isinstance(value, bytes):
        return value
    stats = [
        (stat.path, stat.file_id, stat.prev_commit, stat.num_writes, stat.num_deletes, stat.file_size, stat.cdc_stats)
        for stat in value.write_stats()
    ]
    return stats, value.extra_metadata, value.operation_type, value.partition_to_replace_file_ids or {}


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_rows_and_history_are_the_same_in_all_versions(golden: Unzip, name: str) -> None:
    found = golden(name, own=True)
    before, instants = hf.HudiTable.open(found.table).to_arrow(), history(found.table)
    for version in WAYS[load_state(Storage(found.table)).config.version]:
        result = upgrade(found.table, version)
        state = load_state(Storage(found.table))
        assert (result.after, state.config.version) == (version, version)
        rows = hf.HudiTable.open(found.table).to_arrow()
        assert_same_rows(rows, before, ignore=("_hoodie_file_name", "_hoodie_commit_seqno"))
        now = history(found.table)
        assert {key: comparable(value) for key, value in now.items() if key in instants} == {
            key: comparable(value) for key, value in instants.items()
        }
        assert {action for _, action in now.keys() - instants.keys()} <= {"commit"}  # compactions
        assert state.timeline.pending() == ()
        if state.config.metadata_partitions:
            assert services(found.table).validate().differences.to_pylist() == []
            assert load_properties(metadata_storage(Storage(found.table)))["hoodie.table.version"] == str(version)
        assert services(found.table).plan_upgrade(version).steps == ()


def test_a_timeline_has_the_form_of_its_layout(golden: Unzip) -> None:
    found = golden("mor_v9_compacted")
    upgrade(found.table, 6)
    folder = found.table / ".hoodie"
    state = load_state(Storage(found.table))
    for one in state.timeline.completed():
        body = (folder / f"{one.requested}.{one.action}").read_bytes()
        assert body[:1] == b"{"
    assert not [path for path in (folder / "timeline").rglob("*") if path.is_file()]
    upgrade(found.table, 9)
    assert not [path.name for path in folder.iterdir() if path.name[0].isdigit()]
    for one in load_state(Storage(found.table)).timeline.completed():
        assert is_avro_container((folder / "timeline" / f"{one.requested}_{one.completion}.{one.action}").read_bytes())


def test_completion_times_survive_version_6(golden: Unzip) -> None:
    found = golden("cow_v9_clustered")
    times = {one.requested: one.completion for one in load_state(Storage(found.table)).timeline.completed()}
    upgrade(found.table, 6)
    assert {one.requested: one.completion for one in load_state(Storage(found.table)).timeline.completed()} == times
    upgrade(found.table, 9)
    assert {one.requested: one.completion for one in load_state(Storage(found.table)).timeline.completed()} == times


def test_times_that_a_copy_of_the_table_lost_do_not_move_log_files(tmp_path: Path) -> None:
    settings = mor_options(table_version="6", ordering=None)
    for turn in range(3):
        hf.write(plain_rows(range(6), ts=turn, text=f"t{turn}-"), tmp_path, settings)
    services(tmp_path).compact(settings)
    rows = table_rows(tmp_path)
    for path in (tmp_path / ".hoodie").iterdir():
        os.utime(path)  # all of it is as new as the copy
    upgrade(tmp_path, 8)
    state = load_state(Storage(tmp_path))
    (compaction,) = [one for one in state.timeline.writes() if one.action == "commit"]
    earlier = [one for one in state.timeline.writes() if one.action == "deltacommit"]
    assert len(earlier) == 3
    assert all(one.requested < (one.completion or "") < compaction.requested for one in earlier)
    assert table_rows(tmp_path) == rows
    assert {row["log_files"] for row in hf.HudiTable.open(tmp_path).files().to_pylist()} == {0}


def test_files_of_version_6_say_when_an_action_was_complete(golden: Unzip) -> None:
    found = golden("cow_v9_mixed")
    done = load_state(Storage(found.table)).timeline.completed()
    upgrade(found.table, 6)
    for one in done:
        path = found.table / ".hoodie" / f"{one.requested}.{one.action}"
        assert one.completion is not None
        assert path.stat().st_mtime_ns == ms_from_instant(one.completion, "LOCAL") * 1_000_000


@pytest.mark.slow(but="9-9")
@pytest.mark.parametrize("before", ["6", "8", "9"])
@pytest.mark.parametrize("after", [6, 8, 9])
def test_writes_go_on_in_the_new_version(before: str, after: int, tmp_path: Path) -> None:
    settings = mor_options(table_version=before)
    hf.write(plain_rows(range(8)), tmp_path, settings)
    hf.write(plain_rows(range(2, 6), ts=2, text="b"), tmp_path, settings)
    upgrade(tmp_path, after)
    settings = mor_options(table_version=str(after))
    hf.write(plain_rows([1, 2, 9], ts=3, text="c"), tmp_path, settings)
    expected = {
        **rows_of(plain_rows(range(8))),
        **rows_of(plain_rows(range(2, 6), ts=2, text="b")),
        **rows_of(plain_rows([1, 2, 9], ts=3, text="c")),
    }
    assert table_rows(tmp_path) == expected
    hf.write(plain_rows([1], ts=1, text="late"), tmp_path, settings)
    assert table_rows(tmp_path) == expected
    assert services(tmp_path).validate().differences.to_pylist() == []
    if str(after) == before:
        return
    services(tmp_path).compact(settings)
    assert table_rows(tmp_path) == expected
    assert_tidy(tmp_path)


@pytest.mark.slow
def test_a_failed_write_is_rolled_back_and_a_planned_compaction_carried_out(tmp_path: Path) -> None:
    settings = mor_options(table_version="9")
    hf.write(plain_rows(range(4)), tmp_path, settings)
    hf.write(plain_rows(range(3), ts=2), tmp_path, settings)
    planned = services(tmp_path).schedule_compact(settings)
    assert planned is not None
    hf.write(plain_rows(range(2), ts=3), tmp_path, settings)
    state = load_state(Storage(tmp_path))
    failed = Instant("20990101000000000", "deltacommit", State.REQUESTED)
    create_requested(state.storage, state.config, failed)
    rows = table_rows(tmp_path)
    plan = services(tmp_path).plan_upgrade(6)
    assert "roll back the failed deltacommit 20990101000000000" in plan.steps
    assert f"execute the pending compaction {planned.instant}" in plan.steps
    upgrade(tmp_path, 6)
    state = load_state(Storage(tmp_path))
    assert not state.timeline.pending()
    assert state.timeline.find(planned.instant) is not None
    assert table_rows(tmp_path) == rows


def test_metadata_partitions_that_a_version_does_not_know_are_dropped(golden: Unzip) -> None:
    found = golden("mor_v9_secondary_index", own=True)
    plan = services(found.table).plan_upgrade(8)
    assert [step for step in plan.steps if step.startswith("drop")] == [
        f"drop the metadata partition {name}: an index of version 2"
        for name in ("column_stats", "expr_index_idx_day", "partition_stats", "secondary_index_idx_name")
    ]
    upgrade(found.table, 8)
    config = load_state(Storage(found.table)).config
    assert config.metadata_partitions == ("files", "record_index")
    assert set(load_definitions(Storage(found.table), config)) <= {"record_index"}
    assert not (found.table / ".hoodie/metadata/column_stats").exists()
    older = golden("mor_v8_secondary_index", own=True)
    upgrade(older.table, 6)
    assert load_state(Storage(older.table)).config.metadata_partitions == ("column_stats", "files", "record_index")


def test_indexes_keep_their_version_on_the_way_up(golden: Unzip) -> None:
    found = golden("cow_v8_mixed", own=True)
    path = found.table / ".hoodie/.index_defs/index.json"
    path.write_text(path.read_text().replace(',\n      "version" : "V1"', ""))
    assert "V1" not in path.read_text()
    upgrade(found.table, 9)
    config = load_state(Storage(found.table)).config
    assert {one.version for one in load_definitions(Storage(found.table), config).values()} == {"V1"}


def test_a_metadata_table_that_is_behind_is_built_anew(golden: Unzip) -> None:
    found = golden("cow_v6_mixed")
    inner = found.table / ".hoodie/metadata/.hoodie"
    newest = max(path.name for path in inner.glob("*.deltacommit"))
    for path in inner.glob(newest.partition(".")[0] + ".*"):
        path.unlink()
    plan = services(found.table).plan_upgrade(8)
    assert [step for step in plan.steps if "rebuild the metadata table" in step]
    upgrade(found.table, 8)
    state = load_state(Storage(found.table))
    assert state.config.metadata_partitions == ("column_stats", "files")
    assert examine_metadata(state.storage, state.config, state.timeline)[1] is None
    assert services(found.table).validate().differences.to_pylist() == []


def test_a_table_without_a_metadata_table_gets_none(golden: Unzip) -> None:
    found = golden("mor_v9_log_compacted")
    upgrade(found.table, 6)
    assert not (found.table / ".hoodie/metadata").exists()


@pytest.mark.slow
def test_planning_writes_nothing_and_an_old_plan_is_refused(golden: Unzip) -> None:
    found = golden("mor_v9_mixed")
    before = listing(found.table)
    plan = services(found.table).plan_upgrade(6)
    assert listing(found.table) == before
    assert (plan.before, plan.after) == (9, 6)
    changes = next(step for step in plan.steps if step.startswith("change hoodie.properties"))
    assert "hoodie.table.version=6 (was 9)" in changes
    assert "hoodie.record.merge.mode removed (was EVENT_TIME_ORDERING)" in changes
    services(found.table).compact()
    after = listing(found.table)
    with pytest.raises(hf.CommitConflictError, match="no longer: compact 3 file groups"):
        upgrade(found.table, 6, plan=plan)
    assert listing(found.table) == after
    assert upgrade(found.table, 6, plan=services(found.table).plan_upgrade(6)).steps


def test_files_of_the_other_layout_are_swept(golden: Unzip) -> None:
    found = golden("cow_v9_mixed")
    (found.table / ".hoodie/20200101000000000.commit").write_bytes(b"{}")
    plan = services(found.table).plan_upgrade(9)
    assert plan.steps == ("delete 1 files of the other timeline layout that an earlier change left",)
    upgrade(found.table, 9, plan=plan)
    assert services(found.table).plan_upgrade(9).steps == ()


def test_the_history_of_schemas_has_the_names_of_the_layout(golden: Unzip) -> None:
    found = golden("cow_v9_mixed")
    folder = found.table / ".hoodie/.schema"
    folder.mkdir(exist_ok=True)
    (folder / "20240101000000000_20240101000001000.schemacommit").write_text('{"schemas":[]}')
    upgrade(found.table, 6)
    assert [path.name for path in folder.iterdir()] == ["20240101000000000.schemacommit"]
    upgrade(found.table, 9)
    assert [path.name for path in folder.iterdir()] == ["20240101000000000.schemacommit"]  # fine there too


# ---- refused


def pending_clustering(path: Path) -> None:
    state = load_state(Storage(path))
    action = "clustering" if state.config.layout_version > 1 else "replacecommit"
    body = encode_requested_replace(RequestedReplace("CLUSTER", ClusteringPlan(())))
    create_requested(state.storage, state.config, Instant("20990101000000000", action, State.REQUESTED), body)


def pending_clean(path: Path) -> None:
    state = load_state(Storage(path))
    create_requested(state.storage, state.config, Instant("20990101000000000", "clean", State.REQUESTED))


@pytest.mark.parametrize(
    ("name", "spoil", "more", "version", "error", "text"),
    [
        ("cow_v6_mixed", None, {}, 7, hf.UnsupportedFeatureError, "cannot get table version 7; supported: 5, 6, 8, 9"),
        ("cow_v6_mixed", None, {}, 4, hf.UnsupportedFeatureError, "cannot get table version 4; supported: 5, 6, 8, 9"),
        ("cow_v6_mixed", pending_clustering, {}, 8, hf.ConfigError, "pending clustering"),
        ("cow_v9_mixed", pending_clustering, {}, 8, hf.ConfigError, "pending clustering"),
        ("cow_v9_mixed", pending_clean, {}, 6, hf.ConfigError, "pending clean"),
        (
            "cow_v9_mixed",
            None,
            {"hoodie.table.metadata.partitions.inflight": "record_index"},
            8,
            hf.ConfigError,
            r"being built \(record_index\)",
        ),
        ("cow_v9_mixed", None, {"hoodie.table.format": "iceberg"}, 8, hf.UnsupportedFeatureError, "iceberg"),
        (
            "cow_v9_mixed",
            None,
            {"hoodie.datasource.write.slash.separated.date.partitioning": "true"},
            8,
            hf.UnsupportedFeatureError,
            "slash.separated",
        ),
        (
            "cow_v9_mixed",
            None,
            {"hoodie.record.merge.mode": "CUSTOM", "hoodie.record.merge.strategy.id": "some-id"},
            6,
            hf.UnsupportedFeatureError,
            "without a payload class",
        ),
        ("cow_v9_mixed", None, {"hoodie.table.keygenerator.type": "COMPLEX"}, 8, hf.ConfigError, "complex key"),
    ],
)
def test_what_cannot_be_carried_over_is_refused_before_anything_changes(
    golden: Unzip,
    name: str,
    spoil: Callable[[Path], None] | None,
    more: dict[str, str],
    version: int,
    error: type[Exception],
    text: str,
) -> None:
    found = golden(name, own=True)
    if spoil is not None:
        spoil(found.table)
    if more:
        path = found.table / ".hoodie/hoodie.properties"
        kept = [line for line in path.read_text().splitlines() if line.partition("=")[0] not in more]
        path.write_text("\n".join([*kept, *(f"{key}={value}" for key, value in more.items())]) + "\n")
    before = listing(found.table)
    for verb in (services(found.table).plan_upgrade, services(found.table).upgrade):
        with pytest.raises(error, match=text):
            verb(version)
    assert listing(found.table) == before


@pytest.mark.parametrize(("name", "to"), [("cow_v6_mixed", 8), ("cow_v9_mixed", 6)])
def test_a_commit_that_another_program_moved_away_is_put_back(golden: Unzip, name: str, to: int) -> None:
    found = golden(name)
    shutil.copytree(found.table, twin := found.table.with_name("twin"))
    upgrade(twin, to)
    own, other = load_state(Storage(found.table)), load_state(Storage(twin))
    moved = other.timeline.writes()[1]
    one = own.timeline.find(moved.requested)
    assert one is not None
    target = found.table / other.config.timeline_folder / str(moved.file_name)
    target.parent.mkdir(exist_ok=True)
    shutil.copy2(twin / other.config.timeline_folder / str(moved.file_name), target)
    assert services(found.table).plan_upgrade(to).steps  # the same commit in both places does no harm
    (found.table / own.config.timeline_folder / str(one.file_name)).unlink()
    # Its requested and inflight files are still there: without its completed one it looks like a failed write.
    rows = hf.HudiTable.open(twin).to_arrow()
    steps = services(found.table).plan_upgrade(to).steps
    assert f"put 1 instants back into {own.config.timeline_folder} (the first is {moved.requested})" in steps[0]
    upgrade(found.table, to)
    assert_same_rows(hf.HudiTable.open(found.table).to_arrow(), rows, ignore=())
    assert history(found.table).keys() == history(twin).keys()


def test_a_write_that_is_alive_is_left_alone(golden: Unzip) -> None:
    found = golden("cow_v9_mixed")
    state = load_state(Storage(found.table))
    create_requested(state.storage, state.config, Instant("20990101000000000", "commit", State.REQUESTED))
    state.storage.write_bytes(heartbeat_path("20990101000000000"), b"another program\n")
    before = listing(found.table)
    with pytest.raises(hf.CommitConflictError, match="20990101000000000"):
        upgrade(found.table, 6)
    assert listing(found.table) == before


@pytest.mark.slow
def test_writers_that_log_faster_than_is_compacted_win(tmp_path: Path) -> None:
    settings = mor_options(table_version="9")
    hf.write(plain_rows(range(4)), tmp_path, settings)
    hf.write(plain_rows(range(4), ts=2), tmp_path, settings)
    rounds = []

    def compact_late(plan: FilePlan, *given: Any) -> list[WriteStat]:
        rounds.append(plan.instant)
        hf.write(plain_rows(range(4), ts=2 + len(rounds)), tmp_path, settings)
        return map_in_threads(plan, *given)

    spark = object()
    own = InjectedServices(Storage(tmp_path), PartlyBackend(compact_late))
    with pytest.raises(hf.CommitConflictError, match="continued to log"):
        own.upgrade(6, spark=spark)
    assert len(rounds) == 3
    assert load_state(Storage(tmp_path)).config.version == 9
    assert table_rows(tmp_path) == rows_of(plain_rows(range(4), ts=5))
    assert own.upgrade(6).after == 6
    assert table_rows(tmp_path) == rows_of(plain_rows(range(4), ts=5))


def test_a_complex_key_of_one_column_goes_on_when_asked_to(tmp_path: Path) -> None:
    settings = {
        **options(table_version="9"),
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator",
    }
    hf.write(plain_rows(range(4)), tmp_path, settings)
    rows = table_rows(tmp_path)
    with pytest.raises(hf.ConfigError, match=r"validation\.enable=false"):
        services(tmp_path).upgrade(8)
    services(tmp_path).upgrade(8, NO_VALIDATION)
    assert table_rows(tmp_path) == rows


def test_slices_that_cannot_be_merged_are_refused(tmp_path: Path) -> None:
    settings = mor_options(table_version="8")
    hf.write(plain_rows(range(4)), tmp_path, settings)
    hf.write(plain_rows(range(2), ts=2), tmp_path, settings)
    update_properties(
        Storage(tmp_path),
        {"hoodie.compaction.payload.class": "com.example.Payload", "hoodie.record.merge.mode": "CUSTOM"},
    )
    before = listing(tmp_path)
    with pytest.raises(hf.UnsupportedFeatureError, match=r"com\.example\.Payload"):
        services(tmp_path).upgrade(9)
    assert listing(tmp_path) == before


def test_a_clustering_that_is_complete_pairs_with_its_plan(golden: Unzip) -> None:
    found = golden("cow_v9_clustered")
    names = {path.name for path in (found.table / ".hoodie/timeline").glob("*.clustering.*")}
    assert names
    upgrade(found.table, 6)
    assert {
        path.name.replace("replacecommit", "clustering") for path in (found.table / ".hoodie").glob("*.replacecommit.*")
    } == names
    upgrade(found.table, 9)
    assert {path.name for path in (found.table / ".hoodie/timeline").glob("*.clustering.*")} == names
    overwritten = golden("cow_v9_overwrites")
    upgrade(overwritten.table, 6)
    upgrade(overwritten.table, 9)
    assert not list((overwritten.table / ".hoodie/timeline").glob("*.clustering.*"))


def test_inflight_actions_of_savepoints_come_along(golden: Unzip) -> None:
    found = golden("cow_v9_mixed")
    state = load_state(Storage(found.table))
    last = state.timeline.last_completed_write
    assert last is not None
    saved = Instant(last.requested, "savepoint", State.INFLIGHT)
    to_inflight(state.storage, state.config, saved)
    upgrade(found.table, 6)
    config = load_state(Storage(found.table)).config
    complete(Storage(found.table), config, saved, b"", lambda: saved.requested)
    assert load_state(Storage(found.table)).timeline.find(last.requested, "savepoint") is not None


def test_results_say_what_was_done(golden: Unzip) -> None:
    found = golden("h015_cow_archived")
    result = upgrade(found.table, 9)
    assert (result.before, result.after) == (6, 9)
    assert result.seconds > 0
    assert [step.partition(" ")[0] for step in result.steps] == ["move", "write", "write", "set", "change", "delete"]
    assert pa.types.is_string(services(found.table).indexes().schema.field("partition").type)
