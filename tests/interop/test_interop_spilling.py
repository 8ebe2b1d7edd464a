"""Tables written from streams larger than memory: Apache Hudi reads them and writes on.

Module: hudi_fast.writing.spilling.engine.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interop.sides import Sides, after_upsert, trip_options, trips

SMALL_FILES = {
    "hoodie.parquet.max.file.size": 20_000,
    "hoodie.parquet.small.file.limit": 15_000,
    "hoodie.copyonwrite.record.size.estimate": 200,
    "hoodie.index.bloom.num_entries": 100,
}


@pytest.mark.parametrize(
    ("kind", "index"),
    [
        pytest.param("COPY_ON_WRITE", "SIMPLE", marks=pytest.mark.long),
        ("MERGE_ON_READ", "SIMPLE"),
        ("COPY_ON_WRITE", "GLOBAL_SIMPLE"),
    ],
)
def test_hudi_reads_what_a_stream_wrote_and_writes_on(hudi_12, tmp_path: Path, kind: str, index: str) -> None:
    options = {
        **trip_options(9),
        **SMALL_FILES,
        "hoodie.datasource.write.table.type": kind,
        "hoodie.index.type": index,
        "hoodie.memory.merge.max.size": 40_000,
    }
    sides = Sides(hudi_12, tmp_path / "trips", options, plainly=True)
    rows = trips(range(600), cities=1)
    assert sides.we_write(iter(rows.to_batches(50))).plan == "spilled"
    sides.agree(rows)

    new = trips(range(300, 900), ts=5, cities=1, note="second")
    rows = after_upsert(rows, new)
    assert sides.we_write(iter(new.to_batches(50))).plan == "spilled"
    sides.agree(rows)

    more = trips(range(100, 110), ts=6, cities=1, note="third")
    sides.hudi_writes(more)
    sides.agree(after_upsert(rows, more))
