"""ORC tables: Apache Hudi and hudi_fast write them in turns and read the same rows; HFile tables of Hudi are read.

Hudi 1.2.0 reads base files of ORC with ``spark.sql.orc.enableVectorizedReader=false`` alone. It cannot write nullable
dates and decimals of fewer than ten digits, search keys by bloom filters, and compact. When it rewrites a file,
timestamps lose their microseconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.formats.orc.read import open_orc_file
from hudi_fast.storage.base import Storage
from tests.interop.all_types import all_types
from tests.interop.format_turns import assert_valid_at_the_end, log_and_compact, take_turns
from tests.interop.mor_sides import MorSides
from tests.interop.sides import Sides, after_upsert, data_columns, trip_options, trips
from tests.peer.client import PeerError, RealHudi
from tests.support.rows import assert_same_rows

FORMAT = "hoodie.table.base.file.format"
BY_INDEX = "hoodie.index.type"


@pytest.fixture(autouse=True)
def row_by_row(peers: list[RealHudi]) -> Iterator[None]:
    """What a test sets in the session of a peer would change the answers to others."""
    yield
    for peer in peers:
        peer.sql("RESET")


def sides_of(hudi: RealHudi, path: Path, kind: str = "COPY_ON_WRITE", **more: Any) -> MorSides:
    hudi.sql("set spark.sql.orc.enableVectorizedReader=false")
    given = trip_options(6 if hudi.version.startswith("0.") else 9, **more)
    table = {FORMAT: "ORC", "hoodie.datasource.write.table.type": kind, "hoodie.compact.inline": "false"}
    return MorSides(hudi, path, {**given, **table})


def some(numbers: range, ts: int = 1, note: str = "first") -> pa.Table:
    """Rows that Hudi keeps as they are: without dates, and with timestamps in milliseconds."""
    rows = trips(numbers, ts, note=note).drop_columns(["day"])
    started = rows["started"].cast(pa.timestamp("ms", "UTC"), safe=False).cast(pa.timestamp("us", "UTC"))
    return rows.set_column(rows.column_names.index("started"), "started", started)


@pytest.mark.parametrize("kind", [pytest.param("COPY_ON_WRITE", marks=pytest.mark.long), "MERGE_ON_READ"])
def test_both_write_an_orc_table_in_turns(kind: str, hudi_12: RealHudi, tmp_path: Path) -> None:
    sides = sides_of(hudi_12, tmp_path / "t", kind)
    rows = take_turns(sides, some)
    if kind == "MERGE_ON_READ":
        with pytest.raises(PeerError, match="Not support write to Orc file"):
            sides.hudi_compacts()
        sides.table.services.run_pending()  # of Hudi's plan
        sides.agree_on_base_files()
        sides.agree(rows)
        log_and_compact(sides, rows, some)
    assert_valid_at_the_end(sides)


@pytest.mark.smoke
def test_hudi_reads_every_type_that_we_write(hudi_12: RealHudi, tmp_path: Path) -> None:
    sides = sides_of(hudi_12, tmp_path / "t", hoodie__datasource__write__partitionpath__field="part")
    sides.plainly = True
    rows = all_types(range(20)).drop_columns(["at", "deep"])  # before 1970, with fractions of seconds
    sides.we_write(rows, "bulk_insert")
    sides.agree(rows)
    new = all_types(range(10, 25), ts=2).drop_columns(["at", "deep"])
    sides.we_write(new)
    sides.agree(after_upsert(rows, new))


def test_a_table_of_hudi_0_15_goes_on_with_us(hudi_015: RealHudi, tmp_path: Path) -> None:
    sides = sides_of(hudi_015, tmp_path / "t")
    rows = trips(range(40))
    sides.hudi_writes(rows, "insert")
    sides.agree(rows)
    new = trips(range(30, 50), ts=5, note="by us")
    rows = after_upsert(rows, new)
    sides.we_write(new, more={BY_INDEX: "BLOOM"})
    sides.agree(rows)


def test_hudi_1_2_needs_an_option_to_read_and_rounds_timestamps_of_rows_that_it_keeps(
    hudi_12: RealHudi, tmp_path: Path
) -> None:
    sides = sides_of(hudi_12, tmp_path / "t")
    rows = trips(range(4), cities=1).drop_columns(["day"])
    sides.we_write(rows)
    hudi_12.sql("RESET")
    with pytest.raises(PeerError, match="OrcAtomicColumnVector cannot be cast"):
        hudi_12.read(sides.path)
    hudi_12.sql("set spark.sql.orc.enableVectorizedReader=false")
    sides.agree(rows)
    sides.hudi_writes(trips([0], ts=2, cities=1).drop_columns(["day"]))
    assert [one.microsecond for one in sides.agree().sort_by("id")["started"].to_pylist()] == [0, 0, 0, 0]


@pytest.mark.parametrize("peer", ["hudi_12", pytest.param("hudi_015", marks=pytest.mark.long)])
def test_the_first_insert_into_an_hfile_table_is_read(
    peer: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    hudi = request.getfixturevalue(peer)
    version = 6 if hudi.version.startswith("0.") else 9
    sides = Sides(hudi, tmp_path / "t", {**trip_options(version), FORMAT: "HFILE"}, plainly=True)
    rows = trips(range(20))
    sides.hudi_writes(rows, "insert")
    assert_same_rows(data_columns(sides.table.to_arrow()), rows, key=["id"])
    assert sides.table.to_arrow(filter="id = 'trip-00007'").num_rows == 1
    with pytest.raises(hf.UnsupportedFeatureError, match="base files in HFILE"):
        hf.write(rows, sides.path, trip_options(version))
    with pytest.raises(PeerError):
        sides.hudi_writes(rows)


def test_files_in_the_encoding_before_hive_0_12_are_read(hudi_12: RealHudi, tmp_path: Path) -> None:
    """Such files may be bootstrapped; their integers are in runs of version 1."""
    values = """
        SELECT id AS n, concat('text ', id) AS t, CASE WHEN id % 3 > 0 THEN concat('kind ', id % 7) END AS few,
          CAST(id / 8 AS DECIMAL(20, 4)) AS amount, timestamp_micros(1600000000000000 + id * 1000003) AS at,
          array(concat('a', id), NULL) AS list, map('k', id, concat('l', id), NULL) AS map
        FROM range(5000)"""
    hudi_12.sql(
        f"CREATE TABLE before USING orc OPTIONS ('orc.write.format' '0.11') LOCATION '{tmp_path}/b' AS {values}"
    )
    hudi_12.sql("DROP TABLE before")
    found = []
    for path in sorted((tmp_path / "b").glob("*.orc")):
        with open_orc_file(Storage(tmp_path / "b"), path.name) as reader:
            found.append(reader.read(reader.schema.names))
            assert {one.version for one in reader._footers[0].encodings} == {1}
    assert_same_rows(pa.concat_tables(found), hudi_12.sql(values), ignore=(), key=["n"])
