"""Null structs whose fields allow no nulls: Hudi reads and changes ours, and we read its changes, in logs and files."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudi_fast.formats.column_limits import without_hidden_nulls
from tests.interop.mor_sides import MorSides
from tests.interop.sides import after_upsert, trip_options
from tests.peer.client import RealHudi
from tests.support.required_fields import rows_with_null_parents

SHAPES = ("s", "inner", "partial", "items", "held", "mapped")
"""Without nulls inside lists and maps, which Hudi's own Avro writer cannot hold."""


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_null_parents_of_required_fields_are_the_same_for_hudi(
    hudi_12: RealHudi, tmp_path: Path, table_type: str
) -> None:
    options = trip_options(9, hoodie__datasource__write__partitionpath__field="part")
    options["hoodie.datasource.write.table.type"] = table_type
    sides = MorSides(hudi_12, tmp_path / "t", options, plainly=True)
    marked = rows_with_null_parents(range(6), shapes=SHAPES)
    sides.we_write(marked)
    rows = without_hidden_nulls(marked)
    sides.agree(rows)
    for turn, write in enumerate((sides.we_write, sides.hudi_writes)):
        marked = rows_with_null_parents(range(1 + turn, 5 + turn), ts=2 + turn, shapes=SHAPES)
        new = without_hidden_nulls(marked)
        write(new if turn else marked)
        rows = after_upsert(rows, new)
        sides.agree(rows)
    if table_type == "MERGE_ON_READ":
        assert sides.log_files()
        sides.we_compact()
    sides.we_write(rows.slice(0, 1))
    sides.agree(rows)
