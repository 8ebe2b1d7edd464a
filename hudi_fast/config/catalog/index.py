"""Options of the index that finds a key's file group, and of the metadata table with the indexes inside it.

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
        "How the file group of a key is found; GLOBAL_ ones look in all partitions. RECORD_INDEX is the old name of "
        "GLOBAL_RECORD_LEVEL_INDEX.",
        choices=INDEX_TYPES,
        supported=SUPPORTED_INDEX_TYPES,
    ),
    Option(
        "hoodie.simple.index.update.partition.path",
        Kind.BOOL,
        True,
        "GLOBAL_SIMPLE: move a row whose partition changed; false = it stays where it was.",
    ),
    Option(
        "hoodie.bloom.index.update.partition.path",
        Kind.BOOL,
        True,
        "GLOBAL_BLOOM: likewise.",
    ),
    Option(
        "hoodie.record.index.update.partition.path",
        Kind.BOOL,
        False,
        "GLOBAL_RECORD_LEVEL_INDEX: likewise.",
    ),
    Option(
        "hoodie.bloom.index.prune.by.ranges",
        Kind.BOOL,
        True,
        "Leave out files whose range of keys does not fit.",
    ),
    Option(
        "hoodie.bloom.index.use.metadata",
        Kind.BOOL,
        False,
        "BLOOM, GLOBAL_BLOOM: take key ranges and bloom filters from the metadata table where it has them.",
    ),
    Option(
        "hoodie.index.bucket.engine",
        Kind.ENUM,
        "SIMPLE",
        "BUCKET: a fixed number of buckets per partition, or buckets that split and merge (MERGE_ON_READ only).",
        choices=("SIMPLE", "CONSISTENT_HASHING"),
    ),
    Option(
        "hoodie.bucket.index.num.buckets",
        Kind.INT,
        256,
        "BUCKET: buckets of a partition (consistent hashing: at first); may not change during the life of a table.",
        unit="buckets",
        minimum=1,
    ),
    Option(
        "hoodie.bucket.index.hash.field",
        Kind.LIST,
        None,
        "BUCKET: columns that are hashed, all of them key columns; default: the key columns.",
    ),
    Option(
        "hoodie.bucket.index.min.num.buckets",
        Kind.INT,
        None,
        "Consistent hashing: fewest buckets of a partition; default: `hoodie.bucket.index.num.buckets`.",
        unit="buckets",
        minimum=1,
    ),
    Option(
        "hoodie.bucket.index.max.num.buckets",
        Kind.INT,
        None,
        "Consistent hashing: most buckets of a partition; default: `hoodie.bucket.index.num.buckets`.",
        unit="buckets",
        minimum=1,
    ),
    Option(
        "hoodie.bucket.index.split.threshold",
        Kind.FLOAT,
        2.0,
        "Consistent hashing: a bucket splits above this many times the size of a base file.",
        minimum=0,
    ),
    Option(
        "hoodie.bucket.index.merge.threshold",
        Kind.FLOAT,
        0.2,
        "Consistent hashing: buckets merge below this many times the size of a base file.",
        minimum=0,
    ),
    Option(
        "hoodie.bucket.index.partition.expressions",
        Kind.TEXT,
        "",
        "BUCKET: other numbers of buckets for some partitions.",
        supported=("",),
    ),
)

_SWITCHES = (
    Option(
        f"{_M}enable",
        Kind.BOOL,
        True,
        "Reads: find files through the table's metadata table if it has one. Writes: keep one; false = drop it.",
        families=BOTH,
    ),
    Option(
        "hoodie.enable.data.skipping",
        Kind.BOOL,
        True,
        "Leave out files that cannot hold a row that the filter wants, by the indexes of the metadata table.",
        families=READ,
    ),
    Option(
        f"{_M}index.column.stats.enable",
        Kind.BOOL,
        True,
        "Ranges and null counts of columns, per file.",
    ),
    Option(
        f"{_M}index.partition.stats.enable",
        Kind.BOOL,
        True,
        "The same per partition: partitioned tables of version 8 and later that have column stats.",
    ),
    Option(
        f"{_M}index.bloom.filter.enable",
        Kind.BOOL,
        False,
        "Bloom filters of the record keys of base files.",
    ),
    Option(
        f"{_M}global.record.level.index.enable",
        Kind.BOOL,
        False,
        "Where each record key is; keys are unique in the whole table. On with the index type "
        "GLOBAL_RECORD_LEVEL_INDEX.",
        aliases=(f"{_M}record.index.enable",),
    ),
    Option(
        f"{_M}record.level.index.enable",
        Kind.BOOL,
        False,
        "Where each record key is; keys are unique in their partition. On with the index type RECORD_LEVEL_INDEX.",
    ),
    Option(
        f"{_M}index.secondary.enable",
        Kind.BOOL,
        True,
        "Keep the secondary indexes that are defined; false = drop them.",
    ),
    Option(
        f"{_M}index.expression.enable",
        Kind.BOOL,
        True,
        "Keep the expression indexes that are defined; false = drop them.",
    ),
)

_WHAT = (
    Option(
        f"{_M}index.column.stats.column.list",
        Kind.LIST,
        (),
        "Columns that have stats, besides the record key and other meta columns; default: the first ones.",
    ),
    Option(
        f"{_M}index.column.stats.max.columns.to.index",
        Kind.INT,
        32,
        "How many columns have stats when they are not listed.",
        unit="columns",
        minimum=0,
    ),
    Option("hoodie.index.name", Kind.TEXT, None, "Name of the secondary or expression index to make."),
    Option(f"{_M}index.secondary.column", Kind.TEXT, None, "Make a secondary index over this column."),
    Option(f"{_M}index.expression.column", Kind.TEXT, None, "Make an expression index over this column."),
    Option(
        f"{_M}index.expression.options",
        Kind.TEXT,
        "",
        "What the expression index is of: `expr=from_unixtime,format=yyyy-MM-dd`.",
    ),
    Option(
        "hoodie.expression.index.type",
        Kind.TEXT,
        "column_stats",
        "What the expression index keeps.",
        choices=("column_stats", "bloom_filters"),
        supported=("column_stats",),
    ),
    Option(
        "hoodie.expression.index.function",
        Kind.TEXT,
        None,
        "The function of the expression index, where its options do not say `expr`.",
    ),
    Option(f"{_M}index.drop", Kind.LIST, (), "Indexes to drop, as partitions of the metadata table."),
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
        "Fewest file groups of a record index or secondary index, when it is made.",
        aliases=(f"{_M}record.index.min.filegroup.count",),
        minimum=1,
    ),
    Option(
        f"{_M}global.record.level.index.max.filegroup.count",
        Kind.INT,
        10_000,
        "Most file groups of it.",
        aliases=(f"{_M}record.index.max.filegroup.count",),
        minimum=1,
        maximum=10_000,
    ),
    Option(
        f"{_M}record.level.index.min.filegroup.count",
        Kind.INT,
        1,
        "Fewest file groups per partition of a record index with keys unique in their partition.",
        aliases=(f"{_M}partitioned.record.index.min.filegroup.count",),
        minimum=1,
    ),
    Option(
        f"{_M}record.level.index.max.filegroup.count",
        Kind.INT,
        10,
        "Most file groups per partition of it.",
        aliases=(f"{_M}partitioned.record.index.max.filegroup.count",),
        minimum=1,
        maximum=10_000,
    ),
    Option(
        f"{_M}record.index.max.filegroup.size",
        Kind.INT,
        1 << 30,
        "Size that a file group of a record index may grow to, when their number is decided.",
        unit="bytes",
        minimum=48,
    ),
    Option(
        f"{_M}record.index.growth.factor",
        Kind.FLOAT,
        2.0,
        "How many times its present records a record index is made for.",
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
)

METADATA_OPTIONS = _SWITCHES + _WHAT + _SIZES
