"""AWS Glue as a catalog.

A table is read as Glue returns it, changed where it differs, and written back, so that attributes which hudi_fast does
not know keep their values.

Source: ``AWSGlueCatalogSyncClient``, ``GlueCatalogSyncClientConfig`` (Apache Hudi 0.15.0 and 1.x).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from hudi_fast.catalogs.entries import CatalogColumn, CatalogPartition, CatalogTable
from hudi_fast.config.sync_options import SyncOptions
from hudi_fast.errors import CatalogError
from hudi_fast.storage.extras import import_extra

__all__ = ["GlueCatalog"]

_MAX_CHANGED, _MAX_DROPPED, _MAX_READ = 100, 25, 1000
"""Maximum numbers of partitions in one request to Glue."""

_WRITABLE = (
    "Name",
    "Description",
    "Owner",
    "LastAccessTime",
    "LastAnalyzedTime",
    "Retention",
    "StorageDescriptor",
    "PartitionKeys",
    "ViewOriginalText",
    "ViewExpandedText",
    "TableType",
    "Parameters",
    "TargetTable",
)
"""Attributes of a table that may be written back."""

_LISTING_KEY = "hudi.metadata-listing-enabled"
_TEMPORARY = "_hudi_fast_replaced"


class GlueCatalog:
    """The Glue catalog of a region.

    Args:
        options: region, endpoint, and how tables are written.
    """

    def __init__(self, options: SyncOptions) -> None:
        boto3 = import_extra("boto3.session", "aws", "AWS Glue")
        self._errors = import_extra("botocore.exceptions", "aws", "AWS Glue")
        region = options.glue_region or os.environ.get("AWS_REGION")
        with self._explained("the connection"):
            self._glue = boto3.Session().client("glue", region_name=region, endpoint_url=options.glue_endpoint)
        self._options = options

    @property
    def name(self) -> str:
        """Glue and its region."""
        return f"AWS Glue in {self._glue.meta.region_name}"

    def has_database(self, name: str) -> bool:
        """Whether the database exists."""
        return self._found(lambda: self._glue.get_database(Name=name)) is not None

    def create_database(self, name: str) -> None:
        """Create a database."""
        made = {"Name": name, "Description": "Automatically created by hudi_fast"}
        with self._explained("create_database", "AlreadyExistsException"):
            self._glue.create_database(DatabaseInput=made)

    def table(self, database: str, name: str) -> CatalogTable | None:
        """A table; None if it does not exist."""
        answer = self._found(lambda: self._glue.get_table(DatabaseName=database, Name=name))
        if answer is None:
            return None
        found = answer["Table"]
        storage = found["StorageDescriptor"]
        serde = storage.get("SerdeInfo") or {}
        return CatalogTable(
            database=database,
            name=found["Name"],
            columns=_columns(storage.get("Columns")),
            partition_columns=_columns(found.get("PartitionKeys")),
            location=storage.get("Location", ""),
            input_format=storage.get("InputFormat", ""),
            output_format=storage.get("OutputFormat", ""),
            serde=serde.get("SerializationLibrary", ""),
            serde_properties=serde.get("Parameters") or {},
            properties=found.get("Parameters") or {},
            handle=found,
        )

    def create_table(self, table: CatalogTable) -> None:
        """Create a table."""
        listing = "TRUE" if self._options.glue_lists_by_metadata else "FALSE"
        described = replace(table, properties={_LISTING_KEY: listing, **table.properties})
        made = {"Name": table.name, "TableType": "EXTERNAL_TABLE", "PartitionKeys": _fields(table.partition_columns)}
        with self._explained("create_table"):
            self._glue.create_table(DatabaseName=table.database, TableInput=self._changed(made, described))

    def replace_table(self, table: CatalogTable) -> None:
        """Create the table under a trial name, then drop the old table and create the new one: Glue cannot rename."""
        trial = replace(table, name=f"{table.name}{_TEMPORARY}")
        with self._explained("delete_table", "EntityNotFoundException"):
            self._glue.delete_table(DatabaseName=trial.database, Name=trial.name)
        self.create_table(trial)
        for name in (trial.name, table.name):
            with self._explained("delete_table", "EntityNotFoundException"):
                self._glue.delete_table(DatabaseName=table.database, Name=name)
        self.create_table(table)

    def update_table(self, table: CatalogTable, cascade: bool = False) -> None:
        """Store a table with changes; partitions of Glue keep their own columns, as with Apache Hudi."""
        made = {key: table.handle[key] for key in _WRITABLE if key in table.handle}
        with self._explained("update_table"):
            self._glue.update_table(
                DatabaseName=table.database,
                TableInput=self._changed(made, table),
                SkipArchive=self._options.glue_skips_archive,
            )

    def partitions(self, table: CatalogTable, values: Sequence[tuple[str, ...]] | None) -> list[CatalogPartition]:
        """The partitions of a table, or the existing partitions with the given values."""
        place = {"DatabaseName": table.database, "TableName": table.name}
        with self._explained("get_partitions"):
            if values is None:
                pages = self._glue.get_paginator("get_partitions").paginate(**place, ExcludeColumnSchema=True)
                found = [one for page in pages for one in page["Partitions"]]
            else:
                found = []
                for some in _batches(values, _MAX_READ):
                    wanted = [{"Values": list(one)} for one in some]
                    found += self._glue.batch_get_partition(**place, PartitionsToGet=wanted)["Partitions"]
        return [CatalogPartition(tuple(one["Values"]), one["StorageDescriptor"].get("Location", "")) for one in found]

    def add_partitions(self, table: CatalogTable, partitions: Sequence[CatalogPartition]) -> None:
        """Add partitions with the columns and formats of the table."""
        for some in _batches(partitions, _MAX_CHANGED):
            made = [_partition(table, one) for one in some]
            with self._explained("batch_create_partition"):
                answer = self._glue.batch_create_partition(
                    DatabaseName=table.database, TableName=table.name, PartitionInputList=made
                )
            self._check(answer, "batch_create_partition", "AlreadyExistsException")

    def move_partitions(self, table: CatalogTable, partitions: Sequence[CatalogPartition]) -> None:
        """Change the locations of partitions; they get the columns and formats of the table."""
        for some in _batches(partitions, _MAX_CHANGED):
            made = [{"PartitionValueList": list(one.values), "PartitionInput": _partition(table, one)} for one in some]
            with self._explained("batch_update_partition"):
                answer = self._glue.batch_update_partition(
                    DatabaseName=table.database, TableName=table.name, Entries=made
                )
            self._check(answer, "batch_update_partition")

    def drop_partitions(self, table: CatalogTable, values: Sequence[tuple[str, ...]]) -> None:
        """Drop partitions but not their files."""
        for some in _batches(values, _MAX_DROPPED):
            with self._explained("batch_delete_partition"):
                answer = self._glue.batch_delete_partition(
                    DatabaseName=table.database,
                    TableName=table.name,
                    PartitionsToDelete=[{"Values": list(one)} for one in some],
                )
            self._check(answer, "batch_delete_partition", "EntityNotFoundException")

    def close(self) -> None:
        """Close the connections."""
        self._glue.close()

    # ---- requests

    def _changed(self, made: Mapping[str, Any], table: CatalogTable) -> dict[str, Any]:
        """A table of Glue with the attributes of ``table``."""
        before = made.get("StorageDescriptor", {})
        serde = {
            **before.get("SerdeInfo", {}),
            "SerializationLibrary": table.serde,
            "Parameters": dict(table.serde_properties),
        }
        storage = {
            **before,
            "Columns": _fields(table.columns),
            "Location": _for_glue(table.location),
            "InputFormat": table.input_format,
            "OutputFormat": table.output_format,
            "SerdeInfo": serde,
        }
        now = datetime.now(UTC)
        times = {"LastAccessTime": now, "LastAnalyzedTime": now}
        return {**made, **times, "Parameters": dict(table.properties), "StorageDescriptor": storage}

    def _found(self, get: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any] | None:
        """An answer; None if there is nothing of that name."""
        with self._explained("get", "EntityNotFoundException"):
            return get()
        return None

    def _check(self, answer: Mapping[str, Any], method: str, *harmless: str) -> None:
        """Refuse an answer in which single partitions failed."""
        for one in answer.get("Errors", ()):
            detail = one.get("ErrorDetail") or {}
            if detail.get("ErrorCode") not in harmless:
                values = one.get("PartitionValues") or one.get("PartitionValueList")
                raise CatalogError(f"{self.name} refused {method} of {values}: {detail.get('ErrorMessage')}")

    @contextmanager
    def _explained(self, what: str, *harmless: str) -> Iterator[None]:
        """Raise errors of boto3 as ``CatalogError``; an error with a code of ``harmless`` only ends the block."""
        try:
            yield
        except self._errors.ClientError as error:
            if error.response.get("Error", {}).get("Code") not in harmless:
                raise CatalogError(f"{self.name} refused {what}: {error}") from error
        except (self._errors.BotoCoreError, ValueError) as error:
            raise CatalogError(
                f"AWS Glue did not answer {what}: {error} Check hoodie.aws.glue.region, hoodie.aws.glue.endpoint and "
                "boto3's settings."
            ) from error


def _partition(table: CatalogTable, partition: CatalogPartition) -> dict[str, Any]:
    storage = {**table.handle["StorageDescriptor"], "Location": _for_glue(partition.location)}
    return {"Values": list(partition.values), "StorageDescriptor": storage}


def _columns(columns: Sequence[Mapping[str, Any]] | None) -> tuple[CatalogColumn, ...]:
    return tuple(CatalogColumn(one["Name"], one.get("Type", ""), one.get("Comment", "")) for one in columns or ())


def _fields(columns: Sequence[CatalogColumn]) -> list[dict[str, str]]:
    return [{"Name": one.name, "Type": one.type, "Comment": one.comment} for one in columns]


def _for_glue(location: str) -> str:
    """A location with the scheme that Athena reads."""
    scheme, found, rest = location.partition("://")
    return f"s3://{rest}" if found and scheme in ("s3a", "s3n") else location


def _batches(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    return (items[start : start + size] for start in range(0, len(items), size))
