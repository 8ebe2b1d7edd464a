"""Services planned in one process and run in another, beside writers, by two at once, and taken over from the dead."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import hudi_fast as hf
from hudi_fast.locking.machine import machine_lock, service_lock_path
from hudi_fast.services.index_plan import INDEX_LOCK_PATH
from hudi_fast.services.inline import write_with_services
from hudi_fast.storage.base import Storage
from hudi_fast.table.services import TableServices
from hudi_fast.timeline.heartbeat import heartbeat_path
from hudi_fast.view.table_state import load_state
from hudi_fast.writing.flow import WriteResult
from hudi_fast.writing.session import Call, TableSession
from hudi_fast.writing.settings import Settings
from hudi_fast.writing.threads import ThreadBackend, delete_in_threads
from tests.support.metadata_checks import assert_metadata_true
from tests.support.mor_tables import mor_options
from tests.support.sessions import InjectedServices, PartlyBackend
from tests.support.small_tables import options, plain_rows, rows_of, table_rows

MORE = {
    "hoodie.log.compaction.blocks.threshold": "1",
    "hoodie.clean.automatic": "false",
    "hoodie.clean.commits.retained": "1",
    "hoodie.archive.automatic": "false",
    "hoodie.clustering.plan.strategy.single.group.clustering.enabled": "true",
    "hoodie.clustering.plan.strategy.sort.columns": "text",
}


@dataclass(frozen=True)
class Case:
    """A service: how it is planned, what says that it works, and where its lock is."""

    verb: str
    table: dict[str, Any]
    lock: str
    arguments: tuple[str, ...] = ()


CASES = {
    "compact": Case("compact", mor_options(MORE), service_lock_path("compaction")),
    "cluster": Case("cluster", {**options(), **MORE}, service_lock_path("clustering")),
    "clean": Case("clean", {**options(), **MORE}, service_lock_path("clean")),
    "index": Case("index", mor_options(MORE), INDEX_LOCK_PATH, ("record_index",)),
}
LOGS = Case("compact_logs", mor_options(MORE), "")
# A runner that says when it is at work, and never ends.
RUNNER = """
import sys, time
sys.path[:0] = {path!r}
from dataclasses import replace
import hudi_fast as hf
from hudi_fast.table.services import TableServices
from hudi_fast.storage.base import Storage
from tests.support.sessions import InjectedServices, PartlyBackend
def stuck(*_):
    print("at work", flush=True)
    time.sleep(600)
stuck_records = stuck if {verb!r} == "index" else None
services = InjectedServices(Storage({table!r}), PartlyBackend(stuck, stuck_records, stuck))
getattr(services, {verb!r})(*{arguments!r}, options={options!r}, spark="here")
"""


def make(path: Path, case: Case) -> dict[str, Any]:
    for ts in (1, 2, 3, 4):
        hf.write(plain_rows(range(6), ts=ts, text=f"t{ts}-"), path, case.table)
    return table_rows(path)


def services(path: Path) -> TableServices:
    return hf.HudiTable.open(path).services


def plan(path: Path, case: Case) -> Any:
    return getattr(services(path), f"schedule_{case.verb}")(*case.arguments, options=case.table)


def run(path: Path, case: Case, **more: Any) -> Any:
    return getattr(services(path), case.verb)(
        *case.arguments, options={**case.table, **more.pop("options", {})}, **more
    )


def pending(path: Path) -> list[tuple[str, str, bool]]:
    rows = services(path).pending().to_pylist()
    return [(row["service"], row["state"], row["alive"]) for row in rows]


def in_process_of_its_own(code: str, **values: Any) -> subprocess.Popen[str]:
    text = code.format(path=sys.path, **values)
    return subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    # The killed runners below were of other processes, too.
    [name if name in ("compact", "index") else pytest.param(name, marks=pytest.mark.long) for name in CASES],
)
def test_planned_here_and_run_elsewhere_with_writers_going_on(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    rows = make(tmp_path, case)
    planned = plan(tmp_path, case)
    assert pending(tmp_path) == [(name, "REQUESTED", False)]
    change = plain_rows([20, 21], ts=9, text="n")  # new keys: a clustering that waits refuses updates of its groups
    hf.write(change, tmp_path, {**case.table, "hoodie.parquet.small.file.limit": "0"})
    code = (
        "import sys; sys.path[:0] = {path!r}\nimport hudi_fast as hf\n"
        "for one in hf.HudiTable.open({table!r}).services.run_pending({options!r}): print(one.instant)"
    )
    with in_process_of_its_own(code, table=str(tmp_path), options=case.table) as process:
        assert process.stdout is not None
        assert process.stdout.read().split() == [planned.instant]
    assert process.returncode == 0
    assert pending(tmp_path) == []
    assert table_rows(tmp_path) == {**rows, **rows_of(change)}
    assert_metadata_true(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_runner_that_was_killed_is_taken_over(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    rows = make(tmp_path, case)
    planned = plan(tmp_path, case) if name != "clean" else None
    values = {"table": str(tmp_path), "verb": case.verb, "arguments": case.arguments, "options": case.table}
    with in_process_of_its_own(RUNNER, **values) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "at work\n"
        assert pending(tmp_path) == [(name, "INFLIGHT", True)]
        with pytest.raises(hf.LockTimeoutError):
            run(tmp_path, case, options={"hoodie.write.lock.wait_time_ms": "20"})
        assert services(tmp_path).run_pending(case.table) == []
        hf.write(plain_rows([30], ts=9), tmp_path, {**case.table, "hoodie.parquet.small.file.limit": "0"})
        process.kill()
    assert pending(tmp_path) == [(name, "INFLIGHT", False)]
    rows = {**rows, **rows_of(plain_rows([30], ts=9))}
    assert table_rows(tmp_path) == rows
    (result,) = services(tmp_path).run_pending(case.table)
    assert planned is None or result.instant == planned.instant
    assert pending(tmp_path) == []
    assert table_rows(tmp_path) == rows
    assert_metadata_true(tmp_path)
    assert not list((tmp_path / ".hoodie" / ".heartbeat").iterdir())


@pytest.mark.slow
def test_a_log_compaction_that_was_killed_goes_and_another_is_planned(tmp_path: Path) -> None:
    rows = make(tmp_path, LOGS)
    values = {"table": str(tmp_path), "verb": "compact_logs", "arguments": (), "options": LOGS.table}
    with in_process_of_its_own(RUNNER, **values) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "at work\n"
        assert pending(tmp_path) == [("compact_logs", "INFLIGHT", True)]
        process.kill()
    assert pending(tmp_path) == [("compact_logs", "INFLIGHT", False)]
    assert services(tmp_path).run_pending(LOGS.table) == []
    assert pending(tmp_path) == []
    assert run(tmp_path, LOGS).file_groups == 2
    assert table_rows(tmp_path) == rows


@pytest.mark.slow(but="clean")
@pytest.mark.parametrize("name", CASES)
def test_of_two_at_once_one_does_it(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    rows = make(tmp_path, case)
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda _: run(tmp_path, case), range(2)))
    assert sum(bool(one.instant) for one in results) == 1
    assert table_rows(tmp_path) == rows
    assert pending(tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["compact", "cluster", "clean"])
def test_what_somebody_else_is_carrying_out_is_no_matter_of_the_write(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    make(tmp_path, case)
    inline = {
        "hoodie.compact.inline": "true",
        "hoodie.compact.inline.max.delta.commits": "1",
        "hoodie.clustering.inline": "true",
        "hoodie.clustering.inline.max.commits": "1",
        "hoodie.clean.automatic": "true",
        "hoodie.archive.automatic": "true",
    }
    with ExitStack() as held:
        for one in CASES.values():
            held.enter_context(machine_lock(Storage(tmp_path), 0, one.lock))
        hf.write(plain_rows([40], ts=9), tmp_path, {**case.table, **inline})  # a warning would be an error here
    last = load_state(Storage(tmp_path)).timeline.instants[-1]
    assert last.action in ("commit", "deltacommit")


@pytest.mark.slow
def test_a_table_that_others_are_writing_all_the_time_is_served_later(tmp_path: Path) -> None:
    case = CASES["compact"]
    make(tmp_path, case)
    storage = Storage(tmp_path)
    settings = Settings.from_options(
        {**case.table, "hoodie.compact.inline": "true", "hoodie.write.lock.wait_time_ms": "20"}
        | {"hoodie.compact.inline.max.delta.commits": "1", "hoodie.clean.automatic": "true"}
    )
    with machine_lock(storage, 0):
        session = TableSession(Call(storage, settings, ThreadBackend(1)))
        write_with_services(session, lambda: WriteResult("20240101000000000", "upsert", 0, 0, 0, 0, 0, 0.0, "", ""))
    assert all(one.action == "deltacommit" for one in load_state(storage).timeline.instants)


@pytest.mark.slow
def test_heartbeats_are_given_while_the_work_is_done(tmp_path: Path) -> None:
    seen: list[bool] = []

    def watched(table: Path, carry_out: Any) -> Any:
        def work(*arguments: Any) -> Any:
            begun = [one.requested for one in load_state(Storage(table)).timeline.pending()]
            seen.append(all(Storage(table).exists(heartbeat_path(one)) for one in begun) and bool(begun))
            return carry_out(*arguments)

        return work

    for name, case in [*CASES.items(), ("compact_logs", LOGS)]:
        table = tmp_path / name
        make(table, case)
        own = ThreadBackend(1)
        watch = [watched(table, function) for function in (own.map_units, own.write_records, own.delete)]
        verbs = InjectedServices(Storage(table), PartlyBackend(*watch))
        getattr(verbs, case.verb)(*case.arguments, options=case.table, spark="here")
        assert not list((table / ".hoodie" / ".heartbeat").iterdir())
    assert len(seen) >= len(CASES) + 1
    assert all(seen)


@pytest.mark.slow
def test_many_services_and_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    case = CASES["compact"]
    rows = make(tmp_path, case)
    failed: list[BaseException] = []

    def keep(verbs: Sequence[str]) -> None:
        try:
            for verb in verbs:
                getattr(services(tmp_path), verb)(options=case.table)
        except BaseException as error:
            failed.append(error)

    threads = [
        threading.Thread(target=keep, args=(verbs,)) for verbs in (("compact", "clean"), ("compact_logs", "clean"))
    ]
    for thread in threads:
        thread.start()
    for ts in (10, 11, 12):
        change = plain_rows([ts, 1], ts=ts, text="n")
        hf.write(change, tmp_path, case.table)
        rows |= rows_of(change)
    for thread in threads:
        thread.join()
    assert failed == []
    assert table_rows(tmp_path) == rows
    services(tmp_path).run_pending(case.table)
    assert table_rows(tmp_path) == rows
    assert_metadata_true(tmp_path)


def test_states_that_a_clean_is_deleting_now_cannot_be_travelled_to(tmp_path: Path) -> None:
    case = CASES["clean"]
    make(tmp_path, case)
    first, last = (load_state(Storage(tmp_path)).timeline.writes()[at].requested for at in (0, -1))
    table, seen = hf.HudiTable.open(tmp_path), []

    def delete(storage: Storage, paths: Sequence[str]) -> list[bool]:
        with pytest.raises(hf.ConfigError, match="cleaned up"):
            table.to_arrow(as_of=first)
        seen.append(rows_of(table.to_arrow(as_of=last)))
        return delete_in_threads(storage, paths)

    assert table.to_arrow(as_of=first).num_rows == 6
    InjectedServices(Storage(tmp_path), PartlyBackend(delete=delete)).clean(case.table, spark="here")
    assert seen == [table_rows(tmp_path)]
