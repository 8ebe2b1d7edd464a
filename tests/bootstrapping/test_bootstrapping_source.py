"""The folder that is bootstrapped: its files, its partitions, its columns."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_fast.bootstrapping.bootstrap_plan import SourcePartition, folder_schema, list_source, named_fields
from hudi_fast.errors import ConfigError, HudiWarning, InvalidDataError, SchemaMismatchError, UnsupportedFeatureError
from hudi_fast.storage.base import Storage


def put(folder: Path, path: str, **columns: pa.Array) -> None:
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns or {"id": pa.array(["a"])}), folder / path)


def test_files_are_listed_by_partition_without_hidden_ones(tmp_path: Path) -> None:
    for path in (
        "b/2.parquet",
        "a/1.parquet",
        "a/3.parquet",
        "_temporary/4.parquet",
        "a/.5.parquet",
        "_SUCCESS.parquet",
    ):
        put(tmp_path, path)
    (tmp_path / "notes.txt").touch()
    found = list_source(Storage(tmp_path))
    assert {one.folder: [file.name for file in one.files] for one in found.partitions} == {
        "a": ["1.parquet", "3.parquet"],
        "b": ["2.parquet"],
    }
    assert found.size == sum((tmp_path / path).stat().st_size for path in ("a/1.parquet", "a/3.parquet", "b/2.parquet"))


def test_other_formats_tables_and_empty_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no Parquet file"):
        list_source(Storage(tmp_path))
    (tmp_path / "a.orc").touch()
    with pytest.raises(UnsupportedFeatureError, match=r"a\.orc"):
        list_source(Storage(tmp_path))
    (tmp_path / ".hoodie").mkdir()
    with pytest.raises(ConfigError, match="already"):
        list_source(Storage(tmp_path))


@pytest.mark.parametrize(
    ("folders", "expected"),
    [
        (["year=1/m=2", "year=2/m=3"], ("year", "m")),
        (["year=1", "2"], None),
        (["year=1", "month=1"], None),
        (["year="], None),
        ([""], ()),
    ],
)
def test_folder_names_give_columns_when_all_have_the_same(folders: list[str], expected: tuple[str, ...] | None) -> None:
    assert named_fields([SourcePartition(folder, ()) for folder in folders]) == expected


def test_columns_of_all_files_are_widened_and_folder_columns_added(tmp_path: Path) -> None:
    put(tmp_path, "1.parquet", a=pa.array([1], pa.int32()), b=pa.array(["x"]))
    put(tmp_path, "2.parquet", a=pa.array([1], pa.int64()), c=pa.array([1.5]))
    schema = folder_schema(list_source(Storage(tmp_path)), ["day", "b"])
    assert schema == pa.schema({"a": pa.int64(), "b": pa.string(), "c": pa.float64(), "day": pa.string()})


def test_types_that_do_not_go_together_are_named_with_their_files(tmp_path: Path) -> None:
    put(tmp_path, "1.parquet", a=pa.array([1]))
    put(tmp_path, "2.parquet", a=pa.array([True]))
    with pytest.raises(SchemaMismatchError, match=r"'a'.*1\.parquet.*2\.parquet"):
        folder_schema(list_source(Storage(tmp_path)), [])


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        (pa.array([1]), pa.array([1.5]), "'a' is int64 in some .* and double in others.*rounds large integers"),
        (pa.array(["x"]), pa.array([1.5]), "'a' is double in some .* and string in others.*'a' as text"),
    ],
)
def test_a_column_that_loses_something_in_the_common_type_is_told(
    one: pa.Array, other: pa.Array, said: str, tmp_path: Path
) -> None:
    put(tmp_path, "1.parquet", a=one)
    put(tmp_path, "2.parquet", a=other)
    with pytest.warns(HudiWarning, match=said):
        folder_schema(list_source(Storage(tmp_path)), [])


@pytest.mark.parametrize("zone", ["UTC", None])
def test_numbers_of_one_file_do_not_become_moments_of_another(zone: str | None, tmp_path: Path) -> None:
    put(tmp_path, "1.parquet", a=pa.array([1]))
    put(tmp_path, "2.parquet", a=pa.array([1], pa.timestamp("us", zone)))
    with pytest.raises(SchemaMismatchError, match=r"'a' is int64 in .*1\.parquet and timestamp"):
        folder_schema(list_source(Storage(tmp_path)), [])


def test_files_of_a_hudi_table_are_refused(tmp_path: Path) -> None:
    put(tmp_path, "1.parquet", _hoodie_commit_time=pa.array(["1"]))
    with pytest.raises(InvalidDataError, match="_hoodie_commit_time"):
        folder_schema(list_source(Storage(tmp_path)), [])


def test_int96_values_are_moments(tmp_path: Path) -> None:
    table = pa.table({"at": pa.array([0], pa.timestamp("us"))})
    pq.write_table(table, tmp_path / "1.parquet", use_deprecated_int96_timestamps=True)
    assert folder_schema(list_source(Storage(tmp_path)), []).field("at").type == pa.timestamp("us", "UTC")
