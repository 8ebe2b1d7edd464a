"""Lance tables: Apache Hudi and hudi_fast write them in turns and read the same rows.

Hudi 1.2.0 needs Lance's connector of Spark and Arrow 15 before Spark's own jars, and writes Lance files with
``DefaultSparkRecordMerger`` alone. It cannot search keys by bloom filters, and its process ends at a column of maps.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.interop.all_types import all_types
from tests.interop.mor_sides import MorSides
from tests.interop.sides import after_delete, after_upsert, trip_options, trips
from tests.locking.jvm_lock import CACHE
from tests.peer.client import PeerError, RealHudi
from tests.servers.maven_jars import LANCE, MavenError, maven_jars
from tests.support.rows import assert_same_rows

pytestmark = pytest.mark.peer

FORMAT = "hoodie.table.base.file.format"
BY_INDEX = "hoodie.index.type"
MAPS = ["counts", "places", "series"]
MERGER = {"hoodie.write.record.merge.custom.implementation.classes": "org.apache.hudi.DefaultSparkRecordMerger"}


@pytest.fixture(scope="module")
def hudi() -> Iterator[RealHudi]:
    """Apache Hudi 1.2.0 with Lance's connector."""
    try:
        jars = maven_jars(CACHE, LANCE)
    except MavenError as error:
        pytest.skip(f"Lance's jars cannot be had: {error}")
    with RealHudi("1.2.0", settings={"spark.driver.extraClassPath": ":".join(map(str, jars))}) as peer:
        yield peer


class LanceSides(MorSides):
    """One Lance table; Hudi writes it with Spark's rows."""

    def hudi_writes(self, rows: pa.Table, operation: str = "upsert", more: Any = None) -> None:
        super().hudi_writes(rows, operation, {**MERGER, **(more or {})})


def sides_of(hudi: RealHudi, path: Path, kind: str = "COPY_ON_WRITE", **more: Any) -> LanceSides:
    table = {FORMAT: "LANCE", "hoodie.datasource.write.table.type": kind, "hoodie.compact.inline": "false"}
    return LanceSides(hudi, path, {**trip_options(9, **more), **table})


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_both_write_a_lance_table_in_turns(kind: str, hudi: RealHudi, tmp_path: Path) -> None:
    sides = sides_of(hudi, tmp_path / "t", kind)
    rows = trips(range(60))
    sides.hudi_writes(rows, "insert")
    sides.agree(rows)
    new = trips(range(30, 75), 5, note="by us")
    rows = after_upsert(rows, new)
    sides.we_write(new, more={BY_INDEX: "BLOOM"})
    sides.agree(rows)
    new = trips(range(20, 80), 6, note="by Hudi")
    rows = after_upsert(rows, new)
    sides.hudi_writes(new)
    sides.agree(rows)
    gone = trips(range(25, 35))
    rows = after_delete(rows, gone)
    sides.table.delete(gone.select(["id", "city"]), {"hoodie.compact.inline": "false"})
    sides.agree(rows)
    if kind == "MERGE_ON_READ":
        new = trips(range(5), 9, note="logged")
        rows = after_upsert(rows, new)
        sides.we_write(new)
        sides.we_compact()
        assert_same_rows(sides.agree(rows), sides.agree_on_base_files(), ignore=())
    assert sides.table.services.validate().ok
    found = sides.table.to_arrow(["note"], filter="id = 'trip-00022'")
    assert found["note"].to_pylist() == ["by Hudi 22 ü€😀"]


def test_both_read_every_type_of_the_other(hudi: RealHudi, tmp_path: Path) -> None:
    sides = sides_of(hudi, tmp_path / "t", hoodie__datasource__write__partitionpath__field="part")
    sides.plainly = True
    rows = all_types(range(20)).drop_columns(MAPS)
    sides.we_write(rows, "bulk_insert")
    sides.agree(rows)
    kept = rows.drop_columns(["deep"])
    other = sides_of(hudi, tmp_path / "o", hoodie__datasource__write__partitionpath__field="part")
    other.plainly = True
    other.hudi_writes(kept, "insert")
    other.agree(kept)
    new = all_types(range(10, 25), ts=2).drop_columns([*MAPS, "deep"])
    other.we_write(new)
    other.agree(after_upsert(kept, new))


def test_hudi_1_2_cannot_search_keys_by_bloom_filters(hudi: RealHudi, tmp_path: Path) -> None:
    sides = sides_of(hudi, tmp_path / "t")
    sides.plainly = True
    sides.we_write(trips(range(4)))
    with pytest.raises(PeerError, match="Error checking candidate keys against file"):
        sides.hudi_writes(trips(range(4), ts=2), more={BY_INDEX: "BLOOM"})
