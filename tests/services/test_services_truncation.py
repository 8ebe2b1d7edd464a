"""Truncating: all rows of a table, or of partitions by their exact paths.

Modules: hudi_fast.services.truncation, hudi_fast.writing.partition_deletion.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import hudi_fast as hf
from tests.support.small_tables import assert_tidy, options, plain_rows


def test_truncating_keeps_columns_and_history_and_deletes_partitions_by_their_exact_paths(tmp_path: Path) -> None:
    rows = plain_rows(range(4)).set_column(1, "part", [["%2A", "a", "b", "*"]])
    written = hf.write(rows, tmp_path, options())
    table = hf.HudiTable.open(tmp_path)
    with pytest.raises(hf.ConfigError, match=r"no rows in the partitions \['c'\]; nothing was deleted"):
        table.truncate(["a", "c"])
    table.truncate(["%2A", "*"])
    assert sorted(table.to_arrow()["part"].to_pylist()) == ["a", "b"]
    done = table.truncate()
    assert done.operation == "insert_overwrite_table"
    assert (table.to_arrow().num_rows, table.schema.names) == (0, rows.column_names)
    assert table.to_arrow(as_of=written.instant).num_rows == 4
    assert table.services.validate().differences.num_rows == 0
    table.upsert(rows.slice(1, 1), options())
    assert table.to_arrow().num_rows == 1
    assert_tidy(tmp_path)


def test_a_table_without_rows_can_be_truncated(tmp_path: Path) -> None:
    table = hf.HudiTable.create(tmp_path / "t", plain_rows([]).schema, options())
    table.truncate()
    assert table.to_arrow().num_rows == 0
