"""A Spark scan whose rows Python reads; Spark tells it the columns and the filters of a query.

::

    Spark's optimizer ── columns, filters ──► ScanBuilder (Java interfaces, implemented here) ──► Query
    the source        ── Query ──► units of the rows, and the function that reads a unit
    executors         ── the units of a task ──► Python: read ──► Arrow batches ──► rows of Spark

``mapInArrow`` makes all columns of all rows, whatever the query does with them. This scan makes those that the query
needs: a query of two columns decodes and sends two columns, and rows that a filter drops stay in Python. Spark applies
its filters again, so a source may ignore them.

Spark copies each row of such a scan once more, which takes half a microsecond for 17 columns. So :func:`python_frame`
uses ``mapInArrow`` where all columns are known to be needed, and where there is no such scan: in Spark 3.5, in
Spark Connect, and in releases whose internal classes differ.

Source: ``org.apache.spark.sql.connector.read`` and ``execution.datasources.v2.python`` of Spark 4.0 to 4.3.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from itertools import count
from operator import and_
from typing import Any, ClassVar, Protocol
from weakref import WeakKeyDictionary

import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.errors import HudiError
from hudi_fast.events import warn
from hudi_fast.expressions.conditions import Anything, Condition, columns_of, conjunction
from hudi_fast.spark.arrow import numbers_of, parallelism, spark_schema
from hudi_fast.spark.incoming.expressions import (
    Expression,
    ScanRefusedError,
    arrow_expression,
    column,
    has_rule,
    kind_of,
    parsed,
)
from hudi_fast.spark.jvm import Called, ComparedByText, java_class, java_schema, scala_items
from hudi_fast.spark.reading.filters import spark_condition
from hudi_fast.values import cached_property, dataclass

__all__ = ["Query", "RowSource", "UnitRows", "prunes_columns", "python_frame"]

_SQL = "org.apache.spark.sql"
_CONNECTOR = f"{_SQL}.connector"
_READ = f"{_CONNECTOR}.read"
_SOURCES = f"{_SQL}.execution.datasources.v2"
_RELEASES = ("4.0.", "4.1.", "4.2.", "4.3.")
_TASKS_PER_CORE = 4
_MOST_PARTS = 200
"""A filter with more parts is left to Spark: each part takes calls of the JVM."""

Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True)
class Query:
    """What a query needs of a source.

    Attributes:
        columns: names, in the order of the result.
        condition: of the rows that the query keeps, to skip units.
        filter: a condition on the source's columns that these rows pass; None for all rows. It is true for each row
            that Spark keeps, NaN and nulls included.
    """

    columns: tuple[str, ...]
    condition: Condition = Anything()
    filter: pc.Expression | None = None


@dataclass(frozen=True)
class UnitRows:
    """Rows in units that tasks read.

    Attributes:
        units: each is sent to the task that reads it; picklable.
        weights: bytes to read for each unit.
        task_bytes: a task reads about this many bytes, if there are enough for all cores.
        read: a unit -> batches, in the types of :func:`~hudi_fast.spark.arrow.spark_arrow`; picklable.
    """

    units: Sequence[Any]
    weights: Sequence[int]
    task_bytes: int
    read: Callable[[Any], Batches]

    def shares(self, cores: int) -> list[list[int]]:
        """The numbers of the units of each task: neighbours, so that rows keep their order, of about equal weight."""
        wanted = max(cores, min(_TASKS_PER_CORE * cores, sum(self.weights) // self.task_bytes))
        tasks = -(-wanted // cores) * cores
        total = sum(self.weights) + len(self.units)
        shares: dict[int, list[int]] = {}
        before = 0
        for number, weight in enumerate(self.weights):
            middle = 2 * before + weight + 1
            shares.setdefault(middle * tasks // (2 * total), []).append(number)
            before += weight + 1
        return list(shares.values())


class RowSource(Protocol):
    """Rows that Python reads for Spark."""

    @property
    def name(self) -> str:
        """For Spark's plans."""
        ...

    @property
    def schema(self) -> pa.Schema:
        """All columns, in the table's types; at least one."""
        ...

    @property
    def filterable(self) -> pa.Schema:
        """The columns on which :meth:`rows` takes filters."""
        ...

    @property
    def size(self) -> int:
        """Approximate bytes of all rows, for Spark's optimizer."""
        ...

    def rows(self, query: Query) -> UnitRows:
        """The rows of a query, or more of them, without the other columns. Called in the driver, from any thread."""
        ...


def python_frame(spark: Any, source: RowSource, needs_all: bool = False) -> Any:
    """A lazy DataFrame of the rows of a source.

    Args:
        spark: the session.
        source: the rows.
        needs_all: whether the query needs all columns of all rows.
    """
    if not needs_all and prunes_columns(spark):
        return _frame(spark, source)
    rows = source.rows(Query(tuple(source.schema.names)))
    units, read, shares = rows.units, rows.read, rows.shares(parallelism(spark))

    def run(batches: Batches) -> Batches:
        for share in [share for batch in batches for share in batch.column(0).to_pylist()]:
            for number in shares[share]:
                yield from read(units[number])

    schema = spark_schema(source.schema)
    if not shares:
        return spark.createDataFrame([], schema)
    return numbers_of(spark, len(shares), len(shares), source.size, len(schema)).mapInArrow(run, schema)


# ---- the scan


_numbers = count()
"""Tables of one name differ for Spark, whose cache may hold the rows of an earlier one."""

_prunes: WeakKeyDictionary[Any, bool] = WeakKeyDictionary()
"""Whether scans work in a JVM, by its gateway."""


def prunes_columns(spark: Any) -> bool:
    """Whether Python learns the columns and filters of a query in this session."""
    if getattr(spark, "_jvm", None) is None or not spark.version.startswith(_RELEASES):
        return False
    gateway = spark.sparkContext._gateway
    if gateway not in _prunes:
        _prunes[gateway] = _is_planned(spark)
    return _prunes[gateway]


def _is_planned(spark: Any) -> bool:
    """Whether Spark plans a scan: a vendor's Spark may have other internal classes under the same version."""
    from py4j.protocol import Py4JError

    source = _Trial()
    try:
        frame = _frame(spark, source).filter("it > 1")
        frame._jdf.queryExecution().executedPlan()
        _Batch(_Scan(_Table(_Session(spark), source), Query(("it",)))).createReaderFactory()
    except (Py4JError, TypeError, AttributeError):
        return False
    return True


class _Trial:
    """A source without rows."""

    name, size = "trial", 0
    schema = filterable = pa.schema([("it", pa.int64())])

    def rows(self, query: Query) -> UnitRows:
        return UnitRows((), (), 1, iter)


def _frame(spark: Any, source: RowSource) -> Any:
    from pyspark.java_gateway import ensure_callback_server_started

    session = _Session(spark)
    ensure_callback_server_started(session.gateway)
    table = _Table(session, source)
    attributes = session.java(f"{_SQL}.catalyst.types.DataTypeUtils").toAttributes(table.java)
    options = session.java(f"{_SQL}.util.CaseInsensitiveStringMap").empty()
    arguments = [session.called(table), attributes, session.nothing, session.nothing, options]
    relation = session.made(f"{_SOURCES}.DataSourceV2Relation", arguments)
    rows = session.java(f"{_SQL}.classic.Dataset").ofRows(spark._jsparkSession, relation)
    return type(spark.range(0))(rows, spark)


class _Session:
    """A session's JVM."""

    def __init__(self, spark: Any) -> None:
        self.spark = spark
        self.gateway = spark.sparkContext._gateway
        self.nothing = self.java("scala.Option").empty()

    def java(self, name: str) -> Any:
        """A class."""
        return java_class(self.spark._jvm, name)

    def called(self, answering: Any) -> Any:
        """An object that the JVM calls."""
        return Called(self.gateway, answering)

    def array(self, kind: str, items: Sequence[Any] = ()) -> Any:
        """A Java array."""
        made = self.gateway.new_array(self.java(kind), len(items))
        for at, item in enumerate(items):
            made[at] = item
        return made

    def made(self, name: str, arguments: Sequence[Any]) -> Any:
        """An object of a class whose releases have more or fewer optional arguments at the end."""
        wanted = self.java("java.lang.Class").forName(name).getConstructors()[0].getParameterCount()
        given = [*arguments[:wanted], *[self.nothing] * (wanted - len(arguments))]
        return self.java(name)(*given)

    def schema(self, schema: pa.Schema) -> Any:
        """Spark's schema in Java."""
        return java_schema(self.spark._jvm, spark_schema(schema))


class _Value(ComparedByText):
    """An object whose text is made with it."""

    text: str

    def toString(self) -> str:
        return self.text


class _Table(_Value):
    """Spark's ``SupportsRead``, which begins a scan for each query."""

    def __init__(self, session: _Session, source: RowSource) -> None:
        self.session, self.source = session, source
        self.java = session.schema(source.schema)
        self.text = f"{source.name} {next(_numbers)}"

    def name(self) -> str:
        return self.source.name

    def schema(self) -> Any:
        return self.java

    def columns(self) -> Any:
        kind = f"{_CONNECTOR}.catalog.Column"
        make = self.session.java(kind).create
        return self.session.array(kind, [make(one.name(), one.dataType(), True) for one in self.java.fields()])

    def partitioning(self) -> Any:
        return self.session.array(f"{_CONNECTOR}.expressions.Transform")

    def constraints(self) -> Any:
        return self.session.array(f"{_CONNECTOR}.catalog.constraints.Constraint")

    def properties(self) -> Any:
        return self.session.java("java.util.Collections").emptyMap()

    def capabilities(self) -> Any:
        capability = self.session.java(f"{_CONNECTOR}.catalog.TableCapability").BATCH_READ
        return self.session.java("java.util.Collections").singleton(capability)

    def newScanBuilder(self, options: Any) -> Any:
        return self.session.called(_Builder(self))

    def id(self) -> None:
        """Spark asks for the identity of tables in catalogs."""

    version = currentVersion = id

    class Java:
        implements: ClassVar = [f"{_CONNECTOR}.catalog.SupportsRead"]


class _Builder(_Value):
    """Spark's ``ScanBuilder``, which receives the columns and filters of a query."""

    def __init__(self, table: _Table) -> None:
        self._table, self.text = table, table.text
        self._query = Query(tuple(table.source.schema.names))

    def pushFilters(self, filters: Any) -> Any:
        """Note the filters; returns them, so that Spark applies them to the rows."""
        from py4j.protocol import Py4JError

        every, columns = scala_items(filters), self._table.source.filterable
        try:
            condition = conjunction(one for one in map(spark_condition, every) if _names_only(one, columns))
            self._query = replace(self._query, condition=condition, filter=_row_filter(every, columns))
        except (Py4JError, HudiError, pa.ArrowException, ArithmeticError, LookupError, TypeError, ValueError) as error:
            warn(f"{self._table.source.name}: Spark alone applies the filters: {type(error).__name__}: {error}")
        return filters

    def pushedFilters(self) -> Any:
        return self._table.session.array(f"{_CONNECTOR}.expressions.filter.Predicate")

    def pruneColumns(self, schema: Any) -> None:
        """Note the columns; structs are read as a whole."""
        names = tuple(map(str, schema.fieldNames())) or (_cheapest(self._table.source.schema),)
        self._query = replace(self._query, columns=names)

    def build(self) -> Any:
        return self._table.session.called(_Scan(self._table, self._query))

    class Java:
        implements: ClassVar = [
            f"{_READ}.SupportsPushDownRequiredColumns",
            f"{_SQL}.internal.connector.SupportsPushDownCatalystFilters",
        ]


class _Scan(_Value):
    """Spark's ``Scan``: the rows of a query."""

    def __init__(self, table: _Table, query: Query) -> None:
        self.session, self.source, self.query = table.session, table.source, query
        self.text = f"{table.text} {query.columns} {query.condition} {query.filter}"
        self.fields = pa.schema([table.source.schema.field(name) for name in query.columns])
        self.schema = table.session.schema(self.fields)
        self._whole = table.java

    def readSchema(self) -> Any:
        return self.schema

    def description(self) -> str:
        return f"{self.source.name}, read by Python"

    def toBatch(self) -> Any:
        return self.session.called(_Batch(self))

    def supportedCustomMetrics(self) -> Any:
        return self.session.array(f"{_CONNECTOR}.metric.CustomMetric")

    def reportDriverMetrics(self) -> Any:
        return self.session.array(f"{_CONNECTOR}.metric.CustomTaskMetric")

    def columnarSupportMode(self) -> Any:
        return self.session.java(f"{_READ}.Scan$ColumnarSupportMode").UNSUPPORTED

    def estimateStatistics(self) -> Any:
        return self.session.called(_Statistics(self.session, self._size))

    def estimateSizeInBytes(self) -> Any:
        return self.session.java("java.util.OptionalLong").of(self._size)

    def reflectsFullyPushedDownFilters(self) -> bool:
        return False

    @cached_property
    def rows(self) -> UnitRows:
        """Of the query; Spark asks for the batch of a scan several times."""
        return self.source.rows(self.query)

    @property
    def _size(self) -> int:
        """As Spark estimates the size of files of which it reads some columns."""
        return int(self.source.size * self.schema.defaultSize() / max(1, self._whole.defaultSize()))

    class Java:
        implements: ClassVar = [f"{_READ}.SupportsReportStatistics"]


class _Statistics(_Value):
    """Spark's ``Statistics``."""

    def __init__(self, session: _Session, size: int) -> None:
        self._session, self._size = session, size
        self.text = f"{size} bytes"

    def sizeInBytes(self) -> Any:
        return self._session.java("java.util.OptionalLong").of(self._size)

    def numRows(self) -> Any:
        return self._session.java("java.util.OptionalLong").empty()

    def columnStats(self) -> Any:
        return self._session.java("java.util.Collections").emptyMap()

    class Java:
        implements: ClassVar = [f"{_READ}.Statistics"]


class _Batch(_Value):
    """Spark's ``Batch``: the tasks of a scan."""

    def __init__(self, scan: _Scan) -> None:
        self._session = scan.session
        self._schema = scan.schema
        self._type = spark_schema(scan.fields)
        self._rows = scan.rows
        self.text = scan.text

    def planInputPartitions(self) -> Any:
        rows, make = self._rows, self._session.java(f"{_SOURCES}.python.PythonInputPartition")
        shares = rows.shares(parallelism(self._session.spark))
        sent = [pickle.dumps([rows.units[number] for number in share]) for share in shares]
        return self._session.array(f"{_READ}.InputPartition", [make(at, one) for at, one in enumerate(sent)])

    def createReaderFactory(self) -> Any:
        from pyspark.serializers import CloudPickleSerializer
        from pyspark.sql.udf import _wrap_function

        session, read = self._session, self._rows.read

        def run(batches: Batches) -> Batches:
            for share in [share for batch in batches for share in batch.column(0).to_pylist()]:
                for unit in pickle.loads(share):
                    yield from read(unit)

        workers = _wrap_function(session.spark.sparkContext, iter)  # the Python of the workers, and its variables
        source = session.java(f"{_SOURCES}.python.UserDefinedPythonDataSource")(workers)
        command = CloudPickleSerializer().dumps((run, self._type))
        arguments = [source, bytearray(command), self._schema, _artifacts(session)]
        return session.made(f"{_SOURCES}.python.PythonPartitionReaderFactory", arguments)

    class Java:
        implements: ClassVar = [f"{_READ}.Batch"]


def _artifacts(session: _Session) -> Any:
    """The folder of files that were added to the session: Scala's option of a name."""
    state = session.java("org.apache.spark.JobArtifactSet").getCurrentJobArtifactState()
    return session.nothing if state.isEmpty() else session.java("scala.Option").apply(state.get().uuid())


def _cheapest(schema: pa.Schema) -> str:
    """A column for queries that need none, such as a count: batches without columns have no rows for Spark."""
    fixed = [field for field in schema if pa.types.is_primitive(field.type)]
    return str(min(fixed, key=lambda field: field.type.bit_width).name if fixed else schema.field(0).name)


def _names_only(condition: Condition, columns: pa.Schema) -> bool:
    """Whether a condition names no other columns."""
    return all(one.path[0] in columns.names for one in columns_of(condition))


def _row_filter(filters: Sequence[Any], schema: pa.Schema) -> pc.Expression | None:
    """The filters of Spark, Java objects, that Arrow evaluates as Spark does; the others are left out."""
    made = []
    for one in filters:
        if not _has_rules(one):
            continue
        try:
            found = parsed(json.loads(str(one.toJSON())), _columns_of(one, schema))
        except (ScanRefusedError, ValueError):  # no rule, or a type without an Arrow form
            continue
        made.append(arrow_expression(found.expression, schema.names))
    return reduce(and_, made) if made else None


def _has_rules(expression: Any) -> bool:
    """Whether all parts of an expression have rules, and they are not too many: the JSON of others may be huge."""
    waiting, seen = [expression], 0
    while waiting:
        part, seen = waiting.pop(), seen + 1
        if seen > _MOST_PARTS or not has_rule(str(part.getClass().getSimpleName())):
            return False
        waiting += scala_items(part.children())
    return True


def _columns_of(expression: Any, schema: pa.Schema) -> dict[int, Expression]:
    """The columns of an expression by Spark's number, those whose values have the same type here and there."""
    found: dict[int, Expression] = {}
    for one in scala_items(expression.references().toSeq()):
        number = schema.get_field_index(str(one.name()))
        kind = kind_of(json.loads(str(one.dataType().json())))
        if number >= 0 and schema.field(number).type == kind:
            found[int(one.exprId().id())] = column(number, kind)
    return found
