"""A table lives on an S3 server as it does on local disk: every step gives the same answer in both places."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import hudi_fast as hf
from hudi_fast.cli.main import cli
from hudi_fast.storage.base import Storage
from tests.servers.s3 import SECRET_KEY, S3Server
from tests.support.forks import in_children
from tests.support.small_tables import options, plain_rows

IN_STORAGE = "org.apache.hudi.client.transaction.lock.StorageBasedLockProvider"
SHARED = {
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.clean.failed.writes.policy": "LAZY",
}

SERVED = {
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.record.index.min.filegroup.count": "2",
    "hoodie.metadata.global.record.level.index.min.filegroup.count": "2",
    "hoodie.metadata.compact.max.delta.commits": "4",
    "hoodie.keep.min.commits": "3",
    "hoodie.keep.max.commits": "4",
    "hoodie.clean.commits.retained": "2",
}


def rows(table: hf.HudiTable, **query: Any) -> list[dict[str, Any]]:
    found = table.to_arrow(["id", "part", "ts", "text"], **query)
    return found.sort_by("id").to_pylist()


def life(path: str | Path, reach: Any, settings: dict[str, str]) -> Iterator[tuple[str, Any]]:
    """Steps of a table's life, and what came of each."""
    for turn in range(6):
        result = hf.write(plain_rows(range(turn * 3, turn * 3 + 10), ts=turn), path, settings, storage_options=reach)
        yield f"write {turn}", (result.inserts, result.updates, result.files_written)
    table = hf.HudiTable.open(path, reach)
    yield "rows", rows(table)
    writes = sorted(one for one, kind in done(table) if kind.endswith("commit"))
    yield "time travel", rows(table, as_of=writes[-2])
    yield "incremental", len(table.incremental(writes[-2]))
    where = pc.field("id") == "k00011"
    yield "update", hf.update(None, path, where, {"text": "'new'"}, settings, storage_options=reach).updates
    yield "delete", hf.delete(None, path, pc.field("id") == "k00012", settings, storage_options=reach).deletes
    yield "compact", len(table.services.compact(options=settings).instants) if "READ" in table.table_type else 0
    yield "cluster", table.services.cluster(options=settings).instant is not None
    yield "rows later", rows(table)
    yield "clean", table.services.clean(options=settings).files_deleted
    yield "archive", len(table.services.archive(options=settings).instants)
    kept = table.services.savepoint()
    yield "upsert", table.upsert(plain_rows([1, 2, 99], ts=50), settings).inserts
    table.services.restore(kept.instant)
    yield "restored", rows(table)
    yield "differences", table.services.validate().differences.num_rows
    replaced = {**settings, "hoodie.datasource.write.operation": "insert_overwrite_table"}
    yield "replaced", hf.write(plain_rows(range(4)), path, replaced, "overwrite", storage_options=reach).inserts
    yield "no partition", table.delete_partitions(["p1"], settings).operation
    yield "rows at last", rows(table)
    yield "kinds of actions", sorted(kind for _, kind in done(table))


def done(table: hf.HudiTable) -> list[tuple[str, str]]:
    found = table.history().filter(pc.field("state") == "COMPLETED")
    return list(zip(found["instant"].to_pylist(), found["action"].to_pylist(), strict=True))


@pytest.mark.parametrize(
    ("kind", "version"),
    [
        ("MERGE_ON_READ", "9"),
        pytest.param("COPY_ON_WRITE", "6", marks=pytest.mark.long),
        pytest.param("MERGE_ON_READ", "6", marks=pytest.mark.long),
        pytest.param("COPY_ON_WRITE", "9", marks=pytest.mark.long),
        pytest.param("MERGE_ON_READ", "8", marks=pytest.mark.long),
    ],
)
def test_a_table_lives_on_s3_as_on_local_disk(kind: str, version: str, s3_server: S3Server, tmp_path: Path) -> None:
    settings = {**options(table_version=version), **SERVED, "hoodie.datasource.write.table.type": kind}
    there, here = life(s3_server.path(f"{kind}-{version}"), s3_server.options, settings), life(tmp_path, None, settings)
    for (step, answer), (_, expected) in zip(there, here, strict=True):
        assert answer == expected, step
    storage = Storage(s3_server.path(f"{kind}-{version}"), s3_server.options)
    files = [one for one in storage.list_dir("", recursive=True) if not one.is_dir]
    assert not [one.path for one in files if SECRET_KEY.encode() in storage.read_bytes(one.path)]


def test_s3a_is_s3_and_plans_name_files_as_the_writer_did(s3_server: S3Server) -> None:
    path = s3_server.path("spelt").replace("s3://", "s3a://")
    hf.write(plain_rows(range(3)), path, options(), storage_options=s3_server.options)
    for spelt in ("s3", "s3a", "s3n", "S3"):
        assert hf.HudiTable.open(f"{spelt}{path[3:]}/", s3_server.options).to_arrow().num_rows == 3
    assert hf.HudiTable.open(path, s3_server.options).path == path


@pytest.mark.smoke
def test_save_modes_meet_a_table_that_is_there(s3_server: S3Server) -> None:
    path, reach = s3_server.path("replaced"), s3_server.options
    hf.write(plain_rows(range(3)), path, options(), "overwrite", storage_options=reach)
    hf.write(plain_rows([5]), path, options(ordering=None), "overwrite", storage_options=reach)
    table = hf.HudiTable.open(path, reach)
    assert table.to_arrow(["id"])["id"].to_pylist() == ["k00005"]
    assert table.config.ordering_fields == ()
    assert table.services.validate().differences.num_rows == 0
    table.upsert(plain_rows([5, 6], ts=0), options(ordering=None))
    assert table.to_arrow(["ts"]).sort_by("ts")["ts"].to_pylist() == [0, 0]
    with pytest.raises(hf.TableExistsError):
        hf.write(plain_rows(range(3)), path, options(), "errorifexists", storage_options=s3_server.options)
    assert hf.write(plain_rows(range(3)), path, options(), "ignore", storage_options=s3_server.options).instant == ""


def test_a_version_is_changed_unless_times_of_files_would_have_to_be(s3_server: S3Server) -> None:
    path = s3_server.path("versions")
    hf.write(plain_rows(range(3)), path, options(table_version="6"), storage_options=s3_server.options)
    table = hf.HudiTable.open(path, s3_server.options)
    table.services.upgrade(9)
    assert (table.version, table.to_arrow().num_rows) == (9, 3)
    with pytest.raises(hf.UnsupportedFeatureError, match="cannot go to version 6"):
        table.services.upgrade(6)
    assert (table.version, table.to_arrow().num_rows) == (9, 3)


def test_folders_are_there_as_long_as_something_is_in_them(s3_server: S3Server) -> None:
    storage = Storage(s3_server.path("folders"), s3_server.options)
    assert not storage.exists("")
    storage.write_bytes("a/b/c", b"1")
    storage.make_dir("empty/inner")
    assert [(one.path, one.is_dir) for one in storage.list_dir("")] == [("a", True), ("empty", True)]
    assert [one.path for one in storage.list_dir("", recursive=True)] == ["a", "a/b", "a/b/c", "empty", "empty/inner"]
    assert storage.exists("empty/inner")
    assert storage.list_dir("empty/inner") == []
    assert storage.list_dir("none") == []
    assert storage.stat("a/b") is not None
    assert storage.stat("a/b").is_dir
    assert storage.delete_dir("a")
    assert not storage.exists("a")
    assert not storage.delete_dir("a")
    assert storage.delete_dir("")
    assert storage.list_dir("", recursive=True) == []
    for call in (
        lambda: storage.move("a", "b"),
        lambda: storage.set_modified("a", 0),
        lambda: storage.exchange(storage),
    ):
        with pytest.raises(hf.UnsupportedFeatureError, match="object store"):
            call()


def test_a_failed_first_write_leaves_nothing(s3_server: S3Server) -> None:
    path = s3_server.path("nothing")
    bad = plain_rows(range(3)).set_column(0, "id", pa.array([None] * 3, pa.string()))
    with pytest.raises(hf.InvalidDataError):
        hf.write(bad, path, options(), storage_options=s3_server.options)
    assert Storage(path, s3_server.options).list_dir("", recursive=True) == []


def test_a_bootstrap_goes_to_s3_and_reads_from_it(s3_server: S3Server) -> None:
    source = Storage(s3_server.path("lake"), s3_server.options)
    for part in ("p0", "p1"):
        with source.open_output(f"part={part}/rows.parquet") as sink:
            pq.write_table(plain_rows(range(4)).drop_columns(["part"]), sink)
    path = s3_server.path("bootstrapped")
    result = hf.bootstrap(source.uri, path, options(), storage_options=s3_server.options)
    assert result is not None
    assert hf.HudiTable.open(path, s3_server.options).to_arrow().num_rows == 8
    with pytest.raises(hf.UnsupportedFeatureError, match="replaced"):
        hf.bootstrap(source.uri, path, options(), mode="overwrite", storage_options=s3_server.options)


def test_the_command_line_reaches_s3(s3_server: S3Server) -> None:
    path = s3_server.path("asked")
    hf.write(plain_rows(range(3)), path, options(), storage_options=s3_server.options)
    reach = [part for pair in s3_server.options.items() for part in ("--storage-option", "=".join(pair))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        answer = CliRunner().invoke(cli, [*reach, "read", path, "--json"], catch_exceptions=False)
        wrong = CliRunner().invoke(cli, ["--storage-option", "colour=scarlet", "info", path])
    assert answer.exit_code == 0
    assert answer.output.count('"id"') == 3
    assert isinstance(wrong.exception, hf.ConfigError)
    assert "'colour' is unknown" in str(wrong.exception)
    assert "scarlet" not in str(wrong.exception)


def test_children_of_fork_read_and_write_through_connections_of_their_own(s3_server: S3Server) -> None:
    path, reach = s3_server.path("forked"), s3_server.options
    hf.write(plain_rows(range(3)), path, options(), storage_options=reach)
    table = hf.HudiTable.open(path, reach)
    assert table.to_arrow().num_rows == 3

    def read_and_write() -> None:
        assert table.to_arrow().num_rows >= 3
        settings = {**options(), "hoodie.write.lock.provider": IN_STORAGE}
        again = {"hoodie.write.num.retries.on.conflict.failures": "10"}  # both add to one small file
        table.upsert(plain_rows([os.getpid()]), {**settings, **SHARED, **again})

    with in_children(2, read_and_write):
        for _ in range(5):
            assert table.to_arrow().num_rows >= 3
    assert table.to_arrow().num_rows == 5
