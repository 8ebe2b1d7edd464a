"""What waits on the timeline, as a table, and carrying all of it out.

Modules: hudi_fast.services.pending.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.locking.machine import is_held, machine_lock, service_lock_path
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.heartbeat import heartbeat_path
from hudi_fast.timeline.instants import Instant, State
from hudi_fast.timeline.transition import create_requested, to_inflight
from hudi_fast.view.table_state import load_state
from tests.support.mor_tables import log_files, mor_options
from tests.support.small_tables import assert_tidy, options, plain_rows, rows_of, table_rows

MORE = {
    "hoodie.log.compaction.blocks.threshold": "1",
    "hoodie.clean.commits.retained": "1",
    "hoodie.clean.automatic": "false",
    "hoodie.clustering.plan.strategy.sort.columns": "text",
}
COLUMNS = ["instant", "action", "state", "service", "file_groups", "alive", "seconds"]


def make(path: Path, settings: dict[str, Any]) -> dict[str, tuple[Any, ...]]:
    for ts in (1, 2, 3):
        hf.write(plain_rows(range(6), ts=ts, text=f"t{ts}-"), path, settings)
    return table_rows(path)


def services(path: Path) -> Any:
    return hf.HudiTable.open(path).services


def pending(path: Path, settings: dict[str, Any] | None = None) -> list[tuple[Any, ...]]:
    rows = services(path).pending(settings).to_pylist()
    return [(row["instant"], row["action"], row["state"], row["service"], row["file_groups"]) for row in rows]


def test_nothing_waits_on_a_table_that_is_at_rest(tmp_path: Path) -> None:
    make(tmp_path, mor_options(MORE))
    found = services(tmp_path).pending()
    assert found.column_names == COLUMNS
    assert found.num_rows == 0
    assert services(tmp_path).run_pending() == []


@pytest.mark.slow("6")
@pytest.mark.parametrize("version", ["6", "9"])
def test_plans_of_every_kind_are_told_and_carried_out_oldest_first(version: str, tmp_path: Path) -> None:
    settings = {**options(table_version=version), **MORE}
    rows = make(tmp_path, settings)
    clean = services(tmp_path).schedule_clean(settings)
    cluster = services(tmp_path).schedule_cluster(settings)
    clustering = "replacecommit" if version == "6" else "clustering"
    assert pending(tmp_path) == [
        (clean.instant, "clean", "REQUESTED", "clean", None),
        (cluster.instant, clustering, "REQUESTED", "cluster", 2),
    ]
    (one, _) = services(tmp_path).pending().to_pylist()
    assert one["alive"] is False
    assert 0 <= one["seconds"] < 600
    results = services(tmp_path).run_pending(settings)
    assert [result.instant for result in results] == [clean.instant, cluster.instant]
    assert results[0].files_deleted == 2
    assert results[1].file_groups == 2
    assert pending(tmp_path) == []
    assert table_rows(tmp_path) == rows
    assert_tidy(tmp_path)


@pytest.mark.slow
def test_compactions_and_indexes_wait_beside_each_other(tmp_path: Path) -> None:
    settings = mor_options(MORE)
    rows = make(tmp_path, settings)
    index = services(tmp_path).schedule_index("record_index", options=settings)
    compaction = services(tmp_path).schedule_compact(settings)
    assert [row[2:] for row in pending(tmp_path)] == [
        ("REQUESTED", "index", None),
        ("REQUESTED", "compact", 2),
    ]
    results = services(tmp_path).run_pending(settings)
    assert [result.instant for result in results] == [index.instant, compaction.instant]
    assert table_rows(tmp_path) == rows


@pytest.mark.slow
def test_a_log_compaction_that_is_out_of_date_goes_without_a_word(tmp_path: Path) -> None:
    settings = mor_options(MORE)
    make(tmp_path, settings)
    services(tmp_path).schedule_compact_logs(settings)
    hf.write(plain_rows([1], ts=9), tmp_path, settings)
    services(tmp_path).compact(settings)
    assert [row[3] for row in pending(tmp_path)] == ["compact_logs"]
    assert services(tmp_path).run_pending(settings) == []
    assert pending(tmp_path) == []


@pytest.mark.slow
def test_who_is_at_work_is_told_by_signs_of_life_of_others_and_by_locks_of_ours(tmp_path: Path) -> None:
    settings = mor_options(MORE)
    make(tmp_path, settings)
    planned = services(tmp_path).schedule_compact(settings)
    storage = Storage(tmp_path)
    to_inflight(storage, load_state(storage).config, Instant(planned.instant, "compaction", State.REQUESTED))

    def alive(more: dict[str, str] | None = None) -> bool:
        (row,) = services(tmp_path).pending(more).to_pylist()
        assert row["state"] == "INFLIGHT"
        return bool(row["alive"])

    assert not alive()
    storage.write_bytes(heartbeat_path(planned.instant), b"")
    assert alive()
    assert services(tmp_path).run_pending(settings) == []
    time.sleep(1.1)
    short = {"hoodie.client.heartbeat.interval_in_ms": "1000", "hoodie.client.heartbeat.tolerable.misses": "1"}
    assert not alive(short)
    assert [one.instant for one in services(tmp_path).run_pending({**settings, **short})] == [planned.instant]


@pytest.mark.slow
def test_one_that_fails_is_reported_with_what_was_done_before_it(tmp_path: Path) -> None:
    settings = mor_options(MORE)
    make(tmp_path, settings)
    services(tmp_path).schedule_index("record_index", options=settings)
    services(tmp_path).schedule_compact(settings)
    log = tmp_path / log_files(tmp_path)[0].path
    content = log.read_bytes()
    log.write_bytes(b"no log file")
    with pytest.raises(hf.CorruptTableError) as caught:
        services(tmp_path).run_pending(settings)
    assert any("0 pending services were run" in note for note in caught.value.__notes__)
    log.write_bytes(content)
    assert [row[2:4] for row in pending(tmp_path)] == [("REQUESTED", "index"), ("REQUESTED", "compact")]
    assert len(services(tmp_path).run_pending(settings)) == 2


def test_a_plan_that_writers_made_untrue_is_gone_afterwards(tmp_path: Path) -> None:
    settings = {**options(), **MORE}
    rows = make(tmp_path, settings)
    services(tmp_path).schedule_cluster(settings)
    change = plain_rows([1], ts=9, text="n")
    allowed = {"hoodie.clustering.updates.strategy": "SparkAllowUpdateStrategy"}
    hf.write(change, tmp_path, {**settings, **allowed})
    assert services(tmp_path).run_pending(settings) == []
    assert pending(tmp_path) == []
    assert table_rows(tmp_path) == {**rows, **rows_of(change)}


def test_rollbacks_that_died_are_told_and_pending_writes_are_not(tmp_path: Path) -> None:
    make(tmp_path, options())
    storage = Storage(tmp_path)
    config = load_state(storage).config
    create_requested(storage, config, Instant("20240101000000000", "commit", State.REQUESTED))
    create_requested(storage, config, Instant("20240101000000001", "rollback", State.REQUESTED), b"cut off")
    assert [row[1:4] for row in pending(tmp_path)] == [("rollback", "REQUESTED", "rollback")]
    assert services(tmp_path).run_pending() == []  # a writer's matter
    hf.write(plain_rows([1], ts=9), tmp_path, options())
    assert pending(tmp_path) == []
    assert_tidy(tmp_path)


def test_a_wrong_option_is_refused(tmp_path: Path) -> None:
    make(tmp_path, options())
    with pytest.raises(hf.ConfigError, match=r"interval_in_ms=999 .* at least 1000"):
        services(tmp_path).pending({"hoodie.client.heartbeat.interval_in_ms": "999"})
    with pytest.raises(hf.ConfigError, match="tolerable"):
        services(tmp_path).run_pending({"hoodie.client.heartbeat.tolerable.misses": "0"})


def test_locks_are_seen_from_outside(tmp_path: Path) -> None:
    make(tmp_path, options())
    storage, path = Storage(tmp_path), service_lock_path("compaction")
    assert not is_held(storage, path)
    with machine_lock(storage, 0, path):
        assert is_held(storage, path)
        assert not is_held(storage)
    assert not is_held(storage, path)


def test_the_table_of_pending_services_has_types(tmp_path: Path) -> None:
    make(tmp_path, options())
    schema = services(tmp_path).pending().schema
    assert schema.field("seconds").type == pa.float64()
    assert schema.field("file_groups").type == pa.int64()
    assert schema.field("alive").type == pa.bool_()


def test_before_version_8_an_index_comes_after_what_it_has_to_wait_for(tmp_path: Path) -> None:
    settings = options(table_version="6", index="SIMPLE")
    given = {**settings, "hoodie.metadata.index.column.stats.enable": "false"}
    hf.write(plain_rows(range(4)), tmp_path, given)
    services = hf.HudiTable.open(tmp_path).services
    indexed = services.schedule_index("column_stats", options=given)
    clustered = services.schedule_cluster(given)
    assert clustered is not None
    assert [type(one).__name__ for one in services.run_pending(given)] == ["ClusteringResult", "IndexResult"]
    assert indexed.instant < clustered.instant
