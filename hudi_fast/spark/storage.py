"""Storage of a session's tables: uses Spark's object store settings.

::

    storage_options of the call ──────────────────────────────┐
    options of a read or write: hudi_fast.storage.*, fs.s3a.* ─┼─► the first that is not empty ─► Storage
    settings of the session: fs.s3a.*                          ─┘

These settings are neither logged nor stored in the table.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from hudi_fast.storage.base import Storage
from hudi_fast.storage.places import scheme_of

__all__ = ["prefixed", "reached_by_spark", "split_options", "storage_of", "storage_settings"]

_PREFIX = "hudi_fast.storage."
_HADOOP = "fs.s3a."
_SESSION = "spark.hadoop."
_SETTINGS = (
    "access.key",
    "secret.key",
    "session.token",
    "endpoint",
    "endpoint.region",
    "path.style.access",
    "connection.ssl.enabled",
)
_S3 = ("s3", "s3a", "s3n")
_DEFAULTS = "core-default.xml"


def storage_of(spark: Any, path: str | os.PathLike[str], options: Mapping[str, Any] | None = None) -> Storage:
    """A table's storage with the settings of a session.

    Args:
        spark: the session.
        path: base path.
        options: storage options; None or empty for the session's settings.

    Raises:
        ConfigError: unknown storage, or a wrong option.
    """
    return Storage(path, options or storage_settings(spark, path))


def storage_settings(spark: Any, path: str | os.PathLike[str]) -> dict[str, str]:
    """A session's S3A settings for a path; settings of its bucket take precedence."""
    text = os.fspath(path) if isinstance(path, str | os.PathLike) else ""
    if scheme_of(text) not in _S3:
        return {}
    bucket = text.partition("://")[2].partition("/")[0]
    context = getattr(spark, "_jsc", None)
    hadoop = None if context is None else context.hadoopConfiguration()
    found = {}
    for name in _SETTINGS:
        for key in (f"{_HADOOP}bucket.{bucket}.{name}", f"{_HADOOP}{name}"):
            value = spark.conf.get(f"{_SESSION}{key}", None) if hadoop is None else _said(hadoop, key)
            if value:
                found[f"{_HADOOP}{name}"] = str(value)
                break
    return found


def split_options(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split the options of a read or write into other options and storage options."""
    own = {key: value for key, value in options.items() if not key.lower().startswith((_PREFIX, _HADOOP))}
    said = {key: value for key, value in options.items() if key not in own}
    return own, {key[len(_PREFIX) :] if key.lower().startswith(_PREFIX) else key: said[key] for key in said}


def prefixed(options: Mapping[str, Any]) -> dict[str, Any]:
    """Storage options as options of a read or write."""
    return {f"{_PREFIX}{key}": value for key, value in options.items()}


def reached_by_spark(spark: Any, storage: Storage) -> bool:
    """Whether Spark's own scan reaches the files: it supports the scheme, with the same settings."""
    if storage.is_local:
        return True
    machine = getattr(spark, "_jvm", None)
    if machine is None or dict(storage.options) != storage_settings(spark, storage.uri):
        return False
    try:
        configuration = spark._jsc.hadoopConfiguration()
        machine.org.apache.hadoop.fs.FileSystem.getFileSystemClass(scheme_of(storage.uri), configuration)
    except Exception:  # any failure to load it in Java
        return False
    return True


def _said(hadoop: Any, key: str) -> str | None:
    """Whether a setting differs from Hadoop's default."""
    sources = hadoop.getPropertySources(key)
    if sources is None or list(sources)[-1:] == [_DEFAULTS]:
        return None
    value = hadoop.get(key)
    return None if value is None else str(value)
