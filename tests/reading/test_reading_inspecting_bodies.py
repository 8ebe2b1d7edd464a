"""Columns of the history from the bodies of instants."""

from __future__ import annotations

import pytest

from hudi_fast.errors import CorruptTableError
from hudi_fast.reading.inspecting.history import describe_completed, describe_pending
from hudi_fast.timeline.commit_metadata import CommitMetadata, WriteStat, encode_commit_metadata
from hudi_fast.timeline.plans import CleanMetadata, encode_clean_metadata


def body(operation: str, **more: object) -> bytes:
    stats = [
        WriteStat(
            file_id="f1", path="p/f1", partition_path="p", num_inserts=3, num_update_writes=2, total_write_bytes=10
        ),
        WriteStat(file_id="f2", path="q/f2", partition_path="q", num_deletes=1, total_write_bytes=5),
    ]
    commit = CommitMetadata({"p": stats[:1], "q": stats[1:]}, {}, operation, **more)  # type: ignore[arg-type]
    return encode_commit_metadata(commit, 2, bool(more))


def test_a_write_has_counts_of_rows_files_and_partitions() -> None:
    assert describe_completed("commit", body("UPSERT"), None) == {
        "operation": "UPSERT", "inserts": 3, "updates": 2, "deletes": 1, "files": 2, "bytes": 15, "partitions": 2,
    }  # fmt: skip


def test_services_count_file_groups() -> None:
    compaction = describe_completed("commit", body("COMPACT"), None)
    assert (compaction["groups_read"], compaction["groups_written"]) == (2, 2)
    clustering = describe_completed(
        "replacecommit", body("CLUSTER", partition_to_replace_file_ids={"p": ["a", "b", "c"]}), None
    )
    assert (clustering["groups_read"], clustering["groups_written"]) == (3, 2)


def test_a_clean_counts_deleted_files() -> None:
    found = describe_completed("clean", encode_clean_metadata(CleanMetadata("100", "100")), None)
    assert found == {"files_deleted": 0, "partitions": 0, "note": None}


def test_actions_without_a_body_have_no_details() -> None:
    assert describe_completed("schemacommit", b"", None) == {}
    assert describe_pending("commit", b"") == {}
    assert describe_pending("replacecommit", b"") == {}


@pytest.mark.parametrize("action", ["commit", "clean", "rollback", "restore", "savepoint", "indexing"])
def test_an_invalid_body_is_refused(action: str) -> None:
    with pytest.raises(CorruptTableError):
        describe_completed(action, b"Obj\x01 and no more", "a.file")
