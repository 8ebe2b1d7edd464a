"""The verbs of all services on one table: plans that find nothing to do, and plans of other services."""

from __future__ import annotations

from pathlib import Path

import pytest

import hudi_fast as hf
from hudi_fast.services.archiving.verbs import ArchivingVerbs
from hudi_fast.services.cleaning.verbs import CleaningVerbs
from hudi_fast.services.clustering.verbs import ClusteringVerbs
from hudi_fast.services.compaction.verbs import CompactionVerbs
from hudi_fast.services.indexing.verbs import IndexVerbs
from hudi_fast.services.recovery.verbs import RecoveryVerbs
from hudi_fast.services.repairing.verbs import RepairVerbs
from hudi_fast.services.scheduling.verbs import SchedulingVerbs
from hudi_fast.services.table_services import TableServices
from hudi_fast.services.upgrading.verbs import UpgradeVerbs
from hudi_fast.services.validation.verbs import ValidationVerbs
from hudi_fast.services.verbs import ServiceVerbs, check_plan
from tests.support.small_tables import listing, options, plain_rows

VERBS = [
    *(ArchivingVerbs, CleaningVerbs, ClusteringVerbs, CompactionVerbs, IndexVerbs),
    *(RecoveryVerbs, RepairVerbs, SchedulingVerbs, UpgradeVerbs, ValidationVerbs),
]
MERGE_ON_READ = {**options(), "hoodie.datasource.write.table.type": "MERGE_ON_READ"}


@pytest.fixture
def services(tmp_path: Path) -> TableServices:
    """The services of a table with one commit, where none is due."""
    hf.write(plain_rows(range(4)), tmp_path, MERGE_ON_READ)
    return hf.HudiTable.open(tmp_path).services


@pytest.mark.parametrize("verbs", VERBS)
def test_table_services_join_the_verbs_of_each_service(verbs: type[ServiceVerbs]) -> None:
    assert issubclass(TableServices, verbs)
    public = {name for name in vars(verbs) if not name.startswith("_")}
    assert public
    others = {name for other in VERBS if other is not verbs for name in vars(other) if not name.startswith("_")}
    assert public & others == set()


def test_services_that_are_not_due_plan_nothing_and_change_nothing(services: TableServices, tmp_path: Path) -> None:
    before = listing(tmp_path)
    assert services.plan_clean(dry_run=True) is None
    assert services.plan_compact() is None
    assert services.plan_log_compact() is None
    assert services.plan_archive().instants == ()
    assert services.plan_rollback().instants == ()
    assert services.plan_repair().to_arrow().num_rows == 0
    assert services.pending().num_rows == 0
    assert services.pending_indexes() == []
    assert services.run_pending() == []
    assert services.savepoints().num_rows == 0
    assert listing(tmp_path) == before


def test_a_clustering_can_be_looked_at_without_planning_it(services: TableServices, tmp_path: Path) -> None:
    before = listing(tmp_path)
    wanted = {"hoodie.clustering.plan.strategy.single.group.clustering.enabled": "true"}
    assert services.plan_cluster(options=wanted, dry_run=True) is not None
    assert listing(tmp_path) == before


def test_an_upgrade_to_the_present_version_has_no_steps(services: TableServices) -> None:
    plan = services.plan_upgrade(9)
    assert (plan.before, plan.after, plan.steps) == (9, 9, ())


def test_a_valid_table_has_no_differences(services: TableServices) -> None:
    found = services.validate()
    assert found.ok
    assert found.differences.num_rows == 0


@pytest.mark.parametrize("verb", ["compact", "cluster", "clean", "archive", "repair", "restore", "upgrade"])
def test_a_plan_of_another_service_is_refused(services: TableServices, verb: str) -> None:
    arguments = {"restore": ("20240101000000000",), "upgrade": (9,)}.get(verb, ())
    with pytest.raises(TypeError, match=r"plan must be a .*, not a str"):
        getattr(services, verb)(*arguments, plan="a plan")


def test_no_plan_is_no_wrong_plan() -> None:
    check_plan(None, int)
    check_plan(3, int)
    with pytest.raises(TypeError, match="plan must be a int, not a str"):
        check_plan("3", int)
