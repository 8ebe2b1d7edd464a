"""Log files that a write adds to a slice."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudi_fast.formats.log.blocks import BlockType, HeaderKey, scan_log_blocks
from hudi_fast.storage.base import Storage
from hudi_fast.view.file_names import BaseFile, LogFile, log_file_name
from hudi_fast.view.slices import FileSlice
from hudi_fast.writing.log_file import BlockCounts, LogOutput, LogTarget
from hudi_fast.writing.markers import create_marker, make_marker_folder, marked_files

ID = "11111111-1111-1111-1111-111111111111-0"
BASE = BaseFile(f"p/{ID}_0-0-0_100.parquet", ID, "0-0-0", "100", 10)


def target(folder: Path, layout: int, logs: tuple[LogFile, ...] = (), size: int = 10_000) -> LogTarget:
    make_marker_folder(Storage(folder), "300")
    return LogTarget(Storage(folder), layout, "300", FileSlice("p", ID, BASE, logs, "100"), "1-2-3", size)


def append(output: LogOutput, count: int = 1) -> None:
    for _ in range(count):
        output.append(BlockType.AVRO_DATA, {HeaderKey.INSTANT_TIME: "300"}, [b"x" * 100], BlockCounts(1, 2, 3))


@pytest.mark.parametrize(("layout", "instant"), [(1, "100"), (2, "300")])
def test_a_file_is_named_announced_and_counted(tmp_path: Path, layout: int, instant: str) -> None:
    with LogOutput(target(tmp_path, layout)) as output:
        append(output, 2)
    (stat,) = output.stats
    name = log_file_name(ID, instant, 1, "1-2-3")
    assert stat.path == f"p/{name}"
    assert list(marked_files(Storage(tmp_path), "300")) == [f"p/{name}"]
    assert (stat.num_inserts, stat.num_update_writes, stat.num_deletes, stat.num_writes) == (2, 4, 6, 6)
    assert stat.file_size == (tmp_path / stat.path).stat().st_size
    assert len(list(scan_log_blocks(Storage(tmp_path), stat.path))) == 2


def test_a_full_file_is_followed_by_the_next_version(tmp_path: Path) -> None:
    with LogOutput(target(tmp_path, 2, size=200)) as output:
        append(output, 5)
    assert [stat.log_version for stat in output.stats] == [1, 2, 3]
    assert output.stats[1].log_files == tuple(stat.path.rpartition("/")[2] for stat in output.stats[:2])


def test_a_version_that_another_attempt_has_taken_is_left_alone(tmp_path: Path) -> None:
    name = log_file_name(ID, "300", 1, "1-2-3")
    goal = target(tmp_path, 2)
    create_marker(Storage(tmp_path), "300", f"p/{name}", "CREATE")  # claims the name
    Storage(tmp_path).write_bytes(f"p/{name}", b"theirs")
    with LogOutput(goal) as output:
        append(output)
    assert [stat.log_version for stat in output.stats] == [2]
    assert (tmp_path / "p" / name).read_bytes() == b"theirs"


def test_before_version_8_the_versions_of_the_slice_are_counted_on(tmp_path: Path) -> None:
    log = LogFile(f"p/{log_file_name(ID, '100', 4, '9-9-9')}", ID, "100", 4, "9-9-9", False, 5)
    with LogOutput(target(tmp_path, 1, (log,))) as output:
        append(output)
    assert output.stats[0].path == f"p/{log_file_name(ID, '100', 5, '1-2-3')}"
    assert output.stats[0].base_file == BASE.name


@pytest.mark.parametrize("before", [(), (LogFile("p/x", ID, "100", 4, "9-9-9", False, 5),)], ids=["first", "next"])
def test_before_version_8_each_attempt_has_a_token_of_its_own(tmp_path: Path, before: tuple[LogFile, ...]) -> None:
    names = set()
    for instant in ("20240101000000001", "20240101000000002"):
        make_marker_folder(Storage(tmp_path), instant)
        own = LogTarget(Storage(tmp_path), 1, instant, FileSlice("p", ID, BASE, before, "100"), "0-0-0", 10_000)
        with LogOutput(own) as output:
            append(output)
        names.add(output.stats[0].path)
        (tmp_path / output.stats[0].path).unlink()  # rolled back
    assert len(names) == 2


def test_a_failed_write_leaves_no_file(tmp_path: Path) -> None:
    output = LogOutput(target(tmp_path, 2))

    def fail() -> None:
        with output:
            append(output)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert output.stats == []
    assert list((tmp_path / "p").iterdir()) == []
