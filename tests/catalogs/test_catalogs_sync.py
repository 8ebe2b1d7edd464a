"""What a Hive metastore holds of a table after a sync.

Modules: hudi_fast.catalogs.entries, hudi_fast.catalogs.sync, hudi_fast.catalogs.hive_catalog,
hudi_fast.config.sync_options.
"""

from __future__ import annotations

import json
from dataclasses import replace

import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.catalogs.sync import SyncedTable
from hudi_fast.config.sync_options import SyncOptions
from hudi_fast.errors import CatalogError, ConfigError, UnsupportedFeatureError
from hudi_fast.hive.client import hive_module
from tests.catalogs.conftest import HIVE, Synced, rides, trip_options

DELETE = {"datasource__write__operation": "delete_partition"}


def test_first_sync_creates_database_table_and_partitions(table: Synced) -> None:
    table.write(rides(("a", "Oslo"), ("b", "Rome")))
    assert table.sync() == [SyncedTable(f"{table.database}.trips", "created", added=2)]
    entry = table.entries()["trips"]["table"]
    assert [(one["name"], one["type"]) for one in entry["sd"]["cols"]][5:] == [("id", "string"), ("ts", "int")]
    assert [one["name"] for one in entry["partitionKeys"]] == ["city"]
    assert entry["parameters"]["spark.sql.sources.provider"] == "hudi"
    assert json.loads(entry["parameters"]["spark.sql.sources.schema.part.0"])["fields"][-1]["name"] == "city"
    assert entry["tableType"] == "EXTERNAL_TABLE"
    assert table.partitions() == [["Oslo"], ["Rome"]]


def test_next_sync_adds_and_drops_what_changed(table: Synced) -> None:
    table.write(rides(("a", "Oslo"), ("b", "Rome")))
    table.sync()
    table.write(rides(("c", "Lima")))
    table.write(rides(("b", "Rome")), **DELETE, datasource__write__partitions__to__delete="Rome")
    assert table.sync() == [SyncedTable(f"{table.database}.trips", "updated", added=1, dropped=1)]
    assert table.partitions() == [["Lima"], ["Oslo"]]
    assert table.sync() == [SyncedTable(f"{table.database}.trips", "unchanged")]


def test_partition_written_again_after_its_deletion_stays(table: Synced) -> None:
    table.write(rides(("a", "Oslo"), ("b", "Rome")))
    table.sync()
    table.write(rides(("b", "Rome")), **DELETE, datasource__write__partitions__to__delete="Rome")
    table.write(rides(("c", "Rome")))
    assert table.sync()[0].dropped == 0
    assert table.partitions() == [["Oslo"], ["Rome"]]


def test_full_sync_drops_partitions_that_are_gone(table: Synced) -> None:
    table.write(rides(("a", "Oslo")))
    table.sync()
    stray = table.client.call("get_partitions_by_names", table.database, "trips", ["city=Oslo"])[0]
    stray.values = ["Atlantis"]
    request = hive_module().AddPartitionsRequest(table.database, "trips", [stray], True, False)
    table.client.call("add_partitions_req", request)
    assert table.sync()[0].action == "unchanged"
    options = {f"{HIVE}metastore.uris": table.uri, f"{HIVE}database": table.database}
    full = hf.HudiTable.open(table.path).services.sync({**options, "hoodie.meta.sync.incremental": "false"})
    assert full[0].dropped == 1
    assert table.partitions() == [["Oslo"]]


def test_new_column_reaches_partitions(table: Synced) -> None:
    table.write(rides(("a", "Oslo")))
    table.sync()
    table.write(rides(("b", "Oslo"), fare=pa.array([2.5], pa.float64())))
    table.sync()
    entry = table.entries()["trips"]
    for columns in (entry["table"]["sd"]["cols"], entry["partitions"][0]["sd"]["cols"]):
        assert (columns[-1]["name"], columns[-1]["type"]) == ("fare", "double")


def test_wider_type_is_stored_and_another_one_refused(table: Synced) -> None:
    table.write(rides(("a", "Oslo"), size=pa.array([1], pa.int32())))
    table.sync()
    table.write(rides(("b", "Oslo"), size=pa.array([1], pa.int64())))
    table.sync()
    assert table.entries()["trips"]["table"]["sd"]["cols"][-1]["type"] == "bigint"
    doubles = rides(("c", "Oslo"), size=pa.array([1.5], pa.float64()))
    hf.write(doubles, table.path, {**table.options, "hudi_fast.allow.rounding": "true"})
    before = table.entries()
    with pytest.raises(CatalogError, match=r"column 'size' of type bigint, which cannot become double"):
        table.sync()
    assert table.entries() == before
    assert table.sync(recreate_table_on_error="true")[0].action == "replaced"
    assert table.partitions() == [["Oslo"]]
    assert table.entries()["trips"]["table"]["sd"]["cols"][-1]["type"] == "double"


def test_attributes_of_others_stay(table: Synced) -> None:
    table.write(rides(("a", "Oslo")))
    table.sync()
    entry = table.client.call("get_table", table.database, "trips")
    entry.owner, entry.parameters["team"] = "ana", "rides"
    table.client.call("alter_table_with_environment_context", table.database, "trips", entry, None)
    table.write(rides(("b", "Rome"), fare=pa.array([1.0])))
    table.sync()
    stored = table.entries()["trips"]["table"]
    assert (stored["owner"], stored["parameters"]["team"]) == ("ana", "rides")


def test_entry_with_another_location_is_replaced(table: Synced, tmp_path) -> None:
    table.write(rides(("a", "Oslo"), ("b", "Rome")))
    table.sync()
    moved = replace(table, path=tmp_path / "elsewhere")
    moved.write(rides(("c", "Lima")))
    assert moved.sync() == [SyncedTable(f"{table.database}.trips", "replaced", added=1)]
    assert list(moved.entries()) == ["trips"]
    assert moved.partitions() == [["Lima"]]
    assert moved.entries()["trips"]["table"]["sd"]["location"].endswith("/elsewhere")


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({}, {"trips", "trips_ro", "trips_rt"}),
        ({"skip_ro_suffix": "true", "table.strategy": "ALL"}, {"trips", "trips_rt"}),
        ({"table.strategy": "RO"}, {"trips"}),
        ({"table.strategy": "RT", "table": "others"}, {"others"}),
    ],
)
def test_names_of_a_merge_on_read_table(table: Synced, options: dict[str, str], names: set[str]) -> None:
    table.options = trip_options("MERGE_ON_READ")
    table.write(rides(("a", "Oslo")))
    table.sync(**options)
    assert set(table.entries()) == names


def test_missing_database_may_be_an_error(table: Synced) -> None:
    table.write(rides(("a", "Oslo")))
    with pytest.raises(CatalogError, match=rf"has no database '{table.database}'. Create it, or set "):
        table.sync(auto_create_database="false")


def test_many_partitions_are_sent_in_batches(table: Synced) -> None:
    table.write(rides(*((f"k{number}", f"c{number}") for number in range(23))))
    assert table.sync(batch_num="5")[0].added == 23
    assert len(table.partitions()) == 23


def test_special_characters_in_partitions(table: Synced) -> None:
    cities = ["São Paulo", "a=b", "50%", "x:y", "q'r\"s"]
    table.write(rides(*((str(number), city) for number, city in enumerate(cities))))
    table.sync()
    assert table.partitions() == sorted([city] for city in cities)
    table.write(rides(("0", "São Paulo")), **DELETE, datasource__write__partitions__to__delete="a=b")
    assert table.sync()[0].dropped == 1


def test_metastore_that_does_not_answer_is_named(table: Synced) -> None:
    table.write(rides(("a", "Oslo")))
    with pytest.raises(CatalogError, match=r"at 127\.0\.0\.1:1 did not answer get_database"):
        replace(table, uri="thrift://127.0.0.1:1").sync()


def test_no_metastore_is_refused(table: Synced, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HIVE_CONF_DIR", raising=False)
    table.write(rides(("a", "Oslo")))
    with pytest.raises(ConfigError, match=r"needs hoodie\.datasource\.hive_sync\.metastore\.uris=thrift://host:port"):
        hf.HudiTable.open(table.path).services.sync()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({f"{HIVE}table_properties": "a=b\nrubbish"}, ConfigError, "has the line 'rubbish'; expected key=value"),
        ({f"{HIVE}mode": "carrier_pigeon"}, UnsupportedFeatureError, "supported: hms, jdbc, hiveql"),
        ({f"{HIVE}bucket_sync": "true"}, UnsupportedFeatureError, "bucket_sync"),
        ({"hoodie.meta.sync.client.tool.class": "com.shop.Tool"}, UnsupportedFeatureError, "HiveSyncTool"),
    ],
)
def test_options_that_cannot_be_followed(options: dict[str, str], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        SyncOptions.from_options(options)


def test_catalogs_that_options_enable() -> None:
    assert SyncOptions().catalogs == ()
    assert SyncOptions.from_options({f"{HIVE}enable": "true"}).catalogs == ("hive",)
    assert SyncOptions.from_options({"hoodie.meta.sync.enabled": "true"}).catalogs == ("hive",)
