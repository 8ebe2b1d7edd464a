"""A Hive metastore as a catalog.

A table is read as a Thrift struct, changed where it differs, and written back, so that attributes which hudi_fast does
not know keep their values.

Source: ``HMSDDLExecutor``, ``HoodieHiveSyncClient`` (Apache Hudi 1.2.0).
"""

from __future__ import annotations

import copy
import getpass
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from hudi_fast.catalogs.entries import CatalogColumn, CatalogPartition, CatalogTable
from hudi_fast.errors import CatalogError
from hudi_fast.hive.client import HiveClient, hive_module, message_of
from hudi_fast.keys.partition_path import DEFAULT_PARTITION, encode

__all__ = ["HiveCatalog"]

_CASCADE = {"CASCADE": "true"}
_ALL = -1
_TEMPORARY = "_hudi_fast_replaced"


class HiveCatalog:
    """A Hive metastore.

    Args:
        client: its connection.
        batch_size: partitions of one call.
    """

    def __init__(self, client: HiveClient, batch_size: int) -> None:
        self._client = client
        self._batch_size = batch_size
        self._types = hive_module()

    @property
    def name(self) -> str:
        """The metastore and its address."""
        return f"the Hive metastore at {self._client.name}"

    def has_database(self, name: str) -> bool:
        """Whether the database exists."""
        try:
            self._call("get_database", name)
        except self._types.NoSuchObjectException:
            return False
        return True

    def create_database(self, name: str) -> None:
        """Create a database at the metastore's default location."""
        made = self._types.Database(name=name, description="automatically created by hoodie", parameters={})
        try:
            self._call("create_database", made)
        except self._types.AlreadyExistsException:
            return

    def table(self, database: str, name: str) -> CatalogTable | None:
        """A table; None if it does not exist."""
        try:
            found = self._call("get_table", database, name)
        except self._types.NoSuchObjectException:
            return None
        storage = found.sd
        return CatalogTable(
            database=found.dbName,
            name=found.tableName,
            columns=_columns(storage.cols),
            partition_columns=_columns(found.partitionKeys),
            location=storage.location or "",
            input_format=storage.inputFormat or "",
            output_format=storage.outputFormat or "",
            serde=storage.serdeInfo.serializationLib or "",
            serde_properties=storage.serdeInfo.parameters or {},
            properties=found.parameters or {},
            handle=found,
        )

    def create_table(self, table: CatalogTable) -> None:
        """Create a table. It belongs to the user of this process."""
        types = self._types
        made = types.Table(
            tableName=table.name,
            dbName=table.database,
            owner=_user(),
            createTime=int(time.time()),
            lastAccessTime=0,
            retention=0,
            partitionKeys=self._fields(table.partition_columns),
            sd=types.StorageDescriptor(
                compressed=False, numBuckets=0, serdeInfo=types.SerDeInfo(), bucketCols=[], sortCols=[], parameters={}
            ),
            tableType="EXTERNAL_TABLE",
        )
        self._call("create_table", self._changed(made, table))

    def replace_table(self, table: CatalogTable) -> None:
        """Create a table under another name, drop the one with its name, and rename the new one."""
        temporary = f"{table.name}{_TEMPORARY}"
        with _ignored(self._types.NoSuchObjectException):
            self._call("drop_table", table.database, temporary, False)
        self.create_table(replace(table, name=temporary))
        self._call("drop_table", table.database, table.name, False)
        made = self._call("get_table", table.database, temporary)
        made.tableName = table.name
        self._alter(table.database, temporary, made, {})

    def update_table(self, table: CatalogTable, cascade: bool = False) -> None:
        """Store a table with changes."""
        changed = self._changed(copy.deepcopy(table.handle), table)
        self._alter(table.database, table.name, changed, _CASCADE if cascade else {})

    def partitions(self, table: CatalogTable, values: Sequence[tuple[str, ...]] | None) -> list[CatalogPartition]:
        """The partitions of a table, or the existing partitions with the given values."""
        place = table.database, table.name
        names = self._call("get_partition_names", *place, _ALL) if values is None else self._names(table, values)
        found = [one for some in self._batches(names) for one in self._call("get_partitions_by_names", *place, some)]
        return [CatalogPartition(tuple(one.values), one.sd.location or "") for one in found]

    def add_partitions(self, table: CatalogTable, partitions: Sequence[CatalogPartition]) -> None:
        """Add partitions with the columns and formats of the table."""
        for some in self._batches(partitions):
            made = [self._partition(table, one) for one in some]
            self._call(
                "add_partitions_req",
                self._types.AddPartitionsRequest(
                    dbName=table.database, tblName=table.name, parts=made, ifNotExists=True, needResult=False
                ),
            )

    def move_partitions(self, table: CatalogTable, partitions: Sequence[CatalogPartition]) -> None:
        """Change the locations of partitions; they get the columns and formats of the table."""
        for some in self._batches(partitions):
            made = [self._partition(table, one) for one in some]
            self._call("alter_partitions", table.database, table.name, made)

    def drop_partitions(self, table: CatalogTable, values: Sequence[tuple[str, ...]]) -> None:
        """Drop partitions but not their files."""
        for name in self._names(table, values):
            with _ignored(self._types.NoSuchObjectException):
                self._call("drop_partition_by_name", table.database, table.name, name, False)

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    # ---- structs

    def _changed(self, struct: Any, table: CatalogTable) -> Any:
        """A Thrift table with the attributes of ``table``."""
        struct.parameters = dict(table.properties)
        storage = struct.sd
        storage.cols = self._fields(table.columns)
        storage.location = table.location
        storage.inputFormat, storage.outputFormat = table.input_format, table.output_format
        storage.serdeInfo.serializationLib = table.serde
        storage.serdeInfo.parameters = dict(table.serde_properties)
        return struct

    def _partition(self, table: CatalogTable, partition: CatalogPartition) -> Any:
        storage = copy.copy(table.handle.sd)
        storage.location = partition.location
        return self._types.Partition(
            values=list(partition.values),
            dbName=table.database,
            tableName=table.name,
            createTime=0,
            lastAccessTime=0,
            sd=storage,
        )

    def _fields(self, columns: Sequence[CatalogColumn]) -> list[Any]:
        return [self._types.FieldSchema(name=one.name, type=one.type, comment=one.comment) for one in columns]

    def _names(self, table: CatalogTable, values: Sequence[tuple[str, ...]]) -> list[str]:
        """Names of partitions: ``city=Oslo/day=2026-11-26``, escaped as Hive does."""
        columns = [one.name for one in table.partition_columns]
        return [
            "/".join(f"{name}={encode(text) or DEFAULT_PARTITION}" for name, text in zip(columns, one, strict=True))
            for one in values
        ]

    def _batches(self, items: Sequence[Any]) -> Iterator[Sequence[Any]]:
        return (items[start : start + self._batch_size] for start in range(0, len(items), self._batch_size))

    # ---- calls

    def _alter(self, database: str, name: str, struct: Any, context: Mapping[str, str]) -> None:
        made = self._types.EnvironmentContext(properties=dict(context))
        self._call("alter_table_with_environment_context", database, name, struct, made)

    def _call(self, method: str, *arguments: Any) -> Any:
        """Call the metastore.

        Raises:
            NoSuchObjectException: something does not exist.
            AlreadyExistsException: something exists.
            CatalogError: the metastore refuses for another reason, or does not answer.
        """
        try:
            return self._client.call(method, *arguments)
        except (self._types.NoSuchObjectException, self._types.AlreadyExistsException):
            raise
        except ConnectionError as error:
            raise CatalogError(f"{error} Check hoodie.datasource.hive_sync.metastore.uris.") from error
        except tuple(self._types.__thrift_meta__["exceptions"]) as error:
            raise CatalogError(f"{self.name} refused {method}: {message_of(error)}") from error


def _columns(fields: Sequence[Any] | None) -> tuple[CatalogColumn, ...]:
    return tuple(CatalogColumn(one.name, one.type, one.comment or "") for one in fields or ())


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # in a container the user may have no name
        return str(os.getuid())


@contextmanager
def _ignored(kind: type[Exception]) -> Iterator[None]:
    try:
        yield
    except kind:
        return
