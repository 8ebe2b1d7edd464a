"""The options of catalogs as one frozen value.

::

    {"hoodie.datasource.hive_sync...": ...} ─► SyncOptions ─► hudi_fast.catalogs
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hudi_fast.config.option_fields import (
    Kind,
    Option,
    OptionValues,
    bound,
    normalise_fields,
    option,
    options_of,
)
from hudi_fast.errors import ConfigError
from hudi_fast.values import dataclass

__all__ = ["SYNC_OPTIONS", "SYNC_TOOLS", "SyncOptions"]

SYNC_TOOLS = {
    "org.apache.hudi.hive.HiveSyncTool": "hive",
    "org.apache.hudi.aws.sync.AwsGlueCatalogSyncTool": "glue",
}
"""Kinds of catalogs by Apache Hudi's classes."""


def _flag(key: str, default: bool, doc: str, *aliases: str, supported: tuple[bool, ...] | None = None) -> Option:
    return Option(key, Kind.BOOL, default, doc, aliases=aliases, supported=supported)


def _text(key: str, default: str | None, doc: str, **more: Any) -> Option:
    return Option(key, Kind.TEXT, default, doc, **more)


def _unused(key: str, doc: str) -> Option:
    return Option(key, Kind.TEXT, None, doc, honoured=False)


_H = "hoodie.datasource.hive_sync."
_M = "hoodie.meta.sync."
_G = "hoodie.datasource.meta.sync.glue."
_PROPERTIES, _SERDE_PROPERTIES = f"{_H}table_properties", f"{_H}serde_properties"


@dataclass(frozen=True, slots=True, repr=False)
class SyncOptions(OptionValues):
    """Which catalogs hold the table, and how."""

    meta_enabled: bool = bound(
        _flag("hoodie.datasource.meta.sync.enable", False, "Sync catalogs after a write.", "hoodie.meta.sync.enabled")
    )
    hive_enabled: bool = bound(_flag(f"{_H}enable", False, "Sync a Hive metastore after a write."))
    tools: tuple[str, ...] = option(
        f"{_M}client.tool.class",
        Kind.LIST,
        ("org.apache.hudi.hive.HiveSyncTool",),
        "Classes that stand for the catalogs to sync.",
        supported=tuple(SYNC_TOOLS),
    )
    metastore_uris: str | None = bound(
        _text(
            f"{_H}metastore.uris",
            None,
            "Hive metastore, `thrift://host:port`; default: that of Spark or hive-site.xml.",
        )
    )
    database: str | None = bound(
        _text(f"{_H}database", None, "Database of the catalog; default: the table's database, else `default`.")
    )
    table: str | None = bound(_text(f"{_H}table", None, "Table of the catalog; default: the table's name."))
    partition_fields: tuple[str, ...] = option(
        f"{_H}partition_fields", Kind.LIST, (), "Partition columns of the catalog; default: those of the table."
    )
    extractor: str | None = bound(
        _text(
            f"{_H}partition_extractor_class",
            None,
            "How a partition path becomes values; default: by the table's paths.",
        )
    )
    mode: str | None = bound(
        _text(
            f"{_H}mode",
            None,
            "Accepted; hudi_fast always calls the metastore itself.",
            choices=("hms", "jdbc", "hiveql"),
            supported=("hms", "jdbc", "hiveql"),
        )
    )
    creates_database: bool = bound(_flag(f"{_H}auto_create_database", True, "Create a missing database."))
    ignores_failures: bool = bound(
        _flag(f"{_H}ignore_exceptions", False, "A sync that fails after a write is a warning.")
    )
    recreates_table: bool = bound(
        _flag(f"{_H}recreate_table_on_error", False, "Create the table again if its columns cannot be changed.")
    )
    skips_ro_suffix: bool = bound(
        _flag(f"{_H}skip_ro_suffix", False, "The read-optimized table has the table's own name.")
    )
    strategy: str = option(
        f"{_H}table.strategy",
        Kind.ENUM,
        "ALL",
        "Tables of the catalog for a MERGE_ON_READ table: read-optimized, snapshot, or all.",
        choices=("ALL", "RO", "RT"),
    )
    has_plain_snapshot: bool = bound(
        _flag(f"{_M}sync_snapshot_with_table_name", True, "With ALL, another snapshot table has the table's own name.")
    )
    has_timestamps: bool = bound(
        _flag(
            f"{_H}support_timestamp",
            True,
            "Timestamps are `timestamp`, not `bigint`. Apache Hudi's command has the default false.",
        )
    )
    as_data_source: bool = bound(
        _flag(f"{_H}sync_as_datasource", True, "Store the properties by which Spark reads the table as a Hudi table.")
    )
    schema_part_length: int = option(
        f"{_H}schema_string_length_thresh",
        Kind.INT,
        4000,
        "Characters of Spark's schema in one property.",
        unit="characters",
        minimum=1,
    )
    spark_version: str | None = bound(
        _text(
            "hoodie.meta_sync.spark.version", None, "Spark's version among these properties; default on Spark: its own."
        )
    )
    table_properties: str | None = bound(
        _text(f"{_H}table_properties", None, "More table properties, one `key=value` a line.")
    )
    serde_properties: str | None = bound(
        _text(f"{_H}serde_properties", None, "More serde properties, one `key=value` a line.")
    )
    is_managed: bool = bound(_flag(f"{_H}create_managed_table", False, "Create a managed table."))
    omits_meta_fields: bool = bound(_flag(f"{_H}omit_metadata_fields", False, "Leave out the meta columns."))
    has_comments: bool = bound(_flag(f"{_H}sync_comment", False, "Copy the comments of columns."))
    batch_size: int = option(f"{_H}batch_num", Kind.INT, 1000, "Partitions of one call.", unit="partitions", minimum=1)
    incremental: bool = bound(
        _flag(f"{_M}incremental", True, "Sync only partitions that were written or dropped since the last sync.")
    )
    without_partitions: bool = bound(_flag(f"{_M}no_partition_metadata", False, "Do not sync partitions."))
    only_if_changed: bool = bound(
        _flag(
            "hoodie.datasource.meta_sync.condition.sync",
            False,
            "Record the last synced instant only if columns, properties or partitions changed.",
        )
    )
    glue_region: str | None = bound(
        _text("hoodie.aws.glue.region", None, "Region of AWS Glue; default: that of boto3.")
    )
    glue_endpoint: str | None = bound(
        _text("hoodie.aws.glue.endpoint", None, "Address of AWS Glue; default: that of the region.")
    )
    glue_skips_archive: bool = bound(
        _flag(f"{_G}skip_table_archive", True, "AWS Glue keeps no earlier versions of the entry.")
    )
    glue_lists_by_metadata: bool = bound(
        _flag(f"{_G}metadata_file_listing", False, "Athena lists files by the metadata table.")
    )
    buckets: bool = bound(_flag(f"{_H}bucket_sync", False, "Store buckets in the metastore.", supported=(False,)))

    def __post_init__(self) -> None:
        normalise_fields(self)
        _lines(_PROPERTIES, self.table_properties)
        _lines(_SERDE_PROPERTIES, self.serde_properties)

    @property
    def named_catalogs(self) -> tuple[str, ...]:
        """Kinds of the catalogs that the options name: ``hive``, ``glue``."""
        return tuple(dict.fromkeys(SYNC_TOOLS[tool] for tool in self.tools))

    @property
    def catalogs(self) -> tuple[str, ...]:
        """Kinds of the catalogs to sync after a write; empty if none is enabled."""
        named = self.named_catalogs if self.meta_enabled else ()
        return tuple(dict.fromkeys([*named, "hive"] if self.hive_enabled else named))

    @property
    def more_properties(self) -> Mapping[str, str]:
        """Table properties that the user gave."""
        return _lines(_PROPERTIES, self.table_properties)

    @property
    def more_serde_properties(self) -> Mapping[str, str]:
        """Serde properties that the user gave."""
        return _lines(_SERDE_PROPERTIES, self.serde_properties)


def _lines(key: str, text: str | None) -> dict[str, str]:
    """``key=value`` of each line."""
    found = {}
    for line in (text or "").splitlines():
        name, equals, value = line.partition("=")
        if line.strip():
            if not equals or not name.strip():
                raise ConfigError(f"{key} has the line {line!r}; expected key=value.")
            found[name.strip()] = value.strip()
    return found


SYNC_OPTIONS = (
    *options_of(SyncOptions),
    _flag(f"{_G}partition_index_fields.enable", False, "Create partition indexes in AWS Glue.", supported=(False,)),
    _unused(f"{_G}partition_index_fields", "Partition indexes in AWS Glue."),
    _unused(f"{_G}all_partitions_read_parallelism", "Requests to AWS Glue at the same time."),
    _unused(f"{_G}changed_partitions_read_parallelism", "Requests to AWS Glue at the same time."),
    _unused(f"{_G}partition_change_parallelism", "Requests to AWS Glue at the same time."),
    _unused(f"{_H}bucket_sync_spec", "Buckets in the metastore."),
    _unused(f"{_H}filter_pushdown_enabled", "hudi_fast always asks for the changed partitions only."),
    _unused(f"{_H}filter_pushdown_max_size", "hudi_fast always asks for the changed partitions only."),
    _unused(f"{_H}username", "User of HiveServer2."),
    _unused(f"{_H}password", "Password of HiveServer2."),
    _unused(f"{_H}jdbcurl", "Address of HiveServer2."),
    _unused(f"{_H}use_jdbc", "Call HiveServer2."),
    _unused(f"{_H}use_spark_catalog", "Call the metastore through Spark."),
    _unused(f"{_H}base_file_format", "Base files are Parquet."),
    _unused(f"{_M}decode_partition", "Decode partition values for HiveServer2."),
    _unused(f"{_M}metadata_file_listing", "The metadata table lists partitions if there is one."),
    _unused("hoodie.datasource.meta.sync.base.path", "Base path of the table."),
)
"""Options of syncing catalogs."""
