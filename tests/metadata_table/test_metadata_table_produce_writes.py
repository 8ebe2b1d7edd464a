"""After every kind of write, each partition of the metadata table holds what one that is built anew would hold."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudi_fast as hf
from hudi_fast.metadata_table.read import scan
from hudi_fast.metadata_table.table import open_metadata
from hudi_fast.metadata_table.updates.produce import sources_of_table
from hudi_fast.storage.base import Storage
from hudi_fast.view.table_state import load_state
from tests.metadata_table.producer_runs import Rows, context_of, flat_rows, produced

pytestmark = pytest.mark.slow

INDEXES = {
    "hoodie.metadata.global.record.level.index.enable": "true",
    "hoodie.metadata.global.record.level.index.min.filegroup.count": "2",
    "hoodie.metadata.index.bloom.filter.enable": "true",
    "hoodie.index.bloom.num_entries": "50",
}
SECONDARY = {"hoodie.metadata.index.secondary.column": "text"}
EXPRESSION = {
    "hoodie.metadata.index.expression.column": "text",
    "hoodie.expression.index.type": "column_stats",
    "hoodie.expression.index.function": "upper",
}


def options(version: int, kind: str, **more: str) -> dict[str, str]:
    base = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.table.type": kind,
        "hoodie.write.table.version": str(version),
    }
    return base | INDEXES | {key.replace("__", "."): value for key, value in more.items()}


def rows(ids: list[int], ts: int, text: str | None, gone: set[int] = frozenset(), shift: int = 0) -> pa.Table:
    """Rows of two partitions and with NaN; those in ``gone`` delete their keys."""
    return pa.table(
        {
            "id": [f"k{number:03}" for number in ids],
            "part": [f"p{(number + shift) % 2}" for number in ids],
            "ts": pa.array([ts] * len(ids), pa.int64()),
            "text": pa.array([None if text is None else f"{text}{number % 3}" for number in ids], pa.string()),
            "size": pa.array([float("nan") if number == 4 else number / 2 for number in ids], pa.float64()),
            "_hoodie_is_deleted": [number in gone for number in ids],
        }
    )


def assert_as_built_anew(path: Path) -> list[str]:
    """The partitions of the metadata table, after all of them have been compared."""
    context, table = context_of(Storage(path))
    assert table is not None
    for partition in table.partitions:
        made, gone = produced(sources_of_table(context, partition, "20260101000000000"), partition)
        stored = flat_rows(scan(table, partition))
        if partition == "record_index":
            made, stored = without_instants(made), without_instants(stored)
        elif partition.startswith("expr_index"):  # an older index has more versions of files
            names = {found[0]["file_name"] for found in made.values()}
            stored = {key: found for key, found in stored.items() if found[0]["file_name"] in names}
        assert not gone
        assert as_text(made) == as_text(stored), partition
    return list(table.partitions)


def as_text(found: Rows) -> dict[str, str]:
    """NaN is not equal to itself."""
    return {key: str(each) for key, each in found.items()}


def without_instants(found: Rows) -> Rows:
    return {key: [{**row, "instant_ms": 0} for row in each] for key, each in found.items()}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("version", "kind"),
    [
        (6, "COPY_ON_WRITE"),
        (9, "MERGE_ON_READ"),
        *[pytest.param(*case, marks=pytest.mark.long) for case in ((6, "MERGE_ON_READ"), (9, "COPY_ON_WRITE"))],
    ],
)
def test_writes_of_every_kind_leave_indexes_as_if_they_were_built_anew(version: int, kind: str, tmp_path: Path) -> None:
    settings = options(version, kind)
    made = SECONDARY if version > 6 else {}

    def write(table: pa.Table, operation: str = "upsert", **more: str) -> list[str]:
        hf.write(table, tmp_path, settings | {"hoodie.datasource.write.operation": operation} | more)
        return assert_as_built_anew(tmp_path)

    write(rows(list(range(12)), 5, "a"))
    found = write(rows([1, 2, 3], 6, "b"), **made)
    assert "record_index" in found
    assert ("secondary_index_text" in found) == (version > 6)
    found = write(rows([0, 1, 20, 21], 7, "c"), **(EXPRESSION if version > 6 else {}))
    assert ("expr_index_text" in found) == (version > 6)
    write(rows([0, 2], 1, "late"))
    write(rows([2, 3, 4, 99], 8, "d", gone={3, 4, 99}))
    write(rows([5], 1, "late", gone={5}))  # too late to delete
    write(rows([3], 9, None))  # comes back
    write(rows([6, 7], 9, "x"), "delete")
    write(rows([30, 31], 9, "y"), "bulk_insert")
    write(rows([32, 33], 9, "z"), "insert")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_replaced_file_groups_take_their_keys_with_them(kind: str, tmp_path: Path) -> None:
    settings = options(9, kind)
    for table, operation in (
        (rows(list(range(8)), 5, "a"), "upsert"),
        (rows([0, 1], 6, "b"), "upsert"),
        (rows([0, 40], 7, "c"), "insert_overwrite"),
        (rows([1], 7, "d"), "delete_partition"),
        (rows([3, 50], 8, "e"), "upsert"),
        (rows([9, 10], 8, "f"), "insert_overwrite_table"),
    ):
        hf.write(table, tmp_path, settings | {"hoodie.datasource.write.operation": operation})
        assert_as_built_anew(tmp_path)


@pytest.mark.slow
def test_a_key_that_moves_to_another_partition_is_there_alone(tmp_path: Path) -> None:
    for kind in ("COPY_ON_WRITE", "MERGE_ON_READ"):
        path = tmp_path / kind
        settings = options(9, kind, hoodie__index__type="GLOBAL_SIMPLE") | SECONDARY
        settings["hoodie.simple.index.update.partition.path"] = "true"
        hf.write(rows(list(range(8)), 5, "a"), path, settings)
        hf.write(rows([2, 3, 60], 6, "b", shift=1), path, settings)
        assert_as_built_anew(path)
        _, table = context_of(Storage(path))
        assert table is not None
        places = {key: found[0]["partition"] for key, found in flat_rows(scan(table, "record_index")).items()}
        assert [places[f"k{number:03}"] for number in (2, 3, 4, 60)] == ["p1", "p0", "p0", "p1"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, *[pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2)]])
def test_random_writes_to_logs_and_their_compaction(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    settings = options(9, "MERGE_ON_READ") | SECONDARY
    settings |= {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "3"}
    hf.write(rows(list(range(20)), 5, "a"), tmp_path, settings)
    for step in range(5):
        ids = sorted(chance.sample(range(24), 6))
        gone = set(chance.sample(ids, 2))
        hf.write(rows(ids, chance.choice([1, 5, 6 + step]), f"t{step}", gone), tmp_path, settings)
        assert_as_built_anew(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["SIMPLE", "CONSISTENT_HASHING"])
def test_keys_that_are_in_log_files_alone(engine: str, tmp_path: Path) -> None:
    settings = options(9, "MERGE_ON_READ", hoodie__index__type="BUCKET") | SECONDARY
    settings |= {f"hoodie.bucket.index.{name}": "2" for name in ("num.buckets", "min.num.buckets", "max.num.buckets")}
    settings["hoodie.index.bucket.engine"] = engine
    for table in (
        rows(list(range(8)), 5, "a"),
        rows([1, 2, 20, 21], 6, "b"),
        rows([1, 20, 3], 7, "c", gone={1, 20}),
        rows([1, 20, 2], 8, "d"),
    ):
        hf.write(table, tmp_path, settings)
        assert "record_index" in assert_as_built_anew(tmp_path)


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_tables_without_meta_columns_have_statistics_of_their_columns(kind: str, tmp_path: Path) -> None:
    settings = options(9, kind, hoodie__populate__meta__fields="false")
    settings = {key: value for key, value in settings.items() if key not in INDEXES}
    for table in (rows(list(range(8)), 5, "a"), rows([1, 2, 20], 6, "b", gone={2})):
        hf.write(table, tmp_path, settings)
        assert assert_as_built_anew(tmp_path) == ["column_stats", "files", "partition_stats"]


def test_a_merger_of_the_user_that_lets_rows_go(tmp_path: Path) -> None:
    def drop_twos(older: pa.Table, newer: pa.Table) -> pa.Table:
        at = newer.column_names.index("_hoodie_is_deleted")
        return newer.set_column(at, "_hoodie_is_deleted", pc.equal(newer.column("id"), "k002"))

    for kind in ("COPY_ON_WRITE", "MERGE_ON_READ"):
        settings = options(9, kind, hoodie__write__record__merge__mode="CUSTOM")
        settings["hoodie.write.record.merge.strategy.id"] = "11111111-2222-3333-4444-555555555555"
        for table in (rows(list(range(8)), 5, "a"), rows([1, 2, 20], 6, "b")):
            hf.write(table, tmp_path / kind, settings | {"hudi_fast.merger": drop_twos})
        state = load_state(Storage(tmp_path / kind))
        table = open_metadata(state.storage, state.config, state.timeline)
        assert table is not None
        assert set(flat_rows(scan(table, "record_index"))) == {f"k{number:03}" for number in (0, 1, 3, 4, 5, 6, 7, 20)}
