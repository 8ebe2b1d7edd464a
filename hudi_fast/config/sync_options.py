"""The options of catalogs as one frozen value.

::

    {"hoodie.datasource.hive_sync...": ...} ─► SyncOptions ─► hudi_fast.catalogs
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hudi_fast.config.catalog.sync import SYNC_TOOLS
from hudi_fast.config.option_fields import normalise_fields, option_field
from hudi_fast.config.option_values import OptionValues
from hudi_fast.errors import ConfigError

__all__ = ["SyncOptions"]

_H = "hoodie.datasource.hive_sync."
_M = "hoodie.meta.sync."
_G = "hoodie.datasource.meta.sync.glue."
_PROPERTIES, _SERDE_PROPERTIES = f"{_H}table_properties", f"{_H}serde_properties"


@dataclass(frozen=True, slots=True, repr=False)
class SyncOptions(OptionValues):
    """Which catalogs hold the table, and how."""

    meta_enabled: bool = option_field("hoodie.datasource.meta.sync.enable")
    hive_enabled: bool = option_field(f"{_H}enable")
    tools: tuple[str, ...] = option_field(f"{_M}client.tool.class")
    metastore_uris: str | None = option_field(f"{_H}metastore.uris")
    database: str | None = option_field(f"{_H}database")
    table: str | None = option_field(f"{_H}table")
    partition_fields: tuple[str, ...] = option_field(f"{_H}partition_fields")
    extractor: str | None = option_field(f"{_H}partition_extractor_class")
    mode: str | None = option_field(f"{_H}mode")
    creates_database: bool = option_field(f"{_H}auto_create_database")
    ignores_failures: bool = option_field(f"{_H}ignore_exceptions")
    recreates_table: bool = option_field(f"{_H}recreate_table_on_error")
    skips_ro_suffix: bool = option_field(f"{_H}skip_ro_suffix")
    strategy: str = option_field(f"{_H}table.strategy")
    has_plain_snapshot: bool = option_field(f"{_M}sync_snapshot_with_table_name")
    has_timestamps: bool = option_field(f"{_H}support_timestamp")
    as_data_source: bool = option_field(f"{_H}sync_as_datasource")
    schema_part_length: int = option_field(f"{_H}schema_string_length_thresh")
    spark_version: str | None = option_field("hoodie.meta_sync.spark.version")
    table_properties: str | None = option_field(_PROPERTIES)
    serde_properties: str | None = option_field(_SERDE_PROPERTIES)
    is_managed: bool = option_field(f"{_H}create_managed_table")
    omits_meta_fields: bool = option_field(f"{_H}omit_metadata_fields")
    has_comments: bool = option_field(f"{_H}sync_comment")
    batch_size: int = option_field(f"{_H}batch_num")
    incremental: bool = option_field(f"{_M}incremental")
    without_partitions: bool = option_field(f"{_M}no_partition_metadata")
    only_if_changed: bool = option_field("hoodie.datasource.meta_sync.condition.sync")
    glue_region: str | None = option_field("hoodie.aws.glue.region")
    glue_endpoint: str | None = option_field("hoodie.aws.glue.endpoint")
    glue_skips_archive: bool = option_field(f"{_G}skip_table_archive")
    glue_lists_by_metadata: bool = option_field(f"{_G}metadata_file_listing")
    buckets: bool = option_field(f"{_H}bucket_sync")

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
