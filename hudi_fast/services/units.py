"""The units of a plan (slices to merge, groups to rewrite): what they weigh, and doing them in threads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from hudi_fast.timeline.commit_metadata import WriteStat
from hudi_fast.writing.plan import TaskToken

__all__ = ["bytes_read", "largest_first"]


def bytes_read(metrics: Mapping[str, float]) -> float:
    """About how many bytes a unit reads, by what its plan says of it (``CompactionStrategy``, Hudi 1.2.0)."""
    return metrics.get("TOTAL_IO_READ_MB", 0.0) * (1 << 20) + metrics.get("TOTAL_LOG_FILES_SIZE", 0.0)


def largest_first(
    weights: Sequence[float], threads: int, carry_out: Callable[[int, TaskToken], list[WriteStat]]
) -> list[WriteStat]:
    """Do all units in the threads of this process, the largest first.

    Args:
        weights: of each unit.
        threads: how many at once.
        carry_out: does the unit of that number.
    """
    order = sorted(range(len(weights)), key=weights.__getitem__, reverse=True)
    with ThreadPoolExecutor(threads, thread_name_prefix="hudi_fast") as pool:
        written = pool.map(lambda number: carry_out(number, TaskToken(number)), order)
        return [stat for stats in written for stat in stats]
