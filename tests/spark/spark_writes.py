"""One sequence of writes, done by the local engine and by a plan of the Spark engine: both tables must be the same."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa

import hudi_fast as hf
from hudi_fast.storage.base import Storage
from tests.support.rows import assert_same_rows
from tests.support.small_tables import assert_tidy

__all__ = [
    "NOT_COMPARED",
    "Step",
    "assert_same_writes",
    "base_files_opened",
    "batch",
    "frame",
    "numbers_of",
    "tasks_of",
]

PARTS = 4


@dataclass(frozen=True)
class Step:
    """One write: what to do with which rows, and options for this write alone."""

    operation: str
    rows: pa.Table
    options: dict[str, str] = field(default_factory=dict)


def frame(spark: Any, table: pa.Table, tasks: int = 3) -> Any:
    """A DataFrame of these rows, spread over some tasks."""
    if int(spark.version.split(".")[0]) >= 4:
        return spark.createDataFrame(table).repartition(tasks)
    from pyspark.sql.pandas.types import from_arrow_schema

    return spark.createDataFrame(table.to_pylist(), from_arrow_schema(table.schema)).repartition(tasks)


def batch(
    ids: Sequence[int], ts: int | Sequence[int] = 100, deletes: Sequence[int] = (), seed: int = 0, shift: int = 0
) -> pa.Table:
    """Rows with ``id``, ``part`` (of :data:`PARTS`, moved on by ``shift``), ``day``, ``ts``, ``v``, delete flag."""
    numbers = np.asarray(ids, dtype=np.int64)
    rng = np.random.default_rng(seed)
    place = (numbers + shift) % PARTS
    return pa.table(
        {
            "id": [f"k{number:04d}" for number in numbers],
            "number": pa.array(numbers, pa.int32()),
            "part": [f"p{number}" for number in place],
            "day": pa.array((18262 + place).astype(np.int32), pa.int32()).cast(pa.date32()),
            "at": pa.array((1_577_836_800 + 40_000 * place) * 1_000_000, pa.timestamp("us", "UTC")),
            "ts": pa.array(np.broadcast_to(np.asarray(ts), len(numbers)), pa.int64()),
            "v": rng.random(len(numbers)),
            "_hoodie_is_deleted": np.isin(numbers, np.asarray(deletes, dtype=np.int64)),
        }
    )


@contextmanager
def base_files_opened() -> Iterator[list[str]]:
    """The paths of the Parquet files that this process opens meanwhile."""
    opened: list[str] = []
    original = Storage.open_input

    def open_input(self: Storage, path: str, size: int | None = None) -> pa.NativeFile:
        if path.endswith(".parquet"):
            opened.append(path)
        return original(self, path, size)

    with patch.object(Storage, "open_input", open_input):
        yield opened


def tasks_of(path: Path, instant: str) -> set[str]:
    """The numbers of the tasks that wrote base files of a commit, by the names of the files."""
    names = [one.name for one in path.rglob(f"*_{instant}.parquet") if ".hoodie" not in one.parts]
    return {name.split("_")[1].split("-")[0] for name in names}


def numbers_of(result: hf.WriteResult) -> tuple[int, int, int]:
    """What a write says that it did to rows."""
    return result.inserts, result.updates, result.deletes


def assert_same_writes(
    spark: Any,
    folder: Path,
    plan: str,
    options: dict[str, str],
    steps: Sequence[Step],
    ran: str | None = None,
    ignore: Sequence[str] = (),
    given: int = 0,
) -> Path:
    """Do the steps with both engines and compare after each; the table that Spark wrote.

    Args:
        spark: the session.
        folder: for both tables.
        plan: the plan to force.
        options: of every write.
        steps: the writes.
        ran: name of the plan that has to have run; by default the forced one.
        ignore: columns that need not be the same.
        given: how many of the first steps the local engine does for both tables, as they only make rows to change.
    """
    local, remote = folder / "local", folder / f"spark_{plan}"
    for number, step in enumerate(steps):
        settings = {**options, "hoodie.datasource.write.operation": step.operation, **step.options}
        expected = hf.write(step.rows, local, {**settings, "hudi_fast.threads": "1"})
        if number < given:
            if number == given - 1:
                shutil.copytree(local, remote)
            continue
        result = hf.write(frame(spark, step.rows), remote, {**settings, "hudi_fast.plan": plan})
        assert numbers_of(result) == numbers_of(expected), f"step {number}"
        assert result.plan == (ran or plan)
        assert result.reason
        found, wanted = hf.HudiTable.open(remote).to_arrow(), hf.HudiTable.open(local).to_arrow()
        assert_same_rows(found, wanted, ignore=(*NOT_COMPARED, *ignore))
        if "_hoodie_commit_seqno" in found.column_names:
            assert len(found["_hoodie_commit_seqno"].unique()) == found.num_rows
    assert_tidy(remote)
    return remote


NOT_COMPARED = ("_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_file_name")
