"""The file system of a table, from a URI and storage options.

::

    no scheme, file://        local                                            read, written
    s3:// s3a:// s3n://       Amazon S3 and compatible servers                 read, written (boto3)
    gs:// gcs://              Google Cloud Storage                             read, written (google-cloud-storage)
    abfs[s]:// wasb[s]:// az://   Azure Blob Storage                           read, written (azure-storage-blob)
    hdfs:// viewfs://         Hadoop                                           read, written (hdfs-native)
    any other that fsspec supports                                             read, written (see fsspec_store)

Writing tables requires a storage that can create a file on the condition that it does not exist yet.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow.fs as pafs

from hudi_fast.errors import ConfigError, StorageAccessError, StorageUnreachableError
from hudi_fast.storage.extras import import_extra
from hudi_fast.storage.hadoop_options import HADOOP_PREFIXES, from_hadoop
from hudi_fast.storage.local_store import LocalStore
from hudi_fast.storage.option_names import TIMEOUT, checked_url, is_true
from hudi_fast.storage.servers import RenewedFiles
from hudi_fast.storage.stores import FolderStore, ObjectStore
from hudi_fast.values import dataclass

__all__ = ["Place", "is_written", "normal_uri", "open_place", "scheme_of"]


_SINGLE_WRITER = "single_writer"
"""Storage option of file systems of fsspec."""

_HALF_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")
"""One letter is a drive of Windows."""


_MAX_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Place:
    """Access to a table's files.

    Attributes:
        fs: reads and lists files, and streams into new ones; or a function that returns it, if it is made on first use
            or renewed.
        root: the base path, as ``fs`` names it.
        store: writes whole objects; None for file systems.
        folders: writes files and folders; None for object stores.
    """

    fs: pafs.FileSystem | RenewedFiles
    root: str
    store: ObjectStore | None = None
    folders: FolderStore | None = None


def normal_uri(uri: str) -> str:
    """Make a local path absolute; strip trailing slashes from any other URI.

    Raises:
        ConfigError: the URI is a scheme only, has a scheme without ``//``, is a ``file://`` URI of another host, or has
            a name that is invalid on every file system.
    """
    if "\0" in uri or _is_no_utf8(uri):
        raise ConfigError(f"{uri!r} is not the path of a table: it holds a NUL character or is not UTF-8.")
    if "://" not in uri:
        if uri.startswith("file:/"):
            return unquote(uri[len("file:") :]).rstrip("/") or "/"
        if found := _HALF_SCHEME.match(uri):
            raise _half_scheme(uri, found[1], uri[found.end() :])
        return os.path.abspath(os.path.expanduser(uri)).rstrip("/") or "/"
    if scheme_of(uri) == "file":
        parts = urlsplit(uri)
        if parts.netloc not in ("", "localhost"):
            raise ConfigError(
                f"{uri} names the host {parts.netloc!r}. A local path has three slashes: "
                f"file:///{parts.netloc}{parts.path}."
            )
        return unquote(parts.path).rstrip("/") or "/"
    if not uri.partition("://")[2].strip("/"):
        raise ConfigError(f"{uri} is not the path of a table: it consists of a scheme only.")
    return uri.rstrip("/")


def _is_no_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _half_scheme(uri: str, scheme: str, rest: str) -> ConfigError:
    """The error for a scheme that is not followed by ``//``: as a local path it would be a folder of that name."""
    folder = rest.strip("/")
    meant = {
        "dbfs": f"/dbfs/{folder}, where the cluster mounts it",
        "file": f"file:///{folder}",
        "hdfs": f"hdfs://namenode/{folder}",
        "viewfs": f"viewfs://cluster/{folder}",
    }.get(scheme.lower(), f"{scheme}://{folder}")
    return ConfigError(f"{uri} is not the path of a table. Write {meant}; a local folder of that name is ./{uri}.")


def scheme_of(uri: str) -> str:
    """The scheme in lower case; ``file`` for a path without one."""
    return uri.partition("://")[0].lower() if "://" in uri else "file"


def is_written(uri: str) -> bool:
    """Whether tables can be written to a URI."""
    return scheme_of(uri) in ("file", *_OPENERS)


def open_place(uri: str, options: Mapping[str, Any]) -> Place:
    """The file system of a normalised URI.

    Raises:
        ConfigError: the file system does not exist or rejects these options.
    """
    scheme = scheme_of(uri)
    if scheme == "file":
        if options:
            raise ConfigError(f"Local paths do not support storage options; got {sorted(options)} for {uri}.")
        _check_local(uri)
        local = pafs.LocalFileSystem()
        return Place(local, uri, folders=LocalStore(local))
    opener = _OPENERS.get(scheme)
    if opener is not None:
        return opener(uri, _plain(uri, options))
    return _by_fsspec(uri, options)


def _check_local(path: str) -> None:
    """Refuse a path that cannot be looked up.

    Raises:
        ConfigError: it is too long, or its links form a circle.
        StorageAccessError: a folder above it cannot be searched.
    """
    try:
        os.stat(path)
    except PermissionError as error:
        raise StorageAccessError(
            f"{path} cannot be reached: {error.strerror}. This user needs the right to search the folders above it."
        ) from error
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        shown = path if len(path) <= _MAX_SHOWN else f"{path[:_MAX_SHOWN]}..."
        raise ConfigError(f"{shown} cannot be the path of a table: {error.strerror}.") from error


def _plain(uri: str, options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Options, with names of Hadoop's settings replaced."""
    hadoop = {name.lower(): value for name, value in options.items() if name.lower().startswith(HADOOP_PREFIXES)}
    if not hadoop:
        return options
    return {**{k: v for k, v in options.items() if k.lower() not in hadoop}, **from_hadoop(uri, hadoop)}


def _s3(uri: str, options: Mapping[str, Any]) -> Place:
    from hudi_fast.storage.s3 import S3Store
    from hudi_fast.storage.s3_options import S3Options

    bucket, root = _bucket(uri)
    chosen = S3Options.of(options).located(bucket)
    return Place(chosen.files(), root, S3Store(chosen))


def _gcs(uri: str, options: Mapping[str, Any]) -> Place:
    from hudi_fast.storage.gcs import GcsOptions, GcsStore

    root, chosen = _bucket(uri)[1], GcsOptions.of(options)
    import_extra("google.cloud.storage", "gcs", "A table at gs://")
    return Place(chosen.files(), root, GcsStore(chosen))


def _azure(uri: str, options: Mapping[str, Any]) -> Place:
    from hudi_fast.storage.azure import AzureOptions, AzureStore

    rest = uri.partition("://")[2]
    authority, _, key = rest.partition("/")
    container, _, host = authority.rpartition("@") if "@" in authority else (authority, "", "")
    account, _, domain = host.partition(".")
    if host and domain.partition(".")[0] not in ("dfs", "blob"):
        raise ConfigError(
            f"{scheme_of(uri)}:// requires a container and an account: "
            "abfs://container@account.dfs.core.windows.net/folder."
        )
    root = _bucket(f"{scheme_of(uri)}://{container}/{key}")[1]
    chosen = AzureOptions.of(options, account or None)
    files = chosen.files()
    return Place(files, root, AzureStore(chosen, files))


def _bucket(uri: str) -> tuple[str, str]:
    """The bucket, and the full name of the base path."""
    rest = uri.partition("://")[2]
    bucket, _, key = rest.partition("/")
    if "@" in bucket or ":" in bucket or "?" in rest:
        raise ConfigError(
            f"The path of a table in {scheme_of(uri)}:// is a bucket and a folder, without keys, hosts or parameters. "
            "Pass these as storage_options."
        )
    parts = key.split("/") if key else []
    if not bucket or any(part in ("", ".", "..") for part in parts):
        raise ConfigError(
            f"{uri} is not the path of a table: expected {scheme_of(uri)}://bucket/folder without empty folder names."
        )
    return bucket, "/".join((bucket, *parts))


def _hadoop(uri: str, options: Mapping[str, Any]) -> Place:
    from hudi_fast.storage.hadoop_options import HdfsOptions
    from hudi_fast.storage.hdfs import HdfsClient, HdfsFiles, HdfsStore

    rest = uri.partition("://")[2]
    folder = rest.partition("/")[2]
    parts = folder.split("/")
    if not folder or any(part in ("", ".", "..") for part in parts):
        raise ConfigError(
            f"{uri} is not the path of a table: expected {scheme_of(uri)}://namenode/folder without empty folder names."
        )
    client = HdfsClient(HdfsOptions.of(options, uri))
    return Place(pafs.PyFileSystem(HdfsFiles(client)), f"/{folder}", folders=HdfsStore(client))


def _by_fsspec(uri: str, options: Mapping[str, Any]) -> Place:
    scheme = scheme_of(uri)
    fsspec = import_extra("fsspec", "fsspec", f"A table at {scheme}://")
    from hudi_fast.storage.fsspec_store import FsspecFiles, FsspecStore

    own = {_SINGLE_WRITER: str(options[_SINGLE_WRITER])} if _SINGLE_WRITER in options else {}
    given = {name: value for name, value in options.items() if name not in own}
    try:
        made = fsspec.filesystem(scheme, **given)
    except (ConnectionError, TimeoutError) as error:
        raise StorageUnreachableError(
            f"No answer came from the server of {uri}: {_kind(error)}. Check the path, the network and storage_options."
        ) from error
    except Exception as error:
        raise ConfigError(f"No file system for {uri!r}: fsspec has none for {scheme}:// ({_kind(error)}).") from None
    root = made._strip_protocol(uri).rstrip("/")
    store = FsspecStore(made, scheme, root, is_true(own, _SINGLE_WRITER))
    return Place(_answered_first(uri, pafs.PyFileSystem(FsspecFiles(made, scheme))), root, folders=store)


def _answered_first(uri: str, files: pafs.FileSystem) -> pafs.FileSystem | RenewedFiles:
    """A file system over http, whose client waits for minutes, after its server has answered."""
    if scheme_of(uri) not in ("http", "https"):
        return files
    from hudi_fast.storage.servers import Server

    scheme, _, rest = uri.partition("://")
    url = checked_url(f"{scheme.lower()}://{rest.partition('/')[0]}", f"The address of {uri}")
    server = Server(f"The server of {uri}", (url,), TIMEOUT, "and the path")
    return RenewedFiles(lambda: None, lambda _: files, server.require_answer)


def _kind(error: Exception) -> str:
    """The kind of an error, without its text, which may contain an option's value."""
    return str(error) if isinstance(error, ImportError) else type(error).__name__


_OPENERS: dict[str, Callable[[str, Mapping[str, Any]], Place]] = {
    **dict.fromkeys(("s3", "s3a", "s3n"), _s3),
    **dict.fromkeys(("gs", "gcs"), _gcs),
    **dict.fromkeys(("abfs", "abfss", "wasb", "wasbs", "az"), _azure),
    **dict.fromkeys(("hdfs", "viewfs"), _hadoop),
}
