"""A Spark scan over files of known names and sizes; Spark's filters select among them while it plans a query.

::

    Spark's planner ── filters ──► FileIndex (a Java interface, implemented here) ── condition ──► narrow
                    ◄─ file list ─                                                ◄─ numbers of files that may match

Spark's own index asks storage about every file, in a job, and cannot skip files by column statistics. This one answers
from memory. py4j calls it back from the JVM; Spark Connect cannot do that.

Columns whose values follow from paths are Spark's partition columns: constants of a file. Spark does not apply filters
of these alone to rows, so they are evaluated here, by Spark's own interpreter.

Source of the interface: ``org.apache.spark.sql.execution.datasources.FileIndex`` of Spark 3.5 to 4.3. Lists of files
reach the JVM in one call, in the format of Hadoop's ``ObjectWritable``: each ``FileStatus`` is a ``FileStatusProto``
message of ``FSProtos.proto`` (Hadoop 3).

py4j is imported on use: a client of Spark Connect need not have it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import pyarrow as pa

from hudi_fast.errors import HudiError
from hudi_fast.events import warn
from hudi_fast.expressions.conditions import Anything, Condition, conjunction
from hudi_fast.formats.varint import encode_message
from hudi_fast.spark.jvm import Called, ComparedByText, java_class, java_schema, scala_items, scala_map, scala_seq
from hudi_fast.spark.reading.filters import spark_condition
from hudi_fast.values import cached_property

__all__ = ["Narrow", "PlannedFile", "planned_frame"]

_SQL = "org.apache.spark.sql"
_CATALYST = f"{_SQL}.catalyst"
_DATASOURCES = f"{_SQL}.execution.datasources"
_RELATION = f"{_DATASOURCES}.HadoopFsRelation"
_STATUS = "org.apache.hadoop.fs.FileStatus"
_FILE = 2  # FileStatusProto.FileType.FT_FILE
_BLOCK = 128 << 20
_QUOTED = re.compile(r'[\x00-\x20\x7f"#%<>?\[\\\]^`{|}]')

Narrow = Callable[[Condition], Sequence[int]]
"""The numbers of the files that may hold rows matching a condition, ascending."""


Texts = tuple[str | None, ...]
"""Values as text that Spark casts to the types of their columns; None for null."""


class PlannedFile(NamedTuple):
    """A file to scan.

    Attributes:
        path: relative to the root of the scan.
        size: bytes.
        modified_ms: for ``_metadata.file_modification_time``; milliseconds since 1970.
        values: of the columns that its path gives.
    """

    path: str
    size: int
    modified_ms: int
    values: Texts = ()

    @property
    def name(self) -> str:
        """Name of the file, without its folder."""
        return self.path.rpartition("/")[2]


def planned_frame(
    spark: Any,
    root: str,
    files: Sequence[PlannedFile],
    schema: Any,
    options: Mapping[str, str],
    narrow: Narrow | None = None,
    of_path: Any = None,
) -> Any:
    """A lazy DataFrame of Parquet files, read by Spark's vectorised scan.

    Args:
        spark: the session.
        root: folder of all files, as Spark takes it.
        files: the files to read; Spark asks storage about none of them.
        schema: the columns to read, by their names in the files.
        options: of Spark's Parquet reader.
        narrow: called with the condition of a query when it is planned; None to read all files always.
        of_path: schema of the files' ``values``; None without any. These columns follow the others.

    Returns:
        None on Spark Connect, where Python does not reach the driver's JVM, and where Spark's internal classes differ
        from the classes of Apache Spark's releases.
    """
    if getattr(spark, "_jvm", None) is None:
        return None
    from py4j.protocol import Py4JError

    try:
        return _planned_frame(spark, root, files, schema, options, narrow, of_path)
    except Py4JError:
        return None


def _planned_frame(
    spark: Any,
    root: str,
    files: Sequence[PlannedFile],
    schema: Any,
    options: Mapping[str, str],
    narrow: Narrow | None,
    of_path: Any,
) -> Any:
    from pyspark.java_gateway import ensure_callback_server_started

    machine = spark._jvm
    gateway = spark.sparkContext._gateway
    ensure_callback_server_started(gateway)
    columns = java_schema(machine, schema)
    folder = java_class(machine, "org.apache.hadoop.fs.Path")(root)
    hadoop = spark._jsc.hadoopConfiguration()
    constants = _Constants(spark, of_path)
    folder = folder.getFileSystem(hadoop).makeQualified(folder)
    index = _FileIndex(machine, hadoop, folder, tuple(files), narrow, constants)
    relation = java_class(machine, _RELATION)(
        Called(gateway, index),
        constants.schema,
        columns,
        java_class(machine, "scala.Option").empty(),
        java_class(machine, f"{_DATASOURCES}.parquet.ParquetFileFormat")(),
        scala_map(machine, options),
        spark._jsparkSession,
    )
    frame_class = type(spark.range(0))  # in another module on Spark 4
    return frame_class(spark._jsparkSession.baseRelationToDataFrame(relation), spark)


class _Constants:
    """Spark's rows of the values that paths give, and filters on them."""

    def __init__(self, spark: Any, schema: Any) -> None:
        self._spark = spark
        self._machine = spark._jvm
        self._kinds = {field.name: field.dataType.simpleString() for field in schema or ()}
        empty = java_class(self._machine, f"{_SQL}.types.StructType")
        self.schema = java_schema(self._machine, schema) if self._kinds else empty()

    def rows(self, values: Sequence[Texts], names: Collection[str] | None = None) -> list[Any]:
        """An ``InternalRow`` of the columns ``names``, by default of all, for each tuple of values."""
        everything = list(self._kinds)
        places = [everything.index(name) for name in (everything if names is None else names)]
        if not places or not values:
            return [java_class(self._machine, f"{_CATALYST}.InternalRow").empty()] * len(values)
        kinds = [self._kinds[everything[at]] for at in places]
        lines = (", ".join(map(_constant, (one[at] for at in places), kinds)) for one in values)
        made = self._spark._jsparkSession.sql(f"VALUES ({'), ('.join(lines)})")
        found = made.queryExecution().optimizedPlan().data()
        return scala_items(found)

    def matching(self, filters: Any, values: Sequence[Texts]) -> frozenset[Texts]:
        """The tuples of values for which filters on these columns are true."""
        and_, binding, attributes_of, interpreted = (
            java_class(self._machine, f"{_CATALYST}.expressions.{name}")
            for name in ("And", "BindReferences", "package$AttributeSeq", "Predicate")
        )
        every = filters.apply(0)
        for at in range(1, filters.size()):
            every = and_(every, filters.apply(at))
        used = every.references().toSeq()
        names = [one.name() for one in scala_items(used)]
        predicate = interpreted.createInterpreted(binding.bindReference(every, attributes_of(used), False))
        rows = self.rows(values, names)
        return frozenset(one for one, row in zip(values, rows, strict=True) if predicate.eval(row))


def _constant(text: str | None, kind: str) -> str:
    """A value as a SQL expression; its text may have any characters."""
    if text is None:
        return f"CAST(NULL AS {kind})"
    return f"CAST(CAST(X'{text.encode().hex()}' AS STRING) AS {kind})"


class _FileIndex(ComparedByText):
    """Spark's ``FileIndex`` over planned files; its methods are called by the JVM, from any thread."""

    def __init__(
        self,
        machine: Any,
        hadoop: Any,
        root: Any,
        files: tuple[PlannedFile, ...],
        narrow: Narrow | None,
        constants: _Constants,
    ) -> None:
        self._machine = machine
        self._hadoop = hadoop
        self._root = root
        self._files = files
        self._narrow = narrow
        self._constants = constants
        self._answer: tuple[Sequence[PlannedFile], Any] | None = None
        """Files and result of the last call of ``listFiles``: Spark calls it several times for a query."""

    def rootPaths(self) -> Any:
        return scala_seq(self._machine, [self._root])

    def listFiles(self, partition_filters: Any, data_filters: Any) -> Any:
        files = self._chosen(partition_filters, data_filters)
        if partition_filters.size():
            kept = self._constants.matching(partition_filters, list(dict.fromkeys(file.values for file in files)))
            files = [file for file in files if file.values in kept]
        last = self._answer
        if last is not None and last[0] == files:
            return last[1]
        answer = scala_seq(self._machine, self._directories(files))
        self._answer = files, answer
        return answer

    def inputFiles(self) -> Any:
        root = str(self._root.toUri().toString())
        names = "\n".join(f"{root}/{_QUOTED.sub(_quoted, file.path)}" for file in self._files)
        return java_class(self._machine, "org.apache.hadoop.util.StringUtils").getStrings(names, "\n")

    def refresh(self) -> None:
        """Does nothing: the files belong to one state of the table."""

    def sizeInBytes(self) -> int:
        return sum(file.size for file in self._files)

    def partitionSchema(self) -> Any:
        return self._constants.schema

    def metadataOpsTimeNs(self) -> Any:
        return java_class(self._machine, "scala.Option").empty()

    def isTimeTravel(self) -> bool:
        return False

    class Java:
        implements: ClassVar = [f"{_DATASOURCES}.FileIndex"]

    def toString(self) -> str:
        return self._text

    @cached_property
    def _text(self) -> str:
        root, paths = self._root.toString(), "\n".join(file.path for file in self._files)
        digest = hashlib.sha256(f"{root}\n{paths}".encode()).hexdigest()[:16]
        return f"HudiFileIndex({root}, {len(self._files)} files, {digest})"

    def _chosen(self, *filters: Any) -> list[PlannedFile]:
        """The files that may match; all of them if that is not known."""
        files = list(self._files)
        if self._narrow is None or not files:
            return files
        from py4j.protocol import Py4JError

        try:
            condition = conjunction(spark_condition(one) for some in filters for one in scala_items(some))
            return files if isinstance(condition, Anything) else [files[at] for at in self._narrow(condition)]
        except (HudiError, OSError, Py4JError, pa.ArrowException) as error:
            warn(f"{self._root.toString()}: no file is skipped: {error}")
            return files

    def _directories(self, files: Sequence[PlannedFile]) -> list[Any]:
        """Files as Spark's ``PartitionDirectory``, one for each tuple of values."""
        by_values: dict[Texts, list[PlannedFile]] = {}
        for file in files:
            by_values.setdefault(file.values, []).append(file)
        if not by_values:
            return []
        apply = java_class(self._machine, f"{_DATASOURCES}.PartitionDirectory").apply
        rows = self._constants.rows(list(by_values))
        return [apply(row, some) for row, some in zip(rows, self._statuses(list(by_values.values())), strict=True)]

    def _statuses(self, lists: Sequence[Sequence[PlannedFile]]) -> Any:
        """An array of ``FileStatus[]``."""
        root = str(self._root.toString())
        data = _arrays_of_statuses(
            [[(f"{root}/{file.path}", file.size, file.modified_ms) for file in files] for files in lists]
        )
        made = java_class(self._machine, "java.io.ByteArrayInputStream")(data)
        stream = java_class(self._machine, "java.io.DataInputStream")(made)
        return java_class(self._machine, "org.apache.hadoop.io.ObjectWritable").readObject(stream, self._hadoop)


def _arrays_of_statuses(lists: Sequence[Sequence[tuple[str, int, int]]]) -> bytes:
    """Paths, sizes and times as a ``FileStatus[][]`` that ``ObjectWritable.readObject`` reads."""
    head = _short_text(f"[[L{_STATUS};") + len(lists).to_bytes(4, "big")
    return head + b"".join(map(_array_of_statuses, lists))


def _array_of_statuses(files: Sequence[tuple[str, int, int]]) -> bytes:
    before_each = _short_text(_STATUS) * 2  # the declared class, and the class of the object
    parts = [_short_text(f"[L{_STATUS};"), len(files).to_bytes(4, "big")]
    for path, size, modified_ms in files:
        message = encode_message(
            (1, _FILE),  # fileType
            (2, path.encode()),
            (3, size),  # length
            (7, modified_ms),  # modification_time
            (10, 1),  # block_replication
            (11, _BLOCK),  # block_size
        )
        parts += (before_each, len(message).to_bytes(4, "big"), message)
    return b"".join(parts)


def _short_text(text: str) -> bytes:
    """ASCII text in the form of Hadoop's ``UTF8``."""
    return len(text).to_bytes(2, "big") + text.encode()


def _quoted(found: re.Match[str]) -> str:
    """A character as in the URI of a Hadoop path."""
    return "".join(f"%{byte:02X}" for byte in found[0].encode())
