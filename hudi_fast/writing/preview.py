"""The plan of a write before it happens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from hudi_fast.reading.inspecting.results import ShownResult
from hudi_fast.writing.write_plan import Incoming

__all__ = ["WritePreview", "rows_by_partition"]


@dataclass(frozen=True, slots=True)
class WritePreview(ShownResult):
    """How a write would be executed.

    Attributes:
        operation: the operation that would run.
        plan: physical plan, as in :class:`WriteResult`; ``none`` if the save mode leaves the table unchanged.
        reason: why that plan would be chosen.
        partitions: number of incoming rows by partition path; None if the plan does not depend on it.
        input_bytes: approximate size of all rows in memory, in Arrow's format; None if unknown.
        tasks: tasks of the shuffle; None for a plan without one.
    """

    operation: str
    plan: str
    reason: str
    partitions: Mapping[str, int] | None = None
    input_bytes: int | None = None
    tasks: int | None = None


def rows_by_partition(incoming: Incoming) -> dict[str, int]:
    """Number of rows of each partition path, in the order of the paths."""
    names = incoming.partitions.dictionary.to_pylist()
    counts = np.bincount(np.asarray(incoming.partitions.indices), minlength=len(names)).tolist()
    return {name: count for name, count in sorted(zip(names, counts, strict=True)) if count}
