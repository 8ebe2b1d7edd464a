"""All services on one table: plans that find nothing to do, and plans of other services.

Modules: hudi_fast.table.recovery, hudi_fast.table.services.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import hudi_fast as hf
from hudi_fast.table.recovery import check_plan
from hudi_fast.table.services import TableServices
from tests.support.small_tables import listing, options, plain_rows

MERGE_ON_READ = {**options(), "hoodie.datasource.write.table.type": "MERGE_ON_READ"}


@pytest.fixture
def services(tmp_path: Path) -> TableServices:
    """The services of a table with one commit, where none is due."""
    hf.write(plain_rows(range(4)), tmp_path, MERGE_ON_READ)
    return hf.HudiTable.open(tmp_path).services


def test_services_that_are_not_due_plan_nothing_and_change_nothing(services: TableServices, tmp_path: Path) -> None:
    before = listing(tmp_path)
    for service in ("clean", "compact", "compact_logs"):
        assert getattr(services, f"plan_{service}")() is None
        assert getattr(services, f"schedule_{service}")() is None
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
    assert services.plan_cluster(options=wanted) is not None
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


def test_the_services_show_what_they_can_do(services: TableServices, tmp_path: Path) -> None:
    assert repr(services) == f"HudiTable({str(tmp_path)!r}).services"
    lines = str(services).splitlines()
    assert lines[0] == repr(services)
    assert any(line.split("  ")[1] == "clean()" and "Delete" in line for line in lines[1:])
    assert "<b>services</b>" in services._repr_html_()
    assert ">compact()<" in services._repr_html_()
