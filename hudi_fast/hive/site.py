"""Addresses and settings of a Hive metastore: from options, else from ``hive-site.xml``.

Source: ``HiveConf`` of Apache Hive 2.3.
"""

from __future__ import annotations

import os
import ssl
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from hudi_fast.errors import ConfigError, UnsupportedFeatureError

__all__ = ["metastore_addresses", "metastore_tls"]

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
