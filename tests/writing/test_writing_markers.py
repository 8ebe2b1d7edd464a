"""Markers in an object store: a process trusts for a while what it saw, and yet no task leaves a file behind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import hudi_fast as hf
from hudi_fast.storage.base import Storage
from hudi_fast.writing import markers
from hudi_fast.writing.markers import (
    begin_task,
    clear_if_left_behind,
    create_marker,
    delete_marker,
    delete_markers,
    ensure_partition_marker,
    has_markers,
    make_marker_folder,
    marked_files,
)
from tests.servers.http_faults import Faults, http_faults
from tests.servers.s3 import S3Server
from tests.support.instrumented_storage import RecordingStorage

INSTANT = "20300101000000000"


def base_file(name: str) -> str:
    return f"p/{name}-0_0-1-2_{INSTANT}.parquet"


FIRST, SECOND, THIRD, MINE, LATE = map(base_file, ("first", "second", "third", "mine", "late"))
SHARED = f"p/.shared-0_{INSTANT}.log.1_0-1-2"


@pytest.fixture(scope="module")
def counted(s3_server: S3Server) -> Iterator[Faults]:
    with http_faults(s3_server.url) as faults:
        yield faults


@pytest.fixture
def storage(s3_server: S3Server, counted: Faults, request: pytest.FixtureRequest) -> Storage:
    made = Storage(s3_server.path(f"markers/{request.node.name}"), s3_server.options_at(counted.url))
    make_marker_folder(made, INSTANT)
    return made


def write(storage: Storage, path: str, kind: str = "CREATE") -> None:
    """What a task does for each file."""
    create_marker(storage, INSTANT, path, kind)
    storage.write_bytes(path, b"rows")


def left(storage: Storage) -> list[str]:
    return [one.path for one in storage.list_dir("", recursive=True) if not one.is_dir]


def test_a_file_costs_one_request_while_the_folder_is_known(storage: Storage, counted: Faults) -> None:
    create_marker(storage, INSTANT, FIRST, "CREATE")
    counted.arm()
    for number in range(5):
        create_marker(storage, INSTANT, base_file(str(number)), "CREATE")
    assert [one.partition(" ")[0] for one in counted.asked] == ["PUT"] * 5
    assert len(marked_files(storage, INSTANT)) == 6


def test_what_was_seen_is_not_trusted_for_long(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    write(storage, FIRST)
    monkeypatch.setattr(markers, "_TRUSTED_SECONDS", -1.0)
    write(storage, SECOND)
    delete_markers(storage, INSTANT)
    with pytest.raises(hf.CommitError, match="has already ended"):
        create_marker(storage, INSTANT, THIRD, "CREATE")


def test_a_marker_of_a_leftover_task_does_not_open_the_write_again(storage: Storage) -> None:
    write(storage, MINE)
    delete_markers(storage, INSTANT, {MINE})
    begin_task(storage, INSTANT)
    write(storage, LATE)  # the process has seen the folder a moment ago
    assert has_markers(storage, INSTANT)  # a rollback would find the file
    clear_if_left_behind(storage, INSTANT)
    assert left(storage) == [MINE]


def test_files_that_come_after_the_cleanup_and_before_the_end_are_deleted_at_the_end(storage: Storage) -> None:
    write(storage, MINE)
    write(storage, LATE)
    write(storage, SHARED, "APPEND")
    clear_if_left_behind(storage, INSTANT)  # the task ends in time
    delete_markers(storage, INSTANT, {MINE})
    assert left(storage) == [SHARED, MINE]


def test_a_task_in_time_keeps_its_files_and_forgets_those_of_others(storage: Storage) -> None:
    write(storage, FIRST)
    clear_if_left_behind(storage, INSTANT)
    begin_task(storage, INSTANT)
    write(storage, SECOND)
    write(storage, THIRD)
    delete_marker(storage, INSTANT, THIRD, "CREATE")  # it belongs to another write
    delete_markers(storage, INSTANT, {FIRST, SECOND, THIRD})
    clear_if_left_behind(storage, INSTANT)
    assert left(storage) == [FIRST, THIRD]


def test_a_process_looks_once_for_the_marker_of_a_partition(tmp_path: object) -> None:
    storage = RecordingStorage(str(tmp_path))
    for _ in range(3):
        for partition in ("p0", "p1"):
            ensure_partition_marker(storage, partition, INSTANT, False)
    looked = [call.path for call in storage.calls if call.name == "stat"]
    assert looked == ["p0/.hoodie_partition_metadata", "p1/.hoodie_partition_metadata"]
    ensure_partition_marker(storage, "p0", "20300101000000001", False)
    assert len([call for call in storage.calls if call.name == "stat"]) == 3
    assert len([call for call in storage.calls if call.name == "create_exclusive"]) == 2
