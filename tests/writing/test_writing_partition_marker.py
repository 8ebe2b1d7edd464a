"""The file that makes a folder a partition."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hudi_fast as hf
from hudi_fast.config.properties_file import parse_properties
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


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_partition_without_its_marker_gets_one_from_any_write(tmp_path: Path, kind: str) -> None:
    """The rollback of the write that created a partition deletes the marker, and other writers may have files there.

    The metadata table knows the partition, and a write that changes a row of a file has a file group.
    """
    settings = {**options(), "hoodie.datasource.write.table.type": kind}
    hf.write(plain_rows([1]), tmp_path / "t", settings)
    (tmp_path / "t/p1" / MARKER).unlink()
    assert hf.write(plain_rows([1], ts=2), tmp_path / "t", settings).updates == 1
    assert marker(tmp_path / "t/p1")["partitionDepth"] == "1"
    assert StorageLister(Storage(tmp_path / "t")).partitions() == ["p1"]
