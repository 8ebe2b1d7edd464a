"""The options of clustering as one frozen value.

Data flow: ``{"hoodie...": ...}`` -> :meth:`ClusteringOptions.from_options` -> planning, execution, and writers that
conflict with a pending clustering. Java class names are interpreted by their last part, where they are used.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hudi_fast.config.option_fields import normalise_fields, option_field
from hudi_fast.config.option_values import OptionValues
from hudi_fast.errors import ConfigError, UnsupportedFeatureError

__all__ = ["ClusteringOptions", "allows_updates"]

_PLAN = "hoodie.clustering.plan.strategy."
_LAYOUT = "hoodie.layout.optimize."
_UPDATES = "hoodie.clustering.updates.strategy"
_SORTS = ("SIZE", "INSTANT_TIME")
_ALLOWS = {
    "SparkRejectUpdateStrategy": False,
    "SparkAllowUpdateStrategy": True,
    "SparkConsistentBucketDuplicateUpdateStrategy": False,  # Apache Hudi writes twice; hudi_fast refuses the write
}


@dataclass(frozen=True, slots=True, repr=False)
class ClusteringOptions(OptionValues):
    """When file groups are clustered, which, and how. Sizes are bytes.

    Attributes:
        explicit: newest keys of the options that were given or differ from their defaults.
    """

    inline: bool = option_field("hoodie.clustering.inline")
    schedule_inline: bool = option_field("hoodie.clustering.schedule.inline")
    asynchronous: bool = option_field("hoodie.clustering.async.enabled")
    inline_max_commits: int = option_field("hoodie.clustering.inline.max.commits")
    async_max_commits: int = option_field("hoodie.clustering.async.max.commits")
    plan_class: str = option_field(f"{_PLAN}class")
    partition_filter: str = option_field("hoodie.clustering.plan.partition.filter.mode")
    lookback_partitions: int = option_field(f"{_PLAN}daybased.lookback.partitions")
    skip_partitions: int = option_field(f"{_PLAN}daybased.skipfromlatest.partitions")
    begin_partition: str = option_field(f"{_PLAN}cluster.begin.partition")
    end_partition: str = option_field(f"{_PLAN}cluster.end.partition")
    partitions: tuple[str, ...] = option_field(f"{_PLAN}partition.selected")
    partition_regex: str = option_field(f"{_PLAN}partition.regex.pattern")
    earliest_commit: str = option_field(f"{_PLAN}earliest.commit.to.cluster")
    small_file_limit: int = option_field(f"{_PLAN}small.file.limit")
    max_group_bytes: int = option_field(f"{_PLAN}max.bytes.per.group")
    max_groups: int = option_field(f"{_PLAN}max.num.groups")
    single_groups: bool = option_field(f"{_PLAN}single.group.clustering.enabled")
    slice_order: tuple[str, ...] = option_field(f"{_PLAN}file.slices.sort.by")
    execution_class: str = option_field("hoodie.clustering.execution.strategy.class")
    target_bytes: int = option_field(f"{_PLAN}target.file.max.bytes")
    sort_columns: tuple[str, ...] = option_field(f"{_PLAN}sort.columns")
    copy_evolved: bool = option_field(f"{_PLAN}binary.copy.schema.evolution.enable")
    curve: str = option_field(f"{_LAYOUT}strategy")
    curve_build: str = option_field(f"{_LAYOUT}curve.build.method")
    curve_sample_rows: int = option_field(f"{_LAYOUT}build.curve.sample.size")
    updates_class: str = option_field(_UPDATES)
    incremental: bool = option_field("hoodie.table.services.incremental.enabled")
    explicit: frozenset[str] = field(default=frozenset(), repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "explicit", self.explicit | normalise_fields(self))
        if self.inline and self.schedule_inline:
            raise ConfigError(
                "Either of inline clustering (hoodie.clustering.inline) or schedule inline clustering "
                "(hoodie.clustering.schedule.inline) can be enabled, not both."
            )
        order = tuple(one.upper() for one in self.slice_order)
        if not order or not set(order) <= set(_SORTS):
            raise ConfigError(
                f"{_PLAN}file.slices.sort.by={','.join(self.slice_order)!r} is not valid; valid entries: "
                f"{', '.join(_SORTS)}."
            )
        object.__setattr__(self, "slice_order", order)
        allows_updates(self.updates_class)

    @property
    def allows_updates(self) -> bool:
        """Whether a write may change rows of file groups in a pending clustering."""
        return allows_updates(self.updates_class)

    @property
    def max_commits(self) -> int:
        """Commits between two clusterings in the enabled modes; 0 if none is enabled."""
        gates = [self.inline_max_commits] if self.inline else []
        gates += [self.async_max_commits] if self.asynchronous or self.schedule_inline else []
        return max(gates, default=0)


def allows_updates(class_name: str) -> bool:
    """Whether a write with this update strategy may change rows of file groups in a pending clustering.

    Args:
        class_name: ``hoodie.clustering.updates.strategy``, with or without package.

    Raises:
        UnsupportedFeatureError: an unknown or unsupported strategy.
    """
    allows = _ALLOWS.get(class_name.rpartition(".")[2])
    if allows is None:
        raise UnsupportedFeatureError(
            f"{_UPDATES}={class_name} is not supported; supported: {', '.join(_ALLOWS)}. Use one of these, or Apache "
            "Hudi."
        )
    return allows
