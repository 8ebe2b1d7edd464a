"""ORC and Lance tables on Spark: written by tasks, read by tasks, searched by key, compacted and clustered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import hudi_fast as hf
from tests.spark.spark_writes import frame
from tests.support.small_tables import options, plain_rows, rows_of, table_rows

NOW = {"hoodie.compact.inline.max.delta.commits": "1"}


@pytest.mark.parametrize(
    ("kind", "base"),
    [
        ("COPY_ON_WRITE", "ORC"),
        ("MERGE_ON_READ", "LANCE"),
        pytest.param("COPY_ON_WRITE", "LANCE", marks=pytest.mark.long),
        pytest.param("MERGE_ON_READ", "ORC", marks=pytest.mark.long),
    ],
)
def test_tasks_write_and_read_files_of_the_format(spark: Any, kind: str, base: str, tmp_path: Path) -> None:
    given = {
        **options(),
        "hoodie.table.base.file.format": base,
        "hoodie.datasource.write.table.type": kind,
        "hoodie.compact.inline": "false",
    }
    hf.write(frame(spark, plain_rows(range(40))), tmp_path, given)
    hf.write(frame(spark, plain_rows(range(30, 60), ts=2, text="b")), tmp_path, given)
    expected = {**rows_of(plain_rows(range(40))), **rows_of(plain_rows(range(30, 60), ts=2, text="b"))}
    assert table_rows(tmp_path) == expected
    assert {one.suffix for one in tmp_path.glob("p*/[!.]*")} == {f".{base.lower()}"}
    found = hf.read(str(tmp_path), spark=spark).collect()
    assert {row["id"]: (row["part"], row["ts"], row["text"]) for row in found} == expected
    assert len(found) == 60
    one = hf.read(str(tmp_path), spark=spark).where("id = 'k00031'").collect()
    assert [(row["id"], row["text"]) for row in one] == [("k00031", "b31")]
    table = hf.HudiTable.open(tmp_path)
    if kind == "MERGE_ON_READ":
        table.services.compact({**given, **NOW}, spark=spark)
    table.services.cluster(given, spark=spark)
    assert table_rows(tmp_path) == expected
    assert hf.read(str(tmp_path), spark=spark).count() == 60
