"""The properties and the folders of a new table.

Data flow: typed options -> :class:`NewTable` -> :func:`new_table_properties` -> ``create_table_layout``. The keys and
their spelling depend on the table version: version 6 has the keys that release 0.15 needs (key generator class, payload
class, precombine field) and those that 1.x writes; version 9 has the merge mode only.

Source: HoodieTableMetaClient.TableBuilder and HoodieTableConfig.create, releases 0.15.0 and 1.2.0.

``.hoodie`` and its folders are created first and ``hoodie.properties`` last, with an exclusive create. Until then the
folder is not a table. One of two concurrent creators succeeds, and a crashed creation can be repeated.
Source: HoodieTableMetaClient.initializeTable*, release 1.2.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from hudi_fast.config.merge_mode import MERGE_PROPERTY_PREFIX, MergeSettings, translate_merge
from hudi_fast.config.option_names import TABLE_TYPES, TIMELINE_ZONES, class_of_key_generator, infer_key_generator
from hudi_fast.config.properties_file import CHECKSUM_KEY, create_properties, table_checksum
from hudi_fast.errors import CommitError, ConfigError, HudiError, StorageAccessError, UnsupportedFeatureError
from hudi_fast.storage.base import Storage
from hudi_fast.storage.untrusted import check_relative
from hudi_fast.values import dataclass

__all__ = ["NewTable", "create_table_layout", "new_table_properties"]


@dataclass(frozen=True, slots=True)
class NewTable:
    """Settings of a new table, with the fields of ``TableConfig``.

    ``key_generator=None`` is inferred from key and partition fields; merge settings that are None are inferred from
    each other and from the ordering fields.
    """

    name: str
    database: str | None = None
    table_type: str = "COPY_ON_WRITE"
    version: int = 9
    record_key_fields: tuple[str, ...] = ()
    partition_fields: tuple[str, ...] = ()
    partition_types: tuple[str, ...] = ()
    ordering_fields: tuple[str, ...] = ()
    key_generator: str | None = None
    key_generator_class: str | None = None
    hive_style: bool = False
    url_encode: bool = False
    slash_separated_dates: bool = False
    populate_meta_fields: bool = True
    drop_partition_columns: bool = False
    base_file_format: str = "PARQUET"
    has_several_formats: bool = False
    merge_mode: str | None = None
    payload_class: str | None = None
    merge_strategy_id: str | None = None
    delete_field: str | None = None
    delete_marker: str | None = None
    cdc_enabled: bool = False
    cdc_mode: str = "DATA_BEFORE_AFTER"
    timezone: str = "LOCAL"
    keygen_properties: Mapping[str, str] = field(default_factory=dict)
    create_schema: str | None = None
    archive_folder: str = "history"
    partition_metafile_in_base_format: bool = False


def new_table_properties(spec: NewTable) -> dict[str, str]:
    """All properties of the new table with their checksum, without the keys of the metadata table.

    Raises:
        ConfigError: settings that contradict each other.
        UnsupportedFeatureError: a table version that hudi_fast does not write.
    """
    _check(spec)
    merge = translate_merge(
        spec.version,
        mode=spec.merge_mode,
        payload_class=spec.payload_class,
        strategy_id=spec.merge_strategy_id,
        ordering_fields=spec.ordering_fields,
    )
    props = {
        "hoodie.table.name": spec.name,
        "hoodie.table.type": spec.table_type,
        "hoodie.table.version": str(spec.version),
        "hoodie.timeline.layout.version": "2" if spec.version >= 8 else "1",
        "hoodie.archivelog.folder": spec.archive_folder,
        "hoodie.datasource.write.drop.partition.columns": _text(spec.drop_partition_columns),
        "hoodie.datasource.write.hive_style_partitioning": _text(spec.hive_style),
        "hoodie.datasource.write.partitionpath.urlencode": _text(spec.url_encode),
        "hoodie.populate.meta.fields": _text(spec.populate_meta_fields),
        "hoodie.table.base.file.format": spec.base_file_format,
        "hoodie.table.timeline.timezone": spec.timezone,
        "hoodie.partition.metafile.use.base.format": _text(spec.partition_metafile_in_base_format),
        "hoodie.table.cdc.enabled": _text(spec.cdc_enabled),
        CHECKSUM_KEY: table_checksum(spec.name, spec.database),
    }
    if spec.version >= 8:
        props["hoodie.table.initial.version"] = str(spec.version)
        props["hoodie.timeline.path"] = "timeline"
        props["hoodie.timeline.history.path"] = "history"
    if spec.version >= 8 or spec.has_several_formats:
        props["hoodie.table.multiple.base.file.formats.enable"] = _text(spec.has_several_formats)
    if spec.version >= 9:
        props["hoodie.table.format"] = "native"
    return (
        props | _optional_keys(spec) | _field_keys(spec, merge) | _key_generator_keys(spec) | _merge_keys(spec, merge)
    )


def _check(spec: NewTable) -> None:
    if spec.version not in (5, 6, 8, 9):
        raise UnsupportedFeatureError(
            f"hoodie.write.table.version={spec.version} is not supported for a new table; supported: 5, 6, 8, 9."
        )
    if not spec.name:
        raise ConfigError("A new table needs a name; set hoodie.table.name.")
    if spec.table_type not in TABLE_TYPES:
        raise ConfigError(f"The table type is {spec.table_type!r}; expected COPY_ON_WRITE or MERGE_ON_READ.")
    if spec.timezone not in TIMELINE_ZONES:
        raise ConfigError(f"hoodie.table.timeline.timezone is {spec.timezone!r}; expected LOCAL or UTC.")
    if (spec.delete_field is None) != (spec.delete_marker is None):
        raise ConfigError("Give both hoodie.payload.delete.field and hoodie.payload.delete.marker; one is missing.")
    if spec.slash_separated_dates and spec.version < 9:
        raise ConfigError("hoodie.datasource.write.slash.separated.date.partitioning needs table version 9.")
    if spec.partition_types and len(spec.partition_types) != len(spec.partition_fields):
        raise ConfigError(
            f"{len(spec.partition_fields)} partition fields have {len(spec.partition_types)} types; give each one type."
        )


def _optional_keys(spec: NewTable) -> dict[str, str]:
    props: dict[str, str] = {}
    if spec.database is not None:
        props["hoodie.database.name"] = spec.database
    if spec.create_schema is not None:
        props["hoodie.table.create.schema"] = spec.create_schema
    if spec.cdc_enabled:
        props["hoodie.table.cdc.supplemental.logging.mode"] = spec.cdc_mode
    if spec.slash_separated_dates:
        props["hoodie.datasource.write.slash.separated.date.partitioning"] = "true"
    return props


def _field_keys(spec: NewTable, merge: MergeSettings) -> dict[str, str]:
    props = {"hoodie.table.partition.fields": _partition_fields(spec)}
    if spec.record_key_fields:
        props["hoodie.table.recordkey.fields"] = ",".join(spec.record_key_fields)
    ordering = merge.ordering_fields or spec.ordering_fields
    if ordering:
        props["hoodie.table.ordering.fields"] = ",".join(ordering)
    if len(ordering) == 1 and spec.version < 9:
        # Releases up to 1.0 know only this key.
        props["hoodie.table.precombine.field"] = ordering[0]
    return props


def _partition_fields(spec: NewTable) -> str:
    if spec.version >= 8 and spec.partition_types:
        return ",".join(
            f"{name}:{kind}" for name, kind in zip(spec.partition_fields, spec.partition_types, strict=True)
        )
    return ",".join(spec.partition_fields)


def _key_generator_keys(spec: NewTable) -> dict[str, str]:
    if spec.key_generator_class is not None:
        return {
            "hoodie.table.keygenerator.class": spec.key_generator_class,
            "hoodie.table.keygenerator.type": "USER_PROVIDED",
        }
    typed = [f"{name}:{kind}" for name, kind in zip(spec.partition_fields, spec.partition_types, strict=False)]
    name = spec.key_generator or infer_key_generator(spec.record_key_fields, typed or spec.partition_fields)
    props = {"hoodie.table.keygenerator.type": name}
    class_name = class_of_key_generator(name)
    if spec.version < 8 and class_name is not None:
        # Release 0.15 knows only the class.
        props["hoodie.table.keygenerator.class"] = class_name
    if name == "TIMESTAMP":
        props |= {key: value for key, value in spec.keygen_properties.items() if key.startswith("hoodie.keygen.")}
    return props


def _merge_keys(spec: NewTable, merge: MergeSettings) -> dict[str, str]:
    values = {
        "hoodie.record.merge.mode": merge.mode if spec.version >= 8 else None,
        "hoodie.compaction.payload.class": merge.payload_class,
        "hoodie.record.merge.strategy.id": merge.strategy_id,
        "hoodie.table.legacy.payload.class": merge.legacy_payload_class,
        "hoodie.table.partial.update.mode": merge.partial_update_mode,
    }
    props = {key: value for key, value in values.items() if value is not None}
    props |= {MERGE_PROPERTY_PREFIX + key: value for key, value in merge.properties.items()}
    if spec.version >= 8 and spec.delete_field is not None and spec.delete_marker is not None:
        props[MERGE_PROPERTY_PREFIX + "hoodie.payload.delete.field"] = spec.delete_field
        props[MERGE_PROPERTY_PREFIX + "hoodie.payload.delete.marker"] = spec.delete_marker
    return props


def _text(flag: bool) -> str:
    return "true" if flag else "false"


_FOLDERS = (".aux/.bootstrap/.partitions", ".aux/.bootstrap/.fileids", ".temp", ".schema")


def create_table_layout(storage: Storage, props: Mapping[str, str], layout: int) -> None:
    """Create the folders for timeline layout 1 or 2, then the properties file.

    Raises:
        TableExistsError: the table exists already; it is not changed.
        StorageAccessError: folders may not be created here.
        CommitError: they cannot be created.
    """
    folders = list(_FOLDERS)
    if layout >= 2:
        timeline = props.get("hoodie.timeline.path", "timeline")
        folders.append(f"{timeline}/{props.get('hoodie.timeline.history.path', 'history')}")
    try:
        for folder in folders:
            storage.make_dir(check_relative(f".hoodie/{folder}"))
    except OSError as error:
        if isinstance(error, HudiError):
            raise
        kind = StorageAccessError if isinstance(error, PermissionError) else CommitError
        raise kind(
            f"No table can be created at {storage.uri}: {error}. Check the path and the rights there."
        ) from error
    create_properties(storage, props)
