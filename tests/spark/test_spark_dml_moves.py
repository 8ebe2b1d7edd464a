"""Merges on Spark whose source rows of one key belong to different partitions.

Modules: hudi_fast.spark.dml, hudi_fast.spark.writing.stored.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.spark.arrow import frame_of
from tests.dml.moving_merges import (
    ARRIVING,
    MOVING_INDEXES,
    MOVING_MERGES,
    STORED,
    TIED,
    Row,
    after_moving,
    moved_rows,
    moving_options,
    moving_rows,
)

CASES = [("GLOBAL_SIMPLE", "COPY_ON_WRITE"), ("RECORD_INDEX", "MERGE_ON_READ"), ("SIMPLE", "COPY_ON_WRITE")]


@pytest.mark.long(
    "clauses-RECORD_INDEX-MERGE_ON_READ",
    "all columns-GLOBAL_SIMPLE-COPY_ON_WRITE",
    "clauses-SIMPLE-COPY_ON_WRITE",
)
@pytest.mark.parametrize(("index", "kind"), CASES)
@pytest.mark.parametrize("name", list(MOVING_MERGES))
def test_the_ordering_field_decides_between_source_rows_that_move(
    spark: Any, index: str, kind: str, name: str, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    options = {**moving_options(index), "hoodie.datasource.write.table.type": kind, "hudi_fast.plan": "routed"}
    hf.write(moving_rows(STORED), path, options)

    def merge(rows: list[Row]) -> None:
        source: pa.Table = moving_rows(rows)
        MOVING_MERGES[name](hf.merge(path, frame_of(spark, source), options=options, spark=spark).on("id")).execute()

    merge(ARRIVING)
    assert moved_rows(hf.read(path)) == after_moving(index, name)
    for tied in TIED if MOVING_INDEXES[index] else TIED[:1]:
        with pytest.raises(hf.InvalidDataError, match=f"same ordering values.*'{tied[0][0]}' with ts = 50"):
            merge(tied)
    assert moved_rows(hf.read(path)) == after_moving(index, name)
