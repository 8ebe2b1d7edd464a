from __future__ import annotations

import dataclasses
import json

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_fast.config.service_options import ArchiveOptions
from hudi_fast.errors import CorruptTableError
from hudi_fast.formats.avro.container import write_single_record
from hudi_fast.formats.log.blocks import scan_log_blocks
from hudi_fast.timeline.archive.entries import ENTRY_SCHEMA, entries_of, instant_of
from hudi_fast.timeline.archive.log_archive import _PLAN_SCHEMA
from hudi_fast.timeline.archive.timeline import ArchivedInstant, ArchivedTimeline, append_archive
from hudi_fast.timeline.commit_metadata import CommitMetadata, WriteStat, decode_commit_metadata, encode_commit_metadata
from hudi_fast.timeline.plans import RollbackMetadata, encode_rollback_metadata
from hudi_fast.timeline.service_plans import (
    CompactionPlan,
    RequestedReplace,
    encode_compaction_plan,
    encode_requested_replace,
)
from tests.support.examples import examples
from tests.timeline.archives import made_up, new_archive, time_of

PLAIN = ArchiveOptions()
MERGE = ArchiveOptions(merge=True, merge_files=3)


def append(archive: ArchivedTimeline, numbers: range, options: ArchiveOptions = PLAIN) -> list[str]:
    rows = [made_up(number, 1) for number in numbers]
    return append_archive(archive.storage, archive.config, rows, options)


def names(archive: ArchivedTimeline) -> list[str]:
    return [entry.name for entry in archive.storage.list_dir(archive.config.history_folder)]


def all_there(archive: ArchivedTimeline, count: int) -> bool:
    times = [time_of(10 * number) for number in range(count)]
    return [row.requested for row in archive.read()] == times == [one.requested for one in archive.instants()]


def commit(layout: int = 1, **changes: object) -> bytes:
    stat = WriteStat(file_id="f", path="p/f", partition_path="p", num_writes=3, file_size=9)
    return encode_commit_metadata(CommitMetadata({"p": [stat]}, {"k": "v"}, "UPSERT", **changes), layout)


def test_every_run_is_a_file_of_its_own_in_blocks_of_so_many_records(tmp_path):
    archive = new_archive(tmp_path, 1)
    (first,) = append(archive, range(5), ArchiveOptions(batch_records=4))
    (second,) = append(archive, range(5, 6))
    assert [first, second] == [f".hoodie/archived/.commits_.archive.{number}_1-0-1" for number in (1, 2)]
    assert len(list(scan_log_blocks(archive.storage, first))) == 4  # 15 records
    assert all_there(archive, 6)


def test_a_number_that_is_taken_is_counted_on_from(tmp_path):
    archive = new_archive(tmp_path, 1)
    archive.storage.write_bytes(".hoodie/archived/.commits_.archive.41_7-0-7", b"")
    assert append(archive, range(1)) == [".hoodie/archived/.commits_.archive.42_1-0-1"]


def test_an_archive_run_that_is_repeated_adds_nothing(tmp_path):
    archive = new_archive(tmp_path, 1)
    append(archive, range(4))
    assert append(archive, range(4)) == []
    assert len(append(archive, range(2, 6))) == 1
    assert all_there(archive, 6)


def states(row: ArchivedInstant) -> list[tuple[str, str, list[str]]]:
    """Action, state and kinds of bodies of an instant's records, and that they become the instant again."""
    entries = entries_of(row)
    assert instant_of({one["actionState"]: one for one in entries}, "x") == row
    assert all(one["version"] is None and one["stateTransitionTime"] for one in entries)
    plain = {"commitTime", "actionType", "version", "actionState", "stateTransitionTime"}
    return [(one["actionType"], one["actionState"], sorted(one.keys() - plain)) for one in entries]


def test_a_compaction_is_one_until_it_is_complete(tmp_path):
    row = ArchivedInstant("1", "4", "commit", None, encode_compaction_plan(CompactionPlan()), None, "2", "3")
    assert states(row) == [
        ("compaction", "REQUESTED", ["hoodieCompactionPlan"]),
        ("compaction", "INFLIGHT", []),
        ("commit", "COMPLETED", []),
    ]
    logged = dataclasses.replace(row, action="deltacommit")
    assert [state[0] for state in states(logged)] == ["logcompaction", "logcompaction", "deltacommit"]


def test_a_replace_commit_has_what_it_was_asked_for_and_what_it_took_away():
    metadata = CommitMetadata(operation_type="INSERT_OVERWRITE", partition_to_replace_file_ids={"p": ["g"]})
    row = made_up(
        1, 1, "replacecommit", metadata=None, plan=encode_requested_replace(RequestedReplace()), inflight=None
    )
    row = dataclasses.replace(row, metadata=encode_commit_metadata(metadata, 1, replace=True))
    entries = entries_of(row)
    assert entries[-1]["hoodieReplaceCommitMetadata"]["partitionToReplaceFileIds"] == {"p": ["g"]}
    assert "ROLLING_STAT" not in entries[-1]["hoodieReplaceCommitMetadata"]["extraMetadata"]
    found = instant_of({one["actionState"]: one for one in entries}, "x")
    assert decode_commit_metadata(found.metadata).partition_to_replace_file_ids == {"p": ["g"]}
    assert found.plan is not None


def test_a_rollback_has_its_metadata_when_it_is_complete():
    body = encode_rollback_metadata(RollbackMetadata("1", "0", "commit"))
    row = ArchivedInstant("1", "4", "rollback", body, None, None, "2", "3")
    assert states(row) == [
        ("rollback", "REQUESTED", []),
        ("rollback", "INFLIGHT", []),
        ("rollback", "COMPLETED", ["hoodieRollbackMetadata"]),
    ]


def test_commit_metadata_of_layout_2_is_taken_too(tmp_path):
    archive = new_archive(tmp_path, 1)
    row = ArchivedInstant(time_of(1), time_of(2), "commit", commit(layout=2))
    append_archive(archive.storage, archive.config, [row], ArchiveOptions())
    (stored,) = archive.read()
    assert decode_commit_metadata(stored.metadata) == decode_commit_metadata(commit())
    assert (stored.requested_at, stored.inflight_at, stored.plan) == (None, None, None)


@pytest.mark.parametrize("body", [b"{", b"Obj\x01cut"])
def test_a_body_that_makes_no_sense_is_refused_and_nothing_written(tmp_path, body):
    archive = new_archive(tmp_path, 1)
    row = dataclasses.replace(made_up(1, 1), metadata=body)
    with pytest.raises(CorruptTableError):
        append_archive(archive.storage, archive.config, [row], ArchiveOptions())
    assert names(archive) == []


def test_small_files_are_merged_on_request(tmp_path):
    archive = new_archive(tmp_path, 1)
    append(archive, range(2), MERGE)
    append(archive, range(2, 4), MERGE)
    assert append(archive, range(4, 6), MERGE)[1:] == [".hoodie/archived/.commits_.archive.4_1-0-1"]
    assert names(archive) == [".commits_.archive.4_1-0-1"]
    assert all_there(archive, 6)
    append(archive, range(6, 8), MERGE)
    assert names(archive) == [".commits_.archive.4_1-0-1", ".commits_.archive.5_1-0-1"]


def test_files_from_a_large_one_back_are_not_merged(tmp_path):
    archive = new_archive(tmp_path, 1)
    small = append(archive, range(1))[0]
    append(archive, range(1, 30))
    append(archive, range(30, 31))
    options = dataclasses.replace(MERGE, merge_small_bytes=archive.storage.stat(small).size + 99, merge_files=2)
    assert append(archive, range(31, 32), options)[1:] == [".hoodie/archived/.commits_.archive.5_1-0-1"]
    assert names(archive) == [f".commits_.archive.{number}_1-0-1" for number in (1, 2, 5)]
    assert all_there(archive, 32)


def write_merge_plan(archive: ArchivedTimeline, numbers: list[int], merged: int) -> None:
    folder = archive.config.history_folder
    paths = [f"file:{archive.storage.absolute(folder)}/.commits_.archive.{number}_1-0-1" for number in numbers]
    plan = {"candidate": paths, "mergedArchiveFileName": f".commits_.archive.{merged}_1-0-1"}
    archive.storage.write_bytes(f"{folder}/mergeArchivePlan", write_single_record(_PLAN_SCHEMA, plan))


def test_a_merge_that_died_while_it_wrote_is_undone(tmp_path):
    archive = new_archive(tmp_path, 1)
    append(archive, range(2))
    append(archive, range(2, 4))
    write_merge_plan(archive, [2, 1], 3)
    archive.storage.write_bytes(".hoodie/archived/.commits_.archive.3_1-0-1", b"#HUDI#torn")
    assert all_there(archive, 4)
    append(archive, range(4, 5))
    assert names(archive) == [f".commits_.archive.{number}_1-0-1" for number in (1, 2, 3)]
    assert all_there(archive, 5)


def test_a_merge_that_died_while_it_deleted_is_finished(tmp_path):
    archive = new_archive(tmp_path, 1)
    append(archive, range(2))
    append(archive, range(2, 4))
    folder = archive.config.history_folder
    both = [archive.storage.read_bytes(f"{folder}/.commits_.archive.{number}_1-0-1") for number in (2, 1)]
    archive.storage.write_bytes(f"{folder}/.commits_.archive.3_1-0-1", b"".join(both))
    archive.storage.delete_file(f"{folder}/.commits_.archive.2_1-0-1")
    write_merge_plan(archive, [2, 1], 3)
    assert all_there(archive, 4)
    append(archive, range(4, 5))
    assert names(archive) == [f".commits_.archive.{number}_1-0-1" for number in (3, 4)]
    assert all_there(archive, 5)


def test_a_merge_plan_that_was_cut_off_goes(tmp_path):
    archive = new_archive(tmp_path, 1)
    append(archive, range(2))
    archive.storage.write_bytes(f"{archive.config.history_folder}/mergeArchivePlan", b"Obj\x01cut")
    append(archive, range(2, 3))
    assert names(archive) == [".commits_.archive.1_1-0-1", ".commits_.archive.2_1-0-1"]


def test_the_schema_of_the_records_is_one_that_avro_takes():
    parsed = fastavro.parse_schema(json.loads(ENTRY_SCHEMA))
    assert parsed["name"] == "org.apache.hudi.avro.model.HoodieArchivedMetaEntry"


@settings(max_examples=examples(10))
@given(
    numbers=st.lists(st.integers(0, 40), unique=True, max_size=20),
    batch=st.integers(1, 7),
    records=st.integers(1, 5),
    kinds=st.lists(st.sampled_from(["commit", "clean", "replacecommit", "deltacommit"]), min_size=4, max_size=4),
)
def test_whatever_is_archived_in_batches_is_read_back_in_order(tmp_path_factory, numbers, batch, records, kinds):
    archive = new_archive(tmp_path_factory.mktemp("archive"), 1)
    rows = [made_up(number, 1, kinds[number % 4]) for number in numbers]
    for start in range(0, len(rows), batch):
        options = ArchiveOptions(batch_records=records, merge=True, merge_files=3)
        append_archive(archive.storage, archive.config, rows[start : start + batch], options)
    stored = list(archive.read())
    assert [row.instant() for row in stored] == sorted((row.instant() for row in rows), key=lambda one: one.requested)
    for row in stored:
        given_row = next(one for one in rows if one.requested == row.requested)
        assert (row.requested_at, row.inflight_at, row.plan) == (
            given_row.requested_at,
            given_row.inflight_at,
            given_row.plan,
        )
