"""A table lives on HDFS as it does on local disk; failures of the cluster and of writers lose nothing.

Modules: hudi_fast.storage.hdfs, hudi_fast.storage.stores.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow.compute as pc
import pytest

import hudi_fast as hf
from hudi_fast.storage.base import Storage
from tests.servers.hdfs import HdfsCluster
from tests.storage.test_storage_s3_tables import SERVED, life
from tests.support.small_tables import assert_tidy, options, plain_rows, table_rows

WRITER = """
import sys
sys.path[:0] = {path!r}
from tests.support.small_tables import options, plain_rows
import hudi_fast as hf
for turn in range(1, 100000):
    hf.write(plain_rows(range(12), ts=turn, text=f"t{{turn}}-"), {table!r}, options())
    print(turn, flush=True)
"""
CALLS = 100
"""Of a small upsert into one partition, with its records of the metadata table: about 80."""


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("kind", "version"), [("MERGE_ON_READ", "9"), ("COPY_ON_WRITE", "6")], ids=["merge-on-read", "copy-on-write"]
)
@pytest.mark.long
def test_a_table_lives_on_hdfs_as_on_local_disk(kind: str, version: str, hdfs: HdfsCluster, tmp_path: Path) -> None:
    settings = {**options(table_version=version), **SERVED, "hoodie.datasource.write.table.type": kind}
    there, here = life(hdfs.path(f"{kind}-{version}"), None, settings), life(tmp_path, None, settings)
    for (step, answer), (_, expected) in zip(there, here, strict=True):
        assert answer == expected, step


def test_log_files_are_written_merged_cleaned_and_rolled_back(hdfs: HdfsCluster) -> None:
    path, settings = hdfs.path("logs"), {**options(), "hoodie.datasource.write.table.type": "MERGE_ON_READ"}
    settings |= {"hoodie.clean.commits.retained": "1"}
    for ts in range(3):
        hf.write(plain_rows(range(6), ts=ts, text=f"{ts}-"), path, settings)
    table = hf.HudiTable.open(path)
    assert len(table.services.compact(options=settings).instants) == 1
    assert {row[2][:2] for row in table_rows(path).values()} == {"2-"}
    last = hf.write(plain_rows(range(6), ts=7, text="7-"), path, settings)
    hf.HudiTable.open(path).services.rollback(last.instant)
    hf.HudiTable.open(path).services.clean(options=settings)
    assert {row[2][:2] for row in table_rows(path).values()} == {"2-"}
    assert hf.HudiTable.open(path).services.validate().differences.num_rows == 0
    assert_tidy(path)


def test_a_rebuild_overwrites_its_table_again(hdfs: HdfsCluster) -> None:
    path = hdfs.path("replaced")
    for numbers in (range(3), range(5, 7)):
        hf.write(plain_rows(numbers), path, options(), "overwrite")
        assert table_rows(path).keys() == {f"k{number:05d}" for number in numbers}
    assert_tidy(path)


def test_a_table_goes_to_version_6_and_back(hdfs: HdfsCluster) -> None:
    path = hdfs.path("versions")
    for ts in (1, 2):
        hf.write(plain_rows(range(3), ts=ts), path, options())
    before = table_rows(path)
    table = hf.HudiTable.open(path)
    for version in (6, 9):
        table.services.upgrade(version)
        assert table_rows(path) == before
    assert_tidy(path)


def test_a_killed_writer_leaves_a_table_between_two_of_its_commits(hdfs: HdfsCluster) -> None:
    path = hdfs.path("killed")
    hf.write(plain_rows(range(12), ts=0), path, options())
    code = WRITER.format(path=sys.path, table=path)
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "1\n"
        writer.kill()
        told = [1, *map(int, writer.stdout.read().split())][-1]
    seen = {row[2].partition("-")[0] for row in table_rows(path).values()}
    assert seen in ({f"t{told}"}, {f"t{told + 1}"})
    hf.write(plain_rows(range(12), ts=10**6, text="z"), path, options())
    assert {row[2][0] for row in table_rows(path).values()} == {"z"}
    assert_tidy(path)


def test_a_data_node_that_ends_is_done_without(hdfs: HdfsCluster) -> None:
    path = hdfs.path("data-node")
    hf.write(plain_rows(range(12), ts=0), path, options())
    with hdfs.without_data_node():
        assert len(table_rows(path)) == 12
        hf.write(plain_rows(range(6, 20), ts=1), path, options())
        assert len(table_rows(path)) == 20
    assert_tidy(path)


def test_a_name_node_in_safe_mode_refuses_writes_in_words(hdfs: HdfsCluster) -> None:
    path = hdfs.path("safe")
    hf.write(plain_rows(range(3), ts=0), path, options())
    with hdfs.safe_mode():
        with pytest.raises((hf.HudiError, OSError), match="safe mode"):
            hf.write(plain_rows(range(9), ts=1), path, options())
        assert len(table_rows(path)) == 3
    hf.write(plain_rows(range(9), ts=1), path, options())
    assert len(table_rows(path)) == 9
    assert_tidy(path)


def test_a_user_who_may_not_write_is_told_so(hdfs: HdfsCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    path = hdfs.path("guarded")
    hf.write(plain_rows(range(3), ts=0), path, options())
    code = "import sys; sys.path[:0] = {!r}\nfrom tests.storage.test_storage_hdfs_tables import guarded; guarded({!r})"
    monkeypatch.setenv("HADOOP_USER_NAME", "stranger")
    done = subprocess.run([sys.executable, "-c", code.format(sys.path, path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Permission denied: user=stranger, access=WRITE" in done.stdout
    assert len(table_rows(path)) == 3
    hf.write(plain_rows(range(3), ts=1), path, options())
    assert_tidy(path)


def guarded(path: str) -> None:
    """In a process of another user: reads, and prints why it may not write."""
    assert len(table_rows(path)) == 3
    try:
        hf.write(plain_rows(range(9), ts=1), path, options())
    except (hf.HudiError, OSError) as error:
        print(type(error).__name__, error)


@pytest.mark.slow
def test_an_address_without_a_name_node_is_told_within_seconds() -> None:
    with pytest.raises(hf.StorageUnreachableError, match=r"HDFS cannot be used: .*refused.*Check the network, the add"):
        hf.HudiTable.open("hdfs://127.0.0.1:9/t", {"dfs.client.failover.max.attempts": "1"})


def test_viewfs_names_the_same_table(hdfs: HdfsCluster) -> None:
    mounts = {
        "fs.viewfs.mounttable.c.link./lake": hdfs.path("mounted"),
        "fs.viewfs.mounttable.c.linkFallback": hdfs.uri,
    }
    hf.write(plain_rows(range(3)), "viewfs://c/lake/t", options(), storage_options=mounts)
    hf.write(plain_rows(range(5)), hdfs.path("mounted/t"), options())
    found = hf.HudiTable.open("viewfs://c/lake/t", mounts).to_arrow(filter=pc.field("id") > "k00001")
    assert found.num_rows == 3


def test_a_small_write_takes_few_calls(hdfs: HdfsCluster) -> None:
    path = hdfs.path("calls")
    for ts in range(4):
        hf.write(plain_rows([1], ts=ts), path, options())
    before = hdfs.answered()
    hf.write(plain_rows([1], ts=9), path, options())
    assert hdfs.answered() - before <= CALLS
    assert [one.name for one in Storage(path).list_dir("")] == [".hoodie", "p1"]
