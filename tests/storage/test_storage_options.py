"""Storage options: what they are called, what is wrong with them, and that nobody sees their values."""

from __future__ import annotations

import contextlib
import os
import pickle
import threading
import traceback
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import hudi_fast as hf
from hudi_fast.storage.azure import AzureOptions
from hudi_fast.storage.base import Storage
from hudi_fast.storage.gcs import GcsOptions
from hudi_fast.storage.option_names import StorageOptions
from hudi_fast.storage.s3_options import S3Options
from tests.servers.s3 import S3Server
from tests.support.small_tables import options, plain_rows

KEYS = {"access_key": "AKIA-SECRET-1", "secret_key": "hush-SECRET-2", "session_token": "SECRET-3"}


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("AWS_"):
            monkeypatch.delenv(name)


@pytest.mark.parametrize(
    "names",
    [
        ("access_key", "secret_key", "session_token", "region", "endpoint_url"),
        ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION", "AWS_ENDPOINT_URL"),
        ("key", "secret", "token", "region_name", "endpoint_override"),
        (
            "fs.s3a.access.key",
            "fs.s3a.secret.key",
            "fs.s3a.session.token",
            "fs.s3a.endpoint.region",
            "fs.s3a.endpoint",
        ),
    ],
    ids=["pyarrow", "environment", "s3fs", "hadoop"],
)
def test_names_of_other_libraries_mean_the_same(names: tuple[str, ...]) -> None:
    values = (*KEYS.values(), "eu-north-1", "https://s3.example.org:9000")
    assert S3Options.of(dict(zip(names, values, strict=True))) == S3Options(
        *KEYS.values(), region="eu-north-1", endpoint_url="https://s3.example.org:9000"
    )


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ({"endpoint": "minio:9000", "scheme": "http"}, "http://minio:9000"),
        ({"fs.s3a.endpoint": "minio:9000", "fs.s3a.connection.ssl.enabled": "false"}, "http://minio:9000"),
        ({"fs.s3a.endpoint": "s3.eu-north-1.amazonaws.com"}, "https://s3.eu-north-1.amazonaws.com"),
        ({}, None),
    ],
)
def test_a_server_may_be_named_without_its_scheme(given: dict[str, str], url: str | None) -> None:
    assert S3Options.of(given).endpoint_url == url


def test_the_environment_names_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    assert S3Options.of({}).endpoint_url == "http://127.0.0.1:9"
    assert S3Options.of({"endpoint_url": "http://127.0.0.1:8"}).endpoint_url == "http://127.0.0.1:8"


@pytest.mark.parametrize(
    ("path", "given", "said"),
    [
        ("s3://b/t", {"secret": "SECRET-1", "secret_key": "SECRET-2"}, "contradict each other"),
        ("s3://b/t", {"access_key": "SECRET-1"}, "both"),
        ("s3://b/t", {"colour": "SECRET-1"}, "'colour' is unknown"),
        ("s3://b/t", {"endpoint_url": "http://user:SECRET-1@host"}, "without a user"),
        ("s3://b/t", {"anonymous": "SECRET-1"}, "true or false"),
        ("s3://b/t", {"timeout": "SECRET-1"}, "number of seconds"),
        ("s3://b/t", {**KEYS, "role_arn": "r"}, "do not set access_key"),
        ("s3://key:SECRET-1@b/t", {}, "storage_options"),
        ("s3://b/t?access_key=SECRET-1", {}, "storage_options"),
        ("gs://b/t", {"colour": "SECRET-1"}, "'colour' is unknown"),
        ("gs://b/t?x", {}, "storage_options"),
        ("abfs://c/t", {}, "account_name"),
        ("abfs://c@a.dfs.core.windows.net/t", {"account_key": "SECRET-1", "sas_token": "SECRET-2"}, "Set only one"),
        ("/tmp/t", {"key": "SECRET-1"}, "not support storage options"),
        ("hdfs://names/t", {"user": "SECRET-1"}, "'user' is unknown for HDFS"),
        ("nosuch://b/t", {}, "fsspec has none"),
        ("s3://b/t", ["SECRET-1"], "a mapping of names to values"),
        ("s3://b//t", {}, "without empty folder names"),
        ("s3://b/../t", {}, "without empty folder names"),
        ("s3://", {}, "is not the path of a table"),
    ],
)
def test_wrong_options_are_refused_without_their_values(path: str, given: Any, said: str) -> None:
    with pytest.raises(hf.ConfigError, match=said) as caught:
        Storage(path, given)
    assert "SECRET" not in "".join(traceback.format_exception_only(caught.value))


def test_no_representation_shows_a_secret() -> None:
    secrets = {"account_key": "SECRET+4", "tenant_id": "t", "client_id": "c", "client_secret": "SECRET-5"}
    storage = Storage("s3://bucket/table", {**KEYS, "region": "eu-north-1"})
    shown = [
        storage,
        storage.conditional(),
        storage.options,
        vars(storage),
        S3Options.of(KEYS),
        AzureOptions.of(secrets, "account"),
        GcsOptions.of({"access_token": "SECRET-6"}),
        StorageOptions(KEYS),
        hf.sink("s3://bucket/table", options(), storage_options={**KEYS, "region": "eu-north-1"}),
    ]
    for one in shown:
        assert "SECRET" not in repr(one)
        assert "SECRET" not in str(one)
    assert dict(pickle.loads(pickle.dumps(storage)).options) == {**KEYS, "region": "eu-north-1"}


def test_failures_tell_no_secrets(s3_server: S3Server) -> None:
    if s3_server.kind == "moto":
        pytest.skip("moto lets everybody in; a server that refuses a wrong key is versitygw (Go builds it)")
    wrong = {**s3_server.options, "secret_key": "not-the-SECRET"}
    with pytest.raises((hf.HudiError, OSError)) as caught:
        hf.write(plain_rows(range(2)), s3_server.path("denied"), options(), storage_options=wrong)
    text = "".join(traceback.format_exception(caught.value))
    assert "SECRET" not in text
    assert "denied" in text
    nowhere = {**s3_server.options, "endpoint_url": "http://127.0.0.1:9", "timeout": "1"}
    with pytest.raises(OSError, match="did not write s3://"):
        Storage(s3_server.path("nowhere"), nowhere).write_bytes("f", b"")


# ---- servers that promise too much


class Forgetful(BaseHTTPRequestHandler):
    """Takes every write, whatever its condition."""

    protocol_version = "HTTP/1.1"
    written = 0

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        Forgetful.written += 1
        self.send_response(200)
        self.send_header("ETag", f'"{Forgetful.written}"')
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def forgetful() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Forgetful)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_server_that_ignores_conditions_is_found_out(forgetful: str) -> None:
    storage = Storage("s3://bucket/table", {**KEYS, "endpoint_url": forgetful, "region": "eu-north-1"})
    for write in (
        lambda: storage.create_exclusive("f", b"1"),
        lambda: storage.conditional().create("f", b"1"),
        lambda: storage.conditional().replace("f", b"1", '"0"'),
    ):
        with pytest.raises(hf.UnsupportedFeatureError, match=rf"{forgetful} ignores the header If-"):
            write()


# ---- what fsspec reaches


def test_a_table_that_was_copied_is_read_and_written_through_fsspec(tmp_path: Path) -> None:
    import fsspec

    hf.write(plain_rows(range(5)), tmp_path / "t", options())
    memory = fsspec.filesystem("memory")
    memory.put(str(tmp_path / "t"), "/lake/t", recursive=True)
    try:
        table = hf.HudiTable.open("memory://lake/t")
        assert table.to_arrow().num_rows == 5
        assert (table.upsert(plain_rows([1, 7]), options()).inserts, table.to_arrow().num_rows) == (1, 6)
    finally:
        with contextlib.suppress(FileNotFoundError):
            memory.rm("/lake", recursive=True)
