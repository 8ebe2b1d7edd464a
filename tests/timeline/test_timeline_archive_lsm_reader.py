"""Files, manifests and rows of the archive of layout 2."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_fast.config.service_options import ArchiveOptions
from hudi_fast.errors import CorruptTableError
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.archive.lsm_archive import (
    LsmFile,
    Manifest,
    SeenTimes,
    append_lsm,
    lsm_completions,
    lsm_file,
    read_lsm,
    read_lsm_files,
    read_lsm_times,
    read_manifest,
)
from tests.timeline.archives import made_up, time_of

FOLDER = "history"
OPTIONS = ArchiveOptions(compaction_files=10)


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    """An archive of two files with three instants each."""
    storage = Storage(tmp_path)
    for first in (0, 3):
        rows = [made_up(number, 2) for number in range(first, first + 3)]
        append_lsm(storage, FOLDER, rows, OPTIONS, lambda: None)
    return storage


def test_a_file_name_has_times_and_level() -> None:
    assert lsm_file("100_200_3.parquet", 7) == LsmFile("100_200_3.parquet", "100", "200", 3, 7)
    assert lsm_file("other.parquet", 7) == LsmFile("other.parquet", "", "", 0, 7)
    with pytest.raises(CorruptTableError):
        lsm_file("../100_200_3.parquet", 7)


@pytest.mark.parametrize(
    ("begin", "end", "expected"),
    [(None, None, True), ("200", None, True), ("201", None, False), (None, "100", True), (None, "099", False)],
)
def test_a_file_may_hold_instants_between_its_times(begin: str | None, end: str | None, expected: bool) -> None:
    assert lsm_file("100_200_0.parquet", 1).may_hold(begin, end) is expected
    assert lsm_file("other.parquet", 1).may_hold(begin, end)


def test_the_newest_manifest_lists_the_files(storage: Storage) -> None:
    manifest = read_manifest(storage, FOLDER)
    assert manifest.version == 2
    assert [(one.first, one.last, one.level) for one in manifest.files] == [
        (time_of(0), time_of(20), 0),
        (time_of(30), time_of(50), 0),
    ]
    assert read_manifest(storage, "nothing") == Manifest(0, ())
    storage.write_bytes(f"{FOLDER}/manifest_2", b"{}")
    with pytest.raises(CorruptTableError, match="manifest"):
        read_manifest(storage, FOLDER)


def test_instants_of_a_range_come_in_order(storage: Storage) -> None:
    times = [row[0] for row in read_lsm_times(storage, FOLDER, time_of(20), time_of(40))]
    assert times == [time_of(20), time_of(30), time_of(40)]
    whole = list(read_lsm(storage, FOLDER, None, time_of(0)))
    assert whole == [made_up(0, 2)]


def test_overlapping_files_give_each_instant_once(storage: Storage) -> None:
    append_lsm(storage, FOLDER, [made_up(number, 2) for number in (1, 4, 6)], OPTIONS, lambda: None)
    files = read_manifest(storage, FOLDER).files
    assert len(files) == 3
    expected = [made_up(number, 2) for number in range(7)]
    assert list(read_lsm_files(storage, FOLDER, files)) == list(read_lsm(storage, FOLDER, None, None)) == expected


def test_completion_times_are_kept_by_file(storage: Storage) -> None:
    seen = SeenTimes()
    wanted = [time_of(10), time_of(11)]
    assert lsm_completions(storage, FOLDER, wanted, seen) == {time_of(10): time_of(15)}
    assert len(seen.files) == 1
    storage.delete_file(f"{FOLDER}/{next(iter(seen.files))}")
    assert lsm_completions(storage, FOLDER, wanted, seen) == {time_of(10): time_of(15)}


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["instantTime", "completionTime"], "expected"),
        (["instantTime", "completionTime", "action"] * 2, "columns have one name"),
    ],
)
def test_a_file_without_each_column_once_is_refused_by_name(storage: Storage, names: list[str], text: str) -> None:
    file = read_manifest(storage, FOLDER).files[0].name
    with storage.open_output(f"{FOLDER}/{file}") as sink:
        pq.write_table(pa.Table.from_arrays([pa.array([time_of(0)])] * len(names), names), sink)
    with pytest.raises(CorruptTableError, match=text) as caught:
        list(read_lsm_times(storage, FOLDER, None, None))
    assert caught.value.path == f"{FOLDER}/{file}"
