"""The options of a write as one frozen value.

Data flow: ``{"hoodie...": ...}`` -> :meth:`WriteOptions.from_options` -> every step of the write. Each field is bound
to its option; key, default and range are defined in :mod:`hudi_fast.config.catalog`. A field that is None takes the
table's setting or is inferred. :mod:`hudi_fast.config.option_conflicts` checks the options against a table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hudi_fast.config.catalog.write import TIMEBASED_OPTIONS
from hudi_fast.config.clustering_options import allows_updates
from hudi_fast.config.key_generators import key_generator_of_class, key_generator_of_type
from hudi_fast.config.lock_options import LockOptions
from hudi_fast.config.merge_mode import MERGE_PROPERTY_PREFIX
from hudi_fast.config.metadata_options import MetadataOptions
from hudi_fast.config.option_fields import differing_repr, given_fields, normalise_fields, option_field
from hudi_fast.config.options import WRITE, find_option, resolve, text_of
from hudi_fast.errors import ConfigError

__all__ = ["PartitionSpec", "WriteOptions"]

_CLUSTERING_UPDATES = "hoodie.clustering.updates.strategy"
_PREFIX_KEY = "hoodie.datasource.write.commitmeta.key.prefix"
_LEVELS = {"zstd": (1, 22), "gzip": (1, 9), "brotli": (0, 11)}
_DEFAULT_LEVELS = {"zstd": 1}
_SHARED_CLOCK_SKEW_MS = 200
_RECORD_INDEX_SWITCHES = {
    "GLOBAL_RECORD_LEVEL_INDEX": "record_index",
    "RECORD_LEVEL_INDEX": "partitioned_record_index",
}
_RECORD_INDEX_KEYS = frozenset(
    {"hoodie.metadata.global.record.level.index.enable", "hoodie.metadata.record.level.index.enable"}
)


@dataclass(frozen=True, slots=True)
class PartitionSpec:
    """The columns of the partition path.

    Attributes:
        fields: column names, outermost folder first; empty = not partitioned.
        types: ``SIMPLE`` or ``TIMESTAMP`` per column, from ``name:TYPE``; empty if no types are given.
    """

    fields: tuple[str, ...]
    types: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class WriteOptions:
    """All options of a write. Sizes are bytes, times milliseconds unless the option states another unit.

    Built by :meth:`from_options`, or by keyword with the same checks.

    Attributes:
        index_type: the old name ``RECORD_INDEX`` is replaced by ``GLOBAL_RECORD_LEVEL_INDEX``.
        bucket_hash_fields: None = the key columns.
        metadata: contents of the metadata table.
        lock: concurrency mode and lock.
        timebased: ``hoodie.keygen.*`` options of timestamp partitions, by newest key.
        merge_properties: ``hoodie.record.merge.property.*`` without the prefix, except the delete field and marker.
        extra_metadata: entries of the commit's extra metadata, keys as given.
        explicit: newest keys of the options that were given or differ from their defaults.
    """

    # operation
    operation: str = option_field("hoodie.datasource.write.operation")
    combine_before_insert: bool = option_field("hoodie.combine.before.insert")
    combine_before_upsert: bool = option_field("hoodie.combine.before.upsert")
    combine_before_delete: bool = option_field("hoodie.combine.before.delete")
    deletes_other_files: bool = option_field("hudi_fast.delete.other.files")
    dup_policy: str = option_field("hoodie.datasource.insert.dup.policy")
    insert_drop_duplicates: bool = option_field("hoodie.datasource.write.insert.drop.duplicates")
    merge_allow_duplicate_on_inserts: bool = option_field("hoodie.merge.allow.duplicate.on.inserts")
    partitions_to_delete: tuple[str, ...] = option_field("hoodie.datasource.write.partitions.to.delete")
    overwrite_mode: str | None = option_field("hoodie.datasource.overwrite.mode")
    static_overwrite_partitions: tuple[str, ...] = option_field("hoodie.static.overwrite.partition.paths")
    allow_empty_commit: bool = option_field("hoodie.allow.empty.commit")
    bulk_insert_sort_mode: str = option_field("hoodie.bulkinsert.sort.mode")
    bulk_insert_sort_columns: tuple[str, ...] = option_field("hoodie.bulkinsert.user.defined.partitioner.sort.columns")
    bulk_insert_partitioner: str | None = option_field("hoodie.bulkinsert.user.defined.partitioner.class")
    bulk_insert_sort_suffix_record_key: bool = option_field("hoodie.bulkinsert.sort.suffix.record_key")
    bulk_insert_parallelism: int = option_field("hoodie.bulkinsert.shuffle.parallelism")
    upsert_parallelism: int = option_field("hoodie.upsert.shuffle.parallelism")
    insert_parallelism: int = option_field("hoodie.insert.shuffle.parallelism")
    delete_parallelism: int = option_field("hoodie.delete.shuffle.parallelism")
    # table
    table_name: str | None = option_field("hoodie.table.name")
    database: str | None = option_field("hoodie.database.name")
    table_type: str = option_field("hoodie.datasource.write.table.type")
    base_file_format: str = option_field("hoodie.table.base.file.format")
    has_several_formats: bool = option_field("hoodie.table.multiple.base.file.formats.enable")
    table_version: int = option_field("hoodie.write.table.version")
    skip_default_partition_validation: bool = option_field("hoodie.skip.default.partition.validation")
    populate_meta_fields: bool = option_field("hoodie.populate.meta.fields")
    drop_partition_columns: bool = option_field("hoodie.datasource.write.drop.partition.columns")
    timezone: str = option_field("hoodie.table.timeline.timezone")
    # schema
    reconcile_schema: bool = option_field("hoodie.datasource.write.reconcile.schema")
    set_null_for_missing_columns: bool = option_field("hoodie.write.set.null.for.missing.columns")
    allow_column_drop: bool = option_field("hoodie.datasource.write.schema.allow.auto.evolution.column.drop")
    schema_validate: bool = option_field("hoodie.avro.schema.validate")
    schema_on_read: bool = option_field("hoodie.schema.on.read.enable")
    # keys and partitions
    record_key_fields: tuple[str, ...] | None = option_field("hoodie.datasource.write.recordkey.field")
    partition_path_fields: tuple[str, ...] | None = option_field("hoodie.datasource.write.partitionpath.field")
    key_generator_class: str | None = option_field("hoodie.datasource.write.keygenerator.class")
    key_generator_type: str | None = option_field("hoodie.datasource.write.keygenerator.type")
    hive_style: bool = option_field("hoodie.datasource.write.hive_style_partitioning")
    url_encode: bool = option_field("hoodie.datasource.write.partitionpath.urlencode")
    slash_separated_dates: bool = option_field("hoodie.datasource.write.slash.separated.date.partitioning")
    consistent_logical_timestamp: bool = option_field(
        "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled"
    )
    complex_new_encoding: bool = option_field("hoodie.write.complex.keygen.new.encoding")
    complex_validation: bool = option_field("hoodie.write.complex.keygen.validation.enable")
    # merging
    ordering_fields: tuple[str, ...] | None = option_field("hoodie.datasource.write.precombine.field")
    merge_mode: str | None = option_field("hoodie.write.record.merge.mode")
    payload_class: str | None = option_field("hoodie.datasource.write.payload.class")
    merge_strategy_id: str | None = option_field("hoodie.write.record.merge.strategy.id")
    delete_field: str | None = option_field("hoodie.payload.delete.field")
    delete_marker: str | None = option_field("hoodie.payload.delete.marker")
    same_ordering_updates: bool = option_field("hoodie.payload.update.on.same.ordering.field")
    operation_field: bool = option_field("hoodie.allow.operation.metadata.field")
    cdc_enabled: bool = option_field("hoodie.table.cdc.enabled")
    cdc_mode: str = option_field("hoodie.table.cdc.supplemental.logging.mode")
    # file sizing
    max_file_size: int = option_field("hoodie.parquet.max.file.size")
    max_file_rows: int = option_field("hudi_fast.max.file.rows")
    small_file_limit: int = option_field("hoodie.parquet.small.file.limit")
    insert_auto_split: bool = option_field("hoodie.copyonwrite.insert.auto.split")
    insert_split_size: int = option_field("hoodie.copyonwrite.insert.split.size")
    record_size_estimate: int = option_field("hoodie.copyonwrite.record.size.estimate")
    estimation_threshold: float = option_field("hoodie.record.size.estimation.threshold")
    estimator_max_commits: int = option_field("_hoodie.record.size.estimator.max.commits")
    estimator_metadata_size: int = option_field("hoodie.record.size.estimator.average.metadata.size")
    small_file_candidates_limit: int = option_field("hoodie.merge.small.file.group.candidates.limit")
    parquet_compression_ratio: float = option_field("hoodie.parquet.compression.ratio")
    log_file_max_size: int = option_field("hoodie.logfile.max.size")
    log_block_max_size: int = option_field("hoodie.logfile.data.block.max.size")
    log_block_format: str = option_field("hoodie.logfile.data.block.format")
    hfile_codec: str = option_field("hoodie.hfile.compression.algorithm")
    write_record_positions: bool = option_field("hoodie.write.record.positions")
    # Parquet
    parquet_codec: str = option_field("hoodie.parquet.compression.codec")
    parquet_level: int | None = option_field("hudi_fast.parquet.compression.level")
    parquet_block_size: int = option_field("hoodie.parquet.block.size")
    parquet_page_size: int = option_field("hoodie.parquet.page.size")
    parquet_dictionary: bool = option_field("hoodie.parquet.dictionary.enabled")
    # ORC
    orc_codec: str = option_field("hoodie.orc.compression.codec")
    orc_stripe_size: int = option_field("hoodie.orc.stripe.size")
    orc_max_file_size: int = option_field("hoodie.orc.max.file.size")
    # Lance
    lance_max_file_size: int = option_field("hoodie.lance.max.file.size")
    # bloom filters
    bloom_enabled: bool = option_field("hoodie.parquet.bloom.filter.enabled")
    bloom_type: str = option_field("hoodie.bloom.index.filter.type")
    bloom_entries: int = option_field("hoodie.index.bloom.num_entries")
    bloom_fpp: float = option_field("hoodie.index.bloom.fpp")
    bloom_max_entries: int = option_field("hoodie.bloom.index.filter.dynamic.max.entries")
    # index
    index_type: str = option_field("hoodie.index.type")
    simple_index_update_partition: bool = option_field("hoodie.simple.index.update.partition.path")
    bloom_index_update_partition: bool = option_field("hoodie.bloom.index.update.partition.path")
    record_index_update_partition: bool = option_field("hoodie.record.index.update.partition.path")
    bloom_index_prune_by_ranges: bool = option_field("hoodie.bloom.index.prune.by.ranges")
    bloom_index_use_metadata: bool = option_field("hoodie.bloom.index.use.metadata")
    bucket_engine: str = option_field("hoodie.index.bucket.engine")
    bucket_count: int = option_field("hoodie.bucket.index.num.buckets")
    bucket_hash_fields: tuple[str, ...] | None = option_field("hoodie.bucket.index.hash.field")
    bucket_expressions: str = option_field("hoodie.bucket.index.partition.expressions")
    bucket_rule: str = option_field("hoodie.bucket.index.partition.rule.type")
    bucket_min_count: int | None = option_field("hoodie.bucket.index.min.num.buckets")
    bucket_max_count: int | None = option_field("hoodie.bucket.index.max.num.buckets")
    bucket_split_threshold: float = option_field("hoodie.bucket.index.split.threshold")
    bucket_merge_threshold: float = option_field("hoodie.bucket.index.merge.threshold")
    index_fallback_max_bytes: int = option_field("hudi_fast.index.fallback.max.bytes")
    # transaction
    failed_writes_policy: str = option_field("hoodie.clean.failed.writes.policy")
    heartbeat_interval_ms: int = option_field("hoodie.client.heartbeat.interval_in_ms")
    heartbeat_misses: int = option_field("hoodie.client.heartbeat.tolerable.misses")
    clock_skew_ms: int = option_field("hoodie.time.generator.max_expected_clock_skew_ms")
    # pending clusterings
    clustering_updates: str = option_field(_CLUSTERING_UPDATES)
    rolls_back_clustering: bool = option_field("hoodie.clustering.rollback.pending.replacecommit.on.conflict")
    clustering_expires: bool = option_field("hoodie.clustering.enable.expirations")
    clustering_expires_after_minutes: int = option_field("hoodie.clustering.expiration.threshold.mins")
    # engine
    plan: str = option_field("hudi_fast.plan")
    partial_update: bool = option_field("hudi_fast.partial.update")
    allow_rounding: bool = option_field("hudi_fast.allow.rounding")
    merge_partial_updates: bool = option_field("hoodie.spark.sql.merge.into.partial.updates")
    threads: int = option_field("hudi_fast.threads")
    syncs_files: bool = option_field("hudi_fast.fsync")
    driver_max_bytes: int = option_field("hudi_fast.driver.max.bytes")
    rows_memory: int = option_field("hoodie.memory.merge.max.size")
    spill_folder: str | None = option_field("hoodie.memory.spillable.map.path")
    merger: Any = option_field("hudi_fast.merger")  # noqa: RUF009 - a function, or None
    # option groups
    metadata: MetadataOptions = field(default_factory=MetadataOptions)
    lock: LockOptions = field(default_factory=LockOptions)
    timebased: Mapping[str, str] = field(default_factory=dict)
    merge_properties: Mapping[str, str] = field(default_factory=dict)
    extra_metadata: Mapping[str, str] = field(default_factory=dict)
    explicit: frozenset[str] = field(default=frozenset(), repr=False, compare=False)

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> WriteOptions:
        """Resolve a dictionary of options.

        Raises:
            ConfigError: a key or value is invalid, or options contradict each other.
            UnsupportedFeatureError: an option requests an unsupported feature.

        Warns:
            HudiWarning: an unknown ``hoodie.`` key.
        """
        prefix = text_of(_PREFIX_KEY, options.get(_PREFIX_KEY, "_"))
        values = resolve(options, WRITE[0], free_prefix=prefix)
        given: dict[str, Any] = given_fields(cls, values)
        return cls(
            **given,
            metadata=MetadataOptions.of(values),
            lock=LockOptions.of(values),
            timebased={option.key: values[option] for option in TIMEBASED_OPTIONS if option in values},
            merge_properties=_merge_properties(options),
            extra_metadata=_extra_metadata(options, prefix),
            explicit=frozenset(option.key for option in values),
        )

    def __post_init__(self) -> None:
        object.__setattr__(self, "explicit", self.explicit | normalise_fields(self))
        self._resolve_duplicates()
        self._resolve_index()
        self._resolve_writers()
        allows_updates(self.clustering_updates)
        _check_delete_marker(self)
        _check_partitioner(self)
        _check_level(self)
        _check_partition_types(self)

    def __repr__(self) -> str:
        return differing_repr(self)

    @property
    def partition_spec(self) -> PartitionSpec | None:
        """Partition columns and their types; None if not given."""
        if self.partition_path_fields is None:
            return None
        parts = [part.partition(":") for part in self.partition_path_fields]
        types = tuple(part[2].upper() for part in parts) if any(part[1] for part in parts) else ()
        return PartitionSpec(tuple(part[0] for part in parts), types)

    @property
    def key_generator(self) -> str | None:
        """Kind of the given key generator without ``_AVRO`` (``SIMPLE``, ``COMPLEX`` ...), or None.

        The class takes precedence over the type.
        """
        if self.key_generator_class is not None:
            return key_generator_of_class(self.key_generator_class)
        return None if self.key_generator_type is None else key_generator_of_type(self.key_generator_type)

    @property
    def allows_clustering_updates(self) -> bool:
        """Whether the write may change rows of file groups in a pending clustering."""
        if self.lock.strategy == "prefer_writer" and _CLUSTERING_UPDATES not in self.explicit:
            return True
        return allows_updates(self.clustering_updates)

    @property
    def is_global_index(self) -> bool:
        """Whether record keys are looked up in all partitions."""
        return self.index_type.startswith("GLOBAL_")

    @property
    def update_partition_path(self) -> bool:
        """Whether a global index moves a row whose partition changed."""
        if "RECORD" in self.index_type:
            return self.record_index_update_partition
        return self.bloom_index_update_partition if "BLOOM" in self.index_type else self.simple_index_update_partition

    @property
    def writes_bloom_filter(self) -> bool:
        """Whether base files get a bloom filter of their record keys."""
        return self.populate_meta_fields and (self.bloom_enabled or "BLOOM" in self.index_type)

    @property
    def compression_level(self) -> int | None:
        """Compression level; None = the codec's default, or a codec without levels."""
        return self.parquet_level if self.parquet_level is not None else _DEFAULT_LEVELS.get(self.parquet_codec)

    @property
    def combine_before_write(self) -> bool:
        """Whether this operation merges rows of the batch that share a key."""
        if self.operation == "upsert":
            return self.combine_before_upsert
        return self.combine_before_delete if self.operation == "delete" else self.combine_before_insert

    def _resolve_index(self) -> None:
        """Normalise the index type; a record index type enables its index unless the metadata options set it."""
        if self.index_type == "RECORD_INDEX":
            object.__setattr__(self, "index_type", "GLOBAL_RECORD_LEVEL_INDEX")
        switch = _RECORD_INDEX_SWITCHES.get(self.index_type)
        if switch is not None and _RECORD_INDEX_KEYS.isdisjoint(self.metadata.explicit):
            enabled: dict[str, Any] = {switch: True}
            object.__setattr__(self, "metadata", replace(self.metadata, **enabled))
        _check_buckets(self)

    def _resolve_writers(self) -> None:
        """With concurrent writers, set lazy rollback of failed writes and the clock skew between machines."""
        if self.lock.is_shared and self.failed_writes_policy == "EAGER":
            if "hoodie.clean.failed.writes.policy" in self.explicit:
                raise ConfigError(
                    f"hoodie.write.concurrency.mode={self.lock.mode} needs hoodie.clean.failed.writes.policy=LAZY: "
                    "EAGER would roll back the running writes of other writers."
                )
            object.__setattr__(self, "failed_writes_policy", "LAZY")
        if self.lock.is_distributed and "hoodie.time.generator.max_expected_clock_skew_ms" not in self.explicit:
            object.__setattr__(self, "clock_skew_ms", _SHARED_CLOCK_SKEW_MS)

    def _resolve_duplicates(self) -> None:
        if self.insert_drop_duplicates:
            if self.dup_policy == "fail":
                raise ConfigError(
                    "hoodie.datasource.write.insert.drop.duplicates=true and hoodie.datasource.insert.dup.policy=fail "
                    "contradict each other; give the policy alone."
                )
            object.__setattr__(self, "dup_policy", "drop")
        if self.dup_policy != "none" and self.operation == "upsert":
            object.__setattr__(self, "operation", "insert")
        given = "hoodie.datasource.insert.dup.policy" in self.explicit or self.dup_policy == "drop"
        if given and self.dup_policy != "fail":
            object.__setattr__(self, "merge_allow_duplicate_on_inserts", True)


def _merge_properties(options: Mapping[str, Any]) -> dict[str, str]:
    return {
        key.removeprefix(MERGE_PROPERTY_PREFIX): text_of(key, raw)
        for key, raw in options.items()
        if key.startswith(MERGE_PROPERTY_PREFIX) and find_option(key) is None
    }


def _extra_metadata(options: Mapping[str, Any], prefix: str) -> dict[str, str]:
    if not prefix:
        return {}
    return {
        key: text_of(key, raw)
        for key, raw in options.items()
        if key.startswith(prefix) and not key.startswith(("hoodie.", "_hoodie.", "hudi_fast.")) and not find_option(key)
    }


def _check_delete_marker(options: WriteOptions) -> None:
    if (options.delete_field is None) != (options.delete_marker is None):
        given, missing = "field", "marker"
        if options.delete_field is None:
            given, missing = missing, given
        raise ConfigError(f"hoodie.payload.delete.{given} needs hoodie.payload.delete.{missing}; give both or neither.")


def _check_partitioner(options: WriteOptions) -> None:
    if options.bulk_insert_partitioner is not None and not options.bulk_insert_sort_columns:
        raise ConfigError(
            f"hoodie.bulkinsert.user.defined.partitioner.class={options.bulk_insert_partitioner} sorts by columns; "
            "name them in hoodie.bulkinsert.user.defined.partitioner.sort.columns."
        )


def _check_buckets(options: WriteOptions) -> None:
    low = options.bucket_min_count or options.bucket_count
    high = options.bucket_max_count or options.bucket_count
    if options.index_type == "BUCKET" and not low <= options.bucket_count <= high:
        raise ConfigError(
            f"hoodie.bucket.index.num.buckets={options.bucket_count} is not between hoodie.bucket.index.min.num.buckets"
            f"={low} and hoodie.bucket.index.max.num.buckets={high}."
        )


def _check_level(options: WriteOptions) -> None:
    if options.parquet_level is None:
        return
    codec = options.parquet_codec
    low, high = _LEVELS.get(codec, (None, None))
    if low is None or high is None:
        raise ConfigError(f"hudi_fast.parquet.compression.level is given, but the codec {codec} has no levels.")
    if not low <= options.parquet_level <= high:
        raise ConfigError(
            f"hudi_fast.parquet.compression.level={options.parquet_level} is out of range for {codec}: {low} to {high}."
        )


def _check_partition_types(options: WriteOptions) -> None:
    spec = options.partition_spec
    if spec is None:
        return
    wrong = [kind for kind in spec.types if kind not in ("SIMPLE", "TIMESTAMP")]
    if wrong or "" in spec.fields:
        raise ConfigError(
            f"hoodie.datasource.write.partitionpath.field={','.join(options.partition_path_fields or ())!r}: expected "
            "`name` for every column, or `name:SIMPLE` / `name:TIMESTAMP` for every column."
        )
    if spec.types and options.key_generator not in (None, "CUSTOM"):
        raise ConfigError(
            f"Partition columns have types ({','.join(options.partition_path_fields or ())}), which only the CUSTOM "
            f"key generator allows, but the key generator is {options.key_generator}."
        )
