"""The file that makes a folder a partition."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hudi_fast as hf
from hudi_fast.config.properties import parse_properties
from hudi_fast.storage.base import Storage
from hudi_fast.view.listing import StorageLister
from tests.support.small_tables import OPTIONS, assert_tidy, options, plain_rows, table_rows

MARKER = ".hoodie_partition_metadata"


def marker(folder: Path) -> dict[str, str]:
    return parse_properties((folder / MARKER).read_text())


def test_a_marker_names_the_first_commit_and_the_depth(tmp_path: Path) -> None:
    rows = plain_rows([1]).set_column(1, "part", pa.array(["a/b/c"]))
    first = hf.write(rows, tmp_path / "t", options())
    assert marker(tmp_path / "t/a/b/c") == {"commitTime": first.instant, "partitionDepth": "3"}
    assert not (tmp_path / "t/a" / MARKER).exists()
    hf.write(rows, tmp_path / "t", OPTIONS)
    assert marker(tmp_path / "t/a/b/c")["commitTime"] == first.instant
    assert StorageLister(Storage(tmp_path / "t")).partitions() == ["a/b/c"]


def test_a_table_without_partitions_is_one_at_its_root(tmp_path: Path) -> None:
    first = hf.write(plain_rows([1]), tmp_path / "t", options(partition=None))
    assert marker(tmp_path / "t") == {"commitTime": first.instant, "partitionDepth": "0"}


def test_a_table_may_want_markers_in_the_format_of_its_files(tmp_path: Path) -> None:
    table = hf.HudiTable.create(tmp_path / "t", plain_rows([]).schema, options())
    with (tmp_path / "t/.hoodie/hoodie.properties").open("a") as properties:
        properties.write("hoodie.partition.metafile.use.base.format=true\n")
    first = table.upsert(plain_rows([1, 2]))
    for folder in ("p0", "p1"):
        (file,) = (tmp_path / "t" / folder).glob(f"{MARKER}*")
        assert file.name == f"{MARKER}.parquet"
        found = pq.read_metadata(file).metadata
        assert (found[b"commitTime"].decode(), found[b"partitionDepth"].decode()) == (first.instant, "1")
    assert set(table_rows(table.path)) == {"k00001", "k00002"}
    table.upsert(plain_rows([3]))
    assert_tidy(table.path)


def test_folders_without_a_marker_are_no_partitions(tmp_path: Path) -> None:
    hf.write(plain_rows([1]), tmp_path / "t", options())
    (tmp_path / "t/p9").mkdir()
    (tmp_path / "t/p9/stray.parquet").write_bytes(b"")
    assert StorageLister(Storage(tmp_path / "t")).partitions() == ["p1"]
    assert len(table_rows(tmp_path / "t")) == 1


def test_the_marker_is_looked_for_with_a_new_file_group_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A partition with a file group is known already; on an object store each look is a request."""
    hf.write(plain_rows([1]), tmp_path / "t", options())
    looked: list[str] = []
    has_file = Storage.has_file
    monkeypatch.setattr(Storage, "has_file", lambda self, path: looked.append(path) or has_file(self, path))
    hf.write(plain_rows([1]), tmp_path / "t", OPTIONS)
    assert not [path for path in looked if MARKER in path]
    hf.write(plain_rows([2]), tmp_path / "t", OPTIONS)
    assert [path for path in looked if MARKER in path] == [f"p0/{MARKER}"]
