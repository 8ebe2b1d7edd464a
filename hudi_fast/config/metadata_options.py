"""The options of the metadata table as one frozen value: the partitions that a writer adds, and their sizes.

Data flow: ``{"hoodie.metadata...": ...}`` -> :attr:`hudi_fast.config.write_options.WriteOptions.metadata` -> the
writing half of :mod:`hudi_fast.metadata_table`. The table's properties list the existing partitions; they are kept
unless an option drops them.
"""

from __future__ import annotations

from dataclasses import field

from hudi_fast.config.option_fields import (
    BOTH,
    Kind,
    OptionValues,
    normalise_fields,
    option,
    options_of,
)
from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import ConfigError
from hudi_fast.values import dataclass

__all__ = ["FIRST_WITH_METADATA", "METADATA_OPTIONS", "MetadataOptions"]


FIRST_WITH_METADATA = 6
"""First table version whose metadata tables are written: records of earlier ones have other columns."""

_M = "hoodie.metadata."


@dataclass(frozen=True, slots=True, repr=False)
class MetadataOptions(OptionValues):
    """Partitions of the metadata table and their sizes. Sizes are bytes.

    Attributes:
        record_index: a record index whose keys are unique in the table.
        partitioned_record_index: a record index whose keys are unique in their partition; excludes ``record_index``.
        column_list: columns with statistics, without meta columns; empty = the first ``max_columns`` supported ones.
        index_name: name of the secondary or expression index to build; None = derived from its column.
        explicit: newest keys of the options that were given or differ from their defaults.
    """

    enabled: bool = option(
        f"{_M}enable",
        Kind.BOOL,
        True,
        "Reads: list files with the metadata table if the table has one. Writes: maintain a metadata table; false = "
        "delete it.",
        families=BOTH,
    )
    column_stats: bool = option(
        f"{_M}index.column.stats.enable",
        Kind.BOOL,
        True,
        "Index the value ranges and null counts of columns, per file.",
    )
    partition_stats: bool = option(
        f"{_M}index.partition.stats.enable",
        Kind.BOOL,
        True,
        "Index the value ranges and null counts of columns, per partition; for partitioned tables of version 8 and "
        "later with column stats.",
    )
    bloom_filters: bool = option(
        f"{_M}index.bloom.filter.enable",
        Kind.BOOL,
        False,
        "Index the bloom filters of base files.",
    )
    record_index: bool = option(
        f"{_M}global.record.level.index.enable",
        Kind.BOOL,
        False,
        "Index the file group of each record key; keys are unique in the table. Enabled by the index type "
        "GLOBAL_RECORD_LEVEL_INDEX.",
        aliases=(f"{_M}record.index.enable",),
    )
    partitioned_record_index: bool = option(
        f"{_M}record.level.index.enable",
        Kind.BOOL,
        False,
        "Index the file group of each record key; keys are unique in their partition. Enabled by the index type "
        "RECORD_LEVEL_INDEX.",
    )
    secondary_indexes: bool = option(
        f"{_M}index.secondary.enable",
        Kind.BOOL,
        True,
        "Maintain the defined secondary indexes; false = drop them.",
    )
    expression_indexes: bool = option(
        f"{_M}index.expression.enable",
        Kind.BOOL,
        True,
        "Maintain the defined expression indexes; false = drop them.",
    )
    column_list: tuple[str, ...] = option(
        f"{_M}index.column.stats.column.list",
        Kind.LIST,
        (),
        "Columns with stats, in addition to the record key and other meta columns; default: the first columns.",
    )
    max_columns: int = option(
        f"{_M}index.column.stats.max.columns.to.index",
        Kind.INT,
        32,
        "Number of columns with stats if no list is given.",
        unit="columns",
        minimum=0,
    )
    index_name: str | None = option(
        "hoodie.index.name", Kind.TEXT, None, "Name of the secondary or expression index to build."
    )
    secondary_column: str | None = option(
        f"{_M}index.secondary.column", Kind.TEXT, None, "Build a secondary index on this column."
    )
    expression_column: str | None = option(
        f"{_M}index.expression.column", Kind.TEXT, None, "Build an expression index on this column."
    )
    expression_settings: str = option(
        f"{_M}index.expression.options",
        Kind.TEXT,
        "",
        "Expression of the expression index, for example `expr=from_unixtime,format=yyyy-MM-dd`.",
    )
    expression_type: str = option(
        "hoodie.expression.index.type",
        Kind.TEXT,
        "column_stats",
        "Contents of the expression index.",
        choices=("column_stats", "bloom_filters"),
    )
    expression_function: str | None = option(
        "hoodie.expression.index.function",
        Kind.TEXT,
        None,
        "Function of the expression index, unless its options contain `expr`.",
    )
    drop_indexes: tuple[str, ...] = option(
        f"{_M}index.drop", Kind.LIST, (), "Indexes to drop, by their metadata table partition."
    )
    column_stats_groups: int = option(
        f"{_M}index.column.stats.file.group.count", Kind.INT, 2, "File groups of column stats.", minimum=1
    )
    partition_stats_groups: int = option(
        f"{_M}index.partition.stats.file.group.count", Kind.INT, 1, "File groups of partition stats.", minimum=1
    )
    bloom_groups: int = option(
        f"{_M}index.bloom.filter.file.group.count", Kind.INT, 4, "File groups of bloom filters.", minimum=1
    )
    expression_groups: int = option(
        f"{_M}index.expression.file.group.count", Kind.INT, 2, "File groups of an expression index.", minimum=1
    )
    record_index_min_groups: int = option(
        f"{_M}global.record.level.index.min.filegroup.count",
        Kind.INT,
        10,
        "Minimum file groups of a new record index or secondary index.",
        aliases=(f"{_M}record.index.min.filegroup.count",),
        minimum=1,
    )
    record_index_max_groups: int = option(
        f"{_M}global.record.level.index.max.filegroup.count",
        Kind.INT,
        10_000,
        "Maximum file groups of a new record index or secondary index.",
        aliases=(f"{_M}record.index.max.filegroup.count",),
        minimum=1,
        maximum=10_000,
    )
    partitioned_index_min_groups: int = option(
        f"{_M}record.level.index.min.filegroup.count",
        Kind.INT,
        1,
        "Minimum file groups per partition of a new record index with keys unique in their partition.",
        aliases=(f"{_M}partitioned.record.index.min.filegroup.count",),
        minimum=1,
    )
    partitioned_index_max_groups: int = option(
        f"{_M}record.level.index.max.filegroup.count",
        Kind.INT,
        10,
        "Maximum file groups per partition of a new record index with keys unique in their partition.",
        aliases=(f"{_M}partitioned.record.index.max.filegroup.count",),
        minimum=1,
        maximum=10_000,
    )
    record_index_group_bytes: int = option(
        f"{_M}record.index.max.filegroup.size",
        Kind.INT,
        1 << 30,
        "Planned maximum size of a file group of a record index; determines their number.",
        unit="bytes",
        minimum=48,
    )
    record_index_growth: float = option(
        f"{_M}record.index.growth.factor",
        Kind.FLOAT,
        2.0,
        "Growth that a record index is sized for, as a multiple of its current records.",
        minimum=0,
        exclusive=True,
    )
    compact_after: int = option(
        f"{_M}compact.max.delta.commits",
        Kind.INT,
        10,
        "Compact the metadata table after this many of its commits.",
        unit="commits",
        minimum=1,
    )
    compacts_without_lock: bool = option(
        "hudi_fast.metadata.compact.without.lock",
        Kind.BOOL,
        False,
        "With several writers and table version 8 or later: compact the metadata table after the table's lock has been "
        "released, so that other commits need not wait. Only for tables that Apache Hudi does not write.",
    )
    explicit: frozenset[str] = field(default=frozenset(), repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "explicit", self.explicit | normalise_fields(self))
        if self.record_index and self.partitioned_record_index:
            raise ConfigError(
                "A table has one record index: keys are unique in the table "
                f"({_M}global.record.level.index.enable) or in their partition ({_M}record.level.index.enable), not "
                "both; give one of them."
            )
        for low, high, name in (
            (self.record_index_min_groups, self.record_index_max_groups, "global.record.level.index"),
            (self.partitioned_index_min_groups, self.partitioned_index_max_groups, "record.level.index"),
        ):
            if low > high:
                raise ConfigError(
                    f"{_M}{name}.min.filegroup.count={low} is above {_M}{name}.max.filegroup.count={high}."
                )
        if self.secondary_column is not None and self.expression_column is not None:
            raise ConfigError(
                f"{_M}index.secondary.column and {_M}index.expression.column share hoodie.index.name; build one index "
                "at a time."
            )
        _ = self.expression_options

    @property
    def has_record_index(self) -> bool:
        """Whether a record index of either kind is requested."""
        return self.enabled and (self.record_index or self.partitioned_record_index)

    @property
    def expression_options(self) -> dict[str, str]:
        """Options of the expression index to build, by name.

        Raises:
            ConfigError: an entry is not of the form ``name=value``.
        """
        parts = [part.partition("=") for part in self.expression_settings.split(",") if part.strip()]
        if any(not equals or not name.strip() for name, equals, _ in parts):
            raise ConfigError(
                f"{_M}index.expression.options={self.expression_settings!r}: expected name=value, separated by commas."
            )
        found = {name.strip(): value.strip().strip("'") for name, _, value in parts}
        return found if self.expression_function is None else {"expr": self.expression_function, **found}

    def wanted_partitions(self, config: TableConfig) -> tuple[str, ...]:
        """The requested metadata-table partitions, sorted, without secondary and expression indexes.

        Empty if the metadata table is disabled, or the table is older than :data:`FIRST_WITH_METADATA`. Existing
        partitions that are not requested may be kept.
        """
        if not self.enabled or config.version < FIRST_WITH_METADATA:
            return ()
        stats = self.column_stats
        wanted = {
            "files": True,
            "column_stats": stats,
            "partition_stats": stats and self.partition_stats and config.is_partitioned and config.version >= 8,
            "bloom_filters": self.bloom_filters and config.populate_meta_fields,
            "record_index": self.has_record_index,
        }
        return tuple(sorted(name for name, is_wanted in wanted.items() if is_wanted))


METADATA_OPTIONS = options_of(MetadataOptions)
"""Options of the metadata table and its indexes."""
