"""Several statistics of one column combined into one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from hudi_fast.metadata_table.fold import widen
from hudi_fast.metadata_table.records import COLUMN_STATS
from hudi_fast.metadata_table.stat_values import STAT_VALUE


def stat(
    low: Any, high: Any, values: int = 4, nulls: int = 0, kind: str = "long", value_type: int | None = None
) -> dict[str, Any]:
    """Statistics of a column; None for an unknown bound."""
    members = [field.name for field in STAT_VALUE if kind in field.name.lower()]
    name = members[0]
    wrap = lambda bound: None if bound is None else {name: {"value": bound}}  # noqa: E731
    return {
        "key": "k", "type": 3, "file_name": f"f{low}", "column_name": "c", "min": wrap(low), "max": wrap(high),
        "value_count": values, "null_count": nulls, "total_size": 10, "total_uncompressed_size": 20,
        "deleted": False, "tight": True, "value_type": value_type, "value_type_info": None,
    }  # fmt: skip


def bounds(groups: list[int], *rows: dict[str, Any]) -> list[tuple[Any, Any, int, int]]:
    made = widen(pa.Table.from_pylist(list(rows), COLUMN_STATS), np.array(groups, np.int64))
    found = []
    for row in made.to_pylist():
        low, high = (next((one["value"] for one in (row[side] or {}).values() if one), None) for side in ("min", "max"))
        found.append((low, high, row["value_count"], row["null_count"]))
    return found


def test_ranges_grow_and_counts_add_up_by_group() -> None:
    found = bounds([0, 0, 1, 2, 2], stat(3, 5), stat(1, 4, nulls=2), stat(7, 8), stat(0, 0), stat(9, 9))
    assert found == [(1, 5, 8, 2), (7, 8, 4, 0), (0, 9, 8, 0)]


def test_the_newest_row_gives_the_other_columns() -> None:
    made = widen(pa.Table.from_pylist([stat(3, 5), stat(1, 4)], COLUMN_STATS), np.zeros(2, np.int64))
    assert made["file_name"].to_pylist() == ["f1"]
    assert made.schema == COLUMN_STATS


def test_a_range_is_unknown_if_one_is_unless_all_its_values_are_null() -> None:
    assert bounds([0, 0], stat(3, 5), stat(None, None)) == [(None, None, 8, 0)]
    assert bounds([0, 0], stat(3, 5), stat(None, None, nulls=4)) == [(3, 5, 8, 4)]


def test_values_that_do_not_compare_make_the_range_unknown() -> None:
    assert bounds([0, 0], stat(3, 5), stat("a", "b", kind="string")) == [(None, None, 8, 0)]
    decimals = stat(b"\x01", b"\x02", kind="bytes", value_type=10)
    assert bounds([0, 0], decimals, decimals) == [(None, None, 8, 0)]
