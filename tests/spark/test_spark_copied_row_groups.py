"""Files that row groups were copied into, read by Spark: by its own decoder, row by row, in splits, with filters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_fast.formats.parquet.copy import JoinedFile, join_obstacle
from hudi_fast.formats.parquet.footer import read_footer
from hudi_fast.storage.base import Storage

NAME = "_hoodie_file_name"
ROWS = 3000


def make(folder: Path) -> str:
    """Two files of different codecs, encodings and page versions, joined."""
    random = np.random.default_rng(2)
    for number, how in enumerate([{"compression": "zstd"}, {"compression": "gzip", "data_page_version": "2.0"}]):
        numbers = np.arange(number * ROWS, (number + 1) * ROWS)
        table = pa.table(
            {
                NAME: pa.array(["old"] * ROWS),
                "id": pa.array([f"k{one:06d}" for one in numbers]),
                "n": pa.array(numbers, mask=numbers % 7 == 0),
                "x": pa.array(random.random(ROWS)),
                "many": pa.array([[int(one)] * int(one % 3) for one in numbers]),
            }
        )
        pq.write_table(table, folder / f"{number}.parquet", row_group_size=1000, store_schema=False, **how)
    storage = Storage(folder)
    footers = [read_footer(storage, f"{number}.parquet") for number in range(2)]
    assert join_obstacle(footers) == ""
    file = JoinedFile(storage, "new/joined.parquet", footers, {NAME: "joined.parquet"})
    for footer in footers:
        with storage.open_input(footer.path) as source:
            for group in footer.groups:
                file.copy(source, footer, group)
    file.close({})
    return str(folder / "new/joined.parquet")


@pytest.mark.parametrize("vectorized", ["true", "false"])
def test_spark_reads_what_was_copied(vectorized: str, spark: Any, tmp_path: Path) -> None:
    path = make(tmp_path)
    expected = pq.read_table(path).sort_by("id").to_pylist()
    settings = {"spark.sql.parquet.enableVectorizedReader": vectorized, "spark.sql.files.maxPartitionBytes": "40000"}
    before = {key: spark.conf.get(key) for key in settings}
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        frame = spark.read.parquet(path)
        assert frame.rdd.getNumPartitions() > 1
        rows = [row.asDict() for row in frame.sort("id").collect()]
        found = frame.filter("n > 4500").count()
    finally:
        for key, value in before.items():
            spark.conf.set(key, value)
    assert rows == expected
    assert {row[NAME] for row in rows} == {"joined.parquet"}
    assert found == sum(row["n"] is not None and row["n"] > 4500 for row in expected)
