"""The data source ``hudi_fast`` as PySpark 4 and later call it.

::

    schema        columns of the table                                   reader        batch_reader.TableReader
    streamReader  stream_reader.TableStreamReader                        writer        writer.TableWriter
    streamWriter  writer.TableStreamWriter

Spark creates one of these for every step of a query, in short-lived processes without a session; options arrive as
text, their keys in lower case, Spark's own options included. Readers and writers are imported inside the methods,
because the class is sent to each of these processes.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any

from pyspark.sql import datasource as ds
from pyspark.sql.datasource import DataSource

from hudi_fast.config.moments import timeline_zone
from hudi_fast.config.options import OPTIONS
from hudi_fast.config.read_options import ReadOptions
from hudi_fast.config.stream_options import SourceOptions
from hudi_fast.errors import ConfigError, UnsupportedFeatureError
from hudi_fast.reading.incremental.commit_range import check_stream_options
from hudi_fast.spark.arrow import spark_schema
from hudi_fast.spark.storage import split_options
from hudi_fast.spark_api.source.entry import SOURCE_NAME
from hudi_fast.spark_api.source.readers import TableQuery, table_columns
from hudi_fast.storage.base import Storage

__all__ = ["HudiDataSource", "base_path", "hudi_options"]

_TYPE_KEY = "hoodie.datasource.query.type"
_BEGIN_KEY = "hoodie.datasource.read.begin.instanttime"


class HudiDataSource(DataSource):  # type: ignore[misc]
    """Apache Hudi tables, read and written natively.

    Args:
        options: of the read or write; ``path`` is the base path.
    """

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._path = base_path(options)
        self._options, self._storage_options = split_options(hudi_options(options))

    @classmethod
    def name(cls) -> str:
        """The name for ``format``."""
        return SOURCE_NAME

    def schema(self) -> Any:
        """Columns of the table, meta columns first; of changes for a CDC query."""
        return spark_schema(table_columns(self._query(streams=True)))

    def reader(self, schema: Any) -> Any:
        """Reads the table."""
        from hudi_fast.spark_api.source.readers import FilteringReader, TableReader

        reader = FilteringReader if SourceOptions.from_options(self._options).pushdown else TableReader
        return reader(self._query(streams=False), schema)

    def streamReader(self, schema: Any) -> Any:
        """Reads the commits to the table as a stream."""
        from hudi_fast.spark_api.source.readers import TableStreamReader

        check_stream_options(self._options)
        return TableStreamReader(self._query(streams=True), SourceOptions.from_options(self._options), schema)

    def writer(self, schema: Any, overwrite: bool) -> Any:
        """Writes to the table."""
        from hudi_fast.spark_api.source.writer import TableWriter

        return TableWriter(self._storage(), self._options, schema, overwrite)

    def streamWriter(self, schema: Any, overwrite: bool) -> Any:
        """Writes batches of a stream to the table."""
        if not hasattr(ds, "DataSourceStreamArrowWriter"):
            raise UnsupportedFeatureError(
                'writeStream.format("hudi_fast") needs PySpark 4.1; use writeStream.foreachBatch(hudi_fast.sink(...)).'
            )
        from hudi_fast.spark_api.source.writer import TableStreamWriter

        return TableStreamWriter(self._storage(), self._options, schema, overwrite)

    def _query(self, streams: bool) -> TableQuery:
        """Remove begin and end: each batch of a stream is its own range."""
        options = dict(self._options)
        if streams and options.get(_TYPE_KEY, "").lower() == "incremental":
            options.setdefault(_BEGIN_KEY, "earliest")
        storage = self._storage()
        return TableQuery(storage, ReadOptions.from_options(options, timeline_zone(storage)), options)

    def _storage(self) -> Storage:
        return Storage(self._path, self._storage_options)


# ---- options

_PREFIXES = ("hoodie.", "_hoodie.", "hudi_fast.", "fs.s3a.", "_")


def hudi_options(given: Mapping[str, str]) -> dict[str, Any]:
    """hudi_fast's options with canonical keys; without ``path`` and Spark's own.

    Args:
        given: keys in lower case.
    """
    spelt = {key.lower(): key for option in OPTIONS for key in option.keys}
    named = {spelt.get(key.lower(), key): value for key, value in given.items()}
    return {key: value for key, value in named.items() if key in _NAMED or key.startswith(_PREFIXES)}


def base_path(given: Mapping[str, str]) -> str:
    """The table's path.

    Raises:
        ConfigError: no path given.
    """
    path = given.get("path") or given.get("hoodie.base.path")
    if not path:
        raise ConfigError('format("hudi_fast") needs the base path of a table: load(path), save(path) or start(path).')
    return path


_NAMED = frozenset({"as.of.instant"})
