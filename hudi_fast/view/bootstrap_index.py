"""The bootstrap index: locations of a bootstrapped table's source files, in two HFiles.

A table made of a Parquet folder without copying it (metadata-only bootstrap) has *skeletons*: base files with Hudi's
meta columns only, one per source file, row by row. The index maps them to source files, in the folder
``.hoodie/.aux/.bootstrap``::

    .partitions   part=<partition path>                    -> all files of a source partition, by file id
    .fileids      part=<partition path>;fileid=<file id>   -> the file of one file group

Values are Avro container files of one record. The index is written once, before the bootstrap is committed, and never
changed. A file group is a skeleton while its base file has the instant :data:`METADATA_BOOTSTRAP_INSTANT`: any later
write to the group creates a complete base file.

If the source folder was moved, ``hoodie.bootstrap.base.path`` gives its new location.

Source: ``HFileBootstrapIndex``, ``HFileBootstrapIndexWriter``, ``BootstrapFileMapping`` (Hudi 0.15.0 and 1.2.0).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

import pyarrow as pa

from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import CorruptTableError
from hudi_fast.formats.avro.container import read_single_record, write_single_record
from hudi_fast.formats.hfile.blocks import Codec
from hudi_fast.formats.hfile.reader import HFileReader
from hudi_fast.formats.hfile.writer import HFileWriter
from hudi_fast.storage.base import Storage
from hudi_fast.values import dataclass

__all__ = [
    "SourceFile",
    "SourceLookup",
    "find_source",
    "local_path",
    "read_sources",
    "write_bootstrap_index",
]

_FOLDER = ".hoodie/.aux/.bootstrap"
_NAME = "00000000-0000-0000-0000-000000000000-0_1-0-1_00000000000001.hfile"
_BY_PARTITION, _BY_FILE = f"{_FOLDER}/.partitions/{_NAME}", f"{_FOLDER}/.fileids/{_NAME}"
_INFO = "INDEX_INFO"
_NAMESPACE = "org.apache.hudi.avro.model"
_STRING = {"type": "string", "avro.java.string": "String"}
_BLOCK_SIZE = 33554432  # of a local file system in Hadoop


@dataclass(frozen=True, slots=True)
class SourceFile:
    """The file with the data columns of a file group.

    Attributes:
        partition: partition path in the table.
        source_partition: the file's folder, relative to the bootstrapped folder.
        uri: a local path or a URI.
        size: bytes.
        modified_ms: milliseconds since the epoch.
    """

    partition: str
    file_id: str
    source_partition: str
    uri: str
    size: int
    modified_ms: int


@dataclass(frozen=True, slots=True)
class SourceLookup:
    """Finds the source files of skeletons; picklable."""

    storage: Storage
    config: TableConfig

    def of_partition(self, partition: str) -> dict[str, SourceFile]:
        """Source files by file id.

        Raises:
            CorruptTableError: the index is invalid.
        """
        try:
            opened = self.storage.open_input(_BY_PARTITION)
        except FileNotFoundError:
            return {}
        with opened as content, HFileReader.open(content, _BY_PARTITION) as reader:
            moved = _moved(reader, self.config)
            _, found = reader.lookup(pa.array([_partition_key(partition)]))
            return {one.file_id: one for value in found.to_pylist() for one in _of_record(value, moved)}


def find_source(storage: Storage, config: TableConfig, partition: str, file_id: str) -> SourceFile | None:
    """The source file of one file group; None when it has none.

    Raises:
        CorruptTableError: the index is invalid.
    """
    try:
        opened = storage.open_input(_BY_FILE)
    except FileNotFoundError:
        return None
    with opened as content, HFileReader.open(content, _BY_FILE) as reader:
        _, found = reader.lookup(pa.array([_file_key(partition, file_id)]))
        if not len(found):
            return None
        record = read_single_record(found[0].as_py(), _BY_FILE)
        moved = _moved(reader, config)
    folder = record.get("bootstrapPartitionPath") or ""
    return _source_file(partition, file_id, folder, record.get("bootstrapFileStatus"), moved)


def read_sources(storage: Storage, config: TableConfig) -> dict[tuple[str, str], SourceFile]:
    """All source files by partition path and file id; empty for a table without bootstrap index.

    Raises:
        CorruptTableError: the index is invalid.
    """
    try:
        opened = storage.open_input(_BY_PARTITION)
    except FileNotFoundError:
        return {}
    found: dict[tuple[str, str], SourceFile] = {}
    with opened as content, HFileReader.open(content, _BY_PARTITION) as reader:
        moved = _moved(reader, config)
        for _, values in reader.scan():
            for value in values.to_pylist():
                found |= {(one.partition, one.file_id): one for one in _of_record(value, moved)}
    return found


def write_bootstrap_index(storage: Storage, base_path: str, sources: Iterable[SourceFile], now_ms: int) -> None:
    """Write both parts of the index, replacing files of an earlier attempt.

    ``base_path`` is the bootstrapped folder, ``sources`` has every file that gets a skeleton, ``now_ms`` is in
    milliseconds since the epoch.
    """
    ordered = sorted(sources, key=lambda one: (one.partition, one.file_id))
    files = {
        _file_key(one.partition, one.file_id): write_single_record(
            _FILE_SCHEMA,
            {
                "bootstrapPartitionPath": one.source_partition,
                "bootstrapFileStatus": _status(one),
                "partitionPath": one.partition,
            },
        )
        for one in ordered
    }
    partitions = {}
    for partition, group in groupby(ordered, key=lambda one: one.partition):
        members = list(group)
        record = {
            "bootstrapPartitionPath": members[0].source_partition,
            "partitionPath": partition,
            "fileIdToBootstrapFile": {one.file_id: _status(one) for one in members},
        }
        partitions[_partition_key(partition)] = write_single_record(_PARTITION_SCHEMA, record)
    for path, entries in ((_BY_PARTITION, partitions), (_BY_FILE, files)):
        info = {"bootstrapBasePath": base_path, "createdTimestamp": now_ms, "numKeys": len(entries)}
        _write(storage, path, entries, write_single_record(_INFO_SCHEMA, info))


def local_path(uri: str) -> str:
    """Convert a local URI to a path; other URIs are returned unchanged."""
    if uri.startswith("file:"):
        return "/" + uri[len("file:") :].lstrip("/")
    return uri


# ---- format


def _write(storage: Storage, path: str, entries: Mapping[str, bytes], info: bytes) -> None:
    keys = sorted(entries, key=str.encode)
    with storage.open_output(path) as sink, HFileWriter(sink, "", Codec.NONE, info={_INFO: info}) as writer:
        writer.append(pa.array(keys, pa.string()), pa.array([entries[key] for key in keys], pa.binary()))


def _partition_key(partition: str) -> str:
    return f"part={partition}"


def _file_key(partition: str, file_id: str) -> str:
    return f"{_partition_key(partition)};fileid={file_id}"


def _moved(reader: HFileReader, config: TableConfig) -> tuple[str, str]:
    """The source folder in the index, and the one in the table's properties."""
    info = reader.file_info.get(_INFO)
    was = None if info is None else read_single_record(info, reader.path).get("bootstrapBasePath")
    old = _folder(was or config.bootstrap_base_path or "")
    return old, _folder(config.bootstrap_base_path or "") or old


def _folder(uri: str) -> str:
    return local_path(uri).rstrip("/")


def _of_record(value: bytes, moved: tuple[str, str]) -> Iterator[SourceFile]:
    """All files of a source partition."""
    record = read_single_record(value, _BY_PARTITION)
    partition, folder = record.get("partitionPath") or "", record.get("bootstrapPartitionPath") or ""
    for file_id, status in (record.get("fileIdToBootstrapFile") or {}).items():
        yield _source_file(partition, file_id, folder, status, moved)


def _source_file(
    partition: str, file_id: str, folder: str, status: Mapping[str, Any] | None, moved: tuple[str, str]
) -> SourceFile:
    uri = ((status or {}).get("path") or {}).get("uri")
    if status is None or not uri:
        raise CorruptTableError(
            f"The bootstrap index has no file for the file group {file_id} of {partition!r}.", _FOLDER
        )
    path, (old, new) = local_path(uri), moved
    if old != new and path.startswith(f"{old}/"):
        path = new + path[len(old) :]
    base = new or path.rpartition("/")[0]
    inside = path.startswith(f"{base}/") if base.startswith("/") else not path.startswith("/")
    if ".." in path.split("/") or "\0" in path or not inside:
        raise CorruptTableError(
            f"The bootstrap index locates the data of the file group {file_id} of {partition!r} in {path!r}, "
            f"which is not below the folder that the table was bootstrapped from ({base}).",
            _FOLDER,
        )
    size, modified = int(status.get("length") or 0), int(status.get("modificationTime") or 0)
    return SourceFile(partition, file_id, folder, path, size, modified)


def _status(one: SourceFile) -> dict[str, Any]:
    return {
        "path": {"uri": one.uri if ":/" in one.uri else f"file:{one.uri}"},
        "length": one.size,
        "isDir": False,
        "blockReplication": 1,
        "blockSize": _BLOCK_SIZE,
        "modificationTime": one.modified_ms,
        "accessTime": one.modified_ms,
    }


def _fields(*fields: tuple[str, Any]) -> Iterator[dict[str, Any]]:
    yield {"name": "version", "type": ["int", "null"], "default": 1}
    for name, kind in fields:
        yield {"name": name, "type": ["null", kind], "default": None}


def _record(name: str, *fields: tuple[str, Any], outermost: bool = False) -> dict[str, Any]:
    space = {"namespace": _NAMESPACE} if outermost else {}
    return {"type": "record", "name": name, **space, "fields": list(_fields(*fields))}


_PATH = _record("HoodiePath", ("uri", _STRING))
_PERMISSION = _record(
    "HoodieFSPermission",
    ("userAction", _STRING),
    ("groupAction", _STRING),
    ("otherAction", _STRING),
    ("stickyBit", "boolean"),
)
_STATUS = _record(
    "HoodieFileStatus",
    ("path", _PATH),
    ("length", "long"),
    ("isDir", "boolean"),
    ("blockReplication", "int"),
    ("blockSize", "long"),
    ("modificationTime", "long"),
    ("accessTime", "long"),
    ("permission", _PERMISSION),
    ("owner", _STRING),
    ("group", _STRING),
    ("symlink", "HoodiePath"),
)
_FILE_SCHEMA = _record(
    "HoodieBootstrapFilePartitionInfo",
    ("bootstrapPartitionPath", _STRING),
    ("bootstrapFileStatus", _STATUS),
    ("partitionPath", _STRING),
    outermost=True,
)
_PARTITION_SCHEMA = _record(
    "HoodieBootstrapPartitionMetadata",
    ("bootstrapPartitionPath", _STRING),
    ("partitionPath", _STRING),
    ("fileIdToBootstrapFile", {"type": "map", "values": _STATUS, "avro.java.string": "String"}),
    outermost=True,
)
_INFO_SCHEMA = _record(
    "HoodieBootstrapIndexInfo",
    ("bootstrapBasePath", _STRING),
    ("createdTimestamp", "long"),
    ("numKeys", "int"),
    outermost=True,
)
