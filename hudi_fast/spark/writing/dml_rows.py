"""Routes DML rows to the file groups that they were read from.

::

    rows with a file group ──────────────────────────────► its slice
    rows to insert ─┬─ key deleted by a log ─────────────► its slice: new rows with the key are logged there
                    ├─ key stored, where possible ───────► its slice, whose task refuses the row
                    └─ all others ───────────────────────► no slice
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Window
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, NumericType

from hudi_fast.spark.writing.columns import content_hash, key_text
from hudi_fast.spark.writing.stored import OWNER, STORED_KEY, STORED_PATH, places_frame, stored_keys_frame
from hudi_fast.view.slices import FileSlice
from hudi_fast.writing.dml_rows import ACTION, CHECK, DELETE, GROUP, KEY, ORDER, PATH
from hudi_fast.writing.routed_rows import MOVED, SLICE
from hudi_fast.writing.write_plan import WritePlan

__all__ = ["ChangeShape", "one_place_per_key", "places_of_changes", "undefeated"]

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
