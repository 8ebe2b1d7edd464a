"""Temporary credentials of S3 that expire: found anew where possible; else one clear error, and nothing lost.

The server is moto: versitygw knows no session tokens.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import hudi_fast as hf
from hudi_fast.storage.base import Storage
from hudi_fast.storage.conditional import ExpiredCredentialsError, has_expired
from tests.servers.http_faults import Faults, Weather
from tests.servers.s3 import ACCESS_KEY, REGION, SECRET_KEY, S3Server
from tests.support.small_tables import options, plain_rows, rows_of

OLD = plain_rows(range(10))
CHANGE = plain_rows(range(5, 15), ts=2, text="b")


def with_token(server: S3Server, watched: Faults, token: str) -> Mapping[str, str]:
    return {**server.options_at(watched.url), "session_token": token}


@pytest.mark.long("0.3", "0.55")
@pytest.mark.filterwarnings("ignore:The lock of .* could not be released")
@pytest.mark.parametrize("share", [0.8, *(pytest.param(share, marks=pytest.mark.long) for share in (0.0, 0.3, 0.55))])
def test_a_write_whose_token_expires_says_so_and_the_next_writer_goes_on(
    share: float, moto: S3Server, watched: Faults
) -> None:
    path = moto.path(f"expired-{share}")
    first, second = (with_token(moto, watched, one) for one in ("first", "second"))
    for table in (path, f"{path}-counted"):
        hf.write(OLD, table, options(), storage_options=first)
    watched.arm()
    hf.write(CHANGE, f"{path}-counted", options(), storage_options=first)
    requests = len(watched.asked)
    watched.arm(int(requests * share), "expired", lasts=10 * requests)
    with pytest.raises((hf.CommitError, PermissionError), match="expired") as caught:
        hf.write(CHANGE, path, options(), storage_options=first)
    assert not isinstance(caught.value, hf.CommitStateUnknownError)
    assert path in str(caught.value)
    assert "storage_options" in str(caught.value)
    assert len(watched.asked) < 2 * requests
    watched.arm()
    seen = rows_of(hf.HudiTable.open(path, second).to_arrow())
    assert {key: row[-1] for key, row in seen.items()} == {key: row[-1] for key, row in rows_of(OLD).items()}
    Storage(path, second).delete_files([".hoodie/.locks/table_lock.json"])  # its lease would end after five minutes
    hf.write(CHANGE, path, options(), storage_options=second)
    seen = rows_of(hf.HudiTable.open(path, second).to_arrow())
    expected = rows_of(OLD) | rows_of(CHANGE)
    assert {key: row[-1] for key, row in seen.items()} == {key: row[-1] for key, row in expected.items()}
    assert not [one for one in Storage(path, second).list_dir(".hoodie/.temp", recursive=True) if not one.is_dir]
    assert set(hf.HudiTable.open(path, second).history()["state"].to_pylist()) == {"COMPLETED"}


def test_every_access_says_that_the_token_has_expired(moto: S3Server, watched: Faults) -> None:
    path = moto.path("says")
    storage = Storage(path, with_token(moto, watched, "old"))
    storage.write_bytes("f", b"1" * (1 << 21))
    watched.weather = Weather(expired=frozenset({"old"}))
    calls = [
        lambda: storage.read_bytes("f"),
        lambda: storage.open_input("f"),
        lambda: storage.stat("f"),
        lambda: storage.has_file("f"),
        lambda: storage.list_dir(""),
        lambda: storage.write_bytes("f", b"2"),
        lambda: storage.create_exclusive("g", b"2"),
        lambda: storage.delete_files(["f"]),
        lambda: storage.delete_files(["f", "g"]),
    ]
    for call in calls:
        with pytest.raises(ExpiredCredentialsError, match=r"says.*storage_options"):
            call()
    with pytest.raises(OSError, match="ExpiredToken") as caught, storage.open_output("g") as sink:
        sink.write(b"1" * (1 << 23))
    assert has_expired(caught.value)
    watched.weather = Weather()
    assert storage.read_bytes("f")[:1] == b"1"


def write_credentials(file: Path, token: str) -> None:
    file.write_text(
        f"[default]\naws_access_key_id={ACCESS_KEY}\naws_secret_access_key={SECRET_KEY}\naws_session_token={token}\n"
    )


@pytest.fixture
def nothing_known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No credentials but those of a file that is still empty."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    file = tmp_path / "credentials"
    file.touch()
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    return file


def test_a_renewed_credentials_file_is_read_again(moto: S3Server, watched: Faults, nothing_known: Path) -> None:
    write_credentials(nothing_known, "first")
    storage = Storage(moto.path("renewed"), {"endpoint_url": watched.url, "region": REGION})
    storage.create_exclusive("f", b"1")
    watched.weather = Weather(expired=frozenset({"first"}))
    with pytest.raises(ExpiredCredentialsError):
        storage.write_bytes("f", b"2")
    write_credentials(nothing_known, "second")
    storage.write_bytes("f", b"2")
    storage.create_exclusive("g", b"2")
    assert storage.read_bytes("f") == b"2"
    watched.weather = Weather(expired=frozenset({"first", "second"}))
    write_credentials(nothing_known, "third")
    storage.create_exclusive("h", b"3")
    assert storage.has_file("h")


class Tokens(BaseHTTPRequestHandler):
    """What a container of Amazon's asks for its role's credentials: each answer is another token, soon over."""

    ends: dict[str, datetime]

    def do_GET(self) -> None:
        token, end = f"token-{len(self.ends)}", datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=8)
        self.ends[token] = end
        soon = end.strftime("%Y-%m-%dT%H:%M:%SZ")
        answer = {"AccessKeyId": ACCESS_KEY, "SecretAccessKey": SECRET_KEY, "Token": token, "Expiration": soon}
        content = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


def test_credentials_of_a_role_are_renewed_before_they_expire(
    moto: S3Server, watched: Faults, nothing_known: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends: dict[str, datetime] = {}
    handler = type("BoundTokens", (Tokens,), {"ends": ends})
    role = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=role.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"http://127.0.0.1:{role.server_port}/role")
    try:
        path, reach = moto.path("role"), {"endpoint_url": watched.url, "region": REGION}
        table = hf.HudiTable.create(path, plain_rows([]).schema, options(), storage_options=reach)
        first = set(ends)
        for ts in (1, 2, 3):
            table.upsert(plain_rows(range(10), ts=ts), options())
            time.sleep(4)
            watched.weather = Weather(expired=frozenset(token for token in ends if ends[token] < datetime.now(UTC)))
        assert first < watched.weather.expired
        assert rows_of(table.to_arrow()) == rows_of(plain_rows(range(10), ts=3))
    finally:
        role.shutdown()
        thread.join()
        role.server_close()
