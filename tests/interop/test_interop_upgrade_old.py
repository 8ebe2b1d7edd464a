"""Tables of releases before 0.14 that we upgraded: as Apache Hudi upgrades them, and its releases go on with them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow.compute as pc
import pytest

import hudi_fast as hf
from hudi_fast.config.properties_file import load_properties
from hudi_fast.storage.base import Storage
from hudi_fast.view.table_state import load_state
from tests.interop.sides import data_columns
from tests.peer.client import RealHudi
from tests.peer.old_releases import old_hudi
from tests.support.golden import Golden
from tests.support.rows import assert_same_rows
from tests.tables.make_old_releases import COW, MOR, rows

SKIP = {"hoodie.skip.default.partition.validation": "true"}

Unzip = Callable[[str], Golden]


def version_of(path: Path) -> int:
    return load_state(Storage(path)).config.version


def agree(hudi: RealHudi, path: Path) -> None:
    """Both read the same rows; Spark shows the old name of the partition of nulls, which the rows store as null."""
    answer = data_columns(hudi.read(path))
    cities = pc.if_else(pc.equal(answer["city"], "default"), None, answer["city"])
    answer = answer.set_column(answer.column_names.index("city"), "city", cities)
    assert_same_rows(data_columns(hf.HudiTable.open(path).to_arrow()), answer, key=("id",))


def take_turns(hudi: RealHudi, path: Path, options: dict[str, str], version: int, ts: int) -> None:
    """Upserts and deletes of Hudi and of us on one table, read by both."""
    kept = {**options, **SKIP, "hoodie.write.table.version": str(version), "hoodie.write.auto.upgrade": "false"}
    hudi.write(rows([0, 3, 9], ts, "theirs"), path, {**kept, "hoodie.datasource.write.operation": "upsert"})
    agree(hudi, path)
    table = hf.HudiTable.open(path)
    table.write(rows([3, 4, 10], ts + 1, "ours"))
    table.delete(rows([9], ts + 2, "gone"))
    agree(hudi, path)
    hudi.write(rows([10], ts + 3, "gone"), path, {**kept, "hoodie.datasource.write.operation": "delete"})
    agree(hudi, path)
    assert version_of(path) == version


@pytest.mark.parametrize(
    "name",
    [
        "old/h009_cow",
        "old/h010_mor",
        pytest.param("old/h012_cow", marks=pytest.mark.long),
        pytest.param("old/h013_mor_v4", marks=pytest.mark.long),
    ],
)
def test_releases_0_15_and_1_2_go_on_with_a_table_that_we_upgraded(
    name: str, golden: Unzip, hudi_015: RealHudi, hudi_12: RealHudi
) -> None:
    found = golden(name)
    path, options = found.table, COW if name.endswith("cow") else MOR
    hf.HudiTable.open(path).services.upgrade(6, SKIP)
    agree(hudi_015, path)
    take_turns(hudi_015, path, options, 6, 20)
    hf.HudiTable.open(path).services.upgrade(9)
    take_turns(hudi_12, path, options, 9, 30)


@pytest.mark.parametrize(
    "name",
    [
        "old/h009_mor",
        "old/h010_cow",
        pytest.param("old/h013_cow_v4", marks=pytest.mark.long),
        pytest.param("old/h013_mor", marks=pytest.mark.long),
    ],
)
def test_properties_and_timeline_of_an_upgrade_are_those_of_hudi(
    name: str, golden: Unzip, hudi_015: RealHudi, tmp_path: Path
) -> None:
    ours, theirs = golden(name).table, tmp_path / "theirs"
    shutil.copytree(ours, theirs)
    hf.HudiTable.open(ours).services.upgrade(6, SKIP)
    options = COW if name.rpartition("/")[2].split("_")[1] == "cow" else MOR
    # A write upgrades; this one fails before it changes rows, since its column is of another type.
    hudi_015.write(rows([], 50, ""), theirs, {**options, **SKIP, "hoodie.datasource.write.operation": "upsert"})
    assert version_of(theirs) == 6
    differing = {
        key: (load_properties(Storage(ours)).get(key), value)
        for key, value in load_properties(Storage(theirs)).items()
        if load_properties(Storage(ours)).get(key) != value
    }
    assert differing == {}


@pytest.mark.long
def test_release_0_13_goes_on_with_tables_of_version_5_that_we_write(tmp_path: Path) -> None:
    with old_hudi("0.13.1") as hudi:
        for options in (COW, MOR):
            path = tmp_path / options["hoodie.datasource.write.partitionpath.field"]
            hf.write(rows(list(range(8)), 1, "a"), path, _for_us({**options, "hoodie.write.table.version": "5"}))
            agree(hudi, path)
            take_turns(hudi, path, options, 5, 20)


@pytest.mark.long
def test_release_0_13_goes_on_with_tables_that_we_downgraded(tmp_path: Path) -> None:
    with old_hudi("0.13.1") as hudi:
        for options in (COW, MOR):
            path = tmp_path / options["hoodie.datasource.write.partitionpath.field"]
            hf.write(rows(list(range(8)), 1, "a"), path, _for_us({**options, "hoodie.write.table.version": "9"}))
            hf.write(rows([1, 2], 2, "b"), path, _for_us(options))
            hf.HudiTable.open(path).services.upgrade(5)
            agree(hudi, path)
            take_turns(hudi, path, options, 5, 20)


def _for_us(options: dict[str, str]) -> dict[str, str]:
    """The options without those of the metadata table, which version 5 lacks, and of Hudi's own archive."""
    return {key: value for key, value in options.items() if not key.startswith(("hoodie.metadata", "hoodie.commits"))}
