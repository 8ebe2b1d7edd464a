"""What each base format has to stand: both sides write one table in turns, and read the same rows after each turn."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from tests.interop.mor_sides import MorSides
from tests.interop.sides import after_delete, after_upsert
from tests.support.rows import assert_same_rows

__all__ = ["assert_valid_at_the_end", "log_and_compact", "take_turns"]

Rows = Callable[..., pa.Table]
"""Rows for numbers, an ordering value and a ``note``, as :func:`tests.interop.sides.trips` makes them."""


def take_turns(sides: MorSides, made: Rows) -> pa.Table:
    """Hudi makes the table, both upsert, and we delete; the rows at the end."""
    rows = made(range(60))
    sides.hudi_writes(rows, "insert")
    sides.agree(rows)
    new = made(range(30, 75), 5, note="by us")
    rows = after_upsert(rows, new)
    sides.we_write(new, more={"hoodie.index.type": "BLOOM"})
    sides.agree(rows)
    new = made(range(20, 80), 6, note="by Hudi")
    rows = after_upsert(rows, new)
    sides.hudi_writes(new)
    sides.agree(rows)
    gone = made(range(25, 35))
    rows = after_delete(rows, gone)
    sides.table.delete(gone.select(["id", "city"]), {"hoodie.compact.inline": "false"})
    sides.agree(rows)
    return rows


def log_and_compact(sides: MorSides, rows: pa.Table, made: Rows) -> None:
    """We log a few rows and compact: then base files alone hold all rows."""
    new = made(range(5), 9, note="logged")
    rows = after_upsert(rows, new)
    sides.we_write(new)
    sides.we_compact()
    assert_same_rows(sides.agree(rows), sides.agree_on_base_files(), ignore=())


def assert_valid_at_the_end(sides: MorSides) -> None:
    """The metadata table is right, and a filter finds the row of one key."""
    assert sides.table.services.validate().ok
    found = sides.table.to_arrow(["note"], filter="id = 'trip-00022'")
    assert found["note"].to_pylist() == ["by Hudi 22 ü€😀"]
