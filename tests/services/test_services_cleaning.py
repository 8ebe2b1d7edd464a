"""Cleans: what each policy keeps, what nothing may delete, and what queries see afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

import hudi_fast as hf
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.instants import Instant, State
from hudi_fast.timeline.plans import CleanPlan, encode_clean_plan
from hudi_fast.timeline.transition import create_requested
from hudi_fast.view.table_state import load_state
from tests.services.clean_tables import (
    COMMITS,
    VERSIONS,
    clean_metadata,
    data_files,
    drop_savepoint,
    save,
    services,
    write_times,
    writes,
)
from tests.support.metadata_checks import assert_metadata_true
from tests.support.mor_tables import log_files
from tests.support.small_tables import listing, plain_rows, rows_of, table_rows

KINDS = [("9", True), ("9", False), ("8", True), ("6", True), ("6", False)]


@pytest.mark.slow
@pytest.mark.parametrize(("version", "metadata"), KINDS)
def test_commits_that_are_retained_stay_readable_and_older_files_go(
    version: str, metadata: bool, tmp_path: Path
) -> None:
    settings = writes(version, metadata)
    times = write_times(tmp_path, 6, settings)
    rows, before = table_rows(tmp_path), listing(tmp_path)
    looked = services(tmp_path).plan_clean({**settings, COMMITS: "2"})
    assert looked is not None
    assert (looked.instant, looked.files) == ("", 6)
    assert listing(tmp_path) == before
    done = services(tmp_path).clean({**settings, COMMITS: "2"})
    assert (done.files_deleted, done.files_failed, done.bytes_deleted) == (6, 0, looked.bytes)
    assert looked.bytes == sum(looked.to_arrow()["bytes"].to_pylist()) > 0
    assert done.earliest_retained == times[4]
    # The newest slice before the earliest retained commit is what that commit's older files are.
    assert data_files(tmp_path) == {"p0": times[3:], "p1": times[3:]}
    assert table_rows(tmp_path) == rows
    assert rows_of(hf.HudiTable.open(tmp_path).to_arrow(as_of=times[4]))["k00001"] == ("p1", 5, "t5-1")
    with pytest.raises(hf.ConfigError, match="Cleaner cleaned up"):
        hf.HudiTable.open(tmp_path).to_arrow(as_of=times[3])
    assert bool(assert_metadata_true(tmp_path)) == metadata
    again = services(tmp_path).clean({**settings, COMMITS: "2"})
    assert (again.instant, again.files_deleted, again.instants) == ("", 0, ())
    write_times(tmp_path, 1, settings, first=9)
    assert services(tmp_path).clean({**settings, COMMITS: "2"}).files_deleted == 2
    assert bool(assert_metadata_true(tmp_path)) == metadata


@pytest.mark.slow(but="9-False")
@pytest.mark.parametrize(("version", "metadata"), KINDS)
def test_file_versions_are_kept_by_number_and_times_that_saw_others_are_refused(
    version: str, metadata: bool, tmp_path: Path
) -> None:
    settings = writes(version, metadata)
    times = write_times(tmp_path, 4, settings)
    alone = hf.write(plain_rows([1], ts=9, text="z"), tmp_path, settings).instant  # partition p1 alone
    done = services(tmp_path).clean({**settings, VERSIONS: "2"})
    assert (done.files_deleted, done.earliest_retained) == (5, "")
    assert data_files(tmp_path) == {"p0": times[2:], "p1": [times[3], alone]}
    assert clean_metadata(tmp_path, done.instant).partitions[0].policy == "KEEP_LATEST_FILE_VERSIONS"
    table = hf.HudiTable.open(tmp_path)
    assert table_rows(tmp_path)["k00001"][1:] == (9, "z1")
    assert rows_of(table.to_arrow(as_of=times[3]))["k00001"][1:] == (4, "t4-1")
    for gone in times[:3]:
        with pytest.raises(hf.ConfigError, match="Cleaner cleaned up"):
            table.to_arrow(as_of=gone)
    assert bool(assert_metadata_true(tmp_path)) == metadata


@pytest.mark.slow
@pytest.mark.parametrize("version", ["9", "6"])
def test_a_savepoint_keeps_its_files_until_it_is_deleted(version: str, tmp_path: Path) -> None:
    settings = writes(version)
    times = write_times(tmp_path, 2, settings)
    save(tmp_path, times[1])
    times += write_times(tmp_path, 4, settings, first=3)
    done = services(tmp_path).clean({**settings, COMMITS: "1"})
    assert done.files_deleted == 6
    assert data_files(tmp_path)["p0"] == [times[1], times[4], times[5]]
    recorded = clean_metadata(tmp_path, done.instant)
    assert recorded.extra_metadata["savepointed_timestamps"] == times[1]
    assert rows_of(hf.HudiTable.open(tmp_path).to_arrow(as_of=times[1]))["k00000"][1] == 2
    # No commit since: only that the savepoint is gone leads there.
    drop_savepoint(tmp_path, times[1])
    assert services(tmp_path).clean({**settings, COMMITS: "1"}).files_deleted == 2
    assert data_files(tmp_path)["p1"] == times[4:]
    assert_metadata_true(tmp_path)


@pytest.mark.slow(but="9-False")
@pytest.mark.parametrize(("version", "metadata"), KINDS)
def test_replaced_groups_go_and_so_does_a_partition_that_is_left_empty(
    version: str, metadata: bool, tmp_path: Path
) -> None:
    settings = writes(version, metadata)
    write_times(tmp_path, 2, settings)
    gone = {**settings, "hoodie.datasource.write.operation": "delete_partition"}
    gone["hoodie.datasource.write.partitions.to.delete"] = "p1"
    hf.write(plain_rows([]), tmp_path, gone)
    first = services(tmp_path).clean({**settings, COMMITS: "1"})
    assert first.partitions_deleted == ()  # the commit before the replacement is the earliest retained one
    assert (tmp_path / "p1").exists()
    last = hf.write(plain_rows([0], ts=9), tmp_path, settings).instant
    done = services(tmp_path).clean({**settings, COMMITS: "1"})
    assert (done.partitions_deleted, done.earliest_retained) == (("p1",), last)
    assert not (tmp_path / "p1").exists()
    assert bool(assert_metadata_true(tmp_path)) == metadata
    hf.write(plain_rows([1, 3], ts=10, text="again"), tmp_path, settings)
    assert table_rows(tmp_path)["k00003"] == ("p1", 10, "again3")
    assert bool(assert_metadata_true(tmp_path)) == metadata


@pytest.mark.slow
@pytest.mark.parametrize("version", ["9", "8", "6"])
def test_log_files_go_with_their_slice_and_a_pending_compaction_holds_its_own(version: str, tmp_path: Path) -> None:
    settings = writes(version, mor=True)
    write_times(tmp_path, 3, settings)
    planned = services(tmp_path).schedule_compact(settings)
    assert planned is not None
    write_times(tmp_path, 3, settings, first=4)
    rows, logs = table_rows(tmp_path), log_files(tmp_path)
    for policy in ({COMMITS: "1"}, {VERSIONS: "1"}):
        assert services(tmp_path).clean({**settings, **policy}).files_deleted == 0
    services(tmp_path).compact(settings, plan=planned)
    # The compaction is the fourth of seven by its requested time.
    assert services(tmp_path).clean({**settings, COMMITS: "4"}).files_deleted == 0
    write_times(tmp_path, 1, settings, first=8)
    rows = table_rows(tmp_path)
    done = services(tmp_path).clean({**settings, VERSIONS: "1"})
    assert done.files_deleted == 6  # of each group a base file and two log files
    assert len(log_files(tmp_path)) == len(logs) + 2 - 4
    assert table_rows(tmp_path) == rows
    assert all(one[:17] >= planned.instant for some in data_files(tmp_path).values() for one in some)
    assert_metadata_true(tmp_path)


@pytest.mark.slow
def test_a_clean_that_waits_is_carried_out_first_and_by_itself_if_asked(tmp_path: Path) -> None:
    settings = {**writes(), COMMITS: "2"}
    write_times(tmp_path, 5, settings)
    planned = services(tmp_path).schedule_clean(settings)
    assert planned is not None
    assert services(tmp_path).schedule_clean(settings) == planned
    write_times(tmp_path, 1, settings, first=9)
    assert services(tmp_path).clean(settings, pending_only=True).instants == (planned.instant,)
    with pytest.raises(hf.ServiceTakenError, match="is not pending: it was completed"):
        services(tmp_path).clean(settings, plan=planned)
    planned = services(tmp_path).schedule_clean(settings)
    assert planned is not None
    write_times(tmp_path, 1, settings, first=10)
    done = services(tmp_path).clean(settings)
    assert done.instants[0] == planned.instant
    assert len(done.instants) == 2
    assert_metadata_true(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("version", ["9", "6"])
def test_a_plan_that_no_longer_fits_is_refused_and_passed_over_by_a_plain_clean(version: str, tmp_path: Path) -> None:
    settings = {**writes(version), VERSIONS: "1"}
    times = write_times(tmp_path, 3, settings)
    planned = services(tmp_path).schedule_clean(settings)
    assert planned is not None
    assert planned.files == 4
    save(tmp_path, times[1])  # files of the plan are of the savepoint
    before = listing(tmp_path)
    with pytest.raises(hf.CommitConflictError, match=f"{planned.instant}.*2 files that must stay.*savepoint"):
        services(tmp_path).clean(settings, plan=planned)
    assert listing(tmp_path) == before
    with pytest.warns(hf.HudiWarning, match="2 files that must stay"):
        done = services(tmp_path).clean(settings)
    assert (done.files_deleted, done.files_failed) == (2, 2)
    assert data_files(tmp_path)["p0"] == times[1:]
    assert rows_of(hf.HudiTable.open(tmp_path).to_arrow(as_of=times[1]))["k00000"][1] == 2
    assert_metadata_true(tmp_path)
    drop_savepoint(tmp_path, times[1])
    assert services(tmp_path).clean(settings).files_deleted == 2


def test_a_plan_whose_files_became_the_newest_again_is_refused(tmp_path: Path) -> None:
    settings = {**writes(metadata=False), VERSIONS: "1"}
    write_times(tmp_path, 1, settings)
    newest = write_times(tmp_path, 1, settings, first=2)[0]
    planned = services(tmp_path).schedule_clean(settings)
    assert planned is not None
    for file in [*tmp_path.glob(f".hoodie/timeline/{newest}*"), *tmp_path.glob(f"p?/*_{newest}.parquet")]:
        file.unlink()  # as a rollback of the newest commit does
    rows = table_rows(tmp_path)
    with pytest.raises(hf.CommitConflictError, match="newest slice of its file group"):
        services(tmp_path).clean(settings, plan=planned)
    assert table_rows(tmp_path) == rows


@pytest.mark.slow("outside", "other partition")
@pytest.mark.parametrize("damage", ["outside", "no data file", "other partition", "the table itself"])
def test_a_plan_that_names_what_is_no_data_file_of_the_table_deletes_nothing(damage: str, tmp_path: Path) -> None:
    settings = writes()
    write_times(tmp_path / "t", 2, settings)
    storage = Storage(tmp_path / "t")
    name = next((tmp_path / "t/p0").glob("*.parquet")).name
    plans = {
        "outside": CleanPlan("KEEP_LATEST_COMMITS", files={"p0": (f"{tmp_path}/p0/{name}",)}),
        "no data file": CleanPlan("KEEP_LATEST_COMMITS", files={"": (storage.absolute(".hoodie/hoodie.properties"),)}),
        "other partition": CleanPlan("KEEP_LATEST_COMMITS", files={"p1": (storage.absolute(f"p0/{name}"),)}),
        "the table itself": CleanPlan("KEEP_LATEST_COMMITS", partitions_to_be_deleted=("../t",)),
    }
    requested = Instant("20300101000000000", "clean", State.REQUESTED)
    create_requested(storage, load_state(storage).config, requested, encode_clean_plan(plans[damage]))
    before = listing(tmp_path)
    with pytest.raises(hf.CorruptTableError, match="Nothing was"):
        services(storage).clean(settings)
    assert listing(tmp_path) == before
