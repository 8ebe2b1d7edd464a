"""The tables of a catalog that represent one Hudi table.

::

    TableState, SyncOptions ─► CatalogTable   COPY_ON_WRITE    trips
                                              MERGE_ON_READ    trips_ro   base files alone
                                                               trips_rt   merged rows
                                                               trips      merged rows

Sources: ``HiveSyncTool#doSync``, ``#getTableProperties``, ``SparkDataSourceTableUtils`` (Apache Hudi 1.2.0).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hudi_fast.catalogs.entries import CatalogColumn, CatalogTable
from hudi_fast.catalogs.hive_types import TypeRules, hive_type, spark_schema
from hudi_fast.config.sync_options import SyncOptions
from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import CorruptTableError, InvalidDataError, UnsupportedFeatureError
from hudi_fast.storage.stored_json import stored_json
from hudi_fast.view.table_state import TableState, table_avro

__all__ = ["PATH_KEY", "catalog_names", "catalog_tables", "is_old"]

PATH_KEY = "path"
"""The serde property with the base path, which Spark uses to find the table."""

_META = (
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
)
_INPUT_FORMAT = "org.apache.hudi.hadoop.HoodieParquetInputFormat"
_MERGING_INPUT_FORMAT = "org.apache.hudi.hadoop.realtime.HoodieParquetRealtimeInputFormat"
_OUTPUT_FORMAT = "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat"
_SERDE = "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"
_READ_OPTIMIZED_KEY = "hoodie.query.as.ro.table"
_FIRST_NEW_VERSION = 8
"""The table version since which Apache Hudi 1.x writes tables."""

Fields = Sequence[Mapping[str, Any]]
"""Fields of an Avro record."""


def catalog_names(config: TableConfig, options: SyncOptions) -> list[tuple[str, bool]]:
    """The names of a table in a catalog, each with whether its rows are merged with rows of log files."""
    name = options.table or config.name
    if not config.is_mor:
        return [(name, False)]
    if options.strategy != "ALL":
        return [(name, options.strategy == "RT")]
    if options.skips_ro_suffix:
        return [(name, False), (f"{name}_rt", True)]
    plain = [(name, True)] if options.has_plain_snapshot else []
    return [(f"{name}_ro", False), (f"{name}_rt", True), *plain]


def is_old(config: TableConfig) -> bool:
    """Whether entries of the table have the form of Apache Hudi 0.15."""
    return config.version < _FIRST_NEW_VERSION


def catalog_tables(state: TableState, options: SyncOptions) -> Iterator[CatalogTable]:
    """The catalog tables that the table should have.

    Raises:
        InvalidDataError: the table has no schema yet.
        UnsupportedFeatureError: a column has a type that catalogs do not have.
    """
    config, fields = state.config, _fields(state, options)
    if config.base_file_format != "PARQUET" or config.has_several_formats:
        raise UnsupportedFeatureError(
            f"{state.storage.uri} has base files in {config.base_file_format}. A Hive metastore cannot hold the table: "
            "Hive reads every version of such a file. Leave hoodie.datasource.hive_sync.enable out."
        )
    rules = TypeRules(options.has_timestamps, is_old(config))
    partition_names = options.partition_fields or config.partition_fields
    by_name = {one["name"]: one for one in fields}
    partition_columns = tuple(
        _column(by_name[name], rules, options) if name in by_name else CatalogColumn(name, "string")
        for name in partition_names
    )
    for name, is_merged in catalog_names(config, options):
        # Spark reads a bootstrapped table with log files through Hive's input format only.
        as_data_source = options.as_data_source and not (config.bootstrap_base_path and is_merged)
        spark, spark_serde = {}, {}
        if as_data_source:
            spark = _spark_properties(fields, partition_names, rules, options)
            spark_serde = {PATH_KEY: state.storage.uri, _READ_OPTIMIZED_KEY: _text(config.is_mor and not is_merged)}
        yield CatalogTable(
            database=options.database or config.database or "default",
            name=name,
            columns=tuple(_column(one, rules, options) for one in fields if one["name"] not in partition_names),
            partition_columns=partition_columns,
            location=state.storage.uri,
            input_format=_MERGING_INPUT_FORMAT if is_merged else _INPUT_FORMAT,
            output_format=_OUTPUT_FORMAT,
            serde=_SERDE,
            serde_properties={**options.more_serde_properties, **spark_serde, "serialization.format": "1"},
            properties={**options.more_properties, **spark} | ({} if options.is_managed else {"EXTERNAL": "TRUE"}),
        )


def _column(field: Mapping[str, Any], rules: TypeRules, options: SyncOptions) -> CatalogColumn:
    comment = (field.get("doc") or "") if options.has_comments else ""
    return CatalogColumn(field["name"], hive_type(field["type"], rules), comment)


def _fields(state: TableState, options: SyncOptions) -> Fields:
    """The table's columns with their comments, meta columns first."""
    text = table_avro(state)
    if text is None:
        raise InvalidDataError(
            f"{state.storage.uri} has no commit with a schema, so a catalog cannot hold it. Write to the table first."
        )
    try:
        stored = stored_json(text)["fields"]
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptTableError(f"The table's Avro schema is invalid ({error!r}).") from error
    meta = [] if options.omits_meta_fields else [{"name": name, "type": ["null", "string"]} for name in _META]
    return [*meta, *stored]


def _spark_properties(
    fields: Fields, partition_names: Sequence[str], rules: TypeRules, options: SyncOptions
) -> dict[str, str]:
    """The table properties from which Spark reads provider and schema, partition columns last."""
    by_name = {one["name"]: one for one in fields}
    last = [by_name.get(name, {"name": name, "type": "string"}) for name in partition_names]
    text = spark_schema([*(one for one in fields if one["name"] not in partition_names), *last], rules)
    length = options.schema_part_length
    parts = [text[start : start + length] for start in range(0, len(text), length)]
    found = {"spark.sql.sources.provider": "hudi", "spark.sql.sources.schema.numParts": str(len(parts))}
    if options.spark_version:
        found["spark.sql.create.version"] = options.spark_version
    found |= {f"spark.sql.sources.schema.part.{number}": part for number, part in enumerate(parts)}
    if partition_names:
        found["spark.sql.sources.schema.numPartCols"] = str(len(partition_names))
        found |= {f"spark.sql.sources.schema.partCol.{number}": name for number, name in enumerate(partition_names)}
    return found


def _text(flag: bool) -> str:
    return "true" if flag else "false"
