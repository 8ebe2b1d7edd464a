"""Options of a write beside failed writes, other writers' clocks and pending clusterings."""

from __future__ import annotations

from dataclasses import dataclass

from hudi_fast.config.clustering_options import ClusteringOptions
from hudi_fast.config.option_descriptor import BOTH, Kind
from hudi_fast.config.option_fields import OptionValues, option, options_of, same_option

__all__ = ["FAILED_WRITE_OPTIONS", "PENDING_CLUSTERING_OPTIONS", "FailedWriteOptions", "PendingClusteringOptions"]


@dataclass(frozen=True, slots=True, repr=False)
class FailedWriteOptions(OptionValues):
    """Failed writes, heartbeats and the clock. Times are milliseconds."""

    policy: str = option(
        "hoodie.clean.failed.writes.policy",
        Kind.ENUM,
        "EAGER",
        "When failed writes are rolled back: at the start of the next write, by cleaning, or never.",
        aliases=("hoodie.cleaner.policy.failed.writes",),
        choices=("EAGER", "LAZY", "NEVER"),
    )
    heartbeat_interval_ms: int = option(
        "hoodie.client.heartbeat.interval_in_ms",
        Kind.INT,
        60_000,
        "Interval between two heartbeats of a running write or service.",
        unit="ms",
        minimum=1000,
    )
    heartbeat_misses: int = option(
        "hoodie.client.heartbeat.tolerable.misses",
        Kind.INT,
        2,
        "Missed heartbeats before a pending write or service counts as abandoned.",
        unit="heartbeats",
        minimum=1,
    )
    clock_skew_ms: int = option(
        "hoodie.time.generator.max_expected_clock_skew_ms",
        Kind.INT,
        1,
        "Wait after generating an instant time. The default is 200, as in Apache Hudi, with a lock provider that "
        "several machines share.",
        unit="ms",
        minimum=0,
        families=BOTH,
    )


@dataclass(frozen=True, slots=True, repr=False)
class PendingClusteringOptions(OptionValues):
    """What a write does about pending clusterings."""

    updates: str = same_option(ClusteringOptions, "updates_class")
    rolls_back: bool = option(
        "hoodie.clustering.rollback.pending.replacecommit.on.conflict",
        Kind.BOOL,
        False,
        "With `SparkAllowUpdateStrategy`: such a write first rolls back the pending clustering.",
    )
    expire: bool = option(
        "hoodie.clustering.enable.expirations",
        Kind.BOOL,
        False,
        "Roll back expired pending clusterings that no process executes.",
    )
    expire_after_minutes: int = option(
        "hoodie.clustering.expiration.threshold.mins",
        Kind.INT,
        60,
        "Age at which a pending clustering expires.",
        unit="minutes",
        minimum=0,
    )


FAILED_WRITE_OPTIONS = options_of(FailedWriteOptions)
"""Options of failed writes, heartbeats and the clock."""

PENDING_CLUSTERING_OPTIONS = options_of(PendingClusteringOptions)
"""Options of a write that meets pending clusterings, without those of clustering itself."""
