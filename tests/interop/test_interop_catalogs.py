"""A Hive metastore holds the same after a sync of hudi_fast and after one of Apache Hudi, and either goes on.

Module: hudi_fast.catalogs.sync.
"""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.hive.client import HiveClient
from tests.interop.sides import trip_options
from tests.peer.client import RealHudi
from tests.servers.hive_entries import database_entries, differences

HIVE = "hoodie.datasource.hive_sync."
PASSED_ON = (
    "hoodie.table.name",
    "hoodie.table.partition.fields",
    "hoodie.datasource.write.hive_style_partitioning",
    "hoodie.datasource.write.partitionpath.urlencode",
)
"""Table properties that Apache Hudi's writer passes to its sync."""

SNAPSHOT = "hoodie.meta.sync.sync_snapshot_with_table_name"
NUMBERS = itertools.count()
MERGED = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}
VERSIONS = [("hudi_12", 9), ("hudi_015", 6)]


def every_other(cases: list[tuple[Any, ...]]) -> list[Any]:
    """Each case with each release: with one of them in turn, and with the other in the tier ``long``."""
    return [
        pytest.param(*case, *release, marks=() if at % 2 == which else pytest.mark.long)
        for at, case in enumerate(cases)
        for which, release in enumerate(VERSIONS)
    ]


@dataclass
class Catalogs:
    """Two databases of one metastore: one that hudi_fast syncs, one that Apache Hudi syncs."""

    hudi: RealHudi
    client: HiveClient
    uri: str
    path: Path
    number: int

    def options(self, side: str, more: Mapping[str, Any]) -> dict[str, Any]:
        place = {"metastore.uris": self.uri, "mode": "hms", "support_timestamp": "true", "database": self.name(side)}
        return {**{HIVE + key: value for key, value in place.items()}, **more}

    def name(self, side: str) -> str:
        return f"{side}{self.number}"

    def hudi_syncs(self, into: str = "theirs", **more: Any) -> None:
        raw = hf.HudiTable.open(self.path).config.raw
        passed = {key: raw[key] for key in PASSED_ON if key in raw}
        base = {"hoodie.datasource.meta.sync.base.path": str(self.path), f"{HIVE}table": "trips"}
        self.hudi.sync({**passed, **base, **self.options(into, options_of(more))})

    def we_sync(self, into: str = "ours", **more: Any) -> None:
        hf.HudiTable.open(self.path).services.sync(self.options(into, options_of(more)))

    def agree(self) -> dict[str, Any]:
        """Both databases hold the same; what they hold."""
        ours, theirs = (database_entries(self.client, self.name(side)) for side in ("ours", "theirs"))
        assert differences(ours, theirs) == []
        return ours

    def sync_and_agree(self, **more: Any) -> dict[str, Any]:
        self.hudi_syncs(**more)
        self.we_sync(**more)
        return self.agree()


def options_of(keywords: Mapping[str, Any]) -> dict[str, Any]:
    """``__`` of a keyword stands for a dot. With the name of the other table it would be one and then the other."""
    found = {HIVE + name.replace("__", "."): value for name, value in keywords.items()}
    return {**found, **({SNAPSHOT: "false"} if "skip_ro_suffix" in keywords else {})}


def rows(*cities: str, **more: Any) -> pa.Table:
    """One row for each city, with columns of many types."""
    count = len(cities)
    moment = dt.datetime(2024, 3, 1, 12, 30)
    columns = {
        "id": [f"id{number}" for number in range(count)],
        "city": list(cities),
        "ts": pa.array(range(count), pa.int64()),
        "seats": pa.array([1] * count, pa.int32()),
        "fare": pa.array([1.5] * count, pa.float32()),
        "price": pa.array([1] * count, pa.decimal128(12, 3)),
        "day": [moment.date()] * count,
        "begun": pa.array([moment] * count, pa.timestamp("us", "UTC")),
        "local": pa.array([moment] * count, pa.timestamp("us")),
        "raw": [b"x"] * count,
        "flag": [True] * count,
        "point": pa.array(
            [{"X": 1, "l": [2.5]}] * count, pa.struct([("X", pa.int32()), ("l", pa.list_(pa.float64()))])
        ),
        "tags": pa.array([[("k", 1)]] * count, pa.map_(pa.string(), pa.int64())),
    }
    return pa.table({**columns, **more})


@pytest.fixture
def client(hive_metastore: Any) -> Iterator[HiveClient]:
    connection = HiveClient([("127.0.0.1", hive_metastore.port)], 30)
    yield connection
    connection.close()


@pytest.fixture
def catalogs(request: pytest.FixtureRequest, hive_metastore: Any, client: HiveClient, tmp_path: Path) -> Any:
    def of(peer: str) -> Catalogs:
        hudi = request.getfixturevalue(peer)
        return Catalogs(hudi, client, hive_metastore.uri, tmp_path / "trips", next(NUMBERS))

    return of


@pytest.mark.long("MERGE_ON_READ-hudi_015-6")
@pytest.mark.smoke("COPY_ON_WRITE-hudi_12-9")
@pytest.mark.parametrize(
    ("kind", "peer", "version"), every_other([("COPY_ON_WRITE",), ("MERGE_ON_READ",)]), ids=lambda one: str(one)
)
def test_life_of_a_table(catalogs: Any, peer: str, version: int, kind: str) -> None:
    both, options = catalogs(peer), trip_options(version, **{"hoodie.datasource.write.table.type": kind})
    hf.write(rows("Oslo", "Rome", "São Paulo"), both.path, options)
    assert len(both.sync_and_agree()["trips"]["partitions"]) == 3
    hf.write(rows("Lima", "Oslo", extra=pa.array([1, 2], pa.int32())), both.path, options)
    both.sync_and_agree()
    gone = {"hoodie.datasource.write.operation": "delete_partition"}
    hf.write(rows("Rome"), both.path, {**options, **gone, "hoodie.datasource.write.partitions.to.delete": "Rome"})
    assert len(both.sync_and_agree()["trips"]["partitions"]) == 3
    both.sync_and_agree()


@pytest.mark.parametrize(("peer", "version"), [pytest.param(*VERSIONS[0], marks=pytest.mark.long), VERSIONS[1]])
def test_either_side_goes_on(catalogs: Any, peer: str, version: int) -> None:
    both, options = catalogs(peer), trip_options(version)
    hf.write(rows("Oslo", "Rome"), both.path, options)
    both.sync_and_agree()
    hf.write(rows("Lima", extra=pa.array([1.0])), both.path, options)
    both.hudi_syncs(into="ours")
    both.we_sync(into="theirs")
    both.agree()
    hf.write(rows("Bern", extra=pa.array([2.0])), both.path, options)
    assert len(both.sync_and_agree()["trips"]["partitions"]) == 4


@pytest.mark.long(
    "create_managed_table-hudi_015-6",
    "omit_metadata_fields-schema_string_length_thresh-hudi_12-9",
    "skip_ro_suffix-table_properties-serde_properties-hudi_015-6",
    "sync_as_datasource-hudi_12-9",
    "table__strategy-support_timestamp-hudi_015-6",
    "table__strategy-sync_comment-hudi_12-9",
)
@pytest.mark.parametrize(
    ("more", "peer", "version"),
    every_other(
        [
            ({"skip_ro_suffix": "true", "table_properties": "a=b\nc=d", "serde_properties": "s=t"},),
            ({"omit_metadata_fields": "true", "schema_string_length_thresh": "100"},),
            ({"create_managed_table": "true"},),
            ({"sync_as_datasource": "false"},),
            ({"table__strategy": "RO", "support_timestamp": "false"},),
            ({"table__strategy": "RT", "sync_comment": "true"},),
        ]
    ),
    ids=lambda one: "-".join(one) if isinstance(one, dict) else str(one),
)
def test_options_mean_the_same(catalogs: Any, peer: str, version: int, more: dict[str, str]) -> None:
    both, options = catalogs(peer), trip_options(version, **MERGED)
    hf.write(rows("Oslo", "Rome"), both.path, options)
    both.sync_and_agree(**more)
    hf.write(rows("Lima", extra=pa.array([1], pa.int32())), both.path, options)
    both.sync_and_agree(**more)


KEYS = "hoodie__datasource__write__partitionpath__field"
GENERATOR = "hoodie__datasource__write__keygenerator__class"


LAYOUTS = {
    "unpartitioned": {KEYS: "", GENERATOR: "org.apache.hudi.keygen.NonpartitionedKeyGenerator"},
    "two": {KEYS: "city,seats", GENERATOR: "org.apache.hudi.keygen.ComplexKeyGenerator"},
    "hive_style": {"hoodie__datasource__write__hive_style_partitioning": "true"},
    "encoded": {"hoodie__datasource__write__partitionpath__urlencode": "true"},
}


@pytest.mark.parametrize(("layout", "peer", "version"), every_other([(one,) for one in LAYOUTS]))
def test_partition_layouts(catalogs: Any, peer: str, version: int, layout: str) -> None:
    both = catalogs(peer)
    hf.write(rows("Oslo", "São Paulo"), both.path, trip_options(version, **LAYOUTS[layout]))
    both.sync_and_agree()
