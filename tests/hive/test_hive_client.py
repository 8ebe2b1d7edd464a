"""Calls of a Hive metastore, and what happens to them on the way.

Modules: hudi_fast.hive.client.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hudi_fast.errors import ConfigError, UnsupportedFeatureError
from hudi_fast.hive.client import (
    HiveClient,
    UnknownCallError,
    hive_module,
    message_of,
    metastore_addresses,
    metastore_tls,
)
from tests.servers.certificates import make_certificates
from tests.servers.tcp_proxy import tcp_proxy, tls_proxy

NOWHERE = ("127.0.0.1", 1)
SITE = "<configuration><property><name>{}</name><value>{}</value></property></configuration>"


@pytest.fixture
def client(hive_metastore: Any) -> Iterator[HiveClient]:
    with contextlib.closing(HiveClient([NOWHERE, ("127.0.0.1", hive_metastore.port)], 10)) as made:
        yield made


def test_call_returns_a_struct(client: HiveClient) -> None:
    assert client.call("get_database", "default").name == "default"
    client.close()
    assert client.call("get_database", "default").name == "default"


def test_declared_exception_is_raised(client: HiveClient) -> None:
    with pytest.raises(hive_module().NoSuchObjectException) as caught:
        client.call("get_table", "default", "nothing")
    assert "nothing" in message_of(caught.value)


def test_no_answer_is_a_connection_error() -> None:
    with pytest.raises(ConnectionError, match=r"at 127\.0\.0\.1:1 did not answer get_database: ConnectionRefusedError"):
        HiveClient([NOWHERE], 1).call("get_database", "default")


def test_late_answer_is_not_read_by_the_next_call(hive_metastore: Any) -> None:
    with (
        tcp_proxy(hive_metastore.port) as proxy,
        contextlib.closing(HiveClient([("127.0.0.1", proxy.port)], 0.5)) as slow,
    ):
        assert slow.call("get_all_databases")
        proxy.silent = True
        with pytest.raises(ConnectionError, match="did not answer get_all_tables"):
            slow.call("get_all_tables", "default")
        proxy.silent = False
        time.sleep(0.1)
        assert slow.call("get_database", "default").name == "default"


def test_a_metastore_by_tls(hive_metastore: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = make_certificates(tmp_path / "certificates")
    monkeypatch.setenv("HIVE_CONF_DIR", str(tmp_path))
    told = SITE.format("hive.metastore.use.SSL", "true").replace("</configuration>", "")
    more = SITE.replace("<configuration>", "")

    def call(authority: Path, server: Path) -> Any:
        (tmp_path / "hive-site.xml").write_text(told + more.format("hive.metastore.truststore.path", authority))
        tls = metastore_tls()
        with tls_proxy(hive_metastore.port, server) as port:
            with contextlib.closing(HiveClient([("localhost", port)], 10, tls)) as made:
                return made.call("get_database", "default").name

    assert call(files.authority, files.server) == "default"
    for authority, server in ((files.stranger, files.server), (files.authority, files.elsewhere)):
        with pytest.raises(ConnectionError, match="SSLCertVerificationError"):
            call(authority, server)
    (tmp_path / "store.jks").write_bytes(b"\xfe\xed\xfe\xed")
    with pytest.raises(ConfigError, match=r"truststore\.path=.*store\.jks .*PEM"):
        call(tmp_path / "store.jks", files.server)


def test_unknown_method_has_an_error_of_its_own(client: HiveClient, monkeypatch: pytest.MonkeyPatch) -> None:
    service = hive_module().ThriftHiveMetastore
    monkeypatch.setattr(service, "thrift_services", [*service.thrift_services, "dance"])
    monkeypatch.setattr(service, "dance_args", service.get_all_databases_args, raising=False)
    monkeypatch.setattr(service, "dance_result", service.get_all_databases_result, raising=False)
    with pytest.raises(UnknownCallError, match="dance"):
        client.call("dance")
    assert client.call("get_all_databases")


def test_addresses_of_the_option_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hive-site.xml").write_text(SITE.format("hive.metastore.uris", "thrift://one:1, thrift://two"))
    monkeypatch.setenv("HIVE_CONF_DIR", str(tmp_path))
    assert metastore_addresses("thrift://three:3", "key", "A table") == [("three", 3)]
    assert metastore_addresses(None, "key", "A table") == [("one", 1), ("two", 9083)]


@pytest.mark.parametrize("uri", ["localhost:9083", "http://localhost:9083", "thrift://localhost:port"])
def test_address_of_another_form_is_refused(uri: str) -> None:
    with pytest.raises(ConfigError, match=r"hoodie\.x has .*; expected thrift://host:port"):
        metastore_addresses(uri, "hoodie.x", "A table")


def test_metastore_that_needs_authentication_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hive-site.xml").write_text(SITE.format("hive.metastore.sasl.enabled", "true"))
    monkeypatch.setenv("HIVE_CONF_DIR", str(tmp_path))
    with pytest.raises(UnsupportedFeatureError, match=r"A table .* with hive\.metastore\.sasl\.enabled=true"):
        metastore_addresses("thrift://one", "key", "A table")
