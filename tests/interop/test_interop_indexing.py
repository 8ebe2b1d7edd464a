"""Indexes that one side builds on a live table are asked, kept up, validated and dropped by the other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_fast.errors import UnsupportedFeatureError
from tests.interop.sides import Sides, after_delete, after_upsert, trip_options, trips
from tests.peer.client import PeerError, RealHudi
from tests.support.small_tables import listing

RECORD = {
    "hoodie.index.type": "GLOBAL_RECORD_LEVEL_INDEX",
    "hoodie.metadata.global.record.level.index.enable": True,
}
GROUPS = {"hoodie.metadata.record.index.min.filegroup.count": 2}
SKIPPING = {
    "hoodie.metadata.enable": True,
    "hoodie.enable.data.skipping": True,
    "hoodie.metadata.index.column.stats.enable": True,
}


@contextmanager
def single_writer(hudi: RealHudi) -> Iterator[None]:
    """What Hudi wants set before it builds or drops an index of its own accord."""
    settings = {
        "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider",
        "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    }
    for name, value in settings.items():
        hudi.sql(f"SET {name}={value}")
    try:
        yield
    finally:
        for name in settings:
            hudi.sql(f"RESET {name}")


def indexes(sides: Sides) -> set[str]:
    found = sides.table.services.indexes().to_pylist()
    assert {row["state"] for row in found} <= {"ready"}
    return {row["partition"] for row in found}


def assert_valid(sides: Sides, there: set[str]) -> None:
    assert there <= indexes(sides)
    result = sides.table.services.validate()
    assert result.differences.to_pylist() == []
    assert result.ok


def agree(sides: Sides, rows: pa.Table, there: set[str]) -> None:
    """Both sides read these rows, by index too, and nothing is wrong with any index, says either side."""
    assert_valid(sides, there)
    sides.agree(rows)
    some = rows["id"][rows.num_rows // 3].as_py()
    for where, filter_ in (
        (f"id = '{some}'", pc.field("id") == some),
        ("seats = 3", pc.field("seats") == 3),
        ("upper(note) = 'BY US 41 Ü€😀'", pc.utf8_upper(pc.field("note")) == "BY US 41 Ü€😀"),
    ):
        wanted = sorted(rows.filter(filter_)["id"].to_pylist())
        assert sorted(sides.table.to_arrow(columns=["id"], filter=filter_)["id"].to_pylist()) == wanted
        assert sorted(sides.hudi.read(sides.path, SKIPPING, where=where, columns=["id"])["id"].to_pylist()) == wanted
    differing = sides.hudi.sql(f"CALL validate_metadata_table_files(table => '{sides.in_catalog()}')")
    assert differing.to_pylist() == []


def turns(sides: Sides, rows: pa.Table, there: set[str], more: dict[str, Any] | None = None) -> pa.Table:
    """Real Hudi writes, then we do, then it deletes; the indexes stay true all the while."""
    new = trips(range(20, 60), ts=5, note="by hudi")
    sides.hudi_writes(new, more=more)
    rows = after_upsert(rows, new)
    assert_valid(sides, there)
    new = trips(range(40, 80), ts=6, note="by us")
    sides.we_write(new)
    rows = after_upsert(rows, new)
    gone = trips([2, 33, 77], ts=7)
    sides.hudi_writes(gone, "delete", more=more)
    rows = after_delete(rows, gone)
    agree(sides, rows, there)
    return rows


@pytest.mark.parametrize(
    ("version", "kind"), [(9, "MERGE_ON_READ"), pytest.param(6, "COPY_ON_WRITE", marks=pytest.mark.long)]
)
def test_hudi_asks_and_keeps_up_what_we_built(hudi_12: RealHudi, tmp_path: Path, version: int, kind: str) -> None:
    options = {**trip_options(version), "hoodie.datasource.write.table.type": kind, **GROUPS}
    sides = Sides(hudi_12, tmp_path / "t", options)
    rows = trips(range(50))
    sides.we_write(rows)
    services = sides.table.services
    there = {"files", "column_stats", "record_index"}
    if version == 6:
        services.index("record_index", options=GROUPS)
    else:
        assert services.index("secondary_index", ["seats"], name="by_seats", options=GROUPS).partitions == (
            "record_index",
            "secondary_index_by_seats",
        )
        services.index("expr_index", ["note"], name="big", function="upper")
        there |= {"secondary_index_by_seats", "expr_index_big", "partition_stats"}
    turns(sides, rows, there, RECORD)


def test_we_validate_and_keep_up_what_hudi_built_by_sql(hudi_12: RealHudi, tmp_path: Path) -> None:
    sides = Sides(hudi_12, tmp_path / "t", {**trip_options(9), **GROUPS})
    rows = trips(range(50))
    sides.hudi_writes(rows, more=RECORD)
    name = sides.in_catalog()
    with single_writer(hudi_12):
        hudi_12.sql(f"CREATE INDEX by_seats ON {name} (seats)")
        hudi_12.sql(f"CREATE INDEX days ON {name} USING column_stats(day) OPTIONS(expr='year')")
    there = {"record_index", "secondary_index_by_seats", "expr_index_days"}
    assert_valid(sides, there)
    assert sides.table.services.index("secondary_index", ["seats"], name="by_seats").instant == ""
    rows = turns(sides, rows, there, RECORD)
    assert sides.table.services.drop_index("by_seats") == ("secondary_index_by_seats",)
    assert sides.table.services.drop_index("days") == ("expr_index_days",)
    new = trips(range(70, 90), ts=8, note="once they are gone")
    sides.hudi_writes(new, more=RECORD)
    assert_valid(sides, {"record_index"})
    sides.agree(after_upsert(rows, new))
    assert not {"secondary_index_by_seats", "expr_index_days"} & indexes(sides)


def test_hudi_drops_what_we_built(hudi_12: RealHudi, tmp_path: Path) -> None:
    sides = Sides(hudi_12, tmp_path / "t", {**trip_options(9), **GROUPS})
    rows = trips(range(30))
    sides.we_write(rows)
    sides.table.services.index("secondary_index", ["seats"], name="by_seats", options=GROUPS)
    sides.table.services.index("expr_index", ["note"], name="big", function="upper")
    name = sides.in_catalog()
    shown = hudi_12.sql(f"SHOW INDEXES FROM {name}").column(0).to_pylist()
    assert {"record_index", "secondary_index_by_seats", "expr_index_big"} <= {str(one) for one in shown}
    with single_writer(hudi_12):
        hudi_12.sql(f"DROP INDEX by_seats ON {name}")
        hudi_12.sql(f"DROP INDEX big ON {name}")
    assert not {"secondary_index_by_seats", "expr_index_big"} & indexes(sides)
    new = trips(range(20, 45), ts=3, note="by us")
    sides.we_write(new)
    agree(sides, after_upsert(rows, new), {"record_index", "column_stats"})


FILTERS = {"hoodie.expression.index.type": "bloom_filters", "hoodie.metadata.index.column.stats.enable": False}


def whole(rows: pa.Table) -> pa.Table:
    """Rows without null or empty notes: Hudi cannot put these into a filter."""
    notes = pc.if_else(pc.is_valid(rows["note"]), rows["note"], "Quiet")
    return rows.set_column(rows.column_names.index("note"), "note", notes)


def skipped(sides: Sides, where: pc.Expression) -> bool:
    """Whether the filters leave out file slices of ours."""
    steps = sides.table.explain(where).to_pylist()
    found = [one for one in steps if str(one["index"]).startswith("expr_index_")]
    return bool(found) and found[0]["after"] < found[0]["before"]


def agree_by_filters(sides: Sides, rows: pa.Table, there: set[str]) -> None:
    assert_valid(sides, there)
    sides.agree(rows)
    for text in (rows["note"][rows.num_rows - 1].as_py().lower(), "nobody"):
        filter_ = pc.ascii_lower(pc.field("note")) == text
        wanted = sorted(rows.filter(filter_)["id"].to_pylist())
        assert sorted(sides.table.to_arrow(columns=["id"], filter=filter_)["id"].to_pylist()) == wanted
        where = f"lower(note) = '{text}'"
        assert sorted(sides.hudi.read(sides.path, SKIPPING, where=where, columns=["id"])["id"].to_pylist()) == wanted
    assert skipped(sides, pc.ascii_lower(pc.field("note")) == "nobody")


def test_filters_of_a_function_that_hudi_built_are_used_and_kept_up(hudi_12: RealHudi, tmp_path: Path) -> None:
    sides = Sides(hudi_12, tmp_path / "t", trip_options(9))
    rows = whole(trips(range(50)))
    sides.hudi_writes(rows)
    name, there = sides.in_catalog(), {"expr_index_quiet"}
    with single_writer(hudi_12):
        hudi_12.sql(f"CREATE INDEX quiet ON {name} USING bloom_filters(note) OPTIONS(expr='lower', numentries='1000')")
    assert_valid(sides, there)
    new = whole(trips(range(40, 80), ts=5, note="by us"))
    sides.we_write(new)
    rows = after_upsert(rows, new)
    assert_valid(sides, there)
    new = whole(trips(range(70, 90), ts=6, note="by hudi"))
    sides.hudi_writes(new)
    rows = after_upsert(rows, new)
    assert_valid(sides, there)
    sides.table.services.clean({"hoodie.clean.commits.retained": 1})
    agree_by_filters(sides, rows, there)


@pytest.mark.parametrize("kind", [pytest.param("COPY_ON_WRITE", marks=pytest.mark.long), "MERGE_ON_READ"])
def test_filters_of_a_function_that_we_built_are_used_and_kept_up_by_hudi(
    hudi_12: RealHudi, tmp_path: Path, kind: str
) -> None:
    options = {
        **trip_options(9),
        "hoodie.datasource.write.table.type": kind,
        "hoodie.compact.inline": False,
        "hoodie.parquet.small.file.limit": 0,
    }
    sides = Sides(hudi_12, tmp_path / "t", options)
    rows = whole(trips(range(50)))
    sides.we_write(rows)
    there = {"expr_index_quiet"}
    services = sides.table.services
    services.index("expr_index", ["note"], name="quiet", function="lower", options=FILTERS)
    new = whole(trips(range(30, 60), ts=2, note="by us"))
    sides.we_write(new)
    rows = after_upsert(rows, new)
    agree_by_filters(sides, rows, there)
    new = whole(trips(range(40, 60), ts=5, note="by hudi"))
    if kind == "MERGE_ON_READ":
        with pytest.raises(PeerError, match="for MetaIndexBloomFilter"):  # it makes no filter of a log file
            sides.hudi_writes(new)
        services.compact({"hoodie.compact.inline.max.delta.commits": 1})
    else:
        sides.hudi_writes(new)
        rows = after_upsert(rows, new)
    agree_by_filters(sides, rows, there)


def test_an_index_that_we_cannot_keep_up_is_dropped_only_if_an_option_says_so(
    hudi_12: RealHudi, tmp_path: Path
) -> None:
    sides = Sides(hudi_12, tmp_path / "t", trip_options(9))
    sides.we_write(trips(range(10)), more=SKIPPING)
    name = sides.in_catalog()
    with single_writer(hudi_12):
        hudi_12.sql(
            f"CREATE INDEX cities ON {name} USING column_stats(city) "
            "OPTIONS(expr='regexp_extract', pattern='[\\\\p{L}]+', idx='0')"
        )
    before = listing(sides.path)
    with pytest.raises(UnsupportedFeatureError, match=r"hoodie\.metadata\.index\.drop=expr_index_cities"):
        sides.we_write(trips([3], ts=2))
    assert listing(sides.path) == before
    sides.we_write(trips([3], ts=2), more={"hoodie.metadata.index.drop": "expr_index_cities"})
    sides.agree(after_upsert(trips(range(10)), trips([3], ts=2)))
    assert_valid(sides, {"column_stats"})
