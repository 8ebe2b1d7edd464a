"""Metadata tables that hudi_fast builds and keeps up: Apache Hudi lists files through them, and writes on."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_fast import HudiError, HudiWarning
from hudi_fast.metadata_table.read import scan
from tests.interop.sides import Sides, after_upsert, data_columns, trip_options, trips
from tests.metadata_table.stored_metadata import metadata_at
from tests.peer.client import PeerError, RealHudi
from tests.support.instrumented_storage import FaultyStorage, RecordingStorage
from tests.support.interleaving import OCC
from tests.support.metadata_checks import assert_metadata_true
from tests.support.rows import assert_same_rows
from tests.support.sessions import CompactingBackend
from tests.support.small_tables import write_to

THROUGH = {"hoodie.metadata.enable": True}
UNLOCKED = {"hoodie.metadata.compact.max.delta.commits": "3", "hudi_fast.metadata.compact.without.lock": "true"}
EVERY_INDEX = {
    "hoodie.metadata.index.bloom.filter.enable": True,
    "hoodie.metadata.index.column.stats.enable": True,
    "hoodie.metadata.record.index.enable": True,
    "hoodie.metadata.record.index.min.filegroup.count": 2,
    "hoodie.metadata.global.record.level.index.min.filegroup.count": 2,
    "hoodie.metadata.compact.max.delta.commits": "3",
}
RELEASES = [
    ("hudi_12", 9),
    pytest.param("hudi_12", 8, marks=pytest.mark.long),
    pytest.param("hudi_12", 6, marks=pytest.mark.long),
    ("hudi_015", 6),
]


def told_by_hudi(sides: Sides) -> None:
    """Hudi's own comparison of its metadata table with the folders finds nothing."""
    table = sides.in_catalog()
    differing = sides.hudi.sql(f"CALL validate_metadata_table_files(table => '{table}')")
    assert differing.num_rows == 0, differing.to_pylist()


@pytest.mark.smoke("hudi_12-9")
@pytest.mark.parametrize(("release", "version"), RELEASES)
def test_turns_of_both_sides_keep_one_metadata_table(
    release: str, version: int, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    hudi: RealHudi = request.getfixturevalue(release)
    sides = Sides(hudi, tmp_path / "t", trip_options(version))
    rows = trips(range(40))
    sides.we_write(rows)
    built = set(assert_metadata_true(sides.path))
    assert built == {"files", "column_stats"} | ({"partition_stats"} if version > 6 else set())
    assert hudi.read(sides.path, THROUGH).num_rows == rows.num_rows
    told_by_hudi(sides)
    new = trips(range(30, 60), ts=5, note="by Hudi")
    sides.hudi_writes(new, more=THROUGH)
    rows = after_upsert(rows, new)
    assert_metadata_true(sides.path)
    new = trips(range(20, 50), ts=10, note="by us")
    sides.we_write(new)
    rows = after_upsert(rows, new)
    assert "files" in assert_metadata_true(sides.path)
    told_by_hudi(sides)
    sides.agree(rows)


@pytest.mark.parametrize("version", [9, pytest.param(6, marks=pytest.mark.long)])
def test_hudi_goes_on_where_we_rolled_back_and_compacted_the_metadata_table(
    version: int, hudi_12: RealHudi, tmp_path: Path
) -> None:
    often = {"hoodie.metadata.compact.max.delta.commits": "3"}
    sides = Sides(hudi_12, tmp_path / "t", {**trip_options(version), **often})
    rows = trips(range(20))
    sides.we_write(rows)
    for turn in range(4):
        new = trips(range(turn, turn + 10), ts=2 + turn, note=f"turn {turn}")
        sides.we_write(new)
        rows = after_upsert(rows, new)
    assert list((sides.path / ".hoodie/metadata/column_stats").glob("*.hfile"))
    sides.agree(rows)
    told_by_hudi(sides)
    new = trips(range(10, 30), ts=15, note="failed")
    settings = {**sides.options, "hoodie.datasource.write.operation": "upsert"}
    recorder = RecordingStorage(shutil.copytree(sides.path, tmp_path / "copy"))
    write_to(recorder, new, settings)
    last = max(call.number for call in recorder.calls if call.changes and call.path.endswith("commit"))
    with pytest.raises(HudiError):
        write_to(FaultyStorage(sides.path, at=last, kind="before", die=True), new, settings)
    sides.agree(rows)
    new = trips(range(12, 22), ts=18, note="after the rollback")
    sides.we_write(new)
    rows = after_upsert(rows, new)
    assert list((sides.path / ".hoodie").rglob("*.rollback"))
    sides.agree(rows)
    told_by_hudi(sides)
    new = trips(range(15, 40), ts=20, note="by Hudi")
    sides.hudi_writes(new, more=THROUGH)
    rows = after_upsert(rows, new)
    assert_metadata_true(sides.path)
    sides.agree(rows)


@pytest.mark.parametrize("kind", [pytest.param("COPY_ON_WRITE", marks=pytest.mark.long), "MERGE_ON_READ"])
def test_hudi_executes_a_compaction_of_the_metadata_table_that_we_are_executing(
    kind: str, hudi_12: RealHudi, tmp_path: Path
) -> None:
    """Without the lock; both write the same content, and Hudi is first to complete it.

    Hudi 1.2.0 fails if a pending compaction is its first use of a metadata table, so it writes the first rows.
    """
    options = {**trip_options(9), "hoodie.datasource.write.table.type": kind}
    sides = Sides(hudi_12, tmp_path / "t", options)
    rows = trips(range(20))
    sides.hudi_writes(rows, more=THROUGH)
    for turn in range(3):
        new = trips(range(turn, turn + 10), ts=2 + turn, note=f"turn {turn}")
        sides.we_write(new)
        rows = after_upsert(rows, new)
    timeline = sides.path / ".hoodie/metadata/.hoodie/timeline"
    theirs = trips(range(15, 30), ts=20, note="by Hudi")

    def hudi_goes_on() -> None:
        (requested,) = (one.name.partition(".")[0] for one in timeline.glob("*.compaction.inflight"))
        sides.hudi_writes(theirs, more=THROUGH)
        assert list(timeline.glob(f"{requested}_*.commit")), "Hudi did not execute the pending compaction"

    ours = trips(range(5), ts=10, note="by us")
    backend = CompactingBackend(hudi_goes_on)
    backend.write(sides.path, ours, {**options, **OCC, **UNLOCKED})
    assert backend.held == [False]
    assert len(list(timeline.glob("*.commit"))) == 1
    rows = after_upsert(after_upsert(rows, ours), theirs)
    assert_metadata_true(sides.path)
    told_by_hudi(sides)
    sides.agree(rows)
    for number, write in enumerate((sides.we_write, sides.hudi_writes)):
        new = trips(range(8, 12), ts=30 + number, note="afterwards")
        write(new)
        rows = after_upsert(rows, new)
        assert_metadata_true(sides.path)
        told_by_hudi(sides)
    sides.agree(rows)


@pytest.mark.long
def test_hudi_logs_beside_a_compaction_of_the_metadata_table_that_died(hudi_12: RealHudi, tmp_path: Path) -> None:
    options = trip_options(9)
    sides = Sides(hudi_12, tmp_path / "t", options)
    sides.hudi_writes(trips(range(20)), more=THROUGH)
    for turn in range(3):
        sides.we_write(trips(range(20), ts=2 + turn))
    rows = trips(range(20), ts=10)

    def fail() -> None:
        raise RuntimeError("the cluster has gone away")

    with pytest.warns(HudiWarning, match="gone away"):
        CompactingBackend(fail).write(sides.path, rows, {**options, **OCC, **UNLOCKED})
    sides.agree(rows)
    new = trips(range(15, 30), ts=20, note="by Hudi")
    sides.hudi_writes(new, more=THROUGH)
    rows = after_upsert(rows, new)
    assert_metadata_true(sides.path)
    told_by_hudi(sides)
    sides.agree(rows)


def loads_all_of_it(hudi: RealHudi, path: Path) -> pa.Table:
    """Hudi loads the metadata table as a table, and finds the keys that we do; the rows that it reads through it.

    It reads the table through its metadata table first: ``HoodieMetadataPayload`` of 1.2.0 compares schemas by
    identity, and knows its own only where its class was initialised before a stored one was read.
    """
    rows = hudi.read(path, THROUGH)
    table = metadata_at(path)
    keys = {key for name in table.partitions for key in scan(table, name)["key"].to_pylist()}
    assert set(hudi.read(path / ".hoodie/metadata")["key"].to_pylist()) == keys
    return rows


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        pytest.param(6, "COPY_ON_WRITE", id="v6", marks=pytest.mark.long),
        pytest.param(8, "MERGE_ON_READ", id="v8"),
        pytest.param(9, "COPY_ON_WRITE", id="v9"),
    ],
)
def test_hudi_loads_a_metadata_table_of_ours_as_a_table(
    version: int, kind: str, hudi_12: RealHudi, tmp_path: Path
) -> None:
    options = {**trip_options(version), **EVERY_INDEX, "hoodie.datasource.write.table.type": kind}
    sides = Sides(hudi_12, tmp_path / "t", options)
    for turn in range(5):  # of which some compact it
        sides.we_write(trips(range(turn, turn + 10), ts=turn))
        if turn in (0, 4):
            loads_all_of_it(hudi_12, sides.path)


@pytest.mark.long
@pytest.mark.peer
def test_a_process_of_hudi_1_2_that_begins_with_a_metadata_table_cannot_load_any(java: str, tmp_path: Path) -> None:
    sides = Sides(RealHudi("1.2.0"), tmp_path / "t", {**trip_options(9), **EVERY_INDEX})
    with sides.hudi:
        sides.hudi_writes(trips(range(5)), more=THROUGH)
    for turn in range(1, 3):
        sides.we_write(trips(range(5), ts=turn))
    with sides.hudi:  # a new process
        for _ in range(2):
            with pytest.raises(PeerError, match="Index 7 out of bounds for length 7"):
                sides.hudi.read(sides.path / ".hoodie/metadata")
            assert sides.hudi.read(sides.path, THROUGH).num_rows == 5


@pytest.mark.parametrize(
    ("kind", "turns"),
    [
        pytest.param("COPY_ON_WRITE", "we 0.15 we 1.2 we", id="begun-by-us", marks=pytest.mark.long),
        pytest.param("MERGE_ON_READ", "0.15 we we we 0.15 we 1.2", id="begun-by-0.15", marks=pytest.mark.long),
        pytest.param("MERGE_ON_READ", "1.2 we 0.15 we", id="begun-by-1.2"),
    ],
)
def test_both_releases_load_and_continue_a_metadata_table_of_version_6(
    kind: str, turns: str, hudi_12: RealHudi, hudi_015: RealHudi, tmp_path: Path
) -> None:
    """Of what release 0.15 wrote last, release 1.2 reads the rows, and cannot load the metadata table."""
    options = {**trip_options(6), **EVERY_INDEX, "hoodie.datasource.write.table.type": kind}
    new, old = (Sides(hudi, tmp_path / "t", options) for hudi in (hudi_12, hudi_015))
    rows = None
    for turn, who in enumerate(turns.split()):
        more = trips(range(turn * 5, turn * 5 + 20), ts=turn + 1, note=who)
        {"we": new.we_write, "0.15": old.hudi_writes, "1.2": new.hudi_writes}[who](more, more=THROUGH)
        rows = more if rows is None else after_upsert(rows, more)
        assert {"record_index", "bloom_filters"} <= set(assert_metadata_true(new.path))
        found = [loads_all_of_it(hudi_015, old.path)]
        if who == "0.15":
            found.append(hudi_12.read(new.path, THROUGH))
            with pytest.raises(PeerError, match="Index 6 out of bounds for length 6"):
                hudi_12.read(new.path / ".hoodie/metadata")
        else:
            found.append(loads_all_of_it(hudi_12, new.path))
        for one in found:
            assert_same_rows(data_columns(one), rows, key=("id",))
