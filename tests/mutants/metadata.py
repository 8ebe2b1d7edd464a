"""Mistakes in the metadata table, its indexes, and the lookup of keys."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

__all__ = ["METADATA"]

METADATA = (
    Mutant(
        name="metadata-build-lists-empty-files",
        file="hudi_fast/metadata_table/updates/produce_base.py",
        before="    return entry.size > 0\n",
        after="    return True\n",
        harm="A new metadata table lists an empty file, with which release 0.15 of Apache Hudi cannot read it.",
        near=(
            "tests/metadata_table/test_metadata_table_build.py",
            "tests/metadata_table/test_metadata_table_produce_sources.py",
        ),
    ),
    Mutant(
        name="metadata-rollback-lists-empty-logs",
        file="hudi_fast/metadata_table/updates/rollback.py",
        before=(
            'existing = [\n        (path or ".", name, size, False) for path, files in added.items() '
            "for name, size in files.items() if size > 0\n    ]"
        ),
        after=(
            'existing = [(path or ".", name, size, False) for path, files in added.items() '
            "for name, size in files.items()]"
        ),
        harm="After a rollback on a table of version 6 release 0.15 of Apache Hudi cannot read the metadata table.",
        near=("tests/metadata_table/test_metadata_table_rollback.py", "tests/writing/test_writing_mor_cleanup.py"),
    ),
    Mutant(
        name="metadata-deleted-files-are-listed",
        file="hudi_fast/metadata_table/fold.py",
        before="live = np.flatnonzero(last > last_delete)",
        after="live = np.flatnonzero(last >= last_delete)",
        harm="After a clean queries fail because the metadata table lists files that are gone.",
        near=("tests/metadata_table/test_metadata_table_fold.py",),
    ),
    Mutant(
        name="metadata-late-completion-is-not-missed",
        file="hudi_fast/metadata_table/table.py",
        before="if one.requested not in known and (one.completion or one.requested) > made]",
        after="if one.requested not in known and one.requested > made]",
        harm="Queries trust a metadata table that lacks a write which another program completed, and lose its rows.",
        near=("tests/metadata_table/test_metadata_table_trust.py",),
    ),
    Mutant(
        name="metadata-record-index-forgets-revived-keys",
        file="hudi_fast/metadata_table/updates/produce_records.py",
        before="np.setdiff1d(hidden, hidden_before), np.setdiff1d(hidden_before, hidden)",
        after="np.setdiff1d(hidden, hidden_before), np.setdiff1d(hidden_before, hidden_before)",
        harm="A key that was deleted and written again is inserted a second time by the next upsert.",
        near=(
            "tests/metadata_table/test_metadata_table_produce_changes.py",
            "tests/writing/test_writing_record_index.py",
        ),
    ),
    Mutant(
        name="metadata-moved-keys-are-deleted",
        file="hudi_fast/metadata_table/updates/record_bins.py",
        before="    chosen[run[with_value[::-1]]] = with_value[::-1]  # the first value of each run\n",
        after="",
        harm="A row that moves to another partition is not in the record index and is stored twice by the next upsert.",
        near=(
            "tests/metadata_table/test_metadata_table_record_bins.py",
            "tests/writing/test_writing_record_index.py",
        ),
    ),
    Mutant(
        name="metadata-clustering-moves-no-keys",
        file="hudi_fast/metadata_table/updates/produce_base.py",
        before='_CHANGES_NO_ROWS = frozenset({"COMPACT", "LOG_COMPACT", "CLEAN"})',
        after='_CHANGES_NO_ROWS = frozenset({"COMPACT", "LOG_COMPACT", "CLEAN", "CLUSTER"})',
        harm="After a clustering the record index names replaced file groups, and upserts insert their keys again.",
        near=(
            "tests/metadata_table/test_metadata_table_produce_changes.py",
            "tests/services/test_services_clustering_run.py",
        ),
    ),
    Mutant(
        name="metadata-bloom-index-leaves-out-the-largest-key",
        file="hudi_fast/index/tagging.py",
        before="pc.less_equal(candidates, footer.max_key)",
        after="pc.less(candidates, footer.max_key)",
        harm="With a bloom index an update of the largest key of a file inserts it a second time.",
        near=("tests/index/test_index_tagging.py", "tests/writing/test_writing_operations.py"),
    ),
    Mutant(
        name="metadata-lookup-joins-distant-row-groups",
        file="hudi_fast/index/tagging.py",
        before="if runs and runs[-1][0][-1] == number - 1:",
        after="if runs:",
        harm="An upsert changes the row of another key, in a row group further up.",
        near=("tests/index/test_index_tagging.py",),
    ),
    Mutant(
        name="metadata-ranges-of-a-complete-clustering-need-a-mark",
        file="hudi_fast/index/buckets.py",
        before="if one == FIRST_INSTANT or one in marked or one in complete]",
        after="if one == FIRST_INSTANT or one in marked]",
        harm="Rows go to replaced buckets if the process died between a clustering's commit and its mark.",
        near=("tests/index/test_index_consistent.py", "tests/services/test_services_clustering_bucket_resize.py"),
    ),
)
