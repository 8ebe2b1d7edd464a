"""Which blocks of a slice's log files count, and in which order."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudi_fast.errors import CorruptTableError, UnsupportedFeatureError
from hudi_fast.formats.log.blocks import BlockType, HeaderKey, encode_block
from hudi_fast.merging.log_scan import visible_blocks
from hudi_fast.merging.rules import SliceMerge
from tests.merging.log_slices import Log, data, deletes, merge_of, rollback, slice_of


def row(instant: str) -> list[dict[str, object]]:
    return [{"id": "a", "ts": 1, "text": instant}]


def seen(merge: SliceMerge, folder: Path, logs: list[Log]) -> list[str]:
    """Instants of the blocks that count, ``-`` before those of delete blocks."""
    blocks = visible_blocks(merge, slice_of(folder, logs))
    return [("-" if block.kind is BlockType.DELETE else "") + block.instant for block in blocks]


def block(instant: str, **headers: str) -> bytes:
    return data(instant, row(instant), **headers)


def test_blocks_come_in_the_order_of_files_and_within_them(tmp_path: Path) -> None:
    logs = [("200", [block("200"), deletes("200", ["a"])]), ("300", [block("300")])]
    assert seen(merge_of(tmp_path), tmp_path, logs) == ["200", "-200", "300"]


def test_what_is_later_than_the_time_travelled_to_is_left_out(tmp_path: Path) -> None:
    logs = [("100", [block("200"), block("300"), deletes("400", ["a"])])]
    assert seen(merge_of(tmp_path, 6, as_of="300"), tmp_path, logs) == ["200", "300"]
    assert seen(merge_of(tmp_path, 9, as_of="250"), tmp_path, logs) == ["200"]


def test_before_version_8_blocks_of_writes_that_are_not_complete_are_left_out(tmp_path: Path) -> None:
    """300 is under way, 350 unknown; 050 is older than the timeline, and so complete."""
    logs = [("100", [block("050"), block("200"), block("300"), deletes("350", ["a"]), block("400")])]
    assert seen(merge_of(tmp_path, 6, pending=["300"]), tmp_path, logs) == ["050", "200", "400"]
    assert seen(merge_of(tmp_path, 8, pending=["300"]), tmp_path, logs) == ["050", "200", "300", "-350", "400"]


def test_a_rollback_takes_away_what_came_before_it(tmp_path: Path) -> None:
    logs = [
        ("100", [block("200"), block("300")]),
        ("100", [deletes("300", ["a"]), block("400")]),
        ("100", [rollback("500", "300")]),
        ("100", [block("300"), rollback("600", "900")]),
    ]
    assert seen(merge_of(tmp_path, 6), tmp_path, logs) == ["200", "400", "300"]


def test_a_log_compaction_stands_where_the_newest_of_its_blocks_stood(tmp_path: Path) -> None:
    logs = [
        ("100", [block("200"), block("300"), block("400")]),
        ("100", [block("500")]),
        (
            "100",
            [block("600", compacted_block_times="200,300"), deletes("600", ["a"], compacted_block_times="200,300")],
        ),
    ]
    assert seen(merge_of(tmp_path, 6), tmp_path, logs) == ["600", "-600", "400", "500"]


def test_a_log_compaction_of_a_log_compaction_holds_it_all(tmp_path: Path) -> None:
    logs = [
        ("100", [block("200"), block("300")]),
        ("100", [block("400", compacted_block_times="200,300")]),
        ("100", [block("500")]),
        ("100", [block("600", compacted_block_times="400,500")]),
        ("100", [block("700")]),
    ]
    assert seen(merge_of(tmp_path), tmp_path, logs) == ["600", "700"]
    assert seen(merge_of(tmp_path, as_of="500"), tmp_path, logs) == ["400", "500"]


def test_a_log_compaction_whose_blocks_are_gone_counts_where_it_is(tmp_path: Path) -> None:
    logs = [
        ("300", [block("300")]),
        ("400", [block("400", compacted_block_times="100,200")]),
        ("500", [block("500")]),
    ]
    assert seen(merge_of(tmp_path), tmp_path, logs) == ["300", "400", "500"]


def test_change_data_and_damaged_spans_are_passed_over(tmp_path: Path) -> None:
    change = b"".join(
        bytes(part) for part in encode_block(BlockType.CDC_DATA, {HeaderKey.INSTANT_TIME: "200"}, b"\0\0\0\3\0\0\0\0")
    )
    sound = block("300")
    logs = [("200", [change, sound[:40], sound, sound[:-3]])]
    assert seen(merge_of(tmp_path), tmp_path, logs) == ["300"]


def test_a_command_that_nobody_knows_is_refused(tmp_path: Path) -> None:
    for headers, error in (
        ({HeaderKey.COMMAND_BLOCK_TYPE: "1", HeaderKey.TARGET_INSTANT_TIME: "200"}, UnsupportedFeatureError),
        ({HeaderKey.COMMAND_BLOCK_TYPE: "0"}, CorruptTableError),
    ):
        command = b"".join(
            bytes(part) for part in encode_block(BlockType.COMMAND, {HeaderKey.INSTANT_TIME: "300", **headers}, b"")
        )
        with pytest.raises(error, match=r"log\.1_0-0-0, byte 0"):
            seen(merge_of(tmp_path, 6), tmp_path, [("100", [command])])


def test_a_log_file_that_was_cleaned_meanwhile_is_named(tmp_path: Path) -> None:
    slice_ = slice_of(tmp_path, [("200", [block("200")])])
    (tmp_path / slice_.log_files[0].path).unlink()
    with pytest.raises(CorruptTableError, match=r"was cleaned.*log\.1_0-0-0"):
        visible_blocks(merge_of(tmp_path), slice_)
