"""Tables of these tests, and the metastore that holds them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.catalogs.sync import SyncedTable
from hudi_fast.hive.client import HiveClient
from tests.servers.hive_entries import database_entries

HIVE = "hoodie.datasource.hive_sync."
NUMBERS = itertools.count()


@dataclass
class Synced:
    """A table and its database in a metastore.

    Attributes:
        path: base path.
        uri: address of the metastore.
        client: a connection to it.
        options: of writes and syncs.
        database: its name.
    """

    path: Path
    uri: str
    client: HiveClient
    options: dict[str, Any]
    database: str = field(default_factory=lambda: f"rides{next(NUMBERS)}")

    def write(self, rows: pa.Table, **more: Any) -> Any:
        """Write without a sync."""
        return hf.write(rows, self.path, {**self.options, **named(more)})

    def sync(self, **more: Any) -> list[SyncedTable]:
        """Sync; keywords are options below ``hoodie.datasource.hive_sync``."""
        options = {f"{HIVE}metastore.uris": self.uri, f"{HIVE}database": self.database}
        return hf.HudiTable.open(self.path).services.sync({**options, **{HIVE + key: one for key, one in more.items()}})

    def entries(self) -> dict[str, dict[str, Any]]:
        """All that the metastore holds of the database."""
        return database_entries(self.client, self.database)

    def partitions(self, name: str = "trips") -> list[list[str]]:
        """The values of the partitions of a table, sorted."""
        return sorted(one["values"] for one in self.entries()[name]["partitions"])


def named(keywords: dict[str, Any]) -> dict[str, Any]:
    """``__`` of a keyword stands for a dot."""
    return {f"hoodie.{name.replace('__', '.')}": value for name, value in keywords.items()}


def rides(*rows: tuple[str, str], **more: pa.Array) -> pa.Table:
    """Rows with a key and a city."""
    keys, cities = [one[0] for one in rows], [one[1] for one in rows]
    return pa.table({"id": keys, "city": cities, "ts": pa.array([1] * len(rows), pa.int32()), **more})


def trip_options(kind: str = "COPY_ON_WRITE", **more: Any) -> dict[str, Any]:
    """Options of a table of :func:`rides`."""
    return {
        "hoodie.table.name": "trips",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "city",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.table.type": kind,
        **named(more),
    }


@pytest.fixture
def client(hive_metastore: Any) -> Iterator[HiveClient]:
    connection = HiveClient([("127.0.0.1", hive_metastore.port)], 30)
    yield connection
    connection.close()


@pytest.fixture
def table(tmp_path: Path, hive_metastore: Any, client: HiveClient) -> Synced:
    return Synced(tmp_path / "trips", hive_metastore.uri, client, trip_options())
