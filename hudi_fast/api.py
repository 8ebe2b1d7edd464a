"""The two calls that take either engine: by the type of what they are given."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from hudi_fast.arrow_input import to_arrow_table
from hudi_fast.config.bootstrap_options import is_bootstrap, bootstrap_source
from hudi_fast.dml.run import ChangeRun, delete_locally, merge_locally, update_locally
from hudi_fast.dml.statement import Merge, MergeSpec
from hudi_fast.errors import ConfigError, InvalidDataError
from hudi_fast.services.carriers import in_process
from hudi_fast.services.inline import check_inline, inline_by_default, serve, serve_before
from hudi_fast.services.settings import ServiceSettings
from hudi_fast.storage.base import Storage
from hudi_fast.writing.flow import Engine, WriteResult, run_write
from hudi_fast.writing.local import LocalEngine

if TYPE_CHECKING:
    from hudi_fast.bootstrapping.run import BootstrapResult

__all__ = ["bootstrap", "delete", "merge", "read", "update", "write"]


def write(
    df: Any,
    path: str | os.PathLike[str],
    options: Mapping[str, Any] | None = None,
    mode: str = "append",
    storage_options: Mapping[str, Any] | None = None,
) -> WriteResult:
    """Write rows to a Hudi table, which is created when there is none.

    As with Apache Hudi's data source the table is cleaned after the write when that is due
    (``hoodie.clean.automatic``), its timeline is archived (``hoodie.archive.automatic``), and a MERGE_ON_READ table is
    compacted, by default after five delta commits, unless ``hoodie.compact.inline``, ``hoodie.compact.schedule.inline``
    or ``hoodie.datasource.compaction.async.enable`` is given. ``hoodie.table.services.enabled=false`` leaves all of it
    to others.

    Args:
        df: a PySpark DataFrame (the write runs on Spark), or anything with ``__arrow_c_stream__``: pyarrow, pandas,
            polars, duckdb (it runs in this process).
        path: base path of the table.
        options: Apache Hudi's own ``hoodie.*`` keys, in old or new spelling. With the operation ``bootstrap`` the rows
            are those of ``hoodie.bootstrap.base.path``, as for :func:`bootstrap`, and ``df`` says who reads them.
        mode: ``append``, ``overwrite``, ``errorifexists`` or ``ignore``.
        storage_options: how to reach the table, see docs/object-stores.md; on Spark what the session says if None.

    Returns:
        what was written, and how.

    Raises:
        HudiError: see :mod:`hudi_fast.errors`. An error of a service after the write has a note that says that the
            write is committed.
    """
    if is_bootstrap(options):
        return bootstrap(bootstrap_source(options), path, options, getattr(df, "sparkSession", None), mode, storage_options)
    settings = ServiceSettings.from_options(options)
    check_inline(settings)
    storage = _storage(getattr(df, "sparkSession", None) if _is_spark(df) else None, path, storage_options)
    engine: Engine
    if _is_spark(df):
        if not hasattr(df, "sparkSession"):
            raise InvalidDataError(f"Of PySpark only a DataFrame can be written; make one of this {type(df).__name__}.")
        from hudi_fast.spark.entry import carriers_on, engine_for

        engine = engine_for(df, settings.write)
        carriers = carriers_on(df.sparkSession, settings.write.driver_max_bytes)
    else:
        engine, carriers = LocalEngine(to_arrow_table(df)), in_process(settings.write.threads)
    serve_before(storage, settings, carriers)
    result = run_write(engine, storage, settings.write, mode)
    serve(storage, inline_by_default(settings), result.instant, carriers)
    return result


def bootstrap(
    source_path: str | os.PathLike[str],
    path: str | os.PathLike[str],
    options: Mapping[str, Any] | None = None,
    spark: Any = None,
    mode: str = "errorifexists",
    storage_options: Mapping[str, Any] | None = None,
) -> BootstrapResult:
    """Make a table of a folder of Parquet files, with or without copying its rows.

    By default the files stay where they are: the table gets a small file of keys beside each (a metadata-only
    bootstrap), and reads its data from the folder until a write changes it. ``hoodie.bootstrap.mode.selector`` says
    which partitions are copied instead. Partition columns and hive style follow from ``name=value`` folders where the
    options do not say.

    Args:
        source_path: the folder; it must not change as long as the table reads from it.
        path: base path of the table to come.
        options: Apache Hudi's own ``hoodie.*`` keys: the table's name, its key, ``hoodie.bootstrap.*`` ...
        spark: a Spark session whose tasks do the work; None for this process.
        mode: ``errorifexists``, ``append`` (the same), ``overwrite`` or ``ignore``.
        storage_options: how to reach the table, see docs/object-stores.md; on Spark what the session says if None.

    Returns:
        what was made, and how.

    Raises:
        HudiError: see :mod:`hudi_fast.errors`; there is no table then.
    """
    from hudi_fast.bootstrapping.run import in_process, run_bootstrap

    carriers = in_process
    if spark is not None:
        if not _is_spark(spark):
            raise ConfigError(f"spark is a SparkSession, or None to work in this process; got {type(spark).__name__}.")
        from hudi_fast.spark.entry import bootstrap_on

        carriers = partial(bootstrap_on, spark)
    source = _storage(spark, source_path, storage_options if "://" in os.fspath(source_path) else None)
    return run_bootstrap(source, _storage(spark, path, storage_options), options or {}, mode, carriers)


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

    File slices without log files are read by Spark's own scan, into which Spark pushes the columns and filters of the
    query. Slices with log files are merged in Python workers, where Spark's optimizer cannot reach: name the columns
    and rows that are wanted here, and only they are decoded, merged and handed to Spark.

    Args:
        spark: the Spark session.
        path: base path of the table.
        options: ``as.of.instant``, ``hoodie.datasource.query.type``, ...
        columns: which columns, in this order; None for all.
        filter: which rows. Files that cannot hold such rows are left out, by partition paths and by the indexes of the
            table's metadata table. SQL text (``"fare > 10 and city in ('Oslo', 'Bergen')"``) or a Spark column: Spark
            applies it. A ``pyarrow.compute`` expression: all slices are read, and filtered, in Python workers.
        storage_options: how to reach the table, see docs/object-stores.md; what the session says if None.

    Raises:
        HudiError: see :mod:`hudi_fast.errors`.
    """
    if not _is_spark(spark):
        raise ConfigError(f"read needs a SparkSession, got {type(spark).__name__}; without Spark use HudiTable.open.")
    from hudi_fast.spark.entry import read as spark_read

    return spark_read(_storage(spark, path, storage_options), spark, options or {}, columns, filter)


def merge(
    spark: Any,
    path: str | os.PathLike[str],
    source: Any,
    options: Mapping[str, Any] | None = None,
    aliases: tuple[str, str] = ("target", "source"),
    storage_options: Mapping[str, Any] | None = None,
) -> Merge:
    """Begin a merge of rows into a table: what SQL's MERGE INTO does, in one commit.

    Args:
        spark: the Spark session, or None to merge in this process.
        path: base path of the table.
        source: with Spark a DataFrame; without it anything with ``__arrow_c_stream__``, or a pandas DataFrame.
        options: ``hoodie.*`` keys as for a write.
        aliases: what stands before the table's columns in conditions and values, and before those of the source.
        storage_options: how to reach the table, see docs/object-stores.md; on Spark what the session says if None.

    Returns:
        the merge to put together; see :class:`hudi_fast.dml.statement.Merge`.
    """
    run = _change(spark, path, options, storage_options)
    if spark is None:
        rows = to_arrow_table(source)
        return Merge(lambda spec: merge_locally(run, rows, spec), MergeSpec(aliases=aliases))
    from hudi_fast.spark.entry import merge_on

    return Merge(lambda spec: merge_on(run, source, spec), MergeSpec(aliases=aliases))


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
        spark: the Spark session, or None to do it in this process.
        path: base path of the table.
        where: SQL text or a Column with Spark, a ``pyarrow.compute`` expression without; None for all rows.
        set: column -> value; see :meth:`hudi_fast.dml.statement.Merge.when_matched_update`.
        options: ``hoodie.*`` keys as for a write.
        storage_options: how to reach the table, see docs/object-stores.md; on Spark what the session says if None.

    Raises:
        HudiError: see :mod:`hudi_fast.errors`.
    """
    run = _change(spark, path, options, storage_options)
    if spark is None:
        return update_locally(run, where, set)
    from hudi_fast.spark.entry import update_on

    return update_on(spark, run, where, set)


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
    run = _change(spark, path, options, storage_options)
    if spark is None:
        return delete_locally(run, where)
    from hudi_fast.spark.entry import delete_where_on

    return delete_where_on(spark, run, where)


def _change(
    spark: Any,
    path: str | os.PathLike[str],
    options: Mapping[str, Any] | None,
    storage_options: Mapping[str, Any] | None,
) -> ChangeRun:
    if spark is None:
        return ChangeRun.of(Storage(path, storage_options), options)
    if not _is_spark(spark):
        raise ConfigError(f"Expected a SparkSession, or None to work in this process; got {type(spark).__name__}.")
    storage = _storage(spark, path, storage_options)
    from hudi_fast.spark.entry import carriers_on

    return ChangeRun.of(storage, options, lambda write: carriers_on(spark, write.driver_max_bytes))


def _storage(spark: Any, path: str | os.PathLike[str], storage_options: Mapping[str, Any] | None) -> Storage:
    if spark is None or storage_options:
        return Storage(path, storage_options)
    from hudi_fast.spark.entry import storage_of

    return storage_of(spark, path)


def _is_spark(value: Any) -> bool:
    return any(base.__module__.partition(".")[0] == "pyspark" for base in type(value).__mro__)
