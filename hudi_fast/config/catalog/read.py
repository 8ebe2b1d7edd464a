"""Read options, including those that hudi_fast supports for certain values only.

Sources: ``DataSourceReadOptions``, ``HoodieReaderConfig``, ``HoodieCommonConfig`` (1.2.0).
"""

from __future__ import annotations

from hudi_fast.config.option_descriptor import BOTH, READ, Kind, Option
from hudi_fast.config.option_names import QUERY_TYPES

__all__ = ["QUERY_OPTIONS"]

_READ = "hoodie.datasource.read."

QUERY_OPTIONS = (
    Option("path", Kind.TEXT, None, "Base path of the table.", aliases=("hoodie.base.path",), families=BOTH),
    Option(
        "hoodie.datasource.query.type",
        Kind.ENUM,
        "snapshot",
        "Snapshot query, read-optimized query (base files only), or incremental query (rows written in a range).",
        choices=QUERY_TYPES,
        families=READ,
    ),
    Option(
        "as.of.instant",
        Kind.TEXT,
        None,
        "Time travel to this time: `yyyyMMddHHmmss[SSS]`, `yyyy-MM-dd HH:mm:ss[.SSS]`, `yyyy-MM-dd`, ISO 8601 with or "
        "without a zone, or seconds (10 digits) or milliseconds (13 digits) since 1970.",
        families=READ,
    ),
    Option(
        f"{_READ}begin.instanttime",
        Kind.TEXT,
        None,
        "Start of an incremental query, exclusive: a completion time (before table version 8 a requested time); "
        "`earliest` = from the first commit.",
        families=READ,
    ),
    Option(
        f"{_READ}end.instanttime",
        Kind.TEXT,
        None,
        "End of an incremental query, inclusive; default: the newest commit.",
        families=READ,
    ),
    Option(
        "hoodie.datasource.query.incremental.format",
        Kind.ENUM,
        "latest_state",
        "Result of an incremental query: the newest rows, or changes with the images before and after.",
        choices=("latest_state", "cdc"),
        families=READ,
    ),
    Option(
        "hoodie.datasource.merge.type",
        Kind.ENUM,
        "payload_combine",
        "MERGE_ON_READ: merge log files into base files, or return all rows unmerged.",
        choices=("payload_combine", "skip_merge"),
        families=READ,
    ),
    Option(
        "hoodie.merge.use.record.positions",
        Kind.BOOL,
        False,
        "MERGE_ON_READ: match log records to base file rows by position instead of key, if the log stores positions.",
        families=READ,
    ),
    Option(
        "hudi_fast.merger",
        Kind.FUNCTION,
        None,
        "Merge function for merge mode CUSTOM: `merge(older, newer)` takes two Arrow tables whose rows have the same "
        "keys row by row, and returns the merged rows; `_hoodie_is_deleted` marks deletes.",
        families=BOTH,
    ),
    Option(
        f"{_READ}incr.path.glob",
        Kind.TEXT,
        "",
        "Incremental: read only files whose path ends with a match of this glob.",
        families=READ,
    ),
    Option(
        f"{_READ}incr.filters",
        Kind.TEXT,
        "",
        "Incremental: return only rows that fulfil these conditions in SQL, separated by commas.",
        families=READ,
    ),
    Option(
        f"{_READ}incr.fallback.fulltablescan.enable",
        Kind.BOOL,
        False,
        "Incremental: scan the whole table if files of the range were deleted.",
        families=READ,
    ),
    Option(
        f"{_READ}incr.skip_compact",
        Kind.BOOL,
        False,
        "Incremental: leave out compactions. Compacted rows always belong to the commits that logged them.",
        families=READ,
    ),
    Option(
        f"{_READ}incr.table.version",
        Kind.INT,
        None,
        "Incremental: 6 = bounds are requested times, for every table version.",
        supported=(6, 8, 9),
        minimum=0,
        families=READ,
    ),
    Option(
        f"{_READ}schema.use.end.instanttime",
        Kind.BOOL,
        False,
        "Incremental: return rows in the schema as of the end of the range.",
        families=READ,
    ),
    Option(
        "hoodie.read.timeline.holes.resolution.policy",
        Kind.ENUM,
        "FAIL",
        "Incremental, table version 6: how to handle a pending commit before a completed one.",
        aliases=(f"{_READ}handle.hollow.commit",),
        choices=("FAIL", "BLOCK", "USE_TRANSITION_TIME"),
        families=READ,
    ),
    Option(
        "hoodie.schema.on.read.enable",
        Kind.BOOL,
        False,
        "Track columns by id. Tables with an altered schema always do. With "
        "`hoodie.datasource.write.reconcile.schema`, a write starts the schema history.",
        families=BOTH,
    ),
    Option(
        f"{_READ}paths",
        Kind.TEXT,
        None,
        "Several paths in one read; Apache Hudi 1.2 refuses them, too.",
        supported=(),
        families=READ,
        instead="Apache Hudi 1.2 refuses it, too. Read the base path and filter by the partition columns.",
    ),
    Option(
        f"{_READ}extract.partition.values.from.path",
        Kind.BOOL,
        False,
        "Read partition columns from folder names instead of rows.",
        families=READ,
    ),
    Option(
        "hoodie.query.as.ro.table",
        Kind.BOOL,
        False,
        "Set by catalogs for `_ro` tables.",
        supported=(False,),
        families=READ,
    ),
    Option(
        "hoodie.datasource.view.type",
        Kind.TEXT,
        None,
        "Old name of `hoodie.datasource.query.type`, which Apache Hudi ignores.",
        supported=(),
        families=READ,
        instead="Set hoodie.datasource.query.type.",
    ),
    Option(
        f"{_READ}table.valued.function.timeline.relation",
        Kind.BOOL,
        False,
        "Read the timeline as rows.",
        supported=(False,),
        families=READ,
    ),
    Option(
        f"{_READ}create.filesystem.relation",
        Kind.BOOL,
        False,
        "Read file metadata as rows.",
        supported=(False,),
        families=READ,
    ),
    Option(
        "hoodie.read.blob.inline.mode",
        Kind.ENUM,
        "DESCRIPTOR",
        "Form of inline blobs: without effect in tables of Parquet files, which return their bytes.",
        choices=("DESCRIPTOR", "CONTENT"),
        families=READ,
    ),
)
"""Options of reads."""
