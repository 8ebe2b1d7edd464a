"""Plans that nobody could carry out, and plans that are none: refused by name, and nothing is written."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

import pytest

import hudi_fast as hf
from tests.support.mor_tables import mor_options
from tests.support.small_tables import listing, options, plain_rows

SORT = "hoodie.clustering.plan.strategy.sort.columns"


@pytest.fixture
def table(tmp_path):
    for ts in (1, 2):
        hf.write(plain_rows(range(6), ts=ts), tmp_path / "t", options())
    return hf.HudiTable.open(tmp_path / "t")


@pytest.mark.slow("plan_cluster")
@pytest.mark.parametrize("verb", ["plan_cluster", "schedule_cluster"])
def test_a_clustering_by_a_column_that_is_not_there_is_not_planned(table, tmp_path, verb):
    before = listing(tmp_path)
    with pytest.raises(hf.ConfigError, match=r"no column 'town' to sort by; the table has .*rolled back"):
        getattr(table.services, verb)({SORT: "town"})
    assert listing(tmp_path) == before


def test_a_clustering_by_a_column_without_order_is_not_planned(tmp_path):
    rows = plain_rows(range(4))
    hf.write(rows.append_column("tags", [[["x"]] * 4]), tmp_path / "t", options())
    before = listing(tmp_path)
    with pytest.raises(hf.UnsupportedFeatureError, match="sorted by 'tags', whose type is list"):
        hf.HudiTable.open(tmp_path / "t").services.cluster({SORT: "tags"})
    assert listing(tmp_path) == before


def test_meta_columns_can_be_sorted_by(table):
    assert table.services.cluster({SORT: "_hoodie_record_key"}).file_groups == 2


@pytest.mark.slow(but="index")
@pytest.mark.parametrize("service", ["clean", "compact", "compact_logs", "cluster", "index"])
def test_a_look_writes_nothing_and_cannot_be_executed(tmp_path, service):
    for ts in range(1, 7):
        hf.write(plain_rows(range(6), ts=ts), tmp_path / "t", {**mor_options(), "hoodie.compact.inline": "false"})
    services = hf.HudiTable.open(tmp_path / "t").services
    if service == "clean":
        services.compact()
        hf.write(plain_rows(range(6), ts=7), tmp_path / "t", {**mor_options(), "hoodie.clean.automatic": "false"})
    arguments = ("record_index",) if service == "index" else ()
    settings = {
        "clean": {"hoodie.clean.commits.retained": "1"},
        "compact_logs": {"hoodie.log.compaction.blocks.threshold": "2"},
    }
    before = listing(tmp_path)
    looked = getattr(services, f"plan_{service}")(*arguments, options=settings.get(service))
    assert (looked is not None, looked.instant) == (True, "")
    assert listing(tmp_path) == before
    said = r"This plan is not on the timeline: plan_compact\(\), plan_cluster\(\), \.\.\. only look"
    with pytest.raises(hf.ConfigError, match=said):
        getattr(services, service)(plan=looked)
    assert listing(tmp_path) == before
    scheduled = getattr(services, f"schedule_{service}")(*arguments, options=settings.get(service))
    assert services.pending().num_rows == 1
    assert getattr(services, service)(plan=scheduled).instant
    assert services.pending().num_rows == 0


@pytest.mark.slow(
    but=(
        "upgrade-arguments7-UpgradePlan",
        "repair-arguments8-RepairPlan",
        "index-arguments9-ScheduledIndex",
        "clean-arguments0-ScheduledClean",
    )
)
@pytest.mark.parametrize(
    ("verb", "arguments", "expected"),
    [
        ("clean", (), "ScheduledClean"),
        ("archive", (), "ArchivePlan"),
        ("compact", (), "ScheduledCompaction"),
        ("compact_logs", (), "ScheduledCompaction"),
        ("cluster", (), "ScheduledClustering"),
        ("rollback", (), "PlannedRollback"),
        ("restore", ("20240101000000000",), "PlannedRestore"),
        ("upgrade", (8,), "UpgradePlan"),
        ("repair", (), "RepairPlan"),
        ("index", ("column_stats",), "ScheduledIndex"),
    ],
)
def test_a_plan_of_another_service_is_refused(table, verb, arguments, expected):
    with pytest.raises(TypeError, match=f"plan must be a {expected}, not a dict"):
        getattr(table.services, verb)(*arguments, plan={})


@pytest.mark.slow(but="compaction-rows2")
@pytest.mark.parametrize(
    ("action", "rows"), [("clean", options()), ("clustering", options()), ("compaction", mor_options())]
)
def test_a_plan_that_is_cut_off_is_named_with_what_to_do(tmp_path, action, rows):
    for ts in (1, 2, 3):
        hf.write(plain_rows(range(6), ts=ts), tmp_path / "t", {**rows, "hoodie.compact.inline": "false"})
    services = hf.HudiTable.open(tmp_path / "t").services
    plan = {
        "clean": lambda: services.schedule_clean({"hoodie.clean.commits.retained": 1}),
        "clustering": services.schedule_cluster,
        "compaction": services.schedule_compact,
    }[action]()
    file = tmp_path / f"t/.hoodie/timeline/{plan.instant}.{action}.requested"
    file.write_bytes(file.read_bytes()[:40])
    with pytest.raises(hf.CorruptTableError, match=plan.instant) as met:
        {"clean": services.clean, "clustering": services.cluster, "compaction": services.compact}[action]()
    note = f"It is the plan of the pending {action} {plan.instant} of {tmp_path}/t."
    assert [one.startswith(note) for one in met.value.__notes__] == [True]
    services.repair()
    assert services.pending().num_rows == 0


@pytest.fixture
def open_folder():
    """A folder that every user of the machine can look into, unlike those of pytest."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@contextlib.contextmanager
def without_rights(folder):
    """Nothing may be written below the folder, whoever runs the tests."""
    if os.geteuid() == 0:
        os.seteuid(65534)
        try:
            yield
        finally:
            os.seteuid(0)
        return
    folder.chmod(0o555)
    try:
        yield
    finally:
        folder.chmod(0o755)


def test_a_table_that_must_not_be_written_can_be_looked_at_and_says_so_otherwise(open_folder):
    path = open_folder / "t"
    for ts in (1, 2, 3):
        hf.write(plain_rows(range(6), ts=ts), path, options())
    table = hf.HudiTable.open(path)
    services, saved = table.services, table.services.savepoint().instant
    for file in (path / ".hoodie/.locks").iterdir():
        file.unlink()
    one = {"hoodie.clean.commits.retained": 1}
    with without_rights(path / ".hoodie/.locks"):
        assert services.plan_clean(one).files == 2
        assert services.plan_cluster().file_groups == 2
        assert services.plan_restore(saved).instants == ()
        assert table.to_arrow().num_rows == 6
        calls = [lambda: services.clean(one), services.cluster, services.savepoint, services.rollback]
        calls += [lambda: services.restore(saved), lambda: services.upgrade(8), services.repair]
        for call in calls:
            with pytest.raises(hf.LockError, match=rf"lock of the table {path} cannot be acquired.*\.locks/hudi"):
                call()
