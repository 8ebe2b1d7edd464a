"""A scan of Spark over files whose names and sizes are known, and which Spark's filters narrow while it plans a query.

::

    Spark's planner ── filters ──► FileIndex (a Java interface, implemented here) ── condition ──► narrow
                    ◄─ file list ─                                                ◄─ numbers of files that may match

Spark's own index asks storage about every file, in a job, and cannot skip files by column statistics. This one answers
from memory. py4j calls it back from the JVM; Spark Connect has no such way.

Source of the interface: ``org.apache.spark.sql.execution.datasources.FileIndex`` of Spark 3.5 to 4.3. A list of files
reaches the JVM in one call, in the format of Hadoop's ``ObjectWritable``: each ``FileStatus`` is a ``FileStatusProto``
message of ``FSProtos.proto`` (Hadoop 3).

py4j is imported on use: a client of Spark Connect need not have it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import pyarrow as pa

from hudi_fast.errors import HudiError
from hudi_fast.events import warn
from hudi_fast.formats.hfile.messages import bytes_field, number_field
from hudi_fast.reading.conditions import And, Anything, Condition
from hudi_fast.spark.reading.filters import spark_condition

__all__ = ["Narrow", "PlannedFile", "planned_frame"]

_DATASOURCES = "org.apache.spark.sql.execution.datasources"
_RELATION = "HadoopFsRelation"
_STATUS = "org.apache.hadoop.fs.FileStatus"
_FILE = 2  # FileStatusProto.FileType.FT_FILE
_BLOCK = 128 << 20
_QUOTED = re.compile(r'[\x00-\x20\x7f"#%<>?\[\\\]^`{|}]')

Narrow = Callable[[Condition], Sequence[int]]
"""The numbers of the files that may hold rows matching a condition, ascending."""


class PlannedFile(NamedTuple):
    """A file to scan.

    Attributes:
        path: relative to the root of the scan.
        size: bytes.
        modified_ms: for ``_metadata.file_modification_time``; milliseconds since 1970.
    """

    path: str
    size: int
    modified_ms: int


def planned_frame(
    spark: Any,
    root: str,
    files: Sequence[PlannedFile],
    schema: Any,
    options: Mapping[str, str],
    narrow: Narrow | None = None,
) -> Any:
    """A lazy DataFrame of Parquet files, read by Spark's vectorised scan.

    Args:
        spark: the session.
        root: folder of all files, as Spark takes it.
        files: those to read; Spark asks storage about none of them.
        schema: the columns to read, by their names in the files.
        options: of Spark's Parquet reader.
        narrow: called with the condition of a query when it is planned; None to read all files always.

    Returns:
        None on Spark Connect, where Python does not reach the driver's JVM, and where Spark's internal classes are not
        those of an Apache Spark release.
    """
    if getattr(spark, "_jvm", None) is None:
        return None
    from py4j.protocol import Py4JError

    try:
        return _planned_frame(spark, root, files, schema, options, narrow)
    except (Py4JError, TypeError):  # an unknown class is a package, which cannot be called
        return None


def _planned_frame(
    spark: Any, root: str, files: Sequence[PlannedFile], schema: Any, options: Mapping[str, str], narrow: Narrow | None
) -> Any:
    from pyspark.java_gateway import ensure_callback_server_started

    machine = spark._jvm
    ensure_callback_server_started(spark.sparkContext._gateway)
    sql = machine.org.apache.spark.sql
    columns = sql.types.DataType.fromJson(schema.json()).asNullable()
    folder = machine.org.apache.hadoop.fs.Path(root)
    hadoop = spark._jsc.hadoopConfiguration()
    index = _FileIndex(machine, hadoop, folder.getFileSystem(hadoop).makeQualified(folder), tuple(files), narrow)
    relation = getattr(sql.execution.datasources, _RELATION)(
        index,
        sql.types.StructType(),
        columns,
        machine.scala.Option.empty(),
        sql.execution.datasources.parquet.ParquetFileFormat(),
        machine.PythonUtils.toScalaMap(dict(options)),
        spark._jsparkSession,
    )
    frame_class = type(spark.range(0))  # in another module on Spark 4
    return frame_class(spark._jsparkSession.baseRelationToDataFrame(relation), spark)


class _FileIndex:
    """Spark's ``FileIndex`` over planned files; its methods are called by the JVM, from any thread."""

    def __init__(
        self, machine: Any, hadoop: Any, root: Any, files: tuple[PlannedFile, ...], narrow: Narrow | None
    ) -> None:
        self._machine = machine
        self._hadoop = hadoop
        self._root = root
        self._files = files
        self._narrow = narrow
        self._answer: tuple[tuple[int, ...] | None, Any] | None = None
        """The files of the last answer, None for all, and the answer: Spark asks several times for a query."""

    def rootPaths(self) -> Any:
        return self._sequence([self._root])

    def listFiles(self, _partition_filters: Any, data_filters: Any) -> Any:
        chosen = self._chosen(data_filters)
        last = self._answer
        if last is not None and last[0] == chosen:
            return last[1]
        files = self._files if chosen is None else [self._files[at] for at in chosen]
        answer = self._sequence([self._directory(files)] if files else [])
        self._answer = chosen, answer
        return answer

    def inputFiles(self) -> Any:
        root = str(self._root.toUri().toString())
        names = "\n".join(f"{root}/{_QUOTED.sub(_quoted, file.path)}" for file in self._files)
        return self._machine.org.apache.hadoop.util.StringUtils.getStrings(names, "\n")

    def refresh(self) -> None:
        """Does nothing: the files are those of one state of the table."""

    def sizeInBytes(self) -> int:
        return sum(file.size for file in self._files)

    def partitionSchema(self) -> Any:
        return self._machine.org.apache.spark.sql.types.StructType()

    def metadataOpsTimeNs(self) -> Any:
        return self._machine.scala.Option.empty()

    def isTimeTravel(self) -> bool:
        return False

    def equals(self, other: Any) -> bool:
        """Whether the files are the same; ``other`` is a Java object, even if it is this one."""
        return bool(other is not None and other.toString() == self.toString())

    def hashCode(self) -> int:
        return int(self._digest[:7], 16)

    def toString(self) -> str:
        return f"HudiFileIndex({self._root.toString()}, {len(self._files)} files, {self._digest})"

    class Java:
        implements: ClassVar = [f"{_DATASOURCES}.FileIndex"]

    @cached_property
    def _digest(self) -> str:
        text = "\n".join(file.path for file in self._files)
        return hashlib.sha256(f"{self._root.toString()}\n{text}".encode()).hexdigest()[:16]

    def _chosen(self, filters: Any) -> tuple[int, ...] | None:
        """Numbers of the files that may match; None for all. Without an answer, all files are read."""
        if self._narrow is None or not self._files:
            return None
        from py4j.protocol import Py4JError

        try:
            parts = [spark_condition(filters.apply(at)) for at in range(filters.size())]
            known = tuple(part for part in parts if not isinstance(part, Anything))
            if not known:
                return None
            return tuple(self._narrow(known[0] if len(known) == 1 else And(known)))
        except (HudiError, OSError, Py4JError, pa.ArrowException) as error:
            warn(f"{self._root.toString()}: no file is skipped: {error}")
            return None

    def _directory(self, files: Sequence[PlannedFile]) -> Any:
        """Files as Spark's ``PartitionDirectory`` without partition values."""
        root = str(self._root.toString())
        data = _array_of_statuses([(f"{root}/{file.path}", file.size, file.modified_ms) for file in files])
        stream = self._machine.java.io.DataInputStream(self._machine.java.io.ByteArrayInputStream(data))
        statuses = self._machine.org.apache.hadoop.io.ObjectWritable.readObject(stream, self._hadoop)
        sql = self._machine.org.apache.spark.sql
        return sql.execution.datasources.PartitionDirectory.apply(sql.catalyst.InternalRow.empty(), statuses)

    def _sequence(self, items: list[Any]) -> Any:
        return self._machine.PythonUtils.toSeq(items)


def _array_of_statuses(files: Sequence[tuple[str, int, int]]) -> bytes:
    """Paths, sizes and times as a ``FileStatus[]`` that ``ObjectWritable.readObject`` reads."""
    before_each = _short_text(_STATUS) * 2  # the declared class and that of the object
    parts = [_short_text(f"[L{_STATUS};"), len(files).to_bytes(4, "big")]
    for path, size, modified_ms in files:
        message = (
            number_field(1, _FILE)  # fileType
            + bytes_field(2, path.encode())
            + number_field(3, size)  # length
            + number_field(7, modified_ms)  # modification_time
            + number_field(10, 1)  # block_replication
            + number_field(11, _BLOCK)  # block_size
        )
        parts += (before_each, len(message).to_bytes(4, "big"), message)
    return b"".join(parts)


def _short_text(text: str) -> bytes:
    """ASCII text in the form of Hadoop's ``UTF8``."""
    return len(text).to_bytes(2, "big") + text.encode()


def _quoted(found: re.Match[str]) -> str:
    """A character as in the URI of a Hadoop path."""
    return "".join(f"%{byte:02X}" for byte in found[0].encode())
