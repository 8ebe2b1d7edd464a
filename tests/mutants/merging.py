"""Mistakes in merging: which of several rows with one key a reader sees."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

__all__ = ["MERGING"]

MERGING = (
    Mutant(
        name="merging-fold-keeps-the-older-of-equal-rows",
        file="kernels/fold_entries.py",
        before="wins = rank[i] >= rank[old]",
        after="wins = rank[i] > rank[old]",
        harm="Of two log records with one ordering value the older one is read.",
        near=("tests/kernels/test_kernels_fold_entries.py", "tests/merging/test_merging_fold.py"),
    ),
    Mutant(
        name="merging-fold-compares-deletes-without-ordering-value",
        file="kernels/fold_entries.py",
        before="elif new_flags & COMMIT_TIME or kinds[i] == NO_KIND or kinds[old] == NO_KIND:",
        after="elif kinds[i] == NO_KIND or kinds[old] == NO_KIND:",
        harm="A key that was deleted without an ordering value is still read.",
        near=("tests/kernels/test_kernels_fold_entries.py", "tests/merging/test_merging_fold.py"),
    ),
    Mutant(
        name="merging-blend-passes-over-the-best-row",
        file="kernels/fold_entries.py",
        before="for i in range(start, end):",
        after="for i in range(start + 1, end):",
        harm="A partial update loses to the value of an older log record.",
        near=("tests/kernels/test_kernels_fold_entries.py", "tests/merging/test_merging_fold.py"),
    ),
    Mutant(
        name="merging-batch-keeps-the-first-of-equal-rows",
        file="kernels/key_table.py",
        before="elif rank[row] < rank[known]:",
        after="elif rank[row] <= rank[known]:",
        harm="Of two rows of a write with one key and one ordering value the earlier one is stored.",
        near=("tests/kernels/test_kernels_key_table.py", "tests/merging/test_merging_fold.py"),
    ),
    Mutant(
        name="merging-last-ordering-field-counts-most",
        file="hudi_fast/merging/rules.py",
        before="zip(reversed(incoming), reversed(stored), strict=True)",
        after="zip(incoming, stored, strict=True)",
        harm="With two ordering fields an older row replaces a newer one.",
        near=("tests/merging/test_merging_rules.py", "tests/merging/test_merging_fold.py"),
    ),
    Mutant(
        name="merging-default-delete-loses-to-stored-row",
        file="hudi_fast/merging/base_merge.py",
        before="return compare(incoming, stored) | (deletes & default_ordering)",
        after="return compare(incoming, stored)",
        harm="A delete without an ordering value does not delete the stored row.",
        near=("tests/merging", "tests/reading/test_reading_mor.py"),
    ),
    Mutant(
        name="merging-repeated-positions-are-dealt-out-again",
        file="hudi_fast/merging/log_entries.py",
        before=(
            "            if len(found) == part.count:  # repeated positions are stored once and cannot be assigned to "
            "entries\n"
            "                positions[start : start + part.count] = found\n"
        ),
        after=(
            "            if len(found):\n"
            "                positions[start : start + part.count] = np.resize(found, part.count)\n"
        ),
        harm="If a log block changes a row twice, the rows of other keys are overwritten.",
        near=("tests/merging/test_merging_log_entries.py", "tests/reading/test_reading_mor.py"),
    ),
    Mutant(
        name="merging-positions-of-another-base-file-count",
        file="hudi_fast/merging/log_entries.py",
        before=("if text and headers.get(HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS) == base_instant:"),
        after="if text:",
        harm="After a compaction a log record overwrites the row of another key.",
        near=("tests/merging/test_merging_log_entries.py", "tests/reading/test_reading_mor.py"),
    ),
    Mutant(
        name="merging-version-6-blocks-of-failed-writes-count",
        file="hudi_fast/merging/log_scan.py",
        before="_BLOCKS_ARE_CHECKED_BEFORE = 8",
        after="_BLOCKS_ARE_CHECKED_BEFORE = 6",
        harm="Queries of a table of version 6 return rows of failed writes.",
        near=("tests/merging/test_merging_log_scan.py", "tests/reading/test_reading_mor.py"),
    ),
    Mutant(
        name="merging-log-compaction-keeps-its-own-place",
        file="hudi_fast/merging/log_scan.py",
        before=(
            "        if not any(part in by_instant for part in parts):\n            chosen.setdefault(final)\n"
            "    return list(reversed(chosen))"
        ),
        after="        chosen.setdefault(final)\n    return list(reversed(chosen))",
        harm="After a log compaction older values hide those of a write that came in between.",
        near=("tests/merging/test_merging_log_scan.py", "tests/services/test_services_compaction_log_run.py"),
    ),
    Mutant(
        name="merging-gaps-of-the-stored-row-stay",
        file="hudi_fast/merging/blend.py",
        before="take_new ^= replaced",
        after="take_new &= ~replaced",
        harm="A late partial update does not fill the columns that the stored row lacks.",
        near=("tests/merging/test_merging_blend.py", "tests/merging/test_merging_fold.py"),
    ),
    Mutant(
        name="merging-deletes-of-a-merger-hide-other-deletes",
        file="hudi_fast/merging/base_merge.py",
        before="deleted_rows = np.union1d(deleted_rows, positions[made.deleted])",
        after="deleted_rows = positions[made.deleted]",
        harm="If a merge function deletes a row, deleted rows of the same batch are read again.",
        near=("tests/merging/test_merging_merged_slice.py", "tests/merging", "tests/reading/test_reading_mor.py"),
    ),
)
