"""Have ready what the servers of the tests need, so that none of these waits for a download or a build.

::

    jars of Apache Hudi, Hadoop, Kafka ... ────────────────┐
    with --build: larger jars, programs of Go, npm and apt ├─► the cache folder, and Ivy's cache below the home folder
    each server, started and stopped once ─────────────────┘

What cannot be had is named and is no failure: the tests that need it are skipped, each with the reason.

Usage: ``python -m tests.servers.prepare [--build]``.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

from tests.locking.jvm_lock import hudi_aws_jars, hudi_bundle, peer_pyspark_jars
from tests.servers.debezium import JARS as DEBEZIUM_JARS
from tests.servers.dynamodb import start_dynamodb
from tests.servers.hdfs import JARS
from tests.servers.hive_metastore import start_hive_metastore
from tests.servers.kafka import JARS as KAFKA_JARS
from tests.servers.kerberos import KDC_JARS
from tests.servers.maven_jars import PARQUET_TESTS, MavenError, maven_jars
from tests.servers.programs import PROGRAMS, ServerError, build
from tests.servers.schema_registry import registry_program
from tests.support.jvm import FETCHED
from tests.support.shared_classes import make_archive


def once(server: AbstractContextManager[object]) -> None:
    """Start it and stop it: what it needs is fetched or built."""
    with server:
        pass


# One after the other: Ivy's cache is for one process at a time.
JARS_AND_DATABASES: dict[str, Callable[[Path], object]] = {
    "Apache Hudi 1.2.0": lambda folder: hudi_bundle("1.2.0"),
    "Apache Hudi 0.15.0": lambda folder: hudi_bundle("0.15.0"),
    "Parquet's tests": lambda folder: maven_jars(FETCHED, [PARQUET_TESTS]),
    "HDFS": lambda folder: maven_jars(FETCHED, JARS, transitive=True),
    "HDFS with Kerberos": lambda folder: maven_jars(FETCHED, (*JARS, *KDC_JARS), transitive=True),
    "Kafka": lambda folder: maven_jars(FETCHED, KAFKA_JARS, transitive=True),
    "Amazon's lock client": lambda folder: hudi_aws_jars(),
    "DynamoDB": lambda folder: once(start_dynamodb(FETCHED, folder)),
    "Hive metastore": lambda folder: once(start_hive_metastore(peer_pyspark_jars(), FETCHED, folder)),
    "archive of Spark's classes": lambda folder: make_archive(),
}

OF_THE_REST: dict[str, Callable[[Path], object]] = {
    "Debezium": lambda folder: maven_jars(FETCHED, DEBEZIUM_JARS, transitive=True),
    "schema registry": lambda folder: registry_program(FETCHED),
}
"""Jars that no test of ``make test`` needs; they are large."""


def main(with_builds: bool) -> None:
    """Name what cannot be had. Programs are built while jars are fetched."""
    jars = JARS_AND_DATABASES | (OF_THE_REST if with_builds else {})
    programs = {name: partial(_built, name) for name in PROGRAMS if with_builds}
    with ThreadPoolExecutor() as pool:
        list(pool.map(_prepare, (programs, jars)))  # raises their errors


def _built(name: str, folder: Path) -> None:
    build(FETCHED, name)


def _prepare(preparations: Mapping[str, Callable[[Path], object]]) -> None:
    for name, prepare in preparations.items():
        with tempfile.TemporaryDirectory() as folder:
            try:
                prepare(Path(folder))
            except (MavenError, ServerError, FileNotFoundError) as error:
                print(f"{name} is not there for tests: {error}", flush=True)


if __name__ == "__main__":
    main("--build" in sys.argv[1:])
