"""Tables whose columns were altered: read, written to, compacted, clustered, filtered, taken back.

Modules: hudi_fast.writing.table_schema.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudi_fast as hf
from hudi_fast.errors import ConfigError, CorruptTableError, SchemaMismatchError
from hudi_fast.metadata_table.keys import partition_stats_key
from hudi_fast.metadata_table.read import lookup
from hudi_fast.metadata_table.table import open_metadata
from hudi_fast.schema.internal import parse_versions
from hudi_fast.storage.base import Storage
from hudi_fast.view.schema_history import schema_commits
from hudi_fast.view.table_state import load_state, read_commit
from tests.support.altered_tables import ALTERED, unzip_altered

TABLES = [("COPY_ON_WRITE", 9), ("MERGE_ON_READ", 9), ("MERGE_ON_READ", 6)]
BOTH = pytest.mark.parametrize(("kind", "version"), TABLES)
STRUCT = pa.struct([("x", pa.int32()), ("y", pa.string())])
MERGE = ("MERGE_ON_READ", 9)


def options(kind: str = "COPY_ON_WRITE", version: int = 9, **more: Any) -> dict[str, Any]:
    given = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.datasource.write.table.type": kind,
        "hoodie.write.table.version": version,
        "hoodie.compact.inline": False,
        "hoodie.metadata.enable": False,
    }
    return given | {name.replace("__", "."): value for name, value in more.items()}


def keys(numbers: range, ts: int) -> dict[str, Any]:
    return {
        "id": [f"k{n}" for n in numbers],
        "part": [f"p{n % 2}" for n in numbers],
        "ts": pa.array([ts] * len(numbers), pa.int64()),
    }


def rows(first: int, last: int, ts: int = 1) -> pa.Table:
    numbers = range(first, last)
    more = {
        "a": pa.array(numbers, pa.int32()),
        "b": pa.array([n + 0.5 for n in numbers], pa.float32()),
        "gone": [f"g{n}" for n in numbers],
        "s": pa.array([{"x": n, "y": f"y{n}"} for n in numbers], STRUCT),
    }
    return pa.table(keys(numbers, ts) | more)


ALTER = (
    hf.RenameColumn("a", "aa"),
    hf.DropColumn("gone"),
    hf.AddColumn("gone", pa.string()),
    hf.RenameColumn("s.x", "xx"),
    hf.ChangeType("b", pa.string()),
)
INSIDE = pa.struct([("xx", pa.int32()), ("y", pa.string())])


def new_rows(first: int, last: int, ts: int) -> pa.Table:
    """Rows in the columns that :data:`ALTER` leaves."""
    numbers = range(first, last)
    more = {
        "aa": pa.array([-n for n in numbers], pa.int32()),
        "b": ["new"] * len(numbers),
        "s": pa.array([{"xx": -n, "y": "new"} for n in numbers], INSIDE),
        "gone": ["back"] * len(numbers),
    }
    return pa.table(keys(numbers, ts) | more)


def old_row(n: int) -> dict[str, Any]:
    """An old row as it is read once :data:`ALTER` is done."""
    named = {"id": f"k{n}", "part": f"p{n % 2}", "ts": 1}
    return named | {"aa": n, "b": f"{n}.5", "gone": None, "s": {"xx": n, "y": f"y{n}"}}


def new_row(n: int, ts: int) -> dict[str, Any]:
    named = {"id": f"k{n}", "part": f"p{n % 2}", "ts": ts}
    return named | {"aa": -n, "b": "new", "gone": "back", "s": {"xx": -n, "y": "new"}}


def read(table: hf.HudiTable, filter_: pc.Expression | None = None, **asked: Any) -> list[dict[str, Any]]:
    found = table.to_arrow(filter=filter_, **asked)
    data = [name for name in found.column_names if not name.startswith("_hoodie")]
    return list(found.select(data).sort_by("id").to_pylist())


def made(tmp_path: Path, given: dict[str, Any], *changes: Any) -> hf.HudiTable:
    hf.write(rows(0, 6), tmp_path / "t", given)
    table = hf.HudiTable.open(tmp_path / "t")
    table.alter(*(changes or ALTER), options={"hoodie.metadata.enable": given["hoodie.metadata.enable"]})
    return table


# ---- reading and writing


@pytest.mark.slow(but="COPY_ON_WRITE-9")
@BOTH
def test_old_rows_are_read_and_rewritten_in_the_columns_of_today(kind: str, version: int, tmp_path: Path) -> None:
    given = options(kind, version)
    table = made(tmp_path, given)
    assert read(table) == [old_row(n) for n in range(6)]
    table.upsert(new_rows(4, 8, 2), given)
    expected = [*(old_row(n) for n in range(4)), *(new_row(n, 2) for n in range(4, 8))]
    assert read(table) == expected
    table.alter(hf.RenameColumn("aa", "a"), hf.RenameColumn("b", "aa"))
    renamed = [{**row, "a": row["aa"], "aa": row["b"]} for row in expected]
    for row in renamed:
        row.pop("b")
    assert read(table) == renamed
    if kind == "MERGE_ON_READ":
        table.services.compact({"hoodie.metadata.enable": False})
        assert read(table) == renamed
        assert read(table, query_type="read_optimized") == renamed
    result = table.services.cluster(
        {"hoodie.clustering.plan.strategy.small.file.limit": 10**9, "hoodie.metadata.enable": False}
    )
    assert result.file_groups > 0
    assert read(table) == renamed
    table.delete(pa.table({"id": ["k0"], "part": ["p0"]}), given)
    assert read(table) == renamed[1:]


def test_a_commit_says_its_schema_with_ids_and_leaves_the_history_behind(tmp_path: Path) -> None:
    given = options()
    table = made(tmp_path, given)
    wider = new_rows(6, 7, 2).append_column("wide", pa.array([1.5]))
    table.upsert(wider, given)
    storage = Storage(table.path)
    state = load_state(storage)
    first, alter, write = (read_commit(storage, state.config, one) for one in state.timeline.writes())
    assert "latest_schema" not in first.extra_metadata
    assert alter.operation_type == "ALTER_SCHEMA"
    assert not list(alter.write_stats())
    assert '"name":"wide"' in write.extra_metadata["latest_schema"]
    _, path = schema_commits(storage, 2)[-1]
    versions = parse_versions(storage.read_bytes(path).decode(), path)
    assert [one.version for one in versions] == [int(one.requested) for one in state.timeline.writes()[:0:-1]] + [0]
    assert versions[0].max_column_id == versions[1].max_column_id + 1
    shown = table.schema_history()
    assert shown.filter(pc.field("version") == "0")["column"].to_pylist()[:4] == ["id", "part", "ts", "a"]
    table.upsert(new_rows(6, 7, 3).append_column("wide", pa.array([2.5])), given)
    _, path = schema_commits(storage, 2)[-1]
    assert parse_versions(storage.read_bytes(path).decode(), path) == versions


@BOTH
def test_time_travel_sees_the_columns_of_that_time(kind: str, version: int, tmp_path: Path) -> None:
    table = made(tmp_path, options(kind, version))
    then, now = (one.requested for one in load_state(Storage(table.path)).timeline.writes())
    assert read(table, as_of=then) == rows(0, 6).sort_by("id").to_pylist()
    assert read(table, as_of=now) == [old_row(n) for n in range(6)]


def test_columns_swap_their_names(tmp_path: Path) -> None:
    given = options()
    hf.write(pa.table(keys(range(2), 1) | {"u": [1, 2], "v": [3, 4]}), tmp_path / "t", given)
    table = hf.HudiTable.open(tmp_path / "t")
    table.alter(hf.RenameColumn("u", "w"), hf.RenameColumn("v", "u"), hf.RenameColumn("w", "v"))
    assert [(row["u"], row["v"]) for row in read(table)] == [(3, 1), (4, 2)]
    assert [row["id"] for row in read(table, pc.field("u") == 4)] == ["k1"]
    # The files look like the table: only the ids tell that row groups must not be copied.
    result = table.services.cluster(
        {"hoodie.clustering.plan.strategy.small.file.limit": 10**9, "hoodie.metadata.enable": False}
    )
    assert result.copied_row_groups == 0
    assert [(row["u"], row["v"]) for row in read(table)] == [(3, 1), (4, 2)]


# ---- filters


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_statistics_of_old_names_leave_nothing_out(kind: str, tmp_path: Path) -> None:
    """Of the old ``gone`` and ``a`` there are statistics, without a null and with bounds that are not today's."""
    given = options(kind, hoodie__metadata__enable=True, hoodie__metadata__index__column__stats__enable=True)
    table = made(tmp_path, given, *ALTER, hf.AddColumn("a", pa.int32()))
    assert len(read(table, pc.field("gone").is_null())) == 6
    assert len(read(table, pc.field("a").is_null())) == 6
    assert [row["id"] for row in read(table, pc.field("aa") == 3)] == ["k3"]
    assert [row["id"] for row in read(table, pc.field("b") == "3.5")] == ["k3"]
    assert read(table, pc.field("gone") == "g1") == []
    newer = new_rows(6, 8, 2).append_column("a", pa.array([100, 100], pa.int32()))
    table.upsert(newer, given)
    assert len(read(table, pc.field("gone").is_null())) == 6
    assert [row["id"] for row in read(table, pc.field("a") == 100)] == ["k6", "k7"]
    assert all(one == 0 for one in table.services.validate().summary["differences"].to_pylist())
    plain = made(tmp_path / "plain", options(kind))
    plain.services.index("column_stats", ["aa", "gone", "s.xx"])  # of files from before the ALTER
    assert [row["id"] for row in read(plain, pc.field("aa") == 3)] == ["k3"]
    assert len(read(plain, pc.field("gone").is_null())) == 6


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_partition_has_no_statistics_of_a_column_that_is_older_than_its_name(kind: str, tmp_path: Path) -> None:
    """Those of the files that were written since are not those of the partition."""
    given = options(kind, hoodie__metadata__enable=True, hoodie__metadata__index__column__stats__enable=True)
    table = made(tmp_path, given)
    table.upsert(new_rows(6, 8, 2), {**given, "hoodie.parquet.small.file.limit": 0})  # files of their own
    services = table.services
    assert services.validate().differences.num_rows == 0
    metadata = open_metadata(Storage(table.path), table.config, load_state(Storage(table.path)).timeline)
    assert metadata is not None
    keys_of = {name: partition_stats_key(name, path) for name in ("aa", "gone", "s.xx", "ts") for path in ("p0",)}
    found = lookup(metadata, "partition_stats", pa.array(list(keys_of.values())))["key"].to_pylist()
    assert found == [keys_of["ts"]]


@pytest.mark.slow
def test_statistics_are_built_from_log_files_of_before(tmp_path: Path) -> None:
    given = options(*MERGE)
    hf.write(rows(0, 6), tmp_path / "t", given)
    table = hf.HudiTable.open(tmp_path / "t")
    table.upsert(rows(4, 6, 2), given)
    plain = {"hoodie.metadata.enable": False}
    table.alter(hf.DropColumn("gone"), hf.AddColumn("gone", pa.int64()), hf.RenameColumn("a", "aa"), options=plain)
    expected = read(table)
    # Now with a metadata table, which is built from what is there, before the columns change.
    table.alter(
        hf.DropColumn("b"),
        hf.AddColumn("b", pa.date32()),
        hf.AddColumn("n", pa.int32()),
        options={"hoodie.metadata.index.column.stats.enable": True},
    )
    assert read(table) == [{**row, "b": None, "n": None} for row in expected]
    assert len(read(table, pc.field("b").is_null())) == 6
    assert [row["id"] for row in read(table, pc.field("aa") == 5)] == ["k5"]
    assert len(read(table, pc.field("gone").is_null())) == 6


# ---- tables that Hudi altered


@pytest.mark.slow
@pytest.mark.parametrize("name", ALTERED)
def test_writes_and_services_go_on_after_an_alter_of_hudi(name: str, tmp_path: Path) -> None:
    one = unzip_altered(name, tmp_path)
    table = hf.HudiTable.open(one.table)
    plain = {"hoodie.metadata.enable": False, "hoodie.compact.inline": False}
    expected = {row["id"]: row for row in read(table)}
    new = {**expected["k5"], "ts": 9, "gone": "once more", "aa": "text"}
    table.upsert(pa.Table.from_pylist([new], table.schema), plain)
    expected["k5"] = new
    assert read(table) == list(expected.values())
    table.alter(hf.RenameColumn("st", "s"), hf.RenameColumn("l.element.ee", "e"), options=plain)
    for row in expected.values():
        row["s"] = row.pop("st")
        row["l"] = [{"e" if key == "ee" else key: value for key, value in each.items()} for each in row["l"]]
    assert read(table) == list(expected.values())
    if table.config.is_mor:
        table.services.upgrade(9)
        assert read(table) == list(expected.values())
        table.services.compact({**plain, "hoodie.compact.inline.max.delta.commits": 1})
        table.services.upgrade(6)
    assert read(table) == list(expected.values())


# ---- what was planned before


def test_a_compaction_that_was_planned_before_writes_the_columns_of_its_time(tmp_path: Path) -> None:
    given = options(*MERGE)
    hf.write(rows(0, 6), tmp_path / "t", given)
    table = hf.HudiTable.open(tmp_path / "t")
    table.upsert(rows(4, 6, 2), given)
    plain = {"hoodie.metadata.enable": False, "hoodie.compact.inline.max.delta.commits": 1}
    assert table.services.schedule_compact(plain) is not None
    table.alter(*ALTER, options=plain)
    expected = read(table)
    assert [row["b"] for row in expected] == [f"{n}.5" for n in range(6)]
    table.upsert(new_rows(0, 1, 3), given)
    expected[0] = new_row(0, 3)
    assert read(table) == expected
    table.services.compact({**plain, "hoodie.compact.inline.max.delta.commits": 100})
    assert read(table) == expected
    table.services.compact(plain)
    assert read(table) == expected


# ---- refusals and failures


def test_a_change_that_is_refused_leaves_no_trace(tmp_path: Path) -> None:
    given = options(hoodie__metadata__enable=True, hoodie__metadata__record__index__enable=True)
    hf.write(rows(0, 4), tmp_path / "t", given)
    table = hf.HudiTable.open(tmp_path / "t")
    table.services.index("secondary_index", ["gone"])
    before = table.history().num_rows
    for change in (
        hf.RenameColumn("id", "key"),
        hf.DropColumn("ts"),
        hf.RenameColumn("part", "p"),
        hf.DropColumn("nothing"),
        hf.RenameColumn("a", "b"),
        hf.DropColumn("gone"),
    ):
        with pytest.raises(ConfigError):
            table.alter(hf.AddColumn("fine", pa.int32()), change)
    with pytest.raises(SchemaMismatchError, match="'b' is float and cannot become int32"):
        table.alter(hf.ChangeType("b", pa.int32()))
    assert table.history().num_rows == before
    assert table.schema_history().num_rows == 0
    assert not list((tmp_path / "t" / ".hoodie" / ".schema").iterdir())


def test_changes_that_change_nothing_commit_nothing(tmp_path: Path) -> None:
    hf.write(rows(0, 2), tmp_path / "t", options())
    table = hf.HudiTable.open(tmp_path / "t")
    result = table.alter(hf.ChangeType("a", pa.int32()))
    assert result.instant == ""
    assert result.schema == table.schema
    assert table.history().num_rows == 1


def test_a_table_without_columns_is_refused(tmp_path: Path) -> None:
    hf.write(rows(0, 2), tmp_path / "t", options())
    table = hf.HudiTable.open(tmp_path / "t")
    with pytest.raises(ConfigError, match="nothing to alter"):
        table.alter()


def test_a_history_that_is_damaged_is_refused_aloud(tmp_path: Path) -> None:
    table = made(tmp_path, options())
    storage = Storage(table.path)
    _, path = schema_commits(storage, 2)[-1]
    storage.write_bytes(path, b"{}")
    with pytest.raises(CorruptTableError, match="schemacommit"):
        table.to_arrow()


def test_an_alter_that_is_restored_away_is_forgotten(tmp_path: Path) -> None:
    given = options()
    hf.write(rows(0, 6), tmp_path / "t", given)
    table = hf.HudiTable.open(tmp_path / "t")
    plain = {"hoodie.metadata.enable": False}
    saved = str(table.history()["instant"].to_pylist()[-1])
    table.services.savepoint(saved, options=plain)
    table.alter(*ALTER, options=plain)
    table.upsert(new_rows(0, 1, 2), given)
    table.services.restore(saved, options=plain)
    assert table.schema_history().num_rows == 0
    assert read(table) == rows(0, 6).sort_by("id").to_pylist()
    table.upsert(rows(0, 1, 3), given)
    table.alter(hf.RenameColumn("a", "z"), options=plain)
    assert [row["z"] for row in read(table)] == list(range(6))


@pytest.mark.slow
def test_the_history_outlives_the_archiving_of_the_alter(tmp_path: Path) -> None:
    given = options(hoodie__clean__automatic=False, hoodie__archive__automatic=False)
    table = made(tmp_path, given)
    alter = load_state(Storage(table.path)).timeline.writes()[-1].requested
    for ts in range(2, 9):
        table.upsert(new_rows(6, 7, ts), given)
    kept = {"hoodie.keep.min.commits": 2, "hoodie.keep.max.commits": 3, "hoodie.clean.commits.retained": 1}
    table.services.clean({**kept, "hoodie.metadata.enable": False})
    table.services.archive({**kept, "hoodie.metadata.enable": False})
    assert load_state(Storage(table.path)).timeline.find(alter) is None
    assert read(table)[:6] == [old_row(n) for n in range(6)]
    table.upsert(new_rows(6, 7, 10), given)
    assert read(table)[:6] == [old_row(n) for n in range(6)]


# ---- rules of writes


def test_a_write_never_drops_a_column_of_a_table_with_a_history(tmp_path: Path) -> None:
    given = options()
    table = made(tmp_path, given)
    fewer = new_rows(0, 1, 2).drop_columns(["aa"])
    with pytest.raises(SchemaMismatchError, match="'aa'"):
        table.upsert(fewer, given)
    for number, key in enumerate(
        (
            "hoodie.datasource.write.schema.allow.auto.evolution.column.drop",
            "hoodie.write.set.null.for.missing.columns",
            "hoodie.datasource.write.reconcile.schema",
        )
    ):
        table.upsert(new_rows(number, number + 1, 2).drop_columns(["aa"]), {**given, key: True})
        assert "aa" in table.schema.names
    assert [row["aa"] for row in read(table)] == [None, None, None, 3, 4, 5]


def test_a_write_that_reconciles_begins_a_history_if_it_is_told_to(tmp_path: Path) -> None:
    given = options()
    hf.write(rows(0, 2), tmp_path / "t", given)
    table = hf.HudiTable.open(tmp_path / "t")
    table.upsert(rows(1, 3, 2), {**given, "hoodie.schema.on.read.enable": True})
    assert table.schema_history().num_rows == 0
    told = {"hoodie.schema.on.read.enable": True, "hoodie.datasource.write.reconcile.schema": True}
    table.upsert(rows(1, 3, 3).append_column("n", pa.array([1, 2])), {**given, **told})
    assert "n" in table.schema_history()["column"].to_pylist()
    table.alter(hf.RenameColumn("n", "m"), hf.RenameColumn("a", "n"), options={"hoodie.metadata.enable": False})
    assert [(row["m"], row["n"]) for row in read(table)] == [(None, 0), (1, 1), (2, 2)]


def test_partition_columns_that_are_in_the_path_only_stay(tmp_path: Path) -> None:
    given = options(
        hoodie__datasource__write__drop__partition__columns=True,
        hoodie__datasource__write__hive_style_partitioning=True,
    )
    table = made(tmp_path, given)
    assert read(table) == [{**old_row(n)} for n in range(6)]
    table.upsert(new_rows(5, 7, 2), given)
    assert read(table)[5:] == [new_row(5, 2), new_row(6, 2)]
    with pytest.raises(ConfigError, match="a partition field"):
        table.alter(hf.RenameColumn("part", "p"))
