"""The axes of :mod:`benchmarks.scale.growth`: sizes, the table of each size, and the steps that are measured on it.

Only one attribute of the table changes along an axis. Its steps are those whose cost can depend on it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.scale.growth_data import LOOKED_UP, Shape

__all__ = ["AXES", "COW", "STEPS", "Axis", "Step"]

COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A step.

    Attributes:
        title: its name in tables.
        operation: of :class:`benchmarks.against_hudi.side.Work`.
        table_type: of the table.
        writes: the input that it writes, ``base`` or ``update``; empty for none.
        index: ``hoodie.index.type`` of the table, or ``default``.
    """

    title: str
    operation: str
    table_type: str = COW
    writes: str = ""
    index: str = "default"


STEPS = {
    "load": Step(title="load (insert)", operation="insert", writes="base"),
    "upsert": Step(title="upsert", operation="upsert", writes="update"),
    "snapshot": Step(title="snapshot", operation="read"),
    "lookup": Step(title=f"lookup of {LOOKED_UP} keys, record index", operation="lookup", index="RECORD_INDEX"),
    "mor_upsert": Step(title="upsert, merge on read", operation="upsert", table_type=MOR, writes="update"),
    "mor_snapshot": Step(title="snapshot, merge on read", operation="read", table_type=MOR),
    "compact": Step(title="compaction", operation="compact", table_type=MOR),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """An axis.

    Attributes:
        title: what grows.
        about: what stays equal, one sentence.
        sizes: the sizes, in order.
        shape: the table of a size.
        steps: names of :data:`STEPS`.
        hudi: the largest size at which Apache Hudi ends each step within about a minute; 0 for none.
    """

    title: str
    about: str
    sizes: tuple[int, ...]
    shape: Callable[[int], Shape]
    steps: tuple[str, ...]
    hudi: int

    def measured(self, step: str, size: int) -> bool:
        """Whether there is anything to do for the step at a size."""
        return step != "compact" or self.shape(size).logs > 0


def _rows(size: int) -> Shape:
    return Shape(rows=size, update_rows=size // 100)


def _columns(size: int) -> Shape:
    return Shape(rows=200_000, columns=size, update_rows=2_000)


def _key_length(size: int) -> Shape:
    return Shape(rows=1_000_000, key_length=size, update_rows=10_000)


def _groups(size: int) -> Shape:
    return Shape(rows=1_000_000, groups=size, partitions=1, update_rows=10_000)


def _partitions(size: int) -> Shape:
    return Shape(rows=1_000_000, groups=1_000, partitions=size, update_rows=10_000)


def _logs(size: int) -> Shape:
    return Shape(rows=1_000_000, update_rows=10_000, updates=size + 1, logs=size)


def _equal_logs(size: int) -> Shape:
    return Shape(rows=1_000_000, update_rows=100_000 // size, updates=size, logs=size)


def _instants(size: int) -> Shape:
    return Shape(rows=1_000, update_rows=100, groups=10, instants=size)


AXES = {
    "rows": Axis(
        title="rows",
        about="12 columns, 36-byte keys, 10 partitions, 20 file groups; an upsert changes 1 % of the rows, which a "
        "merge-on-read table has in its logs.",
        sizes=(200_000, 600_000, 2_000_000, 6_000_000, 20_000_000),
        shape=_rows,
        steps=("load", "upsert", "snapshot", "lookup", "mor_upsert", "mor_snapshot", "compact"),
        hudi=2_000_000,
    ),
    "columns": Axis(
        title="columns",
        about="200 000 rows, 20 file groups; an upsert of 1 %, which a merge-on-read table has in its logs.",
        sizes=(3, 10, 30, 100, 300),
        shape=_columns,
        steps=("load", "upsert", "snapshot", "mor_upsert", "mor_snapshot", "compact"),
        hudi=100,
    ),
    "keys": Axis(
        title="bytes of a key",
        about="1 million rows of 12 columns, 20 file groups; an upsert of 1 %, which a merge-on-read table has in its "
        "logs.",
        sizes=(8, 36, 100, 200),
        shape=_key_length,
        steps=("load", "upsert", "snapshot", "lookup", "mor_upsert", "compact"),
        hudi=200,
    ),
    "groups": Axis(
        title="file groups",
        about="1 million rows in one partition; an upsert of 1 % of the rows touches every file group.",
        sizes=(1, 10, 100, 1_000, 2_000),
        shape=_groups,
        steps=("load", "upsert", "snapshot", "lookup", "mor_upsert", "mor_snapshot", "compact"),
        hudi=100,
    ),
    "partitions": Axis(
        title="partitions",
        about="1 million rows in 1 000 file groups, all of which an upsert of 1 % of the rows touches.",
        sizes=(1, 10, 100, 1_000),
        shape=_partitions,
        steps=("load", "upsert", "snapshot", "lookup", "mor_upsert", "mor_snapshot"),
        hudi=0,
    ),
    "logs": Axis(
        title="log files of a file slice",
        about="1 million rows in 20 file groups; each log file has another 1 % of the rows, as after so many upserts "
        "without a compaction. The upsert writes one more.",
        sizes=(0, 1, 5, 10, 20, 50),
        shape=_logs,
        steps=("mor_upsert", "mor_snapshot", "compact"),
        hudi=20,
    ),
    "equal_logs": Axis(
        title="log files of a file slice, the same rows in all",
        about="1 million rows in 20 file groups; the log files of a slice have 10 % of its rows together.",
        sizes=(1, 5, 10, 20, 50),
        shape=_equal_logs,
        steps=("mor_snapshot", "compact"),
        hudi=20,
    ),
    "instants": Axis(
        title="instants on the active timeline",
        about="1 000 rows in 10 partitions; an upsert of 100. Archiving is off: by default it keeps 20 to 30 instants "
        "on the active timeline, however old the table is.",
        sizes=(10, 100, 1_000, 10_000),
        shape=_instants,
        steps=("upsert", "snapshot"),
        hudi=1_000,
    ),
}
