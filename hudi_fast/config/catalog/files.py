"""The write options that shape files: sizing, Parquet and bloom filters.

Sources: ``HoodieStorageConfig``, ``HoodieCompactionConfig``, ``HoodieIndexConfig``, ``HoodieWriteConfig`` (1.2.0).
"""

from __future__ import annotations

from hudi_fast.config.option_descriptor import Kind, Option

__all__ = ["BLOOM_OPTIONS", "PARQUET_OPTIONS", "SIZING_OPTIONS"]

_MIB = 1024 * 1024

SIZING_OPTIONS = (
    Option(
        "hoodie.parquet.max.file.size",
        Kind.INT,
        120 * _MIB,
        "Size that new base files aim at.",
        unit="bytes",
        minimum=1,
    ),
    Option(
        "hoodie.parquet.small.file.limit",
        Kind.INT,
        100 * _MIB,
        "Base files smaller than this take up inserts; 0 or less = never.",
        unit="bytes",
    ),
    Option(
        "hoodie.copyonwrite.insert.auto.split",
        Kind.BOOL,
        True,
        "Rows of a new file follow from its size and the average row size.",
    ),
    Option(
        "hoodie.copyonwrite.insert.split.size",
        Kind.INT,
        500_000,
        "Rows of a new file when they are not computed.",
        unit="rows",
        minimum=1,
    ),
    Option(
        "hoodie.copyonwrite.record.size.estimate",
        Kind.INT,
        1024,
        "Size of a row when no commit tells.",
        unit="bytes",
        minimum=1,
    ),
    Option(
        "hoodie.record.size.estimation.threshold",
        Kind.FLOAT,
        1.0,
        "A commit tells the row size if it wrote more than this many small file limits.",
        minimum=0,
    ),
    Option(
        "_hoodie.record.size.estimator.max.commits",
        Kind.INT,
        5,
        "Newest commits that are looked at for the row size.",
        unit="commits",
        minimum=0,
    ),
    Option(
        "hoodie.record.size.estimator.average.metadata.size",
        Kind.INT,
        0,
        "Bytes of a file that are not rows.",
        unit="bytes",
        minimum=0,
    ),
    Option(
        "hoodie.merge.small.file.group.candidates.limit",
        Kind.INT,
        1,
        "MERGE_ON_READ: small file groups that take up inserts, per partition and write.",
        unit="file groups",
        minimum=0,
    ),
    Option(
        "hoodie.logfile.to.parquet.compression.ratio",
        Kind.FLOAT,
        0.35,
        "Bytes of a base file per byte of log.",
        minimum=0,
    ),
    Option(
        "hoodie.parquet.compression.ratio",
        Kind.FLOAT,
        0.1,
        "How far a base file may outgrow its size before the writer starts another.",
        minimum=0,
    ),
    Option(
        "hoodie.logfile.max.size",
        Kind.INT,
        1024 * _MIB,
        "Size at which the next block goes into another log file.",
        unit="bytes",
        minimum=1,
    ),
    Option(
        "hoodie.logfile.data.block.max.size",
        Kind.INT,
        256 * _MIB,
        "Size at which a log block is written out.",
        unit="bytes",
        minimum=1,
    ),
    Option(
        "hoodie.logfile.data.block.format",
        Kind.ENUM,
        "avro",
        "Format of the data blocks in log files.",
        choices=("avro", "parquet", "hfile"),
        supported=("avro", "parquet"),
    ),
    Option(
        "hoodie.write.record.positions",
        Kind.BOOL,
        True,
        "Log blocks say which rows of the base file they are about (table version 8 and later, SIMPLE and BLOOM).",
    ),
)

PARQUET_OPTIONS = (
    Option(
        "hoodie.parquet.compression.codec",
        Kind.ENUM,
        "zstd",
        "Codec of base files (Apache Hudi's default is gzip).",
        choices=("zstd", "snappy", "gzip", "uncompressed", "brotli", "lz4_raw", "lz4", "lzo"),
        supported=("zstd", "snappy", "gzip", "uncompressed", "brotli", "lz4_raw"),
    ),
    Option(
        "hudi_fast.parquet.compression.level",
        Kind.INT,
        None,
        "Level of the codec: zstd 1 to 22 (default 1), gzip 1 to 9, brotli 0 to 11.",
        minimum=0,
    ),
    Option(
        "hoodie.parquet.block.size",
        Kind.INT,
        120 * _MIB,
        "Size of a row group.",
        unit="bytes",
        minimum=1,
    ),
    Option("hoodie.parquet.page.size", Kind.INT, _MIB, "Size of a page.", unit="bytes", minimum=1),
    Option("hoodie.parquet.dictionary.enabled", Kind.BOOL, True, "Use dictionary encoding where it helps."),
)

BLOOM_OPTIONS = (
    Option(
        "hoodie.parquet.bloom.filter.enabled",
        Kind.BOOL,
        True,
        "Put a bloom filter of the record keys into base files; always there with a bloom index.",
    ),
    Option(
        "hoodie.bloom.index.filter.type",
        Kind.ENUM,
        "DYNAMIC_V0",
        "Whether the filter grows with the file.",
        choices=("SIMPLE", "DYNAMIC_V0"),
    ),
    Option(
        "hoodie.index.bloom.num_entries",
        Kind.INT,
        60_000,
        "Keys that a filter is made for.",
        unit="keys",
        minimum=1,
    ),
    Option(
        "hoodie.index.bloom.fpp",
        Kind.FLOAT,
        1e-9,
        "Share of absent keys that the filter lets through.",
        minimum=0,
        maximum=1,
        exclusive=True,
    ),
    Option(
        "hoodie.bloom.index.filter.dynamic.max.entries",
        Kind.INT,
        100_000,
        "Keys up to which a dynamic filter grows.",
        unit="keys",
        minimum=1,
    ),
)
