"""URIs of tables: normal form, scheme, and the file system behind them."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow.fs as pafs
import pytest

from hudi_fast.errors import ConfigError
from hudi_fast.storage.places import is_written, normal_uri, open_place, scheme_of


@pytest.mark.parametrize(
    ("uri", "normal"),
    [
        ("/data/t/", "/data/t"),
        ("/data/../t", "/t"),
        ("/", "/"),
        ("file:///data/a%20b/", "/data/a b"),
        ("file:/data/t", "/data/t"),
        ("s3://bucket/t//", "s3://bucket/t"),
        ("memory://t", "memory://t"),
    ],
)
def test_uris_have_one_normal_form(uri: str, normal: str) -> None:
    assert normal_uri(uri) == normal
    assert normal_uri(normal) == normal


def test_local_paths_are_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/me")
    assert normal_uri("t") == str(tmp_path / "t")
    assert normal_uri("~/t") == "/home/me/t"


def test_a_scheme_alone_is_refused() -> None:
    with pytest.raises(ConfigError, match="s3:///"):
        normal_uri("s3:///")


@pytest.mark.parametrize(
    ("uri", "meant"),
    [
        ("s3a:/bucket/t", "Write s3a://bucket/t; a local folder of that name is ./s3a:/bucket/t"),
        ("gs:bucket/t/", "Write gs://bucket/t;"),
        ("hdfs:/user/me/t", "Write hdfs://namenode/user/me/t;"),
        ("dbfs:/t", "Write /dbfs/t, where the cluster mounts it;"),
        ("file:t", "Write file:///t;"),
        ("FILE:t", "Write file:///t;"),
        ("file://data/t", "names the host 'data'. A local path has three slashes: file:///data/t."),
    ],
)
def test_half_a_scheme_is_not_a_local_folder(uri: str, meant: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(meant)):
        normal_uri(uri)


@pytest.mark.parametrize(
    "path", ["./a:b", "/data/s3a:/t", "a b/ü%20", "C:/t", "one/two:three", "file://localhost/data/t", ".hidden:t"]
)
def test_other_colons_are_part_of_a_local_path(path: str) -> None:
    assert normal_uri(path).startswith("/")


def test_schemes_are_in_small_letters_and_paths_are_files() -> None:
    assert [scheme_of(uri) for uri in ("S3A://b/t", "/data/t", "hdfs://n/t")] == ["s3a", "file", "hdfs"]


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("/t", True),
        ("s3n://b/t", True),
        ("gcs://b/t", True),
        ("wasbs://b/t", True),
        ("viewfs://n/t", True),
        ("ftp://n/t", False),
    ],
)
def test_tables_are_written_where_conditional_writes_exist(uri: str, expected: bool) -> None:
    assert is_written(uri) is expected


def test_a_local_path_has_no_object_store_and_no_options(tmp_path: Path) -> None:
    place = open_place(str(tmp_path), {})
    assert isinstance(place.fs, pafs.LocalFileSystem)
    assert (place.root, place.store) == (str(tmp_path), None)
    with pytest.raises(ConfigError, match=r"\['key'\]"):
        open_place(str(tmp_path), {"key": "x"})


def test_a_bucket_has_an_object_store(monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"aws_access_key_id": "a", "aws_secret_access_key": "b", "aws_region": "us-east-1"}
    place = open_place("s3a://bucket/a/t", options)
    assert place.root == "bucket/a/t"
    assert place.store is not None


@pytest.mark.parametrize(
    "uri", ["s3://key@bucket/t", "s3://host:9000/t", "s3://bucket/t?region=x", "s3://bucket/a//t", "s3://bucket/../t"]
)
def test_keys_hosts_parameters_and_empty_folders_are_refused(uri: str) -> None:
    with pytest.raises(ConfigError):
        open_place(uri, {"aws_region": "us-east-1"})


def test_other_schemes_are_those_of_fsspec() -> None:
    place = open_place("memory://folder/t", {})
    with place.fs.open_output_stream(f"{place.root}/file") as sink:
        sink.write(b"x")
    assert place.fs.get_file_info(f"{place.root}/file").size == 1
    assert place.store is None
    assert place.folders is not None
    with pytest.raises(ConfigError, match="nosuch"):
        open_place("nosuch://t", {})
