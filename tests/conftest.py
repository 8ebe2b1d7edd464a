"""Fixtures for every test: golden tables, real Apache Hudi in its own process, a Spark session of this process.

The three JVMs start when a test first asks for them and last for the session.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from golden import Golden, unzip_golden
from peer.client import RealHudi, java_command

PEERS = {"hudi_12", "hudi_015"}
# The first start downloads the bundle, and a test may start two JVMs.
JVM_SECONDS = 900


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--long``: tests that are marked ``long`` run, too."""
    parser.addoption("--long", action="store_true", help="run the tests that are marked long, too")


@pytest.hookimpl(tryfirst=True)  # xdist reads the groups in this hook, too
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the long ones out; mark a test by the JVMs that it uses, and give it the time that these may take.

    Of several processes one has all tests that ask real Hudi, and one those on Spark, so that each JVM starts once; the
    tests of any other module stay together for its fixtures' sake.
    """
    if not config.getoption("--long"):
        left_out = [item for item in items if item.get_closest_marker("long") is not None]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item.get_closest_marker("long") is None]
    for item in items:
        names = set(getattr(item, "fixturenames", ()))
        together = item.nodeid.partition("::")[0]
        if "spark" in names:
            item.add_marker(pytest.mark.spark)
            together = "spark"
        if names & PEERS:
            item.add_marker(pytest.mark.peer)
            together = "peer"
        item.add_marker(pytest.mark.xdist_group(together))
        if names & (PEERS | {"spark"}) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(JVM_SECONDS))


@pytest.fixture(scope="session")
def java() -> str:
    """The Java to use; the only thing whose absence skips a test, for the library itself needs none."""
    command = java_command()
    if command is None:
        pytest.skip("Java is not installed, neither below JAVA_HOME nor on the path")
    return command


@pytest.fixture(scope="session")
def peers() -> list[RealHudi]:
    """Those that tests have asked for."""
    return []


@pytest.fixture(scope="session")
def hudi_12(java: str, peers: list[RealHudi]) -> Iterator[RealHudi]:
    """Apache Hudi 1.2.0: table versions 6, 8 and 9."""
    with RealHudi("1.2.0") as peer:
        peers.append(peer)
        yield peer


@pytest.fixture(scope="session")
def hudi_015(java: str, peers: list[RealHudi]) -> Iterator[RealHudi]:
    """Apache Hudi 0.15.0: table version 6, as the releases before 1.0 wrote it."""
    with RealHudi("0.15.0") as peer:
        peers.append(peer)
        yield peer


@pytest.fixture(autouse=True)
def rest_between_tests(peers: list[RealHudi]) -> Iterator[None]:
    """Between two tests a peer may start anew."""
    yield
    for peer in peers:
        peer.rest()


@pytest.fixture
def golden(tmp_path: Path) -> Callable[[str], Golden]:
    """``golden(name)``: a table of ``tests/tables``, unzipped into this test's own folder."""

    def unzip(name: str) -> Golden:
        return unzip_golden(name, tmp_path / "golden")

    return unzip


@pytest.fixture(scope="session")
def spark(java: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A PySpark session of this process: local[2], two shuffle partitions, UTC, no Hudi jar."""
    from pyspark.sql import SparkSession

    folder = tmp_path_factory.mktemp("spark")
    # Without it, workers run whatever `python3` is first on the path.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.extraJavaOptions": "-Duser.timezone=UTC",
        "spark.driver.memory": "2g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.local.dir": str(folder / "local"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.master("local[2]").appName("hudi_fast-tests")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
