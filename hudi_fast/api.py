"""The calls that run on Spark or in this process, depending on their arguments."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

from hudi_fast.arrow_input import to_arrow_table
from hudi_fast.config.bootstrap_options import bootstrap_source, is_bootstrap
from hudi_fast.dml.run import delete_locally, dml_settings, merge_locally, update_locally
from hudi_fast.dml.statement import Merge, MergeSpec
from hudi_fast.errors import ConfigError, InvalidDataError, UnsupportedFeatureError
from hudi_fast.services.inline import write_with_services
from hudi_fast.storage.base import Storage
from hudi_fast.writing.backend import is_from_spark, spark_adapter
from hudi_fast.writing.flow import WriteResult, preview_write, run_write
from hudi_fast.writing.open_session import open_session
from hudi_fast.writing.preview import WritePreview
from hudi_fast.writing.session import TableSession
from hudi_fast.writing.settings import Settings

if TYPE_CHECKING:
    from hudi_fast.bootstrapping.run import BootstrapResult

__all__ = ["bootstrap", "delete", "merge", "plan_write", "read", "update", "write"]


def write(
    df: Any,
    path: str | os.PathLike[str],
    options: Mapping[str, Any] | None = None,
    mode: str = "append",
    storage_options: Mapping[str, Any] | None = None,
) -> WriteResult:
    """Write rows to a Hudi table. The table is created if it does not exist.

    As with Apache Hudi's data source, services that are due run after the write: cleaning
    (``hoodie.clean.automatic``), archiving (``hoodie.archive.automatic``), and compaction of a MERGE_ON_READ table, by
    default after five delta commits, unless ``hoodie.compact.inline``, ``hoodie.compact.schedule.inline`` or
    ``hoodie.datasource.compaction.async.enable`` is given. ``hoodie.table.services.enabled=false`` turns all of them
    off. These defaults are the same for every write call.

    Args:
        df: a PySpark DataFrame (the write runs on Spark), or anything with ``__arrow_c_stream__``: pyarrow, pandas,
            polars, duckdb (it runs in this process). A stream may be larger than memory and is read once: a
            ``pyarrow.RecordBatchReader`` or dataset, a polars LazyFrame, a duckdb relation, an iterator of record
            batches.
        path: base path of the table.
        options: Apache Hudi's own ``hoodie.*`` keys, in old or new spelling. With the operation ``bootstrap`` the rows
            come from ``hoodie.bootstrap.base.path``, as for :func:`bootstrap`; ``df`` selects Spark or this process.
        mode: ``append``, ``overwrite``, ``errorifexists`` or ``ignore``.
        storage_options: how to reach the table, see docs/object-stores.md; on Spark None uses the session's settings.

    Returns:
        The result of the write.

    Raises:
        HudiError: see :mod:`hudi_fast.errors`. If a service after the write failed, a note on the error says that the
            write is committed.
    """
    if is_bootstrap(options):
        return bootstrap(
            bootstrap_source(options), path, options, getattr(df, "sparkSession", None), mode, storage_options
        )
    settings, spark = Settings.for_write(options), _session_of(df)
    session = open_session(_storage(spark, path, storage_options), settings, spark)
    with closing(session.backend.engine(df, settings.write)) as engine:
        result = write_with_services(session, lambda: run_write(session, engine, mode))
    assert result is not None
    return result


def plan_write(
    df: Any,
    path: str | os.PathLike[str],
    options: Mapping[str, Any] | None = None,
    mode: str = "append",
    storage_options: Mapping[str, Any] | None = None,
) -> WritePreview:
    """Check a write and tell how it would be executed. Nothing is written.

    On Spark it evaluates as much of the DataFrame as :func:`write` does to choose its plan. A stream is read to its
    end.

    Args:
        df: as for :func:`write`.
        path: as for :func:`write`.
        options: as for :func:`write`; the operation ``bootstrap`` has no preview.
        mode: as for :func:`write`.
        storage_options: as for :func:`write`.

    Raises:
        UnsupportedFeatureError: the operation is ``bootstrap``.
        HudiError: :func:`write` would refuse the options, the columns or, where they are checked beforehand, the rows.
    """
    if is_bootstrap(options):
        raise UnsupportedFeatureError("The operation bootstrap has no preview.")
    settings, spark = Settings.for_write(options), _session_of(df)
    session = open_session(_storage(spark, path, storage_options), settings, spark)
    with closing(session.backend.engine(df, settings.write)) as engine:
        return preview_write(session, engine, mode)


def bootstrap(
    source_path: str | os.PathLike[str],
    path: str | os.PathLike[str],
    options: Mapping[str, Any] | None = None,
    spark: Any = None,
    mode: str = "errorifexists",
    storage_options: Mapping[str, Any] | None = None,
) -> BootstrapResult:
    """Make a table from a folder of Parquet files, with or without copying its rows.

    By default the files stay where they are (a metadata-only bootstrap): the table gets a small skeleton file with the
    keys of each, and reads the data from the folder until a write changes it. ``hoodie.bootstrap.mode.selector``
    selects partitions to copy instead. Partition columns and hive style are inferred from ``name=value`` folders unless
    options set them.

    Args:
        source_path: the folder; it must not change while the table reads from it.
        path: base path of the new table.
        options: Apache Hudi's own ``hoodie.*`` keys: the table's name, its key, ``hoodie.bootstrap.*`` ...
        spark: a Spark session whose tasks do the work; None for this process.
        mode: ``errorifexists``, ``append`` (the same), ``overwrite`` or ``ignore``.
        storage_options: how to reach the table, see docs/object-stores.md; on Spark None uses the session's settings.

    Returns:
        The result of the bootstrap.

    Raises:
        HudiError: see :mod:`hudi_fast.errors`; there is no table then.
    """
    from hudi_fast.bootstrapping.run import run_bootstrap

    if spark is not None and not is_from_spark(spark):
        raise ConfigError(f"spark is a SparkSession, or None to work in this process; got {type(spark).__name__}.")
    source = _storage(spark, source_path, storage_options if "://" in os.fspath(source_path) else None)
    return run_bootstrap(source, _storage(spark, path, storage_options), options or {}, mode, spark)


def read(
    spark: Any,
    path: str | os.PathLike[str],
    options: Mapping[str, Any] | None = None,
    *,
    columns: Sequence[str] | None = None,
    filter: Any = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Any:
    """A lazy PySpark DataFrame of the table, meta columns first.

    Spark's own scan reads file slices without log files. The columns and filters of the query are pushed down to it;
    on classic Spark its filters skip files as ``filter`` does. Python workers merge slices with log files; Spark's
    optimizer does not push anything into them. Pass ``columns`` and ``filter`` here, and only those columns and rows
    are decoded, merged and passed to Spark.

    Args:
        spark: the Spark session.
        path: base path of the table.
        options: ``as.of.instant``, ``hoodie.datasource.query.type``, ...
        columns: which columns, in this order; None for all.
        filter: which rows. Files that cannot hold such rows are skipped, by partition path and by the indexes of the
            metadata table. Spark applies SQL text (``"fare > 10 and city in ('Oslo', 'Bergen')"``) or a Spark column.
            With a ``pyarrow.compute`` expression, Python workers read and filter all slices.
        storage_options: how to reach the table, see docs/object-stores.md; None uses the session's settings.

    Raises:
        HudiError: see :mod:`hudi_fast.errors`.
    """
    if not is_from_spark(spark):
        raise ConfigError(f"read needs a SparkSession, got {type(spark).__name__}; without Spark use HudiTable.open.")
    return spark_adapter().read(_storage(spark, path, storage_options), spark, options or {}, columns, filter)


def merge(
    spark: Any,
    path: str | os.PathLike[str],
    source: Any,
    options: Mapping[str, Any] | None = None,
    aliases: tuple[str, str] = ("target", "source"),
    storage_options: Mapping[str, Any] | None = None,
) -> Merge:
    """Begin a merge of rows into a table, like SQL's MERGE INTO, in one commit.

    Args:
        spark: the Spark session, or None to merge in this process.
        path: base path of the table.
        source: with Spark a DataFrame; without it anything with ``__arrow_c_stream__``, or a pandas DataFrame.
        options: ``hoodie.*`` keys as for a write.
        aliases: prefixes of the table's and of the source's columns in conditions and values.
        storage_options: how to reach the table, see docs/object-stores.md; on Spark None uses the session's settings.

    Returns:
        The merge, to add clauses to; see :class:`hudi_fast.dml.statement.Merge`.
    """
    session = _dml_session(spark, path, options, storage_options)
    if spark is None:
        rows = to_arrow_table(source)
        return Merge(lambda spec: merge_locally(session, rows, spec), MergeSpec(aliases=aliases))
    return Merge(lambda spec: spark_adapter().merge_on(session, source, spec), MergeSpec(aliases=aliases))


def update(
    spark: Any,
    path: str | os.PathLike[str],
    where: Any,
    set: Mapping[str, Any],
    options: Mapping[str, Any] | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> WriteResult:
    """Set columns of the rows of a table that a filter selects, in one commit.

    Args:
        spark: the Spark session, or None to update in this process.
        path: base path of the table.
        where: SQL text or a Column with Spark, a ``pyarrow.compute`` expression without; None for all rows.
        set: column -> value; see :meth:`hudi_fast.dml.statement.Merge.when_matched_update`.
        options: ``hoodie.*`` keys as for a write.
        storage_options: how to reach the table, see docs/object-stores.md; on Spark None uses the session's settings.

    Raises:
        HudiError: see :mod:`hudi_fast.errors`.
    """
    session = _dml_session(spark, path, options, storage_options)
    if spark is None:
        return update_locally(session, where, set)
    result: WriteResult = spark_adapter().update_on(spark, session, where, set)
    return result


def delete(
    spark: Any,
    path: str | os.PathLike[str],
    where: Any,
    options: Mapping[str, Any] | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> WriteResult:
    """Delete the rows of a table that a filter selects, in one commit; arguments as for :func:`update`.

    Raises:
        HudiError: see :mod:`hudi_fast.errors`.
    """
    session = _dml_session(spark, path, options, storage_options)
    if spark is None:
        return delete_locally(session, where)
    result: WriteResult = spark_adapter().delete_where_on(spark, session, where)
    return result


def _dml_session(
    spark: Any,
    path: str | os.PathLike[str],
    options: Mapping[str, Any] | None,
    storage_options: Mapping[str, Any] | None,
) -> TableSession:
    if spark is not None and not is_from_spark(spark):
        raise ConfigError(f"Expected a SparkSession, or None to work in this process; got {type(spark).__name__}.")
    storage = _storage(spark, path, storage_options)
    return open_session(storage, dml_settings(options), spark)


def _session_of(df: Any) -> Any:
    """The Spark session of a DataFrame; None for rows of this process."""
    if not is_from_spark(df):
        return None
    if not hasattr(df, "sparkSession"):
        raise InvalidDataError(f"Of PySpark only a DataFrame can be written; make one of this {type(df).__name__}.")
    return df.sparkSession


def _storage(spark: Any, path: str | os.PathLike[str], storage_options: Mapping[str, Any] | None) -> Storage:
    """The table's storage; on Spark as the session reaches it."""
    if spark is None or storage_options:
        return Storage(path, storage_options)
    storage: Storage = spark_adapter().storage_of(spark, path)
    return storage
