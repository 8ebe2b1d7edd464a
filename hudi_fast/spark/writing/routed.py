"""The routed plan: finds the file group of each row, then sends each file group's rows to one task.

Used for global indexes, whose keys may be stored in any partition, and where tasks for whole partitions would be too
large or too few because some partitions have many rows.

::

    local index:   rows + key ─► lookup in the partition (key_lookup.py) ─┐
    record index:  rows + key ─► lookup (record_index.py) ────────────────┼─► slice, or none ─► bucket ─► one shuffle
    others:        rows + key ─► join with stored keys (stored.py) ───────┘                       ▲           │
    workload profile ─► small files and new files of each partition ──────────────────────────────┘           ▼
                                                                                                            tasks

A bucket is one file group. A row with a slice is in the bucket of its slice. Another row is inserted: a hash of its key
selects one of the files that the profile provides for its partition, so rows with one key stay together. Operations
without key lookup need no join. From PySpark 4.1 on, rows that are looked up in their partition or in the record index
get their bucket in Python and are sent as bytes (packed_rows.py), unless they may move to another partition.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import Window
from pyspark.sql import functions as F

from hudi_fast.merging.rules import DELETED_FLAG, OPERATION
from hudi_fast.spark.arrow import arrow_schema, frame_of, parallelism
from hudi_fast.spark.incoming.file_scan import FileScan
from hudi_fast.spark.writing.columns import (
    arrow_type,
    content_hash,
    key_column,
    key_text,
    nested_column,
    pack_bins,
    partition_text,
    task_address,
)
from hudi_fast.spark.writing.key_lookup import (
    LANE,
    IndexLanes,
    Lanes,
    by_index_group,
    by_index_lanes,
    by_lanes,
    index_lanes,
    lanes_of_partitions,
    places_by_index,
    places_of_keys,
    with_looked_up_slices,
    with_slices,
)
from hudi_fast.spark.writing.packed_rows import BatchRows, Find, KeyedScan, KeyLookup, packed_rows, sent_schema
from hudi_fast.spark.writing.sent_batches import packs_rows, unpacking_as
from hudi_fast.spark.writing.stored import (
    GONE,
    OLD,
    OWNER,
    STORED_KEY,
    STORED_PATH,
    one_place_per_key,
    places_frame,
    places_of_changes,
    stored_keys_frame,
)
from hudi_fast.spark.writing.tasks import Answer, run_tasks, write_buckets
from hudi_fast.spark.writing.workload import TASKS_PER_CORE, Buckets, InsertPlace, insert_places
from hudi_fast.values import dataclass
from hudi_fast.view.slices import FileSlice, latest_slices
from hudi_fast.writing.dml_rows import GROUP
from hudi_fast.writing.file_group import BUCKET, MOVED, ORIGIN, SLICE
from hudi_fast.writing.located import KEYS_AT_ONCE
from hudi_fast.writing.profile import InsertFiles, WorkloadProfile, bulk_parts, insert_files
from hudi_fast.writing.write_plan import WritePlan

__all__ = ["run_routed", "takes_files"]

_KEY, _PATH = "__hudi_fast_key", "__hudi_fast_path"
_SIDE, _ORDER = "__hudi_fast_side", "__hudi_fast_order"
_STAYS, _FIRST, _CLEARED = "__hudi_fast_stays", "__hudi_fast_first", "__hudi_fast_cleared"
_PLACE, _HASH, _TARGET = "__hudi_fast_place", "__hudi_fast_hash", "__hudi_fast_target"

_LOOKS_KEYS_UP = frozenset({"upsert", "delete"})

_SAMPLED_KEYS = 50_000
"""Keys that are looked up to estimate the share of new ones."""
_FEWEST_SAMPLED = 50
"""With fewer sampled rows a partition gets the share of the whole write."""

_PLACES = pa.struct(
    [
        ("first", pa.int32()),
        ("files", pa.int32()),
        ("last", pa.int32()),
        ("filled", pa.float64()),
        ("slot_scale", pa.float64()),
        ("new_scale", pa.float64()),
        ("slots", pa.list_(pa.struct([("bucket", pa.int32()), ("task", pa.int32())]))),
    ]
)
_HASH_RANGE = 1 << 31


@dataclass(frozen=True, slots=True)
class _Routes:
    """The file groups of a write, and the tasks that own them.

    Attributes:
        slices: existing file groups; a slice's bucket is its position.
        owners: the task of each slice.
        tasks: number of tasks. The task of a new file group is its bucket modulo this number.
        complete: whether these are all slices of the table; otherwise only slices of the partitions in the profile.
        lanes: the tasks that look keys up; None to join them with all stored keys.
    """

    slices: Sequence[FileSlice]
    owners: Sequence[int]
    tasks: int
    complete: bool
    lanes: Lanes | None


def run_routed(
    df: Any,
    plan: WritePlan,
    profile: WorkloadProfile | None,
    tasks: int,
    scanned: Collection[tuple[str, str]] | None = None,
    scan: FileScan | None = None,
) -> list[Answer]:
    """Find file groups, shuffle, write; returns the tasks' results.

    Args:
        df: the rows.
        plan: the write.
        profile: rows per partition; None if unknown. New rows are then spread over all tasks, and each task creates
            files of its own.
        tasks: number of tasks that write.
        scanned: (partition path, file id) of the file groups that changed rows were read from; None for other rows.
        scan: the same rows, which tasks read themselves; only if :func:`takes_files`.
    """
    routes = _routes(plan, profile, tasks, parallelism(df.sparkSession), scanned)
    path = partition_text(df, plan.key_config, plan.input_schema)
    rows = df.withColumn(_PATH, F.lit("") if path is None else path)
    files = {} if profile is None else _insert_files(plan, routes, profile)
    several = any(len(one.filled) + one.new_files > 1 for one in files.values())
    unsure = plan.operation == "upsert" and scanned is None
    if profile is not None and several and unsure and routes.slices:
        files = _insert_files(plan, routes, _with_new_share(rows, plan, routes, profile))
    if profile is not None and _packs(rows, plan, routes, scanned):
        return _run_packed(rows, plan, routes, files, profile, scan)
    placed = _with_buckets(_tagged(rows, plan, routes), routes, files)
    routed = placed.repartition(tasks, OWNER).sortWithinPartitions(BUCKET)  # one integer: Spark sorts it by radix
    routing = [name for name in (SLICE, MOVED, ORIGIN, BUCKET) if name in routed.columns]
    routed = routed.select(*[f"`{name}`" for name in df.columns], *routing)
    work = write_buckets(plan, routes.slices, None if routes.complete else _first_uncounted(routes, files))
    return run_tasks(routed, plan, work)


def takes_files(spark: Any, plan: WritePlan, profile: WorkloadProfile | None, tasks: int) -> bool:
    """Whether rows that Python reads get their bucket there.

    Keys are looked up in their partition, in the record index, or not at all.

    Args:
        spark: the session.
        plan: the write.
        profile: rows per partition; None if unknown.
        tasks: number of tasks that write.
    """
    if profile is None or not packs_rows(spark):
        return False
    if plan.operation not in _LOOKS_KEYS_UP:
        return True
    routes = _routes(plan, profile, tasks, parallelism(spark), None)
    if not routes.slices:
        return not plan.index.is_global and plan.operation == "upsert"
    return routes.lanes is not None or _looks_up_places(plan)


def _packs(rows: Any, plan: WritePlan, routes: _Routes, scanned: Collection[tuple[str, str]] | None) -> bool:
    """Whether rows get their bucket in Python, by tasks that send them on as bytes."""
    if not packs_rows(rows.sparkSession) or GROUP in rows.columns:
        return False
    if plan.operation not in _LOOKS_KEYS_UP:
        return True
    if not routes.slices:
        return not plan.index.is_global and plan.operation == "upsert"
    return routes.lanes is not None or (scanned is None and _looks_up_places(plan))


def _looks_up_places(plan: WritePlan) -> bool:
    """Whether the record index alone says where each row goes: a row of a key that it has stays in its partition."""
    return plan.index.uses_records and not _moves_rows(plan)


def _run_packed(
    rows: Any,
    plan: WritePlan,
    routes: _Routes,
    files: Mapping[str, InsertFiles],
    profile: WorkloadProfile,
    scan: FileScan | None,
) -> list[Answer]:
    """Look keys up in lanes, which send rows on as bytes; then write. Without stored keys no lanes are needed."""
    uncounted, spark = _first_uncounted(routes, files), rows.sparkSession
    buckets = Buckets(routes.slices, routes.owners, routes.tasks, insert_places(files, len(routes.slices)), uncounted)
    key, added = key_column(rows, plan.key_config, plan.input_schema), [_PATH]
    if key is None or scan is not None:
        key, added = _KEY, [_KEY, _PATH]
    find: Find | None = None
    lanes: Lanes | IndexLanes | None = None
    looks_up = bool(routes.slices) and plan.operation in _LOOKS_KEYS_UP
    lookups = max(_lookup_tasks(routes.tasks), -(-profile.total // KEYS_AT_ONCE))
    if looks_up and routes.lanes is not None:
        lanes, find = routes.lanes, partial(places_of_keys, plan, routes.slices)
    elif looks_up:
        find = partial(places_by_index, plan, routes.slices)
        lanes = index_lanes(plan, lookups, profile.total) if scan is not None else None
    placed: BatchRows
    if scan is not None:
        keyed = KeyedScan(spark, scan, plan, _KEY, _PATH, lookups if looks_up and lanes is None else 0)
        placed, schema = keyed if lanes is None else keyed.in_lanes(lanes), sent_schema(scan.schema)
    else:
        rows = rows.withColumn(_KEY, _spread(rows, plan)) if key == _KEY else rows
        schema = sent_schema(arrow_schema(rows.drop(*added)))
        if routes.lanes is not None and looks_up:
            rows = by_lanes(rows, key, _PATH, routes.lanes)
        elif looks_up:
            rows = by_index_lanes(rows, key, plan, lookups, profile.total)
        placed = rows
    lookup = KeyLookup(
        key,
        _PATH,
        added,
        find,
        only_stored=plan.operation == "delete" and routes.complete,
        combines=plan.operation == "upsert" and plan.index.is_global,
    )
    packed = packed_rows(spark, placed, schema, plan, buckets, lookup)
    work = write_buckets(plan, routes.slices, None if routes.complete else uncounted)
    return run_tasks(packed, plan, unpacking_as(schema, work))


def _routes(
    plan: WritePlan,
    profile: WorkloadProfile | None,
    tasks: int,
    cores: int,
    scanned: Collection[tuple[str, str]] | None,
) -> _Routes:
    """The slices that may hold keys of the rows, or take inserts."""
    known = plan.view.lister.partitions() if plan.operation != "bulk_insert" else []
    complete = profile is None or scanned is not None or plan.index.is_global or not plan.config.is_partitioned
    if profile is not None and not complete:
        known = [name for name in known if name in profile.rows]
    slices = [one for name in known for one in latest_slices(plan.view, name)]
    local = scanned is None and not (plan.index.is_global or plan.index.uses_records)
    lanes = _lanes(profile, slices, tasks, cores) if profile is not None and local else None
    return _Routes(slices, _owners(slices, tasks, scanned), tasks, complete, lanes)


def _lanes(profile: WorkloadProfile, slices: Sequence[FileSlice], tasks: int, cores: int) -> Lanes | None:
    """The tasks that look keys up in their partitions."""
    lookups = _lookup_tasks(tasks)
    inputs = profile.inputs if lookups >= cores else 0  # fewer tasks than cores must not compute the rows
    return lanes_of_partitions(profile.rows, slices, lookups, inputs)


def _lookup_tasks(tasks: int) -> int:
    """The number of tasks that look keys up: few, because each of them reads all keys of a partition, or the index."""
    return -(-tasks // TASKS_PER_CORE)


def _tagged(rows: Any, plan: WritePlan, routes: _Routes, sample: int = 1) -> Any:
    """Rows with slice, owner and whether they leave the slice.

    Args:
        rows: have :data:`_PATH`.
        plan: the write.
        routes: the file groups.
        sample: 1 for all rows; n for the rows of one key in n.
    """
    slices, owners = routes.slices, routes.owners
    if GROUP in rows.columns:
        return places_of_changes(rows, plan, slices, owners)
    if plan.operation not in _LOOKS_KEYS_UP:
        return _all_new(rows.withColumn(_KEY, _spread(rows, plan)))
    rows = rows.withColumn(_KEY, key_text(rows, plan.key_config, plan.input_schema))
    rows = _sampled(rows, _KEY, sample)
    if plan.index.uses_records and slices:
        rows = by_index_group(rows, _KEY, plan, routes.tasks)
    if sample > 1:
        return (
            _located(rows, plan, slices, owners)
            if plan.index.uses_records
            else _joined_sample(rows, plan, routes, sample)
        )
    if plan.index.is_global:
        rows = one_place_per_key(rows, _KEY, _PATH) if plan.is_dml else _newest_of_each_key(rows, plan)
    if slices and routes.lanes is not None:
        placed = _looked_up(rows, plan, routes, routes.lanes)
    else:
        placed = _placed(rows, plan, slices, owners) if slices else _all_new(rows)
    return _without_idle(placed) if plan.operation == "delete" and routes.complete else placed


def _sampled(rows: Any, key: str, sample: int) -> Any:
    """The rows of one key in ``sample``."""
    return rows if sample == 1 else rows.filter(F.pmod(F.hash(key), F.lit(sample)) == 0)


def _looked_up(rows: Any, plan: WritePlan, routes: _Routes, lanes: Lanes) -> Any:
    rows = by_lanes(rows, _KEY, _PATH, lanes)
    found = with_looked_up_slices(rows, _KEY, _PATH, plan, routes.slices, SLICE)
    places = places_frame(rows.sparkSession, routes.slices, routes.owners)
    return found.join(F.broadcast(places), SLICE, "left").withColumn(MOVED, F.lit(False))


def _joined_sample(rows: Any, plan: WritePlan, routes: _Routes, sample: int) -> Any:
    stored = stored_keys_frame(rows.sparkSession, plan, routes.slices, routes.owners)
    return _joined(rows, _sampled(stored, STORED_KEY, sample), plan)


def _with_new_share(rows: Any, plan: WritePlan, routes: _Routes, profile: WorkloadProfile) -> WorkloadProfile:
    """The profile with the share of new keys, from a sample."""
    kept = [name for name in rows.columns if name in _key_roots(plan) or name == _PATH]
    tagged = _tagged(rows.select(*[f"`{name}`" for name in kept]), plan, routes, max(2, profile.total // _SAMPLED_KEYS))
    counted = tagged.groupBy(_PATH).agg(F.count(F.lit(1)), F.count(SLICE)).collect()
    seen = {row[0]: (row[1], row[2]) for row in counted if row[0] is not None}
    total, stored = sum(each for each, _ in seen.values()), sum(found for _, found in seen.values())
    overall = (total - stored) / total if total else 1.0
    shares = {
        name: (seen[name][0] - seen[name][1]) / seen[name][0]
        if name in seen and seen[name][0] >= _FEWEST_SAMPLED
        else overall
        for name in profile.rows
    }
    return replace(profile, new_share=shares)


def _key_roots(plan: WritePlan) -> set[str]:
    """The columns from which keys and partition paths are computed."""
    return {name.split(".")[0] for name in (*plan.key_config.record_key_fields, *plan.key_config.partition_fields)}


def _insert_files(plan: WritePlan, routes: _Routes, profile: WorkloadProfile) -> dict[str, InsertFiles]:
    """The files for inserts, by partition path."""
    if plan.operation == "bulk_insert":
        wanted = -(-routes.tasks // max(1, len(profile.rows)))
        counts = sorted(profile.rows.items())
        return {name: InsertFiles((), tuple(bulk_parts(plan, max(1, count), wanted))) for name, count in counts}
    present: dict[str, list[tuple[int, FileSlice]]] = {}
    for number, one in enumerate(routes.slices):
        present.setdefault(one.partition, []).append((number, one))
    return {
        name: insert_files(plan, name, present.get(name, []), profile.inserts(name)) for name in sorted(profile.rows)
    }


def _first_uncounted(routes: _Routes, files: Mapping[str, InsertFiles]) -> int:
    """The first bucket after the slices and the new files of the profile."""
    return len(routes.slices) + sum(one.new_files for one in files.values())


def _with_buckets(placed: Any, routes: _Routes, files: Mapping[str, InsertFiles]) -> Any:
    """Rows with :data:`BUCKET`, and in :data:`OWNER` a number that Spark's shuffle sends to the task of the bucket.

    Args:
        placed: tagged rows.
        routes: the file groups.
        files: for inserts, by partition. Rows of other partitions stay together by partition; without any ``files``
            they are spread by key.
    """
    tasks = routes.tasks
    by = _PATH if files else _KEY
    spread = (F.lit(_first_uncounted(routes, files)) + F.pmod(F.hash(by), F.lit(tasks))).cast("int")
    chosen = _new_group(spread, tasks)
    if files:
        places = insert_places(files, len(routes.slices))
        placed = placed.join(F.broadcast(_places_frame(placed.sparkSession, places, routes)), _PATH, "left")
        placed = placed.withColumn(_HASH, F.pmod(F.xxhash64(_KEY), F.lit(_HASH_RANGE)) / F.lit(float(_HASH_RANGE)))
        chosen = F.coalesce(F.when(F.col(_PLACE).isNotNull(), _insert_target(F.col(_HASH), tasks)), chosen)
    stored = F.struct(F.col(SLICE).alias("bucket"), F.coalesce(F.col(OWNER), F.lit(0)).alias("task"))
    placed = placed.withColumn(_TARGET, F.when(F.col(SLICE).isNotNull(), stored).otherwise(chosen))
    address = task_address(F.col(f"{_TARGET}.task"), tasks)
    return placed.withColumn(BUCKET, F.col(f"{_TARGET}.bucket")).withColumn(OWNER, address)


def _new_group(bucket: Any, tasks: int) -> Any:
    """Bucket and task of a new file group."""
    return F.struct(bucket.alias("bucket"), F.pmod(bucket, F.lit(tasks)).cast("int").alias("task"))


def _insert_target(at: Any, tasks: int) -> Any:
    """Bucket and task of a new row in its :data:`_PLACE`, by the hash of its key from 0 to 1."""
    names = ("first", "files", "last", "filled", "slot_scale", "new_scale", "slots")
    first, files, last, filled, slot_scale, new_scale, slots = (F.col(f"{_PLACE}.{name}") for name in names)
    small = F.get(slots, (at * slot_scale).cast("int"))
    number = ((at - filled) * new_scale).cast("int")
    new = F.when(number < files - F.lit(1), first + number).otherwise(last)
    return F.when(at < filled, small).otherwise(_new_group(new, tasks))


def _places_frame(spark: Any, places: Mapping[str, InsertPlace], routes: _Routes) -> Any:
    """One row per partition: where its inserts go."""
    rows = [
        {
            "first": one.first,
            "files": one.files,
            "last": one.last,
            "filled": one.filled,
            "slot_scale": one.slot_scale,
            "new_scale": one.new_scale,
            "slots": [{"bucket": number, "task": routes.owners[number]} for number in one.slots],
        }
        for one in places.values()
    ]
    return frame_of(spark, pa.table({_PATH: pa.array(places, pa.string()), _PLACE: pa.array(rows, _PLACES)}))


def _spread(df: Any, plan: WritePlan) -> Any:
    """The routing column of rows without key lookup; rows with one key are sent to one task, to be combined."""
    if plan.key_config.record_key_fields:
        return key_text(df, plan.key_config, plan.input_schema)
    return content_hash(df).cast("string")


def _owners(slices: list[FileSlice], tasks: int, scanned: Collection[tuple[str, str]] | None) -> list[int]:
    """The task that owns each slice, balanced by size; slices that were not scanned have no changed rows."""
    sizes = {
        f"{number:012d}": one.weight if scanned is None or (one.partition, one.file_id) in scanned else 0
        for number, one in enumerate(slices)
    }
    bins = pack_bins(sizes, tasks)
    return [bins[f"{number:012d}"] for number in range(len(slices))]


def _placed(rows: Any, plan: WritePlan, slices: Sequence[FileSlice], owners: Sequence[int]) -> Any:
    """Rows with slice, owner, and whether the stored row is deleted because its key moves to another partition."""
    moves = _moves_rows(plan)
    if plan.index.uses_records:
        joined = _located(rows, plan, slices, owners)
        joined = _compared(joined, plan, slices, owners) if moves and _orderings(rows, plan) else joined
    else:
        joined = _joined(rows, stored_keys_frame(rows.sparkSession, plan, slices, owners), plan)
    return _moved(joined, plan) if moves else joined.withColumn(MOVED, F.lit(False))


def _moves_rows(plan: WritePlan) -> bool:
    """Whether a row may leave the partition where its key is stored."""
    return plan.index.is_global and plan.index.update_partition_path and plan.operation != "delete"


def _joined(rows: Any, stored: Any, plan: WritePlan) -> Any:
    """Join rows to the stored rows of their keys."""
    on = F.col(_KEY) == F.col(STORED_KEY)
    if not plan.index.is_global:
        on = on & (F.col(_PATH) == F.col(STORED_PATH))
    elif plan.index.update_partition_path:  # the old slice of a moved key: its log deletes the row
        stored = stored.filter(~F.coalesce(F.col(GONE), F.lit(False)))
    return rows.join(stored, on, "left")


def _located(rows: Any, plan: WritePlan, slices: Sequence[FileSlice], owners: Sequence[int]) -> Any:
    """Rows with the slice from the record index; with an unreadable index any task gets the rows and raises."""
    found = with_slices(rows, _KEY, plan, slices, SLICE)
    return found.join(F.broadcast(places_frame(rows.sparkSession, slices, owners)), SLICE, "left")


def _compared(located: Any, plan: WritePlan, slices: Sequence[FileSlice], owners: Sequence[int]) -> Any:
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
    if plan.needs_origins:
        judged = judged.withColumn(ORIGIN, F.when(arrives, F.col(SLICE)))
    sides = F.when(arrives, F.array(stored_side, new_side)).otherwise(F.array(stored_side))
    both = judged.withColumn(_SIDE, F.explode(sides))
    for name, member in ((SLICE, "slice"), (OWNER, "owner"), (MOVED, "moved")):
        both = both.withColumn(name, F.col(f"{_SIDE}.{member}"))
    return both


def _all_new(rows: Any) -> Any:
    """Rows that are inserted without lookup."""
    nothing = F.lit(None).cast("int")
    return rows.withColumn(SLICE, nothing).withColumn(OWNER, nothing).withColumn(MOVED, F.lit(False))


def _without_idle(rows: Any) -> Any:
    """Drop deletes of keys that are not stored; keep rows without a key, which their task refuses."""
    return rows.filter(F.col(SLICE).isNotNull() | F.col(_KEY).isNull())


def _newest_of_each_key(rows: Any, plan: WritePlan) -> Any:
    """Combine before keys are looked up: with a global index rows of one key may belong to different partitions.

    Follows the rules of :mod:`hudi_fast.merging.fold`.
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
    if plan.table.stores_operations and OPERATION in rows.columns:
        flags.append(F.col(OPERATION).isin("D", "-U"))
    return flags
