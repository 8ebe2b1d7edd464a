from __future__ import annotations

import dataclasses
import io
import itertools
import json
import pickle
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import fastavro
import pyarrow.parquet as pq
import pytest

from hudi_fast.config.service_options import ArchiveOptions
from hudi_fast.errors import CorruptTableError, LockError
from hudi_fast.formats.log.blocks import read_content, scan_log_blocks
from hudi_fast.timeline.archive.entries import ENTRY_SCHEMA, entries_of
from hudi_fast.timeline.archive.timeline import ArchivedTimeline, ArchivedTimes, append_archive
from hudi_fast.timeline.commit_metadata import decode_commit_metadata
from hudi_fast.timeline.instants import State
from hudi_fast.timeline.plans import decode_clean_metadata, decode_clean_plan
from tests.timeline.archives import archive_of, made_up, new_archive, opened, time_of

LSM, LOG = "cow_v9_archived", "h015_cow_archived"


def rewritten(archive: ArchivedTimeline) -> ArchivedTimeline:
    """The same instants, written by hudi_fast in batches of three."""
    rows = list(archive.read())
    shutil.rmtree(archive.storage.fs_path(archive.config.history_folder))
    for start in range(0, len(rows), 3):
        append_archive(archive.storage, archive.config, rows[start : start + 3], ArchiveOptions(compaction_files=3))
    opened(archive)
    return archive


@pytest.mark.parametrize(("name", "commits", "cleans"), [(LSM, 10, 6), (LOG, 6, 3)])
def test_what_apache_hudi_archived_is_read_with_its_bodies(golden, name, commits, cleans):
    archive = archive_of(golden(name).table)
    rows = list(archive.read())
    assert [row.instant() for row in rows] == archive.instants()
    assert [row.requested for row in rows] == sorted({row.requested for row in rows})
    assert all(row.completion > row.requested and row.instant().state is State.COMPLETED for row in rows)
    assert [sum(row.action == action for row in rows) for action in ("commit", "clean")] == [commits, cleans]
    for row in rows:
        if row.action == "commit":
            metadata = decode_commit_metadata(row.metadata)
            assert metadata.operation_type in ("UPSERT", "BULK_INSERT", "INSERT")
            assert json.loads(metadata.extra_metadata["schema"])["fields"]
            assert all(row.requested in stat.path for stat in metadata.write_stats())
            assert row.plan is None
        else:
            assert decode_clean_metadata(row.metadata).start_time == row.requested
            assert decode_clean_plan(row.plan).policy == "KEEP_LATEST_COMMITS"


def test_an_archive_of_layout_1_keeps_when_each_state_was_reached(golden):
    for row in archive_of(golden(LOG).table).read():
        assert row.requested < row.requested_at < row.inflight_at < row.completion
        if row.action == "commit":
            assert decode_commit_metadata(row.inflight).operation_type == "UPSERT"


def test_records_of_layout_1_are_byte_for_byte_those_of_apache_hudi(golden):
    archive = archive_of(golden(LOG).table)
    schema = fastavro.parse_schema(json.loads(ENTRY_SCHEMA))
    theirs: list[bytes] = []
    for entry in archive.storage.list_dir(archive.config.history_folder):
        for block in scan_log_blocks(archive.storage, entry.path):
            assert list(block.headers.values()) == [ENTRY_SCHEMA]
            content = bytes(read_content(archive.storage, block))
            at = 8
            while at < len(content):
                (length,) = struct.unpack_from(">i", content, at)
                theirs.append(content[at + 4 : at + 4 + length])
                at += 4 + length
    ours = []
    for row in archive.read():
        for record in entries_of(row):
            encoded = io.BytesIO()
            fastavro.schemaless_writer(encoded, schema, record)
            ours.append(encoded.getvalue())
    assert sorted(ours) == sorted(theirs)
    assert len(ours) == 27


@pytest.mark.parametrize("name", [LSM, LOG])
def test_what_apache_hudi_archived_is_the_same_once_it_is_written_again(golden, name):
    archive = archive_of(golden(name).table)
    rows = list(archive.read())
    assert list(rewritten(archive).read()) == rows


def test_files_of_layout_2_are_built_as_those_of_apache_hudi(golden):
    archive = archive_of(golden(LSM).table)
    folder = Path(archive.storage.fs_path(archive.config.history_folder))
    theirs = pq.ParquetFile(next(folder.glob("*_0.parquet")))
    wanted = theirs.schema_arrow, theirs.metadata.metadata, "GZIP"
    names = {path.name for path in folder.iterdir() if path.name[:4].isdecimal()}
    rewritten(archive)
    files = [pq.ParquetFile(path) for path in folder.glob("*.parquet")]
    for file in files:
        codecs = {file.metadata.row_group(0).column(number).compression for number in range(6)}
        assert (file.schema_arrow, file.metadata.metadata, *codecs) == wanted
        assert file.read(["version"]).column(0).to_pylist() == [1] * file.metadata.num_rows
    assert "20261121054908901_20261121054911283_0.parquet" in names
    assert (folder / "_version_").read_text() == str(max(int(p.name[9:]) for p in folder.glob("manifest_*")))
    newest = (folder / f"manifest_{(folder / '_version_').read_text()}").read_text()
    entries = json.loads(newest)["files"]
    assert all((folder / one["fileName"]).stat().st_size == one["fileLen"] for one in entries)


def test_manifests_have_the_text_that_apache_hudi_gives_them(golden):
    archive = archive_of(golden(LSM).table)
    path = Path(archive.storage.fs_path(archive.config.history_folder)) / "manifest_4"
    theirs = path.read_text()
    shutil.rmtree(path.parent)
    entry = json.loads(theirs)["files"][0]
    append_archive(archive.storage, archive.config, [made_up(1, 2)], ArchiveOptions())
    ours = (path.parent / "manifest_1").read_text()
    made = json.loads(ours)["files"][0]
    assert ours == theirs.replace(entry["fileName"], made["fileName"]).replace(
        str(entry["fileLen"]), str(made["fileLen"])
    )


@pytest.mark.parametrize("layout", [1, 2])
def test_a_range_takes_in_both_its_ends(tmp_path, layout):
    archive = new_archive(tmp_path, layout)
    append_archive(archive.storage, archive.config, [made_up(number, layout) for number in range(9)], ArchiveOptions())
    begin, end = time_of(20), time_of(40)
    assert [one.requested for one in archive.instants(begin, end)] == [time_of(20), time_of(30), time_of(40)]
    assert [row.requested for row in archive.read(begin, end)] == [time_of(20), time_of(30), time_of(40)]
    assert len(archive.instants(begin=begin)) == 7
    assert len(archive.instants(end=end)) == 5
    assert archive.instants(time_of(21), time_of(29)) == []


@pytest.mark.parametrize("layout", [1, 2])
def test_actions_are_told_apart(tmp_path, layout):
    archive = new_archive(tmp_path, layout)
    rows = [made_up(1, layout), made_up(2, layout, "clean"), made_up(3, layout, "replacecommit")]
    append_archive(archive.storage, archive.config, rows, ArchiveOptions())
    assert [one.action for one in archive.instants()] == ["commit", "clean", "replacecommit"]
    assert [one.requested for one in archive.instants(actions=("clean", "replacecommit"))] == [time_of(20), time_of(30)]


@pytest.mark.parametrize("layout", [1, 2])
def test_a_table_that_never_archived_has_an_empty_archive(tmp_path, layout):
    archive = new_archive(tmp_path, layout)
    assert archive.instants() == []
    assert list(archive.read()) == []


@pytest.mark.slow
def test_ten_of_ten_thousand_open_one_file_and_read_no_bodies(tmp_path):
    archive = new_archive(tmp_path, 2)
    one = made_up(1, 2)
    for start in range(0, 10_000, 1000):
        rows = [dataclasses.replace(one, requested=time_of(10 * number)) for number in range(start, start + 1000)]
        append_archive(archive.storage, archive.config, rows, ArchiveOptions(compaction_files=100))
    opened(archive)
    assert len(archive.instants(time_of(99_900), time_of(99_990))) == 10
    assert opened(archive) == ["_version_", "manifest_10", f"{time_of(90_000)}_{time_of(99_990)}_0.parquet"]
    assert len(list(archive.read(time_of(50), time_of(60)))) == 2
    assert opened(archive) == ["_version_", "manifest_10", f"{time_of(0)}_{time_of(9990)}_0.parquet"]


def test_the_archive_of_layout_1_is_read_back_until_all_is_older(tmp_path):
    archive = new_archive(tmp_path, 1)
    for start in range(0, 60, 10):
        rows = [made_up(number, 1, "clean" if number % 5 == 0 else "commit") for number in range(start, start + 10)]
        append_archive(archive.storage, archive.config, rows, ArchiveOptions())
    archive.storage.write_bytes(f"{archive.config.history_folder}/.commits_.archive.3_1-0-1", b"not to be read")
    found = archive.instants(time_of(450), actions=("commit", "clean"))
    assert [one.requested for one in found] == [time_of(10 * number) for number in range(45, 60)]
    assert len(archive.instants(time_of(450), actions=("commit",))) == 12
    with pytest.raises(CorruptTableError, match=r"archive\.3_1-0-1"):
        archive.instants(time_of(450))  # a rollback may be anywhere: there was none yet


def test_completion_times_come_from_the_files_that_may_hold_them(tmp_path):
    archive = new_archive(tmp_path, 2)
    for start in (0, 10, 20):
        rows = [made_up(number, 2) for number in range(start, start + 10)]
        append_archive(archive.storage, archive.config, rows, ArchiveOptions())
    opened(archive)
    times = ArchivedTimes(archive.storage, archive.config.history_folder)
    assert times.completions({time_of(120), time_of(125)}) == {time_of(120): time_of(125)}
    assert opened(archive) == ["_version_", "manifest_3", f"{time_of(100)}_{time_of(190)}_0.parquet"]
    assert times.completions(()) == {}
    assert times.completions([time_of(130)]) == {time_of(130): time_of(135)}
    assert opened(archive) == []
    copy = pickle.loads(pickle.dumps(times))
    assert copy.completions([time_of(10), time_of(200)]) == {time_of(10): time_of(15), time_of(200): time_of(205)}


def test_completion_times_are_looked_up_again_when_files_were_merged_meanwhile(tmp_path):
    archive = new_archive(tmp_path, 2)
    append_archive(archive.storage, archive.config, [made_up(1, 2)], ArchiveOptions())
    append_archive(archive.storage, archive.config, [made_up(2, 2)], ArchiveOptions())
    times = ArchivedTimes(archive.storage, archive.config.history_folder)
    assert times.completions([time_of(10)]) == {time_of(10): time_of(15)}
    options = ArchiveOptions(compaction_files=2, manifests_retained=1)
    for number in range(3, 6):
        append_archive(archive.storage, archive.config, [made_up(number, 2)], options)
    assert times.completions([time_of(20)]) == {time_of(20): time_of(25)}


def test_without_its_version_file_the_newest_manifest_counts(golden):
    archive = archive_of(golden(LSM).table)
    whole = archive.instants()
    archive.storage.delete_file(f"{archive.config.history_folder}/_version_")
    assert archive.instants() == whole
    archive.storage.write_bytes(f"{archive.config.history_folder}/_version_", b"")
    assert archive.instants() == whole


def test_a_reader_goes_on_behind_what_it_gave_when_files_are_merged_meanwhile(tmp_path):
    archive = new_archive(tmp_path, 2)
    for number in range(4):
        append_archive(archive.storage, archive.config, [made_up(number, 2)], ArchiveOptions())
    reading = archive.read()
    seen = [next(reading).requested]
    options = ArchiveOptions(compaction_files=2, manifests_retained=1)
    for number in range(4, 7):
        append_archive(archive.storage, archive.config, [made_up(number, 2)], options)
    folder = archive.storage.list_dir(archive.config.history_folder)
    assert not any(entry.name == f"{time_of(10)}_{time_of(10)}_0.parquet" for entry in folder)
    seen += [row.requested for row in reading]
    assert seen == [time_of(10 * number) for number in range(7)]


def test_instants_of_files_that_overlap_come_in_order_and_once(tmp_path):
    archive = new_archive(tmp_path, 2)
    late = [made_up(number, 2) for number in (1, 5, 9)]
    early = [made_up(number, 2) for number in (0, 5, 7, 12)]
    for rows in (late, early):
        append_archive(archive.storage, archive.config, rows, ArchiveOptions())
    assert [row.requested for row in archive.read()] == [time_of(10 * number) for number in (0, 1, 5, 7, 9, 12)]
    append_archive(archive.storage, archive.config, [made_up(20, 2)], ArchiveOptions(compaction_files=2))
    assert [row.requested for row in archive.read()] == [time_of(10 * number) for number in (0, 1, 5, 7, 9, 12, 20)]


@pytest.mark.parametrize("damage", [b"", b"{}", b'{"files": [{"fileLen": 3}]}', b"[1]"])
def test_a_manifest_that_makes_no_sense_is_named(golden, damage):
    archive = archive_of(golden(LSM).table)
    archive.storage.write_bytes(f"{archive.config.history_folder}/manifest_5", damage)
    with pytest.raises(CorruptTableError, match=r"manifest of the archived timeline cannot be read.*manifest_5"):
        archive.instants()


def test_a_file_that_is_cut_short_is_named(golden):
    archive = archive_of(golden(LSM).table)
    name = "20261121054908901_20261121054919960_1.parquet"
    path = f"{archive.config.history_folder}/{name}"
    archive.storage.write_bytes(path, archive.storage.read_bytes(path)[:-9])
    with pytest.raises(CorruptTableError, match=f"archived timeline cannot be read.*{name}"):
        archive.instants()


def test_a_manifest_cannot_lead_out_of_the_table(golden):
    archive = archive_of(golden(LSM).table)
    text = b'{"files": [{"fileName": "../../../x.parquet", "fileLen": 1}]}'
    archive.storage.write_bytes(f"{archive.config.history_folder}/manifest_5", text)
    with pytest.raises(CorruptTableError, match="leaves the table's base path"):
        archive.instants()


def test_a_block_that_a_crash_cut_off_is_passed_over(golden):
    archive = archive_of(golden(LOG).table)
    whole = archive.instants()
    path = f"{archive.config.history_folder}/.commits_.archive.5_1-0-1"
    first = archive.storage.read_bytes(path.replace(".5_", ".4_"))
    archive.storage.write_bytes(path, first[: len(first) - 100])
    assert archive.instants() == whole
    assert len(list(archive.read())) == len(whole)


def test_a_record_that_cannot_be_decoded_is_named(golden):
    archive = archive_of(golden(LOG).table)
    path = f"{archive.config.history_folder}/.commits_.archive.4_1-0-1"
    data = bytearray(archive.storage.read_bytes(path))
    data[-200:-100] = b"\xff" * 100
    archive.storage.write_bytes(path, bytes(data))
    with pytest.raises(CorruptTableError, match=r"archive\.4_1-0-1"):
        list(archive.read())


@pytest.mark.parametrize("layout", [1, 2])
@pytest.mark.parametrize("step", range(8))
def test_who_has_lost_the_lock_takes_back_nothing_that_others_have_archived(layout, step, tmp_path):
    """Wherever it sleeps while they do."""
    archive, asked = new_archive(tmp_path, layout), itertools.count()
    merging = ArchiveOptions(merge=True, merge_files=3, compaction_files=3)

    def add(first: int, require_lock: Callable[[], None] = lambda: None) -> None:
        rows = [made_up(number, layout) for number in (first, first + 1)]
        append_archive(archive.storage, archive.config, rows, merging, require_lock)

    def asleep() -> None:
        if next(asked) == step:
            for first in (4, 6, 8):
                add(first)
            raise LockError("others have it")

    add(0)
    add(2)
    try:
        add(4, asleep)
    except LockError:
        assert [one.requested for one in archive.instants()] == [time_of(10 * number) for number in range(10)]
    else:
        assert step >= 3
    add(10)
    assert {one.requested for one in archive.instants()} >= {time_of(10 * number) for number in (0, 1, 2, 3, 4, 5, 10)}
