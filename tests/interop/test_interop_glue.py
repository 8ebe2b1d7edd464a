"""AWS Glue holds the same after a sync of hudi_fast and after one of Apache Hudi 0.15, the last whose tool can be had.

Module: hudi_fast.catalogs.glue_catalog.
"""

from __future__ import annotations

import itertools
import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pyarrow as pa
import pytest

import hudi_fast as hf
from tests.interop.sides import trip_options
from tests.interop.test_interop_catalogs import HIVE, PASSED_ON, rows
from tests.locking.jvm_lock import (
    LAST_AWS,
    escaped_property,
    hudi_bundle,
    peer_pyspark_jars,
)
from tests.servers.dynamodb import CREDENTIALS
from tests.servers.glue import start_glue
from tests.servers.hive_entries import differences
from tests.servers.maven_jars import MavenError, maven_jars
from tests.support.java_classes import compiled_classes, expanded_jars, java_program
from tests.support.jvm import FETCHED

SDK = [f"software.amazon.awssdk:{name}:2.18.40" for name in ("glue", "sts", "sqs", "cloudwatch")]
VOLATILE = (
    "CreationTime",
    "CreateTime",
    "UpdateTime",
    "LastAccessTime",
    "LastAnalyzedTime",
    "DatabaseName",
    "VersionId",
    "CatalogId",
)
ONLY_OURS = "last_commit_completion_time_sync"
"""Apache Hudi stores it in Glue since 1.0, and in a Hive metastore since 0.15."""

SYNC_SECONDS = 120
NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def class_path(java: str) -> list[str]:
    try:
        aws = maven_jars(FETCHED, [f"org.apache.hudi:hudi-aws:{LAST_AWS}"])
        jars = [*aws, *maven_jars(FETCHED, SDK, transitive=True), hudi_bundle(LAST_AWS), f"{peer_pyspark_jars()}/*"]
    except (MavenError, FileNotFoundError) as error:
        pytest.skip(str(error))
    found = expanded_jars(jars)
    return [str(compiled_classes([Path(__file__).with_name("SyncMain.java")], found)), *found]


@pytest.fixture(scope="module")
def glue_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with start_glue(tmp_path_factory.mktemp("glue")) as url:
        yield url


@dataclass
class Catalogs:
    """Two databases of Glue: one that hudi_fast syncs, one that Apache Hudi syncs."""

    path: Path
    url: str
    client: Any
    class_path: list[str]
    number: int

    def options(self, side: str) -> dict[str, Any]:
        place = {"hoodie.aws.glue.endpoint": self.url, "hoodie.aws.glue.region": CREDENTIALS["AWS_REGION"]}
        return {**place, f"{HIVE}database": f"{side}{self.number}", f"{HIVE}support_timestamp": "true"}

    def sync_and_agree(self, more: Mapping[str, str]) -> dict[str, Any]:
        table = hf.HudiTable.open(self.path)
        tool = {"hoodie.meta.sync.client.tool.class": "org.apache.hudi.aws.sync.AwsGlueCatalogSyncTool"}
        table.services.sync({**self.options("ours"), **tool, **more})
        passed = {key: table.config.raw[key] for key in PASSED_ON if key in table.config.raw}
        base = {"hoodie.datasource.meta.sync.base.path": str(self.path), f"{HIVE}table": "trips"}
        self._hudi_syncs({**passed, **base, **self.options("theirs"), **more})
        ours, theirs = self.entries("ours"), self.entries("theirs")
        assert differences(ours, theirs) == []
        return ours

    def entries(self, side: str) -> dict[str, Any]:
        database, found = f"{side}{self.number}", {}
        for table in self.client.get_tables(DatabaseName=database)["TableList"]:
            place = {"DatabaseName": database, "TableName": table["Name"]}
            partitions = self.client.get_partitions(**place)["Partitions"]
            found[table["Name"]] = {"table": plain(table), "partitions": sorted(map(plain, partitions), key=str)}
        return found

    def _hudi_syncs(self, properties: Mapping[str, str]) -> None:
        file = self.path.parent / "sync.properties"
        file.write_text(
            "".join(f"{escaped_property(key)}={escaped_property(str(properties[key]))}\n" for key in properties)
        )
        command = [java_program(), "-Xmx512m", "-XX:TieredStopAtLevel=1", "-cp", ":".join(self.class_path)]
        environment = {**os.environ, **CREDENTIALS, "AWS_EC2_METADATA_DISABLED": "true"}
        done = subprocess.run(
            [*command, "SyncMain", str(file)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=SYNC_SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items() if key not in (*VOLATILE, ONLY_OURS)}
    return [plain(one) for one in value] if isinstance(value, list) else value


@pytest.fixture
def catalogs(
    tmp_path: Path, glue_url: str, class_path: list[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Catalogs]:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    client = boto3.Session().client("glue", endpoint_url=glue_url, region_name=CREDENTIALS["AWS_REGION"])
    yield Catalogs(tmp_path / "trips", glue_url, client, class_path, next(NUMBERS))
    client.close()


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", pytest.param("MERGE_ON_READ", marks=pytest.mark.long)])
def test_life_of_a_table(catalogs: Catalogs, kind: str) -> None:
    options = trip_options(6, **{"hoodie.datasource.write.table.type": kind})
    hf.write(rows("Oslo", "Rome"), catalogs.path, options)
    assert len(catalogs.sync_and_agree({})["trips"]["partitions"]) == 2
    hf.write(rows("Lima", "Oslo", extra=pa.array([1, 2], pa.int32())), catalogs.path, options)
    gone = {"hoodie.datasource.write.operation": "delete_partition"}
    hf.write(rows("Rome"), catalogs.path, {**options, **gone, "hoodie.datasource.write.partitions.to.delete": "Rome"})
    assert len(catalogs.sync_and_agree({})["trips"]["partitions"]) == 2


@pytest.mark.long
def test_options_mean_the_same(catalogs: Catalogs) -> None:
    hf.write(rows("Oslo"), catalogs.path, trip_options(6))
    more = {f"{HIVE}create_managed_table": "true", f"{HIVE}omit_metadata_fields": "true"}
    catalogs.sync_and_agree({**more, "hoodie.datasource.meta.sync.glue.metadata_file_listing": "true"})
