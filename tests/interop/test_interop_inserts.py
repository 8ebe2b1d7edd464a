"""Inserts that are compared with the file that takes them, and overwritten partitions that are named: beside real Hudi.

In Hudi's SQL the duplicate policy decides; these are options of its data source.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from tests.interop.sides import Sides, data_columns, trip_options
from tests.peer.client import RealHudi
from tests.support.rows import assert_same_rows

MOR = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}
UNIQUE = {"hoodie.merge.allow.duplicate.on.inserts": "false"}


def rows(*each: tuple[str, str, int, str]) -> pa.Table:
    columns = zip(*each, strict=True)
    kinds = {"id": pa.string(), "city": pa.string(), "ts": pa.int64(), "note": pa.string()}
    return pa.table({name: pa.array(column, kind) for (name, kind), column in zip(kinds.items(), columns, strict=True)})


@pytest.mark.parametrize(
    ("mor", "ordered"),
    [
        pytest.param(False, True, marks=pytest.mark.long),
        (False, False),
        (True, True),
        pytest.param(True, False, marks=pytest.mark.long),
    ],
)
def test_inserts_are_merged_with_the_same_rows(hudi_12: RealHudi, mor: bool, ordered: bool, tmp_path: Path) -> None:
    options = {**trip_options(9), **(MOR if mor else {})}
    if not ordered:
        del options["hoodie.datasource.write.precombine.field"]
    ours = Sides(hudi_12, tmp_path / "ours", options)
    ours.we_write(rows(("a", "c", 5, "old"), ("b", "c", 5, "old"), ("d", "c", 5, "old")))
    shutil.copytree(ours.path, tmp_path / "theirs")
    theirs = Sides(hudi_12, tmp_path / "theirs", options)
    new = rows(
        ("a", "c", 1, "late"), ("b", "c", 9, "new"), ("b", "c", 7, "between"), ("x", "c", 1, "1"), ("x", "c", 2, "2")
    )
    done = ours.we_write(new, "insert", UNIQUE)
    theirs.hudi_writes(new, "insert", UNIQUE)
    assert_same_rows(data_columns(ours.agree()), data_columns(theirs.agree()))
    assert (done.inserts, ours.table.to_arrow().num_rows) == (1, 4)


def test_named_partitions_are_overwritten_by_both_sides_alike(hudi_12: RealHudi, tmp_path: Path) -> None:
    named = {"hoodie.static.overwrite.partition.paths": "p,q"}
    ours = Sides(hudi_12, tmp_path / "ours", trip_options(9))
    ours.we_write(rows(("a", "p", 1, "1"), ("b", "q", 1, "1"), ("d", "r", 1, "1")))
    shutil.copytree(ours.path, tmp_path / "theirs")
    theirs = Sides(hudi_12, tmp_path / "theirs", trip_options(9))
    new = rows(("n", "p", 2, "2"))
    ours.we_write(new, "insert_overwrite", named)
    theirs.hudi_writes(new, "insert_overwrite", named)
    assert_same_rows(data_columns(ours.agree()), data_columns(theirs.agree()))
    assert sorted(ours.table.to_arrow()["id"].to_pylist()) == ["d", "n"]


@pytest.mark.smoke
def test_hudi_goes_on_after_our_truncation(hudi_12: RealHudi, tmp_path: Path) -> None:
    sides = Sides(hudi_12, tmp_path / "t", trip_options(9))
    sides.we_write(rows(("a", "p", 1, "1"), ("b", "q", 1, "1")))
    sides.table.truncate(["p"])
    sides.agree(rows(("b", "q", 1, "1")))
    sides.table.truncate()
    assert sides.agree().num_rows == 0
    sides.hudi_writes(rows(("a", "p", 1, "2")))
    sides.agree(rows(("a", "p", 1, "2")))
