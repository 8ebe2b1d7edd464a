"""Mistakes in writing: tagging, sizes of files, log files, markers, rollbacks, conflicts of writers."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

__all__ = ["WRITING"]

WRITING = (
    Mutant(
        name="writing-deletes-of-unknown-keys-are-inserted",
        file="hudi_fast/writing/assign.py",
        before="        inserts = inserts[~incoming.deletes[inserts]]  # nothing to delete where the key is unknown\n",
        after="        inserts = found.inserts  # nothing to delete where the key is unknown\n",
        harm="A delete of a key that is not stored adds a row.",
        near=("tests/writing/test_writing_assign.py", "tests/writing/test_writing_operations.py"),
    ),
    Mutant(
        name="writing-inserts-go-to-slices-with-log-files",
        file="hudi_fast/writing/assign.py",
        before="small = sorted((each for each in small if not each[1].log_files), key=lambda each: each[0])",
        after="small = sorted((each for each in small), key=lambda each: each[0])",
        harm="On a MERGE_ON_READ table an insert hides the updates in the log files of its file group.",
        near=("tests/writing/test_writing_assign.py", "tests/writing/test_writing_mor.py"),
    ),
    Mutant(
        name="writing-only-new-file-groups-look-for-the-partition-marker",
        file="hudi_fast/writing/file_group.py",
        before="    ensure_partition_marker(plan",
        after="    work.slice or ensure_partition_marker(plan",
        harm="A partition whose marker was rolled back with the write that created it stays hidden from listings.",
        near=("tests/writing/test_writing_partition_marker.py",),
    ),
    Mutant(
        name="writing-full-files-take-inserts",
        file="hudi_fast/config/file_options.py",
        before="return min((self.max_file_size - size) // average, self.max_file_rows - size // average)",
        after="return min(self.max_file_size // average, self.max_file_rows - size // average)",
        harm="Base files grow far above the maximum file size.",
        near=("tests/writing/test_writing_sizing.py",),
    ),
    Mutant(
        name="writing-repeated-stored-key-names-one-row",
        file="hudi_fast/writing/located.py",
        before="places.stored[np.flatnonzero(again) - 1] = UNKNOWN_ROW",
        after="places.stored[np.flatnonzero(again)] = UNKNOWN_ROW",
        harm="If a base file holds a key twice, an upsert on Spark changes only one of the two rows.",
        near=("tests/writing/test_writing_key_places.py",),
    ),
    Mutant(
        name="writing-every-log-block-has-the-first-positions",
        file="hudi_fast/writing/log_file.py",
        before="_headers(plan, work.slice, rows[part])",
        after="_headers(plan, work.slice, rows[: block.rows])",
        harm="Apache Hudi, which trusts record positions, merges several log blocks into rows of other keys.",
        near=("tests/writing/test_writing_file_group.py", "tests/writing/test_writing_mor.py"),
    ),
    Mutant(
        name="writing-rollback-of-a-compaction-takes-logs-of-others",
        file="hudi_fast/writing/rollback_plan.py",
        before='own_log = log if log is not None and (failed.action != "compaction" or log.is_cdc) else None',
        after="own_log = log",
        harm="On a table of version 6 the rollback of a failed compaction deletes rows of writers that went on.",
        near=(
            "tests/services/test_services_recovery_rollback.py",
            "tests/writing/test_writing_mor_cleanup.py",
            "tests/writing/test_writing_cleanup.py",
        ),
    ),
    Mutant(
        name="writing-torn-command-block-counts",
        file="hudi_fast/writing/rollback.py",
        before="if log.path in marked and log.size >= len(block)}",
        after="if log.path in marked}",
        harm="On a table of version 6 an interrupted rollback is complete although its command block is not.",
        near=("tests/writing/test_writing_rollback_logs.py", "tests/writing/test_writing_mor_cleanup.py"),
    ),
    Mutant(
        name="writing-late-cleanup-deletes-shared-logs",
        file="hudi_fast/writing/markers.py",
        before="if kind != _APPEND and path not in kept]",
        after="if path not in kept]",
        harm="In an object store the end of a write to a table of version 6 deletes log files of another writer.",
        near=("tests/writing/test_writing_markers.py", "tests/writing/test_writing_cleanup.py"),
    ),
    Mutant(
        name="writing-conflicts-with-older-requests-pass",
        file="hudi_fast/writing/conflicts.py",
        before="now.writes() if one.requested not in seen]",
        after="now.writes() if one.requested > own.requested]",
        harm="Of two concurrent updates of one row the first to complete is lost without an error.",
        near=("tests/writing/test_writing_conflicts.py",),
    ),
    Mutant(
        name="writing-copied-row-groups-keep-deleted-rows",
        file="hudi_fast/writing/patched_file.py",
        before="group.total_byte_size < least or gone or not _has_codec",
        after="group.total_byte_size < least or not _has_codec",
        harm="Deleted rows stay in row groups without other changes.",
        near=("tests/writing/test_writing_patched_file.py", "tests/writing/test_writing_operations.py"),
    ),
    Mutant(
        name="writing-copied-file-forgets-its-largest-key",
        file="hudi_fast/writing/patched_file.py",
        before="[[kept.keys.min_key, kept.keys.max_key]]",
        after="[[kept.keys.min_key, kept.keys.min_key]]",
        harm="Later upserts do not find keys of the file and store them a second time.",
        near=("tests/writing/test_writing_patched_file.py",),
    ),
    Mutant(
        name="writing-global-index-inserts-keys-that-stay",
        file="hudi_fast/writing/global_index.py",
        before="    moves &= ~stays  # a key that is also stored in the partition of the row is changed there\n",
        after="",
        harm="An upsert with a global index stores a key of two partitions once more.",
        near=("tests/writing/test_writing_stored_keys.py", "tests/writing/test_writing_operations.py"),
    ),
    Mutant(
        name="writing-lookup-passes-over-logs-during-a-compaction",
        file="hudi_fast/writing/lookup.py",
        before="if completion is None or one.instant < completion)",
        after="if completion is None or one.instant < base.instant)",
        harm="A key that was logged while a compaction ran is inserted a second time.",
        near=("tests/writing/test_writing_logged_early.py", "tests/writing/test_writing_mor_lookup.py"),
    ),
)
