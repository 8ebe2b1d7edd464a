"""The routed plan: stored keys are joined to incoming ones by Spark, then rows go to the task of their file group.

For global indexes, whose keys may be stored in any partition, and for tables without partitions, where one task would
have all the work otherwise.

::

    incoming rows + key ─┐
                         ├─ left join on the key ─► slice of each row, or none ─► one shuffle ─► tasks
    stored keys + slice ─┘

A row with a slice goes to the task that owns it; a row without one goes to a task by the hash of its key, and that
task fills the small files it owns before it makes new ones. So up to one partly filled file more arises per task.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql import Window
from pyspark.sql import functions as F

from hudi_fast.merge.rules import DELETED_FLAG
from hudi_fast.spark.arrow import parallelism
from hudi_fast.spark.columns import key_text, partition_text, route_name
from hudi_fast.spark.routed_tasks import BIN, MOVED, SLICE, write_slices
from hudi_fast.spark.routing import addresses, pack_bins
from hudi_fast.spark.tasks import ANSWER_SCHEMA, answers
from hudi_fast.view.slices import FileSlice, latest_slices
from hudi_fast.writing.plan import WritePlan

__all__ = ["run_routed"]

_KEY, _PATH, _FILE = "__hudi_fast_key", "__hudi_fast_path", "__hudi_fast_file"
_STORED_KEY, _STORED_PATH, _OLD = "__hudi_fast_stored_key", "__hudi_fast_stored_path", "__hudi_fast_old"
_OWNER, _SIDE = "__hudi_fast_owner", "__hudi_fast_side"
_STAYS, _FIRST = "__hudi_fast_stays", "__hudi_fast_first"

TASKS_PER_CORE = 2


def run_routed(df: Any, plan: WritePlan) -> list[Any]:
    """Join, shuffle, write; the collected answers."""
    spark, names = df.sparkSession, df.columns
    tasks = parallelism(spark) * TASKS_PER_CORE
    slices = [one for name in plan.view.lister.partitions() for one in latest_slices(plan.view, name)]
    slices = [one for one in slices if one.base_file is not None]
    owners = _owners(slices, tasks)
    path = partition_text(df, plan.key_config, plan.schema)
    rows = df.withColumn(_KEY, key_text(df, plan.key_config, plan.schema))
    rows = rows.withColumn(_PATH, F.lit("") if path is None else path)
    if plan.index.is_global:
        rows = _newest_of_each_key(rows, plan)
    placed = _placed(rows, _stored(spark, plan, slices, owners), plan) if slices else _all_new(rows, plan)
    lane = F.coalesce(F.col(_OWNER), F.pmod(F.hash(_KEY), F.lit(tasks)))
    placed = placed.withColumn(BIN, lane)
    table = F.array(*[F.lit(number) for number in addresses(tasks)])
    addressed = placed.withColumn(_OWNER, F.element_at(table, (F.col(BIN) + F.lit(1)).cast("int")))
    routed = addressed.repartition(tasks, _OWNER).sortWithinPartitions(F.col(SLICE).asc_nulls_first(), _PATH)
    routed = routed.select(*[f"`{name}`" for name in names], SLICE, MOVED, BIN)
    collected: list[Any] = routed.mapInArrow(answers(write_slices(plan, slices, owners)), ANSWER_SCHEMA).collect()
    return collected


def _owners(slices: list[FileSlice], tasks: int) -> list[int]:
    """The task that owns each slice, balanced by size."""
    sizes = {f"{number:012d}": one.base_file.size for number, one in enumerate(slices) if one.base_file is not None}
    bins = pack_bins(sizes, tasks)
    return [bins[f"{number:012d}"] for number in range(len(slices))]


def _stored(spark: Any, plan: WritePlan, slices: list[FileSlice], owners: list[int]) -> Any:
    """One row per stored key: key, slice, owner, routing path, and what decides whether it gives way to a newer row."""
    from pyspark.sql.pandas.types import from_arrow_schema

    keyed = plan.stored_key_config
    ordering = _ordering_roots(plan)
    roots = [name.split(".")[0] for name in plan.key_config.record_key_fields] if keyed is not None else []
    wanted = dict.fromkeys([*roots, *ordering])
    fields = [plan.schema.field(name).with_nullable(True) for name in wanted]
    if keyed is None:
        fields = [pa.field("_hoodie_record_key", pa.string()), *fields]
    files = [plan.storage.absolute(one.base_file.path) for one in slices if one.base_file is not None]
    schema = from_arrow_schema(pa.schema(fields), prefer_timestamp_ntz=True)
    scan = spark.read.schema(schema).parquet(*files)
    key = F.col("_hoodie_record_key") if keyed is None else key_text(scan, keyed, plan.schema)
    old = F.struct(*[F.col(f"`{name}`") for name in ordering]) if ordering else F.lit(None)
    scan = scan.select(key.alias(_STORED_KEY), F.col("_metadata.file_name").alias(_FILE), old.alias(_OLD))
    listed = [
        (one.base_file.name, number, owners[number], route_name(plan.key_config, one.partition))
        for number, one in enumerate(slices)
        if one.base_file is not None
    ]
    types = f"{_FILE} string, {SLICE} int, {_OWNER} int, {_STORED_PATH} string"
    return scan.join(F.broadcast(spark.createDataFrame(listed, types)), _FILE).drop(_FILE)


def _placed(rows: Any, stored: Any, plan: WritePlan) -> Any:
    """Rows with slice, owner and whether the stored row only goes because its key moves to another partition."""
    on = F.col(_KEY) == F.col(_STORED_KEY)
    if not plan.index.is_global:
        on = on & (F.col(_PATH) == F.col(_STORED_PATH))
    joined = rows.join(stored, on, "inner" if plan.operation == "delete" else "left")
    if not plan.index.is_global or not plan.index.update_partition_path or plan.operation == "delete":
        return joined.withColumn(MOVED, F.lit(False))
    same_key = Window.partitionBy(_KEY)
    here = F.coalesce(F.col(_STORED_PATH) == F.col(_PATH), F.lit(False))
    moved = F.col(SLICE).isNotNull() & ~here & ~_is_delete(joined, plan)
    first = F.row_number().over(same_key.orderBy(SLICE)) == 1
    judged = joined.withColumn(MOVED, moved).withColumn(_STAYS, F.max(here).over(same_key)).withColumn(_FIRST, first)
    judged = judged.filter(~F.col(MOVED) | _wins(plan))
    stored_side = F.struct(F.col(SLICE).alias("slice"), F.col(_OWNER).alias("owner"), F.col(MOVED).alias("moved"))
    nothing = F.lit(None).cast("int")
    new_side = F.struct(nothing.alias("slice"), nothing.alias("owner"), F.lit(False).alias("moved"))
    arrives = F.col(MOVED) & ~F.col(_STAYS) & F.col(_FIRST)
    sides = F.when(arrives, F.array(stored_side, new_side)).otherwise(F.array(stored_side))
    both = judged.withColumn(_SIDE, F.explode(sides))
    for name, member in ((SLICE, "slice"), (_OWNER, "owner"), (MOVED, "moved")):
        both = both.withColumn(name, F.col(f"{_SIDE}.{member}"))
    return both


def _all_new(rows: Any, plan: WritePlan) -> Any:
    """A table without files: every row is an insert."""
    nothing = F.lit(None).cast("int")
    rows = rows.filter(F.lit(False)) if plan.operation == "delete" else rows
    return rows.withColumn(SLICE, nothing).withColumn(_OWNER, nothing).withColumn(MOVED, F.lit(False))


def _newest_of_each_key(rows: Any, plan: WritePlan) -> Any:
    """Combine before keys are looked up: with a global index rows of one key may belong to different partitions."""
    if not plan.combine:
        return rows
    deciding = plan.rules.ordering_fields if plan.rules.compares and plan.operation != "delete" else ()
    newest = [F.col(f"`{name}`").desc_nulls_last() for name in deciding]
    order = Window.partitionBy(_KEY).orderBy(*(newest or [F.lit(0)]))
    return rows.withColumn(_FIRST, F.row_number().over(order) == 1).filter(F.col(_FIRST)).drop(_FIRST)


def _wins(plan: WritePlan) -> Any:
    """Whether the incoming ordering value is at least the stored one's; nulls count as in hudi_fast.merge.rules."""
    if not plan.rules.compares:
        return F.lit(True)
    result: Any = F.lit(True)
    for name in reversed(plan.rules.ordering_fields):
        new, old = F.col(f"`{name}`"), F.col(f"{_OLD}.{name}")
        if pa.types.is_integer(kind := _type_of(plan, name)) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
            new, old = F.coalesce(new, F.lit(0)), F.coalesce(old, F.lit(0))
        greater = (new > old) | (new.isNotNull() & old.isNull())
        result = F.coalesce(greater, F.lit(False)) | (new.eqNullSafe(old) & result)
    return result


def _is_delete(rows: Any, plan: WritePlan) -> Any:
    flags = F.lit(False)
    if DELETED_FLAG in rows.columns:
        flags = flags | F.coalesce(F.col(DELETED_FLAG), F.lit(False))
    if plan.rules.delete_field is not None and plan.rules.delete_field in rows.columns:
        marked = F.col(f"`{plan.rules.delete_field}`").cast("string") == F.lit(plan.rules.delete_marker)
        flags = flags | F.coalesce(marked, F.lit(False))
    return flags


def _ordering_roots(plan: WritePlan) -> list[str]:
    if not plan.rules.compares or plan.operation == "delete":
        return []
    return list(dict.fromkeys(name.split(".")[0] for name in plan.rules.ordering_fields))


def _type_of(plan: WritePlan, name: str) -> pa.DataType:
    first, *inner = name.split(".")
    kind = plan.schema.field(first).type
    for part in inner:
        kind = kind.field(part).type
    return kind
