"""Partition TTL after a write on Spark, and by ``CALL run_ttl`` in one process afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import hudi_fast as hf
from tests.support.old_tables import DAYS, write_days_ago
from tests.support.small_tables import assert_tidy, options, plain_rows, table_rows

INLINE = {"hoodie.partition.ttl.inline": "true", DAYS: "30"}


def partitions(path: Path) -> set[str]:
    return {part for part, *_ in table_rows(path).values()}


@pytest.mark.smoke
def test_expired_partitions_are_deleted_after_a_write_and_by_a_procedure(spark: Any, tmp_path: Path) -> None:
    write_days_ago(plain_rows([0], partitions=4), tmp_path, options(), 200)
    write_days_ago(plain_rows([1], partitions=4), tmp_path, options(), 10)
    hf.write(spark.createDataFrame(plain_rows([2], partitions=4)), tmp_path, {**options(), **INLINE})
    assert partitions(tmp_path) == {"p1", "p2"}
    found = hf.sql("CALL run_ttl(table => 'ages', retain_days => 5)", {"ages": str(tmp_path)}).to_pylist()
    assert [list(row.values()) for row in found] == [["p1"]]
    assert partitions(tmp_path) == {"p2"}
    assert_tidy(tmp_path)
