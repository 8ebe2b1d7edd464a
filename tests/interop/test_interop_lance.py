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
from tests.interop.format_turns import assert_valid_at_the_end, log_and_compact, take_turns
from tests.interop.mor_sides import MorSides
from tests.interop.sides import after_upsert, trip_options, trips
from tests.peer.client import PeerError, RealHudi
from tests.servers.maven_jars import LANCE, MavenError, maven_jars
from tests.support.jvm import FETCHED

pytestmark = pytest.mark.peer

FORMAT = "hoodie.table.base.file.format"
BY_INDEX = "hoodie.index.type"
MAPS = ["counts", "places", "series"]
MERGER = {"hoodie.write.record.merge.custom.implementation.classes": "org.apache.hudi.DefaultSparkRecordMerger"}


@pytest.fixture(scope="module")
def hudi() -> Iterator[RealHudi]:
    """Apache Hudi 1.2.0 with Lance's connector."""
    try:
        jars = maven_jars(FETCHED, LANCE)
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


@pytest.mark.long("COPY_ON_WRITE")
@pytest.mark.parametrize("kind", [pytest.param("COPY_ON_WRITE", marks=pytest.mark.long), "MERGE_ON_READ"])
def test_both_write_a_lance_table_in_turns(kind: str, hudi: RealHudi, tmp_path: Path) -> None:
    sides = sides_of(hudi, tmp_path / "t", kind)
    rows = take_turns(sides, trips)
    if kind == "MERGE_ON_READ":
        log_and_compact(sides, rows, trips)
    assert_valid_at_the_end(sides)


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
