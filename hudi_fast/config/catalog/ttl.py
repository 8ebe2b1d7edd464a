"""Options of the partition TTL service: which partitions expire, and when they are deleted.

Source: ``HoodieTTLConfig`` (1.2.0).
"""

from __future__ import annotations

from hudi_fast.config.option_descriptor import Kind, Option

__all__ = ["TTL_OPTIONS"]

_TTL = "hoodie.partition.ttl."
_STRATEGIES = "org.apache.hudi.table.action.ttl.strategy."

TTL_OPTIONS = (
    Option(f"{_TTL}inline", Kind.BOOL, False, "Delete expired partitions after a write."),
    Option(
        f"{_TTL}strategy.days.retain",
        Kind.INT,
        -1,
        "A partition expires when its time is more than this many days ago; 0 or less = never.",
        unit="days",
    ),
    Option(
        f"{_TTL}management.strategy.type",
        Kind.ENUM,
        "KEEP_BY_TIME",
        "Time of a partition: the start of its newest file slice (KEEP_BY_TIME), or its creation.",
        choices=("KEEP_BY_TIME", "KEEP_BY_CREATION_TIME"),
    ),
    Option(
        f"{_TTL}strategy.class",
        Kind.TEXT,
        None,
        "Strategy class, instead of the type; user-defined classes are not supported.",
        supported=(f"{_STRATEGIES}KeepByTimeStrategy", f"{_STRATEGIES}KeepByCreationTimeStrategy"),
    ),
    Option(
        f"{_TTL}strategy.partition.selected",
        Kind.LIST,
        (),
        "Partition paths that may expire; empty = all.",
    ),
    Option(
        f"{_TTL}strategy.max.delete.partitions",
        Kind.INT,
        1000,
        "Maximum number of partitions to delete at a time, the oldest first.",
        unit="partitions",
        minimum=0,
    ),
)
"""Options of partition TTL."""
