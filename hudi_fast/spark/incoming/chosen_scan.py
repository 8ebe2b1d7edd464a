"""Decide whether tasks read the files of a DataFrame themselves.

Decides whether tasks read the files of a DataFrame themselves (``hudi_fast.scan``), and reads few rows of them.

Which plans of Spark are scans of Parquet files that tasks may read with Arrow: the table of rules.

::

    DataFrame ── optimized plan ──► only projections and filters over one relation of files?
              ── physical plan  ──► projections, filters ─► expressions.py
                                    FileSourceScanExec   ─► its own FilePartitions, partition values, columns
                                        └─► FileScan: plain values

The list of files, the partitions that filters leave, and the splits are Spark's own. Everything without a rule here is
refused, so Spark reads it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import types as T

from hudi_fast.errors import ConfigError, HudiError
from hudi_fast.formats.logical_types import HUDI_TYPE
from hudi_fast.formats.parquet.encryption import FACTORY
from hudi_fast.spark.arrow import arrow_schema, arrow_types, names_are_exact
from hudi_fast.spark.incoming.expressions import Expression, Nodes, ScanRefusedError, column, parsed
from hudi_fast.spark.incoming.file_scan import FileScan, ReadRules, ScannedFile, Split, is_readable, parts_of
from hudi_fast.spark.jvm import java_class
from hudi_fast.spark.storage import storage_settings
from hudi_fast.storage.forks import ThreadPool
from hudi_fast.values import dataclass

__all__ = [
    "ChosenScan",
    "chosen_scan",
    "file_scan",
    "first_rows_of_scan",
    "reads_parquet",
    "refused_scan",
    "rows_by_footers",
    "rows_of_scan",
]

_EXECUTION = "org.apache.spark.sql.execution."
_PLANS = "org.apache.spark.sql.catalyst.plans.logical"
_SCAN = f"{_EXECUTION}FileSourceScanExec"
_PASSED = frozenset(f"{_EXECUTION}{name}" for name in ("WholeStageCodegenExec", "InputAdapter", "ColumnarToRowExec"))
_PROJECT, _FILTER = f"{_EXECUTION}ProjectExec", f"{_EXECUTION}FilterExec"
_FORMAT = f"{_EXECUTION}datasources.parquet.ParquetFileFormat"
_INDEXES = frozenset(f"{_EXECUTION}datasources.{name}" for name in ("InMemoryFileIndex", "CatalogFileIndex"))

_LOGICAL = frozenset({"Project", "Filter", "LogicalRelation"})
_FILE_RELATION = "org.apache.spark.sql.execution.datasources.HadoopFsRelation"

_OPTIONS = frozenset(
    {
        "path",
        "paths",
        "mergeschema",
        "basepath",
        "recursivefilelookup",
        "pathglobfilter",
        "modifiedbefore",
        "modifiedafter",
        "datetimerebasemode",
        "int96rebasemode",
        "serialization.format",
    }
)
"""Options of the reader, in lower case, that select files, or whose effect is known here."""

_METADATA = frozenset({"comment", HUDI_TYPE})
"""Metadata of columns without effect on values. Others hold defaults, field ids, collations, the width of a char."""

_REFUSED_IF_SET = {
    "spark.sql.files.ignoreCorruptFiles": "true",
    "spark.sql.files.ignoreMissingFiles": "true",
    "spark.sql.parquet.int96TimestampConversion": "true",
}
_REBASE = "spark.sql.parquet.datetimeRebaseModeInRead"

_SCHEMES = frozenset({"file", "s3", "s3a", "s3n", "gs", "abfs", "abfss", "wasb", "wasbs", "hdfs", "viewfs"})

_MAX_FILES = 20_000
"""Asking Spark for the size and time of a file takes about a third of a millisecond."""

_SPLIT = re.compile(r"path: (\S+), range: (\d+)-(\d+), partition values: ")
"""Start of the text of a ``PartitionedFile``; its path is percent-encoded, and has no spaces."""


def reads_parquet(df: Any) -> bool:
    """Whether all rows of a DataFrame come from one relation of files, whatever happens to them."""
    jdf = getattr(df, "_jdf", None)
    if jdf is None:
        return False
    leaves = jdf.queryExecution().optimizedPlan().collectLeaves()
    return leaves.size() == 1 and _is_files(leaves.apply(0))


def _is_files(leaf: Any) -> bool:
    if str(leaf.nodeName()).partition(" ")[0] != "LogicalRelation":
        return False
    return str(leaf.relation().getClass().getName()) == _FILE_RELATION


def file_scan(df: Any) -> FileScan:
    """The scan of a DataFrame of :func:`reads_parquet`.

    Raises:
        ScanRefusedError: tasks must not read its files themselves.
    """
    _require_logical(df._jdf.queryExecution().optimizedPlan())
    spark = df.sparkSession
    _require_settings(spark)
    steps, scan = _steps(spark, df._jdf.queryExecution().executedPlan())
    relation = scan.relation()
    rebase = _require_relation(spark, scan, relation)
    columns, constants = _struct(scan.requiredSchema()), _struct(relation.partitionSchema())
    fields = _fields([*columns.fields, *constants.fields])
    numbers = _numbers(scan, fields.names)
    known = {number: column(at, fields.field(at).type) for at, number in enumerate(numbers)}
    filters: list[Expression] = []
    for kind, expressions in reversed(steps):
        made = [parsed(nodes, known) for nodes in expressions]
        if kind == _FILTER:
            filters += [one.expression for one in made]
        else:
            known = {one.number: one.expression for one in made}
            numbers = [one.number for one in made]
    files, tasks = _splits(scan, constants.fields)
    schema = arrow_schema(df)
    outputs = tuple(known[number] for number in numbers)
    if [one.kind for one in outputs] != schema.types:
        raise ScanRefusedError("Spark's types of its columns differ from those of the scan")
    width = len(columns.fields)
    return FileScan(
        files,
        tasks,
        pa.schema([fields.field(at) for at in range(width)]),
        pa.schema([fields.field(at) for at in range(width, len(fields))]),
        tuple(filters),
        outputs,
        schema,
        ReadRules(names_are_exact(spark), rebase),
        _options(spark, files),
    )


# ---- the plan


def _require_logical(plan: Any) -> None:
    name = str(plan.nodeName()).partition(" ")[0]
    if name not in _LOGICAL:
        raise ScanRefusedError(f"its plan has {name}")
    children = plan.children()
    for number in range(children.size()):
        _require_logical(children.apply(number))


def _steps(spark: Any, plan: Any) -> tuple[list[tuple[str, list[Nodes]]], Any]:
    """Projections and filters, the last one first, with the nodes of their expressions; and the scan below them."""
    steps: list[tuple[str, list[Nodes]]] = []
    while True:
        kind = str(plan.getClass().getName())
        if kind == _SCAN:
            return steps, plan
        if kind == _PROJECT:
            steps.append((kind, _projected(spark, plan.projectList())))
        elif kind == _FILTER:
            steps.append((kind, [json.loads(str(plan.condition().toJSON()))]))
        elif kind not in _PASSED:
            raise ScanRefusedError(f"its physical plan has {plan.nodeName()}")
        plan = plan.children().apply(0)


def _projected(spark: Any, expressions: Any) -> list[Nodes]:
    """The expressions of a projection.

    One request to the JVM fetches all of them, as the JSON of a plan without files. The JSON of the physical plan has
    them, too, but Spark takes 40 ms to make it.
    """
    project_of, one_row = (java_class(spark._jvm, f"{_PLANS}.{name}") for name in ("Project", "OneRowRelation"))
    (project, *_) = json.loads(str(project_of(expressions, one_row()).toJSON()))
    found: list[Nodes] = project["projectList"]
    return found


def _numbers(scan: Any, names: list[str]) -> list[int]:
    """Spark's numbers of the columns of the scan."""
    found = [nodes[0] for nodes in json.loads(str(scan.toJSON()))[0]["output"]]
    if [one["name"] for one in found] != names:
        raise ScanRefusedError("it reads columns of metadata")
    return [int(one["exprId"]["id"]) for one in found]


def _struct(schema: Any) -> Any:
    return T.StructType.fromJson(json.loads(str(schema.json())))


def _fields(fields: Iterable[Any]) -> pa.Schema:
    """The columns of the scan in Arrow, all of them with nulls."""
    fields = list(fields)
    for field in fields:
        _require_plain(field)
    try:
        made = arrow_types(T.StructType([T.StructField(field.name, field.dataType) for field in fields]))
    except Exception as error:  # Spark's types without an Arrow form raise several classes
        raise ScanRefusedError(f"a column has no Arrow type: {error}") from error
    for field in made:
        if not is_readable(field.type):
            raise ScanRefusedError(f"its column {field.name} has the type {field.type}")
    return made


def _require_plain(field: Any) -> None:
    """Refuse columns whose metadata tell Spark to change values."""
    if said := sorted(set(field.metadata or {}) - _METADATA):
        raise ScanRefusedError(f"its column {field.name} has the metadata {said[0]}")
    kinds = [field.dataType]
    while kinds:
        kind = kinds.pop()
        for inner in getattr(kind, "fields", ()):
            _require_plain(inner)
        kinds += [getattr(kind, name) for name in ("elementType", "keyType", "valueType") if hasattr(kind, name)]


# ---- settings of the session, and the relation


def _require_settings(spark: Any) -> None:
    for name, value in _REFUSED_IF_SET.items():
        if str(spark.conf.get(name, "false")).lower() == value:
            raise ScanRefusedError(f"{name}={value}")
    if spark._jsparkSession.sessionState().newHadoopConf().get(FACTORY):
        raise ScanRefusedError(f"{FACTORY} is set")


def _require_relation(spark: Any, scan: Any, relation: Any) -> str:
    """Refuse relations with other rules than plain Parquet files; returns Spark's mode for dates of unknown writers."""
    kind = str(relation.fileFormat().getClass().getName())
    if kind != _FORMAT:
        raise ScanRefusedError(f"its format is {kind.rpartition('.')[2]}")
    index = str(relation.location().getClass().getName())
    if index not in _INDEXES:
        raise ScanRefusedError(f"its files are listed by {index.rpartition('.')[2]}")
    if relation.bucketSpec().isDefined() or scan.bucketedScan():
        raise ScanRefusedError("its files are buckets of Spark")
    options = {str(key).lower(): str(value) for key, value in _map(relation.options()).items()}
    if others := sorted(set(options) - _OPTIONS):
        raise ScanRefusedError(f"the option {others[0]} of its reader")
    return options.get("datetimerebasemode", str(spark.conf.get(_REBASE, "EXCEPTION"))).upper()


def _map(scala_map: Any) -> dict[str, str]:
    """A Scala map of texts; values may hold any character."""
    keys = scala_map.keySet().toSeq()
    names = [str(keys.apply(number)) for number in range(keys.size())]
    return {name: str(scala_map.apply(name)) for name in names}


# ---- files and splits


def _splits(scan: Any, constants: list[Any]) -> tuple[tuple[ScannedFile, ...], tuple[tuple[Split, ...], ...]]:
    """The files, and the splits of each task, as Spark planned them."""
    planned = scan.inputRDDs().head().filePartitions()
    numbers: dict[str, int] = {}
    files: list[ScannedFile] = []
    covered: list[int] = []
    tasks = []
    for task in range(planned.size()):
        parts = planned.apply(task).files()
        found = [(part, match) for part in parts if (match := _SPLIT.match(str(part.toString()))) is not None]
        if len(found) < len(parts):
            raise ScanRefusedError("Spark names its files in an unknown way")
        splits = []
        for part, match in found:
            uri, start, end = match[1], int(match[2]), int(match[3])
            number = numbers.setdefault(uri, len(numbers))
            if number == len(files):
                if number == _MAX_FILES:
                    raise ScanRefusedError(f"it has more than {_MAX_FILES:,} files")
                values = _values(part.partitionValues(), constants)
                files.append(ScannedFile(uri, int(part.fileSize()), int(part.modificationTime()), values))
                covered.append(0)
            covered[number] += end - start
            splits.append(Split(number, start, end))
        tasks.append(tuple(splits))
    for file, size in zip(files, covered, strict=True):
        if size != file.size:
            raise ScanRefusedError(f"its splits do not cover {file.uri}")
    return tuple(files), tuple(tasks)


_GETTERS: dict[type[Any], Callable[[Any, int, Any], Any]] = {
    T.StringType: lambda row, at, _: str(row.getUTF8String(at).toString()),
    T.BooleanType: lambda row, at, _: bool(row.getBoolean(at)),
    T.ByteType: lambda row, at, _: int(row.getByte(at)),
    T.ShortType: lambda row, at, _: int(row.getShort(at)),
    T.IntegerType: lambda row, at, _: int(row.getInt(at)),
    T.LongType: lambda row, at, _: int(row.getLong(at)),
    T.DateType: lambda row, at, _: int(row.getInt(at)),
    T.TimestampType: lambda row, at, _: int(row.getLong(at)),
    T.TimestampNTZType: lambda row, at, _: int(row.getLong(at)),
    T.DoubleType: lambda row, at, _: float(row.getDouble(at)),
}
"""Values of partition columns in a row of Spark; dates are days, and timestamps microseconds since 1970."""


def _values(row: Any, fields: list[Any]) -> tuple[Any, ...]:
    found = []
    for at, field in enumerate(fields):
        getter = _GETTERS.get(type(field.dataType))
        if getter is None:
            raise ScanRefusedError(f"its partition column {field.name} has the type {field.dataType.simpleString()}")
        found.append(None if row.isNullAt(at) else getter(row, at, field))
    return tuple(found)


def _options(spark: Any, files: Iterable[ScannedFile]) -> Mapping[str, Mapping[str, str]]:
    """Storage options by scheme and host."""
    found: dict[str, Mapping[str, str]] = {}
    for file in files:
        scheme, host, path = parts_of(file.uri)
        if scheme not in _SCHEMES or (scheme != "file" and (not host or "/" not in path.strip("/"))):
            raise ScanRefusedError(f"hudi_fast cannot open {file.uri}")
        root = f"{scheme}://{host}"
        if scheme != "file" and root not in found:
            try:
                found[root] = storage_settings(spark, f"{root}/{path.strip('/').partition('/')[0]}")
            except HudiError as error:
                raise ScanRefusedError(f"settings of {root}: {error}") from error
    return found


_SAMPLES = 4
"""Files whose footers are compared with the rules before the write; tasks compare all of them."""

_FEW_FILES = 32
"""The driver opens up to this many files to count their rows."""

_THREADS = 4


@dataclass(frozen=True, slots=True)
class ChosenScan:
    """Who reads the rows of a DataFrame.

    Attributes:
        files: read by Python; None if Spark reads the rows.
        reason: why Spark has to read files; empty if it need not, or the rows are not read from files alone.
    """

    files: FileScan | None = None
    reason: str = ""

    @property
    def remark(self) -> str:
        """The end of a plan's reason."""
        if self.files is not None:
            return "; Python reads the Parquet files"
        return f"; Spark reads the Parquet files: {self.reason}" if self.reason else ""


def chosen_scan(df: Any, wanted: str) -> ChosenScan:
    """Who reads the rows of ``df``.

    Args:
        df: the rows.
        wanted: value of ``hudi_fast.scan``.

    Raises:
        ConfigError: ``files``, and Spark has to read the rows.
        InvalidDataError: a file is gone or has changed since Spark listed it.
    """
    if wanted == "spark":
        return ChosenScan()
    try:
        if not reads_parquet(df):
            if wanted == "files":
                raise refused_scan("the rows are not read from Parquet files alone, or the session is Spark Connect")
            return ChosenScan()
        scan = file_scan(df)
        _check_samples(scan)
    except ScanRefusedError as error:
        reason = error.reason
    except (Py4JError, PySparkException) as error:
        reason = f"this Spark plans scans in another way ({str(error).splitlines()[0]})"
    else:
        return ChosenScan(scan)
    if wanted == "files":
        raise refused_scan(reason)
    return ChosenScan(reason=reason)


def refused_scan(reason: str) -> ConfigError:
    """The error of ``hudi_fast.scan=files`` where Spark has to read the rows."""
    return ConfigError(f"hudi_fast.scan=files cannot read the rows: {reason}. Use auto, so that Spark reads them.")


def rows_by_footers(scan: FileScan) -> int | None:
    """The number of rows before filters; None for many files."""
    if len(scan.files) > _FEW_FILES:
        return None

    def count(number: int) -> int:
        with scan.open(number) as file:
            return file.num_rows

    with ThreadPool(_THREADS) as pool:
        return sum(pool.map(count, range(len(scan.files))))


def rows_of_scan(scan: FileScan) -> pa.Table:
    """All rows; the caller bounds them."""

    def read(splits: Sequence[Split]) -> list[pa.RecordBatch]:
        return list(scan.read(splits))

    with ThreadPool(_THREADS) as pool:
        found = [batch for batches in pool.map(read, scan.tasks) for batch in batches]
    return pa.Table.from_batches(found, scan.schema)


def first_rows_of_scan(scan: FileScan, count: int) -> pa.Table | None:
    """The first rows, at most ``count``; None for a scan with filters, which may drop any number of rows."""
    if scan.filters:
        return None
    found, rows = [], 0
    for batch in scan.read([split for task in scan.tasks for split in task]):
        found.append(batch)
        rows += batch.num_rows
        if rows >= count:
            break
    return pa.Table.from_batches(found, scan.schema).slice(0, count)


def _check_samples(scan: FileScan) -> None:
    """Compare some files with the rules.

    Raises:
        InvalidDataError: a file is gone or has changed since Spark listed it.
        ScanRefusedError: Spark has to read the files.
    """
    count = len(scan.files)
    numbers = sorted({at * (count - 1) // (_SAMPLES - 1) for at in range(_SAMPLES)} if count else ())
    with ThreadPool(_THREADS) as pool:
        list(pool.map(partial(_check, scan), numbers))


def _check(scan: FileScan, number: int) -> None:
    file, found = scan.files[number], scan.stat(number)
    is_local = parts_of(file.uri)[0] == "file"
    if found is not None and found.size == file.size and found.modified_ms != file.modified_ms and not is_local:
        raise ScanRefusedError(f"its store gives {file.uri} another time than Hadoop")
    with scan.open(number) as reader:
        scan.leaves(number, reader)
