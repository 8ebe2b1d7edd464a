"""Options of files: sizes, log files, Parquet, ORC, Lance and bloom filters.

Sources: ``HoodieStorageConfig``, ``HoodieCompactionConfig``, ``HoodieIndexConfig``, ``HoodieWriteConfig`` (1.2.0).
"""

from __future__ import annotations

import math

from hudi_fast.config.option_fields import Kind, OptionValues, normalise_fields, option, options_of
from hudi_fast.errors import ConfigError
from hudi_fast.values import dataclass

__all__ = [
    "BLOOM_OPTIONS",
    "LANCE_OPTIONS",
    "LOG_OPTIONS",
    "ORC_OPTIONS",
    "PARQUET_OPTIONS",
    "SIZING_OPTIONS",
    "SMALL_FILE_LIMIT",
    "BloomOptions",
    "LanceOptions",
    "LogOptions",
    "OrcOptions",
    "ParquetOptions",
    "SizingOptions",
]

_MIB = 1024 * 1024

SMALL_FILE_LIMIT = 100 * _MIB
"""Default of ``hoodie.parquet.small.file.limit``, in bytes."""

_LEVELS = {"zstd": (1, 22), "gzip": (1, 9), "brotli": (0, 11)}
_DEFAULT_LEVELS = {"zstd": 1}


@dataclass(frozen=True, slots=True, repr=False)
class SizingOptions(OptionValues):
    """How large files become. Sizes are bytes."""

    max_file_size: int = option(
        "hoodie.parquet.max.file.size",
        Kind.INT,
        120 * _MIB,
        "Target size of new base files.",
        unit="bytes",
        minimum=1,
    )
    max_file_rows: int = option(
        "hudi_fast.max.file.rows",
        Kind.INT,
        3_000_000,
        "Rows at which a new base file ends before it has its target size: a task holds the record keys of a file "
        "group in memory. Buckets of a bucket index have no such limit.",
        unit="rows",
        minimum=1,
    )
    compression_ratio: float = option(
        "hoodie.parquet.compression.ratio",
        Kind.FLOAT,
        0.1,
        "Fraction by which a base file may exceed its target size before the writer starts another.",
        minimum=0,
    )
    small_file_limit: int = option(
        "hoodie.parquet.small.file.limit",
        Kind.INT,
        SMALL_FILE_LIMIT,
        "Base files smaller than this receive inserts; 0 or less = never.",
        unit="bytes",
    )
    auto_split: bool = option(
        "hoodie.copyonwrite.insert.auto.split",
        Kind.BOOL,
        True,
        "Compute the rows of a new file from the target file size and the average row size.",
    )
    split_size: int = option(
        "hoodie.copyonwrite.insert.split.size",
        Kind.INT,
        500_000,
        "Rows of a new file if `hoodie.copyonwrite.insert.auto.split` is false.",
        unit="rows",
        minimum=1,
    )
    record_size_estimate: int = option(
        "hoodie.copyonwrite.record.size.estimate",
        Kind.INT,
        1024,
        "Assumed row size if no commit provides an estimate.",
        unit="bytes",
        minimum=1,
    )
    estimation_threshold: float = option(
        "hoodie.record.size.estimation.threshold",
        Kind.FLOAT,
        1.0,
        "Estimate the row size from a commit if it wrote more than this many times the small file limit.",
        minimum=0,
    )
    estimator_max_commits: int = option(
        "_hoodie.record.size.estimator.max.commits",
        Kind.INT,
        5,
        "Number of newest commits that are considered for the row size.",
        unit="commits",
        minimum=0,
    )
    estimator_file_metadata: int = option(
        "hoodie.record.size.estimator.average.metadata.size",
        Kind.INT,
        0,
        "Average bytes of a file that are not rows.",
        unit="bytes",
        minimum=0,
    )
    small_file_candidates: int = option(
        "hoodie.merge.small.file.group.candidates.limit",
        Kind.INT,
        1,
        "MERGE_ON_READ: number of small file groups per partition that receive inserts of one write.",
        unit="file groups",
        minimum=0,
    )

    def records_per_new_file(self, average: int) -> int:
        """Number of records of ``average`` bytes in a new file."""
        fitting = max(1, math.ceil(self.max_file_size / average)) if self.auto_split else self.split_size
        return min(fitting, self.max_file_rows)

    def records_before_full(self, average: int) -> int:
        """Number of records of ``average`` bytes after which a new file is full while it is written."""
        return max(1, int(self.records_per_new_file(average) * (1 + self.compression_ratio)))

    def records_to_fill(self, size: int, average: int) -> int:
        """Number of records of ``average`` bytes that a file of ``size`` bytes takes; zero or less for none."""
        return min((self.max_file_size - size) // average, self.max_file_rows - size // average)


@dataclass(frozen=True, slots=True, repr=False)
class LogOptions(OptionValues):
    """Log files. Sizes are bytes."""

    max_file_size: int = option(
        "hoodie.logfile.max.size",
        Kind.INT,
        1024 * _MIB,
        "Size at which a new log file is started.",
        unit="bytes",
        minimum=1,
    )
    max_block_size: int = option(
        "hoodie.logfile.data.block.max.size",
        Kind.INT,
        64 * _MIB,
        "Maximum size of a log block, which a writer holds in memory (Apache Hudi's default is 256 MiB).",
        unit="bytes",
        minimum=1,
    )
    block_format: str = option(
        "hoodie.logfile.data.block.format",
        Kind.ENUM,
        "avro",
        "Format of the data blocks in log files.",
        choices=("avro", "parquet", "hfile"),
    )
    hfile_codec: str = option(
        "hoodie.hfile.compression.algorithm",
        Kind.ENUM,
        "gz",
        "Compression of HFile data blocks in log files.",
        choices=("gz", "none", "snappy", "lz4", "zstd", "lzo", "bzip2"),
    )
    record_positions: bool = option(
        "hoodie.write.record.positions",
        Kind.BOOL,
        True,
        "Store base file row positions in log blocks (table version 8 and later, index types SIMPLE and BLOOM).",
    )


@dataclass(frozen=True, slots=True, repr=False)
class ParquetOptions(OptionValues):
    """Parquet base files, and Parquet blocks of log files. Sizes are bytes."""

    codec: str = option(
        "hoodie.parquet.compression.codec",
        Kind.ENUM,
        "zstd",
        "Compression codec of base files (Apache Hudi's default is gzip).",
        choices=("zstd", "snappy", "gzip", "uncompressed", "brotli", "lz4_raw", "lz4", "lzo"),
        supported=("zstd", "snappy", "gzip", "uncompressed", "brotli", "lz4_raw"),
    )
    level: int | None = option(
        "hudi_fast.parquet.compression.level",
        Kind.INT,
        None,
        "Compression level: zstd 1 to 22 (default 1), gzip 1 to 9, brotli 0 to 11.",
        minimum=0,
    )
    block_size: int = option(
        "hoodie.parquet.block.size",
        Kind.INT,
        120 * _MIB,
        "Target size of a row group.",
        unit="bytes",
        minimum=1,
    )
    page_size: int = option(
        "hoodie.parquet.page.size", Kind.INT, _MIB, "Target size of a page.", unit="bytes", minimum=1
    )
    dictionary: bool = option(
        "hoodie.parquet.dictionary.enabled", Kind.BOOL, True, "Use dictionary encoding where it helps."
    )

    def __post_init__(self) -> None:
        normalise_fields(self)
        if self.level is None:
            return
        low, high = _LEVELS.get(self.codec, (None, None))
        if low is None or high is None:
            raise ConfigError(
                f"hudi_fast.parquet.compression.level is given, but the codec {self.codec} has no levels."
            )
        if not low <= self.level <= high:
            raise ConfigError(
                f"hudi_fast.parquet.compression.level={self.level} is out of range for {self.codec}: {low} to {high}."
            )

    @property
    def compression_level(self) -> int | None:
        """Compression level; None = the codec's default, or a codec without levels."""
        return self.level if self.level is not None else _DEFAULT_LEVELS.get(self.codec)


@dataclass(frozen=True, slots=True, repr=False)
class OrcOptions(OptionValues):
    """ORC base files. Sizes are bytes."""

    codec: str = option(
        "hoodie.orc.compression.codec",
        Kind.ENUM,
        "zstd",
        "Compression codec of ORC base files (Apache Hudi's default is zlib).",
        choices=("none", "zlib", "snappy", "lzo", "lz4", "zstd"),
        supported=("none", "zlib", "snappy", "lz4", "zstd"),
    )
    stripe_size: int = option(
        "hoodie.orc.stripe.size",
        Kind.INT,
        16 * _MIB,
        "Target size of a stripe, which a reader holds in memory (Apache Hudi's default is 64 MiB).",
        unit="bytes",
        minimum=1,
    )
    max_file_size: int = option(
        "hoodie.orc.max.file.size",
        Kind.INT,
        120 * _MIB,
        "Target size of new ORC base files; if not given, that of Parquet files.",
        unit="bytes",
        minimum=1,
    )


@dataclass(frozen=True, slots=True, repr=False)
class LanceOptions(OptionValues):
    """Lance base files. Sizes are bytes."""

    max_file_size: int = option(
        "hoodie.lance.max.file.size",
        Kind.INT,
        120 * _MIB,
        "Target size of new Lance base files, measured before encoding; if not given, that of Parquet files.",
        unit="bytes",
        minimum=1,
    )


@dataclass(frozen=True, slots=True, repr=False)
class BloomOptions(OptionValues):
    """Bloom filters of record keys in base files."""

    enabled: bool = option(
        "hoodie.parquet.bloom.filter.enabled",
        Kind.BOOL,
        True,
        "Write a bloom filter of the record keys into base files. Bloom indexes always write one.",
    )
    type: str = option(
        "hoodie.bloom.index.filter.type",
        Kind.ENUM,
        "DYNAMIC_V0",
        "Bloom filter of fixed size (SIMPLE), or one that grows with the file (DYNAMIC_V0).",
        choices=("SIMPLE", "DYNAMIC_V0"),
    )
    entries: int = option(
        "hoodie.index.bloom.num_entries",
        Kind.INT,
        60_000,
        "Number of keys that a bloom filter is sized for.",
        unit="keys",
        minimum=1,
    )
    fpp: float = option(
        "hoodie.index.bloom.fpp",
        Kind.FLOAT,
        1e-9,
        "False-positive rate of the bloom filter.",
        minimum=0,
        maximum=1,
        exclusive=True,
    )
    max_entries: int = option(
        "hoodie.bloom.index.filter.dynamic.max.entries",
        Kind.INT,
        100_000,
        "Number of keys up to which a dynamic bloom filter grows.",
        unit="keys",
        minimum=1,
    )


SIZING_OPTIONS = options_of(SizingOptions)
"""Options of file sizes."""

LOG_OPTIONS = options_of(LogOptions)
"""Options of log files."""

PARQUET_OPTIONS = options_of(ParquetOptions)
"""Options of Parquet files and blocks."""

ORC_OPTIONS = options_of(OrcOptions)
"""Options of ORC files."""

LANCE_OPTIONS = options_of(LanceOptions)
"""Options of Lance files."""

BLOOM_OPTIONS = options_of(BloomOptions)
"""Options of bloom filters."""
