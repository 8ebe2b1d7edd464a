"""Properties that users keep with a table: real Hudi writes on and keeps them.

Module: hudi_fast.writing.alter.
"""

from __future__ import annotations

from pathlib import Path

import hudi_fast as hf
from tests.interop.sides import Sides, trip_options, trips
from tests.peer.client import RealHudi


def test_hudi_keeps_the_properties_that_a_user_set(hudi_12: RealHudi, tmp_path: Path) -> None:
    sides = Sides(hudi_12, tmp_path / "t", trip_options(9), plainly=True)
    sides.we_write(trips(range(10)))
    table = hf.HudiTable.open(tmp_path / "t")
    own = {"owner": "city team: a=b", "note": "zwei\nZeilen", "hoodie.database.name": "sales"}
    assert table.set_properties(own) == own
    sides.hudi_writes(trips(range(5, 12), ts=5))
    assert table.set_properties({}) == own
    assert sides.agree().num_rows == 12
