"""Settings of a session's Hadoop file systems, for :func:`hudi_fast.storage.hadoop_names.from_hadoop`.

::

    SET fs.s3a.*  ─► Hadoop's configuration of the session, as Spark's own reads use it ─► names of the table's scheme
    spark.hadoop.fs.s3a.*, core-site.xml ─┘                      └─► secrets from Hadoop's credential files (JCEKS)

Hadoop's own defaults are left out. A client of Spark Connect sees the settings ``spark.hadoop.*`` only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hudi_fast.spark.hadoop_settings import is_default
from hudi_fast.spark.session import is_classic, session_settings
from hudi_fast.storage.hadoop_names import counts, from_hadoop, scheme_prefixes, secret_names
from hudi_fast.storage.places import scheme_of

__all__ = ["file_system_options", "hadoop_setting"]

_SESSION = "spark.hadoop."
_SECRET_FILES = "hadoop.security.credential.provider.path"
_S3A_SECRET_FILES = "fs.s3a.security.credential.provider.path"


def hadoop_setting(spark: Any, name: str) -> str | None:
    """A setting as Spark's own reads and writes use it: by ``SET``, else of the session's Hadoop configuration."""
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
    """Secrets in Hadoop's credential files, which come before those in the settings."""
    files = [hadoop.get(name) for name in (_S3A_SECRET_FILES, _SECRET_FILES)]
    if not any(files):
        return {}
    copy = spark._jvm.org.apache.hadoop.conf.Configuration(hadoop)
    copy.set(_SECRET_FILES, ",".join(filter(None, files)))
    found = {}
    for name in secret_names(uri):
        characters = copy.getPassword(name)
        if characters is not None:
            found[name] = "".join(characters)
    return found
