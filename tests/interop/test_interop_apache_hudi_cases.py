"""Cases where a release of Apache Hudi loses, doubles or hides rows, or fails, and hudi_fast does not.

Each test runs one case of ``docs/apache-hudi-cases.md``: a script by Hudi on a table of its own, the same script by
hudi_fast on another one, and what both then read. Cases that an older test proves are not repeated here; the page names
that test.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import math
import shutil
import zipfile
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudi_fast as hf
from hudi_fast.reading.incremental.cdc import change_options
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.transition import revert_to_inflight
from hudi_fast.view.table_state import load_state
from tests.interop.mor_sides import MorSides, mor_options
from tests.interop.sides import trip_options, trips
from tests.interop.test_interop_bootstrap import peer_options
from tests.peer.client import PeerError, RealHudi
from tests.support.bootstrap_tables import bootstrap_options, changed, data, make_source
from tests.support.old_tables import write_days_ago

pytestmark = pytest.mark.long

DATA = Path(__file__).parents[1] / "formats/data"
QUERY = "hoodie.datasource.query.type"
BEGIN = "hoodie.datasource.read.begin.instanttime"
GONE = "hoodie.datasource.write.partitions.to.delete"
ORC = {"hoodie.table.base.file.format": "ORC"}
LISTED = {"hoodie.metadata.enable": False, "hoodie.enable.data.skipping": False}
SKIPPING = {"hoodie.metadata.enable": True, "hoodie.enable.data.skipping": True}
QUIET = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
STATISTICS = {"hoodie.metadata.index.column.stats.enable": True}
AS_VERSION_6 = {"hoodie.write.auto.upgrade": False, "hoodie.write.table.version": 6}
CDC = {
    **QUIET,
    "hoodie.table.cdc.enabled": True,
    "hoodie.table.cdc.supplemental.logging.mode": "DATA_BEFORE_AFTER",
    "hoodie.metadata.enable": False,
}
RANGES = {
    "hoodie.index.type": "BUCKET",
    "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
    "hoodie.bucket.index.num.buckets": 4,
    "hoodie.bucket.index.min.num.buckets": 2,
    "hoodie.bucket.index.max.num.buckets": 8,
}
LOCK = {
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider",
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
}
"""What Hudi wants set before it builds an index of its own accord."""


@pytest.fixture(autouse=True)
def settings_end_with_a_test(peers: list[RealHudi]) -> Iterator[None]:
    """What a test sets in the session of a peer would change the answers to others."""
    yield
    for peer in peers:
        peer.sql("RESET")


class Twins(NamedTuple):
    """Two tables with the same options: Hudi alone writes to one of them, hudi_fast alone to the other."""

    theirs: MorSides
    ours: MorSides

    def write(self, rows: pa.Table, operation: str = "upsert", more: Mapping[str, Any] | None = None) -> None:
        """The same write by each side to its own table."""
        self.theirs.hudi_writes(rows, operation, more)
        self.ours.we_write(rows, operation, more)


def twins(hudi: RealHudi, folder: Path, options: Mapping[str, Any], plainly: bool = True) -> Twins:
    return Twins(*(MorSides(hudi, folder / name, options, plainly=plainly) for name in ("theirs", "ours")))


def key(number: int) -> str:
    return str(trips([number])["id"][0])


def times(table: pa.Table) -> dict[int, int]:
    """Number of each row to its ordering value; a key must not stand twice."""
    numbers = [int(text.removeprefix("trip-")) for text in table["id"].to_pylist()]
    assert len(numbers) == len(set(numbers)), numbers
    return dict(sorted(zip(numbers, table["ts"].to_pylist(), strict=True)))


def hudi_reads(sides: MorSides, where: str | None = None, **more: Any) -> pa.Table:
    return sides.hudi.read(sides.path, more or None, where=where)


def set_in(hudi: RealHudi, settings: Mapping[str, Any]) -> None:
    for name, value in settings.items():
        hudi.sql(f"SET {name}={str(value).lower() if isinstance(value, bool) else value}")


def make_inflight(sides: MorSides) -> str:
    """Take the newest completed instant's last file away, as if its writer had died just before."""
    state = load_state(Storage(sides.path))
    newest = state.timeline.writes()[-1]
    revert_to_inflight(state.storage, state.config, newest)
    return newest.requested


# ---- rows that are lost or hidden


def test_an_upsert_into_logs_with_the_operation_column_is_committed_without_its_rows(
    hudi_12: RealHudi, tmp_path: Path
) -> None:
    both = twins(hudi_12, tmp_path, {**mor_options(9), "hoodie.allow.operation.metadata.field": True})
    both.write(trips(range(4)))
    both.write(trips([1, 2], ts=5))
    assert both.theirs.operations() == both.ours.operations() == ["UPSERT", "UPSERT"]
    assert times(hudi_reads(both.theirs)) == {0: 1, 1: 1, 2: 1, 3: 1}
    assert times(both.ours.table.to_arrow()) == {0: 1, 1: 5, 2: 5, 3: 1}


def test_rows_written_to_a_deleted_partition_of_consistent_hashing_are_hidden(
    hudi_12: RealHudi, tmp_path: Path
) -> None:
    both = twins(hudi_12, tmp_path, {**mor_options(9), **RANGES})
    both.write(trips(range(6)))
    both.write(trips([]), "delete_partition", {GONE: "city0"})
    both.write(trips([0, 3], ts=2))
    assert times(hudi_reads(both.theirs)) == {1: 1, 2: 1, 4: 1, 5: 1}
    assert times(both.ours.table.to_arrow()) == {0: 2, 1: 1, 2: 1, 3: 2, 4: 1, 5: 1}


def test_a_bloom_filter_index_of_dates_answers_no_row(hudi_12: RealHudi, tmp_path: Path) -> None:
    both = twins(hudi_12, tmp_path, trip_options(9), plainly=False)
    both.write(trips(range(6)))
    set_in(hudi_12, LOCK)
    hudi_12.sql(
        f"CREATE INDEX next_day ON {both.theirs.in_catalog()} USING bloom_filters(day) "
        "OPTIONS(expr='date_add', days='1', numentries='1000')"
    )
    where = "date_add(day, 1) = date'1965-01-05'"
    assert hudi_12.read(both.theirs.path, LISTED, where=where).num_rows == 1
    assert hudi_12.read(both.theirs.path, SKIPPING, where=where).num_rows == 0
    found = both.theirs.table.to_arrow(["id"], filter=pc.field("day") == dt.date(1965, 1, 4))
    assert found["id"].to_pylist() == [key(3)]
    filters = {"hoodie.expression.index.type": "bloom_filters"}
    with pytest.raises(hf.UnsupportedFeatureError, match="loses rows"):
        both.ours.table.services.index("expr_index", ["day"], "next_day", "date_add", {"days": "1"}, options=filters)


def test_rows_with_nan_are_skipped_by_statistics(hudi_12: RealHudi, tmp_path: Path) -> None:
    both = twins(hudi_12, tmp_path, {**trip_options(9), **STATISTICS}, plainly=False)
    rows = trips([1, 2, 3])
    fares = pa.array([math.nan, 2.5, 3.5])
    both.write(rows.set_column(rows.column_names.index("fare"), "fare", fares))
    where = "fare > 5"  # Spark orders NaN above all numbers
    assert hudi_12.read(both.theirs.path, LISTED, where=where).num_rows == 1
    assert hudi_12.read(both.theirs.path, {**SKIPPING, **STATISTICS}, where=where).num_rows == 0
    assert hudi_12.read(both.ours.path, {**SKIPPING, **STATISTICS}, where=where).num_rows == 1
    for sides in both:
        assert sides.table.to_arrow(filter=where).num_rows == 1


def test_conditions_lose_rows_of_bootstrapped_files(hudi_12: RealHudi, tmp_path: Path) -> None:
    rows = data(make_source(tmp_path / "source", "hive"))
    options = bootstrap_options(hoodie__metadata__index__column__stats__enable=False)
    by_hudi = {
        "hoodie.datasource.write.operation": "bootstrap",
        "hoodie.bootstrap.base.path": str(tmp_path / "source"),
        "hoodie.datasource.write.partitionpath.field": "city",
        "hoodie.datasource.write.hive_style_partitioning": True,
    }
    hudi_12.write(rows.slice(0, 0), tmp_path / "theirs", {**options, **by_hudi}, mode="overwrite")
    hf.bootstrap(tmp_path / "source", tmp_path / "ours", options)
    theirs, ours = (hf.HudiTable.open(tmp_path / name) for name in ("theirs", "ours"))
    where = "id >= 'k0050'"
    assert hudi_12.read(theirs.path, where=where).num_rows == 103
    hudi_12.write(changed(rows.slice(0, 2), 500, "new"), theirs.path, peer_options(theirs, hudi_12))
    ours.upsert(changed(rows.slice(0, 2), 500, "new"), STATISTICS)
    assert hudi_12.read(theirs.path, where=where).num_rows == 0
    assert hudi_12.read(theirs.path, LISTED, where=where).num_rows == 103
    assert hudi_12.read(ours.path, where=where).num_rows == 103
    assert theirs.to_arrow(["id"], filter=where).num_rows == ours.to_arrow(["id"], filter=where).num_rows == 103


def test_like_leaves_out_partitions_with_matching_rows(hudi_12: RealHudi, tmp_path: Path) -> None:
    both = twins(hudi_12, tmp_path, {**trip_options(9), **STATISTICS}, plainly=False)
    both.write(trips(range(12)))
    where = "note like 'first 1%'"
    wanted = [key(1), key(10), key(11)]
    assert sorted(hudi_reads(both.theirs, where, **LISTED)["id"].to_pylist()) == wanted
    assert hudi_12.read(both.theirs.path, {**SKIPPING, **STATISTICS}, where=where).num_rows == 0
    found = both.theirs.table.to_arrow(["id"], filter=pc.starts_with(pc.field("note"), "first 1"))
    assert sorted(found["id"].to_pylist()) == wanted


def test_a_column_with_the_name_of_a_dropped_one_is_filtered_by_old_statistics(
    hudi_12: RealHudi, tmp_path: Path
) -> None:
    both = twins(hudi_12, tmp_path, {**trip_options(9), **STATISTICS}, plainly=False)
    both.write(trips(range(1, 6)))
    evolving = {
        "hoodie.schema.on.read.enable": True,
        "hoodie.datasource.write.schema.allow.auto.evolution.column.drop": True,
    }
    set_in(hudi_12, evolving)
    name = both.theirs.in_catalog()
    hudi_12.sql(f"ALTER TABLE {name} DROP COLUMN fare")
    hudi_12.sql(f"ALTER TABLE {name} ADD COLUMNS (fare double)")
    both.ours.table.alter(hf.DropColumn("fare"))
    both.ours.table.alter(hf.AddColumn("fare", pa.float64()))
    assert hudi_12.read(both.theirs.path, {**evolving, **LISTED}, where="fare is null").num_rows == 5
    assert hudi_12.read(both.theirs.path, {**evolving, **SKIPPING, **STATISTICS}, where="fare is null").num_rows == 0
    for sides in both:
        assert sides.table.to_arrow(filter=pc.field("fare").is_null()).num_rows == 5


def test_a_metadata_table_that_lacks_a_commit_hides_its_rows(hudi_12: RealHudi, tmp_path: Path) -> None:
    both = twins(hudi_12, tmp_path, trip_options(9), plainly=False)
    for sides, write in ((both.theirs, both.theirs.hudi_writes), (both.ours, both.ours.we_write)):
        write(trips(range(6)))
        metadata, kept = sides.path / ".hoodie/metadata", sides.path.parent / f"{sides.path.name} before"
        shutil.copytree(metadata, kept)
        write(trips(range(6, 9)), "bulk_insert")
        shutil.rmtree(metadata)
        kept.rename(metadata)
    assert sorted(times(hudi_reads(both.theirs, **SKIPPING))) == [0, 1, 2, 3, 4, 5]
    both.theirs.hudi_writes(trips([0], ts=2))
    assert sorted(times(hudi_reads(both.theirs, **SKIPPING))) == [0, 1, 2, 3, 4, 5]
    with pytest.warns(hf.HudiWarning, match="metadata table"):
        assert sorted(times(both.ours.table.to_arrow())) == list(range(9))


@pytest.mark.parametrize(("days", "kept", "left"), [(30, 40, ["city0", "city1"]), (50, 1, [])])
def test_partition_ttl_counts_days_in_32_bits(
    days: int, kept: int, left: list[str], hudi_12: RealHudi, tmp_path: Path
) -> None:
    both = twins(hudi_12, tmp_path, trip_options(9))
    for sides in both:
        write_days_ago(trips([0, 1]), sides.path, sides.options, kept)
    with contextlib.suppress(PeerError):  # nothing has expired, says Hudi
        hudi_12.sql(f"CALL run_ttl(table => '{both.theirs.in_catalog()}', retain_days => {days})")
    assert sorted(hudi_reads(both.theirs)["city"].to_pylist()) == left
    both.ours.table.services.expire_partitions({"hoodie.partition.ttl.strategy.days.retain": days})
    assert sorted(both.ours.table.to_arrow()["city"].to_pylist()) == ([] if left else ["city0", "city1"])


def test_an_incremental_query_from_the_earliest_time_misses_rows(hudi_12: RealHudi, tmp_path: Path) -> None:
    both = twins(hudi_12, tmp_path, trip_options(9))
    both.write(trips(range(3)))
    both.write(trips(range(3, 6), ts=2))
    found = hudi_reads(both.theirs, **{QUERY: "incremental", BEGIN: "earliest"})
    assert times(found) == {}
    for sides in both:
        assert sorted(times(sides.table.incremental("earliest"))) == [0, 1, 2, 3, 4, 5]


def test_an_update_after_a_late_row_returns_values_of_the_late_row(hudi_12: RealHudi, tmp_path: Path) -> None:
    both = twins(hudi_12, tmp_path, mor_options(9))
    both.write(trips([1], ts=5))
    both.write(trips([1], ts=2, note="late"))
    set_in(hudi_12, {"hoodie.metadata.enable": False, "hoodie.compact.inline": False})
    update = "WHEN MATCHED THEN UPDATE SET ts = s.ts, seats = s.seats"
    change = pa.table(
        {"id": [key(1)], "city": ["city1"], "ts": pa.array([6], pa.int64()), "seats": pa.array([9], pa.int32())}
    )
    name = both.theirs.in_catalog()
    hudi_12.sql(f"MERGE INTO {name} t USING changes s ON t.id = s.id {update}", rows={"changes": change})
    changed = both.ours.table.merge(change).on(["id"])
    changed.when_matched_update({"ts": "source.ts", "seats": "source.seats"}).execute()
    for found, note in ((hudi_reads(both.theirs), "late 1 ü€😀"), (both.ours.table.to_arrow(), "first 1 ü€😀")):
        assert found.select(["ts", "seats", "note"]).to_pylist() == [{"ts": 6, "seats": 9, "note": note}]


def test_truncate_table_deletes_the_history(hudi_12: RealHudi, tmp_path: Path) -> None:
    both = twins(hudi_12, tmp_path, trip_options(9))
    both.write(trips(range(3)))
    first = [load_state(Storage(sides.path)).timeline.writes()[0].requested for sides in both]
    hudi_12.sql(f"TRUNCATE TABLE {both.theirs.in_catalog()}")
    both.ours.table.truncate()
    assert both.theirs.operations() == []
    assert both.ours.table.to_arrow().num_rows == 0
    assert sorted(times(both.ours.table.to_arrow(as_of=first[1]))) == [0, 1, 2]


# ---- rows that stand twice


def test_an_update_of_a_key_that_stands_twice_changes_one_row(hudi_12: RealHudi, tmp_path: Path) -> None:
    both = twins(hudi_12, tmp_path, trip_options(9))
    both.write(trips([1]), "insert")
    both.write(trips([1]), "insert")
    hudi_12.sql(f"UPDATE {both.theirs.in_catalog()} SET seats = 9, ts = 2")
    assert sorted(hudi_reads(both.theirs)["seats"].to_pylist()) == [1, 9]
    with pytest.raises(hf.HudiError, match=r"twice|several|more than once"):
        both.ours.table.update(pc.field("id") == key(1), {"seats": pa.scalar(9, pa.int32()), "ts": pa.scalar(2)})


# ---- queries that fail


def test_a_change_query_fails_where_an_insert_filled_a_small_file(hudi_12: RealHudi, tmp_path: Path) -> None:
    both = twins(hudi_12, tmp_path, {**trip_options(9), **CDC})
    both.write(trips([0]))
    both.write(trips([3]), "insert")
    with pytest.raises(PeerError, match="cdc log file"):
        hudi_12.read(both.theirs.path, change_options("000", None))
    for found in (both.ours.table.cdc("000"), hudi_12.read(both.ours.path, change_options("000", None))):
        assert found["op"].to_pylist() == ["i", "i"]


def test_a_change_query_loses_decimals(hudi_12: RealHudi, tmp_path: Path) -> None:
    both = twins(hudi_12, tmp_path, {**trip_options(9), **CDC})
    rows = trips([1]).append_column("price", pa.array([Decimal("7.25")], pa.decimal128(9, 2)))
    both.write(rows)
    (told,) = hudi_12.read(both.theirs.path, change_options("000", None))["after"].to_pylist()
    assert '"price":{"zero":false}' in told
    for sides in both:
        assert '"price":7.25' in sides.table.cdc("000")["after"][0].as_py()


def test_a_change_query_fails_on_logs_of_version_6(hudi_12: RealHudi, tmp_path: Path) -> None:
    both = twins(hudi_12, tmp_path, {**mor_options(6), **CDC})
    both.write(trips([1]))
    both.write(trips([1], ts=2))
    with pytest.raises(PeerError):
        hudi_12.read(both.theirs.path, change_options("000", None))
    for sides in both:
        assert sorted(sides.table.cdc("000")["op"].to_pylist()) == ["i", "u"]


def test_deletes_of_0_12_with_texts_as_ordering_values_cannot_be_read(
    hudi_015: RealHudi, hudi_12: RealHudi, tmp_path: Path
) -> None:
    with zipfile.ZipFile(DATA / "mor_kryo_string.zip") as archive:
        archive.extractall(tmp_path)
    for hudi in (hudi_015, hudi_12):
        with pytest.raises(PeerError, match="ClassCastException"):
            hudi.read(tmp_path / "table")
    found = hf.HudiTable.open(tmp_path / "table").to_arrow()
    assert sorted(found["id"].to_pylist()) == ["k1", "k2", "k3", "k4", "k8", "k9"]


def test_parquet_blocks_of_0_15_with_lists_of_structs_of_one_column_cannot_be_read(
    hudi_015: RealHudi, tmp_path: Path
) -> None:
    options = {**mor_options(6), "hoodie.logfile.data.block.format": "parquet"}
    both = twins(hudi_015, tmp_path, options)
    tags = pa.array([[{"only": "x"}]], pa.list_(pa.struct([("only", pa.string())])))
    both.write(trips([1]).append_column("tags", tags))
    both.write(trips([1], ts=2).append_column("tags", tags))
    with pytest.raises(PeerError):
        hudi_reads(both.theirs)
    for sides in both:
        assert times(sides.table.to_arrow()) == {1: 2}
        assert sides.table.to_arrow()["tags"].to_pylist() == [[{"only": "x"}]]


# ---- writes and services that fail


def test_an_index_of_bloom_filters_stops_writes_of_nulls(hudi_12: RealHudi, tmp_path: Path) -> None:
    both = twins(hudi_12, tmp_path, trip_options(9), plainly=False)
    both.write(trips(range(1, 5)))
    set_in(hudi_12, LOCK)
    hudi_12.sql(
        f"CREATE INDEX quiet ON {both.theirs.in_catalog()} USING bloom_filters(note) "
        "OPTIONS(expr='lower', numentries='1000')"
    )
    filters = {"hoodie.expression.index.type": "bloom_filters"}
    both.ours.table.services.index("expr_index", ["note"], "quiet", "lower", options=filters)
    with pytest.raises(PeerError):
        both.theirs.hudi_writes(trips([7]))  # its note is null
    both.ours.we_write(trips([7]))
    assert 7 in times(both.ours.table.to_arrow())


def test_buckets_that_were_inserted_in_bulk_twice_take_no_upsert(hudi_12: RealHudi, tmp_path: Path) -> None:
    buckets = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": 2}
    both = twins(hudi_12, tmp_path, {**trip_options(9), **buckets})
    both.write(trips(range(10), cities=1), "bulk_insert")
    both.write(trips(range(10, 20), cities=1), "bulk_insert")
    with pytest.raises(PeerError):
        both.theirs.hudi_writes(trips([1], ts=2, cities=1))
    both.ours.we_write(trips([1], ts=2, cities=1))
    assert times(both.ours.table.to_arrow()) == {number: 2 if number == 1 else 1 for number in range(20)}


def test_partition_ttl_fails_if_nothing_has_expired(hudi_12: RealHudi, tmp_path: Path) -> None:
    both = twins(hudi_12, tmp_path, trip_options(9))
    both.write(trips(range(3)))
    with pytest.raises(PeerError):
        hudi_12.sql(f"CALL run_ttl(table => '{both.theirs.in_catalog()}', retain_days => 10)")
    assert "REQUESTED" in both.theirs.table.history()["state"].to_pylist()
    expired = both.ours.table.services.expire_partitions({"hoodie.partition.ttl.strategy.days.retain": 10})
    assert expired.partitions == ()
    assert set(both.ours.table.history()["state"].to_pylist()) == {"COMPLETED"}


def test_a_rollback_is_refused_once_the_metadata_table_is_compacted(hudi_12: RealHudi, tmp_path: Path) -> None:
    often = {"hoodie.metadata.compact.max.delta.commits": 1}
    both = twins(hudi_12, tmp_path, {**trip_options(9), **often}, plainly=False)
    for ts in (1, 2, 3):
        both.write(trips(range(3), ts=ts))
    newest = load_state(Storage(both.theirs.path)).timeline.writes()[-1].requested
    set_in(hudi_12, {**often, "hoodie.write.auto.upgrade": False})
    with pytest.raises(PeerError):
        hudi_12.sql(f"CALL rollback_to_instant(table => '{both.theirs.in_catalog()}', instant_time => '{newest}')")
    both.ours.table.services.rollback(load_state(Storage(both.ours.path)).timeline.writes()[-1].requested)
    assert times(both.ours.table.to_arrow()) == {0: 2, 1: 2, 2: 2}
    assert both.ours.table.services.validate().ok


def test_files_of_a_failed_write_without_markers_stay(hudi_12: RealHudi, tmp_path: Path) -> None:
    both = twins(hudi_12, tmp_path, trip_options(9))
    both.write(trips(range(3), cities=1))
    both.write(trips(range(3), ts=2, cities=1))
    dead = [make_inflight(sides) for sides in both]
    both.write(trips(range(3), ts=3, cities=1))
    left = [list((sides.path / "city0").glob(f"*_{one}.parquet")) for sides, one in zip(both, dead, strict=True)]
    assert list(map(len, left)) == [1, 0]


def test_cleaning_a_table_of_version_6_upgrades_its_metadata_table(hudi_12: RealHudi, tmp_path: Path) -> None:
    both = twins(hudi_12, tmp_path, trip_options(6), plainly=False)
    for ts in (1, 2, 3):
        both.write(trips(range(3), ts=ts))
    more = "hoodie.metadata.enable=true,hoodie.write.auto.upgrade=false"
    hudi_12.sql(
        f"CALL run_clean(table => '{both.theirs.in_catalog()}', clean_policy => 'KEEP_LATEST_COMMITS', "
        f"retain_commits => 1, options => '{more}')"
    )
    both.ours.table.services.clean({"hoodie.clean.commits.retained": 1})
    versions = [load_state(Storage(sides.path / ".hoodie/metadata")).config.version for sides in both]
    assert versions == [9, 6]


# ---- ORC


def test_writes_of_orc_fail_on_nullable_dates(hudi_12: RealHudi, tmp_path: Path) -> None:
    both = twins(hudi_12, tmp_path, {**trip_options(9), **ORC})
    with pytest.raises(PeerError):
        both.theirs.hudi_writes(trips([1]))
    both.ours.we_write(trips([1]))
    set_in(hudi_12, {"spark.sql.orc.enableVectorizedReader": False})
    assert hudi_reads(both.ours)["day"].to_pylist() == both.ours.table.to_arrow()["day"].to_pylist()


def test_writes_of_orc_fail_on_decimals_of_few_digits(hudi_12: RealHudi, tmp_path: Path) -> None:
    both = twins(hudi_12, tmp_path, {**trip_options(9), **ORC})
    price = pa.array([Decimal("7.25")], pa.decimal128(5, 2))
    rows = trips([1]).drop_columns(["day"]).append_column("price", price)
    with pytest.raises(PeerError):
        both.theirs.hudi_writes(rows)
    both.ours.we_write(rows)
    set_in(hudi_12, {"spark.sql.orc.enableVectorizedReader": False})
    assert hudi_reads(both.ours)["price"].to_pylist() == both.ours.table.to_arrow()["price"].to_pylist()


def test_the_bloom_index_fails_on_orc(hudi_12: RealHudi, tmp_path: Path) -> None:
    both = twins(hudi_12, tmp_path, {**trip_options(9), **ORC, "hoodie.index.type": "BLOOM"})
    rows = trips([1]).drop_columns(["day"])
    both.write(rows, "insert")
    with pytest.raises(PeerError, match="NoSuchMethodError"):
        both.theirs.hudi_writes(rows)
    both.ours.we_write(trips([1], ts=2).drop_columns(["day"]))
    assert times(both.ours.table.to_arrow()) == {1: 2}


def test_timestamps_before_1970_change_in_orc(hudi_12: RealHudi, tmp_path: Path) -> None:
    both = twins(hudi_12, tmp_path, {**trip_options(9), **ORC})
    rows = trips([1]).drop_columns(["day"])
    started = dt.datetime(1969, 12, 31, 23, 59, 58, 500_000, tzinfo=dt.UTC)
    column = pa.array([started], pa.timestamp("us", "UTC"))
    rows = rows.set_column(rows.column_names.index("started"), "started", column)
    both.theirs.hudi_writes(rows, "insert")
    set_in(hudi_12, {"spark.sql.orc.enableVectorizedReader": False})
    assert hudi_reads(both.theirs)["started"].to_pylist() != [started]
    with pytest.raises(hf.UnsupportedFeatureError, match="before 1970"):
        both.ours.we_write(rows, "insert")


def test_upserts_of_0_15_into_orc_fail(hudi_015: RealHudi, tmp_path: Path) -> None:
    both = twins(hudi_015, tmp_path, {**trip_options(6), **ORC})
    both.write(trips([1]), "insert")
    with pytest.raises(PeerError):
        both.theirs.hudi_writes(trips([1], ts=2))
    both.ours.we_write(trips([1], ts=2))
    assert times(both.ours.table.to_arrow()) == {1: 2}


def test_a_key_that_was_inserted_into_a_log_is_stored_twice(hudi_12: RealHudi, tmp_path: Path) -> None:
    both = []
    for name in ("theirs", "ours"):
        sides = MorSides(hudi_12, tmp_path / name, {**mor_options(9), **QUIET})
        sides.hudi_writes(trips([0, 3]), "bulk_insert")
        sides.hudi_writes(trips([6], ts=2), more={"hoodie.index.type": "INMEMORY"})
        assert sides.table.to_arrow(query_type="read_optimized").num_rows == 2
        both.append(sides)
    theirs, ours = both
    theirs.hudi_writes(trips([6], ts=3), more={"hoodie.index.type": "SIMPLE"})
    ours.we_write(trips([6], ts=3), more={"hoodie.index.type": "SIMPLE"})
    assert hudi_reads(theirs)["id"].to_pylist().count(key(6)) == 2
    assert times(hudi_reads(ours)) == times(ours.table.to_arrow()) == {0: 1, 3: 1, 6: 3}


@pytest.mark.parametrize("version", [6, 9])
def test_a_dataframe_goes_to_other_partitions_than_sql(version: int, hudi_12: RealHudi, tmp_path: Path) -> None:
    row = pa.table({"id": ["0"], "ts": [2], "at": pa.array([dt.datetime(2024, 1, 5, 18)], pa.timestamp("us", "UTC"))})
    names = {name: f"{name}_by_time_{version}" for name in ("theirs", "ours")}
    options = {**trip_options(version), "hoodie.table.name": names["theirs"]}
    options["hoodie.datasource.write.partitionpath.field"] = "at"
    for name, table_name in names.items():
        hudi_12.sql(
            f"CREATE TABLE {table_name} (id STRING, ts BIGINT, at TIMESTAMP) USING hudi PARTITIONED BY (at) "
            f"LOCATION '{tmp_path / name}' TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts', "
            f"'hoodie.write.table.version' = '{version}')"
        )
        hudi_12.sql(f"INSERT INTO {table_name} VALUES ('0', 1, timestamp'2024-01-05 18:00:00')")
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    hudi_12.write(row, theirs, options)
    assert sorted(hudi_12.read(theirs)["ts"].to_pylist()) == [1, 2]
    table = hf.HudiTable.open(ours)
    stored = table.to_arrow()
    assert stored["_hoodie_partition_path"].to_pylist()[0].endswith("2024-01-05 18%3A00%3A00")
    table.upsert(row)
    assert hudi_12.read(ours)["ts"].to_pylist() == table.to_arrow()["ts"].to_pylist() == [2]
    for table_name in names.values():
        hudi_12.sql(f"DROP TABLE {table_name}")
