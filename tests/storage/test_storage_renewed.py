"""Keys that pyarrow cannot renew: those of a role that is assumed with given keys, and of a service account of Google.

moto plays Amazon's servers; a small server plays Google's, which gives tokens.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pyarrow.fs as pafs
import pytest

import hudi_fast as hf
from hudi_fast.storage.base import Storage
from hudi_fast.storage.gcs import GcsOptions
from hudi_fast.storage.s3_options import S3Options
from hudi_fast.storage.servers import RenewedFiles
from tests.servers.faulty_http import Answer, faulty_http
from tests.servers.http_faults import http_faults
from tests.servers.s3 import REGION, S3Server, start_s3
from tests.support.small_tables import options, plain_rows, rows_of

ROLE = "arn:aws:iam::123456789012:role/lake"
HADOOP = "org.apache.hadoop.fs.s3a"


@pytest.fixture(scope="module")
def moto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    folder = tmp_path_factory.mktemp("moto")
    with start_s3(folder, folder, "moto") as server:
        yield server


def role_options(server: S3Server, sts: str) -> dict[str, str]:
    return {
        "fs.s3a.access.key": server.options["access_key"],
        "fs.s3a.secret.key": server.options["secret_key"],
        "fs.s3a.endpoint": server.url,
        "fs.s3a.endpoint.region": REGION,
        "fs.s3a.aws.credentials.provider": f"{HADOOP}.auth.AssumedRoleCredentialProvider",
        "fs.s3a.assumed.role.arn": ROLE,
        "fs.s3a.assumed.role.credentials.provider": f"{HADOOP}.SimpleAWSCredentialsProvider",
        "fs.s3a.assumed.role.sts.endpoint": sts,
        "fs.s3a.assumed.role.session.duration": "15m",
        "fs.s3a.assumed.role.external.id": "outside",
    }


def test_a_role_is_assumed_with_given_keys_by_both_clients(moto: S3Server) -> None:
    with http_faults(moto.url) as sts:
        reach, path = role_options(moto, sts.url), moto.path("role")
        hf.write(plain_rows(range(5)), path, options(), storage_options=reach)
        table = hf.HudiTable.open(path, reach)
        assert rows_of(table.to_arrow()) == rows_of(plain_rows(range(5)))
        assert {one for one in sts.asked if one.startswith("POST")} == {"POST /"}


def test_a_role_that_is_refused_says_so(moto: S3Server) -> None:
    denied = b"<ErrorResponse><Error><Code>AccessDenied</Code><Message>no</Message></Error></ErrorResponse>"
    with faulty_http(moto.url) as sts:
        sts.fault = lambda name: Answer(403, denied, "text/xml")
        storage = Storage(moto.path("refused"), role_options(moto, sts.url))
        for call in (lambda: storage.list_dir(""), lambda: storage.write_bytes("f", b"1")):
            with pytest.raises(PermissionError, match=r"lake.*AccessDenied"):
                call()


def test_new_keys_make_a_new_file_system() -> None:
    keys = iter(["a", "a", "b"])
    files = RenewedFiles(lambda: next(keys), lambda key: pafs.LocalFileSystem(use_mmap=key == "b"))
    first = files()
    assert files() is first
    assert files() is not first
    made = S3Options.of({"role_arn": ROLE, "region": REGION})
    assert made._renewed_keys() is None  # pyarrow assumes it, and renews it


class Tokens(BaseHTTPRequestHandler):
    """Google's server of tokens: each is another one, and is over soon."""

    given: list[str]

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.given.append(f"token-{len(self.given)}")
        content = json.dumps({"access_token": self.given[-1], "expires_in": 300, "token_type": "Bearer"}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


def test_a_key_file_of_google_gives_tokens_to_both_clients(tmp_path: Path) -> None:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    given: list[str] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("BoundTokens", (Tokens,), {"given": given}))
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    private = rsa.generate_private_key(public_exponent=65537, key_size=2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file = tmp_path / "key.json"
    key = {"type": "service_account", "client_email": "a@b", "private_key": private.decode(), "project_id": "p"}
    file.write_text(json.dumps({**key, "token_uri": f"http://127.0.0.1:{server.server_port}/token"}))
    try:
        chosen = GcsOptions.of({"service_account_file": str(file)})
        chosen.server().answered()
        files = chosen.files()
        assert files() is not files()  # each token is over within ten minutes
        assert given == ["token-0", "token-1"]
        assert chosen.client().project == "p"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    broken = tmp_path / "broken.json"
    broken.write_text('{"private_key": "SECRET"}')
    for name, said in ((str(broken), "not the JSON of a key"), (str(tmp_path / "none"), "No such file")):
        with pytest.raises(hf.ConfigError, match=said) as caught:
            Storage("gs://b/t", {"service_account_file": name}).list_dir("")
        assert "SECRET" not in str(caught.value)


def test_clients_of_one_process_share_the_descriptions_of_services(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    kinds = S3Options.of({"region": REGION}), S3Options.of({"region": REGION, "role_arn": ROLE})
    loaders = {id(kind.session()._session.get_component("data_loader")) for kind in (*kinds, *kinds)}
    assert len(loaders) == 1
