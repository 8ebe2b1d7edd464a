"""NaN in base files: Spark takes it for greater than every number, and finds it whatever a filter is pushed down to."""

from __future__ import annotations

import math
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

import hudi_fast as hf
from tests.spark.spark_writes import frame
from tests.support.mor_tables import mor_options
from tests.support.small_tables import options

NAN = math.nan
FILTERS = [
    "ratio > 100",
    "ratio >= 5",
    "ratio > double('Infinity')",
    "ratio = double('NaN')",
    "ratio != 2.0",
    "not (ratio < 100)",
    "isnan(ratio)",
    "small >= 100",
    "place.height > 100",
    "size(filter(seen, x -> x > 100)) > 0",
    "ratio < 5",
    "ratio is null",
]
MOR_LOGS = {"hoodie.logfile.data.block.format": "parquet"}


def rows(numbers: list[int], ts: int) -> pa.Table:
    """A third of the rows hold NaN in each of the columns of floating-point numbers, another third nulls."""

    def values(third: int, kind: pa.DataType) -> pa.Array:
        plain = [NAN if number % 3 == third else None if (number + 1) % 3 == third else number for number in numbers]
        return pa.array(plain, kind)

    heights = values(2, pa.float64())
    return pa.table(
        {
            "id": [f"k{number}" for number in numbers],
            "part": ["p"] * len(numbers),
            "ts": pa.array([ts] * len(numbers), pa.int64()),
            "plain": pa.array([float(number) for number in numbers]),
            "ratio": values(0, pa.float64()),
            "small": values(1, pa.float32()),
            "place": pa.StructArray.from_arrays([heights], ["height"]),
            "seen": [[0.5, value] for value in values(1, pa.float64()).to_pylist()],
        }
    )


def written(path: Path, how: str, spark: Any) -> None:
    """Rows that are inserted, and some of them updated, so that files are written anew or compacted."""
    settings = options() if how.startswith("cow") else mor_options(MOR_LOGS)
    for numbers, ts in ((list(range(12)), 1), ([3, 4, 5], 2)):
        batch = rows(numbers, ts)
        hf.write(frame(spark, batch) if how.endswith("Spark") else batch, path, settings)
    if how == "mor compacted":
        hf.HudiTable.open(path).services.compact()


def found_by_filters(frame: Any) -> dict[str, list[str]]:
    """The keys that each filter finds; one plan, in which each filter has a scan of its own."""
    parts = [frame.filter(text).select(F.lit(text).alias("filter"), "id") for text in FILTERS]
    found: dict[str, list[str]] = {text: [] for text in FILTERS}
    for row in reduce(lambda left, right: left.union(right), parts).collect():
        found[row["filter"]].append(row["id"])
    return {text: sorted(keys) for text, keys in found.items()}


@pytest.mark.parametrize("how", ["cow by Spark", "mor", "mor compacted"])
def test_no_filter_that_is_pushed_down_loses_nan(how: str, spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "t"
    written(path, how, spark)
    expected = found_by_filters(spark.createDataFrame(rows(list(range(12)), 1)))
    assert all(expected.values())
    newest = max((path / "p").glob("*.parquet"), key=lambda file: file.stat().st_mtime_ns)
    base_file = spark.read.parquet(str(newest))
    pushed = base_file.filter("ratio > 100")._jdf.queryExecution().executedPlan().toString()
    assert "GreaterThan(ratio,100.0)" in pushed
    assert found_by_filters(base_file) == expected
    assert found_by_filters(hf.read(spark, path)) == expected
    for text in ("ratio > 100", "small >= 100", "isnan(ratio)"):
        told = hf.read(spark, path, filter=text, columns=["id"])
        assert sorted(row["id"] for row in told.collect()) == expected[text]
