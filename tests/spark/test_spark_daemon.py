"""The daemon of Python workers that has the library loaded (``spark.python.daemon.module=hudi_fast.spark.daemon``)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

WITHOUT_SPARK = """
import gc, json, sys
from hudi_fast.spark.daemon import preload
preload()
print(json.dumps({"frozen": gc.get_freeze_count(), "numba": "numba" in sys.modules, "loaded": sorted(sys.modules)}))
"""


@pytest.mark.slow
def test_what_is_preloaded_is_exempt_from_garbage_collections_and_prints_nothing() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_SPARK], capture_output=True, text=True, check=True)
    (line,) = done.stdout.splitlines()
    found = json.loads(line)
    assert found["frozen"] > 50_000
    assert {"pyspark.worker", "hudi_fast.spark.writing.engine", "hudi_fast.writing.rewrite"} <= set(found["loaded"])
    assert not found["numba"]  # the kernels are compiled


def loaded(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Whether the worker of a task had the library before the task, and Arrow's allocator there."""
    import sys as of_worker

    for batch in batches:
        has = "hudi_fast.spark.writing.engine" in of_worker.modules
        yield pa.record_batch({"has": [has] * len(batch), "pool": [pa.default_memory_pool().backend_name] * len(batch)})


def test_workers_have_the_library_before_their_first_task(spark: Any) -> None:
    rows = spark.range(4).repartition(2).mapInArrow(loaded, "has boolean, pool string").distinct().collect()
    assert [row["has"] for row in rows] == [True]
    if sys.platform == "linux":
        assert rows[0]["pool"] == os.environ.get("ARROW_DEFAULT_MEMORY_POOL", "jemalloc")
