"""Times of before a downgrade: the slices of that time are those in the plans of the services that ended them."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

import hudi_fast as hf
from hudi_fast.storage.base import Storage
from hudi_fast.view.planned_files import PlannedSlice, PlannedSlices
from hudi_fast.view.table_state import load_state
from tests.support.mor_tables import mor_options
from tests.support.small_tables import plain_rows, rows_of, table_rows

pytestmark = pytest.mark.slow

QUIET = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false", "hoodie.compact.inline": "false"}
COMPACT = {**QUIET, "hoodie.compact.inline.max.delta.commits": "1"}
SORTED = {**QUIET, "hoodie.clustering.plan.strategy.sort.columns": "text"}


class Life:
    """A merge-on-read table, and what a snapshot read after each of its writes."""

    def __init__(self, path: Path, **changes: Any) -> None:
        self.path = path
        self.changes = changes
        self.ts = 0
        self.snapshots: dict[str, dict[str, tuple[Any, ...]]] = {}

    @property
    def table(self) -> hf.HudiTable:
        return hf.HudiTable.open(self.path)

    def write(self, numbers: Any, version: str = "9") -> None:
        self.ts += 1
        settings = mor_options(QUIET, table_version=version, **self.changes)
        self.keep(hf.write(plain_rows(numbers, ts=self.ts, text=f"t{self.ts}-"), self.path, settings).instant)

    def delete(self, numbers: Any, version: str = "9") -> None:
        self.ts += 1
        settings = mor_options(QUIET, table_version=version, operation="delete", **self.changes)
        self.keep(hf.write(plain_rows(numbers, ts=self.ts), self.path, settings).instant)

    def keep(self, instant: str) -> None:
        assert instant
        self.snapshots[instant] = table_rows(self.path)

    def check(self) -> None:
        """Each earlier time is answered as it was then."""
        for instant, rows in self.snapshots.items():
            assert rows_of(self.table.to_arrow(as_of=instant)) == rows, instant


def lived(path: Path) -> Life:
    """Writes, deletes, compactions and a clustering in version 9."""
    life = Life(path)
    life.write(range(8))
    life.write(range(2, 5))
    life.delete([3])
    life.keep(life.table.services.compact(COMPACT).instant)
    life.write(range(6, 12))
    life.write([0, 3])
    return life


@pytest.mark.slow
def test_every_time_of_before_a_downgrade_is_answered_and_of_before_the_upgrade_after_it(tmp_path: Path) -> None:
    life = lived(tmp_path / "t")
    life.check()
    life.table.services.upgrade(6)
    life.check()
    life.write(range(1, 4), "6")
    life.write([20, 21], "6")
    life.keep(life.table.services.compact(COMPACT).instant)
    life.write([1, 20], "6")
    life.check()
    life.table.services.upgrade(9)
    life.check()
    life.write([1, 5, 20])
    life.table.services.upgrade(6)
    life.check()


@pytest.mark.slow
def test_file_groups_that_a_clustering_replaced_are_read_as_of_before_it(tmp_path: Path) -> None:
    life = lived(tmp_path / "t")
    life.keep(life.table.services.cluster(SORTED).instant)
    life.write(range(4))
    life.table.services.upgrade(6)
    life.check()


@pytest.mark.slow
def test_file_groups_of_log_files_only_are_read_as_of_before_a_downgrade(tmp_path: Path) -> None:
    life = Life(tmp_path / "t", index="BUCKET")
    life.write(range(8))
    life.write(range(2, 5))
    life.write(range(4, 9))
    life.table.services.upgrade(6)
    life.check()
    life.write([1, 2], "6")
    life.check()


@pytest.mark.slow
def test_a_copied_table_is_answered_too(tmp_path: Path) -> None:
    """Plans tell the slices, not the modification times, which a copy does not keep."""
    life = lived(tmp_path / "t")
    life.table.services.upgrade(6)
    for file in (tmp_path / "t" / ".hoodie").iterdir():
        if file.is_file():
            file.touch()
    life.check()


@pytest.mark.slow
def test_a_time_of_which_files_were_cleaned_is_refused_by_their_names(tmp_path: Path) -> None:
    life = lived(tmp_path / "t")
    before = [*life.snapshots][-1]
    life.table.services.upgrade(6)
    listed = {"hoodie.metadata.enable": "false"}  # the metadata table does not know what the test deletes
    log = next(path for path in (tmp_path / "t" / "p0").iterdir() if f"_{before}.log." in path.name)
    kept = log.read_bytes()
    log.unlink()
    with pytest.raises(hf.ConfigError, match=f"{log.name} in partition 'p0' has been cleaned since"):
        hf.read(life.path, listed, as_of=before)
    log.write_bytes(kept)
    bases = {path.stem.rpartition("_")[2]: path for path in (tmp_path / "t" / "p0").glob("*.parquet")}
    base = bases[max(instant for instant in bases if instant <= before)]
    base.unlink()
    with pytest.raises(hf.ConfigError, match=f"{base.name} in partition 'p0' has been cleaned since"):
        hf.read(life.path, listed, as_of=before)


@pytest.mark.slow
def test_without_the_plan_the_time_is_refused(tmp_path: Path) -> None:
    life = lived(tmp_path / "t")
    before = [*life.snapshots][-1]
    life.table.services.upgrade(6)
    compaction = life.table.history()["instant"].to_pylist()[-1]
    (tmp_path / "t" / ".hoodie" / f"{compaction}.compaction.requested").unlink()
    with pytest.raises(hf.ConfigError, match="downgraded to version 6, and the timeline has no plan any more"):
        life.table.to_arrow(as_of=before)
    assert rows_of(life.table.to_arrow(as_of=compaction)) == life.snapshots[before]


def test_plans_are_found_by_instant_and_group(tmp_path: Path) -> None:
    life = lived(tmp_path / "t")
    life.table.services.upgrade(6)
    state = load_state(Storage(tmp_path / "t"))
    assert state.view.planned == PlannedSlices(state.storage, ".hoodie")
    found = pickle.loads(pickle.dumps(state.view.planned))
    compaction = life.table.history()["instant"].to_pylist()[-1]
    stat = next(entry.path for entry in state.storage.list_dir("p0") if f"_{compaction}." in entry.name)
    file_id = Path(stat).name.split("_")[0]
    planned = found.ended_by(compaction, "p0", file_id)
    assert isinstance(planned, PlannedSlice)
    assert planned.base_file.startswith(file_id)
    assert planned.log_files
    assert found.ended_by(compaction, "p9", file_id) is None
    assert found.ended_by("20200101000000000", "p0", file_id) is None
    assert load_state(Storage(tmp_path / "t"), as_of=compaction).view.planned is not None
