"""The options of a write as one frozen value.

::

    {"hoodie...": ...} ─► written_options ─► {Option: value} ─► WriteOptions.of: its groups ─► every step of the write

A field declares its option: key, default and range. A field that is None takes the table's setting or is inferred.
:mod:`hudi_fast.config.option_conflicts` checks the options against a table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields, replace
from typing import Any

from hudi_fast.config.concurrency_options import FailedWriteOptions, LockOptions, PendingClusteringOptions
from hudi_fast.config.engine_options import EngineOptions
from hudi_fast.config.file_options import (
    BloomOptions,
    LanceOptions,
    LogOptions,
    OrcOptions,
    ParquetOptions,
    SizingOptions,
)
from hudi_fast.config.index_options import BucketOptions, IndexOptions
from hudi_fast.config.metadata_options import MetadataOptions
from hudi_fast.config.option_fields import (
    Kind,
    Option,
    bound,
    differing_keys,
    differing_repr,
    given_fields,
    normalise_fields,
    option,
    options_of,
)
from hudi_fast.config.option_names import BULK_SORT_MODES, OPERATIONS
from hudi_fast.config.rewrite_options import allows_updates
from hudi_fast.config.table_options import TIMEBASED_OPTIONS, KeyOptions, MergeOptions, SchemaOptions, TableOptions
from hudi_fast.errors import ConfigError
from hudi_fast.values import dataclass

__all__ = ["DELETE_OTHER_FILES", "OPERATION_OPTIONS", "WriteOptions"]

_WRITE = "hoodie.datasource.write."

DELETE_OTHER_FILES = "hudi_fast.delete.other.files"
"""Option that lets an overwrite or a drop delete files that no write to the table made."""

_SHARED_CLOCK_SKEW_MS = 200
_RECORD_INDEX_SWITCHES = {
    "GLOBAL_RECORD_LEVEL_INDEX": "record_index",
    "RECORD_LEVEL_INDEX": "partitioned_record_index",
}
_RECORD_INDEX_KEYS = frozenset(
    {"hoodie.metadata.global.record.level.index.enable", "hoodie.metadata.record.level.index.enable"}
)


def _parallelism(name: str, which: str) -> Option:
    return Option(
        f"hoodie.{name}.shuffle.parallelism",
        Kind.INT,
        0,
        f"Spark tasks that write {which}; 0 = chosen by cores and size of the input.",
        unit="tasks",
        minimum=0,
    )


@dataclass(frozen=True, slots=True, repr=False)
class WriteOptions:
    """All options of a write, in groups. Sizes are bytes, times milliseconds unless the option states another unit.

    Built by :meth:`of`, or by keyword with the same checks.

    Attributes:
        metadata: contents of the metadata table.
        lock: concurrency mode and lock.
        timebased: ``hoodie.keygen.*`` options of timestamp partitions, by newest key.
        merge_properties: ``hoodie.record.merge.property.*`` without the prefix, except the delete field and marker.
        extra_metadata: entries of the commit's extra metadata, keys as given.
        explicit: newest keys of the options that were given or differ from their defaults.
    """

    operation: str = option(
        f"{_WRITE}operation",
        Kind.ENUM,
        "upsert",
        "Write operation.",
        choices=(*OPERATIONS, "bootstrap"),
        supported=OPERATIONS,
    )
    combine_before_insert: bool = option(
        "hoodie.combine.before.insert", Kind.BOOL, False, "Inserts: merge rows of the batch that share a key."
    )
    combine_before_upsert: bool = option(
        "hoodie.combine.before.upsert",
        Kind.BOOL,
        True,
        "Upserts: merge rows of the batch that share a key. They are merged with false, too: keys stay unique.",
    )
    combine_before_delete: bool = option(
        "hoodie.combine.before.delete",
        Kind.BOOL,
        True,
        "Deletes: merge rows of the batch that share a key. They are merged with false, too.",
    )
    deletes_other_files: bool = option(
        DELETE_OTHER_FILES,
        Kind.BOOL,
        False,
        "Overwriting or dropping a table deletes its folder, although it also holds files that no write to it made.",
    )
    dup_policy: str = option(
        "hoodie.datasource.insert.dup.policy",
        Kind.ENUM,
        "none",
        "Inserts of an existing key: store the row again, drop it, or fail.",
        choices=("none", "drop", "fail"),
    )
    insert_drop_duplicates: bool = option(
        f"{_WRITE}insert.drop.duplicates", Kind.BOOL, False, "Old form of `hoodie.datasource.insert.dup.policy=drop`."
    )
    merge_allow_duplicate_on_inserts: bool = option(
        "hoodie.merge.allow.duplicate.on.inserts",
        Kind.BOOL,
        True,
        "Append inserts to a small file without comparing keys. If false, an insert and the row of its key in that "
        "file become one. Enabled if the duplicate policy is none or drop.",
    )
    partitions_to_delete: tuple[str, ...] = option(
        f"{_WRITE}partitions.to.delete",
        Kind.LIST,
        (),
        "Partition paths of delete_partition; `*` matches any text.",
    )
    overwrite_mode: str | None = option(
        "hoodie.datasource.overwrite.mode",
        Kind.ENUM,
        None,
        "Partitions that SQL's INSERT OVERWRITE replaces: those that receive rows (DYNAMIC), or all that match its "
        "PARTITION clause (STATIC). Default: `spark.sql.sources.partitionOverwriteMode`, else STATIC.",
        choices=("STATIC", "DYNAMIC"),
    )
    static_overwrite_partitions: tuple[str, ...] = option(
        "hoodie.static.overwrite.partition.paths",
        Kind.LIST,
        (),
        "Partition paths that insert_overwrite replaces, instead of those that receive rows.",
    )
    allow_empty_commit: bool = option("hoodie.allow.empty.commit", Kind.BOOL, True, "Commit an empty batch.")
    bulk_insert_sort_mode: str = option(
        "hoodie.bulkinsert.sort.mode",
        Kind.ENUM,
        "NONE",
        "Distribution and order of rows in bulk_insert.",
        choices=BULK_SORT_MODES,
    )
    bulk_insert_sort_columns: tuple[str, ...] = option(
        "hoodie.bulkinsert.user.defined.partitioner.sort.columns",
        Kind.LIST,
        (),
        "Columns that bulk_insert sorts each partition by, dotted within structs, instead of the sort mode; each file, "
        "if it combines rows.",
    )
    bulk_insert_partitioner: str | None = option(
        "hoodie.bulkinsert.user.defined.partitioner.class",
        Kind.TEXT,
        None,
        "Partitioner class; only Hudi's column sorters are supported.",
        supported=(
            "org.apache.hudi.execution.bulkinsert.RDDCustomColumnsSortPartitioner",
            "org.apache.hudi.execution.bulkinsert.RowCustomColumnsSortPartitioner",
        ),
    )
    bulk_insert_sort_suffix_record_key: bool = option(
        "hoodie.bulkinsert.sort.suffix.record_key",
        Kind.BOOL,
        False,
        "Sort by the record key after the sort columns.",
    )
    bulk_insert_parallelism: int = option(
        "hoodie.bulkinsert.shuffle.parallelism",
        Kind.INT,
        0,
        "Tasks that write a bulk_insert; 0 = chosen by the size of the input.",
        unit="tasks",
        minimum=0,
    )
    upsert_parallelism: int = bound(_parallelism("upsert", "an upsert"))
    insert_parallelism: int = bound(_parallelism("insert", "an insert or overwrite"))
    delete_parallelism: int = bound(_parallelism("delete", "a delete"))
    partial_update: bool = option(
        "hudi_fast.partial.update",
        Kind.BOOL,
        False,
        "Upserts of stored rows: rows hold only the key, the ordering fields and the columns to set.",
    )
    merge_partial_updates: bool = option(
        "hoodie.spark.sql.merge.into.partial.updates", Kind.BOOL, True, "Merges log only the columns they set."
    )
    # groups
    table: TableOptions = field(default_factory=TableOptions)
    schema: SchemaOptions = field(default_factory=SchemaOptions)
    keys: KeyOptions = field(default_factory=KeyOptions)
    merging: MergeOptions = field(default_factory=MergeOptions)
    sizing: SizingOptions = field(default_factory=SizingOptions)
    log: LogOptions = field(default_factory=LogOptions)
    parquet: ParquetOptions = field(default_factory=ParquetOptions)
    orc: OrcOptions = field(default_factory=OrcOptions)
    lance: LanceOptions = field(default_factory=LanceOptions)
    bloom: BloomOptions = field(default_factory=BloomOptions)
    index: IndexOptions = field(default_factory=IndexOptions)
    bucket: BucketOptions = field(default_factory=BucketOptions)
    metadata: MetadataOptions = field(default_factory=MetadataOptions)
    lock: LockOptions = field(default_factory=LockOptions)
    failed_writes: FailedWriteOptions = field(default_factory=FailedWriteOptions)
    clusterings: PendingClusteringOptions = field(default_factory=PendingClusteringOptions)
    engine: EngineOptions = field(default_factory=EngineOptions)
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
        from hudi_fast.config.options import written_options  # it imports all classes of options

        return cls.of(written_options(options), options)

    @classmethod
    def of(cls, values: Mapping[Option, Any], options: Mapping[str, Any]) -> WriteOptions:
        """Build from resolved options.

        Args:
            values: of the given options; options of other dataclasses are ignored.
            options: as given: keys of merge properties and of extra metadata are no options.

        Raises:
            ConfigError: options contradict each other.
        """
        from hudi_fast.config.options import extra_metadata, merge_properties

        own: dict[str, Any] = given_fields(cls, values)
        groups: dict[str, Any] = {name: group.of(values) for name, group in _GROUPS.items()}
        return cls(
            **own,
            **groups,
            timebased={one.key: values[one] for one in TIMEBASED_OPTIONS if one in values},
            merge_properties=merge_properties(options),
            extra_metadata=extra_metadata(options),
            explicit=frozenset(one.key for one in values),
        )

    def __post_init__(self) -> None:
        given = [self.explicit, normalise_fields(self), *(differing_keys(getattr(self, name)) for name in _GROUPS)]
        object.__setattr__(self, "explicit", frozenset().union(*given))
        self._resolve_duplicates()
        self._resolve_index()
        self._resolve_writers()
        allows_updates(self.clusterings.updates)
        _check_partitioner(self)

    def __repr__(self) -> str:
        return differing_repr(self)

    @property
    def allows_clustering_updates(self) -> bool:
        """Whether the write may change rows of file groups in a pending clustering."""
        given = "hoodie.clustering.updates.strategy" in self.explicit
        if self.lock.strategy == "prefer_writer" and not given:
            return True
        return allows_updates(self.clusterings.updates)

    @property
    def writes_bloom_filter(self) -> bool:
        """Whether base files get a bloom filter of their record keys."""
        return self.table.populate_meta_fields and (self.bloom.enabled or "BLOOM" in self.index.type)

    @property
    def combine_before_write(self) -> bool:
        """Whether this operation merges rows of the batch that share a key."""
        if self.operation == "upsert":
            return self.combine_before_upsert
        return self.combine_before_delete if self.operation == "delete" else self.combine_before_insert

    def _resolve_index(self) -> None:
        """A record index type enables its index unless the metadata options set it."""
        switch = _RECORD_INDEX_SWITCHES.get(self.index.type)
        if switch is not None and _RECORD_INDEX_KEYS.isdisjoint(self.metadata.explicit):
            enabled: dict[str, Any] = {switch: True}
            object.__setattr__(self, "metadata", replace(self.metadata, **enabled))
        _check_buckets(self)

    def _resolve_writers(self) -> None:
        """With concurrent writers, set lazy rollback of failed writes and the clock skew between machines."""
        if self.lock.is_shared and self.failed_writes.policy == "EAGER":
            if "hoodie.clean.failed.writes.policy" in self.explicit:
                raise ConfigError(
                    f"hoodie.write.concurrency.mode={self.lock.mode} needs hoodie.clean.failed.writes.policy=LAZY: "
                    "EAGER would roll back the running writes of other writers."
                )
            object.__setattr__(self, "failed_writes", replace(self.failed_writes, policy="LAZY"))
        if self.lock.is_distributed and "hoodie.time.generator.max_expected_clock_skew_ms" not in self.explicit:
            skewed = replace(self.failed_writes, clock_skew_ms=_SHARED_CLOCK_SKEW_MS)
            object.__setattr__(self, "failed_writes", skewed)

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


_GROUPS: dict[str, Any] = {
    one.name: one.default_factory for one in fields(WriteOptions) if hasattr(one.default_factory, "of")
}
"""The classes of the groups by the names of their fields."""

OPERATION_OPTIONS = (
    *options_of(WriteOptions),
    Option(
        f"{_WRITE}commitmeta.key.prefix",
        Kind.TEXT,
        "_",
        "Options with this key prefix are stored in the extra metadata of the commit; empty = none.",
    ),
)
"""Options of the operation."""


def _check_partitioner(options: WriteOptions) -> None:
    if options.bulk_insert_partitioner is not None and not options.bulk_insert_sort_columns:
        raise ConfigError(
            f"hoodie.bulkinsert.user.defined.partitioner.class={options.bulk_insert_partitioner} sorts by columns; "
            "name them in hoodie.bulkinsert.user.defined.partitioner.sort.columns."
        )


def _check_buckets(options: WriteOptions) -> None:
    bucket = options.bucket
    low, high = bucket.min_count or bucket.count, bucket.max_count or bucket.count
    if options.index.type == "BUCKET" and not low <= bucket.count <= high:
        raise ConfigError(
            f"hoodie.bucket.index.num.buckets={bucket.count} is not between hoodie.bucket.index.min.num.buckets"
            f"={low} and hoodie.bucket.index.max.num.buckets={high}."
        )
