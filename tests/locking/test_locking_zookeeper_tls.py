"""A lock in ZooKeeper by TLS: certificates are checked on both sides.

Modules: hudi_fast.locking.zookeeper, hudi_fast.locking.zookeeper_session.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hudi_fast.config.concurrency_options import LockOptions
from hudi_fast.errors import ConfigError, UnsupportedFeatureError
from hudi_fast.locking.provider import open_provider
from hudi_fast.storage.base import Storage
from tests.locking.jvm_lock import peer_pyspark_jars
from tests.peer.client import PROJECT
from tests.servers.certificates import Certificates, make_certificates
from tests.servers.s3 import ServerError
from tests.servers.zookeeper import ZookeeperServer, start_zookeeper

Z = "hudi_fast.zookeeper."


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def secure(
    java: str, certificates: Certificates, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ZookeeperServer]:
    """A server with a port for TLS."""
    try:
        with start_zookeeper(peer_pyspark_jars(), tmp_path_factory.mktemp("zookeeper"), certificates) as server:
            yield server
    except ServerError as error:
        pytest.skip(str(error))


def settings(url: str, **more: Any) -> dict[str, Any]:
    return {
        "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.ZookeeperBasedLockProvider",
        "hoodie.write.lock.wait_time_ms_between_retry": "50",
        "hoodie.write.lock.zookeeper.url": url,
        "hoodie.write.lock.zookeeper.base_path": "/locks",
        "hoodie.write.lock.zookeeper.lock_key": "t",
        "hoodie.write.lock.zookeeper.connection_timeout_ms": "1500",
        **{f"{Z}{name.replace('_', '.')}": value for name, value in more.items()},
    }


def of_files(authority: Path, certificate: Path, **more: Any) -> dict[str, Any]:
    named = {"client_secure": "true", "ssl_trustStore_location": authority, "ssl_keyStore_location": certificate}
    return {name: str(value) for name, value in (named | more).items()}


def opened(given: dict[str, Any]) -> object:
    return open_provider(Storage("/nowhere"), LockOptions.from_options(given)).try_lock(0)


def attempts(*given: dict[str, Any]) -> list[str]:
    """How attempts to lock end."""
    command = [sys.executable, "-m", "tests.locking.lock_attempts", *map(json.dumps, given)]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout.splitlines()


def test_a_lock_is_held_where_both_sides_accept_the_other(secure: ZookeeperServer, certificates: Certificates) -> None:
    good, stranger = (of_files(one, certificates.client) for one in (certificates.authority, certificates.stranger))
    port = secure.secure_port
    outcomes = attempts(
        settings(f"localhost:{port}", **good),
        settings(f"127.0.0.1:{port}", **good),
        settings(f"localhost:{port}", **stranger),
        settings(f"localhost:{port}"),
    )
    assert outcomes[:2] == ["held", "held"]
    assert "cannot be reached by TLS" in outcomes[2]
    assert "cannot be reached within" in outcomes[3]


@contextlib.contextmanager
def handshakes(certificates: Certificates) -> Iterator[tuple[int, list[bool]]]:
    """A server with another host's certificate: its port, and for each connection whether the client accepted it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.elsewhere)
    accepted: list[bool] = []

    def serve() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            try:
                with connection, context.wrap_socket(connection, server_side=True) as secured:
                    accepted.append(secured.recv(1) != b"")
            except OSError:
                accepted.append(False)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=serve, daemon=True).start()
        yield listening.getsockname()[1], accepted
        listening.shutdown(socket.SHUT_RDWR)


@pytest.mark.slow
@pytest.mark.parametrize("verified", [True, False])
def test_a_certificate_of_another_host_counts_only_if_asked_for(certificates: Certificates, verified: bool) -> None:
    given = of_files(certificates.authority, certificates.client, ssl_hostnameVerification=str(verified).lower())
    with handshakes(certificates) as (port, accepted):
        assert "ZooKeeper at localhost" in attempts(settings(f"localhost:{port}", **given))[0]
    assert accepted
    assert any(accepted) is not verified


def test_what_does_not_fit_together_is_refused(certificates: Certificates, tmp_path: Path) -> None:
    wrong = tmp_path / "store.jks"
    wrong.write_bytes(b"\xfe\xed\xfe\xed" + bytes(40))
    for name, given in (
        ("trustStore", of_files(wrong, certificates.client)),
        ("keyStore", of_files(certificates.authority, wrong)),
    ):
        with pytest.raises(ConfigError, match=rf"{name}\.location={wrong} .*PEM.*keytool"):
            opened(settings("localhost:1", **given))
    with pytest.raises(ConfigError, match=r"client\.secure=true"):
        opened(settings("localhost:1", ssl_trustStore_location=str(certificates.authority)))
    with pytest.raises(UnsupportedFeatureError, match=r"hudi_fast\.zookeeper\.sasl\.client=true"):
        opened(settings("localhost:1", sasl_client="true"))


def test_the_password_of_a_key_is_shown_to_nobody(certificates: Certificates) -> None:
    given = of_files(certificates.authority, certificates.client, ssl_keyStore_password="hush-7716")
    options = LockOptions.from_options(settings("localhost:1", **given))
    assert "hush-7716" not in repr(options)
    assert options.zookeeper_key_password == "hush-7716"
