"""Files and instants of the archive of layout 1."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudi_fast.config.service_options import ArchiveOptions
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.archive.log_archive import archive_files, archive_number, read_log, read_log_times
from hudi_fast.timeline.archive.timeline import append_archive
from tests.timeline.archives import made_up, new_archive, time_of


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    """An archive of two files: commits 0 and 1 and a clean, then commits 3 and 4."""
    archive = new_archive(tmp_path, 1)
    for rows in ([made_up(0, 1), made_up(1, 1), made_up(2, 1, "clean")], [made_up(3, 1), made_up(4, 1)]):
        append_archive(archive.storage, archive.config, rows, ArchiveOptions())
    return archive.storage


FOLDER = ".hoodie/archived"


def test_files_are_listed_by_number_newest_first(storage: Storage) -> None:
    assert [archive_number(one.name) for one in archive_files(storage, FOLDER)] == [2, 1]
    storage.write_bytes(f"{FOLDER}/.commits_.archive.10_1-0-1", b"")
    storage.write_bytes(f"{FOLDER}/other", b"")
    assert [archive_number(one.name) for one in archive_files(storage, FOLDER)] == [10, 2, 1]
    assert archive_number("other") == 0


def test_times_of_a_range_and_of_actions(storage: Storage) -> None:
    numbers = [(time_of(10 * number), time_of(10 * number + 5)) for number in range(5)]
    assert [row[:2] for row in read_log_times(storage, FOLDER, None, None)] == numbers
    assert [row[0] for row in read_log_times(storage, FOLDER, time_of(10), time_of(30))] == [
        one for one, _ in numbers[1:4]
    ]
    assert [row[2] for row in read_log_times(storage, FOLDER, None, None, ["clean"])] == ["clean"]


def test_instants_have_their_bodies(storage: Storage) -> None:
    found = list(read_log(storage, FOLDER, time_of(20), time_of(30)))
    assert [(one.requested, one.action) for one in found] == [(time_of(20), "clean"), (time_of(30), "commit")]
    assert all(one.metadata for one in found)
