"""Services before and after a write: as Apache Hudi's data source and write client have it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import hudi_fast as hf
from hudi_fast.services import inline
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.instants import Instant, State, Timeline
from hudi_fast.timeline.transition import create_requested
from hudi_fast.view.table_state import load_state, read_commit
from hudi_fast.writing.session import TableSession
from tests.support.mor_tables import VERSIONS, log_files, mor_options
from tests.support.small_tables import assert_tidy, listing, options, plain_rows, table_rows


def mor(version: str = "9", **more: str) -> dict[str, Any]:
    names = {
        "inline": "hoodie.compact.inline",
        "schedule": "hoodie.compact.schedule.inline",
        "others": "hoodie.datasource.compaction.async.enable",
        "commits": "hoodie.compact.inline.max.delta.commits",
        "logs": "hoodie.log.compaction.inline",
        "blocks": "hoodie.log.compaction.blocks.threshold",
        "strategy": "hoodie.compaction.strategy",
        "enabled": "hoodie.table.services.enabled",
        "fail": "hoodie.fail.writes.on.inline.table.service.exception",
    }
    settings = mor_options(table_version=version)
    del settings["hoodie.compact.inline"]
    return {**settings, **{names[key]: value for key, value in more.items()}}


def write(path: Path, settings: dict[str, Any], times: int, first: int = 1) -> None:
    for ts in range(first, first + times):
        hf.write(plain_rows(range(4), ts=ts, text=f"t{ts}-"), path, settings)


def timeline(path: Path) -> Timeline:
    return load_state(Storage(path)).timeline


def actions(path: Path) -> list[str]:
    return [one.action for one in timeline(path).writes()]


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_a_write_compacts_after_five_delta_commits_unless_told_otherwise(version: str, tmp_path: Path) -> None:
    write(tmp_path, mor(version), 4)
    assert "commit" not in actions(tmp_path)
    write(tmp_path, mor(version), 1, first=5)
    assert actions(tmp_path) == ["deltacommit"] * 5 + ["commit"]
    write(tmp_path, mor(version), 5, first=6)
    assert actions(tmp_path)[6:] == ["deltacommit"] * 5 + ["commit"]
    assert table_rows(tmp_path)["k00002"] == ("p0", 10, "t10-2")
    assert_tidy(tmp_path)


@pytest.mark.parametrize("more", [{"inline": "false"}, {"others": "true"}, {"others": "false"}, {"enabled": "false"}])
def test_options_that_say_who_compacts(more: dict[str, str], tmp_path: Path) -> None:
    write(tmp_path, mor(commits="1", **more), 2)
    assert actions(tmp_path) == ["deltacommit"] * 2


@pytest.mark.slow
def test_the_table_object_compacts_by_the_same_defaults_as_write(tmp_path: Path) -> None:
    write(tmp_path, mor(inline="false"), 1)
    table = hf.HudiTable.open(tmp_path)
    table.upsert(plain_rows([1], ts=2), mor(commits="1", inline="false"))
    assert "commit" not in actions(tmp_path)
    table.upsert(plain_rows([1], ts=3), mor(commits="1"))
    assert actions(tmp_path)[-1] == "commit"
    table.delete(plain_rows([1]), mor(commits="1"))
    assert actions(tmp_path)[-2:] == ["deltacommit", "commit"]
    table.update(None, {"text": "'new'"}, mor(commits="1"))
    assert actions(tmp_path)[-2:] == ["deltacommit", "commit"]


@pytest.mark.slow
def test_only_planning_leaves_one_plan_for_somebody_else(tmp_path: Path) -> None:
    write(tmp_path, mor(schedule="true", commits="2"), 2)
    (pending,) = timeline(tmp_path).pending_compactions
    write(tmp_path, mor(schedule="true", commits="1"), 2, first=3)
    assert [one.requested for one in timeline(tmp_path).pending_compactions] == [pending.requested]
    write(tmp_path, mor(commits="1"), 1, first=5)  # compacting carries it out, and then what came since
    assert timeline(tmp_path).pending_compactions == ()
    assert actions(tmp_path)[-1] == "commit"
    assert sum(action == "commit" for action in actions(tmp_path)) == 2
    assert table_rows(tmp_path)["k00002"] == ("p0", 5, "t5-2")


@pytest.mark.slow
def test_log_compaction_after_a_write(tmp_path: Path) -> None:
    settings = mor(inline="false", logs="true", blocks="2")
    write(tmp_path, settings, 5)
    state = load_state(Storage(tmp_path))
    kinds = [read_commit(state.storage, state.config, one).operation_type for one in state.timeline.writes()]
    assert kinds == ["UPSERT", "UPSERT", "UPSERT", "LOG_COMPACT", "UPSERT", "UPSERT", "LOG_COMPACT"]
    assert table_rows(tmp_path)["k00002"] == ("p0", 5, "t5-2")


def test_copy_on_write_tables_have_nothing_to_compact(tmp_path: Path) -> None:
    settings = {**options(), "hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}
    write(tmp_path, settings, 2)
    assert actions(tmp_path) == ["commit", "commit"]


def test_an_unknown_strategy_is_refused_before_the_write(tmp_path: Path) -> None:
    write(tmp_path, mor(), 1)
    files = listing(tmp_path)
    with pytest.raises(hf.UnsupportedFeatureError, match=r"compaction\.strategy=Mine"):
        write(tmp_path, mor(inline="true", strategy="Mine"), 1)
    clustering = {"hoodie.clustering.inline": "true", "hoodie.clustering.plan.strategy.class": "com.example.Plan"}
    with pytest.raises(hf.UnsupportedFeatureError, match=r"com\.example\.Plan"):
        write(tmp_path, {**mor(), **clustering}, 1)
    assert listing(tmp_path) == files


def test_a_service_that_fails_is_an_error_or_a_warning_and_the_write_stays(tmp_path: Path) -> None:
    write(tmp_path, mor(inline="false"), 2)
    (tmp_path / log_files(tmp_path)[0].path).write_bytes(b"no log file")
    with pytest.raises(
        hf.PostCommitError, match=r"is committed; a service after it failed\. compact: .*#HUDI#"
    ) as caught:
        hf.write(plain_rows([9], ts=3), tmp_path, mor(commits="1"))
    assert isinstance(caught.value.__cause__, hf.CorruptTableError)
    assert caught.value.instant == caught.value.result.instant == timeline(tmp_path).writes()[-1].requested
    assert caught.value.result.inserts == 1
    assert caught.value.services == ("compact",)
    assert actions(tmp_path) == ["deltacommit"] * 3
    with pytest.warns(hf.HudiWarning, match="is committed; a service after it failed"):
        hf.write(plain_rows([9], ts=4), tmp_path, mor(commits="1", fail="false"))
    assert actions(tmp_path) == ["deltacommit"] * 4


# ---- cleaning, archiving, clustering, and what runs before a write

SMALL = {
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
}


def all_actions(path: Path) -> list[str]:
    return [one.action for one in timeline(path).instants]


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_a_write_cleans_and_archives_by_default_and_past_states_are_refused(version: str, tmp_path: Path) -> None:
    settings = {**options(table_version=version), **SMALL}
    write(tmp_path, settings, 2)
    assert all_actions(tmp_path) == ["commit", "commit"]
    write(tmp_path, settings, 8, first=3)
    assert "clean" in all_actions(tmp_path)
    assert len(timeline(tmp_path).writes()) <= 4
    assert len(list(tmp_path.rglob("p0/*.parquet"))) <= 3
    assert table_rows(tmp_path)["k00002"] == ("p0", 10, "t10-2")
    assert_tidy(tmp_path)
    with pytest.raises(hf.ConfigError, match="clean"):
        hf.HudiTable.open(tmp_path).to_arrow(as_of="20240101000000000")


@pytest.mark.slow(but="told2-both")
@pytest.mark.parametrize(
    ("told", "missing"),
    [
        ({"hoodie.clean.automatic": "false"}, "clean"),
        ({"hoodie.archive.automatic": "false"}, "archive"),
        ({"hoodie.table.services.enabled": "false"}, "both"),
    ],
)
def test_what_is_switched_off_does_not_run(told: dict[str, str], missing: str, tmp_path: Path) -> None:
    settings = {**options(), **SMALL, **told, "hoodie.metadata.enable": "false"}
    write(tmp_path, settings, 6)
    assert ("clean" in all_actions(tmp_path)) == (missing == "archive")
    assert (len(timeline(tmp_path).writes()) == 6) == (missing != "clean")


@pytest.mark.slow
@pytest.mark.parametrize("key", ["hoodie.clean.async.enabled", "hoodie.clean.async", "hoodie.archive.async"])
def test_beside_the_write_means_after_it(key: str, tmp_path: Path) -> None:
    write(tmp_path, {**options(), **SMALL, key: "true"}, 6)
    assert "clean" in all_actions(tmp_path)
    assert len(timeline(tmp_path).writes()) < 6


LATER = {"hoodie.clean.async.enabled": "true", "hoodie.archive.async": "true"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("told", "kept"),
    [
        ({}, ["clean", "archive"]),
        ({"hoodie.archive.async": "true"}, ["clean"]),
        ({"hoodie.clean.async.enabled": "true"}, []),  # archiving follows the clean
        (LATER, []),
    ],
)
def test_asynchronous_services_leave_the_table_to_other_writers(
    told: dict[str, str], kept: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: dict[str, bool] = {}

    def looked(session: TableSession, name: str, run: Callable[[TableSession], object]) -> object:
        held[name] = session.holds_lock
        return run(session)

    for name in ("clean", "archive"):
        for steps in ("_WITHIN_TURN", "_AFTER_TURN"):
            found = [
                step._replace(run=partial(looked, name=name, run=step.run)) if step.name == name else step
                for step in getattr(inline, steps)
            ]
            monkeypatch.setattr(inline, steps, tuple(found))
    write(tmp_path, {**options(), **SMALL, **told}, 6)
    assert held == {name: name in kept for name in ("clean", "archive")}


@pytest.mark.slow(but="told1")
@pytest.mark.parametrize("told", [{}, LATER, {"hoodie.archive.async": "true"}])
def test_asynchronous_services_have_the_effect_of_the_others(told: dict[str, str], tmp_path: Path) -> None:
    settings = {**options(), **SMALL, **told, "hoodie.metadata.enable": "false"}
    write(tmp_path, settings, 8)
    assert all_actions(tmp_path)[-1] == "clean"
    assert len(timeline(tmp_path).writes()) == 2
    assert len(list(tmp_path.rglob("p0/*.parquet"))) == 2
    assert table_rows(tmp_path)["k00002"] == ("p0", 8, "t8-2")
    assert_tidy(tmp_path)


@pytest.mark.slow("archive")
@pytest.mark.parametrize("service", ["clean", "archive"])
def test_an_asynchronous_service_that_is_switched_off_is_told(service: str, tmp_path: Path) -> None:
    settings = {
        **options(),
        **SMALL,
        **LATER,
        f"hoodie.{service}.automatic": "false",
        "hoodie.metadata.enable": "false",
    }
    with pytest.warns(hf.HudiWarning, match=rf"no effect, because hoodie\.{service}\.automatic=false"):
        write(tmp_path, settings, 6)
    assert ("clean" in all_actions(tmp_path)) == (service != "clean")
    assert (len(timeline(tmp_path).writes()) == 6) == (service == "archive")


def test_an_asynchronous_clean_that_fails_is_told_like_another(tmp_path: Path) -> None:
    settings = {**options(), **SMALL, **LATER}
    write(tmp_path, {**settings, "hoodie.table.services.enabled": "false"}, 4)
    folder = tmp_path / ".hoodie" / "timeline"
    newest = max(folder.glob("*.commit"))
    (folder / f"{int(newest.name[:17]) + 1}.clean.requested").write_bytes(b"Obj\x01 no plan")
    with pytest.raises(hf.PostCommitError, match=r"is committed; a service after it failed\. clean: ") as caught:
        hf.write(plain_rows([9], ts=8), tmp_path, settings)
    assert isinstance(caught.value.__cause__, hf.CorruptTableError)
    assert table_rows(tmp_path)["k00009"] == ("p1", 8, "a9")


@pytest.mark.slow
def test_the_table_object_cleans_too_and_an_empty_write_serves_nobody(tmp_path: Path) -> None:
    off = {"hoodie.table.services.enabled": "false"}
    write(tmp_path, {**options(), **SMALL, **off}, 5)
    table = hf.HudiTable.open(tmp_path)
    assert table.upsert(plain_rows([]), {**options(), **SMALL, "hoodie.allow.empty.commit": "false"}).instant == ""
    assert all_actions(tmp_path) == ["commit"] * 5
    table.upsert(plain_rows([1], ts=9), {**options(), **SMALL})
    assert "clean" in all_actions(tmp_path)


@pytest.mark.slow
def test_all_services_run_in_the_order_of_apache_hudi(tmp_path: Path) -> None:
    everything = {
        **SMALL,
        "hoodie.log.compaction.blocks.threshold": "1",
        "hoodie.clustering.inline": "true",
        "hoodie.clustering.inline.max.commits": "1",
        "hoodie.clustering.plan.strategy.sort.columns": "text",
    }
    plain = mor(inline="true", commits="1", enabled="false")
    for first in (1, 3):
        write(tmp_path, plain, 2, first=first)
        hf.HudiTable.open(tmp_path).services.compact({})
    newest = timeline(tmp_path).newest_time or ""
    hf.write(
        plain_rows(range(4), ts=9, text="t9-"), tmp_path, {**mor(inline="true", commits="1", logs="true"), **everything}
    )
    after = [one for one in timeline(tmp_path).instants if one.requested > newest]
    assert [one.action for one in after] == ["deltacommit", "clean", "commit", "replacecommit"]
    assert table_rows(tmp_path)["k00002"] == ("p0", 9, "t9-2")
    assert_tidy(tmp_path)


def test_clustering_after_a_write_or_only_its_plan(tmp_path: Path) -> None:
    more = {"hoodie.clustering.inline.max.commits": "2", "hoodie.clustering.plan.strategy.sort.columns": "text"}
    write(tmp_path, {**options(), **more, "hoodie.clustering.inline": "true"}, 2)
    assert actions(tmp_path) == ["commit", "commit", "replacecommit"]
    only = {"hoodie.clustering.schedule.inline": "true", "hoodie.clustering.async.max.commits": "1"}
    write(tmp_path, {**options(), **more, **only}, 1, first=3)
    assert [one.action for one in timeline(tmp_path).pending()] == ["clustering"]
    with pytest.raises(hf.ConfigError, match="clustering"):
        write(tmp_path, {**options(), **only, "hoodie.clustering.inline": "true"}, 1)


@pytest.mark.slow(but="NONE")
@pytest.mark.parametrize("policy", ["NONE", "CLEAN", "ROLLBACK_FAILED_WRITES"])
def test_before_a_write_what_the_policy_says(policy: str, tmp_path: Path) -> None:
    settings = {**options(), **SMALL, "hoodie.clean.failed.writes.policy": "LAZY", "hoodie.clean.automatic": "false"}
    before = {"hoodie.prewrite.cleaner.policy": policy}
    hf.write(plain_rows(range(4)), tmp_path, {**settings, **before})  # there is nothing to clean yet
    write(tmp_path, settings, 4)
    storage = Storage(tmp_path)
    left = Instant("20240101000000000", "commit", State.REQUESTED)
    create_requested(storage, load_state(storage).config, left)
    hf.write(plain_rows([1], ts=9), tmp_path, {**settings, **before})
    assert (left.requested in [one.requested for one in timeline(tmp_path).pending()]) == (policy == "NONE")
    times = {one.action: one.requested for one in timeline(tmp_path).instants}
    assert ("clean" in times) == (policy == "CLEAN")
    assert policy != "CLEAN" or times["clean"] < times["commit"]


def test_a_write_whose_clean_fails_is_committed(tmp_path: Path) -> None:
    settings = {**options(), **SMALL, "hoodie.archive.automatic": "false"}
    write(tmp_path, {**settings, "hoodie.clean.automatic": "false"}, 4)
    folder = tmp_path / ".hoodie" / "timeline"
    newest = max(folder.glob("*.commit"))
    planned = folder / f"{int(newest.name[:17]) + 1}.clean.requested"
    planned.write_bytes(b"Obj\x01 no plan")
    with pytest.raises(hf.PostCommitError, match=r"is committed; a service after it failed\. clean: ") as caught:
        hf.write(plain_rows([9], ts=8), tmp_path, settings)
    assert isinstance(caught.value.__cause__, hf.CorruptTableError)
    with pytest.warns(hf.HudiWarning, match="is committed; a service after it failed"):
        hf.write(plain_rows([9], ts=9), tmp_path, {**settings, "hoodie.write.can.ignore.post.commit.failures": "true"})
    assert table_rows(tmp_path)["k00009"] == ("p1", 9, "a9")


def test_under_lazy_the_clean_after_a_write_takes_a_dead_writer_away(tmp_path: Path) -> None:
    settings = {**options(), **SMALL, "hoodie.clean.failed.writes.policy": "LAZY"}
    write(tmp_path, {**settings, "hoodie.clean.automatic": "false"}, 3)
    storage = Storage(tmp_path)
    create_requested(storage, load_state(storage).config, Instant("20240101000000000", "commit", State.REQUESTED))
    write(tmp_path, settings, 1, first=4)
    assert timeline(tmp_path).pending() == ()
    assert "clean" in all_actions(tmp_path)
