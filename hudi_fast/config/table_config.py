"""``hoodie.properties`` as a typed value.

Data flow: ``load_properties`` -> ``dict`` -> :meth:`TableConfig.from_properties` -> the frozen :class:`TableConfig`,
which every step of a read or write takes. It hides differences between table versions: old key names, key generator by
class or by type, inferred merge settings, location of the timeline. :mod:`hudi_fast.config.new_table` builds the
properties of a new table.

Source: HoodieTableConfig and KeyGeneratorType, releases 0.15.0 and 1.2.0.
"""

from __future__ import annotations

from collections.abc import Mapping

from hudi_fast.config.merge_mode import MERGE_MODES, MERGE_PROPERTY_PREFIX, MergeSettings, infer_merge
from hudi_fast.config.new_table import NewTable, new_table_properties
from hudi_fast.config.option_names import (
    TABLE_TYPES,
    TIMELINE_ZONES,
    infer_key_generator,
    key_generator_of_class,
    key_generator_of_type,
)
from hudi_fast.config.properties_file import PROPERTIES_PATH
from hudi_fast.errors import CorruptTableError, UnsupportedFeatureError
from hudi_fast.storage.untrusted import check_relative
from hudi_fast.values import dataclass

__all__ = ["READ_VERSIONS", "WRITE_VERSIONS", "NewTable", "TableConfig", "new_table_properties", "other_layout"]

READ_VERSIONS = (2, 3, 4, 5, 6, 7, 8, 9)
WRITE_VERSIONS = (5, 6, 8, 9)
"""Table versions that hudi_fast reads, and versions that it writes."""

_KEYGEN_PREFIX = "hoodie.keygen."
_OLD_KEYGEN_PREFIX = "hoodie.deltastreamer.keygen."


@dataclass(frozen=True, slots=True)
class TableConfig:
    """The configuration of a table.

    Attributes:
        name: table name.
        database: database name, or None.
        table_type: ``COPY_ON_WRITE`` or ``MERGE_ON_READ``.
        version: table version, one of :data:`READ_VERSIONS`.
        record_key_fields: empty for auto-generated keys.
        partition_fields: names without types; empty for an unpartitioned table.
        partition_types: for the CUSTOM key generator ``SIMPLE`` or ``TIMESTAMP`` per field; empty if not stored.
        ordering_fields: ordering (precombine) fields.
        key_generator: name of the KeyGeneratorType without ``_AVRO``; ``USER_PROVIDED`` for a user-defined class.
        key_generator_class: the user-defined class, or None.
        hive_style: partition folders are ``field=value``.
        url_encode: partition values are URL-encoded.
        slash_separated_dates: ``-`` in the partition value becomes ``/``.
        populate_meta_fields: rows have the five meta columns.
        drop_partition_columns: partition columns are not stored in data files.
        base_file_format: ``PARQUET``, ``ORC``, ``HFILE``, ...
        merge_mode: ``COMMIT_TIME_ORDERING``, ``EVENT_TIME_ORDERING`` or ``CUSTOM``, inferred if not stored.
        payload_class: payload class; None on version 9 unless the mode is CUSTOM.
        legacy_payload_class: payload class that a version 9 table was created with, or None.
        merge_strategy_id: UUID of the merge strategy, or None.
        partial_update_mode: ``IGNORE_DEFAULTS``, ``FILL_UNAVAILABLE`` or None.
        merge_properties: ``hoodie.record.merge.property.*`` without that prefix.
        create_schema: Avro JSON (no meta columns) given at creation, or None.
        layout_version: timeline layout, 1 or 2.
        timeline_folder: folder of the active timeline, relative to the table.
        history_folder: folder of the archived timeline, relative to the table.
        timezone: zone of instant times, ``LOCAL`` or ``UTC``.
        metadata_partitions: completed partitions of the metadata table.
        metadata_partitions_inflight: partitions of the metadata table under construction.
        cdc_enabled: writes add change logs.
        cdc_mode: ``OP_KEY_ONLY``, ``DATA_BEFORE`` or ``DATA_BEFORE_AFTER``.
        partition_metafile_in_base_format: partition metafiles have the base file format.
        keygen_properties: ``hoodie.keygen.*`` (timestamp key generator), with the old prefix replaced.
        raw: all properties as stored.
    """

    name: str
    database: str | None
    table_type: str
    version: int
    record_key_fields: tuple[str, ...]
    partition_fields: tuple[str, ...]
    partition_types: tuple[str, ...]
    ordering_fields: tuple[str, ...]
    key_generator: str
    key_generator_class: str | None
    hive_style: bool
    url_encode: bool
    slash_separated_dates: bool
    populate_meta_fields: bool
    drop_partition_columns: bool
    base_file_format: str
    merge_mode: str
    payload_class: str | None
    legacy_payload_class: str | None
    merge_strategy_id: str | None
    partial_update_mode: str | None
    merge_properties: Mapping[str, str]
    create_schema: str | None
    layout_version: int
    timeline_folder: str
    history_folder: str
    timezone: str
    metadata_partitions: tuple[str, ...]
    metadata_partitions_inflight: tuple[str, ...]
    cdc_enabled: bool
    cdc_mode: str
    partition_metafile_in_base_format: bool
    keygen_properties: Mapping[str, str]
    raw: Mapping[str, str]

    @property
    def is_mor(self) -> bool:
        """Whether the table is MERGE_ON_READ."""
        return self.table_type == "MERGE_ON_READ"

    @property
    def timestamp_partition_fields(self) -> frozenset[str]:
        """Partition fields whose times the ``hoodie.keygen.timebased.*`` options format."""
        if not self.partition_types:
            return frozenset(self.partition_fields if self.key_generator == "TIMESTAMP" else ())
        typed = zip(self.partition_fields, self.partition_types, strict=True)
        return frozenset(name for name, kind in typed if kind == "TIMESTAMP")

    @property
    def all_metadata_partitions(self) -> frozenset[str]:
        """Partitions of the metadata table, complete and under construction."""
        return frozenset((*self.metadata_partitions, *self.metadata_partitions_inflight))

    @property
    def has_several_formats(self) -> bool:
        """Whether base files may have other formats than :attr:`base_file_format`."""
        return self.raw.get("hoodie.table.multiple.base.file.formats.enable", "").lower() == "true"

    @property
    def is_partitioned(self) -> bool:
        """Whether the table has partition fields."""
        return bool(self.partition_fields)

    @property
    def bootstrap_base_path(self) -> str | None:
        """Source folder of a bootstrapped table, or None."""
        return self.raw.get("hoodie.bootstrap.base.path") or None

    @property
    def delete_field(self) -> str | None:
        """Column that marks deletes (a merge property), or None."""
        return self.merge_properties.get("hoodie.payload.delete.field")

    @property
    def delete_marker(self) -> str | None:
        """Value of :attr:`delete_field` that marks a delete, or None."""
        return self.merge_properties.get("hoodie.payload.delete.marker")

    @classmethod
    def from_properties(cls, props: Mapping[str, str], where: str) -> TableConfig:
        """Parse the properties of the table at ``where`` (a path or URI, for messages).

        Raises:
            UnsupportedFeatureError: an unsupported table version.
            CorruptTableError: an invalid value of a key.
        """
        version, layout = _versions(props, where)
        keys, ordering = _fields(props, "hoodie.table.recordkey.fields"), _ordering_fields(props)
        partitions = _fields(props, "hoodie.table.partition.fields")
        generator, generator_class = _key_generator(props, keys, partitions, where)
        merge = _merge(props, version, ordering, where)
        timeline, history = _folders(props, layout)
        return cls(
            name=_required(props, "hoodie.table.name", where),
            database=props.get("hoodie.database.name") or None,
            table_type=_choice(props, "hoodie.table.type", TABLE_TYPES, where),
            version=version,
            record_key_fields=keys,
            partition_fields=tuple(field.partition(":")[0] for field in partitions),
            partition_types=_partition_types(partitions),
            ordering_fields=ordering,
            key_generator=generator,
            key_generator_class=generator_class,
            hive_style=_flag(props, "hoodie.datasource.write.hive_style_partitioning"),
            url_encode=_flag(props, "hoodie.datasource.write.partitionpath.urlencode"),
            slash_separated_dates=_flag(props, "hoodie.datasource.write.slash.separated.date.partitioning"),
            populate_meta_fields=_flag(props, "hoodie.populate.meta.fields", default=True),
            drop_partition_columns=_flag(props, "hoodie.datasource.write.drop.partition.columns"),
            base_file_format=(
                props.get("hoodie.table.base.file.format") or props.get("hoodie.table.ro.file.format") or "PARQUET"
            ).upper(),
            merge_mode=merge.mode,
            payload_class=merge.payload_class,
            legacy_payload_class=merge.legacy_payload_class,
            merge_strategy_id=merge.strategy_id,
            partial_update_mode=merge.partial_update_mode,
            merge_properties=merge.properties,
            create_schema=props.get("hoodie.table.create.schema") or None,
            layout_version=layout,
            timeline_folder=timeline,
            history_folder=history,
            timezone=_choice(props, "hoodie.table.timeline.timezone", TIMELINE_ZONES, where),
            metadata_partitions=_fields(props, "hoodie.table.metadata.partitions"),
            metadata_partitions_inflight=_fields(props, "hoodie.table.metadata.partitions.inflight"),
            cdc_enabled=_flag(props, "hoodie.table.cdc.enabled"),
            cdc_mode=(props.get("hoodie.table.cdc.supplemental.logging.mode") or "DATA_BEFORE_AFTER").upper(),
            partition_metafile_in_base_format=_flag(props, "hoodie.partition.metafile.use.base.format"),
            keygen_properties=_keygen_properties(props),
            raw=dict(props),
        )


def other_layout(config: TableConfig, where: str) -> TableConfig:
    """The configuration with the timeline folders of the other layout.

    Args:
        config: of the table.
        where: the table, for messages.
    """
    version, layout = ("8", "2") if config.layout_version == 1 else ("6", "1")
    raw = {**config.raw, "hoodie.table.version": version, "hoodie.timeline.layout.version": layout}
    return TableConfig.from_properties(raw, where)


def _versions(props: Mapping[str, str], where: str) -> tuple[int, int]:
    """Table version and timeline layout."""
    text = props.get("hoodie.table.version", "0").strip()
    if not text.isdecimal():
        raise CorruptTableError(f"Table {where}: hoodie.table.version is {text!r}; expected a number.")
    version = int(text)
    if version not in READ_VERSIONS:
        advice = (
            "Its properties lack record keys and partition columns; upgrade it with Apache Hudi 0.9 to 0.15 first."
            if version < READ_VERSIONS[0]
            else "A newer release may read it."
        )
        raise UnsupportedFeatureError(
            f"Table {where} has table version {version}; supported are {', '.join(map(str, READ_VERSIONS))}. {advice}"
        )
    return version, _layout(props, version, where)


def _layout(props: Mapping[str, str], version: int, where: str) -> int:
    text = props.get("hoodie.timeline.layout.version", "").strip() or ("2" if version >= 8 else "1")
    expected = "2" if version >= 8 else "1"
    if text != expected:
        raise UnsupportedFeatureError(
            f"Table {where} of version {version} has timeline layout {text} "
            f"(hoodie.timeline.layout.version); only layout {expected} is supported for that version."
        )
    return int(text)


def _folders(props: Mapping[str, str], layout: int) -> tuple[str, str]:
    if layout == 1:
        archive = props.get("hoodie.archivelog.folder", "archived")
        return ".hoodie", check_relative(f".hoodie/{archive}" if archive else ".hoodie", PROPERTIES_PATH)
    timeline = check_relative(f".hoodie/{props.get('hoodie.timeline.path') or 'timeline'}", PROPERTIES_PATH)
    history = props.get("hoodie.timeline.history.path") or "history"
    return timeline, check_relative(f"{timeline}/{history}", PROPERTIES_PATH)


def _key_generator(
    props: Mapping[str, str], keys: tuple[str, ...], partitions: tuple[str, ...], where: str
) -> tuple[str, str | None]:
    class_name = props.get("hoodie.table.keygenerator.class")
    if class_name:
        known = key_generator_of_class(class_name)
        if known == "SIMPLE" and not partitions and len(keys) == 1:
            return "NON_PARTITION", None  # tables of Hudi 0.10, whose properties have the default class
        return (known, None) if known is not None else ("USER_PROVIDED", class_name)
    type_name = props.get("hoodie.table.keygenerator.type")
    if not type_name:
        return infer_key_generator(keys, partitions), None
    known = key_generator_of_type(type_name)
    if known is None:
        raise UnsupportedFeatureError(f"Table {where}: unknown key generator type {type_name!r}.")
    return known, None


def _merge(props: Mapping[str, str], version: int, ordering: tuple[str, ...], where: str) -> MergeSettings:
    mode = props.get("hoodie.record.merge.mode")
    if mode is not None and mode not in MERGE_MODES:
        raise UnsupportedFeatureError(f"Table {where}: unknown hoodie.record.merge.mode {mode!r}.")
    settings = infer_merge(
        version,
        mode=mode,
        payload_class=props.get("hoodie.compaction.payload.class") or None,
        strategy_id=props.get("hoodie.record.merge.strategy.id")
        or props.get("hoodie.compaction.record.merger.strategy")
        or None,
        ordering_fields=ordering,
    )
    prefix = MERGE_PROPERTY_PREFIX
    return MergeSettings(
        settings.mode,
        settings.payload_class,
        settings.strategy_id,
        legacy_payload_class=props.get("hoodie.table.legacy.payload.class") or None,
        partial_update_mode=props.get("hoodie.table.partial.update.mode") or None,
        properties={key[len(prefix) :]: value for key, value in props.items() if key.startswith(prefix)},
    )


def _ordering_fields(props: Mapping[str, str]) -> tuple[str, ...]:
    return _fields(props, "hoodie.table.ordering.fields") or _fields(props, "hoodie.table.precombine.field")


def _partition_types(partitions: tuple[str, ...]) -> tuple[str, ...]:
    types = tuple(field.partition(":")[2].upper() for field in partitions)
    return types if any(types) else ()


def _keygen_properties(props: Mapping[str, str]) -> dict[str, str]:
    """Key generator options; a new key wins over its old spelling."""
    old = {
        k.replace(_OLD_KEYGEN_PREFIX, _KEYGEN_PREFIX): v for k, v in props.items() if k.startswith(_OLD_KEYGEN_PREFIX)
    }
    return old | {key: value for key, value in props.items() if key.startswith(_KEYGEN_PREFIX)}


def _fields(props: Mapping[str, str], key: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in props.get(key, "").split(",") if part.strip())


def _flag(props: Mapping[str, str], key: str, *, default: bool = False) -> bool:
    text = props.get(key, "").strip().lower()
    return text == "true" if text else default


def _required(props: Mapping[str, str], key: str, where: str) -> str:
    if not props.get(key):
        raise CorruptTableError(f"Table {where}: its properties lack {key}; restore the file.")
    return props[key]


def _choice(props: Mapping[str, str], key: str, choices: tuple[str, ...], where: str) -> str:
    """One of ``choices``; the first is the default."""
    text = (props.get(key) or choices[0]).strip().upper()
    if text not in choices:
        raise CorruptTableError(f"Table {where}: {key} is {text!r}; expected one of {', '.join(choices)}.")
    return text
