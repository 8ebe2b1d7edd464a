"""Executors, Python workers and drivers of a standalone cluster are killed while they write: no row is lost or doubled.

``make scale`` runs hundreds of such writes; :mod:`tests.cluster.campaign` describes them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.campaign import STAGES, Tally, run_history
from tests.cluster.processes import Application
from tests.servers.spark_cluster import spark_cluster

pytestmark = pytest.mark.cluster

COPY_ON_WRITE, MERGE_ON_READ = 6, 7
"""Seeds whose tables are of that type."""


@pytest.fixture(scope="module")
def application(java: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Application]:
    folder = tmp_path_factory.mktemp("cluster")
    with spark_cluster(folder / "cluster") as cluster:
        running = Application(cluster, folder / "drivers.log")
        yield running
        running.kill()


@pytest.mark.timeout(900)
def test_a_driver_killed_at_any_stage_leaves_the_rows_before_or_after_its_write(
    application: Application, tmp_path: Path
) -> None:
    killed_at_stages(application, tmp_path, ["mid-file", "reconciled", "completed", "begun", "rolling back"])


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_driver_killed_at_every_stage_in_turn_leaves_the_rows_before_or_after_its_write(
    application: Application, tmp_path: Path
) -> None:
    killed_at_stages(application, tmp_path, [*STAGES, "begun", "rolling back"])


def killed_at_stages(application: Application, tmp_path: Path, stages: list[str]) -> None:
    """Writes to one table, each with a driver that is killed. ``rolling back`` needs a failed write before it."""
    tally = Tally()
    faults = [f"driver: {stage}" for stage in stages]
    run_history(application, tmp_path, COPY_ON_WRITE, tally, ["none", "none", *faults])
    assert tally.faulted == len(faults), tally


@pytest.mark.smoke("executor")
@pytest.mark.timeout(900)
@pytest.mark.parametrize("process", ["executor", "python worker"])
def test_a_killed_executor_or_worker_does_not_lose_a_row(
    application: Application, tmp_path: Path, process: str
) -> None:
    tally = Tally()
    run_history(application, tmp_path, MERGE_ON_READ, tally, 2 * [f"{process}: mid-file"])
    assert tally.faulted, f"each write ended before its fault came: {tally}"


@pytest.mark.timeout(900)
def test_a_decommissioned_executor_does_not_lose_a_row(application: Application, tmp_path: Path) -> None:
    tally = Tally()
    run_history(application, tmp_path, COPY_ON_WRITE, tally, 2 * ["decommissioned executor: mid-file"])
    assert tally.faulted, f"each write ended before its fault came: {tally}"


@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", [pytest.param(seed, marks=pytest.mark.long) for seed in range(8, 18)])
def test_the_table_has_the_rows_of_writes_that_answered(application: Application, tmp_path: Path, seed: int) -> None:
    run_history(application, tmp_path, seed, Tally())
