"""A session's Hadoop settings and delegation tokens for HDFS, as storage options.

::

    spark.hadoop.*, core-site.xml, hdfs-site.xml ─► the session's Hadoop configuration ─► storage options ─► tasks
    Kerberos tickets of the driver ───────────────► delegation tokens ────────────────┘

Workers may have neither Hadoop's files nor tickets. On YARN they have a file of tokens
(``HADOOP_TOKEN_FILE_LOCATION``), which takes precedence.
"""

from __future__ import annotations

import base64
import contextlib
import time
from typing import Any
from urllib.parse import urlsplit

from hudi_fast.spark.jvm import java_class
from hudi_fast.storage.hdfs_options import TOKENS

__all__ = ["hdfs_settings", "is_default"]

_SESSION = "spark.hadoop."
_DEFAULTS = frozenset({"core-default.xml", "hdfs-default.xml"})
_NAMES = (
    "fs.defaultFS",
    "fs.permissions.umask-mode",
    "dfs.nameservices",
    "dfs.replication",
    "dfs.blocksize",
    "dfs.client.use.datanode.hostname",
    "dfs.client.socket-timeout",
    "dfs.data.transfer.protection",
    "hadoop.security.authentication",
    "hadoop.security.key.provider.path",
)
_PREFIXES = (
    "dfs.ha.namenodes.",
    "dfs.namenode.rpc-address.",
    "dfs.client.failover.",
    "dfs.client.block.write.replace-datanode-on-failure.",
    "fs.viewfs.mounttable.",
)
"""Settings of hdfs-native, and settings of :class:`~hudi_fast.storage.hdfs_options.HdfsOptions`."""

_TOKEN_SECONDS = 3600.0
"""Seconds after which new tokens are requested for a session; a NameNode accepts a token for a day by default."""

_tokens: dict[tuple[str, str], tuple[float, str]] = {}


def hdfs_settings(spark: Any, path: str) -> dict[str, str]:
    """Storage options for a path on HDFS: the session's settings that differ from Hadoop's defaults.

    Args:
        spark: the session. Spark Connect shows only what was set as ``spark.hadoop.*``, of :data:`_NAMES`, and the
            addresses of name services.
        path: ``hdfs://`` or ``viewfs://``.
    """
    context = getattr(spark, "_jsc", None)
    if context is None:
        return _connect_settings(spark)
    machine, hadoop = spark._jvm, context.hadoopConfiguration()
    with contextlib.suppress(Exception):  # loads hdfs-site.xml; a Spark without HDFS has no such class
        java_class(machine, "java.lang.Class").forName("org.apache.hadoop.hdfs.HdfsConfiguration")
    settings = {name: str(hadoop.get(name)) for name in _NAMES if not is_default(hadoop, name)}
    if "dfs.nameservices" in settings or path.lower().startswith("viewfs"):
        pattern = "|".join(prefix.replace(".", r"\.") for prefix in _PREFIXES)
        found = dict(hadoop.getValByRegex(f"^({pattern})"))
        settings |= {str(key): str(value) for key, value in found.items() if not is_default(hadoop, key)}
    if settings.get("hadoop.security.authentication", "simple").lower() == "kerberos":
        tokens = _delegation_tokens(spark, hadoop, path)
        settings |= {TOKENS: tokens} if tokens else {}
    return settings


def is_default(hadoop: Any, key: str) -> bool:
    """Whether a setting comes from Hadoop's own defaults, or is not set, for example after ``unset``."""
    if hadoop.get(key) is None:
        return True
    sources = hadoop.getPropertySources(key)
    return sources is None or set(list(sources)[-1:]) <= _DEFAULTS


def _connect_settings(spark: Any) -> dict[str, str]:
    def said(*keys: str) -> dict[str, str]:
        values = {key: spark.conf.get(f"{_SESSION}{key}", None) for key in keys}
        return {key: str(value) for key, value in values.items() if value}

    settings = said(*_NAMES)
    for service in settings.get("dfs.nameservices", "").split(","):
        nodes = said(f"dfs.ha.namenodes.{service.strip()}") if service.strip() else {}
        for names in list(nodes.values()):
            nodes |= said(*(f"dfs.namenode.rpc-address.{service.strip()}.{name.strip()}" for name in names.split(",")))
        settings |= nodes
    return settings


def _delegation_tokens(spark: Any, hadoop: Any, path: str) -> str:
    """Delegation tokens of the driver's user, also after a login with a keytab, in base64; "" without tokens."""
    key = str(spark.sparkContext.applicationId), urlsplit(path).netloc
    made, tokens = _tokens.get(key, (0.0, ""))
    if tokens and time.monotonic() - made < _TOKEN_SECONDS:
        return tokens
    machine = spark._jvm
    user = java_class(machine, "org.apache.hadoop.security.UserGroupInformation").getCurrentUser()
    credentials = java_class(machine, "org.apache.hadoop.security.Credentials")(user.getCredentials())
    with contextlib.suppress(Exception):  # no ticket: the session's tokens may suffice; if not, HDFS raises
        place = java_class(machine, "org.apache.hadoop.fs.Path")(path)
        place.getFileSystem(hadoop).addDelegationTokens(user.getShortUserName(), credentials)
    if not credentials.numberOfTokens():
        return ""
    output = java_class(machine, "java.io.ByteArrayOutputStream")()
    credentials.writeTokenStorageToStream(java_class(machine, "java.io.DataOutputStream")(output))
    tokens = base64.b64encode(bytes(output.toByteArray())).decode()
    _tokens[key] = time.monotonic(), tokens
    return tokens
