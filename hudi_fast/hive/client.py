"""A Hive metastore: its address and settings, and calls over Thrift.

::

    client.call("get_table", "db", "trips") ─► binary protocol ─► metastore ─► a Table, or a declared exception

``hive_metastore.thrift`` beside this module declares the calls and their structs; thriftpy2 makes the classes from it
when they are first needed. After a failure the connection is closed, and the next call connects to the first address
that accepts.

Addresses and settings of a Hive metastore: from options, else from ``hive-site.xml``.

Source: ``HiveConf`` of Apache Hive 2.3.
"""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

from hudi_fast.errors import ConfigError, UnsupportedFeatureError
from hudi_fast.storage.extras import import_extra
from hudi_fast.storage.forks import PerProcess, new_lock

__all__ = ["HiveClient", "UnknownCallError", "hive_module", "message_of", "metastore_addresses", "metastore_tls"]

_DECLARED = Path(__file__).with_name("hive_metastore.thrift")


class UnknownCallError(ConnectionError):
    """The metastore does not know the call."""


@cache
def hive_module() -> ModuleType:
    """The structs, enums and exceptions of ``hive_metastore.thrift``, as attributes.

    Raises:
        ConfigError: thriftpy2 is not installed.
    """
    thriftpy2 = import_extra("thriftpy2", "hive", "A Hive metastore")
    module: ModuleType = thriftpy2.load(str(_DECLARED), module_name="hudi_fast_hive_metastore_thrift")
    return module


def message_of(error: Exception) -> str:
    """The message of a declared exception."""
    return str(getattr(error, "message", None) or error)


class HiveClient:
    """A connection to the first metastore that accepts one. Thread-safe: calls are serialised.

    Args:
        addresses: hosts and ports.
        seconds: maximum wait for a connection, and for a response.
        tls: encryption, see :func:`~hudi_fast.hive.client.metastore_tls`; None for none.
    """

    def __init__(self, addresses: Sequence[tuple[str, int]], seconds: float, tls: ssl.SSLContext | None = None) -> None:
        self._addresses = tuple(addresses)
        self._tls = tls
        self._seconds = seconds
        self._mutex = new_lock()
        self._client: PerProcess[Any] = PerProcess()

    @property
    def name(self) -> str:
        """Hosts and ports, for messages."""
        return ",".join(f"{host}:{port}" for host, port in self._addresses)

    def call(self, method: str, *arguments: Any) -> Any:
        """Call a method of ``ThriftHiveMetastore``; its declared exceptions are raised unchanged.

        Args:
            method: its name.
            arguments: its arguments, in order.

        Returns:
            Its result; None for ``void``.

        Raises:
            ConfigError: thriftpy2 is not installed.
            UnknownCallError: the metastore does not have the method.
            ConnectionError: there was no answer, so it is unknown whether the call was executed.
        """
        types = hive_module()
        from thriftpy2.thrift import TApplicationException, TException

        with self._mutex:
            try:
                client = self._client.get() or self._client.set(self._connected(types))
                return getattr(client, method)(*arguments)
            except TApplicationException as error:  # the connection stays usable
                kind = UnknownCallError if error.type == TApplicationException.UNKNOWN_METHOD else ConnectionError
                raise kind(
                    f"The Hive metastore at {self.name} failed at {method}: {error.message or 'see its log'}."
                ) from error
            except (OSError, TException, EOFError, ValueError) as error:
                if isinstance(error, tuple(types.__thrift_meta__["exceptions"])):
                    raise
                self._disconnect()
                raise ConnectionError(
                    f"The Hive metastore at {self.name} did not answer {method}: {type(error).__name__} "
                    f"{message_of(error)}".rstrip()
                ) from error
            except BaseException:
                self._disconnect()  # the next call must not read the late response to this one
                raise

    def close(self) -> None:
        """Close the connection."""
        with self._mutex:
            self._disconnect()

    def _disconnect(self) -> None:
        client = self._client.get()
        self._client.set(None)
        if client is not None:
            with contextlib.suppress(OSError):
                client.close()

    def _connected(self, types: ModuleType) -> Any:
        from thriftpy2.protocol import TCyBinaryProtocol
        from thriftpy2.thrift import TClient
        from thriftpy2.transport import TCyBufferedTransport, TSocket

        for place, address in enumerate(self._addresses, 1):
            try:
                connection = self._open(address)
            except OSError:
                if place == len(self._addresses):
                    raise
                continue
            handle = TSocket(*address)
            handle.set_handle(connection)
            return TClient(types.ThriftHiveMetastore, TCyBinaryProtocol(TCyBufferedTransport(handle)))
        raise ConnectionError("no address")

    def _open(self, address: tuple[str, int]) -> socket.socket:
        connection = socket.create_connection(address, self._seconds)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._tls is None:
            return connection
        try:
            return self._tls.wrap_socket(connection, server_hostname=address[0])
        except BaseException:
            connection.close()
            raise


_PORT = 9083
_URIS_KEY = "hive.metastore.uris"
_TLS_KEY = "hive.metastore.use.SSL"
_AUTHORITIES_KEY = "hive.metastore.truststore.path"
_UNSUPPORTED = (
    "hive.metastore.sasl.enabled",
    "hive.metastore.thrift.compact.protocol.enabled",
    "hive.metastore.thrift.framed.transport.enabled",
)


def metastore_addresses(uris: str | None, key: str, user: str) -> list[tuple[str, int]]:
    """Hosts and ports of a metastore, in the order in which they are tried.

    Args:
        uris: ``thrift://host:port``, comma-separated; None or empty for the addresses in ``hive-site.xml``.
        key: the option of ``uris``, for messages.
        user: what needs the metastore, for messages: "A lock".

    Raises:
        ConfigError: no metastore is given, or it is not ``thrift://host:port``.
        UnsupportedFeatureError: ``hive-site.xml`` requires authentication or another protocol.
    """
    site = _hive_site()
    for name in _UNSUPPORTED:
        if site.get(name, "").lower() == "true":
            raise UnsupportedFeatureError(
                f"{user} in a Hive metastore with {name}=true in hive-site.xml is not supported: hudi_fast connects "
                "without authentication, by the binary protocol."
            )
    found = []
    for uri in filter(None, (each.strip() for each in (uris or site.get(_URIS_KEY, "")).split(","))):
        try:
            parts = urlsplit(uri)
            host, port = parts.hostname, parts.port
        except ValueError:
            host, port = None, None
        if host is None or parts.scheme != "thrift":
            raise ConfigError(f"{key} has {uri!r}; expected thrift://host:port.")
        found.append((host, port or _PORT))
    if not found:
        raise ConfigError(
            f"{user} in a Hive metastore needs {key}=thrift://host:port, or a hive-site.xml with {_URIS_KEY} in the "
            "folder HIVE_CONF_DIR."
        )
    return found


def metastore_tls() -> ssl.SSLContext | None:
    """How to connect if ``hive-site.xml`` has ``hive.metastore.use.SSL=true``; None without encryption.

    The metastore's certificate must name its host, and must be signed by an authority of the system, or by one of
    ``hive.metastore.truststore.path``, a PEM file here.

    Raises:
        ConfigError: the file cannot be used.
    """
    site = _hive_site()
    if site.get(_TLS_KEY, "").lower() != "true":
        return None
    path = site.get(_AUTHORITIES_KEY) or None
    try:
        return ssl.create_default_context(cafile=path)
    except OSError as error:  # ssl.SSLError is one
        raise ConfigError(
            f"{_AUTHORITIES_KEY}={path} cannot be used ({error}); expected a PEM file of certificates. Get them from a "
            "Java key store with keytool -exportcert -rfc."
        ) from error


def _hive_site() -> Mapping[str, str]:
    """The properties of ``hive-site.xml``; empty without the file."""
    folder = os.environ.get("HIVE_CONF_DIR")
    path = Path(folder, "hive-site.xml") if folder else None
    if path is None or not path.is_file():
        return {}
    try:
        root = ElementTree.parse(path).getroot()
    except ElementTree.ParseError as error:
        raise ConfigError(f"{path} is not valid XML: {error}.") from error
    return {(each.findtext("name") or "").strip(): (each.findtext("value") or "").strip() for each in root}
