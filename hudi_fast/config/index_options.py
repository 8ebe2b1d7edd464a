"""Options of the index: how incoming rows find the file groups of their keys.

Sources: ``HoodieIndexConfig`` (1.2.0).
"""

from __future__ import annotations

from hudi_fast.config.option_fields import Kind, OptionValues, normalise_fields, option, options_of
from hudi_fast.config.option_names import (
    INDEX_TYPES,
    SUPPORTED_INDEX_TYPES,
)
from hudi_fast.values import dataclass

__all__ = ["INDEX_OPTIONS", "BucketOptions", "IndexOptions"]


@dataclass(frozen=True, slots=True, repr=False)
class BucketOptions(OptionValues):
    """The bucket index.

    Attributes:
        hash_fields: None = the key columns.
    """

    engine: str = option(
        "hoodie.index.bucket.engine",
        Kind.ENUM,
        "SIMPLE",
        "BUCKET: a fixed number of buckets per partition (SIMPLE), or buckets that split and merge "
        "(CONSISTENT_HASHING, MERGE_ON_READ only).",
        choices=("SIMPLE", "CONSISTENT_HASHING"),
    )
    count: int = option(
        "hoodie.bucket.index.num.buckets",
        Kind.INT,
        256,
        "BUCKET: buckets per partition (consistent hashing: initial number); cannot change later.",
        unit="buckets",
        minimum=1,
    )
    hash_fields: tuple[str, ...] | None = option(
        "hoodie.bucket.index.hash.field",
        Kind.LIST,
        None,
        "BUCKET: key columns to hash; default: all key columns.",
    )
    expressions: str = option(
        "hoodie.bucket.index.partition.expressions",
        Kind.TEXT,
        "",
        "BUCKET with the engine SIMPLE: numbers of buckets for selected partitions: `pattern,count;pattern,count`. The "
        "first pattern, a regular expression, that is found in the partition path applies; "
        "`hoodie.bucket.index.num.buckets` applies to the others. A new table stores both; only "
        "`insert_overwrite_table` changes them.",
    )
    rule: str = option(
        "hoodie.bucket.index.partition.rule.type",
        Kind.TEXT,
        "regex",
        "BUCKET: how `hoodie.bucket.index.partition.expressions` selects partitions.",
        supported=("regex",),
    )
    min_count: int | None = option(
        "hoodie.bucket.index.min.num.buckets",
        Kind.INT,
        None,
        "Consistent hashing: minimum buckets per partition; default: `hoodie.bucket.index.num.buckets`.",
        unit="buckets",
        minimum=1,
    )
    max_count: int | None = option(
        "hoodie.bucket.index.max.num.buckets",
        Kind.INT,
        None,
        "Consistent hashing: maximum buckets per partition; default: `hoodie.bucket.index.num.buckets`.",
        unit="buckets",
        minimum=1,
    )
    split_threshold: float = option(
        "hoodie.bucket.index.split.threshold",
        Kind.FLOAT,
        2.0,
        "Consistent hashing: a bucket splits above this many times the target size of a base file.",
        minimum=0,
    )
    merge_threshold: float = option(
        "hoodie.bucket.index.merge.threshold",
        Kind.FLOAT,
        0.2,
        "Consistent hashing: buckets merge below this many times the target size of a base file.",
        minimum=0,
    )


@dataclass(frozen=True, slots=True, repr=False)
class IndexOptions(OptionValues):
    """How incoming rows find the file groups of their keys."""

    type: str = option(
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
    )
    simple_update_partition: bool = option(
        "hoodie.simple.index.update.partition.path",
        Kind.BOOL,
        True,
        "GLOBAL_SIMPLE: move a row whose partition changed; false = keep it in its old partition.",
    )
    bloom_update_partition: bool = option(
        "hoodie.bloom.index.update.partition.path",
        Kind.BOOL,
        True,
        "GLOBAL_BLOOM: move a row whose partition changed; false = keep it in its old partition.",
    )
    record_update_partition: bool = option(
        "hoodie.record.index.update.partition.path",
        Kind.BOOL,
        False,
        "GLOBAL_RECORD_LEVEL_INDEX: move a row whose partition changed; false = keep it in its old partition.",
    )
    prune_by_ranges: bool = option(
        "hoodie.bloom.index.prune.by.ranges",
        Kind.BOOL,
        True,
        "BLOOM, GLOBAL_BLOOM: skip files by their range of record keys.",
    )
    use_metadata: bool = option(
        "hoodie.bloom.index.use.metadata",
        Kind.BOOL,
        False,
        "BLOOM, GLOBAL_BLOOM: read key ranges and bloom filters from the metadata table if it has them.",
    )
    fallback_max_bytes: int = option(
        "hudi_fast.index.fallback.max.bytes",
        Kind.INT,
        16 << 30,
        "Record index types: where the record index is missing or cannot be used, a write looks keys up in data files "
        "of up to this total size; it is refused in larger tables.",
        unit="bytes",
        minimum=0,
    )

    def __post_init__(self) -> None:
        normalise_fields(self)
        if self.type == "RECORD_INDEX":  # its old name
            object.__setattr__(self, "type", "GLOBAL_RECORD_LEVEL_INDEX")

    @property
    def is_global(self) -> bool:
        """Whether record keys are looked up in all partitions."""
        return self.type.startswith("GLOBAL_")

    @property
    def updates_partition(self) -> bool:
        """Whether a global index moves a row whose partition changed."""
        if "RECORD" in self.type:
            return self.record_update_partition
        return self.bloom_update_partition if "BLOOM" in self.type else self.simple_update_partition


INDEX_OPTIONS = options_of(IndexOptions) + options_of(BucketOptions)
"""Options of the index."""
