"""The options of the metadata table as one frozen value: the partitions that a writer adds, and their sizes.

Data flow: ``{"hoodie.metadata...": ...}`` -> :attr:`hudi_fast.config.write_options.WriteOptions.metadata` -> the
writing half of :mod:`hudi_fast.metadata_table`. The table's properties list the existing partitions; they are kept
unless an option drops them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hudi_fast.config.option_fields import normalise_fields, option_field
from hudi_fast.config.option_values import OptionValues
from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import ConfigError

__all__ = ["FIRST_WITH_METADATA", "MetadataOptions"]

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

    enabled: bool = option_field(f"{_M}enable")
    column_stats: bool = option_field(f"{_M}index.column.stats.enable")
    partition_stats: bool = option_field(f"{_M}index.partition.stats.enable")
    bloom_filters: bool = option_field(f"{_M}index.bloom.filter.enable")
    record_index: bool = option_field(f"{_M}global.record.level.index.enable")
    partitioned_record_index: bool = option_field(f"{_M}record.level.index.enable")
    secondary_indexes: bool = option_field(f"{_M}index.secondary.enable")
    expression_indexes: bool = option_field(f"{_M}index.expression.enable")
    column_list: tuple[str, ...] = option_field(f"{_M}index.column.stats.column.list")
    max_columns: int = option_field(f"{_M}index.column.stats.max.columns.to.index")
    index_name: str | None = option_field("hoodie.index.name")
    secondary_column: str | None = option_field(f"{_M}index.secondary.column")
    expression_column: str | None = option_field(f"{_M}index.expression.column")
    expression_settings: str = option_field(f"{_M}index.expression.options")
    expression_type: str = option_field("hoodie.expression.index.type")
    expression_function: str | None = option_field("hoodie.expression.index.function")
    drop_indexes: tuple[str, ...] = option_field(f"{_M}index.drop")
    column_stats_groups: int = option_field(f"{_M}index.column.stats.file.group.count")
    partition_stats_groups: int = option_field(f"{_M}index.partition.stats.file.group.count")
    bloom_groups: int = option_field(f"{_M}index.bloom.filter.file.group.count")
    expression_groups: int = option_field(f"{_M}index.expression.file.group.count")
    record_index_min_groups: int = option_field(f"{_M}global.record.level.index.min.filegroup.count")
    record_index_max_groups: int = option_field(f"{_M}global.record.level.index.max.filegroup.count")
    partitioned_index_min_groups: int = option_field(f"{_M}record.level.index.min.filegroup.count")
    partitioned_index_max_groups: int = option_field(f"{_M}record.level.index.max.filegroup.count")
    record_index_group_bytes: int = option_field(f"{_M}record.index.max.filegroup.size")
    record_index_growth: float = option_field(f"{_M}record.index.growth.factor")
    compact_after: int = option_field(f"{_M}compact.max.delta.commits")
    compacts_without_lock: bool = option_field("hudi_fast.metadata.compact.without.lock")
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
