"""Addresses and settings of a Hive metastore: from options, else from ``hive-site.xml``.

Source: ``HiveConf`` of Apache Hive 2.3.
"""

from __future__ import annotations

import os
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from hudi_fast.errors import ConfigError, UnsupportedFeatureError

__all__ = ["metastore_addresses"]

_PORT = 9083
_URIS_KEY = "hive.metastore.uris"
_UNSUPPORTED = (
    "hive.metastore.sasl.enabled",
    "hive.metastore.use.SSL",
    "hive.metastore.thrift.compact.protocol.enabled",
    "hive.metastore.thrift.framed.transport.enabled",
)


def metastore_addresses(uris: str | None, key: str, user: str) -> list[tuple[str, int]]:
    """Hosts and ports of a metastore, in the order in which they are tried.

    Args:
        uris: ``thrift://host:port``, comma-separated; None or empty for those of ``hive-site.xml``.
        key: the option of ``uris``, for messages.
        user: what needs the metastore, for messages: "A lock".

    Raises:
        ConfigError: no metastore is given, or it is not ``thrift://host:port``.
        UnsupportedFeatureError: ``hive-site.xml`` requires authentication, encryption or another protocol.
    """
    site = _hive_site()
    for name in _UNSUPPORTED:
        if site.get(name, "").lower() == "true":
            raise UnsupportedFeatureError(
                f"{user} in a Hive metastore with {name}=true in hive-site.xml is not supported: hudi_fast connects "
                "without authentication and encryption, by the binary protocol."
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
