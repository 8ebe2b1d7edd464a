"""Options of HDFS: Hadoop's own settings, from storage options and from Hadoop's configuration files.

::

    storage options ──────────────────────────────┐
    core-site.xml, hdfs-site.xml of config_dir,   ├─► the first that has a setting ─► client
    HADOOP_CONF_DIR or HADOOP_HOME/etc/hadoop     ─┘

The client (hdfs-native) reads the same files. This module reads them for the settings that the client leaves to its
caller: ports, permissions, replication, block sizes, and the number of attempts per address.
"""

from __future__ import annotations

import os
import re
import socket
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from hudi_fast.errors import ConfigError
from hudi_fast.storage.option_names import timeout_of

__all__ = ["HADOOP_PREFIXES", "TOKENS", "HdfsOptions"]

HADOOP_PREFIXES = ("dfs.", "fs.", "hadoop.", "ipc.")
"""Prefixes of the names of Hadoop's settings."""

TOKENS = "delegation_tokens"
"""Option with the content of a file of delegation tokens, in base64: how a Spark driver gives them to its tasks."""

_OWN = ("config_dir", "kerberos_principal", "kerberos_keytab", "kerberos_cache", "timeout", TOKENS)
_PORT = 8020
_ATTEMPTS = ("dfs.client.failover.max.attempts", "4")
"""Attempts for an address without another NameNode to fail over to: some seconds in all."""

_SIZE = re.compile(r"(\d+)([kmgtpe]?)", re.IGNORECASE)
_REFERENCE = re.compile(r"\$\{([^}$ ]+)\}")


@dataclass(frozen=True, slots=True)
class HdfsOptions:
    """How to reach one HDFS, and how to create files there. Hashable, so that clients can be kept.

    Attributes:
        url: scheme and authority, with a port unless it is a name service; ``hdfs://`` for ``fs.defaultFS``.
        settings: Hadoop's settings from storage options, as (name, value) pairs.
        config_dir: folder of Hadoop's configuration files; None for the environment's.
        kerberos: principal, keytab and ticket cache; None for the environment's.
        tokens: delegation tokens in base64; "" for the tokens in ``HADOOP_TOKEN_FILE_LOCATION``.
        umask: permission bits that new files and folders lack.
        replication: copies of new files; None for the NameNode's default.
        block_size: bytes of a block of new files; None for the NameNode's default.
        name_nodes: addresses of NameNodes, host and port; empty if Hadoop's settings do not contain them.
        timeout: seconds to wait for the first answer of a NameNode.
    """

    url: str
    settings: tuple[tuple[str, str], ...]
    config_dir: str | None
    kerberos: tuple[str | None, str | None, str | None]
    tokens: str
    umask: int
    replication: int | None
    block_size: int | None
    name_nodes: tuple[str, ...]
    timeout: float

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    def url_by_ip(self) -> str:
        """The URL by which the client finds tokens: tokens of a single NameNode are for its IP address and port."""
        scheme, _, authority = self.url.partition("://")
        host, _, port = authority.partition(":")
        if scheme == "viewfs" or not port:
            return self.url
        try:
            return f"{scheme}://{socket.gethostbyname(host)}:{port}"
        except OSError:
            return self.url

    @classmethod
    def of(cls, options: Mapping[str, Any], uri: str) -> HdfsOptions:
        """Validate the options for a URI.

        Raises:
            ConfigError: an unknown name, a setting with an invalid value, or a keytab or tickets without a principal.
        """
        given = {name: str(value) for name, value in options.items() if value is not None and str(value)}
        for name in given:
            if name not in _OWN and not name.startswith(HADOOP_PREFIXES):
                raise ConfigError(
                    f"The storage option {name!r} is unknown for HDFS. Known are Hadoop's own settings, such as "
                    f"dfs.nameservices, and {', '.join(_OWN[:-1])}."
                )
        settings = {name: value for name, value in given.items() if name not in _OWN}
        config_dir = given.get("config_dir")
        if config_dir is not None and not os.path.isdir(config_dir):
            raise ConfigError(f"The storage option config_dir={config_dir} is not a folder on this machine.")
        for name in ("kerberos_keytab", "kerberos_cache"):
            if name in given and "kerberos_principal" not in given:
                raise ConfigError(f"The storage option {name} needs kerberos_principal, such as alice@EXAMPLE.COM.")
        known = {**_read_files(config_dir), **settings}
        url, single = _address(uri, known)
        if single and _ATTEMPTS[0] not in known:
            settings[_ATTEMPTS[0]] = _ATTEMPTS[1]
        return cls(
            url,
            tuple(sorted(settings.items())),
            config_dir,
            (given.get("kerberos_principal"), given.get("kerberos_keytab"), given.get("kerberos_cache")),
            given.get(TOKENS, ""),
            _umask(known.get("fs.permissions.umask-mode", "022")),
            _size("dfs.replication", known),
            _size("dfs.blocksize", known),
            _name_nodes(url, known),
            timeout_of(given),
        )


def _address(uri: str, known: Mapping[str, str]) -> tuple[str, bool]:
    """URL of the NameNodes, and whether it is a single one."""
    parts = urlsplit(uri)
    scheme, authority = parts.scheme.lower(), parts.netloc
    if not authority:
        default = urlsplit(known.get("fs.defaultFS", ""))
        if default.scheme != scheme or not default.netloc:
            raise ConfigError(
                f"{uri} names no NameNode, and fs.defaultFS is {known.get('fs.defaultFS', 'not set')!r}. Write "
                f"{scheme}://namenode{parts.path}, or set HADOOP_CONF_DIR to the folder of core-site.xml."
            )
        authority = default.netloc
    if scheme == "viewfs":
        return f"{scheme}://{authority}", False
    host, _, port = authority.rpartition("@")[2].partition(":")
    if not port and f"dfs.ha.namenodes.{host}" in known:
        return f"{scheme}://{host}", False
    if port and not (port.isdigit() and 0 < int(port) < 1 << 16):
        raise ConfigError(f"{uri} names the port {port!r} of a NameNode; expected a number up to 65535.")
    return f"{scheme}://{host}:{port or _PORT}", True


def _name_nodes(url: str, known: Mapping[str, str]) -> tuple[str, ...]:
    """Addresses of the NameNodes behind a URL; empty if the settings do not contain them."""
    scheme, _, authority = url.partition("://")
    if scheme == "viewfs":
        return ()
    host, _, port = authority.rpartition("@")[2].partition(":")
    if port:
        return (f"{host}:{port}",)
    names = known.get(f"dfs.ha.namenodes.{host}", "").split(",")
    found = (known.get(f"dfs.namenode.rpc-address.{host}.{name.strip()}") for name in names)
    return tuple(address for address in found if address and "$" not in address)


def _read_files(config_dir: str | None) -> dict[str, str]:
    home = os.environ.get("HADOOP_HOME")
    folder = config_dir or os.environ.get("HADOOP_CONF_DIR") or (home and f"{home}/etc/hadoop")
    found: dict[str, str] = {}
    for name in ("core-site.xml", "hdfs-site.xml") if folder else ():
        file = Path(str(folder), name)
        if not file.exists():
            continue
        try:
            properties = ElementTree.parse(file).getroot().iter("property")
        except (ElementTree.ParseError, OSError) as error:
            raise ConfigError(f"Hadoop's configuration file {file} cannot be read: {error}.") from error
        for one in properties:
            key, value = one.findtext("name"), one.findtext("value")
            if key and value:
                found[key.strip()] = value.strip()
    return {key: _REFERENCE.sub(lambda match: found.get(match[1], match[0]), value) for key, value in found.items()}


def _umask(text: str) -> int:
    try:
        return int(text, 8) & 0o777
    except ValueError:
        raise ConfigError(
            f"fs.permissions.umask-mode={text} is not supported; write it in octal digits, such as 022."
        ) from None


def _size(key: str, known: Mapping[str, str]) -> int | None:
    text = known.get(key)
    if text is None:
        return None
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ConfigError(f"{key}={text} is not a number.")
    return int(match[1]) << (10 * "kmgtpe".index(match[2].lower()) + 10 if match[2] else 0)
