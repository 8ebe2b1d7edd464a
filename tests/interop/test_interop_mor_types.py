"""Every type, and a schema that grows, through the log files of either side."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudi_fast.formats.log.blocks import BlockType, scan_log_blocks
from hudi_fast.storage.base import Storage
from tests.interop.all_types import all_types
from tests.interop.growing_rows import SMALL, WIDE, WIDEST, only, rows_of, widened
from tests.interop.mor_sides import MorSides, mor_options
from tests.interop.sides import after_delete, after_upsert, data_columns
from tests.peer.client import PeerError
from tests.support.rows import assert_same_rows

BLOCKS = "hoodie.logfile.data.block.format"


@pytest.fixture
def sides(peer: str, version: int, request: pytest.FixtureRequest, tmp_path: Path) -> MorSides:
    options = mor_options(version, hoodie__datasource__write__partitionpath__field="part")
    return MorSides(request.getfixturevalue(peer), tmp_path / "t", options, plainly=True)


@pytest.mark.smoke("hudi_12-9")
@pytest.mark.parametrize(("peer", "version"), [("hudi_12", 9), ("hudi_015", 6)])
def test_every_type_survives_the_logs_of_both_sides(sides: MorSides) -> None:
    old = sides.hudi.version.startswith("0.")
    without = ["wall"] if old else []  # no timestamps without zone before 1.0
    rows = all_types(range(20)).drop_columns(without)
    sides.we_write(rows, "bulk_insert")
    # Release 0.15 cannot read lists of one-column rows in Parquet blocks, not even in its own.
    forms = ["avro", "avro", *(["avro"] * 2 if old else ["parquet"] * 2)]
    turns = list(zip([sides.hudi_writes, sides.we_write] * 2, forms, strict=True))
    for turn, (write, form) in enumerate(turns):
        # Some rows change, some are new, and the log of each turn hides a part of the one before.
        new = all_types(range(4 * turn, 22 + turn), ts=2 + turn).drop_columns(without)
        write(new, more={BLOCKS: form})
        rows = after_upsert(rows, new)
    assert sides.merged_slices() >= 2
    before = sides.agree(rows)
    sides.we_compact()
    assert_same_rows(sides.agree(rows), before, ignore=["_hoodie_file_name"])
    new = all_types(range(0, 20, 3), ts=9).drop_columns(without)
    sides.we_write(new)
    sides.hudi_compacts()
    sides.agree(after_upsert(rows, new))


@pytest.mark.parametrize(
    ("peer", "version", "we_widen_first"),
    [
        ("hudi_12", 9, True),
        ("hudi_015", 6, False),
        pytest.param("hudi_12", 9, False, marks=pytest.mark.long),
        pytest.param("hudi_12", 6, True, marks=pytest.mark.long),
    ],
)
def test_the_schema_grows_between_logs(sides: MorSides, we_widen_first: bool) -> None:
    us, them = sides.we_write, sides.hudi_writes
    one, other = (us, them) if we_widen_first else (them, us)
    rows = rows_of(SMALL, range(20), 1)
    other(rows)
    new = rows_of(SMALL, range(4, 14), 2)
    one(new)
    rows = after_upsert(rows, new)
    # Logs of p0 are wide over narrow ones; those of p1 stay narrow.
    new = only(rows_of(WIDE, range(10, 20), 3), "p0")
    one(new)
    rows = after_upsert(widened(rows, WIDE), new)
    sides.agree(rows)
    new = only(rows_of(WIDEST, range(5, 18), 4), "p1")
    other(new)
    rows = after_upsert(widened(rows, WIDEST), new)
    gone = rows_of(WIDEST, range(6, 9), 5)
    one(gone, "delete")
    rows = after_delete(rows, gone)
    before = sides.agree(rows)
    if we_widen_first:
        sides.hudi_compacts()
    else:
        sides.we_compact()
    assert_same_rows(sides.agree(rows), before, ignore=["_hoodie_file_name"])
    assert sides.table.schema == WIDEST


@pytest.mark.parametrize(("peer", "version"), [("hudi_015", 6)])
def test_hfile_blocks_of_either_side_are_merged_by_the_other(sides: MorSides) -> None:
    rows = all_types(range(30)).drop_columns("wall")  # no timestamps without zone before 1.0
    sides.we_write(rows, "bulk_insert")
    form = {BLOCKS: "hfile"}
    for turn, write in enumerate([sides.we_write, sides.hudi_writes, sides.we_write]):
        new = all_types(range(4 * turn, 26 + turn), ts=2 + turn).drop_columns("wall")
        write(new.take(list(reversed(range(new.num_rows)))), more=form)
        rows = after_upsert(rows, new)
    gone = rows.slice(0, 5)
    sides.we_write(gone, "delete", more=form)
    rows = after_delete(rows, gone)
    assert hfile_blocks(sides) >= 3
    before = sides.agree(rows)
    sides.hudi_compacts()
    assert_same_rows(sides.agree(rows), before, ignore=["_hoodie_file_name"])


@pytest.mark.parametrize(("peer", "version"), [("hudi_12", 9)])
def test_hfile_blocks_that_hudi_1_2_writes_and_cannot_read_are_merged(sides: MorSides) -> None:
    rows = all_types(range(30))
    sides.we_write(rows, "bulk_insert")
    new = all_types(range(4, 26), ts=2)
    sides.hudi_writes(new, more={BLOCKS: "hfile"})
    rows = after_upsert(rows, new)
    assert hfile_blocks(sides) >= 1
    with pytest.raises(PeerError, match="ClassCastException"):  # Avro records where Spark's rows are expected
        sides.hudi.read(sides.path)
    assert_same_rows(data_columns(sides.table.to_arrow()), rows, key=sides.key)
    new = all_types(range(8, 31), ts=3)
    sides.we_write(new, more={BLOCKS: "hfile"})
    rows = after_upsert(rows, new)
    assert_same_rows(data_columns(sides.table.to_arrow()), rows, key=sides.key)
    sides.we_compact()
    sides.agree(rows)


def hfile_blocks(sides: MorSides) -> int:
    """HFile blocks in the log files of the table."""
    storage = Storage(str(sides.path))
    paths = [str(path.relative_to(sides.path)) for path in sides.log_files()]
    return sum(block.kind is BlockType.HFILE_DATA for path in paths for block in scan_log_blocks(storage, path))
