"""Storage of a session's tables, with its Hadoop settings and tokens.

Storage of a session's tables: uses Spark's settings of object stores and HDFS.

::

    storage_options of the call ───────────────────────────────────┐
    options of a read or write: hudi_fast.storage.*, fs.s3a.* ... ─┼─► the first that is not empty ─► Storage
    settings of the session: of its file systems ──────────────────┘

These settings are neither logged nor stored in the table.

A session's Hadoop settings and delegation tokens for HDFS, as storage options.

::

    spark.hadoop.*, core-site.xml, hdfs-site.xml ─► the session's Hadoop configuration ─► storage options ─► tasks
    Kerberos tickets of the driver ───────────────► delegation tokens ────────────────┘

Workers may have neither Hadoop's files nor tickets. On YARN they have a file of tokens
(``HADOOP_TOKEN_FILE_LOCATION``), which takes precedence.
"""

from __future__ import annotations

import base64
import contextlib
import os
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import pyspark

from hudi_fast.errors import UnsupportedFeatureError
from hudi_fast.formats.parquet.encryption import FACTORY, JAVA_CLIENT, SETTINGS
from hudi_fast.spark.jvm import java_class
from hudi_fast.spark.session import is_classic, require_pyspark, require_worker_python, session_settings
from hudi_fast.storage.base import Storage
from hudi_fast.storage.hadoop_options import HADOOP_PREFIXES, TOKENS, counts, from_hadoop, scheme_prefixes, secret_names
from hudi_fast.storage.option_names import is_encryption
from hudi_fast.storage.places import is_written, scheme_of

__all__ = [
    "file_system_options",
    "hdfs_settings",
    "is_default",
    "prefixed",
    "reached_by_spark",
    "session_path",
    "spark_uri",
    "split_options",
    "storage_of",
    "storage_settings",
]

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
"""Settings of hdfs-native, and settings of :class:`~hudi_fast.storage.hadoop_options.HdfsOptions`."""

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


_PREFIX = "hudi_fast.storage."
_REDACTED = ".hidden_secret"
"""End of a key, which ``spark.redaction.regex`` matches by default."""

_FILE_SYSTEM = "fs.defaultFS"
_HDFS = ("hdfs", "viewfs")


def storage_of(spark: Any, path: str | os.PathLike[str], options: Mapping[str, Any] | None = None) -> Storage:
    """A table's storage with the settings of a session.

    Args:
        spark: the session.
        path: base path.
        options: storage options; None or empty for the session's settings.

    Raises:
        ConfigError: unknown storage, a wrong option, or workers on this machine lack hudi_fast.
        UnsupportedFeatureError: the session's default file system, for a path without a scheme.
    """
    require_pyspark(pyspark.__version__)
    require_worker_python(spark)
    place = session_path(spark, os.fspath(path)) if isinstance(path, str | os.PathLike) else path
    if isinstance(place, str) and scheme_of(place) == "memory":
        raise UnsupportedFeatureError(f"{place} is in the memory of one process, which Spark's tasks do not see.")
    return Storage(place, {**_encryption(spark), **options} if options else storage_settings(spark, place))


def session_path(spark: Any, path: str) -> str:
    """The path; one without a scheme belongs to the session's default file system (``fs.defaultFS``).

    Raises:
        UnsupportedFeatureError: hudi_fast does not support that file system.
    """
    if not path or urlsplit(path).scheme:
        return path
    base = _hadoop_setting(spark, _FILE_SYSTEM) or "file:///"
    if urlsplit(base).scheme in ("", "file"):
        return path
    if not is_written(base):
        raise UnsupportedFeatureError(
            f"The path {path!r} means {base.rstrip('/')}{path} to this session (fs.defaultFS), where tables are not "
            f"supported yet. A local folder is file://{path}."
        )
    return f"{base.rstrip('/')}/{path.lstrip('/')}"


def spark_uri(storage: Storage, path: str = "") -> str:
    """A path of a table for Spark; a local path has its scheme, because ``fs.defaultFS`` may be another file system."""
    storage.fs_path(path)  # checks what the JVM would follow: links
    uri = storage.absolute(path)
    return f"file://{uri}" if storage.is_local and uri.startswith("/") else uri


def storage_settings(spark: Any, path: str | os.PathLike[str]) -> dict[str, str]:
    """A session's settings of the file system of a path, and of encryption, as storage options.

    Raises:
        UnsupportedFeatureError: a setting whose effect hudi_fast cannot have.
        ConfigError: settings contradict each other or are incomplete.
    """
    text = os.fspath(path) if isinstance(path, str | os.PathLike) else ""
    found = hdfs_settings(spark, text) if scheme_of(text) in _HDFS else file_system_options(spark, text)
    return found | _encryption(spark)


def _encryption(spark: Any) -> dict[str, str]:
    """A session's settings of Parquet's encryption; empty unless they enable it."""
    if not _hadoop_setting(spark, FACTORY):
        return {}
    return {name: text for name in SETTINGS if (text := _hadoop_setting(spark, name)) is not None}


def split_options(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split the options of a read or write into other options and storage options."""
    own = {
        key: value
        for key, value in options.items()
        if not (key.lower().startswith((_PREFIX, *HADOOP_PREFIXES)) or is_encryption(key))
    }
    said = {key: value for key, value in options.items() if key not in own}
    return own, {_plain(key): value for key, value in said.items()}


def prefixed(options: Mapping[str, Any]) -> dict[str, Any]:
    """Storage options as options of a read or write; Spark's plans show none of their values."""
    return {f"{_PREFIX}{key}{_REDACTED}": value for key, value in options.items()}


def _plain(key: str) -> str:
    if not key.lower().startswith(_PREFIX):
        return key
    name = key[len(_PREFIX) :]
    return name[: -len(_REDACTED)] if name.lower().endswith(_REDACTED) else name


def reached_by_spark(spark: Any, storage: Storage) -> bool:
    """Whether Spark's own scan reaches the files: it supports the scheme, with the same settings and keys."""
    secret = {name: value for name, value in storage.options.items() if is_encryption(name)}
    if secret and (secret != _encryption(spark) or not secret.get(JAVA_CLIENT)):
        return False
    if storage.is_local:
        return True
    machine = getattr(spark, "_jvm", None)
    if machine is None or _settings(storage.options) != _settings(storage_settings(spark, storage.uri)):
        return False
    try:
        configuration = spark._jsc.hadoopConfiguration()
        file_systems = java_class(machine, "org.apache.hadoop.fs.FileSystem")
        file_systems.getFileSystemClass(scheme_of(storage.uri), configuration)
    except Exception:  # any failure to load it in Java
        return False
    return True


def _settings(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options without tokens, which are renewed."""
    return {key: value for key, value in options.items() if key != TOKENS}


# ---- settings of a session's Hadoop file systems, for :func:`hudi_fast.storage.hadoop_options.from_hadoop`
#
# ::
#
#     SET fs.s3a.*  ─► Hadoop's configuration of the session, as Spark's own reads use it ─► names of the table's scheme
#     spark.hadoop.fs.s3a.*, core-site.xml ─┘                      └─► secrets from Hadoop's credential files (JCEKS)
#
# Hadoop's own defaults are left out. A client of Spark Connect sees the settings ``spark.hadoop.*`` only.


_SECRET_FILES = "hadoop.security.credential.provider.path"
_S3A_SECRET_FILES = "fs.s3a.security.credential.provider.path"


def _hadoop_setting(spark: Any, name: str) -> str | None:
    """A setting as Spark's own reads and writes use it: from ``SET``, else from the session's Hadoop configuration."""
    value = spark.conf.get(name, None)
    if value is None and is_classic(spark):
        value = spark._jsc.hadoopConfiguration().get(name)
    elif value is None:
        value = spark.conf.get(f"{_SESSION}{name}", None)
    return None if value is None else str(value)


def file_system_options(spark: Any, uri: str) -> dict[str, str]:
    """The storage options that a session's settings mean for a table.

    Args:
        spark: the session.
        uri: base path of the table, with its scheme.

    Raises:
        UnsupportedFeatureError: a setting whose effect hudi_fast cannot have.
        ConfigError: settings contradict each other or are incomplete.
    """
    prefixes = scheme_prefixes(scheme_of(uri))
    if not prefixes:
        return {}
    found = _of_java(spark, prefixes, uri) if is_classic(spark) else _of_connect(spark, prefixes)
    return from_hadoop(uri, found, others=False)


def _of_connect(spark: Any, prefixes: tuple[str, ...]) -> Mapping[str, str]:
    every = {name.removeprefix(_SESSION): value for name, value in session_settings(spark).items()}
    return {name: value for name, value in every.items() if name.startswith(prefixes)}


def _of_java(spark: Any, prefixes: tuple[str, ...], uri: str) -> Mapping[str, str]:
    hadoop = spark._jsparkSession.sessionState().newHadoopConf()
    found: dict[str, str] = {}
    for prefix in prefixes:
        settings = hadoop.getPropsWithPrefix(prefix)
        for rest in filter(None, str(settings.keySet().toString())[1:-1].split(", ")):
            name = f"{prefix}{rest}"
            if counts(name) and not is_default(hadoop, name):
                found[name] = str(settings.get(rest))
    return {**found, **_secrets(spark, hadoop, uri)}


def _secrets(spark: Any, hadoop: Any, uri: str) -> dict[str, str]:
    """Secrets in Hadoop's credential files, which take precedence over the settings."""
    files = [hadoop.get(name) for name in (_S3A_SECRET_FILES, _SECRET_FILES)]
    if not any(files):
        return {}
    copy = java_class(spark._jvm, "org.apache.hadoop.conf.Configuration")(hadoop)
    copy.set(_SECRET_FILES, ",".join(filter(None, files)))
    found = {}
    for name in secret_names(uri):
        characters = copy.getPassword(name)
        if characters is not None:
            found[name] = "".join(characters)
    return found
