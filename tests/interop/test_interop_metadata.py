"""Metadata tables that hudi_fast builds and keeps up: Apache Hudi lists files through them, and writes on."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hudi_fast import HudiError
from tests.interop.sides import Sides, after_upsert, trip_options, trips
from tests.peer.client import RealHudi
from tests.support.instrumented_storage import FaultyStorage, RecordingStorage
from tests.support.metadata_checks import assert_metadata_true
from tests.support.small_tables import write_to

THROUGH = {"hoodie.metadata.enable": True}
RELEASES = [("hudi_12", 9), pytest.param("hudi_12", 8, marks=pytest.mark.long), ("hudi_12", 6), ("hudi_015", 6)]


def told_by_hudi(sides: Sides) -> None:
    """Hudi's own comparison of its metadata table with the folders finds nothing."""
    table = sides.in_catalog()
    differing = sides.hudi.sql(f"CALL validate_metadata_table_files(table => '{table}')")
    assert differing.num_rows == 0, differing.to_pylist()


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
