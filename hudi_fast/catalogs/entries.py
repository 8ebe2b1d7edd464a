"""The entries of a catalog, and those that represent one Hudi table.

The entries of a catalog for a table, as values, and the calls that all catalogs have.

A Hive metastore and AWS Glue store the same attributes: Hive types, input formats, serde and parameters.

The tables of a catalog that represent one Hudi table, and the types of their columns.

::

    TableState, SyncOptions ─► CatalogTable   COPY_ON_WRITE    trips
                                              MERGE_ON_READ    trips_ro   base files alone
                                                               trips_rt   merged rows
                                                               trips      merged rows

    {"type": "record", "fields": [...]} ─┬─ hive_type ─► "struct<a:int,b:array<string>>"
                                         └─ spark_schema ─► {"type":"struct","fields":[{"name":"a", ...

Sources: ``HiveSyncTool#doSync``, ``#getTableProperties``, ``SparkDataSourceTableUtils``, ``SparkSchemaUtils``,
``HiveSchemaUtil#convertField`` (Apache Hudi 1.2.0).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, Protocol

from hudi_fast.config.sync_options import SyncOptions
from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import CorruptTableError, InvalidDataError, UnsupportedFeatureError
from hudi_fast.storage.untrusted import stored_json
from hudi_fast.values import dataclass
from hudi_fast.view.table_state import TableState, table_avro

__all__ = [
    "PATH_KEY",
    "Catalog",
    "CatalogColumn",
    "CatalogPartition",
    "CatalogTable",
    "TypeRules",
    "catalog_names",
    "catalog_tables",
    "hive_type",
    "is_old",
    "spark_schema",
]


@dataclass(frozen=True, slots=True)
class CatalogColumn:
    """A column.

    Attributes:
        name: its name; a Hive metastore stores it in lower case.
        type: its Hive type, in lower case: ``array<struct<a:int>>``.
        comment: empty for none.
    """

    name: str
    type: str
    comment: str = ""


@dataclass(frozen=True, slots=True)
class CatalogTable:
    """A table of a catalog.

    Attributes:
        database: its database.
        name: its name.
        columns: without partition columns.
        partition_columns: in the order of the values of a partition.
        location: base path.
        input_format: class of Hive's input format.
        output_format: class of Hive's output format.
        serde: class of Hive's serde.
        serde_properties: parameters of the serde.
        properties: parameters of the table.
        handle: the table as the catalog returned it; an update keeps its other attributes.
    """

    database: str
    name: str
    columns: tuple[CatalogColumn, ...]
    partition_columns: tuple[CatalogColumn, ...]
    location: str
    input_format: str
    output_format: str
    serde: str
    serde_properties: Mapping[str, str]
    properties: Mapping[str, str]
    handle: Any = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class CatalogPartition:
    """A partition of a table of a catalog.

    Attributes:
        values: one text for each partition column.
        location: its folder.
    """

    values: tuple[str, ...]
    location: str


class Catalog(Protocol):
    """A catalog. All calls raise :class:`~hudi_fast.errors.CatalogError` if it refuses or does not answer."""

    @property
    def name(self) -> str:
        """The catalog, for messages: "the Hive metastore at host:port"."""
        ...

    def has_database(self, name: str) -> bool:
        """Whether the database exists."""
        ...

    def create_database(self, name: str) -> None:
        """Create a database; does nothing if it exists already."""
        ...

    def table(self, database: str, name: str) -> CatalogTable | None:
        """A table; None if it does not exist."""
        ...

    def create_table(self, table: CatalogTable) -> None:
        """Create a table."""
        ...

    def replace_table(self, table: CatalogTable) -> None:
        """Drop a table with its partitions, but not its files, and create another one with its name."""
        ...

    def update_table(self, table: CatalogTable, cascade: bool = False) -> None:
        """Store a table that :meth:`table` returned, with changes.

        Args:
            table: the table.
            cascade: whether its partitions get its columns, too.
        """
        ...

    def partitions(self, table: CatalogTable, values: Sequence[tuple[str, ...]] | None) -> list[CatalogPartition]:
        """The partitions of a table.

        Args:
            table: from :meth:`table`.
            values: of the partitions to look up, without missing partitions in the result; None for all.
        """
        ...

    def add_partitions(self, table: CatalogTable, partitions: Sequence[CatalogPartition]) -> None:
        """Add partitions; partitions that exist already stay unchanged."""
        ...

    def move_partitions(self, table: CatalogTable, partitions: Sequence[CatalogPartition]) -> None:
        """Change the locations of partitions."""
        ...

    def drop_partitions(self, table: CatalogTable, values: Sequence[tuple[str, ...]]) -> None:
        """Drop partitions but not their files; missing partitions are ignored."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


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


# ---- Avro types as Hive types, and as Spark's JSON

_PLAIN_HIVE = {
    "boolean": "boolean",
    "int": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "string": "string",
    "enum": "string",
    "bytes": "binary",
    "fixed": "binary",
}
_PLAIN_SPARK = _PLAIN_HIVE | {"int": "integer", "long": "long"}
_TIMESTAMPS = ("timestamp-millis", "timestamp-micros")
_LOCAL_TIMESTAMPS = ("local-timestamp-millis", "local-timestamp-micros")

Avro = Any
"""A type of an Avro schema: a name, a mapping, or a list of them for a union."""


@dataclass(frozen=True, slots=True)
class TypeRules:
    """Rules for types that differ between releases and options.

    Attributes:
        has_timestamps: whether Hive's type of timestamps is ``timestamp``; otherwise ``bigint``.
        is_old: whether to follow Apache Hudi 0.15: timestamps without a zone are numbers, and no array has nulls.
    """

    has_timestamps: bool = True
    is_old: bool = False


def hive_type(avro: Avro, rules: TypeRules) -> str:
    """The Hive type of an Avro type.

    Args:
        avro: the type, parsed from JSON.
        rules: of the table.

    Raises:
        UnsupportedFeatureError: a union of several types.
    """
    kind, logical, node = _resolved(avro)
    if logical == "decimal":
        return f"decimal({node['precision']},{node.get('scale', 0)})"
    if logical == "date":
        return "date"
    if logical in _TIMESTAMPS or (logical in _LOCAL_TIMESTAMPS and not rules.is_old):
        return "timestamp" if rules.has_timestamps else "bigint"
    if kind == "array":
        return f"array<{hive_type(node['items'], rules)}>"
    if kind == "map":
        return f"map<string,{hive_type(node['values'], rules)}>"
    if kind == "record":
        inner = ",".join(f"{_nested_name(one['name'])}:{hive_type(one['type'], rules)}" for one in node["fields"])
        return f"struct<{inner}>".replace("-", "_").lower()
    return _PLAIN_HIVE[kind]


def spark_schema(fields: Iterable[Mapping[str, Any]], rules: TypeRules) -> str:
    """Spark's JSON of a schema, in exactly the text that Apache Hudi stores.

    Args:
        fields: fields of an Avro record.
        rules: of the table.

    Raises:
        UnsupportedFeatureError: a union of several types.
    """
    inner = ",".join(_spark_field(one, rules) for one in fields)
    return f'{{"type":"struct","fields":[{inner}]}}'


def _spark_field(field: Mapping[str, Any], rules: TypeRules) -> str:
    name, avro = json.dumps(field["name"], ensure_ascii=False), field["type"]
    return f'{{"name":{name},"type":{_spark_type(avro, rules)},"nullable":{_text(_is_nullable(avro))},"metadata":{{}}}}'


def _spark_type(avro: Avro, rules: TypeRules) -> str:
    kind, logical, node = _resolved(avro)
    if logical == "decimal":
        return f'"decimal({node["precision"]},{node.get("scale", 0)})"'
    if logical == "date":
        return '"date"'
    if logical in _TIMESTAMPS:
        return '"timestamp"'
    if logical in _LOCAL_TIMESTAMPS and not rules.is_old:
        return '"timestamp_ntz"'
    if kind == "array":
        item, nullable = _spark_type(node["items"], rules), _text(_is_nullable(node["items"]) and not rules.is_old)
        return f'{{"type":"array", "elementType":{item},"containsNull":{nullable}}}'
    if kind == "map":
        value, nullable = _spark_type(node["values"], rules), _text(_is_nullable(node["values"]))
        return f'{{"type":"map", "keyType":"string","valueType":{value},"valueContainsNull":{nullable}}}'
    return spark_schema(node["fields"], rules) if kind == "record" else f'"{_PLAIN_SPARK[kind]}"'


def _resolved(avro: Avro) -> tuple[str, str, Mapping[str, Any]]:
    """Kind, logical type ("" for none) and attributes of a type that may be nullable."""
    if isinstance(avro, list):
        kinds = [one for one in avro if one != "null"]
        if len(kinds) != 1:
            raise UnsupportedFeatureError(f"A catalog has no type for the Avro union {json.dumps(avro)}.")
        avro = kinds[0]
    if isinstance(avro, str):
        return avro, "", {}
    if isinstance(avro["type"], (dict, list)):
        return _resolved(avro["type"])
    return avro["type"], avro.get("logicalType", ""), avro


def _is_nullable(avro: Avro) -> bool:
    return isinstance(avro, list) and "null" in avro


def _nested_name(name: str) -> str:
    """The name of a field of a struct: Hive does not read a dollar sign in it."""
    return name.replace("$", "_dollar_")
