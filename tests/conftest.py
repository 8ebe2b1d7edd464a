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

from tests.locking.jvm_lock import peer_pyspark_jars
from tests.peer.client import PROJECT, RealHudi, java_command
from tests.servers.dynamodb import start_dynamodb
from tests.servers.hdfs import EARLY_CLOSES, HdfsCluster, start_hdfs
from tests.servers.hive_metastore import HiveMetastore, start_hive_metastore
from tests.servers.s3 import S3Server, ServerError, start_s3
from tests.servers.zookeeper import ZookeeperServer, start_zookeeper
from tests.support.golden import Golden, unzip_golden
from tests.support.jvm import java_options
from tests.support.slow_tests import slow_tests

PEERS = {"hudi_12", "hudi_015"}
TOGETHER = {
    "tests/interop/": "peers",
    "tests/peer/": "peers",
    "tests/formats/test_formats_hfile_writer_peer.py": "peers",
    "tests/locking/test_locking_remote_file.py": "hdfs",
    "tests/storage/test_storage_hdfs": "hdfs",
    "tests/spark/": "spark",
    "tests/docs/test_docs.py": "spark",
    "tests/properties/test_properties_mor_table.py": "spark",
    "tests/services/test_services_deleting_spark.py": "spark",
    "tests/test_readme.py": "spark",
}
"""Tests that one of several processes does, so that each JVM starts once; any other module is a lot of its own."""
# The first start downloads the bundle, and a test may start two JVMs.
JVM_SECONDS = 900
SLOW_FOLDERS = ("tests/faults/", "tests/properties/", "tests/concurrency/")
SERVERS = {"s3_server", "dynamodb", "zookeeper", "hive_metastore", "hdfs", "secured_hdfs"}


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--long``: tests that are marked ``long`` run, too."""
    parser.addoption("--long", action="store_true", help="run the tests that are marked long, too")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out ``long`` tests; mark a test by the JVMs and servers that it uses, with the time that these may take."""
    if not config.getoption("--long"):
        left_out = [item for item in items if item.get_closest_marker("long") is not None]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item.get_closest_marker("long") is None]
    if hasattr(config, "workerinput"):  # one of several processes: what takes longest comes first
        items.sort(key=lambda item: {"peers": 0, "spark": 1}.get(lot_of(item.nodeid), 2))
    slow = slow_tests()
    for item in items:
        names = set(getattr(item, "fixturenames", ()))
        peer = bool(names & PEERS) or (item.nodeid.startswith("tests/interop/") and "hudi_rs" not in item.nodeid)
        if peer:
            item.add_marker(pytest.mark.peer)
        if "spark" in names:
            item.add_marker(pytest.mark.spark)
        if names & (SERVERS | {"java"}) or item.nodeid.startswith(SLOW_FOLDERS) or item.nodeid in slow:
            item.add_marker(pytest.mark.slow)
        if (peer or "spark" in names) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(JVM_SECONDS))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Several processes are dealt :func:`lot_of` tests at once."""
    from xdist.scheduler import LoadScopeScheduling

    class ByJvm(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return lot_of(nodeid)

    config.option.loadscopereorder = False
    return ByJvm(config, log)


def lot_of(nodeid: str) -> str:
    """The name of the lot that a test is in."""
    module = nodeid.partition("::")[0]
    return next((lot for start, lot in TOGETHER.items() if module.startswith(start)), module)


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
        "spark.driver.extraJavaOptions": f"-Duser.timezone=UTC {java_options(1024)}",
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


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """An S3 server of this machine."""
    try:
        with start_s3(PROJECT / "artifacts" / "test_servers", tmp_path_factory.mktemp("s3")) as server:
            yield server
    except ServerError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def dynamodb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a DynamoDB of this machine."""
    try:
        with start_dynamodb(PROJECT / "artifacts" / "test_servers", tmp_path_factory.mktemp("dynamodb")) as url:
            yield url
    except ServerError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def zookeeper(java: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZookeeperServer]:
    """A ZooKeeper server of this machine."""
    try:
        with start_zookeeper(peer_pyspark_jars(), tmp_path_factory.mktemp("zookeeper")) as server:
            yield server
    except (FileNotFoundError, ServerError) as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def hive_metastore(java: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HiveMetastore]:
    """A Hive metastore of this machine."""
    try:
        cache, folder = PROJECT / "artifacts" / "test_servers", tmp_path_factory.mktemp("hive_metastore")
        with start_hive_metastore(peer_pyspark_jars(), cache, folder) as server:
            yield server
    except (FileNotFoundError, ServerError) as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def hdfs(java: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HdfsCluster]:
    """A NameNode and two DataNodes on this machine."""
    try:
        with start_hdfs(PROJECT / "artifacts" / "test_servers", tmp_path_factory.mktemp("hdfs")) as cluster:
            yield cluster
    except ServerError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def secured_hdfs(java: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HdfsCluster]:
    """HDFS whose callers need tickets of a Kerberos server, and whose files are closed early."""
    folder = tmp_path_factory.mktemp("secured_hdfs")
    try:
        with start_hdfs(PROJECT / "artifacts" / "test_servers", folder, EARLY_CLOSES, kerberos=True) as cluster:
            yield cluster
    except ServerError as error:
        pytest.skip(str(error))
