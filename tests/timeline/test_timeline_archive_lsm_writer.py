from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_fast.config.service_options import ArchiveOptions
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.archive.timeline import ArchivedInstant, ArchivedTimeline, append_archive
from hudi_fast.timeline.commit_metadata import decode_commit_metadata
from tests.support.examples import examples
from tests.timeline.archives import made_up, new_archive, time_of

THREE = ArchiveOptions(compaction_files=3)


def append(archive: ArchivedTimeline, numbers: range, options: ArchiveOptions = THREE) -> list[str]:
    rows = [made_up(number, 2) for number in numbers]
    written = append_archive(archive.storage, archive.config, rows, options)
    return [path.rpartition("/")[2] for path in written]


def name(first: int, last: int, level: int) -> str:
    return f"{time_of(10 * first)}_{time_of(10 * last)}_{level}.parquet"


def folder_of(archive: ArchivedTimeline) -> Path:
    return Path(archive.storage.fs_path(archive.config.history_folder))


def named(archive: ArchivedTimeline) -> list[str]:
    """Files of the newest manifest."""
    version = (folder_of(archive) / "_version_").read_text()
    entries = json.loads((folder_of(archive) / f"manifest_{version}").read_text())["files"]
    return [entry["fileName"] for entry in entries]


def all_there(archive: ArchivedTimeline, count: int) -> bool:
    return [row.requested for row in archive.read()] == [time_of(10 * number) for number in range(count)]


def test_files_of_a_level_are_merged_once_there_are_enough_of_them(tmp_path):
    archive = new_archive(tmp_path, 2)
    assert append(archive, range(2)) == [name(0, 1, 0)]
    assert append(archive, range(2, 4)) == [name(2, 3, 0)]
    assert append(archive, range(4, 6)) == [name(4, 5, 0), name(0, 5, 1)]
    assert named(archive) == [name(0, 5, 1)]
    assert append(archive, range(6, 8)) == [name(6, 7, 0)]
    assert named(archive) == [name(0, 5, 1), name(6, 7, 0)]
    assert all_there(archive, 8)


def test_levels_are_merged_one_after_the_other(tmp_path):
    archive = new_archive(tmp_path, 2)
    for start in range(8):
        append(archive, range(start, start + 1))
    assert append(archive, range(8, 9)) == [name(8, 8, 0), name(6, 8, 1), name(0, 8, 2)]
    assert named(archive) == [name(0, 8, 2)]
    assert all_there(archive, 9)


def test_files_are_merged_up_to_a_size_and_a_large_one_stays(tmp_path):
    archive = new_archive(tmp_path, 2)
    large = made_up(0, 2, metadata=made_up(0, 2).metadata + bytes(range(256)) * 200)
    append_archive(archive.storage, archive.config, [large], THREE)
    size = (folder_of(archive) / name(0, 0, 0)).stat().st_size
    append(archive, range(1, 2))
    small = (folder_of(archive) / name(1, 1, 0)).stat().st_size
    assert size > small
    bounded = dataclasses.replace(THREE, compaction_target_bytes=small)
    assert append(archive, range(2, 3), bounded) == [name(2, 2, 0), name(1, 2, 1)]
    assert named(archive) == [name(0, 0, 0), name(1, 2, 1)]
    assert all_there(archive, 3)


def test_files_that_are_all_too_large_stay(tmp_path):
    archive = new_archive(tmp_path, 2)
    options = dataclasses.replace(THREE, compaction_target_bytes=1)
    for start in range(5):
        assert append(archive, range(start, start + 1), options) == [name(start, start, 0)]
    assert all_there(archive, 5)


def test_old_manifests_go_and_with_them_the_files_that_no_other_names(tmp_path):
    archive = new_archive(tmp_path, 2)
    for start in range(3):
        append(archive, range(start, start + 1))
    # Merging made manifest 4; it and the three before it stay, and so do the merged files.
    present = {path.name for path in folder_of(archive).iterdir()}
    assert {f"manifest_{number}" for number in (1, 2, 3, 4)} <= present
    assert name(0, 0, 0) in present
    for start in range(3, 5):
        append(archive, range(start, start + 1))
    present = {path.name for path in folder_of(archive).iterdir()}
    assert {one for one in present if one.startswith("manifest")} == {f"manifest_{number}" for number in (4, 5, 6)}
    assert name(0, 0, 0) not in present
    assert all_there(archive, 5)


def test_an_archive_run_that_is_repeated_adds_nothing(tmp_path):
    archive = new_archive(tmp_path, 2)
    append(archive, range(4))
    before = named(archive)
    assert append(archive, range(4)) == []
    assert append(archive, range(1, 3)) == []
    assert named(archive) == before
    assert append(archive, range(2, 6)) == [name(4, 5, 0)]
    assert all_there(archive, 6)


def test_a_file_that_no_manifest_names_is_written_again(tmp_path):
    archive = new_archive(tmp_path, 2)
    append(archive, range(2))
    (folder_of(archive) / name(2, 3, 0)).write_bytes(b"torn")
    assert append(archive, range(2, 4)) == [name(2, 3, 0)]
    assert all_there(archive, 4)


@pytest.mark.parametrize("left", [b"torn", b"[]", b'{"files" : [  ]}'])
def test_a_manifest_that_did_not_become_the_newest_is_passed_by(left, tmp_path):
    archive = new_archive(tmp_path, 2)
    append(archive, range(2))
    (folder_of(archive) / "manifest_2").write_bytes(left)
    assert all_there(archive, 2)
    append(archive, range(2, 4))
    assert named(archive) == [name(0, 1, 0), name(2, 3, 0)]
    assert (folder_of(archive) / "manifest_2").read_bytes() == left
    for number in range(4, 20, 2):
        append(archive, range(number, number + 2))
    assert not (folder_of(archive) / "manifest_2").exists()
    assert all_there(archive, 20)


def test_a_version_file_that_is_lost_comes_back(tmp_path):
    archive = new_archive(tmp_path, 2)
    append(archive, range(2))
    (folder_of(archive) / "_version_").unlink()
    append(archive, range(2, 4))
    assert (folder_of(archive) / "_version_").read_text() == "2"
    assert all_there(archive, 4)


def test_bodies_of_layout_1_become_avro(tmp_path):
    archive = new_archive(tmp_path, 2)
    rows = [made_up(1, 1), made_up(2, 1, "replacecommit", inflight=made_up(2, 1).metadata), made_up(3, 1, "clean")]
    append_archive(archive.storage, archive.config, rows, THREE)
    stored = list(archive.read())
    assert [row.metadata[:4] for row in stored] == [b"Obj\x01"] * 3
    for given_row, row in zip(rows[:2], stored[:2], strict=True):
        assert decode_commit_metadata(row.metadata) == decode_commit_metadata(given_row.metadata)
    assert [row.plan is None for row in stored] == [True, False, False]
    assert decode_commit_metadata(stored[1].plan).operation_type == "UPSERT"
    assert stored[2].plan == rows[2].plan


def test_a_commit_without_a_body_stays_one(tmp_path):
    archive = new_archive(tmp_path, 2)
    append_archive(archive.storage, archive.config, [made_up(1, 2, metadata=None)], THREE)
    assert [row.metadata for row in archive.read()] == [None]


@settings(max_examples=examples(15))
@given(
    numbers=st.lists(st.integers(0, 60), unique=True, max_size=30),
    batch=st.integers(1, 7),
    files=st.integers(2, 4),
    bodies=st.lists(
        st.one_of(st.none(), st.binary(min_size=1, max_size=9).map(lambda body: b"Obj\x01" + body)),
        min_size=3,
        max_size=3,
    ),
)
def test_whatever_is_archived_in_batches_is_read_back_in_order(tmp_path_factory, numbers, batch, files, bodies):
    archive = new_archive(tmp_path_factory.mktemp("archive"), 2)
    rows = [
        ArchivedInstant(time_of(number), time_of(number + 1), "deltacommit", bodies[number % 3], bodies[number % 2])
        for number in numbers
    ]
    for start in range(0, len(rows), batch):
        append_archive(
            archive.storage, archive.config, rows[start : start + batch], ArchiveOptions(compaction_files=files)
        )
    assert list(archive.read()) == sorted(rows, key=lambda row: row.requested)
    assert [one.requested for one in archive.instants()] == sorted(row.requested for row in rows)


def test_storage_that_fails_leaves_the_archive_as_it_was(tmp_path):
    archive = new_archive(tmp_path, 2)
    append(archive, range(2))

    class FailingStorage(Storage):
        def write_bytes(self, path, data):
            if path.endswith("_version_"):
                raise OSError("no room for _version_")
            super().write_bytes(path, data)

    with pytest.raises(OSError, match="no room"):
        append(ArchivedTimeline(FailingStorage(tmp_path), archive.config), range(2, 4))
    assert all_there(archive, 2)
    append(archive, range(2, 4))
    assert all_there(archive, 4)
