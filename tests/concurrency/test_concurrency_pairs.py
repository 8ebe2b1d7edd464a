"""The matrix of pairs: an upsert at work while something else runs from beginning to end, and what becomes of it.

The upsert changes one row of partition ``p1``. Afterwards the table validates, nothing is left over, and it holds the
rows of whatever was acknowledged. Outcomes are Apache Hudi's (1.2.0), but where a comment says why not.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

import hudi_fast as hf
from hudi_fast.dml.dml import check_update, run_dml
from hudi_fast.dml.local import updated_rows
from hudi_fast.dml.statement import MergeSpec
from hudi_fast.schema.alter import RenameColumn
from hudi_fast.storage.base import Storage
from hudi_fast.view.table_state import load_state
from hudi_fast.writing.alter import alter_table
from hudi_fast.writing.local import LocalEngine
from hudi_fast.writing.write_plan import WriteOutcome, WritePlan
from tests.support.interleaving import (
    NBCC,
    PREFER_WRITER,
    assert_sound,
    pending_of,
    services,
    services_during,
    settings_for,
    write_during,
)
from tests.support.sessions import session_of
from tests.support.small_tables import plain_rows, table_rows

Rows = dict[str, tuple[Any, ...]]
Act = Callable[[Path, dict[str, Any]], object]

OPERATION = "hoodie.datasource.write.operation"
EAGER_SERVICES = {
    "hoodie.compact.inline.max.delta.commits": "1",
    "hoodie.log.compaction.blocks.threshold": "1",
    "hoodie.clustering.plan.strategy.small.file.limit": "1000000000",
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.commits.archival.batch": "1",
}
LANDS, FAILS, FAILS_BEFORE_8 = "lands", "fails", "fails before version 8"


def write(operation: str, numbers: list[int]) -> Act:
    return lambda path, settings: hf.write(plain_rows(numbers, 6, "B"), path, {**settings, OPERATION: operation})


def serve(call: Callable[[Any, dict[str, Any]], object]) -> Act:
    return lambda path, settings: call(services(path), {**settings, **EAGER_SERVICES})


def newest(path: Path) -> str:
    return load_state(Storage(path)).timeline.writes()[-1].requested


def roll_newest_back(path: Path, settings: dict[str, Any]) -> object:
    return services(path).rollback(newest(path), settings)


def rename(path: Path, settings: dict[str, Any]) -> object:
    return alter_table(session_of(Storage(path), settings), [RenameColumn("text", "words")])


COMMON: dict[str, tuple[Act, str]] = {
    "upsert of the same file group": (write("upsert", [1, 3]), FAILS),
    "upsert of another file group": (write("upsert", [0]), LANDS),
    "delete in the same file group": (write("delete", [3]), FAILS),
    "insert overwrite of the partition": (write("insert_overwrite", [1]), FAILS),
    "insert overwrite of the other one": (write("insert_overwrite", [0]), LANDS),
    "insert overwrite of the table": (write("insert_overwrite_table", [0]), FAILS),
    "delete of the partition": (
        lambda path, settings: hf.write(
            plain_rows([]),
            path,
            {**settings, OPERATION: "delete_partition", "hoodie.datasource.write.partitions.to.delete": "p1"},
        ),
        FAILS,
    ),
    "clustering": (serve(lambda table, given: table.cluster(given)), FAILS),
    "planned clustering": (serve(lambda table, given: table.schedule_cluster(given)), FAILS),
    "clean": (serve(lambda table, given: table.clean(given)), LANDS),
    "archiving": (serve(lambda table, given: table.archive(given)), LANDS),
    "savepoint": (serve(lambda table, given: table.savepoint(options=given)), LANDS),
    "rollback of failed writes": (serve(lambda table, given: table.rollback(options=given)), LANDS),
    "repair": (serve(lambda table, given: table.repair(given)), LANDS),
    "built index": (serve(lambda table, given: table.index("record_index", options=given)), LANDS),
    "dropped index": (serve(lambda table, given: table.drop_index("files", given)), LANDS),
    "renamed column": (rename, LANDS),
    # what the write rests on is gone: Apache Hudi lets it land all the same
    "rollback of the newest write": (roll_newest_back, FAILS),
}
OF_COW: dict[str, tuple[Act, str]] = {
    **COMMON,
    "insert into the same small file": (write("insert", [101]), FAILS),
}
OF_MOR: dict[str, tuple[Act, str]] = {
    **COMMON,
    "insert into a new file group": (write("bulk_insert", [101]), LANDS),
    "compaction": (serve(lambda table, given: table.compact(given)), FAILS_BEFORE_8),
    "planned compaction": (serve(lambda table, given: table.schedule_compact(given)), FAILS_BEFORE_8),
    "log compaction": (serve(lambda table, given: table.compact_logs(given)), FAILS),
}
BY_DEFAULT = {
    "COW": ("insert into the same small file", "insert overwrite of the table", "clustering", "renamed column"),
    "MOR": (
        "upsert of another file group",
        "delete of the partition",
        "planned clustering",
        "clean",
        "rollback of the newest write",
        "insert into a new file group",
        "compaction",
        "log compaction",
    ),
}


def cells() -> list[Any]:
    """All of them; those of version 9 that are alone of their kind run by default."""
    found = []
    for version in ("6", "8", "9"):
        for kind, pairs in (("COW", OF_COW), ("MOR", OF_MOR)):
            for name in pairs:
                if (version, name) == ("6", "built index"):
                    continue  # refused while a write is pending: readers of 0.15 could not make it out
                long = [] if version == "9" and name in BY_DEFAULT[kind] else [pytest.mark.long]
                found.append(pytest.param(kind, version, name, marks=long))
    return found


def make(path: Path, settings: dict[str, Any]) -> None:
    hf.write(plain_rows(range(4)), path, settings)
    hf.write(plain_rows([0, 1], ts=2), path, settings)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "version", "name"), cells())
def test_an_upsert_lands_or_fails_as_what_ran_meanwhile_says(
    kind: str, version: str, name: str, tmp_path: Path
) -> None:
    meanwhile, outcome = (OF_COW if kind == "COW" else OF_MOR)[name]
    settings, seen = settings_for(kind, version), list[Rows]()
    make(tmp_path, settings)

    def others() -> None:
        meanwhile(tmp_path, settings)
        seen.append(table_rows(tmp_path))

    upserted = plain_rows([1], 5, "A")
    if outcome == FAILS or (outcome == FAILS_BEFORE_8 and version == "6"):
        with pytest.raises(hf.CommitConflictError) as caught:
            write_during(tmp_path, upserted, settings, others)
        assert caught.value.other is not None
        expected = seen[-1]
    else:
        write_during(tmp_path, upserted, settings, others)
        expected = {**seen[-1], "k00001": ("p1", 5, "A1")}
    assert table_rows(tmp_path) == expected
    services(tmp_path).run_pending({**settings, **EAGER_SERVICES})
    assert_sound(tmp_path, expected)


# ---- services at work, and writers beside them

SERVICES: dict[str, tuple[Callable[..., object], str]] = {
    "compact": (lambda table, given: table.compact(given, spark=True), "MOR"),
    "compact_logs": (lambda table, given: table.compact_logs(given, spark=True), "MOR"),
    "clean": (lambda table, given: table.clean(given, spark=True), "COW"),
    "index": (lambda table, given: table.index("record_index", options=given, spark=True), "MOR"),
}


@pytest.mark.slow
@pytest.mark.parametrize("version", [pytest.param("6", marks=pytest.mark.long), "9"])
@pytest.mark.parametrize("service", sorted(SERVICES))
def test_writers_land_while_a_service_is_at_work(service: str, version: str, tmp_path: Path) -> None:
    call, kind = SERVICES[service]
    settings = settings_for(kind, version)
    make(tmp_path, settings)
    hf.write(plain_rows([0, 1], ts=3), tmp_path, settings)
    once: list[int] = []

    def others() -> None:
        if service == "index" and version == "6":
            return  # built under the lock: table version 6 cannot do otherwise
        once.append(1)
        hf.write(plain_rows([1, 20 + len(once)], 4 + len(once), "B"), tmp_path, settings)

    call(services_during(tmp_path, others), {**settings, **EAGER_SERVICES})
    assert once or (service, version) == ("index", "6")
    if once:
        assert table_rows(tmp_path)["k00001"] == ("p1", 4 + len(once), "B1")
    assert_sound(tmp_path, table_rows(tmp_path))
    assert len(table_rows(tmp_path)) == 4 + len(once)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["COW", pytest.param("MOR", marks=pytest.mark.long)])
def test_a_clustering_gives_way_to_a_write_that_may_change_its_rows(kind: str, tmp_path: Path) -> None:
    settings = settings_for(kind, "9", PREFER_WRITER)
    make(tmp_path, settings)
    table = services_during(tmp_path, lambda: hf.write(plain_rows([1], 5, "B"), tmp_path, settings))
    plan = services(tmp_path).schedule_cluster({**settings, **EAGER_SERVICES})
    with pytest.raises(hf.CommitConflictError, match="no longer fits the table"):
        table.cluster({**settings, **EAGER_SERVICES}, spark=True, plan=plan)
    assert_sound(tmp_path, {**table_rows(tmp_path), "k00001": ("p1", 5, "B1")})


@pytest.mark.slow
def test_a_clustering_gives_way_to_a_write_that_is_at_work(tmp_path: Path) -> None:
    """Apache Hudi's writers say in their inflight file what they write to, ours by their markers."""
    settings = settings_for("COW", "9", PREFER_WRITER)
    make(tmp_path, settings)
    plan = services(tmp_path).schedule_cluster({**settings, **EAGER_SERVICES})

    def others() -> None:
        with pytest.raises(hf.CommitConflictError, match="writes to file groups"):
            services(tmp_path).cluster({**settings, **EAGER_SERVICES}, plan=plan)

    write_during(tmp_path, plain_rows([1], 5, "A"), settings, others)
    assert pending_of(tmp_path) == [plan.instant]
    services(tmp_path).rollback(plan.instant, settings)
    assert_sound(tmp_path, {**table_rows(tmp_path), "k00001": ("p1", 5, "A1")})


def test_of_two_who_carry_out_one_compaction_one_does(tmp_path: Path) -> None:
    settings = settings_for("MOR", "9")
    make(tmp_path, settings)
    plan = services(tmp_path).schedule_compact({**settings, **EAGER_SERVICES})
    impatient = {**settings, **EAGER_SERVICES, "hoodie.write.lock.wait_time_ms": "10"}

    def others() -> None:
        with pytest.raises((hf.LockTimeoutError, hf.ServiceTakenError)):
            services(tmp_path).compact(impatient, plan=plan)

    services_during(tmp_path, others).compact({**settings, **EAGER_SERVICES}, spark=True, plan=plan)
    assert_sound(tmp_path, table_rows(tmp_path))
    commits = [one for one in load_state(Storage(tmp_path)).timeline.writes() if one.action == "commit"]
    assert [one.requested for one in commits] == [plan.instant]


@pytest.mark.slow
@pytest.mark.parametrize("version", ["6", pytest.param("8", marks=pytest.mark.long)])
def test_two_who_log_to_one_slice_never_write_one_file(version: str, tmp_path: Path) -> None:
    """Before version 8 nothing in the name of a log file tells its writer."""
    settings = settings_for("MOR", version)
    make(tmp_path, settings)
    for ts in (5, 7):
        with pytest.raises(hf.CommitConflictError):
            write_during(
                tmp_path,
                plain_rows([1], ts, "A"),
                settings,
                lambda at=ts: hf.write(plain_rows([3], at + 1, "B"), tmp_path, settings),
            )
        assert table_rows(tmp_path)["k00003"] == ("p1", ts + 1, "B3")
        assert table_rows(tmp_path)["k00001"] == ("p1", 2, "a1")
    assert pending_of(tmp_path) == []
    assert_sound(tmp_path, table_rows(tmp_path))


# ---- nobody is in anybody's way

BUCKETS = {
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "1",
}


@pytest.mark.slow
@pytest.mark.parametrize("ts", [9, 4])
def test_without_blocking_both_land_and_readers_merge_by_the_ordering_field(ts: int, tmp_path: Path) -> None:
    settings = settings_for("MOR", "9", {**BUCKETS, **NBCC})
    make(tmp_path, settings)
    write_during(
        tmp_path, plain_rows([1], 5, "A"), settings, lambda: hf.write(plain_rows([1], ts, "B"), tmp_path, settings)
    )
    wins = ("p1", 9, "B1") if ts == 9 else ("p1", 5, "A1")
    assert_sound(tmp_path, {**table_rows(tmp_path), "k00001": wins})


@pytest.mark.slow
def test_without_blocking_two_who_begin_one_bucket_both_land(tmp_path: Path) -> None:
    settings = settings_for("MOR", "9", {**BUCKETS, **NBCC})
    make(tmp_path, settings)
    new, other = plain_rows([2], 5, "A"), plain_rows([2, 5], 6, "B")
    at = new.column_names.index("part")
    there = [new.set_column(at, "part", [["p9"]]), other.set_column(at, "part", [["p9", "p9"]])]
    write_during(tmp_path, there[0], settings, lambda: hf.write(there[1], tmp_path, settings))
    for _ in range(2):
        assert rows_in(tmp_path, "p9") == {"k00002": ("p9", 6, "B2"), "k00005": ("p9", 6, "B5")}
        services(tmp_path).compact({**settings, **EAGER_SERVICES})


def rows_in(path: Path, partition: str) -> Rows:
    listed = hf.HudiTable.open(path).to_arrow().to_pylist()
    here = [row for row in listed if row["part"] == partition]
    assert len({row["id"] for row in here}) == len(here)
    return {row["id"]: (row["part"], row["ts"], row["text"]) for row in here}


@pytest.mark.slow
def test_without_blocking_bulk_inserts_are_still_looked_at(tmp_path: Path) -> None:
    settings = settings_for("MOR", "9", {**BUCKETS, **NBCC})
    make(tmp_path, settings)
    insert = {**settings, OPERATION: "bulk_insert"}
    with pytest.raises(hf.CommitConflictError):
        write_during(
            tmp_path, plain_rows([21], 5, "A"), insert, lambda: hf.write(plain_rows([1], 6, "B"), tmp_path, settings)
        )
    assert_sound(tmp_path, {**table_rows(tmp_path), "k00001": ("p1", 6, "B1")})


@pytest.mark.slow
def test_without_blocking_changes_that_follow_from_the_table_are_not_lost(tmp_path: Path) -> None:
    settings = settings_for("MOR", "9", {**BUCKETS, **NBCC})
    make(tmp_path, settings)
    left = [1]

    class Interleaved(LocalEngine):
        def execute(self, plan: WritePlan) -> WriteOutcome:
            done = super().execute(plan)
            if left and left.pop():
                hf.HudiTable.open(tmp_path).update(pc.field("id") == "k00001", {"ts": pc.field("ts") + 10}, settings)
            return done

    def work_out(plan: WritePlan, _spec: MergeSpec) -> LocalEngine:
        return Interleaved(updated_rows(plan, clause, pc.field("id") == "k00001"))

    clause = check_update({"ts": pc.field("ts") + 10})
    with pytest.raises(hf.CommitConflictError):
        run_dml(
            session_of(tmp_path, {**settings, "hoodie.datasource.write.operation": "upsert"}),
            MergeSpec(clauses=(clause,)),
            (),
            work_out,
        )
    assert_sound(tmp_path, {**table_rows(tmp_path), "k00001": ("p1", 12, "a1")})


@pytest.mark.slow
@pytest.mark.parametrize("version", ["9", pytest.param("6", marks=pytest.mark.long)])
def test_a_log_compaction_gives_way_to_a_compaction(version: str, tmp_path: Path) -> None:
    settings = settings_for("MOR", version)
    make(tmp_path, settings)
    hf.write(plain_rows([0, 1], ts=3), tmp_path, settings)
    rows = table_rows(tmp_path)
    table = services_during(tmp_path, lambda: services(tmp_path).compact({**settings, **EAGER_SERVICES}))
    plan = services(tmp_path).schedule_compact_logs({**settings, **EAGER_SERVICES})
    with pytest.raises(hf.ServiceTakenError, match="is out of date"):
        table.compact_logs({**settings, **EAGER_SERVICES}, spark=True, plan=plan)
    assert_sound(tmp_path, rows)
