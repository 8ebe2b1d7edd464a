"""Mistakes in reading: file slices, time travel, incremental queries, skipped files."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

__all__ = ["READING"]

READING = (
    Mutant(
        name="reading-range-includes-its-begin",
        file="hudi_fast/reading/incremental/commit_range.py",
        before="time > self.begin)",
        after="time >= self.begin)",
        harm="A consumer that continues after a commit gets the rows of that commit again.",
        near=("tests/reading/test_reading_incremental_query.py", "tests/reading/test_reading_incremental_golden.py"),
    ),
    Mutant(
        name="reading-archived-writes-that-took-long-are-missed",
        file="hudi_fast/reading/incremental/commit_range.py",
        before='f"{begun - _LONGEST_WRITE:%Y%m%d%H%M%S}"',
        after='f"{begun:%Y%m%d%H%M%S}"',
        harm="An incremental query misses an archived write that was requested before its begin.",
        near=("tests/reading/test_reading_incremental_query.py",),
    ),
    Mutant(
        name="reading-range-loses-groups-that-were-replaced-later",
        file="hudi_fast/reading/incremental/query.py",
        before="return {group: requested for group, requested in replaced.items() if requested <= last}",
        after="return replaced",
        harm="An incremental query up to a time before an overwrite or clustering returns too few rows.",
        near=("tests/reading/test_reading_incremental_query.py",),
    ),
    Mutant(
        name="reading-logs-belong-to-the-slice-of-their-request",
        file="hudi_fast/view/slices.py",
        before="return next((one for one in reversed(begins) if one <= completion), log.instant)",
        after="return next((one for one in reversed(begins) if one <= log.instant), log.instant)",
        harm="Rows that were logged while a compaction began are not read.",
        near=("tests/view/test_view_log_slices.py", "tests/view/test_view_slices.py"),
    ),
    Mutant(
        name="reading-pending-compaction-hides-older-logs",
        file="hudi_fast/view/slices.py",
        before="bases.get(before), (*by_slice[before], *by_slice[last]), last)",
        after="bases.get(before), tuple(by_slice[last]), last)",
        harm="While a compaction is pending the updates that it is to merge are not read.",
        near=("tests/view/test_view_log_slices.py", "tests/reading/test_reading_mor.py"),
    ),
    Mutant(
        name="reading-time-travel-to-an-overwrite-keeps-old-groups",
        file="hudi_fast/view/slices.py",
        before="return replaced_at is not None and (view.as_of is None or replaced_at <= view.as_of)",
        after="return replaced_at is not None and (view.as_of is None or replaced_at < view.as_of)",
        harm="A query as of an overwrite returns the old rows beside the new ones.",
        near=("tests/view/test_view_slices.py", "tests/reading/test_reading_time_travel.py"),
    ),
    Mutant(
        name="reading-partition-statistics-forget-pending-compactions",
        file="hudi_fast/reading/skipping/select_files.py",
        before="if kept or path in pending]",
        after="if kept]",
        harm="While a compaction is pending a filter leaves out partitions with matching rows.",
        near=("tests/reading/test_reading_skipping_select_files.py", "tests/reading/test_reading_skipping_tables.py"),
    ),
    Mutant(
        name="reading-bloom-filters-hide-keys-of-logs",
        file="hudi_fast/reading/skipping/keys.py",
        before="for number, one in enumerate(slices) if one.base_file is not None and not one.log_files",
        after="for number, one in enumerate(slices) if one.base_file is not None",
        harm="A query for a key that only a log file holds returns nothing.",
        near=("tests/reading/test_reading_skipping_keys.py", "tests/reading/test_reading_skipping_tables.py"),
    ),
)
