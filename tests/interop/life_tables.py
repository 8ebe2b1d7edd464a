"""The tables that live a whole life: their options, their rows, and how rows are compared with what they should be."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tests.interop.mor_sides import mor_options
from tests.interop.sides import trip_options, trips
from tests.support.small_tables import rows_of as rows_in_order

__all__ = ["CITY", "NARROW", "RETAINED", "Case", "assert_rows", "can_go_back", "made", "rows_of"]

RETAINED = 3
NARROW = {
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.clean.commits.retained": str(RETAINED),
    "hoodie.cleaner.commits.retained": str(RETAINED),
    "hoodie.keep.min.commits": "4",
    "hoodie.keep.max.commits": "5",
    "hoodie.commits.archival.batch": "1",
    "hoodie.timeline.compaction.batch.size": "3",
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.compact.max.delta.commits": "6",
    "hoodie.log.compaction.blocks.threshold": "2",
    "hoodie.bloom.index.filter.type": "SIMPLE",
    "hoodie.index.bloom.num_entries": "100",
}
RECORD_INDEX = {
    "hoodie.metadata.global.record.level.index.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.global.record.level.index.min.filegroup.count": "2",
    "hoodie.metadata.record.index.min.filegroup.count": "2",
}
COLUMNS = trips([]).column_names
CITY = COLUMNS.index("city") - 1


@dataclass(frozen=True)
class Case:
    """Who the other side is, and the kind of table."""

    peer: str
    version: int
    mor: bool
    indexed: bool = False

    def __str__(self) -> str:
        return f"{self.peer}-v{self.version}-{'mor' if self.mor else 'cow'}{'-rli' if self.indexed else ''}"

    def options(self) -> dict[str, Any]:
        """What a writer of either side needs."""
        made = mor_options(self.version) if self.mor else trip_options(self.version)
        return {**made, **NARROW, **(RECORD_INDEX if self.indexed else {})}


def made(numbers: Iterable[int], clock: int, note: str) -> pa.Table:
    """Rows whose ``fare`` is never null: Hudi takes the least value of a column of nulls only for 0.0."""
    rows = trips(sorted(numbers), ts=clock, note=note)
    return rows.set_column(COLUMNS.index("fare"), "fare", pc.fill_null(rows["fare"], 0.5))


def rows_of(table: pa.Table) -> dict[str, tuple[Any, ...]]:
    """Key to the other data values; release 0.15 reads the partition column last."""
    return rows_in_order(table.select(COLUMNS))


def assert_rows(found: pa.Table, expected: dict[str, tuple[Any, ...]], whose: str) -> None:
    got = rows_of(found)
    missing, more = sorted(expected.keys() - got.keys()), sorted(got.keys() - expected.keys())
    other = sorted(key for key in got.keys() & expected.keys() if got[key] != expected[key])
    assert not missing, f"{whose} lack {missing}, have more {more}, differ in {other}"
    assert not more, f"{whose} have more: {more}, differ in {other}"
    assert not other, f"{whose} differ: {[(key, got[key], expected[key]) for key in other[:3]]}"


def can_go_back(path: Path, instant: str, restore: bool = False) -> bool:
    """Hudi does not roll back what its metadata table has compacted, nor restores to before its base files.

    Release 0.15 notices after it has rolled the files back, and leaves the rollback pending.
    """
    bases = [file.stem.rpartition("_")[2] for file in path.glob(".hoodie/metadata/files/*.hfile")]
    return any(time <= instant for time in bases) if restore else all(time < instant for time in bases)
