"""Plans and metadata that name something else than data of the table are refused, and nothing is touched.

Each kind of plan is given each kind of victim, on the oldest and the newest layout of the timeline, and then everything
that carries plans out is called.

Modules: hudi_fast.view.planned_files.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import hudi_fast as hf
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.commit_metadata import decode_commit_metadata, encode_commit_metadata
from hudi_fast.timeline.instants import Instant, State, read_instant_body
from hudi_fast.timeline.plans import (
    CleanPlan,
    RollbackPlan,
    RollbackRequest,
    SavepointMetadata,
    encode_clean_plan,
    encode_rollback_plan,
    encode_savepoint,
)
from hudi_fast.timeline.service_plans import (
    ClusteringGroup,
    ClusteringPlan,
    ClusteringSlice,
    CompactionOperation,
    CompactionPlan,
    RequestedReplace,
    encode_compaction_plan,
    encode_requested_replace,
)
from hudi_fast.timeline.transition import complete, create_requested, to_inflight
from hudi_fast.view.planned_files import named_file
from tests.support.rollback_tables import MOR, services, settings_of, state_of
from tests.support.small_tables import plain_rows, table_rows

LATER, PENDING = "20300101000000000", "20300101000000999"
FOREIGN = "a_0-1-0_20200101000000000.parquet"
"""Another's file that is named like a base file, in the folder of the metadata table, and above the table."""

VICTIMS = {
    "the properties": (".hoodie", ".hoodie/hoodie.properties"),
    "a file that is no data": ("p0", "p0/keep.txt"),
    "a file of another partition": ("p0", "p1/{data}"),
    "a file of a nested folder": ("p0", "p0/.hoodie/" + FOREIGN),
    "a file of the metadata table": (".hoodie/metadata/files", ".hoodie/metadata/files/" + FOREIGN),
    "a file outside": ("..", "../" + FOREIGN),
    "a file outside by a detour": ("p0/../..", "p0/../../" + FOREIGN),
}
VERSIONS = ["6", "9"]


def snapshot(folder: Path) -> dict[str, bytes]:
    """All files but those of the timeline, locks and markers."""
    kept = (one for one in folder.rglob("*") if one.is_file() and not one.name.startswith("hudi_fast"))
    return {str(one.relative_to(folder)): one.read_bytes() for one in kept if PENDING not in one.name}


@pytest.fixture(params=VERSIONS)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "t"
    settings = settings_of(MOR, request.param, indexes=False)
    hf.write(plain_rows(range(6)), path, settings)
    hf.write(plain_rows(range(2), ts=2), path, settings)
    for folder in (path.parent, path / ".hoodie/metadata/files", path / "p0/.hoodie"):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / FOREIGN).write_text("precious")
    (path / "p0/keep.txt").write_text("precious")
    return path


def put(path: Path, action: str, body: bytes, requested: str = PENDING) -> None:
    at = state_of(path)
    create_requested(at.storage, at.config, Instant(requested, action, State.REQUESTED), body)


def version_of(path: Path) -> str:
    return str(state_of(path).config.version)


def settings_for(path: Path) -> dict[str, str]:
    return settings_of(MOR, version_of(path), indexes=False)


def rollback(path: Path, partition: str, victim: str) -> Callable[[], object]:
    put(path, "deltacommit", b"", LATER)
    request = RollbackRequest(partition, files_to_be_deleted=(f"{path}/{victim}",))
    put(path, "rollback", encode_rollback_plan(RollbackPlan(LATER, "deltacommit", (request,))))
    return lambda: hf.write(plain_rows([1]), path, settings_for(path))


def rollback_of_blocks(path: Path, partition: str, victim: str) -> Callable[[], object]:
    put(path, "deltacommit", b"", LATER)
    request = RollbackRequest(partition, "x", "1", log_blocks_to_be_deleted={f"file:{path}/{victim}": 1})
    put(path, "rollback", encode_rollback_plan(RollbackPlan(LATER, "deltacommit", (request,))))
    return lambda: services(path).rollback(options=settings_for(path))


def clean(path: Path, partition: str, victim: str) -> Callable[[], object]:
    put(path, "clean", encode_clean_plan(CleanPlan("KEEP_LATEST_COMMITS", files={partition: (f"{path}/{victim}",)})))
    return lambda: services(path).clean(options=settings_for(path))


def compaction(path: Path, partition: str, victim: str) -> Callable[[], object]:
    folder, _, name = victim.rpartition("/")
    operation = CompactionOperation(folder if folder != "p1" else "..", "x", "1", name)
    put(path, "compaction", encode_compaction_plan(CompactionPlan((operation,))))
    return lambda: services(path).compact(options=settings_for(path))


def log_compaction(path: Path, partition: str, victim: str) -> Callable[[], object]:
    folder, _, name = victim.rpartition("/")
    operation = CompactionOperation(folder if folder != "p1" else "..", "x", "1", None, (name,))
    put(path, "logcompaction", encode_compaction_plan(CompactionPlan((operation,))))
    return lambda: services(path).run_pending(settings_for(path))


def clustering(path: Path, partition: str, victim: str) -> Callable[[], object]:
    folder = victim.rpartition("/")[0]
    slice_ = ClusteringSlice(folder if folder != "p1" else "..", "x", f"{path}/{victim}")
    body = encode_requested_replace(RequestedReplace("CLUSTER", ClusteringPlan((ClusteringGroup((slice_,)),))))
    put(path, "clustering" if version_of(path) == "9" else "replacecommit", body)
    return lambda: services(path).cluster(options=settings_for(path))


def savepoint(path: Path, partition: str, victim: str) -> Callable[[], object]:
    at, folder = state_of(path), victim.rpartition("/")[0]
    saved = SavepointMetadata({folder if folder != "p1" else "..": (victim.rpartition("/")[2],)})
    first = at.timeline.writes()[0].requested
    to_inflight(at.storage, at.config, Instant(first, "savepoint", State.REQUESTED))
    inflight = Instant(first, "savepoint", State.INFLIGHT)
    complete(at.storage, at.config, inflight, encode_savepoint(saved), lambda: PENDING)
    return lambda: services(path).restore(first, options=settings_for(path))


def commit_metadata(path: Path, partition: str, victim: str) -> Callable[[], object]:
    """The newest commit names the victim, and is rolled back."""
    at = state_of(path)
    newest = at.timeline.writes()[-1]
    file = path / at.config.timeline_folder / str(newest.file_name)
    metadata = decode_commit_metadata(read_instant_body(at.storage, at.config, newest))
    forged = "../x/" + FOREIGN if "p1/" in victim else victim
    stats = {
        name: tuple(replace(one, path=forged) for one in some)
        for name, some in metadata.partition_to_write_stats.items()
    }
    body = encode_commit_metadata(replace(metadata, partition_to_write_stats=stats), at.config.layout_version)
    file.write_bytes(body)
    return lambda: services(path).rollback(newest.requested, options=settings_for(path))


def marker(path: Path, partition: str, victim: str) -> Callable[[], object]:
    at = state_of(path)
    put(path, "deltacommit", b"", LATER)
    to_inflight(at.storage, at.config, Instant(LATER, "deltacommit", State.REQUESTED))
    folder = path / ".hoodie/.temp" / LATER
    folder.mkdir(parents=True)
    forged = "../x/" + FOREIGN if "p1/" in victim else victim
    (folder / "MARKERS.type").write_text("TIMELINE_SERVER_BASED")
    (folder / "MARKERS0").write_text(f"{forged}.marker.CREATE\n")
    return lambda: hf.write(plain_rows([1]), path, settings_for(path))


PLANS = [
    rollback,
    rollback_of_blocks,
    clean,
    compaction,
    log_compaction,
    clustering,
    savepoint,
    commit_metadata,
    marker,
]
SERVICES = (clean, compaction, log_compaction, clustering)
"""Services whose pending instants a repair removes."""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::hudi_fast.HudiWarning")
@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.__name__)
def test_a_plan_that_names_something_else_than_data_of_the_table_is_refused(
    plan: Callable[[Path, str, str], Callable[[], object]], table: Path
) -> None:
    base, rows = table.parent / "base", table_rows(table)
    (data,) = (one.name for one in (table / "p1").glob("*.parquet"))
    shutil.copytree(table, base)
    for name, (partition, victim) in VICTIMS.items():
        act = plan(table, partition, victim.format(data=data))
        before = snapshot(table.parent)
        with pytest.raises(hf.CorruptTableError, match="Nothing was"):
            act()
        after = snapshot(table.parent)
        gone = {one for one in before if after.get(one) != before[one] and "/timeline/" not in one}
        assert not gone, name
        if plan in SERVICES:
            services(table).repair()
            assert PENDING not in {one.requested for one in state_of(table).timeline.instants}
            assert table_rows(table) == rows, name
            hf.write(plain_rows([1], ts=9), table, settings_for(table))
        shutil.rmtree(table)
        shutil.copytree(base, table)


@pytest.mark.filterwarnings("ignore::hudi_fast.HudiWarning")
@pytest.mark.parametrize(
    ("instant", "action"),
    [("", "commit"), ("../metadata", "commit"), ("../../x", "commit"), ("1/2", "commit"), (LATER, "../x"), (LATER, "")],
)
def test_a_rollback_of_no_instant_is_refused(instant: str, action: str, table: Path) -> None:
    put(table, "rollback", encode_rollback_plan(RollbackPlan(instant, action)))
    before = snapshot(table.parent)
    with pytest.raises(hf.CorruptTableError, match="Nothing was deleted"):
        hf.write(plain_rows([1]), table, settings_for(table))
    assert snapshot(table.parent).items() >= before.items()


@pytest.mark.filterwarnings("ignore::hudi_fast.HudiWarning")
@pytest.mark.parametrize("partition", ["", ".hoodie", "p0/.hoodie", "..", "/tmp", "p0/../../x"])
def test_a_clean_deletes_no_folder_that_is_no_partition(partition: str, table: Path) -> None:
    plan = CleanPlan("KEEP_LATEST_COMMITS", partitions_to_be_deleted=(partition,))
    put(table, "clean", encode_clean_plan(plan))
    before = snapshot(table.parent)
    with pytest.raises(hf.CorruptTableError):
        services(table).clean(options=settings_for(table))
    assert snapshot(table.parent).items() >= before.items()


@pytest.mark.parametrize(
    "path",
    [
        FOREIGN,
        "p=1..2/" + FOREIGN,
        "a/b/.f_20200101000000000.log.1_0-1-0",
        ".f_20200101000000000.log.1_0-1-0.cdc",
        "ü/" + FOREIGN.replace("parquet", "hfile"),
    ],
)
def test_data_files_are_named(path: str, tmp_path: Path) -> None:
    assert named_file(Storage(tmp_path), path, "x") == path
