"""Compaction after a write: as Apache Hudi's data source and write client have it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mor_tables import VERSIONS, log_files, mor_options
from small_tables import assert_tidy, listing, options, plain_rows, table_rows

import hudi_fast as hf
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.active import Timeline
from hudi_fast.view.table_state import load_state, read_commit


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


def test_the_table_object_compacts_only_when_it_is_told_to(tmp_path: Path) -> None:
    write(tmp_path, mor(inline="false"), 1)
    table = hf.HudiTable.open(tmp_path)
    table.upsert(plain_rows([1], ts=2), mor(commits="1"))
    assert "commit" not in actions(tmp_path)
    table.upsert(plain_rows([1], ts=3), mor(commits="1", inline="true"))
    assert actions(tmp_path)[-1] == "commit"
    table.delete(plain_rows([1]), mor(commits="1", inline="true"))
    assert actions(tmp_path)[-2:] == ["deltacommit", "commit"]


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
    assert listing(tmp_path) == files


def test_a_service_that_fails_is_an_error_or_a_warning_and_the_write_stays(tmp_path: Path) -> None:
    write(tmp_path, mor(inline="false"), 2)
    (tmp_path / log_files(tmp_path)[0].path).write_bytes(b"no log file")
    with pytest.raises(hf.CorruptTableError, match="#HUDI#") as caught:
        hf.write(plain_rows([9], ts=3), tmp_path, mor(commits="1"))
    (note,) = caught.value.__notes__
    assert note.startswith("The write ")
    assert "is committed" in note
    assert actions(tmp_path) == ["deltacommit"] * 3
    with pytest.warns(hf.HudiWarning, match="is committed; what failed is a service after it"):
        hf.write(plain_rows([9], ts=4), tmp_path, mor(commits="1", fail="false"))
    assert actions(tmp_path) == ["deltacommit"] * 4
