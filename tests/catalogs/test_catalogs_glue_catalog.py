"""What AWS Glue holds of a table after a sync."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.catalogs.glue_catalog import GlueCatalog
from hudi_fast.catalogs.sync import SyncedTable
from hudi_fast.config.sync_options import SyncOptions
from hudi_fast.errors import CatalogError
from tests.catalogs.conftest import HIVE, rides, trip_options
from tests.servers.dynamodb import CREDENTIALS
from tests.servers.glue import start_glue

TOOL = "org.apache.hudi.aws.sync.AwsGlueCatalogSyncTool"
DELETE = {"hoodie.datasource.write.operation": "delete_partition"}
NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def glue_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with start_glue(tmp_path_factory.mktemp("glue")) as url:
        yield url


@dataclass
class Synced:
    """A table and its database in Glue."""

    path: Path
    url: str
    client: Any
    database: str = field(default_factory=lambda: f"rides{next(NUMBERS)}")

    @property
    def options(self) -> dict[str, Any]:
        place = {"hoodie.aws.glue.endpoint": self.url, "hoodie.aws.glue.region": CREDENTIALS["AWS_REGION"]}
        return {**place, "hoodie.meta.sync.client.tool.class": TOOL, f"{HIVE}database": self.database}

    def sync(self, **more: Any) -> list[SyncedTable]:
        return hf.HudiTable.open(self.path).services.sync({**self.options, **{HIVE + key: more[key] for key in more}})

    def table(self, name: str = "trips") -> dict[str, Any]:
        return self.client.get_table(DatabaseName=self.database, Name=name)["Table"]

    def partitions(self) -> dict[tuple[str, ...], str]:
        found = self.client.get_partitions(DatabaseName=self.database, TableName="trips")["Partitions"]
        return {tuple(one["Values"]): one["StorageDescriptor"]["Location"] for one in found}


@pytest.fixture
def table(tmp_path: Path, glue_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Synced]:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    client = boto3.Session().client("glue", endpoint_url=glue_url, region_name=CREDENTIALS["AWS_REGION"])
    yield Synced(tmp_path / "trips", glue_url, client)
    client.close()


def test_first_sync_creates_table_and_partitions(table: Synced) -> None:
    hf.write(rides(("a", "Oslo"), ("b", "Rome")), table.path, trip_options())
    assert table.sync() == [SyncedTable(f"{table.database}.trips", "created", added=2)]
    entry = table.table()
    assert [one["Name"] for one in entry["StorageDescriptor"]["Columns"]][5:] == ["id", "ts"]
    assert entry["PartitionKeys"][0]["Name"] == "city"
    assert entry["Parameters"]["hudi.metadata-listing-enabled"] == "FALSE"
    assert entry["Parameters"]["spark.sql.sources.provider"] == "hudi"
    assert table.partitions() == {(city,): f"{table.path}/{city}" for city in ("Oslo", "Rome")}


@pytest.mark.smoke
def test_write_syncs_glue(table: Synced) -> None:
    options = {**trip_options(), **table.options, "hoodie.datasource.meta.sync.enable": "true"}
    last = hf.write(rides(("a", "Oslo")), table.path, options)
    assert table.table()["Parameters"]["last_commit_time_sync"] == last.instant


def test_next_sync_adds_and_drops_what_changed(table: Synced) -> None:
    hf.write(rides(*((f"k{number}", f"c{number}") for number in range(130))), table.path, trip_options())
    table.sync()
    hf.write(rides(("c", "Lima"), fare=pa.array([1.5])), table.path, trip_options())
    for city in ("c7", "c8"):
        gone = {**DELETE, "hoodie.datasource.write.partitions.to.delete": city}
        hf.write(rides(("b", city)), table.path, {**trip_options(), **gone})
    assert table.sync() == [SyncedTable(f"{table.database}.trips", "updated", added=1, dropped=2)]
    assert table.table()["StorageDescriptor"]["Columns"][-1] == {"Name": "fare", "Type": "double", "Comment": ""}
    assert table.sync()[0].action == "unchanged"
    assert (
        table.client.get_table(DatabaseName=table.database, Name="trips")["Table"]["Parameters"]["EXTERNAL"] == "TRUE"
    )


def test_attributes_of_others_stay(table: Synced) -> None:
    hf.write(rides(("a", "Oslo")), table.path, trip_options())
    table.sync()
    kept = {key: table.table()[key] for key in ("Name", "StorageDescriptor", "PartitionKeys", "TableType")}
    parameters = {**table.table()["Parameters"], "team": "rides"}
    changed = {**kept, "Parameters": parameters, "Owner": "ana", "Description": "trips by car"}
    table.client.update_table(DatabaseName=table.database, TableInput=changed)
    hf.write(rides(("b", "Rome")), table.path, trip_options())
    table.sync()
    entry = table.table()
    assert (entry["Owner"], entry["Description"], entry["Parameters"]["team"]) == ("ana", "trips by car", "rides")


def test_entry_with_another_location_is_replaced(table: Synced, tmp_path: Path) -> None:
    hf.write(rides(("a", "Oslo")), table.path, trip_options())
    table.sync()
    table.path = tmp_path / "elsewhere"
    hf.write(rides(("c", "Lima")), table.path, trip_options())
    assert table.sync()[0].action == "replaced"
    assert list(table.partitions()) == [("Lima",)]


def test_partition_is_moved(table: Synced) -> None:
    hf.write(rides(("a", "Oslo")), table.path, trip_options())
    table.sync()
    place = {"DatabaseName": table.database, "TableName": "trips"}
    found = table.client.get_partition(**place, PartitionValues=["Oslo"])["Partition"]["StorageDescriptor"]
    moved = {"Values": ["Oslo"], "StorageDescriptor": {**found, "Location": "/elsewhere"}}
    table.client.update_partition(**place, PartitionValueList=["Oslo"], PartitionInput=moved)
    hf.write(rides(("b", "Oslo")), table.path, trip_options())
    assert table.sync()[0].moved == 1
    assert table.partitions() == {("Oslo",): f"{table.path}/Oslo"}


def test_glue_that_does_not_answer_is_named(table: Synced) -> None:
    hf.write(rides(("a", "Oslo")), table.path, trip_options())
    table.url = "http://127.0.0.1:1"
    with pytest.raises(CatalogError, match=r"AWS Glue did not answer get: .*127\.0\.0\.1:1"):
        table.sync()


def test_glue_that_refuses_is_named(table: Synced) -> None:
    catalog = GlueCatalog(SyncOptions(glue_region=CREDENTIALS["AWS_REGION"], glue_endpoint=table.url))
    with pytest.raises(CatalogError, match=r"AWS Glue in eu-central-1 refused create_table: .*EntityNotFound"):
        catalog.create_table(_entry("nowhere"))
    catalog.close()


def _entry(database: str) -> Any:
    from hudi_fast.catalogs.entries import CatalogTable

    return CatalogTable(database, "t", (), (), "s3a://lake/t", "in", "out", "serde", {}, {})
