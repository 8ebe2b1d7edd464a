"""The calls that run on Spark or in this process, depending on their arguments.

The session of a call is the argument ``spark``. It may also come first, as in ``read(spark, path)``. Each function
imports the code that it calls: a process that reads a table loads no code of writes.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, cast, overload

from hudi_fast.arrow_input import is_from_spark, to_arrow_table
from hudi_fast.config.words import TableWords, Words, checked_options, with_words
from hudi_fast.errors import ConfigError, InvalidDataError, TableNotFoundError, UnsupportedFeatureError
from hudi_fast.sessions import check_spark, open_session, open_storage

if TYPE_CHECKING:
    import pyarrow as pa

    from hudi_fast.bootstrapping.bootstrap import BootstrapResult
    from hudi_fast.config.moments import Moment
    from hudi_fast.config.option_names import QueryType, SaveMode, SnapshotType
    from hudi_fast.dml.statement import Merge
    from hudi_fast.reading.dataset import Scan
    from hudi_fast.reading.scan import Filter
    from hudi_fast.writing.backend import WritePreview
    from hudi_fast.writing.flow import WriteResult
    from hudi_fast.writing.session import TableSession

__all__ = ["bootstrap", "delete", "is_table", "merge", "plan_write", "read", "scan", "update", "write"]


Function = TypeVar("Function", bound=Callable[..., Any])


def _session_first(function: Function) -> Function:
    """Let the session, or None, come before the other arguments."""

    @functools.wraps(function)
    def called(*args: Any, **named: Any) -> Any:
        if args and (args[0] is None or is_from_spark(args[0])):
            if "spark" in named:
                raise TypeError(f"{function.__name__}() got the Spark session twice")
            return function(*args[1:], spark=args[0], **named)
        return function(*args, **named)

    return cast("Function", called)


def write(
    df: Any,
    path: str | os.PathLike[str],
    options: Mapping[str, Any] | None = None,
    mode: SaveMode = "append",
    storage_options: Mapping[str, Any] | None = None,
    **words: Unpack[Words],
) -> WriteResult:
    """Write rows to a Hudi table. The table is created if it does not exist.

    As with Apache Hudi's data source, services that are due run after the write: cleaning
    (``hoodie.clean.automatic``), archiving (``hoodie.archive.automatic``), and compaction of a MERGE_ON_READ table, by
    default after five delta commits, unless ``hoodie.compact.inline``, ``hoodie.compact.schedule.inline`` or
    ``hoodie.datasource.compaction.async.enable`` is given. ``hoodie.table.services.enabled=false`` turns all of them
    off. These defaults are the same for every write call.

    Args:
        df: a PySpark DataFrame: the write runs on Spark. Else it runs in this process, with a pyarrow table or batch; a
            pandas or polars DataFrame; a list of dicts; or anything with ``__arrow_c_stream__``. A stream may be larger
            than memory and is read once: a ``pyarrow.RecordBatchReader``, dataset or scanner, a polars LazyFrame, a
            duckdb relation, an iterator of record batches.
        path: base path of the table.
        options: Apache Hudi's own ``hoodie.*`` keys, in old or new spelling; see docs/options.md. With the
            operation ``bootstrap`` the rows come from ``hoodie.bootstrap.base.path``, as for :func:`bootstrap`; ``df``
            selects Spark or this process.
        mode: what to do if the table exists. ``append`` writes to it, by default an upsert; ``overwrite`` replaces it
            with a new table; ``errorifexists`` and ``ignore`` leave it as it is.
        storage_options: how to reach the table, see docs/object-stores.md; on Spark None uses the session's settings.
        words: everyday words for the most used options: ``key``, ``partition_by``, ``order_by``, ``table_type``,
            ``index``, ``operation`` and ``name``; see :class:`hudi_fast.config.words.Words`.

    Returns:
        The result of the write: counts, the instant of the commit, and how it was executed.

    Raises:
        HudiError: see :mod:`hudi_fast.errors`.
        CommitStateUnknownError: storage did not say whether the write is committed.
        PostCommitError: the write is committed, and a service after it failed. After every other error it is not.

    Example:
        >>> import hudi_fast as hf, tempfile
        >>> path = tempfile.mkdtemp() + "/trips"
        >>> hf.write([{"id": 1, "fare": 9.5}, {"id": 2, "fare": 3.0}], path, key="id").inserts
        2
        >>> hf.read(path, columns=["id", "fare"], filter="fare > 5").to_pylist()
        [{'id': 1, 'fare': 9.5}]
    """
    from hudi_fast.config.bootstrap_options import bootstrap_source, is_bootstrap
    from hudi_fast.services.inline import write_with_services
    from hudi_fast.writing.flow import run_write

    options = with_words(options, words)
    if is_bootstrap(options):
        spark = getattr(df, "sparkSession", None)
        return bootstrap(
            bootstrap_source(options), path, options, spark=spark, mode=mode, storage_options=storage_options
        )
    session = _session_of_write(df, path, options, mode, storage_options)
    with closing(session.backend.engine(df, session.settings.write)) as engine:
        result = write_with_services(session, lambda: run_write(session, engine, mode))
    assert result is not None
    return result


def plan_write(
    df: Any,
    path: str | os.PathLike[str],
    options: Mapping[str, Any] | None = None,
    mode: SaveMode = "append",
    storage_options: Mapping[str, Any] | None = None,
    **words: Unpack[Words],
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
        words: as for :func:`write`.

    Raises:
        UnsupportedFeatureError: the operation is ``bootstrap``.
        HudiError: :func:`write` would refuse the options, the columns or, where they are checked beforehand, the rows.

    Example:
        >>> import hudi_fast as hf, tempfile
        >>> path = tempfile.mkdtemp() + "/trips"
        >>> hf.plan_write([{"id": 1, "fare": 9.5}], path, key="id").plan
        'local'
        >>> hf.is_table(path)
        False
    """
    from hudi_fast.config.bootstrap_options import is_bootstrap
    from hudi_fast.writing.flow import preview_write

    options = with_words(options, words)
    if is_bootstrap(options):
        raise UnsupportedFeatureError("The operation bootstrap has no preview.")
    session = _session_of_write(df, path, options, mode, storage_options)
    with closing(session.backend.engine(df, session.settings.write)) as engine:
        return preview_write(session, engine, mode)


def bootstrap(
    source_path: str | os.PathLike[str],
    path: str | os.PathLike[str],
    options: Mapping[str, Any] | None = None,
    *,
    spark: Any = None,
    mode: SaveMode = "errorifexists",
    storage_options: Mapping[str, Any] | None = None,
    **words: Unpack[Words],
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
        words: as for :func:`write`.

    Returns:
        The result of the bootstrap.

    Raises:
        HudiError: see :mod:`hudi_fast.errors`; there is no table then.
    """
    from hudi_fast.bootstrapping.bootstrap import run_bootstrap

    check_spark(spark)
    source = open_storage(spark, source_path, storage_options if "://" in str(source_path) else None)
    storage = open_storage(spark, path, storage_options)
    return run_bootstrap(
        source, storage, with_words(options, words), mode, lambda settings: open_session(storage, settings, spark)
    )


@overload
def read(
    path: str | os.PathLike[str],
    options: Mapping[str, Any] | None = None,
    *,
    columns: Sequence[str] | None = None,
    filter: Filter | None = None,
    as_of: Moment | None = None,
    query_type: QueryType | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> pa.Table: ...


@overload
def read(
    path: str | os.PathLike[str],
    options: Mapping[str, Any] | None = None,
    *,
    spark: Any,
    columns: Sequence[str] | None = None,
    filter: Any = None,
    as_of: Moment | None = None,
    query_type: QueryType | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Any: ...


@overload
def read(
    spark: Any,
    path: str | os.PathLike[str],
    options: Mapping[str, Any] | None = None,
    *,
    columns: Sequence[str] | None = None,
    filter: Any = None,
    as_of: Moment | None = None,
    query_type: QueryType | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Any: ...


@_session_first  # type: ignore[misc]  # it makes the last overload true
def read(
    path: str | os.PathLike[str],
    options: Mapping[str, Any] | None = None,
    *,
    spark: Any = None,
    columns: Sequence[str] | None = None,
    filter: Any = None,
    as_of: Moment | None = None,
    query_type: QueryType | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Any:
    """Read a table: rows as a ``pyarrow.Table``, or with a Spark session as a lazy DataFrame. Meta columns come first.

    Options select the query, by the keys of Apache Hudi's data source: a snapshot by default, time travel, an
    incremental query or a query for changes. A path below a table, such as ``trips/city=Oslo``, reads the partitions in
    that folder.

    Without Spark all rows are held in memory; :class:`hudi_fast.HudiTable` has streams (``to_batches``), lazy scans,
    pandas, polars and duckdb.

    With Spark, its own scan reads file slices without log files. The columns and filters of the query are pushed down
    to it; on classic Spark its filters skip files as ``filter`` does. Python workers merge slices with log files;
    Spark's optimizer does not push anything into them. Pass ``columns`` and ``filter`` here, and only those columns and
    rows are decoded, merged and passed to Spark.

    Args:
        path: base path of the table, or of some partitions. The session may come before it: ``read(spark, path)``.
        options: ``as.of.instant``, ``hoodie.datasource.query.type``, ...
        spark: the Spark session; None to read in this process.
        columns: which columns, in this order; None for all.
        filter: which rows, as SQL text (``"fare > 10 and city in ('Oslo', 'Bergen')"``), a ``pyarrow.compute``
            expression, or with Spark a Column. Files that cannot hold such rows are skipped, by partition path and by
            the indexes of the metadata table. With Spark and an expression, Python workers read and filter all slices.
        as_of: time to travel to, in any form of docs/time-travel.md; the option ``as.of.instant``.
        query_type: ``snapshot``, ``read_optimized`` or ``incremental``; the option ``hoodie.datasource.query.type``.
        storage_options: how to reach the table, see docs/object-stores.md; on Spark None uses the session's settings.

    Raises:
        TableNotFoundError: no table at the path or above it.
        ConfigError: several paths or a pattern, as in Apache Hudi 1.2; an invalid option, column or filter; an argument
            that contradicts an option.
        HudiError: see :mod:`hudi_fast.errors`.

    Example:
        >>> import hudi_fast as hf  # doctest: +SKIP
        >>> hf.read("trips", columns=["id", "fare"], filter="fare > 5")  # doctest: +SKIP
        >>> hf.read("trips", as_of="2024-01-31", spark=spark).where("fare > 5").show()  # doctest: +SKIP
    """
    from hudi_fast.reading.read import in_table, read_rows

    check_spark(spark)
    _check_one_path(path)
    given = _given(checked_options(options), {"as.of.instant": as_of, "hoodie.datasource.query.type": query_type})
    storage = open_storage(spark, path, storage_options)
    try:
        if spark is None:
            return in_table(storage, lambda table, folder: read_rows(table, given, columns, filter, folder))
        from hudi_fast.spark.reading.reader import read as read_on

        return in_table(storage, lambda table, folder: read_on(table, spark, given, columns, filter, folder))
    except TableNotFoundError as error:
        if "*" not in os.fspath(path):
            raise
        raise ConfigError(
            f"Glob paths are not supported, as in Apache Hudi 1.2: {os.fspath(path)!r}. Read the base path of the "
            "table, or the folder of one partition; filter by partition columns for several."
        ) from error


def scan(
    path: str | os.PathLike[str],
    *,
    columns: Sequence[str] | None = None,
    filter: Filter | None = None,
    as_of: Moment | None = None,
    query_type: SnapshotType = "snapshot",
    storage_options: Mapping[str, Any] | None = None,
) -> Scan:
    """A lazy scan of a table, for engines that push down columns and filters: duckdb, polars, Arrow.

    It is a ``pyarrow.dataset.Dataset`` and reads nothing but the timeline until rows are needed. duckdb finds it by the
    name of its variable. Its splits can be read in several processes. For polars there is
    :meth:`hudi_fast.HudiTable.to_polars` with ``lazy=True``.

    Args:
        path: base path of the table.
        columns: which columns, in this order; None for all.
        filter: which rows, as for :meth:`hudi_fast.HudiTable.to_arrow`.
        as_of: time to travel to, as for :meth:`hudi_fast.HudiTable.to_arrow`.
        query_type: ``snapshot``, or ``read_optimized``.
        storage_options: how to reach the table, see docs/object-stores.md.

    Raises:
        TableNotFoundError: no table at the path.
        ConfigError: an unknown column, or an invalid ``as_of`` or filter.

    Example:
        >>> import hudi_fast as hf, tempfile
        >>> path = tempfile.mkdtemp() + "/trips"
        >>> hf.write([{"id": 1, "fare": 9.5}, {"id": 2, "fare": 3.0}], path, key="id").inserts
        2
        >>> hf.scan(path, columns=["fare"]).to_table(filter="fare > 5").to_pylist()
        [{'fare': 9.5}]
    """
    from hudi_fast.table import HudiTable

    return HudiTable(path, storage_options).scan(columns, filter, as_of, query_type)


def is_table(path: str | os.PathLike[str], storage_options: Mapping[str, Any] | None = None) -> bool:
    """Whether there is a Hudi table at a path, valid or not.

    Args:
        path: the path.
        storage_options: how to reach it, see docs/object-stores.md.

    Raises:
        HudiError: the storage does not answer.

    Example:
        >>> import hudi_fast as hf
        >>> hf.is_table("/tmp")
        False
    """
    from hudi_fast.table import HudiTable

    return HudiTable.exists(path, storage_options)


@_session_first
def merge(
    path: str | os.PathLike[str],
    source: Any,
    options: Mapping[str, Any] | None = None,
    aliases: tuple[str, str] = ("target", "source"),
    storage_options: Mapping[str, Any] | None = None,
    *,
    spark: Any = None,
    **words: Unpack[TableWords],
) -> Merge:
    """Begin a merge of rows into a table, like SQL's MERGE INTO, in one commit.

    Args:
        path: base path of the table.
        source: with Spark a DataFrame; without it anything with ``__arrow_c_stream__``, or a pandas DataFrame.
        options: ``hoodie.*`` keys as for a write.
        aliases: prefixes of the table's and of the source's columns in conditions and values.
        storage_options: how to reach the table, see docs/object-stores.md; on Spark None uses the session's settings.
        spark: the Spark session; None to merge in this process.
        words: as for :func:`write`.

    Returns:
        The merge, to add clauses to; see :class:`hudi_fast.dml.statement.Merge`.

    Example:
        >>> import hudi_fast as hf, tempfile
        >>> path = tempfile.mkdtemp() + "/trips"
        >>> result = hf.write([{"id": 1, "fare": 9.5}], path, key="id")
        >>> merge = hf.merge(path, [{"id": 1, "fare": 8.0}, {"id": 2, "fare": 3.0}]).on("id")
        >>> result = merge.when_matched_update().when_not_matched_insert().execute()
        >>> result.updates, result.inserts
        (1, 1)
    """
    from hudi_fast.dml.statement import Merge, MergeSpec

    session = _dml_session(spark, path, options, storage_options, words)
    if spark is None:
        from hudi_fast.dml.dml import merge_locally

        rows = to_arrow_table(source)
        return Merge(lambda spec: merge_locally(session, rows, spec), MergeSpec(aliases=aliases))
    from hudi_fast.spark.dml import merge_on

    return Merge(lambda spec: merge_on(session, source, spec), MergeSpec(aliases=aliases))


@_session_first
def update(
    path: str | os.PathLike[str],
    where: Any,
    set: Mapping[str, Any],
    options: Mapping[str, Any] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    *,
    spark: Any = None,
    **words: Unpack[TableWords],
) -> WriteResult:
    """Set columns of the rows of a table that a filter selects, in one commit.

    Args:
        path: base path of the table.
        where: SQL text, with Spark also a Column, without Spark also a ``pyarrow.compute`` expression; None for all
            rows.
        set: column -> value; see :meth:`hudi_fast.dml.statement.Merge.when_matched_update`.
        options: ``hoodie.*`` keys as for a write.
        storage_options: how to reach the table, see docs/object-stores.md; on Spark None uses the session's settings.
        spark: the Spark session; None to update in this process.
        words: as for :func:`write`.

    Raises:
        HudiError: see :mod:`hudi_fast.errors`.

    Example:
        >>> import hudi_fast as hf, tempfile
        >>> path = tempfile.mkdtemp() + "/trips"
        >>> result = hf.write([{"id": 1, "fare": 9.5}, {"id": 2, "fare": 3.0}], path, key="id")
        >>> hf.update(path, where="fare < 5", set={"fare": "fare + 1"}).updates
        1
    """
    session = _dml_session(spark, path, options, storage_options, words)
    if spark is None:
        from hudi_fast.dml.dml import update_locally

        return update_locally(session, where, set)
    from hudi_fast.spark.dml import update_on

    return update_on(spark, session, where, set)


@_session_first
def delete(
    path: str | os.PathLike[str],
    where: Any,
    options: Mapping[str, Any] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    *,
    spark: Any = None,
    **words: Unpack[TableWords],
) -> WriteResult:
    """Delete the rows of a table that a filter selects, in one commit; arguments as for :func:`update`.

    Raises:
        HudiError: see :mod:`hudi_fast.errors`.

    Example:
        >>> import hudi_fast as hf, tempfile
        >>> path = tempfile.mkdtemp() + "/trips"
        >>> result = hf.write([{"id": 1, "fare": 9.5}, {"id": 2, "fare": 3.0}], path, key="id")
        >>> hf.delete(path, where="fare < 5").deletes
        1
    """
    session = _dml_session(spark, path, options, storage_options, words)
    if spark is None:
        from hudi_fast.dml.dml import delete_locally

        return delete_locally(session, where)
    from hudi_fast.spark.dml import delete_where_on

    return delete_where_on(spark, session, where)


def _dml_session(
    spark: Any,
    path: str | os.PathLike[str],
    options: Mapping[str, Any] | None,
    storage_options: Mapping[str, Any] | None,
    words: TableWords,
) -> TableSession:
    from hudi_fast.dml.dml import dml_settings

    check_spark(spark)
    given = with_words(options, words)
    storage = open_storage(spark, path, storage_options)
    return open_session(storage, dml_settings(given), spark)


def _given(options: Mapping[str, Any] | None, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The options, and the arguments that stand for options.

    Raises:
        ConfigError: both have a value, and the values differ.
    """
    said = {key: value for key, value in arguments.items() if value is not None}
    for key, value in said.items():
        if options and key in options and options[key] != value:
            raise ConfigError(f"{key}={options[key]!r} contradicts the argument {value!r}; leave one of the two out.")
    return {**(options or {}), **said}


def _check_one_path(path: Any) -> None:
    if isinstance(path, list | tuple | set):
        raise ConfigError(
            f"A read takes one path, as in Apache Hudi 1.2; got {len(path)}. Read the base path with a filter on the "
            "partition columns, or read each table and concatenate the rows."
        )
    if not isinstance(path, str | os.PathLike):
        raise ConfigError(
            f"A read takes the path of a table, and a Spark session as spark=; got {type(path).__name__}."
        )


def _session_of_write(
    df: Any,
    path: str | os.PathLike[str],
    options: Mapping[str, Any] | None,
    mode: str,
    storage_options: Mapping[str, Any] | None,
) -> TableSession:
    """The session of a write of these rows."""
    from hudi_fast.config.defaults_file import with_new_table
    from hudi_fast.writing.settings import Settings

    spark = _session_of(df)
    place = open_storage(spark, path, storage_options)
    return open_session(place, Settings.for_write(with_new_table(options, place, mode)), spark)


def _session_of(df: Any) -> Any:
    """The Spark session of a DataFrame; None for rows of this process."""
    if not is_from_spark(df):
        return None
    if not hasattr(df, "sparkSession"):
        raise InvalidDataError(f"Cannot write a PySpark {type(df).__name__}; pass a DataFrame.")
    return df.sparkSession
