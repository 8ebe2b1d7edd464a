"""Timestamps under a wrong label, on Spark: every plan that reads files gives the rows of one process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_fast as hf
from tests.support.mislabelled_tables import (
    MILLIS,
    PAIRS,
    UTC_MS,
    UTC_US,
    asked,
    column_name,
    counts,
    labelled_rows,
    moments,
    retype,
    table_of,
    typed,
)
from tests.support.rows import assert_same_rows

NAME = column_name(UTC_US, UTC_MS)
OPERATION = "hoodie.datasource.write.operation"


def make(path: Path, kind: str, version: int) -> dict[str, Any]:
    """Two large base files under old labels; on MERGE_ON_READ a small log over one of them. Returns the options."""
    options = asked(kind, version)
    hf.write(labelled_rows(range(400), PAIRS, 0, 1), path, options | {OPERATION: "bulk_insert"})
    if kind == "MERGE_ON_READ":
        hf.write(labelled_rows([2, 6], PAIRS, 0, 2, MILLIS + 500_000), path, options)
    retype(path, typed(labelled_rows([0], PAIRS, 1, 1)))
    return options


@pytest.mark.parametrize(("kind", "version"), [("COPY_ON_WRITE", 9), ("MERGE_ON_READ", 9), ("MERGE_ON_READ", 6)])
def test_spark_reads_and_writes_what_one_process_does(kind: str, version: int, spark: Any, tmp_path: Path) -> None:
    options = make(tmp_path / "t", kind, version)
    path, table = str(tmp_path / "t"), table_of(tmp_path / "t")

    def agree() -> dict[str, dict[str, Any]]:
        ours = table.to_arrow()
        assert_same_rows(hf.read(spark, path).toArrow(), in_spark(ours), key=["id"])
        plain = ["id", *(column_name(*pair) for pair in PAIRS)]
        assert_same_rows(hf.read(spark, path, columns=plain).toArrow(), in_spark(ours.select(plain)), key=["id"])
        found = moments(ours, PAIRS)
        first = f"{NAME} = timestamp_millis({found['k0'][NAME]})"
        assert [row.id for row in hf.read(spark, path).where(first).select("id").collect()] == ["k0"]
        return found

    found = agree()
    assert found["k1"][NAME] == MILLIS + 1000
    assert found["k3"] == {column_name(*pair): counts(pair, MILLIS + 3000) for pair in PAIRS}
    new = labelled_rows([1, 401], PAIRS, 1, 3, MILLIS + 700_000)
    hf.write(spark.createDataFrame(in_spark(new)), path, options)
    again = agree()
    assert again["k1"][NAME] == MILLIS + 701_000
    assert again["k3"] == found["k3"]
    table.services.cluster(spark=spark)
    assert agree() == again


def in_spark(rows: pa.Table) -> pa.Table:
    """Rows as Spark returns them: timestamps count microseconds."""

    def widened(kind: pa.DataType) -> pa.DataType:
        if pa.types.is_timestamp(kind):
            return pa.timestamp("us", kind.tz)
        if pa.types.is_struct(kind):
            return pa.struct([field.with_type(widened(field.type)) for field in kind])
        if pa.types.is_list(kind):
            return pa.list_(widened(kind.value_type))
        if pa.types.is_map(kind):
            return pa.map_(kind.key_type, widened(kind.item_type))
        return kind

    return rows.cast(pa.schema([field.with_type(widened(field.type)) for field in rows.schema]))
