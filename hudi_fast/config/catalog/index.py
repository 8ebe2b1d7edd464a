"""Options of the write index and of the metadata table with its indexes.

Sources: ``HoodieIndexConfig``, ``HoodieIndexingConfig``, ``HoodieMetadataConfig`` (1.2.0; older spellings from 0.15).
"""

from __future__ import annotations

from hudi_fast.config.option_descriptor import BOTH, READ, Kind, Option
from hudi_fast.config.option_names import INDEX_TYPES, SUPPORTED_INDEX_TYPES

__all__ = ["INDEX_OPTIONS", "METADATA_OPTIONS"]

_M = "hoodie.metadata."

INDEX_OPTIONS = (
    Option(
        "hoodie.index.type",
        Kind.ENUM,
        "SIMPLE",
        "Index that finds the file group of a record key. GLOBAL_ indexes search all partitions. RECORD_INDEX is the "
        "old name of GLOBAL_RECORD_LEVEL_INDEX. INMEMORY (COPY_ON_WRITE only) means SIMPLE, since Apache "
        "Hudi keeps it in memory only.",
        choices=INDEX_TYPES,
        supported=SUPPORTED_INDEX_TYPES,
        instead="The keys of such a table are also in its files: GLOBAL_SIMPLE and GLOBAL_BLOOM look them up there, "
        "GLOBAL_RECORD_LEVEL_INDEX builds an index in the table. Use one of these, or Apache Hudi.",
    ),
    Option(
        "hoodie.simple.index.update.partition.path",
        Kind.BOOL,
        True,
        "GLOBAL_SIMPLE: move a row whose partition changed; false = keep it in its old partition.",
    ),
    Option(
        "hoodie.bloom.index.update.partition.path",
        Kind.BOOL,
        True,
        "GLOBAL_BLOOM: move a row whose partition changed; false = keep it in its old partition.",
    ),
    Option(
        "hoodie.record.index.update.partition.path",
        Kind.BOOL,
        False,
        "GLOBAL_RECORD_LEVEL_INDEX: move a row whose partition changed; false = keep it in its old partition.",
    ),
    Option(
        "hoodie.bloom.index.prune.by.ranges",
        Kind.BOOL,
        True,
        "BLOOM, GLOBAL_BLOOM: skip files by their range of record keys.",
    ),
    Option(
        "hoodie.bloom.index.use.metadata",
        Kind.BOOL,
        False,
        "BLOOM, GLOBAL_BLOOM: read key ranges and bloom filters from the metadata table if it has them.",
    ),
    Option(
        "hoodie.index.bucket.engine",
        Kind.ENUM,
        "SIMPLE",
        "BUCKET: a fixed number of buckets per partition (SIMPLE), or buckets that split and merge "
        "(CONSISTENT_HASHING, MERGE_ON_READ only).",
        choices=("SIMPLE", "CONSISTENT_HASHING"),
    ),
    Option(
        "hoodie.bucket.index.num.buckets",
        Kind.INT,
        256,
        "BUCKET: buckets per partition (consistent hashing: initial number); cannot change later.",
        unit="buckets",
        minimum=1,
    ),
    Option(
        "hoodie.bucket.index.hash.field",
        Kind.LIST,
        None,
        "BUCKET: key columns to hash; default: all key columns.",
    ),
    Option(
        "hoodie.bucket.index.min.num.buckets",
        Kind.INT,
        None,
        "Consistent hashing: minimum buckets per partition; default: `hoodie.bucket.index.num.buckets`.",
        unit="buckets",
        minimum=1,
    ),
    Option(
        "hoodie.bucket.index.max.num.buckets",
        Kind.INT,
        None,
        "Consistent hashing: maximum buckets per partition; default: `hoodie.bucket.index.num.buckets`.",
        unit="buckets",
        minimum=1,
    ),
    Option(
        "hoodie.bucket.index.split.threshold",
        Kind.FLOAT,
        2.0,
        "Consistent hashing: a bucket splits above this many times the target size of a base file.",
        minimum=0,
    ),
    Option(
        "hoodie.bucket.index.merge.threshold",
        Kind.FLOAT,
        0.2,
        "Consistent hashing: buckets merge below this many times the target size of a base file.",
        minimum=0,
    ),
    Option(
        "hoodie.bucket.index.partition.expressions",
        Kind.TEXT,
        "",
        "BUCKET with the engine SIMPLE: numbers of buckets for selected partitions: `pattern,count;pattern,count`. The "
        "first pattern, a regular expression, that is found in the partition path applies; "
        "`hoodie.bucket.index.num.buckets` applies to the others. A new table stores both; only "
        "`insert_overwrite_table` changes them.",
    ),
    Option(
        "hoodie.bucket.index.partition.rule.type",
        Kind.TEXT,
        "regex",
        "BUCKET: how `hoodie.bucket.index.partition.expressions` selects partitions.",
        supported=("regex",),
    ),
    Option(
        "hudi_fast.index.fallback.max.bytes",
        Kind.INT,
        16 << 30,
        "Record index types: where the record index is missing or cannot be used, a write looks keys up in data files "
        "of up to this total size; it is refused in larger tables.",
        unit="bytes",
        minimum=0,
    ),
)
"""Options of the index that tagging uses."""

_SWITCHES = (
    Option(
        f"{_M}enable",
        Kind.BOOL,
        True,
        "Reads: list files with the metadata table if the table has one. Writes: maintain a metadata table; false = "
        "delete it.",
        families=BOTH,
    ),
    Option(
        "hoodie.enable.data.skipping",
        Kind.BOOL,
        True,
        "Skip files without matching rows, by the indexes of the metadata table.",
        families=READ,
    ),
    Option(
        f"{_M}index.column.stats.enable",
        Kind.BOOL,
        True,
        "Index the value ranges and null counts of columns, per file.",
    ),
    Option(
        f"{_M}index.partition.stats.enable",
        Kind.BOOL,
        True,
        "Index the value ranges and null counts of columns, per partition; for partitioned tables of version 8 and "
        "later with column stats.",
    ),
    Option(
        f"{_M}index.bloom.filter.enable",
        Kind.BOOL,
        False,
        "Index the bloom filters of base files.",
    ),
    Option(
        f"{_M}global.record.level.index.enable",
        Kind.BOOL,
        False,
        "Index the file group of each record key; keys are unique in the table. Enabled by the index type "
        "GLOBAL_RECORD_LEVEL_INDEX.",
        aliases=(f"{_M}record.index.enable",),
    ),
    Option(
        f"{_M}record.level.index.enable",
        Kind.BOOL,
        False,
        "Index the file group of each record key; keys are unique in their partition. Enabled by the index type "
        "RECORD_LEVEL_INDEX.",
    ),
    Option(
        f"{_M}index.secondary.enable",
        Kind.BOOL,
        True,
        "Maintain the defined secondary indexes; false = drop them.",
    ),
    Option(
        f"{_M}index.expression.enable",
        Kind.BOOL,
        True,
        "Maintain the defined expression indexes; false = drop them.",
    ),
)

_WHAT = (
    Option(
        f"{_M}index.column.stats.column.list",
        Kind.LIST,
        (),
        "Columns with stats, in addition to the record key and other meta columns; default: the first columns.",
    ),
    Option(
        f"{_M}index.column.stats.max.columns.to.index",
        Kind.INT,
        32,
        "Number of columns with stats if no list is given.",
        unit="columns",
        minimum=0,
    ),
    Option("hoodie.index.name", Kind.TEXT, None, "Name of the secondary or expression index to build."),
    Option(f"{_M}index.secondary.column", Kind.TEXT, None, "Build a secondary index on this column."),
    Option(f"{_M}index.expression.column", Kind.TEXT, None, "Build an expression index on this column."),
    Option(
        f"{_M}index.expression.options",
        Kind.TEXT,
        "",
        "Expression of the expression index, for example `expr=from_unixtime,format=yyyy-MM-dd`.",
    ),
    Option(
        "hoodie.expression.index.type",
        Kind.TEXT,
        "column_stats",
        "Contents of the expression index.",
        choices=("column_stats", "bloom_filters"),
    ),
    Option(
        "hoodie.expression.index.function",
        Kind.TEXT,
        None,
        "Function of the expression index, unless its options contain `expr`.",
    ),
    Option(f"{_M}index.drop", Kind.LIST, (), "Indexes to drop, by their metadata table partition."),
)

_SIZES = (
    Option(f"{_M}index.column.stats.file.group.count", Kind.INT, 2, "File groups of column stats.", minimum=1),
    Option(f"{_M}index.partition.stats.file.group.count", Kind.INT, 1, "File groups of partition stats.", minimum=1),
    Option(f"{_M}index.bloom.filter.file.group.count", Kind.INT, 4, "File groups of bloom filters.", minimum=1),
    Option(f"{_M}index.expression.file.group.count", Kind.INT, 2, "File groups of an expression index.", minimum=1),
    Option(
        f"{_M}global.record.level.index.min.filegroup.count",
        Kind.INT,
        10,
        "Minimum file groups of a new record index or secondary index.",
        aliases=(f"{_M}record.index.min.filegroup.count",),
        minimum=1,
    ),
    Option(
        f"{_M}global.record.level.index.max.filegroup.count",
        Kind.INT,
        10_000,
        "Maximum file groups of a new record index or secondary index.",
        aliases=(f"{_M}record.index.max.filegroup.count",),
        minimum=1,
        maximum=10_000,
    ),
    Option(
        f"{_M}record.level.index.min.filegroup.count",
        Kind.INT,
        1,
        "Minimum file groups per partition of a new record index with keys unique in their partition.",
        aliases=(f"{_M}partitioned.record.index.min.filegroup.count",),
        minimum=1,
    ),
    Option(
        f"{_M}record.level.index.max.filegroup.count",
        Kind.INT,
        10,
        "Maximum file groups per partition of a new record index with keys unique in their partition.",
        aliases=(f"{_M}partitioned.record.index.max.filegroup.count",),
        minimum=1,
        maximum=10_000,
    ),
    Option(
        f"{_M}record.index.max.filegroup.size",
        Kind.INT,
        1 << 30,
        "Planned maximum size of a file group of a record index; determines their number.",
        unit="bytes",
        minimum=48,
    ),
    Option(
        f"{_M}record.index.growth.factor",
        Kind.FLOAT,
        2.0,
        "Growth that a record index is sized for, as a multiple of its current records.",
        minimum=0,
        exclusive=True,
    ),
    Option(
        f"{_M}compact.max.delta.commits",
        Kind.INT,
        10,
        "Compact the metadata table after this many of its commits.",
        unit="commits",
        minimum=1,
    ),
    Option(
        "hudi_fast.metadata.compact.without.lock",
        Kind.BOOL,
        False,
        "With several writers and table version 8 or later: compact the metadata table after the table's lock has been "
        "released, so that other commits need not wait. Only for tables that Apache Hudi does not write.",
    ),
)

METADATA_OPTIONS = _SWITCHES + _WHAT + _SIZES
"""Options of the metadata table and its indexes."""
