"""The first call to any store ends in time, in this process, with an error that says what to set.

Calls run in processes of their own: clients of stores have ended the process, and waited for minutes. A package is
missing there if importing it fails.
"""

from __future__ import annotations

import itertools
import json
import os
import pickle
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import hudi_fast as hf
from hudi_fast.storage import stores
from hudi_fast.storage.azure import AzureOptions
from hudi_fast.storage.base import Storage
from hudi_fast.storage.failures import explained_error
from hudi_fast.storage.gcs import GcsOptions
from hudi_fast.storage.s3_options import S3Options
from hudi_fast.storage.servers import Server
from hudi_fast.storage.stores import with_retries
from tests.servers.faulty_http import Answer, faulty_http

TIMEOUT = 2.0
LATE = TIMEOUT + 8  # the machine may be busy while packages are imported
KEY = "aGVsbG8="
S3 = {"access_key": "a", "secret_key": "b", "region": "us-east-1"}
ABFS = "abfs://c@account.dfs.core.windows.net/t"
NO_TOKENS = {"PATH": "/nowhere", "HOME": "/nowhere", "AZURE_CLIENT_ID": ""}

PROGRAM = """
import json, sys, time
uri, options, missing, answered = json.loads(sys.argv[1])
sys.modules.update(dict.fromkeys(missing))
if uri.startswith("http:"):
    import fsspec
    from fsspec.implementations.memory import MemoryFileSystem
    fsspec.register_implementation("http", MemoryFileSystem, clobber=True)
import hudi_fast as hf
if answered:
    from hudi_fast.storage.servers import Server
    Server("", (answered,), 1.0, "").answered()
began = time.monotonic()
try:
    hf.HudiTable.open(uri, options)
except Exception as error:
    print(json.dumps([type(error).__name__, isinstance(error, hf.HudiError), str(error), time.monotonic() - began]))
"""


@dataclass(frozen=True)
class Case:
    """A first call: ``PORT`` in the path and in options is that of the dead server; ``answered`` is a live one."""

    uri: str
    options: dict[str, str] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    store: str = ""
    answered: str = ""


URL = {"endpoint_url": "http://127.0.0.1:PORT"}
SERVERS = {
    "s3": Case("s3://b/t", {**S3, **URL}, store="S3"),
    "s3-no-boto3": Case("s3://b/t", {**S3, **URL}, ("boto3", "botocore"), "S3"),
    "s3-proxy": Case("s3://b/t", {**S3, "proxy_url": "http://127.0.0.1:PORT"}, ("boto3", "botocore"), "S3"),
    "gcs": Case("gs://b/t", {**URL, "anonymous": "true"}, store="Google Cloud Storage"),
    "azure": Case(ABFS, {**URL, "account_key": KEY}, store="Azure Blob Storage"),
    "azure-no-client": Case(ABFS, {**URL, "sas_token": "sig=1"}, ("azure.storage.blob",), "Azure Blob Storage"),
    "hdfs": Case("hdfs://127.0.0.1:PORT/t", store="HDFS"),
    "http": Case("http://127.0.0.1:PORT/t", store="http://127.0.0.1:PORT/t"),
}
NOBODY = {
    "azure": Case(ABFS, store="account_key"),
    "azure-no-client": Case(ABFS, missing=("azure.storage.blob", "azure.identity"), store="Azure Blob Storage"),
    "azure-no-client-no-token": Case(
        ABFS,
        missing=("azure.storage.blob", "azure.identity"),
        store="NoCredentials",
        answered="https://account.blob.core.windows.net",
    ),
    "gcs-no-client": Case("gs://b/t", missing=("google.cloud.storage",), store="hudi-fast[gcs]"),
    "unknown-scheme": Case("nosuch://b/t", store="nosuch"),
}


def started(case: Case, port: int, timeout: float = TIMEOUT) -> subprocess.Popen[str]:
    own = {} if case.uri.startswith(("http:", "nosuch:")) else {"timeout": str(timeout)}
    given = {name: value.replace("PORT", str(port)) for name, value in case.options.items()} | own
    order = [case.uri.replace("PORT", str(port)), given, case.missing, case.answered]
    command = [sys.executable, "-c", PROGRAM, json.dumps(order)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())


def environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AZURE_", "AWS_", "GOOGLE_"))}
    return {**kept, **NO_TOKENS, "GCE_METADATA_TIMEOUT": "1", "no_proxy": "127.0.0.1"}


def outcome(process: subprocess.Popen[str]) -> Any:
    said, failed = process.communicate(timeout=60)
    assert process.returncode == 0, failed[-500:]
    return json.loads(said.splitlines()[-1])


@pytest.fixture
def closed_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@pytest.fixture
def mute_port() -> Iterator[int]:
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen(64)
        yield int(mute.getsockname()[1])


@pytest.mark.slow
def test_a_dead_server_is_named_within_the_timeout(closed_port: int, mute_port: int) -> None:
    ports = {"closed": closed_port, "mute": mute_port}
    for batch in (list(SERVERS)[:4], list(SERVERS)[4:]):
        running = {
            (name, kind): started(SERVERS[name], port)
            for name in batch
            for kind, port in ports.items()
            if (name, kind) != ("http", "mute")  # fsspec's options have no timeout: it takes the default
        }
        for (name, kind), process in running.items():
            error, is_ours, text, seconds = outcome(process)
            case, port = SERVERS[name], str(ports[kind])
            assert (error, is_ours) == ("StorageUnreachableError", True), (name, kind, text)
            assert case.store.replace("PORT", port) in text, (name, kind, text)
            assert f"127.0.0.1:{port}" in text, (name, kind, text)
            assert "timeout" in text, (name, kind, text)
            assert seconds < LATE, (name, kind, seconds)


@pytest.mark.slow
def test_a_store_without_credentials_or_client_ends_no_process() -> None:
    running = {name: started(case, 1) for name, case in NOBODY.items()}
    for name, process in running.items():
        error, is_ours, text, seconds = outcome(process)
        assert is_ours, (name, error, text)
        assert NOBODY[name].store in text, (name, text)
        assert seconds < 15, (name, seconds)


@pytest.mark.parametrize(
    "address",
    [
        "nonsense",
        "ftp://host",
        "http://host:99999",
        "http://[::1",
        "http://user@host",
        "http://",
        "http://a b",
        "http://h?x",
    ],
)
def test_an_address_that_is_none_is_refused_by_name(address: str) -> None:
    calls = {
        "s3": lambda: S3Options.of({**S3, "endpoint_url": address}),
        "gs": lambda: GcsOptions.of({"endpoint_url": address}),
        "abfs": lambda: AzureOptions.of({"endpoint_url": address, "account_key": KEY}, "account"),
    }
    for name, call in calls.items():
        if (name, address) == ("s3", "nonsense"):  # a host: S3's scheme may be missing
            continue
        with pytest.raises(hf.ConfigError, match="endpoint_url must be"):
            call()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"account_key": "not base64!"}, "account_key must be in base64"),
        ({"endpoint_url": "http://127.0.0.1:1"}, "over https only"),
        ({"tenant_id": "t t", "client_id": "c", "client_secret": "SECRET"}, "tenant_id must be"),
        ({"tenant_id": "t"}, "needs tenant_id, client_id and client_secret"),
        ({"client_id": "c", "client_secret": "SECRET"}, "needs tenant_id, client_id and client_secret"),
        ({"account_key": KEY, "timeout": "soon"}, "timeout must be a number"),
        ({"account_key": KEY, "timeout": "0"}, "timeout must be a number"),
    ],
)
def test_what_azures_clients_do_not_survive_is_refused(options: dict[str, str], said: str) -> None:
    with pytest.raises(hf.ConfigError, match=said) as caught:
        AzureOptions.of(options, "account")
    assert "SECRET" not in str(caught.value)
    assert "not base64!" not in str(caught.value)


def test_a_managed_identity_needs_its_client_id_only() -> None:
    assert AzureOptions.of({"client_id": "c"}, "account").uses_tokens


def test_any_answer_counts_and_is_remembered() -> None:
    with faulty_http("http://127.0.0.1:1") as server:
        asked: list[str] = []

        def answer(name: str) -> Answer:
            asked.append(name)
            return Answer(404, b"", "text/plain")

        server.fault = answer
        for _ in range(2):
            Server("S3", (server.url,), TIMEOUT, "x", {}).require_answer()
        assert len(asked) == 1


@pytest.mark.slow
def test_one_of_several_addresses_has_to_answer(closed_port: int) -> None:
    with faulty_http("http://127.0.0.1:1") as server:
        server.fault = lambda name: Answer(404, b"", "text/plain")
        Server("HDFS", (f"http://127.0.0.1:{closed_port}", server.url), TIMEOUT, "x", {}).require_answer()
    with pytest.raises(hf.StorageUnreachableError, match="the settings"):
        Server("HDFS", (f"http://127.0.0.1:{closed_port}",), TIMEOUT, "the settings", {}).require_answer()


def test_a_place_that_nobody_knows_is_not_asked() -> None:
    Server("S3", (), TIMEOUT, "x", {}).require_answer()
    assert S3Options.of({"region": "us-iso-east-1", "anonymous": "true"}).server().urls == ()
    assert S3Options.of({"region": "cn-north-1", "anonymous": "true"}).server().urls == (
        "https://s3.cn-north-1.amazonaws.com.cn",
    )


def test_a_proxy_is_shown_without_its_password() -> None:
    server = S3Options.of({**S3, "proxy_url": "http://me:SECRET@proxy:3128"}).server()
    assert server.urls == ("http://proxy:3128",)
    assert "SECRET" not in repr(server)


@pytest.mark.parametrize(("seconds", "expected"), [(1.0, 1), (4.0, 3), (None, 4)])
def test_retries_end_before_the_timeout_of_the_options(
    seconds: float | None, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, calls = itertools.count(), list[int]()
    monkeypatch.setattr(stores.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(stores.time, "sleep", lambda seconds: None)

    def call() -> None:
        calls.append(1)
        raise hf.StorageUnreachableError("no answer", seconds)

    with pytest.raises(hf.StorageUnreachableError):
        with_retries(call)
    assert len(calls) == expected


def test_the_error_survives_a_process_boundary() -> None:
    error = pickle.loads(pickle.dumps(hf.StorageUnreachableError("no answer", 2.0)))
    assert (str(error), error.seconds) == ("no answer", 2.0)
    assert isinstance(error, OSError)
    assert not isinstance(error, PermissionError)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("x\0y", "NUL"),
        ("x\ud800", "not UTF-8"),
        ("a" * 300, "File name too long"),
        ("b/" * 3000, "File name too long"),
        ("circle/t", "symbolic links"),
    ],
    ids=["nul", "surrogate", "long-name", "long-path", "circle"],
)
def test_a_local_path_that_cannot_be_is_refused(tmp_path: Path, path: str, said: str) -> None:
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    with pytest.raises(hf.ConfigError, match=said) as caught:
        Storage(f"{tmp_path}/{path}")
    assert len(str(caught.value)) < 1000


def test_a_table_that_may_not_be_created_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow as pa

    def denied(self: Storage, path: str) -> None:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(Storage, "make_dir", denied)
    options = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}
    with pytest.raises(hf.StorageAccessError, match=re.escape(str(tmp_path / "t"))):
        hf.write(pa.table({"id": [1]}), tmp_path / "t", options)


def test_texts_of_pyarrow_without_an_answer_are_known() -> None:
    text = "AWS Error NETWORK_CONNECTION during HeadObject operation: curlCode: 7, Could not connect to server"
    assert isinstance(explained_error(OSError(text), "s3://b/t"), hf.StorageUnreachableError)
    assert isinstance(
        explained_error(OSError("AWS Error ACCESS_DENIED during X operation"), "s3://b/t"), PermissionError
    )
    assert explained_error(OSError("something else"), "s3://b/t") is None
    assert explained_error(hf.StorageUnreachableError(text), "s3://b/t") is None
