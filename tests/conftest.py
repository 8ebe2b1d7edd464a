"""Fixtures for every test: golden tables, real Apache Hudi in its own process, a Spark session of this process.

The three JVMs start when a test first asks for them and last for the session.
"""

from __future__ import annotations

import gc
import os
import sys
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import settings

from hudi_fast.storage import local_store
from tests.locking.jvm_lock import peer_pyspark_jars
from tests.peer.client import RealHudi
from tests.servers.dynamodb import start_dynamodb
from tests.servers.hdfs import EARLY_CLOSES, HdfsCluster, start_hdfs
from tests.servers.hive_metastore import HiveMetastore, start_hive_metastore
from tests.servers.kafka import KafkaBroker, start_kafka
from tests.servers.mariadb import MariadbServer, start_mariadb
from tests.servers.postgres import PostgresServer, start_postgres
from tests.servers.s3 import S3Server, ServerError, start_s3
from tests.servers.schema_registry import start_schema_registry
from tests.servers.zookeeper import ZookeeperServer, start_zookeeper
from tests.support.examples import register_profiles
from tests.support.golden import Golden, GoldenStore, unzip_golden
from tests.support.jvm import FETCHED, java_command, java_options, pyspark_jars
from tests.support.lots import SERVERS, Measured, deal, write_durations
from tests.support.memory import memory_folder
from tests.support.tiers import (
    COLLECTED,
    MISNAMED,
    NEEDS,
    PROFILES,
    RUNS,
    marks_of,
    needs_of,
    summary,
    tier_of,
    unknown_cases,
)

# The first start downloads the bundle, and a test may start two JVMs.
JVM_SECONDS = 900


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--tier``: which tests run; see :mod:`tests.support.tiers`."""
    parser.addoption("--tier", choices=sorted(RUNS), default="full", help="the tests of this tier and those below it")
    parser.addoption("--write-durations", metavar="FILE", help="write the seconds of each test to a file")


def pytest_configure(config: pytest.Config) -> None:
    """Property tests try as many examples as the tier says; files of tests are in memory where there is room.

    Folders of tests that passed are removed at once, since memory is dearer than a disk.
    """
    folder = memory_folder()
    if folder is not None:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", folder)
    register_profiles()
    settings.load_profile(PROFILES[config.getoption("--tier")])


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A smoke run imports only modules that have smoke tests, a fifth of all."""
    if config.getoption("--tier") != "smoke" or collection_path.suffix != ".py":
        return None
    return True if "mark.smoke" not in collection_path.read_text(encoding="utf-8") else None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Collect tests without looking for garbage: all that is made stays, and is looked at by no later search."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out tests of other tiers. Tests that need a JVM get the time that it may take to start."""
    run = config.getoption("--tier")
    collected = config.stash.setdefault(COLLECTED, {})
    config.stash[MISNAMED] = unknown_cases(items)
    chosen, left_out = [], []
    for item in items:
        needs = item_needs(item)
        for need in sorted(needs):
            item.add_marker(need)
        if needs and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(JVM_SECONDS))
        tier = tier_of(needs, marks_of(item))
        collected[item.nodeid] = tier, needs
        servers = SERVERS.intersection(getattr(item, "fixturenames", ()))
        item.user_properties += [("tier", tier), ("needs", " ".join(sorted(needs | servers)))]
        (chosen if tier in RUNS[run] else left_out).append(item)
    items[:] = chosen
    config.hook.pytest_deselected(items=left_out)


def item_needs(item: pytest.Item) -> frozenset[str]:
    """What a test needs, by its fixtures and those that its parameters name."""
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    named = {value for value in parameters.values() if isinstance(value, str)}
    return needs_of({*getattr(item, "fixturenames", ()), *named}, marks_of(item))


@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest) -> None:
    """``make check`` starts no JVM and no server: a test that asks for one by another way needs a mark."""
    if fixturedef.argname in NEEDS and request.config.getoption("--tier") == "check":
        pytest.fail(f"This test takes {fixturedef.argname} unseen: mark it with {NEEDS[fixturedef.argname]!r}.")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Several processes get modules by their measured seconds."""
    return deal(config, log)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Number and seconds of the tests of each tier; the file of durations, if it is asked for."""
    seconds: defaultdict[str, float] = defaultdict(float)
    known: dict[str, dict[str, str]] = {}
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                seconds[report.nodeid] += report.duration
                known[report.nodeid] = dict(report.user_properties)
    terminalreporter.section("tests by tier")
    for line in summary((known[test]["tier"], taken) for test, taken in seconds.items()):
        terminalreporter.write_line(line)
    target = config.getoption("--write-durations")
    if target:
        own = {test: found for test, found in known.items() if found["tier"] in RUNS[config.getoption("--tier")]}
        measured = {test: Measured(seconds[test], frozenset(found["needs"].split())) for test, found in own.items()}
        write_durations(measured, Path(target))


@pytest.fixture(autouse=True, scope="session")
def leave_files_to_the_system() -> Iterator[None]:
    """No test cuts the power, so nothing waits for the disk; tests of that put their own function in the place."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local_store, "to_disk", lambda name: None)
        yield


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


@pytest.fixture(scope="session")
def golden_store(tmp_path_factory: pytest.TempPathFactory) -> GoldenStore:
    """Unzipped tables of ``tests/tables`` that all tests of this process share."""
    return GoldenStore(tmp_path_factory.mktemp("golden"))


@pytest.fixture
def golden(golden_store: GoldenStore, tmp_path: Path) -> Iterator[Callable[..., Golden]]:
    """``golden(name)``: a table of ``tests/tables`` in this test's own folder.

    Its files are links: the test may add and delete files. ``golden(name, own=True)`` gives files that it may change.
    """
    taken = []

    def take(name: str, own: bool = False) -> Golden:
        if own:
            return unzip_golden(name, tmp_path / "golden")
        taken.append(name)
        return golden_store.linked(name, tmp_path / "golden")

    yield take
    for name in taken:
        golden_store.verify(name)


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
        "spark.driver.extraJavaOptions": f"-Duser.timezone=UTC {java_options(1024, pyspark_jars())}",
        "spark.driver.memory": "2g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.warehouse.dir": (folder / "warehouse").as_uri(),  # whatever the default file system is later
        "spark.local.dir": str(folder / "local"),
        "spark.python.daemon.module": "hudi_fast.spark.daemon",
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


_Server = TypeVar("_Server")


def _or_skip(server: AbstractContextManager[_Server]) -> Iterator[_Server]:
    """What a server of this machine gives to tests, which are skipped where it cannot be had."""
    try:
        with server as given:
            yield given
    except ServerError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """An S3 server of this machine."""
    yield from _or_skip(start_s3(FETCHED, tmp_path_factory.mktemp("s3")))


@pytest.fixture(scope="session")
def dynamodb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a DynamoDB of this machine."""
    yield from _or_skip(start_dynamodb(FETCHED, tmp_path_factory.mktemp("dynamodb")))


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
        folder = tmp_path_factory.mktemp("hive_metastore")
        with start_hive_metastore(peer_pyspark_jars(), FETCHED, folder) as server:
            yield server
    except (FileNotFoundError, ServerError) as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def hdfs(java: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HdfsCluster]:
    """A NameNode and two DataNodes on this machine."""
    yield from _or_skip(start_hdfs(FETCHED, tmp_path_factory.mktemp("hdfs")))


@pytest.fixture(scope="session")
def kafka(java: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """A Kafka broker of this machine."""
    yield from _or_skip(start_kafka(FETCHED, tmp_path_factory.mktemp("kafka")))


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server of this machine."""
    yield from _or_skip(start_postgres(FETCHED))


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MariadbServer]:
    """A MariaDB server of this machine."""
    yield from _or_skip(start_mariadb(FETCHED))


@pytest.fixture(scope="session")
def schema_registry(java: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a schema registry of this machine."""
    yield from _or_skip(start_schema_registry(FETCHED, tmp_path_factory.mktemp("schema_registry")))


@pytest.fixture(scope="session")
def secured_hdfs(java: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HdfsCluster]:
    """HDFS whose callers need tickets of a Kerberos server, and whose files are closed early."""
    folder = tmp_path_factory.mktemp("secured_hdfs")
    yield from _or_skip(start_hdfs(FETCHED, folder, EARLY_CLOSES, kerberos=True))
