"""Reads from HDFS as a file system of :mod:`pyarrow.fs`."""

from __future__ import annotations

import io
import time
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs

from hudi_fast.errors import UnsupportedFeatureError
from hudi_fast.storage.hdfs import HdfsClient

__all__ = ["HdfsFiles"]

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
