"""A service that fails or is killed at any call to storage does not block the writer that runs it: its later writes
succeed, the service is done or withdrawn, and no rollbacks pile up.

Modules: hudi_fast.services.inline, hudi_fast.services.running, hudi_fast.writing.pending_clusterings.
"""

from __future__ import annotations

import random
import shutil
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import hudi_fast as hf
from hudi_fast.services.inline import write_with_services
from hudi_fast.storage.base import Storage
from hudi_fast.table.services import TableServices
from hudi_fast.timeline.heartbeat import heartbeat_path
from hudi_fast.timeline.instants import State
from hudi_fast.view.table_state import load_state
from hudi_fast.writing.flow import WriteResult
from tests.faults import calls as ways
from tests.faults.calls import interesting
from tests.support.instrumented_storage import FAULT_KINDS, FaultyStorage, RecordingStorage
from tests.support.metadata_checks import assert_metadata_true
from tests.support.mor_tables import mor_options
from tests.support.sessions import session_of
from tests.support.small_tables import assert_tidy, options, plain_rows, rows_of, table_rows

pytestmark = pytest.mark.slow

TRIES = 5
"""Calls that fail in a case; in the tier ``long`` all of them."""

CLUSTERS = {
    "hoodie.clustering.inline": "true",
    "hoodie.clustering.inline.max.commits": "1",
    "hoodie.clustering.plan.strategy.sort.columns": "text",
}
COMPACTS = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}
LOGS = {
    "hoodie.compact.inline": "false",
    "hoodie.log.compaction.inline": "true",
    "hoodie.log.compaction.blocks.threshold": "2",
}
CLEANS = {"hoodie.clean.commits.retained": "1", "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
GROUPS = {
    "hoodie.metadata.index.column.stats.enable": "false",
    "hoodie.metadata.global.record.level.index.min.filegroup.count": "2",
    "hudi_fast.threads": "1",
}


def serve(storage: Storage, settings: dict[str, Any]) -> None:
    """What a write runs after its commit."""
    newest = load_state(Storage(storage.uri)).timeline.last_completed_write
    assert newest is not None
    done = WriteResult(newest.requested, "upsert", 0, 0, 0, 0, 0, 0.0, "", "")
    write_with_services(session_of(storage, settings), lambda: done)


def index(storage: Storage, settings: dict[str, Any]) -> None:
    assert settings
    TableServices(storage).index("record_index", options=GROUPS)


@dataclass(frozen=True)
class Case:
    """A service, a table, and how the service is run."""

    more: dict[str, str]
    kind: str = "COPY_ON_WRITE"
    version: str = "9"
    metadata: bool = False
    run: Callable[[Storage, dict[str, Any]], None] = serve
    made: str = "replacecommit"
    settings: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        make = mor_options if self.kind == "MERGE_ON_READ" else options
        chosen = {**make(table_version=self.version), "hoodie.metadata.enable": str(self.metadata).lower()}
        object.__setattr__(self, "settings", {**chosen, **self.more})


CASES = {
    "cluster-cow-9": Case(CLUSTERS),
    "cluster-mor-6": Case({**CLUSTERS, "hoodie.compact.inline": "false"}, "MERGE_ON_READ", "6"),
    "cluster-cow-8-metadata": Case(CLUSTERS, version="8", metadata=True),
    "compact-9": Case(COMPACTS, "MERGE_ON_READ", made="commit"),
    "compact-6": Case(COMPACTS, "MERGE_ON_READ", "6", made="commit"),
    "log-compact-8": Case(LOGS, "MERGE_ON_READ", "8", made="deltacommit"),
    "clean-archive-9": Case(CLEANS, made="clean"),
    "clean-archive-6": Case(CLEANS, version="6", made="clean"),
    "index-9": Case(GROUPS, metadata=True, run=index, made="indexing"),
    "index-6": Case(GROUPS, version="6", metadata=True, run=index, made="indexing"),
}


MORE = ("cluster-cow-8-metadata", "compact-6", "clean-archive-6")


def make_table(path: Path, case: Case) -> None:
    alone = {**case.settings, "hoodie.table.services.enabled": "false"}
    hf.write(plain_rows(range(6)), path, {**alone, "hoodie.datasource.write.operation": "bulk_insert"})
    hf.write(plain_rows(range(6, 9)), path, {**alone, "hoodie.datasource.write.operation": "bulk_insert"})
    for ts in (2, 3):
        hf.write(plain_rows(range(4), ts=ts, text=f"t{ts}-"), path, alone)


def rollbacks(path: Path) -> set[str]:
    return {one.requested for one in load_state(Storage(path)).timeline.of_action("rollback")}


def go_on(path: Path, case: Case, rows: dict[str, Any], where: str) -> None:
    """The pipeline writes three times as before: every write succeeds, and only the first may have to heal."""
    grown: list[set[str]] = []
    for ts in (7, 8, 9):
        more = plain_rows([*range(9), 40 + ts], ts=ts, text=f"n{ts}-")
        try:
            result = hf.write(more, path, case.settings)
        except hf.HudiError as error:
            raise AssertionError(f"{where}\nwrite {ts}: {error!r}") from error
        assert result.instant
        rows = {**rows, **rows_of(more)}
        assert table_rows(path) == rows, where
        grown.append(rollbacks(path))
    assert len(grown[0]) <= 2, where
    assert grown[2] <= grown[0], where
    left = [str(one) for one in load_state(Storage(path)).timeline.pending() if one.state is not State.REQUESTED]
    assert left == [], where


@pytest.mark.smoke("cluster-cow-9", "index-6")
@pytest.mark.parametrize("name", [pytest.param(one, marks=pytest.mark.long) if one in MORE else one for one in CASES])
def test_a_service_that_dies_at_any_call_does_not_block_its_pipeline(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    make_table(tmp_path / "base", case)
    rows = table_rows(tmp_path / "base")
    shutil.copytree(tmp_path / "base", tmp_path / "whole")
    recorder = RecordingStorage(tmp_path / "whole")
    case.run(recorder, case.settings)
    before, after = (load_state(Storage(tmp_path / one)).timeline.instants for one in ("base", "whole"))
    assert case.made in {one.action for one in after if one not in before}
    chooser = random.Random(name)
    calls = interesting(recorder.calls)
    chosen = calls if ways.EVERY_WAY else chooser.sample(calls, min(TRIES, len(calls)))
    outcomes = set()
    for call in chosen:
        kind, die = chooser.choice(FAULT_KINDS) if call.changes else "before", chooser.random() < 0.6
        path = tmp_path / "try"
        shutil.copytree(tmp_path / "base", path)
        error: Exception | None = None
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", hf.HudiWarning)
                case.run(FaultyStorage(path, at=call.number, kind=kind, die=die), case.settings)
        except Exception as caught:
            error = caught
        where = f"{call} {kind} die={die}: {error!r}"
        outcomes.add(error is None)
        if case.run is serve:
            assert error is None or isinstance(error, hf.PostCommitError), where
        assert table_rows(path) == rows, where
        go_on(path, case, rows, where)
        if case.run is index:  # a plan that no call has begun to execute must not wait for ever
            left = load_state(Storage(path)).timeline.pending()
            assert left == (), f"{where}: {left}"
        assert_tidy(path)
        if case.metadata:
            assert_metadata_true(path)
        shutil.rmtree(path)
    assert False in outcomes


def planned_clustering(path: Path) -> tuple[str, dict[str, Any]]:
    """A table with a clustering on its timeline, and its pipeline's settings."""
    case = CASES["cluster-cow-9"]
    make_table(path, case)
    planned = hf.HudiTable.open(path).services.schedule_cluster(case.settings)
    assert planned is not None
    return planned.instant, case.settings


def test_a_clustering_that_fails_each_time_keeps_no_write_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, settings = planned_clustering(tmp_path)

    def fail(*_: object) -> None:
        raise ValueError("no such curve")

    monkeypatch.setattr("hudi_fast.services.clustering.cluster.rewrite_group", fail)
    for ts in (7, 8, 9):
        before = len(rollbacks(tmp_path))
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            with pytest.raises(hf.PostCommitError, match="cluster: no such curve") as caught:
                hf.write(plain_rows(range(9), ts=ts), tmp_path, settings)
        assert isinstance(caught.value.__cause__, ValueError)
        assert [one for one in table_rows(tmp_path).values() if one[1] != ts] == []
        assert load_state(Storage(tmp_path)).timeline.pending() == ()
        assert any("failed before a write" in str(one.message) for one in told) == (ts == 7)  # the plan found there
        assert len(rollbacks(tmp_path)) - before <= (4 if ts == 7 else 2)
    monkeypatch.undo()
    hf.write(plain_rows(range(9), ts=10), tmp_path, settings)
    assert load_state(Storage(tmp_path)).timeline.writes()[-1].action == "replacecommit"
    assert_tidy(tmp_path)


def test_a_clustering_that_another_process_runs_is_left_alone(tmp_path: Path) -> None:
    instant, settings = planned_clustering(tmp_path)
    storage = Storage(tmp_path)
    storage.write_bytes(heartbeat_path(instant), b"hudi_fast on another machine\n")
    with pytest.raises(hf.CommitConflictError, match="pending clustering is rewriting"):
        hf.write(plain_rows([1], ts=9), tmp_path, settings)
    assert instant in {one.requested for one in load_state(storage).timeline.pending()}
    storage.delete_file(heartbeat_path(instant))
    hf.write(plain_rows([1], ts=9), tmp_path, settings)
    assert load_state(storage).timeline.pending() == ()
    assert load_state(storage).timeline.find(instant, "replacecommit") is not None  # it was executed, not withdrawn


def test_a_writer_that_does_not_cluster_leaves_the_plan_to_others(tmp_path: Path) -> None:
    instant, settings = planned_clustering(tmp_path)
    alone = {**settings, "hoodie.clustering.inline": "false"}
    with pytest.raises(hf.CommitConflictError, match="pending clustering is rewriting"):
        hf.write(plain_rows([1], ts=9), tmp_path, alone)
    assert instant in {one.requested for one in load_state(Storage(tmp_path)).timeline.pending()}


def test_partitions_can_be_deleted_after_a_compaction_was_abandoned(tmp_path: Path) -> None:
    case = CASES["compact-9"]
    make_table(tmp_path, case)
    table = hf.HudiTable.open(tmp_path)
    assert table.services.schedule_compact(case.settings) is not None
    table.delete_partitions(["p0"], case.settings)
    assert {row[0] for row in table_rows(tmp_path).values()} == {"p1"}
    assert load_state(Storage(tmp_path)).timeline.pending() == ()
