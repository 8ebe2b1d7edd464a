"""Names that writers of Hudi give to files, and everything else in a table's folder."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

import hudi_fast as hf
from hudi_fast.storage.base import Storage
from hudi_fast.view.file_names import foreign_files, is_own_file, is_own_temporary, require_own_files
from tests.support.golden import TABLES, golden_names
from tests.support.small_tables import options, plain_rows

BASE = "6cf10dd3-7bb6-4a6b-8ab1-5bbd5e9d7ff4-0_0-8-0_20240131235959123.parquet"
LOG = ".6cf10dd3-7bb6-4a6b-8ab1-5bbd5e9d7ff4-0_20240131235959123.log.1_0-12-3"


@pytest.mark.parametrize(
    "name",
    [
        BASE,
        f".{BASE}.crc",
        BASE.replace(".parquet", ".orc"),
        BASE.replace("20240131235959123", "20240131235959"),
        "00000003-7bb6-4a6b-8ab1-5bbd5e9d7ff4_3-8-0_20240131235959123.parquet",
        LOG,
        f"{LOG}.cdc",
        f".{LOG}.crc",
        ".hoodie_partition_metadata",
        ".hoodie_partition_metadata_12.parquet",
        ".hoodie_partition_metadata.parquet",
        "..hoodie_partition_metadata.crc",
        f".{BASE}.0123456789abcdef0123456789abcdef.tmp",
    ],
)
def test_files_of_writers_are_own(name: str) -> None:
    assert is_own_file(name)


@pytest.mark.parametrize(
    "name",
    [
        "README",
        "thesis.pdf",
        "sales_q1_2023.parquet",
        "part-00000-6cf10dd3-c000.snappy.parquet",
        "export_1-2-3_2024.parquet",
        "notes.tmp",
        ".notes.crc",
        "notes.crc",
        ".DS_Store",
        ".log.1",
        "hoodie.properties",
        f"{BASE}.bak",
    ],
)
def test_other_files_are_foreign(name: str) -> None:
    assert not is_own_file(name)
    assert not is_own_temporary(name)


@pytest.mark.parametrize("archive", [*golden_names(), *golden_names("old/")])
def test_tables_of_real_hudi_hold_no_foreign_files(archive: str) -> None:
    names = zipfile.ZipFile(TABLES / f"{archive}.zip").namelist()
    (root,) = {one.partition("/.hoodie/")[0] for one in names if "/.hoodie/" in one and "__MACOSX" not in one}
    files = [one.removeprefix(f"{root}/") for one in names if one.startswith(f"{root}/") and not one.endswith("/")]
    data = [one.rpartition("/")[2] for one in files if not one.startswith(".hoodie/")]
    assert [one for one in data if not is_own_file(one) and one != ".DS_Store"] == []


def test_another_table_inside_a_table_is_foreign(tmp_path: Path) -> None:
    hf.write(plain_rows(range(4)), tmp_path / "t", options())
    require_own_files(Storage(tmp_path / "t"), False, "It")
    hf.write(plain_rows(range(4)), tmp_path / "t" / "p0" / "inner", options())
    assert {one.path.partition("/.hoodie/")[0] for one in foreign_files(Storage(tmp_path / "t"))} == {"p0/inner"}
    with pytest.raises(hf.ConfigError, match=r"It deletes all .*'p0/inner/\.hoodie/.*hudi_fast\.delete\.other\.files"):
        require_own_files(Storage(tmp_path / "t"), False, "It")
    require_own_files(Storage(tmp_path / "t"), True, "It")
