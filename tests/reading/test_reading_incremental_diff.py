"""Differences between two states of a table, against the rows that each state is known to have.

Module: hudi_fast.reading.incremental.diff.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudi_fast as hf
from hudi_fast.reading.incremental.diff import CHANGE, diff_batches, plan_diff
from hudi_fast.reading.scan import ScanQuery
from hudi_fast.storage.base import Storage

QUIET = {"hoodie.clean.automatic": "false", "hoodie.compact.inline": "false", "hudi_fast.threads": "1"}
SCHEMA = pa.schema({"id": pa.int64(), "city": pa.string(), "fare": pa.float64(), "tags": pa.list_(pa.string())})

Rows = dict[int, dict[str, Any]]


def rows_of(ids: range | list[int], fare: float, city: str = "") -> pa.Table:
    cities = ["Oslo", "Rome"]
    rows = [{"id": n, "city": city or cities[n % 2], "fare": fare, "tags": [str(n)] * (n % 3)} for n in ids]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def states(table: hf.HudiTable) -> Iterator[str]:
    """Changes a table step by step; yields the instant of each state."""
    yield table.upsert(rows_of(range(8), 1.0)).instant
    yield table.upsert(rows_of([2, 3, 20], 2.0)).instant
    yield table.upsert(rows_of([4], 1.0)).instant  # the values that are stored
    yield table.delete(where="id in (0, 3)").instant
    done = table.services.compact() if table.table_type == "MERGE_ON_READ" else table.services.cluster()
    assert done.instant
    yield done.instant
    yield table.insert_overwrite(rows_of([1, 9], 5.0)).instant
    yield table.upsert(rows_of([3], 1.0)).instant


def expected(before: Rows, after: Rows) -> list[tuple[str, Any]]:
    """The differences of two states, sorted."""
    changed = [key for key in before.keys() & after.keys() if before[key] != after[key]]
    return sorted(
        [
            *(("insert", after[key]) for key in after.keys() - before.keys()),
            *(("delete", before[key]) for key in before.keys() - after.keys()),
            *(("update_before", before[key]) for key in changed),
            *(("update_after", after[key]) for key in changed),
        ],
        key=str,
    )


def found(rows: pa.Table) -> list[tuple[str, Any]]:
    return sorted(((row.pop(CHANGE), row) for row in rows.to_pylist()), key=str)


@pytest.mark.slow
@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("kind", ["copy_on_write", "merge_on_read"])
def test_the_difference_of_any_two_states_is_that_of_their_rows(tmp_path: Path, kind: Any, version: int) -> None:
    options = {**QUIET, "hoodie.write.table.version": str(version)}
    hf.HudiTable.create(tmp_path / "t", SCHEMA, options, key="id", partition_by="city", table_type=kind, name="t")
    table = hf.HudiTable(tmp_path / "t")
    known: list[tuple[str, Rows]] = [("earliest", {})]
    for instant in states(table):
        rows = table.to_arrow(columns=SCHEMA.names).to_pylist()
        known.append((instant, {row["id"]: row for row in rows}))
    for (begin, before), (end, after) in itertools.combinations(known, 2):
        assert found(table.diff(begin, end)) == expected(before, after), (begin, end)
    assert found(table.diff(known[1][0])) == expected(known[1][1], known[-1][1])


@pytest.fixture
def table(tmp_path: Path) -> tuple[hf.HudiTable, str]:
    hf.write(rows_of(range(4), 1.0), tmp_path / "t", QUIET, key="id")
    table = hf.HudiTable(tmp_path / "t")
    first = table.history()["instant"][0].as_py()
    table.upsert(rows_of([1, 7], 2.0))
    table.delete(where="id = 0")
    return table, first


def test_columns_and_a_condition_choose_what_is_shown(table: tuple[hf.HudiTable, str]) -> None:
    opened, first = table
    chosen = opened.diff(first, columns=["id", CHANGE, "_hoodie_record_key"], filter=f"{CHANGE} <> 'update_before'")
    assert sorted(map(tuple, map(dict.values, chosen.to_pylist()))) == [
        (0, "delete", "0"),
        (1, "update_after", "1"),
        (7, "insert", "7"),
    ]
    assert opened.diff(first, filter=pc.field("fare") > 1.5).num_rows == 2


def test_both_rows_of_an_update_follow_each_other(table: tuple[hf.HudiTable, str]) -> None:
    opened, first = table
    changes = opened.diff(first)[CHANGE].to_pylist()
    at = changes.index("update_before")
    assert changes[at + 1] == "update_after"


def test_slices_of_both_states_are_not_read(tmp_path: Path) -> None:
    hf.write(rows_of(range(4), 1.0), tmp_path / "t", QUIET, key="id", partition_by="city")
    table = hf.HudiTable(tmp_path / "t")
    first = table.history()["instant"][0].as_py()
    table.upsert(rows_of([1], 2.0))
    plan = plan_diff(Storage(tmp_path / "t"), first, None, ScanQuery())
    assert [(len(before), len(after)) for before, after in plan.parts] == [(1, 1)]
    assert diff_batches(plan).read_all().num_rows == 2


def test_duplicates_of_a_key_are_paired_by_their_values(tmp_path: Path) -> None:
    options = {**QUIET, "hoodie.merge.allow.duplicate.on.inserts": "true"}
    hf.write(rows_of([1, 1, 1], 1.0), tmp_path / "t", options, key="id", operation="bulk_insert")
    table = hf.HudiTable(tmp_path / "t")
    first = table.history()["instant"][0].as_py()
    table.write(rows_of([1], 2.0), "insert", options)
    assert found(table.diff(first)) == [("insert", rows_of([1], 2.0).to_pylist()[0])]


def test_rows_of_a_table_without_meta_columns_are_known_by_their_key_columns(tmp_path: Path) -> None:
    options = {**QUIET, "hoodie.populate.meta.fields": "false"}
    hf.write(rows_of([1, 2], 1.0), tmp_path / "t", options, key="id")
    table = hf.HudiTable(tmp_path / "t")
    first = table.history()["instant"][0].as_py()
    table.upsert(rows_of([2], 2.0), {"hoodie.populate.meta.fields": "false"})
    assert [change for change, _ in found(table.diff(first))] == ["update_after", "update_before"]


def test_a_new_column_is_null_in_the_rows_before(tmp_path: Path) -> None:
    hf.write(rows_of([1], 1.0), tmp_path / "t", QUIET, key="id")
    table = hf.HudiTable(tmp_path / "t")
    first = table.history()["instant"][0].as_py()
    table.upsert(rows_of([1], 1.0).append_column("tip", pa.array([3.0])))
    assert [(row[CHANGE], row["tip"]) for row in table.diff(first).to_pylist()] == [
        ("update_before", None),
        ("update_after", 3.0),
    ]


@pytest.mark.slow(but="2024-01-02-2024-01-01-from the earlier time to the later one")
@pytest.mark.parametrize(
    ("begin", "end", "said"),
    [
        ("2024-01-02", "2024-01-01", "from the earlier time to the later one"),
        ("yesterday", None, "begin='yesterday'"),
        ("earliest", "soon", "end='soon'"),
    ],
)
def test_times_that_make_no_difference_are_refused(
    table: tuple[hf.HudiTable, str], begin: str, end: str | None, said: str
) -> None:
    with pytest.raises(hf.ConfigError, match=said):
        table[0].diff(begin, end)


def test_a_table_with_a_column_of_that_name_is_refused(tmp_path: Path) -> None:
    hf.write(pa.table({"id": [1], CHANGE: ["x"]}), tmp_path / "t", key="id")
    with pytest.raises(hf.ConfigError, match="has a column 'change'"):
        hf.HudiTable(tmp_path / "t").diff("earliest")
