"""What storage refuses or fails to do ends in an error of hudi_fast, in every verb of a table, at any of its calls.

The message names the table, the file and what to do; and whether the table is as before.
"""

from __future__ import annotations

import errno
import inspect
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudi_fast as hf
from hudi_fast.storage.base import Storage
from hudi_fast.table.services import TableServices
from tests.faults import calls as ways
from tests.faults.calls import interesting
from tests.support.bootstrap_tables import bootstrap_options, bootstrapped, make_source
from tests.support.instrumented_storage import FaultyStorage, RecordingStorage
from tests.support.rollback_tables import COW, MOR, services, settings_of
from tests.support.small_tables import plain_rows, table_rows

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::hudi_fast.HudiWarning")]

NUMBERS = {errno.ENOSPC: "No space left", errno.EACCES: "Permission denied", errno.EIO: "Input/output error"}
ROWS = plain_rows([1, 9], ts=9)
KEPT = {"hoodie.clean.commits.retained": "1", "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
Act = Callable[[Storage, dict[str, Any]], object]


def on_table(act: Callable[[Any, dict[str, Any]], object]) -> Act:
    return lambda storage, settings: act(hf.HudiTable(storage), settings)


def on_services(act: Callable[[Any, dict[str, Any]], object]) -> Act:
    return lambda storage, settings: act(TableServices(storage), settings)


def newest(one: Any) -> str:
    return str(max(hf.HudiTable.open(one._storage.uri).history()["instant"].to_pylist()))


def savepoint_of(one: Any) -> str:
    return str(services(one._storage.uri).savepoints()["instant"][0])


WRITES: dict[str, Act] = {
    "write": on_table(lambda one, settings: one.write(ROWS, options=settings)),
    "append": on_table(lambda one, settings: one.append(ROWS, settings)),
    "overwrite": on_table(lambda one, settings: one.overwrite(ROWS, settings)),
    "upsert": on_table(lambda one, settings: one.upsert(ROWS, settings)),
    "insert": on_table(lambda one, settings: one.insert(ROWS, settings)),
    "bulk_insert": on_table(lambda one, settings: one.bulk_insert(ROWS, settings)),
    "delete": on_table(lambda one, settings: one.delete(pc.field("id") == "k00001", settings)),
    "delete_keys": on_table(lambda one, settings: one.delete_keys(ROWS, settings)),
    "insert_overwrite": on_table(lambda one, settings: one.insert_overwrite(ROWS, settings)),
    "delete_partitions": on_table(lambda one, settings: one.delete_partitions(["p0"], settings)),
    "truncate": on_table(lambda one, settings: one.truncate(options=settings)),
    "update": on_table(lambda one, settings: one.update(pc.field("id") == "k00001", {"text": "'x'"}, settings)),
    "alter": on_table(lambda one, settings: one.alter(hf.AddColumn("more", pa.int32()), options=PLAIN)),
    "set_properties": on_table(lambda one, settings: one.set_properties({"team": "search"}, options=settings)),
}
SERVICES: dict[str, Act] = {
    "plan_cluster": on_services(lambda one, settings: one.plan_cluster(settings)),
    "schedule_cluster": on_services(lambda one, settings: one.schedule_cluster(settings)),
    "cluster": on_services(lambda one, settings: one.cluster(settings)),
    "plan_compact": on_services(lambda one, settings: one.plan_compact(settings)),
    "schedule_compact": on_services(lambda one, settings: one.schedule_compact(settings)),
    "compact": on_services(lambda one, settings: one.compact(settings)),
    "plan_compact_logs": on_services(lambda one, settings: one.plan_compact_logs(settings)),
    "schedule_compact_logs": on_services(lambda one, settings: one.schedule_compact_logs(settings)),
    "compact_logs": on_services(lambda one, settings: one.compact_logs(settings)),
    "plan_clean": on_services(lambda one, settings: one.plan_clean({**settings, **KEPT})),
    "schedule_clean": on_services(lambda one, settings: one.schedule_clean({**settings, **KEPT})),
    "clean": on_services(lambda one, settings: one.clean({**settings, **KEPT})),
    "plan_archive": on_services(lambda one, settings: one.plan_archive({**settings, **KEPT})),
    "archive": on_services(lambda one, settings: one.archive({**settings, **KEPT})),
    "plan_index": on_services(lambda one, settings: one.plan_index("column_stats", options={**settings, **INDEXED})),
    "schedule_index": on_services(
        lambda one, settings: one.schedule_index("column_stats", options={**settings, **INDEXED})
    ),
    "index": on_services(lambda one, settings: one.index("column_stats", options={**settings, **INDEXED})),
    "drop_index": on_services(lambda one, settings: one.drop_index("column_stats", options={**settings, **INDEXED})),
    "indexes": on_services(lambda one, _: one.indexes()),
    "pending_indexes": on_services(lambda one, _: one.pending_indexes()),
    "plan_rollback": on_services(lambda one, settings: one.plan_rollback(newest(one), settings)),
    "rollback": on_services(lambda one, settings: one.rollback(newest(one), settings)),
    "savepoint": on_services(lambda one, settings: one.savepoint(options=settings)),
    "savepoints": on_services(lambda one, _: one.savepoints()),
    "delete_savepoint": on_services(lambda one, settings: one.delete_savepoint(savepoint_of(one), settings)),
    "plan_restore": on_services(lambda one, settings: one.plan_restore(savepoint_of(one), settings)),
    "restore": on_services(lambda one, settings: one.restore(savepoint_of(one), settings)),
    "plan_upgrade": on_services(lambda one, settings: one.plan_upgrade(9, settings)),
    "upgrade": on_services(lambda one, settings: one.upgrade(9, settings)),
    "plan_repair": on_services(lambda one, settings: one.plan_repair(settings)),
    "repair": on_services(lambda one, settings: one.repair(settings)),
    "plan_expire_partitions": on_services(lambda one, settings: one.plan_expire_partitions({**settings, **EXPIRING})),
    "expire_partitions": on_services(lambda one, settings: one.expire_partitions({**settings, **EXPIRING})),
    "pending": on_services(lambda one, settings: one.pending(settings)),
    "run_pending": on_services(lambda one, settings: one.run_pending(settings)),
    "validate": on_services(lambda one, _: one.validate()),
}
READS: dict[str, Act] = {
    "to_arrow": on_table(lambda one, _: one.to_arrow()),
    "head": on_table(lambda one, _: one.head()),
    "count": on_table(lambda one, _: one.count()),
    "history": on_table(lambda one, _: one.history()),
    "files": on_table(lambda one, _: one.files()),
    "stats": on_table(lambda one, _: one.stats()),
    "partitions": on_table(lambda one, _: one.partitions()),
    "incremental": on_table(lambda one, _: one.incremental("2020-01-01")),
    "diff": on_table(lambda one, _: one.diff("earliest")),
    "diff_batches": on_table(lambda one, _: one.diff_batches("earliest").read_all()),
    "schema_changes": on_table(lambda one, _: one.schema_changes()),
    "schema_history": on_table(lambda one, _: one.schema_history()),
}
PLAIN = {"hoodie.metadata.enable": "false"}
INDEXED = {"hoodie.metadata.enable": "true"}
EXPIRING = {"hoodie.partition.ttl.strategy.days.retain": "1"}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A table of each type, and what some verbs need."""
    made = {name: tmp_path_factory.mktemp("tables") / name for name in (COW, MOR, "saved", "indexed", "old")}
    for name, path in made.items():
        version, kind = "6" if name == "old" else "9", MOR if name == MOR else COW
        settings = {
            **settings_of(kind, version, indexes=False),
            "hoodie.metadata.enable": str(name == "indexed").lower(),
        }
        for turn in range(5):
            hf.write(plain_rows(range(6), ts=turn), path, settings)
            if name == "saved" and turn == 2:
                services(path).savepoint()
        if name == "indexed":
            services(path).index("column_stats", options={**settings, **INDEXED})
    return made


def table_for(verb: str) -> str:
    needed = {"drop_index": "indexed", "indexes": "indexed", "upgrade": "old", "plan_upgrade": "old"}
    if "savepoint" in verb or "restore" in verb:
        return "saved" if verb != "savepoint" else COW
    return needed.get(verb, MOR if "compact" in verb or verb == "upsert" else COW)


def numbers_of(turn: int) -> list[tuple[int, str]]:
    """The numbers of errors with which a call fails: one by turns, all in the tier ``long``."""
    return [*NUMBERS.items()] if ways.EVERY_WAY else [[*NUMBERS.items()][turn % len(NUMBERS)]]


def failing_calls(storage: RecordingStorage) -> set[int]:
    """The first, the last and two in the middle, of all and of those that change files."""
    found = set()
    for calls in (interesting(storage.calls), [one for one in interesting(storage.calls) if one.changes]):
        if calls:
            found |= {calls[at].number for at in (0, len(calls) // 3, 2 * len(calls) // 3, len(calls) - 1)}
    return found


@pytest.mark.slow
@pytest.mark.parametrize("verb", [*WRITES, *SERVICES, *READS])
def test_what_storage_fails_to_do_is_told_by_every_verb(verb: str, tables: dict[str, Path], tmp_path: Path) -> None:
    act, name = {**WRITES, **SERVICES, **READS}[verb], table_for(verb)
    settings = {**settings_of(MOR if name == MOR else COW, "6" if name == "old" else "9", indexes=False)}
    if name == "indexed":
        settings |= INDEXED
    path, rows = tmp_path / "t", table_rows(tables[name])
    shutil.copytree(tables[name], path)
    recorder = RecordingStorage(path)
    act(recorder, settings)
    told = 0
    for turn, at in enumerate(sorted(failing_calls(recorder))):
        for number, said in numbers_of(turn):
            shutil.rmtree(path)
            shutil.copytree(tables[name], path)
            error: BaseException | None = None
            try:
                act(FaultyStorage(path, at=at, die=True, number=number), settings)
            except BaseException as caught:
                error = caught
            where = f"{verb}, call {at} of {len(recorder.calls)}: {recorder.calls[at]}, {said}: {error!r}"
            if error is None:  # what may be left to others, such as the end of a heartbeat
                continue
            told += 1
            assert isinstance(error, hf.HudiError), where
            assert not isinstance(error, hf.CorruptTableError), where
            assert str(path) in str(error), where
            assert said in str(error), where
            assert re.search("again|retry|Check|next|need", str(error)), where
            if verb in WRITES and not isinstance(error, hf.CommitStateUnknownError):
                assert (table_rows(path) != rows) == isinstance(error, hf.PostCommitError), where
    assert told


@pytest.mark.slow
def test_what_storage_fails_to_do_is_told_by_a_bootstrap(tmp_path: Path) -> None:
    make_source(tmp_path / "source", parts=2, files=1)
    settings = bootstrap_options(**PLAIN, **{"hudi_fast.threads": 1})

    def act(storage: Storage) -> None:
        bootstrapped(tmp_path / "source", storage, settings)

    recorder = RecordingStorage(tmp_path / "whole" / "t")
    act(recorder)
    for turn, at in enumerate(sorted(failing_calls(recorder))):
        for number, said in numbers_of(turn):
            place = tmp_path / f"{at}-{number}" / "t"
            error: BaseException | None = None
            try:
                act(FaultyStorage(place, at=at, die=True, number=number))
            except BaseException as caught:
                error = caught
            assert error is None or (isinstance(error, hf.HudiError) and said in str(error)), (at, error)
            assert error is None or str(place) in str(error), (at, error)


def test_every_verb_of_a_table_is_tried() -> None:
    elsewhere = {"sync", "services", "open", "exists", "create", "merge", "scan", "explain", "read_blobs", "plot"}
    same_plan = {name for name in dir(hf.HudiTable) if name.startswith(("to_", "vector_search", "cdc"))}
    for of, tried in ((TableServices, SERVICES), (hf.HudiTable, {**WRITES, **READS})):
        verbs = {name for name, _ in inspect.getmembers(of, callable) if not name.startswith("_")}
        assert verbs - elsewhere - same_plan == {*tried} - same_plan, of


def test_the_disk_of_a_full_device_is_named(tmp_path: Path) -> None:
    """A real error of the system in a stream of pyarrow, which does not say in which file."""
    hf.write(plain_rows(range(4)), tmp_path / "t", {**settings_of(COW, "9", indexes=False)})
    storage = Storage(tmp_path / "t")
    os.symlink("/dev/full", tmp_path / "full")
    original = Storage.open_output

    def full(self: Storage, path: str) -> pa.NativeFile:
        return pa.OSFile(str(tmp_path / "full"), "w") if path.endswith(".parquet") else original(self, path)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Storage, "open_output", full)
        with pytest.raises(hf.CommitError, match=r"No space left on device.*p[01]/[0-9a-f-]+_.*\.parquet"):
            hf.HudiTable(storage).upsert(plain_rows([1], ts=2), settings_of(COW, "9", indexes=False))
