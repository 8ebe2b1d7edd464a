"""Executors, Python workers and drivers of a standalone cluster are killed while they write: no row is lost or doubled.

``make scale`` runs more histories; :mod:`tests.cluster.campaign` describes one.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.campaign import Tally, run_history
from tests.servers.spark_cluster import SparkCluster, spark_cluster


@pytest.fixture(scope="module")
def cluster(java: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    with spark_cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 12))])
def test_the_table_has_the_rows_of_writes_that_answered(cluster: SparkCluster, tmp_path: Path, seed: int) -> None:
    run_history(cluster, tmp_path, seed, Tally())
