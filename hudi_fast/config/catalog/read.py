"""The read options that hudi_fast honours, and those it takes at some values only.

Sources: ``DataSourceReadOptions``, ``HoodieReaderConfig``, ``HoodieCommonConfig`` (1.2.0).
"""

from __future__ import annotations

from hudi_fast.config.option_descriptor import BOTH, READ, Kind, Option

__all__ = ["QUERY_OPTIONS"]

_READ = "hoodie.datasource.read."

QUERY_OPTIONS = (
    Option("path", Kind.TEXT, None, "Base path of the table.", aliases=("hoodie.base.path",), families=BOTH),
    Option(
        "hoodie.datasource.query.type",
        Kind.ENUM,
        "snapshot",
        "What is read: the newest rows, base files alone, or what changed in a range.",
        choices=("snapshot", "read_optimized", "incremental"),
        families=READ,
    ),
    Option(
        "as.of.instant",
        Kind.TEXT,
        None,
        "Read the table as it was: `yyyyMMddHHmmss[SSS]`, `yyyy-MM-dd HH:mm:ss[.SSS]` or `yyyy-MM-dd`.",
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
        "End of an incremental query, inclusive; absent = the latest.",
        families=READ,
    ),
    Option(
        "hoodie.datasource.query.incremental.format",
        Kind.ENUM,
        "latest_state",
        "What an incremental query returns: newest rows, or changes with both images.",
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
        "MERGE_ON_READ: match log records to rows of base files by position where the log says it, not by key.",
        families=READ,
    ),
    Option(
        "hudi_fast.merger",
        Kind.FUNCTION,
        None,
        "Tables whose merge mode is CUSTOM: `merge(older, newer)` gets two Arrow tables, row by row of one key, and "
        "returns the merged rows; `_hoodie_is_deleted` marks those that go.",
        families=BOTH,
    ),
    Option(
        f"{_READ}incr.path.glob",
        Kind.TEXT,
        "",
        "Incremental: only files whose path matches; `*` comes before.",
        families=READ,
    ),
    Option(
        f"{_READ}incr.fallback.fulltablescan.enable",
        Kind.BOOL,
        False,
        "Incremental: scan the table when files of the range are gone.",
        families=READ,
    ),
    Option(
        f"{_READ}incr.skip_compact",
        Kind.BOOL,
        False,
        "Incremental: leave compactions out; their rows belong to the commits that logged them either way.",
        families=READ,
    ),
    Option(
        f"{_READ}incr.skip_cluster",
        Kind.BOOL,
        False,
        "Incremental: nothing to do, a clustering's rows belong to the commits that wrote them.",
        families=READ,
    ),
    Option(
        f"{_READ}incr.table.version",
        Kind.INT,
        None,
        "Incremental: 6 = bounds are requested times, whatever the table's version.",
        supported=(6, 8, 9),
        minimum=0,
        families=READ,
    ),
    Option(
        f"{_READ}schema.use.end.instanttime",
        Kind.BOOL,
        False,
        "Incremental: the schema as of the end of the range.",
        families=READ,
    ),
    Option(
        "hoodie.read.timeline.holes.resolution.policy",
        Kind.ENUM,
        "FAIL",
        "Incremental, table version 6: what to do about a pending commit before a completed one.",
        aliases=(f"{_READ}handle.hollow.commit",),
        choices=("FAIL", "BLOCK", "USE_TRANSITION_TIME"),
        families=READ,
    ),
    Option(
        "hoodie.schema.on.read.enable",
        Kind.BOOL,
        False,
        "Columns by id: tables whose schema was altered are read and written so whatever this says; with "
        "`hoodie.datasource.write.reconcile.schema` a write begins such a history.",
        families=BOTH,
    ),
    Option(f"{_READ}incr.filters", Kind.TEXT, "", "Incremental: filters by text.", supported=("",), families=READ),
    Option(f"{_READ}paths", Kind.TEXT, None, "Several paths in one read.", supported=(), families=READ),
    Option(
        f"{_READ}extract.partition.values.from.path",
        Kind.BOOL,
        False,
        "Take partition columns from folder names in place of the rows.",
        supported=(False,),
        families=READ,
    ),
    Option(
        "hoodie.query.as.ro.table",
        Kind.BOOL,
        False,
        "Set by catalogues for `_ro` tables.",
        supported=(False,),
        families=READ,
    ),
    Option(
        "hoodie.datasource.view.type",
        Kind.TEXT,
        None,
        "Former name of the query type.",
        supported=(),
        families=READ,
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
        Kind.TEXT,
        None,
        "How blob columns are returned.",
        supported=(),
        families=READ,
    ),
)
