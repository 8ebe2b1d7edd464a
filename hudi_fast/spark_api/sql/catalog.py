"""Hudi tables in the catalog of a session: Spark's own, a Hive metastore, or AWS Glue behind either.

::

    name ─► session's catalog ─► Entry: base path, properties, columns ─► hudi_fast reads and writes the path

On classic Spark the catalog is used through Spark's ``SessionCatalog``; entries have the form that Apache Hudi's bundle
makes and finds (provider ``hudi``, or the input format of a Hive sync). On Spark Connect entries are found by
``SHOW TABLE EXTENDED``; a client cannot make them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any
from weakref import WeakKeyDictionary

from hudi_fast.config.write_options import DELETE_OTHER_FILES
from hudi_fast.errors import CatalogError, ConfigError, TableExistsError, TableNotFoundError, UnsupportedFeatureError
from hudi_fast.spark.jvm import java_class, scala_map, scala_seq
from hudi_fast.spark.session import as_it_was, is_classic, text_map
from hudi_fast.spark.storage import storage_of
from hudi_fast.sql_text.statements import CreateView
from hudi_fast.storage.places import normal_uri
from hudi_fast.values import dataclass
from hudi_fast.view.file_names import require_own_files

__all__ = [
    "Entry",
    "ViewEntry",
    "change_table",
    "create_entry",
    "create_view_entry",
    "default_path",
    "drop_entry",
    "find_entry",
    "full_name",
    "is_taken",
    "rename_entry",
    "replace_entry",
]

SPARK_CATALOG = "spark_catalog"
_PROVIDER, _INPUT_FORMAT = "hudi", "org.apache.hudi."
_CATALYST = "org.apache.spark.sql.catalyst"
_SEPARATOR = "\u0001"


@dataclass(frozen=True, slots=True)
class Entry:
    """A Hudi table in the catalog.

    Attributes:
        name: (database, table).
        path: base path.
        properties: of the table and of its storage; ``primaryKey``, ``hoodie.*`` ...
        schema: columns as the catalog has them: partition columns last, with Hudi's meta columns if it stores them.
        partition_columns: as the catalog has them.
        comment: None without one.
        managed: whether ``DROP TABLE`` deletes the files.
    """

    name: tuple[str, str]
    path: str
    properties: Mapping[str, str] = field(default_factory=dict)
    schema: Any = None
    partition_columns: tuple[str, ...] = ()
    comment: str | None = None
    managed: bool = False

    @property
    def is_read_optimized(self) -> bool:
        """Whether it is the ``_ro`` table of a Hive sync."""
        return self.properties.get("hoodie.query.as.ro.table", "").lower() == "true"

    def __str__(self) -> str:
        return ".".join(self.name)


@dataclass(frozen=True, slots=True)
class ViewEntry:
    """A view in the catalog.

    Attributes:
        name: (database, view).
        text: its query.
        database: the database of unqualified names in the query.
        columns: names of its columns; empty for the names in the query.
    """

    name: tuple[str, str]
    text: str
    database: str
    columns: tuple[str, ...] = ()


def full_name(spark: Any, parts: Sequence[str]) -> tuple[str, str] | None:
    """(database, table) of a name in Spark's own catalog; None for a name in another one.

    Args:
        spark: the session.
        parts: of the name as written, outermost first.
    """
    if len(parts) > 3 or (len(parts) == 3 and parts[0].lower() != SPARK_CATALOG):
        return None
    if len(parts) == 2 and _is_catalog(spark, parts[0]):
        return None
    if len(parts) < 3 and str(spark.catalog.currentCatalog()) != SPARK_CATALOG:
        return None
    if len(parts) == 1:
        return str(spark.catalog.currentDatabase()), parts[0]
    return parts[-2], parts[-1]


def _is_catalog(spark: Any, name: str) -> bool:
    return name.lower() != SPARK_CATALOG and spark.conf.get(f"spark.sql.catalog.{name}", None) is not None


def find_entry(spark: Any, parts: Sequence[str]) -> Entry | ViewEntry | None:
    """The Hudi table or the view of this name; None for other tables, temporary views and unknown names."""
    if is_classic(spark):
        return _find_classic(spark, parts)
    name = full_name(spark, parts)
    return None if name is None else _find_connect(spark, parts, name)


def is_taken(spark: Any, parts: Sequence[str]) -> bool:
    """Whether a table or view has this name."""
    name = full_name(spark, parts)
    if name is not None and is_classic(spark):
        catalog = _session_catalog(spark)
        temporary = len(parts) == 1 and catalog.getTempView(name[1]).isDefined()
        return bool(temporary or catalog.tableExists(_identifier(spark, name)))
    return bool(spark.catalog.tableExists(".".join(_quoted(part) for part in parts)))


def default_path(spark: Any, name: tuple[str, str]) -> str:
    """The base path of a table without a location: a folder of its database's folder."""
    folder = str(spark.catalog.getDatabase(name[0]).locationUri)
    return f"{folder.rstrip('/')}/{name[1].lower()}"


def create_entry(spark: Any, entry: Entry) -> None:
    """Add a table to the catalog.

    Args:
        spark: the session.
        entry: the table; its columns are required.

    Raises:
        UnsupportedFeatureError: the session is one of Spark Connect.
        CatalogError: the catalog refuses it.
    """
    machine = spark._jvm
    option = java_class(machine, "scala.Option").apply
    types = _catalog_class(machine, "CatalogTableType")
    formats = {}
    if _takes_formats(spark):
        formats = dict(zip(("inputFormat", "outputFormat", "serde"), map(option, _formats(entry)), strict=True))
    storage = _copied(
        _catalog_class(machine, "CatalogStorageFormat").empty(),
        locationUri=option(java_class(machine, "org.apache.hadoop.fs.Path")(normal_uri(entry.path)).toUri()),
        properties=scala_map(machine, {"path": entry.path}),
        **formats,
    )
    given = {
        "identifier": _identifier(spark, entry.name),
        "tableType": types.MANAGED() if entry.managed else types.EXTERNAL(),
        "storage": storage,
        "schema": _java_schema(spark, entry.schema),
        "provider": option(_PROVIDER),
        "partitionColumnNames": scala_seq(machine, entry.partition_columns),
        "properties": scala_map(machine, entry.properties),
        "comment": option(entry.comment),
    }
    _create(spark, str(entry), given)


def create_view_entry(spark: Any, name: Sequence[str], view: CreateView, database: str, schema: Any) -> None:
    """Add a view to the catalog.

    Args:
        spark: the session.
        name: as written.
        view: the statement.
        database: the database of unqualified names in its query.
        schema: columns of its rows.

    Raises:
        UnsupportedFeatureError: the session is one of Spark Connect, or the name is of another catalog.
        TableExistsError: the name is taken.
    """
    full = full_name(spark, name)
    if full is None:
        raise UnsupportedFeatureError(
            f"CREATE VIEW {'.'.join(name)}: views over Hudi tables are in spark_catalog only."
        )
    if is_taken(spark, full):
        if view.if_not_exists:
            return
        if not view.replace:
            raise TableExistsError(f"CREATE VIEW {'.'.join(name)}: there is a table or view of that name.")
        _session_catalog(spark).dropTable(_identifier(spark, full), True, False)
    elif view.must_exist:
        raise TableNotFoundError(f"ALTER VIEW {'.'.join(name)}: there is no view of that name.")
    machine = spark._jvm
    query = java_class(machine, "scala.Option").apply(view.query)
    context = {
        "view.catalogAndNamespace.numParts": "2",
        "view.catalogAndNamespace.part.0": SPARK_CATALOG,
        "view.catalogAndNamespace.part.1": database,
        "view.query.out.numCols": str(len(schema.names)),
        **{f"view.query.out.col.{at}": column for at, column in enumerate(schema.names)},
    }
    given = {
        "identifier": _identifier(spark, full),
        "tableType": _catalog_class(machine, "CatalogTableType").VIEW(),
        "storage": _catalog_class(machine, "CatalogStorageFormat").empty(),
        "schema": _java_schema(spark, schema),
        "properties": scala_map(machine, context),
        "viewText": query,
        "viewOriginalText": query,
    }
    _create(spark, ".".join(full), given)


def _create(spark: Any, name: str, given: Mapping[str, Any]) -> None:
    """Create an entry from values of fields of ``CatalogTable``; the others have their defaults."""
    machine = spark._jvm
    table = _catalog_class(machine, "CatalogTable")
    kind = java_class(machine, "java.lang.Class").forName(f"{_CATALYST}.catalog.CatalogTable")
    arguments = [
        given[name] if name in given else getattr(table, f"apply$default${at}")()
        for at, name in enumerate(_field_names(kind), 1)
    ]
    try:
        _session_catalog(spark).createTable(table(*arguments), False, False)
    except Exception as error:  # any error of the catalog
        raise CatalogError(f"The session's catalog refuses {name}: {_first_line(error)}") from error


def drop_entry(spark: Any, entry: Entry, purge: bool) -> None:
    """Remove a table from the catalog; the files of a managed table are deleted.

    Raises:
        UnsupportedFeatureError: the session is one of Spark Connect.
        ConfigError: the files would be deleted, but some of them do not belong to the table.
    """
    if purge or entry.managed:
        allowed = str(spark.conf.get(DELETE_OTHER_FILES, "false")).lower() == "true"
        require_own_files(storage_of(spark, entry.path), allowed, f"DROP TABLE {entry}")
    _session_catalog(spark).dropTable(_identifier(spark, entry.name), True, purge)


def replace_entry(spark: Any, entry: Entry, new: Entry) -> None:
    """Replace columns and properties of a table in the catalog by the ones of a new table at the same path.

    Raises:
        UnsupportedFeatureError: the session is one of Spark Connect.
    """
    kept = dict.fromkeys(key for key in entry.properties if key not in new.properties)
    change_table(spark, entry, new.schema, {**kept, **new.properties})


def rename_entry(spark: Any, entry: Entry, name: tuple[str, str]) -> None:
    """Rename a table in the catalog.

    Raises:
        UnsupportedFeatureError: the session is one of Spark Connect.
        ConfigError: the new name is taken, or of another database.
    """
    if name[0] != entry.name[0]:
        raise ConfigError(f"ALTER TABLE {entry} RENAME TO {'.'.join(name)}: a table stays in its database.")
    if is_taken(spark, name):
        raise ConfigError(f"ALTER TABLE {entry} RENAME TO {'.'.join(name)}: there is a table or view of that name.")
    _session_catalog(spark).renameTable(_identifier(spark, entry.name), _identifier(spark, name))


def change_table(
    spark: Any, entry: Entry, schema: Any = None, properties: Mapping[str, str | None] | None = None
) -> None:
    """Change columns or properties of a table in the catalog.

    Args:
        spark: the session.
        entry: the table.
        schema: new columns; None to keep them.
        properties: new values by key; None removes a key.

    Raises:
        UnsupportedFeatureError: the session is one of Spark Connect.
    """
    catalog, machine = _session_catalog(spark), spark._jvm
    identifier = _identifier(spark, entry.name)
    if properties:
        stored = catalog.getTableMetadata(identifier)
        values = text_map(stored.properties())
        for key, value in properties.items():
            values.pop(key, None)
            if value is not None:
                values[key] = value
        catalog.alterTable(_copied(stored, properties=scala_map(machine, values)))
    if schema is not None:
        fields = [one for one in schema.fields if one.name not in entry.partition_columns]
        last = [one for name in entry.partition_columns for one in schema.fields if one.name == name]
        if int(spark.version.split(".")[0]) >= 4:
            catalog.alterTableSchema(identifier, _java_schema(spark, type(schema)([*fields, *last])))
        else:  # the catalog of the session refuses to drop columns
            new = _java_schema(spark, type(schema)(fields))
            catalog.externalCatalog().alterTableDataSchema(*entry.name, new)


# ---- classic


def _session_catalog(spark: Any) -> Any:
    if not is_classic(spark):
        raise UnsupportedFeatureError(
            "On Spark Connect hudi_fast cannot change the catalog. Make, rename and drop entries on classic Spark, or "
            "by a catalog sync (hoodie.datasource.hive_sync.enable=true)."
        )
    return _java(spark).catalog


def _catalog_class(machine: Any, name: str) -> Any:
    return java_class(machine, f"{_CATALYST}.catalog.{name}")


def _identifier(spark: Any, name: tuple[str, str]) -> Any:
    return _java(spark).parser.parseTableIdentifier(f"{_quoted(name[0])}.{_quoted(name[1])}")


@dataclass(frozen=True, slots=True)
class _Java:
    """Objects of a session; it takes calls to Java to get each."""

    catalog: Any
    parser: Any
    manager: Any


_JAVA: WeakKeyDictionary[Any, _Java] = WeakKeyDictionary()


def _java(spark: Any) -> _Java:
    found = _JAVA.get(spark)
    if found is None:
        state = spark._jsparkSession.sessionState()
        found = _JAVA[spark] = _Java(state.catalog(), state.sqlParser(), state.catalogManager())
    return found


def _find_classic(spark: Any, parts: Sequence[str]) -> Entry | ViewEntry | None:
    java = _java(spark)
    if len(parts) > 2 and (len(parts) > 3 or parts[0].lower() != SPARK_CATALOG):
        return None
    identifier = java.parser.parseTableIdentifier(".".join(_quoted(part) for part in parts[-2:]))
    try:
        stored = java.catalog.getTempViewOrPermanentTableMetadata(identifier)
    except Exception:  # no such table, or no such database: possibly a name in another catalog
        return None
    provider = str(stored.provider())
    if provider.lower() not in ("none", f"some({_PROVIDER})"):
        return None
    if not stored.identifier().database().isDefined() or full_name(spark, parts) is None:
        return None
    database, table = stored.database(), stored.identifier().table()
    text = stored.viewText()
    if text.isDefined():
        context = list(json.loads(stored.viewCatalogAndNamespace().mkString('["', '","', '"]')))
        within = context[-1] if context[-1:] != [""] else database
        return ViewEntry((database, table), text.get(), within, tuple(_python_schema(stored.schema()).names))
    storage = stored.storage()
    if provider == "None" and f"Some({_INPUT_FORMAT}" not in str(storage.inputFormat()):
        return None
    properties = {**text_map(storage.properties()), **text_map(stored.properties())}
    location = storage.locationUri()
    path = str(location.get()) if location.isDefined() else properties.get("path")
    if not path:
        raise CatalogError(f"The table {database}.{table} of the catalog has no location: it points to no Hudi table.")
    columns = tuple(filter(None, stored.partitionColumnNames().mkString(_SEPARATOR).split(_SEPARATOR)))
    comment = stored.comment()
    return Entry(
        (database, table),
        normal_uri(path),
        properties,
        _python_schema(stored.schema()),
        columns,
        comment.get() if comment.isDefined() else None,
        str(stored.tableType().name()) == "MANAGED",
    )


def _field_names(kind: Any) -> list[str]:
    """Names of a case class's fields, in the order of its constructor, which differs between releases of Spark."""
    return [str(one.getName()) for one in kind.getConstructors()[0].getParameters()]


def _copied(value: Any, **changed: Any) -> Any:
    """A copy of a Scala case class with other values of some fields."""
    names = _field_names(value.getClass())
    return value.copy(*(changed.get(name, value.productElement(at)) for at, name in enumerate(names)))


def _takes_formats(spark: Any) -> bool:
    """Whether an entry can name Hudi's input formats: a Hive metastore's client loads them."""
    if spark.conf.get("spark.sql.catalogImplementation", "in-memory") != "hive":
        return True
    loader = java_class(spark._jvm, "java.lang.Thread").currentThread().getContextClassLoader()
    return loader.getResource("org/apache/hudi/hadoop/HoodieParquetInputFormat.class") is not None


def _formats(entry: Entry) -> tuple[str, str, str]:
    """Input format, output format and serde of a table that Hive reads, too."""
    realtime = entry.properties.get("type", "").lower() in ("mor", "merge_on_read")
    reader = "realtime.HoodieParquetRealtimeInputFormat" if realtime else "HoodieParquetInputFormat"
    return (
        f"org.apache.hudi.hadoop.{reader}",
        "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
        "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",
    )


def _java_schema(spark: Any, schema: Any) -> Any:
    return spark._jsparkSession.parseDataType(schema.json())


def _python_schema(java: Any) -> Any:
    from pyspark.sql.types import StructType

    return StructType.fromJson(json.loads(java.json()))


def _first_line(error: Exception) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)


# ---- Spark Connect


def _find_connect(spark: Any, parts: Sequence[str], name: tuple[str, str]) -> Entry | ViewEntry | None:
    pattern = name[1].replace("'", "").replace("*", "").replace("|", "")
    statement = f"SHOW TABLE EXTENDED IN {_quoted(name[0])} LIKE '{pattern}'"
    try:
        rows = as_it_was(type(spark).sql)(spark, statement).collect()
    except Exception:  # no such database: possibly a name in another catalog
        return None
    found = [row for row in rows if row["tableName"].lower() == name[1].lower()]
    if len(parts) == 1 and any(row["isTemporary"] for row in found):
        return None
    lines: list[str] = next((row["information"].splitlines() for row in found if not row["isTemporary"]), [])
    said = dict(line.split(": ", 1) for line in lines if ": " in line and not line.startswith(" "))
    if said.get("Type") == "VIEW":
        return ViewEntry(name, said.get("View Text", ""), name[0])
    if said.get("Provider", "").lower() != _PROVIDER and _INPUT_FORMAT not in said.get("InputFormat", ""):
        return None
    properties: dict[str, str] = {}
    for key in ("Storage Properties", "Table Properties"):
        listed = said.get(key, "[]").removeprefix("[").removesuffix("]")
        properties |= dict(one.split("=", 1) for one in listed.split(", ") if "=" in one)
    if not said.get("Location"):
        raise CatalogError(f"The table {'.'.join(name)} of the catalog has no location: it points to no Hudi table.")
    columns = said.get("Partition Columns", "[]")[1:-1].replace("`", "")
    partitions = tuple(filter(None, columns.split(", ")))
    managed = said.get("Type") == "MANAGED"
    return Entry(name, normal_uri(said["Location"]), properties, None, partitions, said.get("Comment"), managed)


def _quoted(part: str) -> str:
    return "`" + part.replace("`", "``") + "`"
