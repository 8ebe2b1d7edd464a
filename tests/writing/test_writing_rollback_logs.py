"""Command blocks that invalidate log blocks before table version 8."""

from __future__ import annotations

from pathlib import Path

from hudi_fast.formats.log.blocks import BlockType, HeaderKey, scan_log_blocks
from hudi_fast.storage.base import Storage
from hudi_fast.view.file_names import log_file_name
from hudi_fast.writing.markers import make_marker_folder, marked_files
from hudi_fast.writing.rollback import take_back

ID = "11111111-1111-1111-1111-111111111111-0"


def test_each_slice_gets_a_log_file_with_one_command_block(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    make_marker_folder(storage, "500")
    storage.write_bytes(f"p/{log_file_name(ID, '100', 3, '0-0-0')}", b"a log")
    made = take_back(storage, "500", "400", "p", {(ID, "100"), (ID, "200")}, set())
    assert sorted(made) == sorted(
        f"p/{log_file_name(ID, base, version, '1-0-1')}" for base, version in (("100", 4), ("200", 1))
    )
    assert set(marked_files(storage, "500")) == set(made)
    for path, size in made.items():
        assert (tmp_path / path).stat().st_size == size
        (block,) = scan_log_blocks(storage, path)
        assert block.kind is BlockType.COMMAND
        assert block.headers[HeaderKey.TARGET_INSTANT_TIME] == "400"


def test_a_rollback_that_is_repeated_adds_nothing(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    make_marker_folder(storage, "500")
    slices = {(ID, "100")}
    made = take_back(storage, "500", "400", "p", slices, set())
    marked = set(marked_files(storage, "500"))
    assert take_back(storage, "500", "400", "p", slices, marked) == made
    assert len(list((tmp_path / "p").iterdir())) == 1


def test_a_command_block_that_was_cut_off_is_written_again(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    make_marker_folder(storage, "500")
    slices = {(ID, "100"), (ID, "200")}
    made = take_back(storage, "500", "400", "p", slices, set())
    torn, whole = sorted(made)
    block = storage.read_bytes(torn)
    storage.write_bytes(torn, block[: len(block) // 2])
    again = take_back(storage, "500", "400", "p", slices, set(marked_files(storage, "500")))
    added = f"p/{log_file_name(ID, '100', 2, '1-0-1')}"
    assert again == {torn: len(block) // 2, whole: made[whole], added: len(block)}
    assert storage.read_bytes(added) == block
    assert set(marked_files(storage, "500")) == set(again)
