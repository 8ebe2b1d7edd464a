"""The routed plan: tags all rows first, then sends each row to the task of its file group.

For global indexes, whose keys may be stored in any partition, and for tables without partitions, where the fused plan
would use a single task.

::

    incoming rows + key ─┐
                         ├─ left join on the key ─► slice of each row, or none ─► one shuffle ─► tasks
    stored keys + slice ─┘

    incoming rows + key ─► record index (hudi_fast.spark.writing.record_index) ─► slice of each row, or none ─► the same

A row with a slice is sent to the task that owns the slice; other rows are sent by the hash of their key to a task that
fills its small files before it creates new ones. Up to one additional partly filled file results per task. Operations
without key lookup need no join: all their rows are sent by the hash of the key.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql import Window
from pyspark.sql import functions as F

from hudi_fast.merging.rules import DELETED_FLAG
from hudi_fast.spark.arrow import parallelism
from hudi_fast.spark.writing.columns import arrow_type, key_text, nested_column, partition_text
from hudi_fast.spark.writing.dml_rows import places_of_changes
from hudi_fast.spark.writing.record_index import LANE, by_index_group, with_slices
from hudi_fast.spark.writing.routed_tasks import BIN, MOVED, SLICE, write_slices
from hudi_fast.spark.writing.routing import addresses, pack_bins, slice_bytes
from hudi_fast.spark.writing.stored import GONE, OLD, OWNER, STORED_KEY, STORED_PATH, places_frame, stored_keys_frame
from hudi_fast.spark.writing.tasks import ANSWER_SCHEMA, answers
from hudi_fast.view.slices import FileSlice, latest_slices
from hudi_fast.writing.dml_rows import GROUP
from hudi_fast.writing.plan import WritePlan

__all__ = ["run_routed"]

_KEY, _PATH = "__hudi_fast_key", "__hudi_fast_path"
_SIDE, _ORDER = "__hudi_fast_side", "__hudi_fast_order"
_STAYS, _FIRST, _CLEARED = "__hudi_fast_stays", "__hudi_fast_first", "__hudi_fast_cleared"

TASKS_PER_CORE = 2
_LOOKS_KEYS_UP = frozenset({"upsert", "delete"})


def run_routed(df: Any, plan: WritePlan) -> list[Any]:
    """Join, shuffle, write; returns the tasks' results."""
    spark, names = df.sparkSession, df.columns
    tasks = parallelism(spark) * TASKS_PER_CORE
    slices = [one for name in plan.view.lister.partitions() for one in latest_slices(plan.view, name)]
    owners = _owners(slices, tasks)
    path = partition_text(df, plan.key_config, plan.input_schema)
    rows = df.withColumn(_PATH, F.lit("") if path is None else path)
    if GROUP in names:
        placed = places_of_changes(rows, plan, slices, owners)
    elif plan.operation in _LOOKS_KEYS_UP:
        rows = rows.withColumn(_KEY, key_text(df, plan.key_config, plan.input_schema))
        if plan.index.uses_records and slices:
            rows = by_index_group(rows, _KEY, plan, tasks)
        rows = _newest_of_each_key(rows, plan) if plan.index.is_global and not plan.is_dml else rows
        placed = _placed(rows, plan, slices, owners) if slices else _all_new(rows, plan)
    else:
        placed = _all_new(rows.withColumn(_KEY, _spread(df, plan)), plan)
    lane = F.coalesce(F.col(OWNER), F.pmod(F.hash(_KEY), F.lit(tasks)))
    placed = placed.withColumn(BIN, lane)
    table = F.array(*[F.lit(number) for number in addresses(tasks)])
    addressed = placed.withColumn(OWNER, F.element_at(table, (F.col(BIN) + F.lit(1)).cast("int")))
    routed = addressed.repartition(tasks, OWNER).sortWithinPartitions(F.col(SLICE).asc_nulls_first(), _PATH)
    routed = routed.select(*[f"`{name}`" for name in names], SLICE, MOVED, BIN)
    work = write_slices(plan, slices, owners)
    collected: list[Any] = routed.mapInArrow(answers(plan, work), ANSWER_SCHEMA).collect()
    return collected


def _spread(df: Any, plan: WritePlan) -> Any:
    """The routing column of rows without key lookup; rows with one key are sent to one task, to be combined."""
    return (
        key_text(df, plan.key_config, plan.input_schema)
        if plan.key_config.record_key_fields
        else F.spark_partition_id()
    )


def _owners(slices: list[FileSlice], tasks: int) -> list[int]:
    """The task that owns each slice, balanced by size."""
    sizes = {f"{number:012d}": slice_bytes(one) for number, one in enumerate(slices)}
    bins = pack_bins(sizes, tasks)
    return [bins[f"{number:012d}"] for number in range(len(slices))]


def _placed(rows: Any, plan: WritePlan, slices: list[FileSlice], owners: list[int]) -> Any:
    """Rows with slice, owner, and whether the stored row is deleted because its key moves to another partition."""
    moves = plan.index.is_global and plan.index.update_partition_path and plan.operation != "delete"
    if plan.index.uses_records:
        joined = _located(rows, plan, slices, owners)
        joined = _compared(joined, plan, slices, owners) if moves and _orderings(rows, plan) else joined
    else:
        joined = _joined(rows, stored_keys_frame(rows.sparkSession, plan, slices, owners), plan)
    joined = _without_idle(joined, plan)
    return _moved(joined, plan) if moves else joined.withColumn(MOVED, F.lit(False))


def _joined(rows: Any, stored: Any, plan: WritePlan) -> Any:
    """Join rows to the stored rows of their keys."""
    on = F.col(_KEY) == F.col(STORED_KEY)
    if not plan.index.is_global:
        on = on & (F.col(_PATH) == F.col(STORED_PATH))
    elif plan.index.update_partition_path:  # the old slice of a moved key: its log deletes the row
        stored = stored.filter(~F.coalesce(F.col(GONE), F.lit(False)))
    return rows.join(stored, on, "left")


def _located(rows: Any, plan: WritePlan, slices: list[FileSlice], owners: list[int]) -> Any:
    """Rows with the slice from the record index; with an unreadable index any task gets the rows and raises."""
    found = with_slices(rows, _KEY, plan, slices, SLICE)
    return found.join(F.broadcast(places_frame(rows.sparkSession, slices, owners)), SLICE, "left")


def _compared(located: Any, plan: WritePlan, slices: list[FileSlice], owners: list[int]) -> Any:
    """Rows that may leave their partition, with the stored row that a reader sees; without a slice if there is no row.

    A separate pass over the keys finds their slices, so that no others are opened.
    """
    leaves = F.coalesce(F.col(STORED_PATH) != F.col(_PATH), F.lit(False)) & ~_is_delete(located, plan)
    chosen = sorted(row[0] for row in located.filter(leaves).select(SLICE).distinct().collect())
    stored = stored_keys_frame(located.sparkSession, plan, slices, owners, chosen)
    stored = stored.filter(~F.col(GONE)).select(STORED_KEY, OLD, F.col(SLICE).alias(_SIDE))
    joined = located.join(stored, (F.col(_KEY) == F.col(STORED_KEY)) & (F.col(SLICE) == F.col(_SIDE)), "left")
    stays = ~leaves | F.col(STORED_KEY).isNotNull()
    for name in (OWNER, STORED_PATH, SLICE):
        joined = joined.withColumn(name, F.when(stays, F.col(name)))
    return joined


def _moved(joined: Any, plan: WritePlan) -> Any:
    """Duplicate rows whose key changes partition: delete the stored row, insert the incoming one."""
    here = F.coalesce(F.col(STORED_PATH) == F.col(_PATH), F.lit(False))
    moved = F.col(STORED_PATH).isNotNull() & ~here & ~_is_delete(joined, plan)
    judged = joined.withColumn(MOVED, moved)
    if plan.index.uses_records:  # a key has one place
        judged = judged.withColumn(_STAYS, here).filter(~F.col(MOVED) | _wins(judged, plan))
        judged = judged.withColumn(_FIRST, F.lit(True))
    else:
        same_key = Window.partitionBy(_KEY)
        judged = judged.withColumn(_STAYS, F.max(here).over(same_key)).filter(~F.col(MOVED) | _wins(judged, plan))
        judged = judged.withColumn(_FIRST, F.row_number().over(same_key.orderBy(SLICE)) == 1)
    stored_side = F.struct(F.col(SLICE).alias("slice"), F.col(OWNER).alias("owner"), F.col(MOVED).alias("moved"))
    nothing = F.lit(None).cast("int")
    new_side = F.struct(nothing.alias("slice"), nothing.alias("owner"), F.lit(False).alias("moved"))
    arrives = F.col(MOVED) & ~F.col(_STAYS) & F.col(_FIRST)
    sides = F.when(arrives, F.array(stored_side, new_side)).otherwise(F.array(stored_side))
    both = judged.withColumn(_SIDE, F.explode(sides))
    for name, member in ((SLICE, "slice"), (OWNER, "owner"), (MOVED, "moved")):
        both = both.withColumn(name, F.col(f"{_SIDE}.{member}"))
    return both


def _all_new(rows: Any, plan: WritePlan) -> Any:
    """Rows that are inserted without lookup."""
    nothing = F.lit(None).cast("int")
    rows = rows.withColumn(SLICE, nothing).withColumn(OWNER, nothing).withColumn(MOVED, F.lit(False))
    return _without_idle(rows, plan)


def _without_idle(rows: Any, plan: WritePlan) -> Any:
    """Drop deletes of keys that are not stored; keep rows without a key, which their task refuses."""
    return rows.filter(F.col(SLICE).isNotNull() | F.col(_KEY).isNull()) if plan.operation == "delete" else rows


def _newest_of_each_key(rows: Any, plan: WritePlan) -> Any:
    """Combine before keys are looked up: with a global index rows of one key may belong to different partitions.

    The rules are those of :mod:`hudi_fast.merging.combine`.
    """
    # Rows that are in one task for the record index stay there.
    same_key = Window.partitionBy(*[name for name in (LANE, _KEY) if name in rows.columns])
    rows = rows.withColumn(_ORDER, F.monotonically_increasing_id())
    orderings = [] if plan.operation == "delete" else _orderings(rows, plan)
    newest = [value.desc_nulls_last() for value, _ in orderings]
    if orderings and _delete_flags(rows, plan):
        without = F.lit(True)
        for _, raw in orderings:
            without = without & raw.isNull()
        rows = rows.withColumn(_CLEARED, F.when(_is_delete(rows, plan) & without, F.col(_ORDER)))
        rows = rows.withColumn(_FIRST, F.max(_CLEARED).over(same_key))
        rows = rows.filter(F.col(_FIRST).isNull() | (F.col(_ORDER) >= F.col(_FIRST)))
        newest = [F.col(_CLEARED).isNotNull().asc(), *newest]
    order = same_key.orderBy(*newest, F.col(_ORDER).desc())
    rows = rows.withColumn(_FIRST, F.row_number().over(order) == 1).filter(F.col(_FIRST))
    return rows.drop(_FIRST, _ORDER, _CLEARED)


def _wins(joined: Any, plan: WritePlan) -> Any:
    """Whether the incoming ordering value is at least the stored one's."""
    result: Any = F.lit(True)
    stored = _orderings(joined, plan, within=OLD)
    for (new, _), (old, _) in reversed(list(zip(_orderings(joined, plan), stored, strict=True))):
        greater = (new > old) | (new.isNotNull() & old.isNull())
        result = F.coalesce(greater, F.lit(False)) | (new.eqNullSafe(old) & result)
    return result


def _orderings(rows: Any, plan: WritePlan, within: str = "") -> list[tuple[Any, Any]]:
    """Ordering values in the table's types: in comparable form (see :mod:`hudi_fast.merging.rules`), and unchanged.

    ``within``: the struct of ``rows`` that holds them.
    """
    from pyspark.sql.pandas.types import from_arrow_type

    found = []
    for name in plan.rules.ordering_fields if plan.rules.compares else ():
        kind = arrow_type(plan.schema, name)
        given = bool(within) or name.split(".")[0] in rows.columns
        raw = nested_column(f"{within}.{name}" if within else name) if given else F.lit(None)
        value = raw.cast(from_arrow_type(kind, prefer_timestamp_ntz=True))
        if pa.types.is_boolean(kind):
            value = value.cast("int")
        if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or _is_fraction(kind):
            value = F.coalesce(value, F.lit(0))
        found.append((value, raw))
    return found


def _is_fraction(kind: pa.DataType) -> bool:
    return bool(pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _is_delete(rows: Any, plan: WritePlan) -> Any:
    flags = F.lit(False)
    for flag in _delete_flags(rows, plan):
        flags = flags | F.coalesce(flag, F.lit(False))
    return flags


def _delete_flags(rows: Any, plan: WritePlan) -> list[Any]:
    flags = [F.col(DELETED_FLAG)] if DELETED_FLAG in rows.columns else []
    if plan.rules.delete_field is not None and plan.rules.delete_field in rows.columns:
        flags.append(F.col(f"`{plan.rules.delete_field}`").cast("string") == F.lit(plan.rules.delete_marker))
    return flags
