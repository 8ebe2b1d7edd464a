"""DML on Spark: the changed rows of a merge, an update or a delete, as one DataFrame.

::

    pinned table ─► Spark's scan, with the file of each row ─┐
                                                             ├─ join ─► clause of each row ─► values ─► changed rows
    source ──────────────────────────────────────────────────┘

The session computes conditions and values as in any query. ANSI casts convert values to the table's types and refuse
values that do not fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PySparkException
from pyspark.sql import functions as F
from pyspark.sql.types import IntegralType

from hudi_fast.config.write_options import WriteOptions
from hudi_fast.dml.assignments import assigned, is_upsert, order_values
from hudi_fast.dml.dml import check_update, run_dml
from hudi_fast.dml.statement import BY_SOURCE, MATCHED, NOT_MATCHED, Clause, MergeSpec
from hudi_fast.dml.target import check_columns, identity_columns, names_rows, pinned_state, roots
from hudi_fast.errors import ConfigError, InvalidDataError, UnsupportedFeatureError
from hudi_fast.expressions.conditions import Anything, Column, Condition, In
from hudi_fast.reading.scan import ScanQuery, plan_scan
from hudi_fast.spark.arrow import arrow_schema, estimated_bytes, names_are_exact, session_conf, spark_schema
from hudi_fast.spark.reading.filters import understand_filter
from hudi_fast.spark.reading.scan import scan_slices
from hudi_fast.spark.writing.columns import key_text, partition_text, require_castable
from hudi_fast.spark.writing.engine import SparkEngine
from hudi_fast.spark.writing.stored import ChangeShape, undefeated
from hudi_fast.values import cached_property, dataclass
from hudi_fast.view.slices import FileSlice
from hudi_fast.view.table_state import column_defaults
from hudi_fast.writing.dml_rows import ACTION, CHECK, DELETE, GROUP, INSERT, KEY, ORDER, PATH, UPDATE, UPSERT
from hudi_fast.writing.flow import WriteResult
from hudi_fast.writing.session import TableSession
from hudi_fast.writing.write_plan import WritePlan

__all__ = ["delete_where_on", "merge_on", "update_on"]

_FILE, _CLAUSE = "__hudi_fast_file", "__hudi_fast_clause"
_STORED, _GIVEN = "__hudi_fast_stored", "__hudi_fast_given"
_SIDE, _NEW, _OLD, _BY = "__hudi_fast_side", "__hudi_fast_new_", "__hudi_fast_old_", "__hudi_fast_by_"
_MAX_KEYS = 10_000
_ACTIONS = {"update": UPDATE, "delete": DELETE, "insert": INSERT}
_MISFITS = ("CAST_INVALID_INPUT", "CAST_OVERFLOW", "OUT_OF_RANGE", "ARITHMETIC_OVERFLOW")
_ANSI = {"spark.sql.ansi.enabled": "true"}


@dataclass(frozen=True)
class _Change:
    """Common state of a DML statement.

    Attributes:
        plan: the write.
        spec: the merge; an update or a delete is a merge without a source.
        source: types of the columns of the source by name; empty without a source.
        columns: data columns of updated rows.
        rows: the selected rows, with the number of their clause (:data:`_CLAUSE`).
        alias: prefix of the table's columns.
    """

    plan: WritePlan
    spec: MergeSpec
    source: Mapping[str, Any]
    columns: tuple[str, ...]
    rows: Any
    alias: str

    def stored(self, name: str) -> Any:
        """A column of the table."""
        return F.col(f"{self.alias}.`{name}`")

    @cached_property
    def values(self) -> dict[int, Mapping[str, Any]]:
        """The values that each insert or update sets, by the number of its clause."""
        return {
            number: assigned(clause, self.plan.config, self.plan.schema.names, list(self.source), self.spec)
            for number, clause in enumerate(self.spec.clauses)
            if clause.effect != "delete"
        }

    @cached_property
    def orders(self) -> dict[int, Mapping[str, Any]]:
        """The ordering values of source rows, by the number of their clause; empty where no order decides."""
        kinds = {field.name: field.dataType for field in spark_schema(self.plan.schema).fields}

        def comparable(name: str, own: str) -> bool:
            one, other = kinds[name], self.source[own]
            return bool(one == other or (isinstance(one, IntegralType) and isinstance(other, IntegralType)))

        config, names = self.plan.config, self.plan.schema.names
        found = {
            number: order_values(clause, config, names, list(self.source), self.spec, comparable)
            for number, clause in enumerate(self.spec.clauses)
        }
        return {number: values for number, values in found.items() if values is not None}

    @cached_property
    def copied(self) -> frozenset[str]:
        """The columns of the source with its alias: a value that names one of them is copied."""
        return frozenset(f"{self.spec.aliases[1]}.{name}" for name in self.source)

    @cached_property
    def partition_columns(self) -> list[str]:
        """The columns that decide the partition of a row."""
        config = self.plan.config
        return roots(config.partition_fields) if config.is_partitioned else []

    @cached_property
    def moves(self) -> bool:
        """Whether updated rows may change partition."""
        decides, clauses = set(self.partition_columns), self.spec.clauses
        return any(decides & set(sets) for number, sets in self.values.items() if clauses[number].effect == "update")

    @property
    def may_insert(self) -> bool:
        """Whether some changed rows may be new in their partition."""
        return bool(self.spec.of_kind(NOT_MATCHED)) or self.moves


@dataclass(frozen=True)
class _Rows:
    """The changed rows; ``shape`` is None if their keys have not been looked up yet."""

    frame: Any
    shape: ChangeShape | None


def merge_on(session: TableSession, source: Any, spec: MergeSpec) -> WriteResult:
    """Merge a DataFrame into a table.

    Args:
        session: the call.
        source: a DataFrame.
        spec: the merge.

    Raises:
        HudiError: see :mod:`hudi_fast.errors`.
    """
    if not hasattr(source, "sparkSession"):
        raise InvalidDataError(f"With Spark the source of a merge is a DataFrame, got {type(source).__name__}.")
    arrow_schema(source)
    _check_spoken(spec)
    spec = replace(spec, exact_names=names_are_exact(source.sparkSession))
    options = session.settings.write
    with _fitting(session):
        return run_dml(
            session,
            spec,
            source.columns,
            lambda plan, said: _engine(_merged(plan, said, source), options),
        )


def update_on(
    spark: Any, session: TableSession, where: Any, set_: Mapping[str, Any], alias: str = "target"
) -> WriteResult:
    """Update the rows that SQL text or a Column selects; ``alias`` may prefix columns."""
    return _select(spark, session, check_update(set_), where, alias)


def delete_where_on(spark: Any, session: TableSession, where: Any, alias: str = "target") -> WriteResult:
    """Delete the rows that SQL text or a Column selects; ``alias`` may prefix columns."""
    return _select(spark, session, Clause(MATCHED, "delete"), where, alias)


def _select(spark: Any, session: TableSession, clause: Clause, where: Any, alias: str) -> WriteResult:
    aliases = (alias, "source" if alias.lower() != "source" else "target")
    spec = MergeSpec(clauses=(clause,), aliases=aliases, exact_names=names_are_exact(spark))
    _check_spoken(spec)
    options = session.settings.write
    with _fitting(session):
        return run_dml(session, spec, (), lambda plan, said: _engine(_selected(spark, plan, said, where), options))


def _engine(rows: _Rows, options: WriteOptions) -> SparkEngine:
    return SparkEngine(rows.frame, options, rows.shape)


def _check_spoken(spec: MergeSpec) -> None:
    """Refuse conditions and values that Spark does not accept.

    Raises:
        ConfigError: Spark cannot compute a value; the message names its clause.
    """
    said = [("on", spec.condition)]
    for clause in spec.clauses:
        where = f"when {clause.kind} {clause.effect}"
        said += [(where, clause.condition), *((f"{where}, column {name!r}", one) for name, one in _set_by(clause))]
    for where, value in said:
        large = isinstance(value, int) and not -(2**63) <= value < 2**63
        if isinstance(value, pc.Expression) or large:
            raise ConfigError(
                f"{where}: Spark cannot compute {value!r}. With a session use SQL text or Columns for conditions and "
                "values, or literals for values; pyarrow.compute expressions are for DML without Spark."
            )


def _set_by(clause: Clause) -> Iterable[tuple[str, Any]]:
    return (clause.values or {}).items()


@contextmanager
def _fitting(session: TableSession) -> Iterator[None]:
    """Raise a failed cast as an InvalidDataError."""
    try:
        yield
    except PySparkException as error:
        if not any(name in str(error) for name in _MISFITS):
            raise
        raise InvalidDataError(
            f"A value for {session.storage.uri} does not fit its column; the table is as before. {error}"
        ) from error


# ---- selecting rows


def _merged(plan: WritePlan, spec: MergeSpec, source: Any) -> _Rows:
    check_columns([one for one, _ in spec.pairs], plan.schema.names, "on, columns of the table")
    check_columns([one for _, one in spec.pairs], source.columns, "on, columns of the source")
    with _refusing("The merge does not fit the table and the source"):
        if is_upsert(plan, spec, source.columns):
            return _Rows(_upserted(plan, spec, source), None)
        inserted, alone = spec.of_kind(NOT_MATCHED), spec.of_kind(BY_SOURCE)
        condition = _wanted_keys(plan, spec, source) if not alone else Anything()
        stored, slices = _stored_rows(source.sparkSession, plan, plan.schema.names, condition)
        left = stored.withColumn(_STORED, F.lit(True)).alias(spec.aliases[0])
        right = source.withColumn(_GIVEN, F.lit(True)).alias(spec.aliases[1])
        kind = {(False, False): "inner", (True, False): "right", (False, True): "left"}.get(
            (bool(inserted), bool(alone))
        )
        joined = left.join(right, _on(spec), kind or "full")
        both = F.col(_STORED).isNotNull() & F.col(_GIVEN).isNotNull()
        code = F.lit(None).cast("int")
        states = {MATCHED: both, NOT_MATCHED: F.col(_STORED).isNull(), BY_SOURCE: F.col(_GIVEN).isNull()}
        for number, clause in reversed(list(enumerate(spec.clauses))):
            chosen = states[clause.kind]
            chosen = chosen if clause.condition is None else chosen & _column(clause.condition)
            code = F.when(chosen, F.lit(number)).otherwise(code)
        rows = joined.withColumn(_CLAUSE, code).filter(F.col(_CLAUSE).isNotNull())
        types = {field.name: field.dataType for field in source.schema.fields}
        change = _Change(plan, spec, types, _brought(plan), rows, spec.aliases[0])
        size = estimated_bytes(source)
        if size is not None and alone:  # rows that match no row of the source are changed, too
            size += sum(one.weight for one in slices)
        return _Rows(_changed(change), ChangeShape(size, source, change.may_insert, _names(slices)))


def _upserted(plan: WritePlan, spec: MergeSpec, source: Any) -> Any:
    """The rows of a merge that sets all columns of matched and unmatched rows: the source's rows."""
    given = source.alias(spec.aliases[1])
    values = assigned(spec.of_kind(NOT_MATCHED)[0], plan.config, plan.schema.names, source.columns, spec)
    kinds = {field.name: field.dataType for field in spark_schema(plan.schema).fields}
    types = {field.name: field.dataType for field in source.schema.fields}
    sources = {name: values[name].partition(".")[2] for name in plan.schema.names}
    taken = {name: types[one] for name, one in sources.items() if one in types}
    require_castable(taken, plan.schema, "when matched update, when not matched insert")
    with session_conf(source.sparkSession, _ANSI):
        columns = [F.col(_quoted(values[name])).cast(kinds[name]).alias(name) for name in plan.schema.names]
        fields = [name for name in plan.config.ordering_fields if name in plan.schema.names]
        order = [F.struct(*[columns[plan.schema.names.index(name)] for name in fields]).alias(ORDER)] if fields else []
        return given.select(*columns, F.lit(UPSERT).cast("tinyint").alias(ACTION), *order)


def _quoted(name: str) -> str:
    alias, _, column = name.partition(".")
    return f"{alias}.`{column}`"


def _selected(spark: Any, plan: WritePlan, spec: MergeSpec, where: Any) -> _Rows:
    with _refusing("The change does not fit the table"):
        condition: Condition = Anything()
        if where is not None:
            condition = understand_filter(spark, spark_schema(plan.schema), where, spec.aliases[0]).condition
        stored, slices = _stored_rows(spark, plan, plan.schema.names, condition)
        rows = stored.alias(spec.aliases[0])
        rows = (rows if where is None else rows.filter(where)).withColumn(_CLAUSE, F.lit(0))
        change = _Change(plan, spec, {}, _brought(plan), rows, spec.aliases[0])
        changed = _changed(change)
        size = estimated_bytes(changed)
        if size is None:  # Python workers read slices with large logs
            size = sum(one.weight for one in slices)
        return _Rows(changed, ChangeShape(size, None, change.may_insert, _names(slices)))


def _names(slices: Sequence[FileSlice]) -> frozenset[tuple[str, str]]:
    return frozenset((one.partition, one.file_id) for one in slices)


@contextmanager
def _refusing(what: str) -> Iterator[None]:
    """Raise Spark's analysis errors as ConfigError."""
    try:
        yield
    except PySparkException as error:
        raise ConfigError(f"{what}: {error}") from error


def _brought(plan: WritePlan) -> tuple[str, ...]:
    return tuple(plan.schema.names if plan.partial is None else plan.partial.schema.names)


def _on(spec: MergeSpec) -> Any:
    parts = [F.col(f"{spec.aliases[0]}.`{one}`") == F.col(f"{spec.aliases[1]}.`{other}`") for one, other in spec.pairs]
    if spec.condition is not None:
        parts.append(_column(spec.condition))
    return reduce(lambda left, right: left & right, parts)


def _column(value: Any) -> Any:
    return F.expr(value) if isinstance(value, str) else value


def _stored_rows(
    spark: Any, plan: WritePlan, columns: Sequence[str], condition: Condition
) -> tuple[Any, Sequence[FileSlice]]:
    """Rows of the pinned table: the columns, and :data:`KEY`, :data:`PATH` and :data:`GROUP`; and their slices."""
    state = pinned_state(plan)
    meta = [KEY, PATH, "_hoodie_file_name"] if plan.config.populate_meta_fields else []
    scan = plan_scan(state, [*columns, *meta], query=ScanQuery(merger=plan.rules.merger), condition=condition)
    alone = [one for one in scan.slices if one.base_file is None]
    if alone and not meta:
        raise UnsupportedFeatureError(
            f"{plan.storage.uri} has file groups without a base file and no meta columns: on Spark their rows cannot "
            "be identified. Compact the table first."
        )
    if not scan.slices:
        schema = spark_schema(scan.scan.output).add(GROUP, "string")
        frame = spark.createDataFrame([], schema)
    else:
        frame = scan_slices(spark, scan.scan, scan.slices, file_name=_FILE)
        name = F.coalesce(F.col(_FILE), F.col("_hoodie_file_name")) if meta else F.col(_FILE)
        frame = frame.withColumn(GROUP, F.substring_index(name, "_", 1)).drop(_FILE)
    if meta:
        return frame.drop("_hoodie_file_name"), scan.slices
    path = partition_text(frame, plan.key_config, plan.schema)
    frame = frame.withColumn(PATH, F.lit("") if path is None else path)
    return frame.withColumn(KEY, key_text(frame, plan.key_config, plan.schema, stored=True)), scan.slices


def _wanted_keys(plan: WritePlan, spec: MergeSpec, source: Any) -> Condition:
    """The record keys of a small source, for data skipping."""
    fields = plan.config.record_key_fields
    sources = dict(spec.pairs)
    bound = estimated_bytes(source)
    if not fields or not set(fields) <= set(sources) or bound is None or bound > _MAX_KEYS * 1000:
        return Anything()
    if not plan.config.populate_meta_fields:
        return Anything()
    named = source.select(*[F.col(f"`{sources[name]}`").alias(name) for name in fields])
    made = key_text(named, plan.key_config, plan.schema, stored=True)
    keys = named.select(made.alias(KEY)).filter(F.col(KEY).isNotNull())
    found = [row[0] for row in keys.distinct().limit(_MAX_KEYS + 1).collect()]
    return In(Column((KEY,)), pa.array(found, pa.string())) if len(found) <= _MAX_KEYS else Anything()


# ---- computing changed rows


def _changed(change: _Change) -> Any:
    """The changed rows in the form of :mod:`hudi_fast.writing.dml_rows`."""
    plan, spec = change.plan, change.spec
    names = list(change.columns if change.values else identity_columns(plan))
    raw = _computed(change, names)
    with session_conf(change.rows.sparkSession, _ANSI):
        rows = _typed(change, raw, names)
    if change.moves:
        rows = _moved(change, undefeated(rows) if change.orders else rows, names)
    return rows.withColumn(CHECK, F.lit(None).cast("boolean")) if _may_repeat(plan, spec) else rows


def _computed(change: _Change, names: list[str]) -> Any:
    """The values of each clause in separate columns, before the cast."""
    columns = [F.col(_CLAUSE), *(change.stored(name).alias(name) for name in (KEY, PATH, GROUP))]
    columns += [
        change.stored(name).alias(f"{_OLD}{name}") for name in dict.fromkeys([*names, *identity_columns(change.plan)])
    ]
    for number, sets in change.values.items():
        for name, value in sets.items():
            computed = F.when(F.col(_CLAUSE) == number, _set_to(change, value))
            columns.append(computed.alias(f"{_NEW}{number}_{name}"))
    for name in change.plan.config.ordering_fields if change.orders else ():
        value = F.lit(None)
        for number, values in change.orders.items():
            if name in values:
                value = F.when(F.col(_CLAUSE) == number, _set_to(change, values[name])).otherwise(value)
        columns.append(value.alias(f"{_BY}{name}"))
    return change.rows.select(*columns)


def _set_to(change: _Change, value: Any) -> Any:
    """A value of a clause: a column of the source, an expression, or a literal."""
    if isinstance(value, str) and value in change.copied:
        return F.col(_quoted(value))
    return _column(value) if isinstance(value, str) or hasattr(value, "alias") else F.lit(value)


def _typed(change: _Change, raw: Any, names: list[str]) -> Any:
    spec, plan = change.spec, change.plan
    kinds = {field.name: field.dataType for field in spark_schema(plan.schema).fields}
    for number, sets in change.values.items():
        given = {name: raw.schema[f"{_NEW}{number}_{name}"].dataType for name in sets}
        require_castable(given, plan.schema, f"when {spec.clauses[number].kind} {spec.clauses[number].effect}")
    inserts = [number for number, clause in enumerate(spec.clauses) if clause.effect == "insert"]
    is_insert = F.col(_CLAUSE).isin(inserts) if inserts else F.lit(False)
    defaults = column_defaults(pinned_state(plan)) if inserts else {}
    columns = []
    for name in names:
        default = F.lit(defaults[name]).cast(kinds[name]) if name in defaults else F.lit(None).cast(kinds[name])
        value = F.when(is_insert, default).otherwise(F.col(f"`{_OLD}{name}`")) if inserts else F.col(f"`{_OLD}{name}`")
        for number, sets in change.values.items():
            if name in sets:
                new = F.col(f"`{_NEW}{number}_{name}`").cast(kinds[name])
                value = F.when(F.col(_CLAUSE) == number, new).otherwise(value)
        columns.append(value.alias(name))
    action = F.lit(UPDATE)
    for number, clause in enumerate(spec.clauses):
        action = F.when(F.col(_CLAUSE) == number, F.lit(_ACTIONS[clause.effect])).otherwise(action)
    kept = [F.when(~is_insert, F.col(name)).alias(name) for name in (KEY, PATH, GROUP)]
    old = (
        [F.col(f"`{_OLD}{name}`") for name in dict.fromkeys([*names, *identity_columns(plan)])] if change.moves else []
    )
    by = [F.col(f"`{_BY}{name}`").cast(kinds[name]).alias(name) for name in plan.config.ordering_fields]
    order = [F.struct(*by).alias(ORDER)] if change.orders else []
    return raw.select(*columns, action.cast("tinyint").alias(ACTION), *order, *kept, *old)


def _moved(change: _Change, rows: Any, names: list[str]) -> Any:
    """Split updated rows that change partition: a delete in the old partition, an insert into the new one."""
    plan = change.plan
    path = partition_text(rows, plan.key_config, plan.schema)
    changed = [~F.col(f"`{name}`").eqNullSafe(F.col(f"`{_OLD}{name}`")) for name in change.partition_columns]
    differs = reduce(lambda one, other: one | other, changed)
    moves = (F.col(ACTION) == UPDATE) & differs & ~path.eqNullSafe(F.col(PATH))
    going = F.when(moves, F.array(F.lit(DELETE), F.lit(INSERT))).otherwise(F.array(F.lit(-1)))
    sided = rows.withColumn(_SIDE, F.explode(going))
    leaves, arrives = F.col(_SIDE) == DELETE, F.col(_SIDE) == INSERT
    old = set(identity_columns(plan))
    columns = [
        F.when(leaves, F.col(f"`{_OLD}{name}`")).otherwise(F.col(f"`{name}`")).alias(name)
        if name in old
        else F.col(f"`{name}`")
        for name in names
    ]
    action = F.when(F.col(_SIDE) >= 0, F.col(_SIDE)).otherwise(F.col(ACTION)).cast("tinyint").alias(ACTION)
    kept = [F.when(~arrives, F.col(name)).alias(name) for name in (PATH, GROUP)]
    order = [F.col(ORDER)] if change.orders else []
    return sided.select(*columns, action, *order, F.col(KEY), *kept)


def _may_repeat(plan: WritePlan, spec: MergeSpec) -> bool:
    return bool(spec.of_kind(NOT_MATCHED)) and not names_rows(plan, spec)
