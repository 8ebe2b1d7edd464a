"""Stored keys as a Spark DataFrame, and DML rows at the file groups that they were read from.

The stored keys of a table as a Spark DataFrame, for the join with incoming keys.

::

    slices ─┬─ base files, without their logs ─────► a scan of the key column ───────────────────────┐
            └─ if the log is needed ───► the core reads base file and log, in Python workers ────────┴─► union

The log is needed where a slice has no base file, where it may hold keys that the base file lacks, and where a row may
move to another partition, which depends on the ordering value that a reader sees.

::

    rows with a file group ──────────────────────────────► its slice
    rows to insert ─┬─ key deleted by a log ─────────────► its slice: new rows with the key are logged there
                    ├─ key stored, where possible ───────► its slice, whose task refuses the row
                    └─ all others ───────────────────────► no slice
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql import Window
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BooleanType, NumericType

from hudi_fast.reading.slice_reader import SliceScan
from hudi_fast.spark.arrow import frame_of, numbers_of, parallelism
from hudi_fast.spark.reading.scan import scan_slices, spark_schema
from hudi_fast.spark.writing.columns import content_hash, key_text
from hudi_fast.values import dataclass
from hudi_fast.view.slices import FileSlice
from hudi_fast.writing.dml_rows import ACTION, CHECK, DELETE, GROUP, KEY, ORDER, PATH
from hudi_fast.writing.file_group import MOVED, SLICE
from hudi_fast.writing.lookup import stored_keys, with_logged_keys
from hudi_fast.writing.write_plan import WritePlan

__all__ = [
    "GONE",
    "OLD",
    "OWNER",
    "STORED_KEY",
    "STORED_PATH",
    "ChangeShape",
    "one_place_per_key",
    "places_frame",
    "places_of_changes",
    "stored_keys_frame",
    "undefeated",
]

OWNER = "__hudi_fast_owner"
STORED_KEY, STORED_PATH = "__hudi_fast_stored_key", "__hudi_fast_stored_path"
OLD, GONE = "__hudi_fast_old", "__hudi_fast_gone"
"""Columns of stored keys; :func:`stored_keys_frame` describes them."""

_FILE = "__hudi_fast_file"


def stored_keys_frame(
    spark: Any,
    plan: WritePlan,
    slices: Sequence[FileSlice],
    owners: Sequence[int],
    chosen: Sequence[int] | None = None,
) -> Any:
    """One row per stored key.

    Columns: :data:`STORED_KEY`; :data:`SLICE`, the number of its slice; :data:`OWNER`, the task of that slice;
    :data:`STORED_PATH`, its partition; :data:`OLD`, a struct of the row's ordering columns, null when not needed;
    :data:`GONE`, whether the log has deleted the row, set only where ordering values are read.

    Args:
        spark: the session.
        plan: the write.
        slices: at least one.
        owners: the task that owns each of them.
        chosen: numbers of the slices to read; None for all.
    """
    compares = plan.index.is_global and plan.index.update_partition_path and bool(_ordering_roots(plan))
    by_log = [
        one.base_file is None or (compares and bool(one.log_files)) or with_logged_keys(plan, one) is not None
        for one in slices
    ]
    numbers = range(len(slices)) if chosen is None else chosen
    parts = []
    if scanned := [number for number in numbers if not by_log[number]]:
        parts.append(_scanned(spark, plan, slices, scanned))
    if read := [number for number in numbers if by_log[number]]:
        parts.append(_read(spark, plan, slices, read))
    if not parts:
        return _nothing(spark, plan)
    keys = parts[0] if len(parts) == 1 else parts[0].unionByName(parts[1])
    return keys.join(F.broadcast(places_frame(spark, slices, owners)), SLICE)


def places_frame(spark: Any, slices: Sequence[FileSlice], owners: Sequence[int], file_id: str | None = None) -> Any:
    """One row per slice: :data:`SLICE`, :data:`OWNER` and :data:`STORED_PATH`.

    Args:
        spark: the session.
        slices: the slices; a slice's number is its position.
        owners: the task that owns each of them.
        file_id: name of another column, with the file id.
    """
    places = {
        SLICE: pa.array(range(len(slices)), pa.int32()),
        OWNER: pa.array(owners, pa.int32()),
        STORED_PATH: pa.array([one.partition for one in slices], pa.string()),
    }
    if file_id is not None:
        places[file_id] = pa.array([one.file_id for one in slices], pa.string())
    return frame_of(spark, pa.table(places))


def _ordering_roots(plan: WritePlan) -> list[str]:
    """The columns of ordering values; empty when they are not needed."""
    if not plan.rules.compares or plan.operation == "delete":
        return []
    return list(dict.fromkeys(name.split(".")[0] for name in plan.rules.ordering_fields))


def _nothing(spark: Any, plan: WritePlan) -> Any:
    """An empty DataFrame with the columns of stored keys."""
    fields = [plan.schema.field(name).with_nullable(True) for name in _ordering_roots(plan)]
    schema = spark_schema(pa.schema(fields)).add(STORED_KEY, "string").add(SLICE, "integer").add(GONE, "boolean")
    schema = schema.add(OWNER, "integer").add(STORED_PATH, "string")
    rows = spark.createDataFrame([], schema)
    return rows.select(STORED_KEY, _struct(_ordering_roots(plan)), GONE, SLICE, OWNER, STORED_PATH)


def _scanned(spark: Any, plan: WritePlan, slices: Sequence[FileSlice], numbers: Sequence[int]) -> Any:
    keyed = plan.stored_key_config
    roots = [name.split(".")[0] for name in plan.key_config.record_key_fields] if keyed is not None else []
    ordering = _ordering_roots(plan)
    fields = [plan.schema.field(name).with_nullable(True) for name in dict.fromkeys([*roots, *ordering])]
    if keyed is None:
        fields = [pa.field("_hoodie_record_key", pa.string()), *fields]
    wanted = pa.schema(fields)
    based = [replace(slices[number], log_files=()) for number in numbers]
    scan = scan_slices(spark, SliceScan(plan.storage, plan.config, wanted, wanted, None), based, file_name=_FILE)
    key = F.col("_hoodie_record_key") if keyed is None else key_text(scan, keyed, plan.schema, stored=True)
    scan = scan.select(key.alias(STORED_KEY), _FILE, _struct(ordering), F.lit(False).alias(GONE))
    named = [(one.name, number) for number in numbers if (one := slices[number].base_file) is not None]
    columns = {
        _FILE: pa.array([name for name, _ in named], pa.string()),
        SLICE: pa.array([number for _, number in named], pa.int32()),
    }
    files = frame_of(spark, pa.table(columns))
    return scan.join(F.broadcast(files), _FILE).drop(_FILE)


def _read(spark: Any, plan: WritePlan, slices: Sequence[FileSlice], numbers: Sequence[int]) -> Any:
    ordering = _ordering_roots(plan)
    fields = [plan.schema.field(name).with_nullable(True) for name in ordering]
    schema = spark_schema(pa.schema(fields)).add(STORED_KEY, "string").add(SLICE, "integer").add(GONE, "boolean")
    target = to_arrow_schema(schema)
    chosen = [(number, slices[number]) for number in numbers]

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for place in [place for batch in batches for place in batch.column(0).to_pylist()]:
            number, one = chosen[place]
            found = stored_keys(plan, one)
            columns = [found.rows.column(name).combine_chunks() for name in ordering]
            columns += [found.keys, pa.repeat(pa.scalar(number, pa.int32()), len(found.keys)), pa.array(found.gone)]
            table = pa.table(columns, names=target.names).cast(target)
            yield from table.to_batches()

    tasks = min(len(numbers), 4 * parallelism(spark))
    size = sum(one.weight for _, one in chosen)
    rows = numbers_of(spark, len(numbers), tasks, size, len(schema)).mapInArrow(read, schema)
    return rows.select(STORED_KEY, _struct(ordering), GONE, SLICE)


def _struct(ordering: Sequence[str]) -> Any:
    values = F.struct(*[F.col(f"`{name}`") for name in ordering]) if ordering else F.lit(None).cast("string")
    return values.alias(OLD)


_KEY, _PATH = "__hudi_fast_key", "__hudi_fast_path"
_BESIDE, _WINS = "__hudi_fast_beside", "__hudi_fast_wins"


@dataclass(frozen=True, slots=True)
class ChangeShape:
    """Facts about changed rows, known before Spark computes them.

    Attributes:
        size: Spark's estimate of the rows' bytes; None if unknown. Spark overestimates the size of a join.
        source: a DataFrame with rows of about their width, which costs less to compute; None for the rows themselves.
        may_insert: whether some rows may be new.
        scanned: (partition path, file id) of the file groups that were read.
    """

    size: int | None
    source: Any
    may_insert: bool
    scanned: frozenset[tuple[str, str]]


def places_of_changes(rows: Any, plan: WritePlan, slices: Sequence[FileSlice], owners: Sequence[int]) -> Any:
    """Rows with the number of their slice, its owner, and whether the stored row is only deleted.

    Args:
        rows: changed rows (:mod:`hudi_fast.writing.dml_rows`), with the partition path from their columns.
        plan: the write.
        slices: of the table.
        owners: the task that owns each of them.
    """
    keyed = bool(plan.key_config.record_key_fields)
    made = key_text(rows, plan.key_config, plan.schema) if keyed else content_hash(rows).cast("string")
    rows = rows.withColumn(_KEY, F.coalesce(F.col(KEY), made))
    rows = rows.withColumn(_PATH, F.coalesce(F.col(PATH), F.col(_PATH)))
    if plan.index.is_global and plan.config.is_partitioned:
        rows = one_place_per_key(rows, _KEY, _PATH, F.when(F.col(GROUP).isNotNull(), F.struct(PATH, GROUP)))
    rows = rows.withColumn(MOVED, F.col(ACTION) == F.lit(DELETE))
    places = places_frame(rows.sparkSession, slices, owners, STORED_KEY)
    here = (F.col(_PATH) == F.col(STORED_PATH)) & (F.col(GROUP) == F.col(STORED_KEY))
    placed = rows.join(F.broadcast(places), here, "left").drop(STORED_PATH, STORED_KEY)
    chosen = _looked_into(rows, plan, slices) if keyed else []
    return _beside(placed, plan, slices, owners, chosen) if chosen else placed


def undefeated(rows: Any) -> Any:
    """Drop changed rows that lose to another change of the same stored row, before rows are split into moves.

    Rows that tie are kept, to be refused: each of them changes the stored row, or deletes it to move it.
    """
    alone = F.when(F.col(KEY).isNull(), content_hash(rows))  # a new row
    same_row = Window.partitionBy(KEY, PATH, GROUP, alone).orderBy(*_greatest_first(rows))
    return rows.withColumn(_WINS, F.rank().over(same_row) == 1).filter(_WINS).drop(_WINS)


def _greatest_first(rows: Any) -> list[Any]:
    """The order of ordering values, in comparable form (see :mod:`hudi_fast.merging.rules`)."""
    found = []
    for field in rows.schema[ORDER].dataType.fields:
        value = F.col(f"{ORDER}.`{field.name}`")
        if isinstance(field.dataType, BooleanType):
            value = value.cast("int")
        if isinstance(field.dataType, BooleanType | NumericType):
            value = F.coalesce(value, F.lit(0))
        found.append(value.desc_nulls_last())
    return found


def one_place_per_key(rows: Any, key: str, path: str, stored: Any = None) -> Any:
    """Drop new rows that lose to a new row of the same key in another partition, as a global index requires.

    Rows that tie get one path, so they meet in the task that refuses them.

    Args:
        rows: changed rows (:mod:`hudi_fast.writing.dml_rows`).
        key: name of the column with their keys.
        path: name of the column with their partition paths.
        stored: where rows are stored, null for new ones; None if that is not known.
    """
    place = F.lit(None).cast("int") if stored is None else stored
    same_key = Window.partitionBy(key, place)
    if ORDER in rows.columns:
        wins = F.rank().over(same_key.orderBy(*_greatest_first(rows))) == 1
        rows = rows.withColumn(_WINS, wins | place.isNotNull()).filter(_WINS).drop(_WINS)
    return rows.withColumn(path, F.min(path).over(same_key))


def _looked_into(rows: Any, plan: WritePlan, slices: Sequence[FileSlice]) -> list[int]:
    """Numbers of the slices that may hold keys of rows to insert."""
    if CHECK in rows.columns:
        return list(range(len(slices)))
    return [number for number, one in enumerate(slices) if one.log_files] if plan.config.is_mor else []


def _beside(
    placed: Any, plan: WritePlan, slices: Sequence[FileSlice], owners: Sequence[int], chosen: Sequence[int]
) -> Any:
    stored = stored_keys_frame(placed.sparkSession, plan, slices, owners, chosen)
    stored = stored.select(
        STORED_KEY, STORED_PATH, F.struct(F.col(SLICE).alias("slice"), F.col(OWNER).alias("owner")).alias(_BESIDE)
    ).dropDuplicates([STORED_KEY, STORED_PATH])
    on = F.col(SLICE).isNull() & (F.col(_KEY) == F.col(STORED_KEY))
    if not (CHECK in placed.columns and plan.index.is_global):
        on = on & (F.col(_PATH) == F.col(STORED_PATH))
    joined = placed.join(stored, on, "left")
    for name, member in ((SLICE, "slice"), (OWNER, "owner")):
        joined = joined.withColumn(name, F.coalesce(F.col(name), F.col(f"{_BESIDE}.{member}")))
    return joined.drop(STORED_KEY, STORED_PATH, _BESIDE)
