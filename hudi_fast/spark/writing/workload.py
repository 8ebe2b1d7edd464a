"""Choose the number of tasks of a write, and the buckets of a routed one.

The buckets of a routed write: one for each file group, existing or new, and the task of each.

::

    slices of the table       buckets 0 to n - 1
    new files of the profile  the following ones: full files, partition after partition; then the last file of each
                              partition, the largest first
    other partitions          the last ones: one for each task, selected by the partition path

New files go to the tasks in turn, so each task has as many full files as any other.
"""

from __future__ import annotations

import zlib
from collections.abc import Container, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hudi_fast.spark.arrow import parallelism, running_parallelism
from hudi_fast.values import dataclass
from hudi_fast.view.slices import FileSlice, latest_slices
from hudi_fast.writing.profile import InsertFiles
from hudi_fast.writing.write_plan import WritePlan

__all__ = [
    "LEAST_BYTES",
    "PARTITIONS_TASK_BYTES",
    "TASKS_PER_CORE",
    "Buckets",
    "InsertPlace",
    "insert_places",
    "stored_sizes",
    "task_count",
]

TASKS_PER_CORE = 2
TASK_BYTES = 128 << 20
"""Arrow bytes of incoming rows for one task; a task with less costs more to start than to execute."""

PARTITIONS_TASK_BYTES = 256 << 20
"""Arrow bytes of rows that a task for whole partitions may have; a part of them may be in a local file."""

LEAST_BYTES = 32 << 20
"""Fewest bytes of a task, Arrow bytes of rows and bytes of stored files, that justify starting an executor for it."""


def task_count(spark: Any, total_bytes: int, requested: int = 0, stored_bytes: int = 0) -> int:
    """The number of tasks of a shuffle.

    Args:
        spark: the session.
        total_bytes: Arrow size of the rows; 0 if unknown.
        requested: the number that the options set; 0 to choose one that keeps all cores busy and tasks small. Cores
            of executors that are not there yet count if their tasks are not too small.
        stored_bytes: of the stored files that the tasks may read and rewrite.
    """
    if requested:
        return requested
    if not total_bytes:
        return parallelism(spark) * TASKS_PER_CORE
    later = min(parallelism(spark) * TASKS_PER_CORE, (total_bytes + stored_bytes) // LEAST_BYTES)
    return max(running_parallelism(spark) * TASKS_PER_CORE, later, -(-total_bytes // TASK_BYTES))


def stored_sizes(plan: WritePlan, partitions: Container[str] | None) -> dict[str, int]:
    """Bytes of the newest file slices by partition path.

    Args:
        plan: the write.
        partitions: partition paths; other partitions are left out. None for the whole table.
    """
    names = [name for name in plan.view.lister.partitions() if partitions is None or name in partitions]
    return {name: sum(one.weight for one in latest_slices(plan.view, name)) for name in names}


_SLOTS_PER_FILE = 64
"""Small files take inserts in proportion to their free space, to the precision of this many slots per file."""

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class InsertPlace:
    """The buckets of a partition that take its inserts, by a hash of the key from 0 to 1.

    Attributes:
        filled: smaller hashes select one of ``slots``, others one of the new files.
        slots: buckets of small files, each repeated in proportion to its share of their inserts.
        first: the first bucket of the full new files.
        files: number of new files, with the last one.
        last: the bucket of the last new file, which takes the remaining rows.
        full: the share of a full new file in the rows of all new files.
    """

    filled: float
    slots: tuple[int, ...]
    first: int
    files: int
    last: int
    full: float = 1.0

    @property
    def slot_scale(self) -> float:
        """Slots per unit of hash."""
        return len(self.slots) / self.filled if self.slots else 0.0

    @property
    def new_scale(self) -> float:
        """Full new files per unit of hash."""
        return 1 / (self.full * (1 - self.filled)) if self.files else 0.0

    def buckets(self, hashes: npt.NDArray[np.float64]) -> Ints:
        """The bucket of each hash, int64[n]."""
        number = ((hashes - self.filled) * self.new_scale).astype(np.int64)
        new = np.where(number < self.files - 1, self.first + number, self.last)
        if not self.slots:
            return new
        slot = np.minimum((hashes * self.slot_scale).astype(np.int64), len(self.slots) - 1)
        return np.where(hashes < self.filled, np.array(self.slots, dtype=np.int64)[slot], new)


@dataclass(frozen=True, slots=True)
class Buckets:
    """All buckets of a write.

    Attributes:
        slices: existing file groups; a slice's bucket is its position.
        owners: the task of each slice.
        tasks: number of tasks. The task of another bucket is its number modulo this one.
        places: by partition path, where inserts go.
        uncounted: the first bucket of partitions without a place.
    """

    slices: Sequence[FileSlice]
    owners: Sequence[int]
    tasks: int
    places: Mapping[str, InsertPlace]
    uncounted: int

    def of_inserts(self, partition: str | None, hashes: npt.NDArray[np.float64]) -> Ints:
        """The bucket of inserted rows of one partition, int64[n]; None for rows without a valid path."""
        place = None if partition is None else self.places.get(partition)
        if place is not None:
            return place.buckets(hashes)
        number = self.uncounted + zlib.crc32((partition or "").encode()) % self.tasks
        return np.full(len(hashes), number, dtype=np.int64)

    def tasks_of(self, buckets: Ints) -> Ints:
        """The task of each bucket, int64[n]; 0 for the negative bucket of rows that could not be looked up."""
        stored = (buckets >= 0) & (buckets < len(self.slices))
        owners = np.array([*self.owners, 0], dtype=np.int64)[np.where(stored, buckets, -1)]
        return np.where(stored, owners, np.maximum(buckets, 0) % self.tasks)


def insert_places(files: Mapping[str, InsertFiles], slices: int) -> dict[str, InsertPlace]:
    """The places of inserts by partition path.

    Args:
        files: for inserts, by partition path.
        slices: number of existing file groups; new ones follow.
    """
    partial = sorted((name for name, one in files.items() if one.new), key=lambda name: -files[name].new[-1])
    first_partial = slices + sum(one.new_files for one in files.values()) - len(partial)
    last = {name: first_partial + number for number, name in enumerate(partial)}
    places, first = {}, slices
    for name, one in files.items():
        full = one.new[0] / one.rows if one.new else 1.0
        places[name] = InsertPlace(one.filled_share, _slots(one), first, one.new_files, last.get(name, first), full)
        first += max(0, one.new_files - 1)
    return places


def _slots(files: InsertFiles) -> tuple[int, ...]:
    """The small file of each slot; a file whose share is less than half a slot may have none."""
    if len(files.filled) < 2:
        return tuple(number for number, _ in files.filled)
    ends = np.cumsum([count for _, count in files.filled])
    slots = len(files.filled) * _SLOTS_PER_FILE
    chosen = np.searchsorted(ends, (np.arange(slots) + 0.5) * ends[-1] / slots, side="right")
    return tuple(files.filled[at][0] for at in chosen.tolist())
