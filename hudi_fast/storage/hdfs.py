"""HDFS through hdfs-native, a client without a JVM.

A NameNode creates a file for one caller only, and renames in one step, with or without replacing an existing file.
Apache Hudi relies on both: ``HoodieStorage.createImmutableFileInPath`` (1.2.0) writes instants on HDFS to a temporary
file beside them and renames it.

::

    create     content: temporary file ─► rename        no content: create the file itself
    replace    temporary file ─► rename that replaces

The client repeats a call whose answer was lost. The second rename then finds no source. So a failed rename counts as
done if the temporary file, which has a unique name, is gone.

Clients have threads and share connections to DataNodes, neither of which survives ``fork``: a process that was forked
from a process with a client is refused.

Reads from HDFS as a file system of :mod:`pyarrow.fs`.
"""

from __future__ import annotations

import base64
import contextlib
import io
import os
import re
import tempfile
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs

from hudi_fast.errors import (
    ConfigError,
    HudiError,
    StorageAccessError,
    StorageUnreachableError,
    UnsupportedFeatureError,
)
from hudi_fast.storage.extras import import_extra
from hudi_fast.storage.forks import new_lock
from hudi_fast.storage.hadoop_options import HdfsOptions
from hudi_fast.storage.servers import Server
from hudi_fast.storage.stores import temporary_beside

__all__ = ["HdfsClient", "HdfsFiles", "HdfsSink", "HdfsStore", "explained"]

_TOKEN_FILE = "HADOOP_TOKEN_FILE_LOCATION"
_ATTEMPTS = 5
_FIRST_BYTES = 4 << 20
"""Content that a stream holds until it creates its file, so that it can try again."""

_JAVA = re.compile(r'^(?:Fatal)?RPCError\("(?P<java>[\w.$]+)", "(?P<text>.*?)(?:\\n.*)?"\)$', re.DOTALL)
_RUST = re.compile(r'^(?P<kind>\w+)\((?:"(?P<text>.*)"|.*)\)$', re.DOTALL)
_REFUSED = ("AccessControlException", "AuthorizationException")
_UNKNOWN_CALLER = ("InvalidToken", "SaslException", "SecretManager", "GSSAPI", "NoSASLMechanism", "SASLError")

_clients: dict[HdfsOptions, Any] = {}
_owners: set[int] = set()
"""Ids of processes that made clients: this process, or the process that it was forked from."""

_token_files: list[str] = []
_guard = new_lock()


class HdfsClient:
    """The client of this process for some options; created with the first call.

    Args:
        options: of the table's storage.

    Raises:
        ConfigError: the package is not installed.
    """

    def __init__(self, options: HdfsOptions) -> None:
        self.options = options
        self._package = import_extra("hdfs_native", "hdfs", "A table on HDFS")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.options.url!r})"

    def get(self) -> Any:
        """``hdfs_native.Client``.

        Raises:
            ConfigError: this process was forked from a process that uses HDFS, or the client cannot be made.
            StorageUnreachableError: no NameNode answers.
        """
        if _owners and os.getpid() not in _owners:
            raise ConfigError(
                f"{self.options.url} cannot be used here: this process was forked from one that uses HDFS. Start "
                'processes with multiprocessing.get_context("spawn").'
            )
        found = _clients.get(self.options)
        if found is None:
            with _guard:
                found = _clients.get(self.options)
                if found is None:
                    self._server().require_answer()
                    found = _clients[self.options] = self._opened()
                    _owners.add(os.getpid())
        return found

    def _server(self) -> Server:
        """The NameNodes. They also answer HTTP requests, saying that the port is wrong."""
        urls = tuple(f"http://{address}" for address in self.options.name_nodes)
        return Server(
            "HDFS",
            urls,
            self.options.timeout,
            "the address in the path and in Hadoop's settings, and that the NameNode runs",
            {},
        )

    def _opened(self) -> Any:
        try:
            with explained(self.options.url):
                return self._open()
        except StorageAccessError:
            raise
        except OSError as error:
            raise ConfigError(f"{error} Check the path, and Hadoop's settings in HADOOP_CONF_DIR.") from error

    def explained(self, name: str) -> contextlib.AbstractContextManager[None]:
        """:func:`explained` for a file or folder of this cluster."""
        return explained(f"{self.options.url}{name}")

    def create(self, name: str, parts: Sequence[bytes], overwrite: bool) -> Any:
        """Create a file with its first content, and missing folders above it; returns ``hdfs_native.FileWriter``.

        The client fails if a DataNode of a new block is down; the NameNode chooses others for the next attempt.
        """
        for attempt in range(_ATTEMPTS):
            sink = self._sink(name, overwrite or attempt > 0)
            try:
                for part in parts:
                    sink.write(part)
                return sink
            except (OSError, RuntimeError) as error:
                if attempt + 1 == _ATTEMPTS or isinstance(error, FileNotFoundError | PermissionError):
                    raise
        raise AssertionError

    def _sink(self, name: str, overwrite: bool) -> Any:
        own = self.options
        created = self._package.WriteOptions(
            block_size=own.block_size,
            replication=own.replication,
            permission=0o666 & ~own.umask,
            overwrite=overwrite,
            create_parent=True,
        )
        return self.get().create(name, created)

    def _open(self) -> Any:
        own = self.options
        if own.tokens and os.environ.get(_TOKEN_FILE, "") in ("", *_token_files):
            os.environ[_TOKEN_FILE] = _token_file(own.tokens)
        principal, keytab, cache = own.kerberos
        tickets = {"kerberos_principal": principal, "kerberos_keytab": keytab, "kerberos_cache": cache}
        given = {name: value for name, value in tickets.items() if value is not None}
        url = own.url_by_ip() if os.environ.get(_TOKEN_FILE) else own.url
        return self._package.Client(url, dict(own.settings), own.config_dir, **given)


class HdfsStore:
    """A :class:`~hudi_fast.storage.stores.FolderStore` of HDFS."""

    sets_times = True

    def __init__(self, client: HdfsClient) -> None:
        self._client = client

    def check_writable(self, root: str) -> None:
        """See ``FolderStore``."""

    def sync(self, root: str, others: Sequence[str] = ()) -> None:
        """See ``FolderStore``."""

    def create(self, name: str, data: bytes, durable: bool = False) -> None:
        """See ``FolderStore``."""
        with self._client.explained(name):
            if not data:
                self._client.create(name, (), overwrite=False).close()
                return
            self._put(name, data, replaces=False)

    def replace(self, name: str, data: bytes) -> None:
        """See ``FolderStore``."""
        with self._client.explained(name):
            self._put(name, data, replaces=True)

    def open_output(self, name: str) -> pa.NativeFile:
        """See ``FolderStore``."""
        with self._client.explained(name):
            return pa.PythonFile(HdfsSink(self._client, name), mode="w")

    def make_folder(self, name: str) -> None:
        """See ``FolderStore``."""
        with self._client.explained(name):
            self._client.get().mkdirs(name or "/", 0o777 & ~self._client.options.umask, True)

    def delete_file(self, name: str, durable: bool = False) -> bool:
        """See ``FolderStore``."""
        with self._client.explained(name):
            return bool(self._client.get().delete(name, False))

    def delete_folder(self, name: str) -> bool:
        """See ``FolderStore``."""
        with self._client.explained(name):
            return bool(self._client.get().delete(name, True))

    def move(self, source: str, target: str) -> None:
        """See ``FolderStore``."""
        with self._client.explained(source):
            self._client.get().rename(source, target, True)

    def set_modified(self, name: str, modified_ms: int) -> None:
        """See ``FolderStore``."""
        with self._client.explained(name):
            self._client.get().set_times(name, modified_ms, modified_ms)

    def _put(self, name: str, data: bytes, replaces: bool) -> None:
        temporary = temporary_beside(name)
        client = self._client.get()
        try:
            self._client.create(temporary, (data,), overwrite=True).close()
            try:
                client.rename(temporary, name, replaces)
            except (OSError, RuntimeError):
                if self._is_there(temporary):
                    raise
        except BaseException:
            with contextlib.suppress(OSError, RuntimeError):
                client.delete(temporary, False)
            raise

    def _is_there(self, name: str) -> bool:
        try:
            self._client.get().get_file_info(name)
        except FileNotFoundError:
            return False
        return True


class HdfsSink:
    """A new file that :class:`pyarrow.PythonFile` writes to; created with its first megabytes, or when it is closed."""

    def __init__(self, client: HdfsClient, name: str) -> None:
        self._client, self._name = client, name
        self._parts: list[bytes] = []
        self._writer: Any = None
        self._position = 0
        self.closed = False

    def write(self, data: Any) -> int:
        """Write bytes, or an object with the buffer protocol; returns their number."""
        content = data if isinstance(data, bytes) else bytes(memoryview(data))  # the client is slow with other types
        self._position += len(content)
        with self._client.explained(self._name):
            if self._writer is not None:
                self._writer.write(content)
                return len(content)
            self._parts.append(content)
            if self._position >= _FIRST_BYTES:
                self._begin()
        return len(content)

    def tell(self) -> int:
        """Bytes written so far."""
        return self._position

    def flush(self) -> None:
        """Does nothing: content becomes visible when the file is closed."""

    def close(self) -> None:
        """Complete the file."""
        if not self.closed:
            self.closed = True
            with self._client.explained(self._name):
                if self._writer is None:
                    self._begin()
                self._writer.close()

    def _begin(self) -> None:
        self._writer = self._client.create(self._name, self._parts, overwrite=True)
        self._parts = []


@contextlib.contextmanager
def explained(name: str) -> Iterator[None]:
    """Raise errors of hdfs-native as ``OSError`` of their kind, with one line of text.

    Args:
        name: the file or folder, or the address.

    Raises:
        StorageAccessError: permission denied, or the caller is not authenticated: no ticket, or an expired token.
        StorageUnreachableError: the connection failed.
        UnsupportedFeatureError: the client does not support the operation.
        OSError: any other failure.
    """
    try:
        yield
    except NotImplementedError as error:
        raise UnsupportedFeatureError(f"{name}: hdfs-native does not support {error}.") from error
    except OSError as error:
        text = _first_line(str(error))
        if isinstance(error, HudiError):
            raise
        said = text if name in text else f"{name}: {text}"
        if isinstance(error, PermissionError):
            raise StorageAccessError(said) from error
        if isinstance(error, FileNotFoundError | FileExistsError):
            raise type(error)(said) from error
        raise StorageUnreachableError(
            f"HDFS failed at {name}: {text}. Check the address, and that NameNode and DataNodes run."
        ) from error
    except RuntimeError as error:
        raise _of_runtime_error(str(error), name) from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise OSError(f"HDFS failed at {name}: {error}") from error


def _of_runtime_error(message: str, name: str) -> OSError:
    """The error of a message such as ``RPCError("java.lang.Class", "text\\n\\tat ...")``."""
    match = _JAVA.match(message) or _RUST.match(message)
    named = match.groupdict() if match is not None else {}
    java = named.get("java") or ""
    text = _first_line((named.get("text") or message).replace("\\n", "\n").replace('\\"', '"'))
    kind = java.rpartition(".")[2]
    if any(word in java or word in message for word in _UNKNOWN_CALLER):
        return StorageAccessError(
            f"HDFS does not accept this caller at {name}: {text}. Run kinit, or pass kerberos_principal and "
            f"kerberos_keytab as storage options, or renew the delegation tokens of {_TOKEN_FILE}."
        )
    if kind in _REFUSED:
        return StorageAccessError(f"{name}: {text}")
    if kind == "SafeModeException" or "in safe mode" in text:
        return OSError(f"{name}: the NameNode is in safe mode and takes no writes. Retry when it has left it.")
    if "No NameNode hosts" in text:
        text += "; hdfs-site.xml, in the folder of HADOOP_CONF_DIR, names those of a name service"
    return OSError(f"HDFS failed at {name}: {kind and f'{kind}: '}{text}.")


def _first_line(text: str) -> str:
    return text.partition("\n")[0].strip().rstrip(".")


def _token_file(tokens: str) -> str:
    """Write delegation tokens to a file that only this user reads, and that lasts as long as the process."""
    with tempfile.NamedTemporaryFile("wb", prefix="hudi_fast-tokens-", delete=False) as file:
        file.write(base64.b64decode(tokens))
    _token_files.append(file.name)
    return file.name


_LISTINGS = 3
"""Attempts to list folders when some of them disappear meanwhile."""

_BLOCK_UNIT = 512
"""Sizes of blocks are multiples of this."""

_REPORT_SECONDS = 10


class HdfsFiles(pafs.FileSystemHandler):  # type: ignore[misc]  # pyarrow has no types
    """Lists and opens files; :class:`~hudi_fast.storage.hdfs.HdfsStore` writes. Paths are absolute."""

    def __init__(self, client: HdfsClient) -> None:
        self._client = client

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HdfsFiles) and other._client.options == self._client.options

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None  # type: ignore[assignment]

    def get_type_name(self) -> str:
        """``hdfs``."""
        return "hdfs"

    def normalize_path(self, path: str) -> str:
        """The path itself: it is already normalised."""
        return path

    def get_file_info(self, paths: Sequence[str]) -> list[pafs.FileInfo]:
        """One request for each path."""
        return [self._info(path) for path in paths]

    def get_file_info_selector(self, selector: pafs.FileSelector) -> list[pafs.FileInfo]:
        """One request for each folder."""
        for attempt in range(_LISTINGS):
            try:
                with self._client.explained(selector.base_dir):
                    found = list(self._client.get().list_status(selector.base_dir or "/", selector.recursive))
            except FileNotFoundError:
                top = self._info(selector.base_dir)
                if top.type == pafs.FileType.NotFound:
                    if selector.allow_not_found:
                        return []
                    raise
                if attempt + 1 == _LISTINGS:
                    raise
                continue
            if len(found) == 1 and found[0].path == selector.base_dir:
                raise NotADirectoryError(f"{selector.base_dir} is a file.")
            return [_file_info(one) for one in found]
        raise AssertionError

    def open_input_file(self, path: str) -> pa.NativeFile:
        """A file for random access; one request."""
        with self._client.explained(path):
            return pa.PythonFile(_Source(self._client, path), mode="r")

    def open_input_stream(self, path: str) -> pa.NativeFile:
        """As :meth:`open_input_file`."""
        return self.open_input_file(path)

    def create_dir(self, path: str, recursive: bool) -> None:
        """Not used."""
        raise _unused()

    def delete_dir(self, path: str) -> None:
        """Not used."""
        raise _unused()

    def delete_dir_contents(self, path: str, missing_dir_ok: bool) -> None:
        """Not used."""
        raise _unused()

    def delete_root_dir_contents(self) -> None:
        """Not used."""
        raise _unused()

    def delete_file(self, path: str) -> None:
        """Not used."""
        raise _unused()

    def move(self, src: str, dest: str) -> None:
        """Not used."""
        raise _unused()

    def copy_file(self, src: str, dest: str) -> None:
        """Not used."""
        raise _unused()

    def open_output_stream(self, path: str, metadata: Any) -> pa.NativeFile:
        """Not used."""
        raise _unused()

    def open_append_stream(self, path: str, metadata: Any) -> pa.NativeFile:
        """Not used."""
        raise _unused()

    def _info(self, path: str) -> pafs.FileInfo:
        try:
            with self._client.explained(path):
                return _file_info(self._client.get().get_file_info(path or "/"))
        except FileNotFoundError:
            return pafs.FileInfo(path, pafs.FileType.NotFound)


class _Source(io.RawIOBase):
    """A reader of hdfs-native that stops at the end of the file."""

    def __init__(self, client: HdfsClient, path: str) -> None:
        self._client, self._path = client, path
        self._reader = _whole_reader(client, path)
        self._size = len(self._reader)
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = 0) -> int:
        self._position = offset + (0, self._position, self._size)[whence]
        return self._position

    def read(self, size: int | None = -1) -> bytes:
        left = max(self._size - self._position, 0)
        length = left if size is None or size < 0 else min(size, left)
        if not length:
            return b""
        with self._client.explained(self._path):
            data = bytes(self._reader.read_range(self._position, length))
        self._position += len(data)
        return data


def _whole_reader(client: HdfsClient, path: str) -> Any:
    """``hdfs_native.FileReader`` of a file whose last block the NameNode knows.

    With ``dfs.namenode.file.close.num-committed-allowed`` a NameNode closes a file before a DataNode has reported its
    last block. The client then ignores the last block in the file's length, while the status has the right length.
    """
    reader = client.get().read(path)
    until = time.monotonic() + _REPORT_SECONDS
    while not len(reader) % _BLOCK_UNIT and len(reader) < client.get().get_file_info(path).length:
        if time.monotonic() > until:
            raise OSError(f"{path} has no complete last block after {_REPORT_SECONDS} s; check its DataNodes.")
        time.sleep(0.002)
        reader = client.get().read(path)
    return reader


def _file_info(status: Any) -> pafs.FileInfo:
    kind = pafs.FileType.Directory if status.isdir else pafs.FileType.File
    size = None if status.isdir else status.length
    return pafs.FileInfo(status.path, kind, size=size, mtime_ns=status.modification_time * 1_000_000)


def _unused() -> UnsupportedFeatureError:
    return UnsupportedFeatureError("Files on HDFS are changed by HdfsStore only.")
