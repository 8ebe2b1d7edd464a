"""Tables that are taken back to a savepoint.

Modules: hudi_fast.services.undoing.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hudi_fast as hf
from hudi_fast.services.restore import find_on
from hudi_fast.timeline.instants import Instant, State, read_instant_body
from hudi_fast.timeline.plans import RollbackPlan, encode_rollback_plan
from hudi_fast.timeline.service_plans import (
    RestorePlan,
    decode_restore_metadata,
    encode_restore_metadata,
    encode_restore_plan,
)
from hudi_fast.timeline.transition import create_requested, to_inflight
from hudi_fast.writing.rollback_plan import plan_rollback
from tests.support.golden import Golden
from tests.support.metadata_checks import assert_metadata_true
from tests.support.rollback_tables import COW, KINDS, MOR, instants_of, services, settings_of, state_of
from tests.support.small_tables import assert_tidy, listing, plain_rows, table_rows


def written(path: Path, settings: dict[str, Any], operation: str, *numbers: int, ts: int, text: str = "a") -> str:
    rows, chosen = plain_rows(numbers, ts, text), {**settings, "hoodie.datasource.write.operation": operation}
    return hf.write(rows, path, chosen).instant


def make(path: Path, kind: str, version: str, indexes: bool = True) -> tuple[dict[str, Any], str, list[str]]:
    """A savepoint and what came after it: settings, the savepoint, the later instants."""
    settings = settings_of(kind, version, indexes)
    written(path, settings, "upsert", *range(8), ts=1)
    saved = written(path, settings, "upsert", 2, 3, ts=2, text="b")
    services(path).savepoint()
    later = [written(path, settings, "upsert", 1, 3, 20, ts=3, text="c")]
    if kind == MOR:
        later.append(services(path).compact(settings).instant)
    later.append(written(path, settings, "delete", 0, 1, ts=4))
    later.append(written(path, settings, "insert_overwrite", 30, 32, ts=5))
    return settings, saved, later


ROWS = {
    f"k{one:05d}": (f"p{one % 2}", 2, f"b{one}") if one in (2, 3) else (f"p{one % 2}", 1, f"a{one}") for one in range(8)
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "version"),
    [
        one if one in ((COW, "9"), (MOR, "6"), (MOR, "9")) else pytest.param(*one, marks=pytest.mark.long)
        for one in KINDS
    ],
)
def test_everything_since_the_savepoint_is_undone(kind: str, version: str, tmp_path: Path) -> None:
    settings, saved, later = make(tmp_path, kind, version)
    indexes = assert_metadata_true(tmp_path)
    planned = services(tmp_path).plan_restore(saved)
    assert [instant for instant, _ in planned.instants] == later[::-1]
    assert set(planned.to_arrow()["instant"].to_pylist()) == set(later)
    result = services(tmp_path).restore(saved, settings, plan=planned)
    assert (result.savepoint, result.rolled_back) == (saved, tuple(later[::-1]))
    assert table_rows(tmp_path) == ROWS
    assert_tidy(tmp_path)
    assert assert_metadata_true(tmp_path) == indexes
    assert [one.requested for one in instants_of(tmp_path, "restore")] == [result.instant]
    assert instants_of(tmp_path, "rollback") == []
    assert [one.requested for one in instants_of(tmp_path, "savepoint")] == [saved]
    hf.write(plain_rows([1, 20], ts=6, text="d"), tmp_path, settings)
    assert table_rows(tmp_path) == {**ROWS, "k00001": ("p1", 6, "d1"), "k00020": ("p0", 6, "d20")}
    assert assert_metadata_true(tmp_path) == indexes
    again = services(tmp_path).restore(saved)
    assert len(again.rolled_back) == 1
    assert table_rows(tmp_path) == ROWS
    assert services(tmp_path).restore(saved).rolled_back == ()


@pytest.mark.slow
@pytest.mark.parametrize("version", ["6", "9"])
def test_planned_services_and_writes_that_died_go_too(version: str, tmp_path: Path) -> None:
    settings, saved, _ = make(tmp_path, MOR, version)
    written(tmp_path, settings, "upsert", 2, 4, ts=7)
    planned = services(tmp_path).schedule_compact()
    assert planned is not None
    at = state_of(tmp_path)
    to_inflight(at.storage, at.config, at.timeline.pending_compactions[0])
    written(tmp_path, settings, "upsert", 4, ts=8)  # on top of what is to be compacted
    died = Instant("20990101000000000", "deltacommit", State.REQUESTED)
    create_requested(at.storage, at.config, died)
    going = [instant for instant, _ in services(tmp_path).plan_restore(saved).instants]
    assert going[:2] == [died.requested, planned.instant]
    services(tmp_path).restore(saved)
    assert table_rows(tmp_path) == ROWS
    assert_tidy(tmp_path)
    assert_metadata_true(tmp_path)
    hf.write(plain_rows([4], ts=9, text="e"), tmp_path, settings)
    assert table_rows(tmp_path) == {**ROWS, "k00004": ("p0", 9, "e4")}


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "version"), [(COW, "9"), (MOR, "6")])
def test_cleans_stay_and_files_of_the_savepoint_with_them(kind: str, version: str, tmp_path: Path) -> None:
    settings, saved, _ = make(tmp_path, kind, version)
    for ts in (10, 11, 12):
        written(tmp_path, settings, "upsert", *range(6), ts=ts)
        if kind == MOR:
            services(tmp_path).compact(settings)
    keep_one = {"hoodie.clean.policy": "KEEP_LATEST_COMMITS", "hoodie.clean.commits.retained": "1"}
    clean = services(tmp_path).clean({**settings, **keep_one})
    assert clean.files_deleted > 0
    services(tmp_path).restore(saved)
    assert table_rows(tmp_path) == ROWS
    assert [one.requested for one in instants_of(tmp_path, "clean")] == [clean.instant]
    assert_metadata_true(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "version"), [(COW, "9"), (MOR, "8"), (MOR, "6")])
def test_what_the_metadata_table_cannot_take_back_is_built_anew(kind: str, version: str, tmp_path: Path) -> None:
    settings = {**settings_of(kind, version), "hoodie.metadata.global.record.level.index.enable": "false"}
    written(tmp_path, settings, "upsert", *range(8), ts=1)
    saved = services(tmp_path).savepoint().instant
    before = table_rows(tmp_path)
    written(tmp_path, settings, "upsert", 1, 20, ts=3)
    services(tmp_path).index("record_index")
    written(tmp_path, {**settings, "hoodie.metadata.global.record.level.index.enable": "true"}, "upsert", 2, 21, ts=4)
    indexes = assert_metadata_true(tmp_path)
    assert services(tmp_path).plan_restore(saved).rebuilt == ("record_index",)
    services(tmp_path).restore(saved)
    assert table_rows(tmp_path) == before
    assert assert_metadata_true(tmp_path) == indexes
    compacting = {**settings, "hoodie.metadata.compact.max.delta.commits": "1"}
    del compacting["hoodie.metadata.global.record.level.index.enable"]
    written(tmp_path, compacting, "upsert", 1, 20, ts=3)
    assert services(tmp_path).plan_restore(saved).rebuilt == indexes
    services(tmp_path).restore(saved)
    assert table_rows(tmp_path) == before
    assert assert_metadata_true(tmp_path) == indexes


# ---- restores that died


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "version", "finish"), [(COW, "9", "restore"), (MOR, "9", "run_pending"), (MOR, "6", "restore")]
)
def test_a_restore_of_apache_hudi_that_died_is_gone_on_with(
    kind: str, version: str, finish: str, tmp_path: Path
) -> None:
    settings, saved, later = make(tmp_path, kind, version)
    at = state_of(tmp_path)
    actions = {one.requested: one.action for one in at.timeline.writes()}
    plan = RestorePlan(saved, tuple((instant, actions[instant]) for instant in later[::-1]))
    restore = Instant("20990101000000000", "restore", State.REQUESTED)
    create_requested(at.storage, at.config, restore, encode_restore_plan(plan))
    to_inflight(at.storage, at.config, restore)
    first = find_on(at.timeline, *plan.instants[0])
    assert first is not None
    begun = plan_rollback(at.storage, at.config, first)
    rollback = Instant("20990101000000001", "rollback", State.REQUESTED)
    create_requested(at.storage, at.config, rollback, encode_rollback_plan(begun))
    before = listing(tmp_path)
    for refused in (
        lambda: hf.write(plain_rows([1]), tmp_path, settings),
        lambda: services(tmp_path).rollback(),
        lambda: services(tmp_path).compact(settings) if kind == MOR else services(tmp_path).rollback(later[-1]),
    ):
        with pytest.raises(hf.CommitConflictError, match="pending restore"):
            refused()
    with pytest.raises(hf.ConfigError, match="pending restore"):
        services(tmp_path).delete_savepoint(saved)
    assert listing(tmp_path) == before
    planned = services(tmp_path).plan_restore(saved)
    assert planned.resumes == restore.requested
    if finish == "restore":
        result = services(tmp_path).restore(saved, plan=planned)
    else:
        (result,) = services(tmp_path).run_pending()
    assert (result.instant, result.rolled_back) == (restore.requested, tuple(later[::-1]))
    assert table_rows(tmp_path) == ROWS
    assert_tidy(tmp_path)
    assert_metadata_true(tmp_path)
    (done,) = instants_of(tmp_path, "restore")
    at = state_of(tmp_path)
    assert set(decode_restore_metadata(read_instant_body(at.storage, at.config, done)).rollbacks) == set(later)


@pytest.mark.slow
def test_rollbacks_that_a_complete_restore_left_are_taken_off_the_timeline(tmp_path: Path) -> None:
    settings, saved, later = make(tmp_path, MOR, "6")
    services(tmp_path).restore(saved)
    at = state_of(tmp_path)
    logs = {str(path): path.stat().st_size for path in tmp_path.glob("p*/.*.log.*")}
    left = Instant(saved[:-1] + "9", "rollback", State.REQUESTED)
    plan = RollbackPlan(later[0], "deltacommit")
    create_requested(at.storage, at.config, left, encode_rollback_plan(plan))
    hf.write(plain_rows([5], ts=1, text="a"), tmp_path, settings)
    assert instants_of(tmp_path, "rollback") == []
    assert logs.items() <= {str(path): path.stat().st_size for path in tmp_path.glob("p*/.*.log.*")}.items()
    assert table_rows(tmp_path) == ROWS


def test_a_restore_that_was_cut_off_before_it_did_anything_is_planned_anew(tmp_path: Path) -> None:
    _, saved, later = make(tmp_path, COW, "9", indexes=False)
    at = state_of(tmp_path)
    create_requested(at.storage, at.config, Instant("20990101000000000", "restore", State.REQUESTED), b"")
    with pytest.raises(hf.ConfigError, match="does not name its savepoint"):
        services(tmp_path).run_pending()
    result = services(tmp_path).restore(saved)
    assert result.rolled_back == tuple(later[::-1])
    assert [one.requested for one in instants_of(tmp_path, "restore")] == [result.instant]
    assert table_rows(tmp_path) == ROWS


# ---- refused


def refused(path: Path, savepoint: str, because: str, kind: type[Exception] = hf.ConfigError, **options: str) -> None:
    before = listing(path)
    for verb in ("plan_restore", "restore"):
        with pytest.raises(kind, match=because):
            getattr(services(path), verb)(savepoint, options)
    assert listing(path) == before


def test_what_cannot_be_restored_to_is_refused(tmp_path: Path) -> None:
    settings, saved, later = make(tmp_path, COW, "9", indexes=False)
    refused(tmp_path, later[0], f"no such savepoint; those it has: {saved}")
    refused(tmp_path, saved, "may have been archived", **{"hoodie.archive.beyond.savepoint": "true"})
    newer = services(tmp_path).savepoint(later[0]).instant
    refused(tmp_path, saved, f"later savepoints {newer} keep commits")
    services(tmp_path).delete_savepoint(newer)
    planned = services(tmp_path).plan_restore(saved)
    written(tmp_path, settings, "upsert", 5, ts=9)
    with pytest.raises(hf.CommitConflictError, match="no longer fits"):
        services(tmp_path).restore(saved, plan=planned)
    at = state_of(tmp_path)
    other = RestorePlan("20200101000000000")
    create_requested(
        at.storage, at.config, Instant("20990101000000000", "restore", State.REQUESTED), encode_restore_plan(other)
    )
    refused(tmp_path, saved, "pending restore .* to the savepoint 20200101000000000", hf.CommitConflictError)


@pytest.mark.slow
def test_a_savepoint_that_archival_went_past_is_not_restored_to(tmp_path: Path) -> None:
    settings, saved, later = make(tmp_path, COW, "9", indexes=False)
    for ts in (6, 7, 8):
        later.append(written(tmp_path, settings, "upsert", 5, ts=ts))
    archival = {
        "hoodie.keep.min.commits": "2",
        "hoodie.keep.max.commits": "3",
        "hoodie.archive.beyond.savepoint": "true",
    }
    cleans = {"hoodie.clean.commits.retained": "1"}
    services(tmp_path).clean({**settings, **cleans})
    assert services(tmp_path).archive({**settings, **cleans, **archival}).instants
    assert state_of(tmp_path).timeline.find(saved, "savepoint") is not None
    refused(tmp_path, saved, "writes since have been archived")


def test_a_savepoint_whose_files_are_gone_is_not_restored_to(tmp_path: Path) -> None:
    _, saved, _ = make(tmp_path, COW, "9", indexes=False)
    sorted(tmp_path.glob(f"p1/*_{saved}.parquet"))[0].unlink()
    refused(tmp_path, saved, "1 files that its savepoint keeps are missing.*p1/", hf.CorruptTableError)


# ---- tables of Apache Hudi


def _rows(path: Path, as_of: str | None = None) -> list[str]:
    return sorted(map(repr, hf.HudiTable.open(path).to_arrow(as_of=as_of).to_pylist()))


CASES = [
    ("cow_v6_mixed", 1),
    ("cow_v8_mixed", 0),
    ("cow_v9_clustered", 2),
    ("cow_v9_overwrites", 0),
    ("cow_v9_restored", 1),
    ("cow_v9_savepoint_rollback", 1),
    ("h015_cow", 1),
    ("h015_mor", 1),
    ("h015_mor_rollback_compacted", 0),
    ("h015_mor_rollback_compacted", 3),
    ("mor_v6_compacted", 4),
    ("mor_v9_compacted", 2),
    ("mor_v9_delete_flag_and_rollback", 0),
    ("mor_v9_record_index", 2),
    ("mor_v9_consistent_bucket", 1),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "number"), CASES)
def test_tables_of_apache_hudi_go_back_to_what_they_were(
    name: str, number: int, golden: Callable[[str], Golden]
) -> None:
    path = golden(name).table
    writes = [one.requested for one in state_of(path).timeline.writes()]
    saved, rows = writes[number], _rows(path, as_of=writes[number])
    kept = services(path).savepoints()["instant"].to_pylist()
    for later in [one for one in kept if one > saved]:
        services(path).delete_savepoint(later)
    if saved not in kept:
        services(path).savepoint(saved)
    indexes = assert_metadata_true(path)
    result = services(path).restore(saved)
    assert set(result.rolled_back) == set(writes[number + 1 :])
    assert _rows(path) == rows
    assert assert_metadata_true(path) == indexes


def test_bodies_are_those_of_apache_hudi(golden: Callable[[str], Golden]) -> None:
    path = golden("cow_v9_restored").table
    at = state_of(path)
    (theirs,) = at.timeline.of_action("restore")
    real = decode_restore_metadata(read_instant_body(at.storage, at.config, theirs))
    saved = services(path).savepoints()["instant"][0].as_py()
    result = services(path).restore(saved)
    at = state_of(path)
    ours = decode_restore_metadata(read_instant_body(at.storage, at.config, at.timeline.of_action("restore")[-1]))
    assert (ours.start_time, [instant for instant, _ in ours.instants]) == (result.instant, list(result.rolled_back))
    assert set(ours.rollbacks) == set(result.rolled_back)
    (one,), *_ = [[each] for each in ours.rollbacks.values()]
    other = next(iter(real.rollbacks.values()))
    assert [part.partition_path for part in one.partitions] == [part.partition_path for part in other.partitions]
    assert [len(part.deleted) for part in one.partitions] == [len(part.deleted) for part in other.partitions]
    assert one.start_time > result.instant
    assert decode_restore_metadata(encode_restore_metadata(real)) == real
    names = sorted(
        entry.name.split(".", 1)[1]
        for entry in at.storage.list_dir(at.config.timeline_folder)
        if entry.name.startswith(result.instant)
    )
    assert names == ["restore", "restore.inflight", "restore.requested"]
