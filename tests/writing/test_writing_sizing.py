"""Where inserts go: the worked example of Hudi's article on file sizing, and the rules around it."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given

from hudi_fast.config.file_options import SizingOptions
from hudi_fast.timeline.commit_metadata import CommitMetadata, WriteStat
from hudi_fast.writing.assign import (
    InsertAssignment,
    SmallFile,
    assign_inserts,
    average_record_size,
    files_of_parts,
    max_files,
)

MB, MIB = 10**6, 1 << 20
SIZES = {"File_1": 40, "File_2": 80, "File_3": 90, "File_4": 130, "File_5": 105}


def small_files(unit: int, limit: int) -> list[SmallFile]:
    return [SmallFile(name, size * unit) for name, size in SIZES.items() if size * unit < limit]


def counts(assigned: list[InsertAssignment]) -> list[tuple[str | None, int]]:
    return [(one.file_id, one.count) for one in assigned]


def test_the_articles_example_with_its_split_size() -> None:
    settings = SizingOptions(max_file_size=120 * MB, small_file_limit=100 * MB, auto_split=False, split_size=120_000)
    assert counts(assign_inserts(450_000, small_files(MB, 100 * MB), 1000, settings)) == [
        ("File_1", 80_000),
        ("File_2", 40_000),
        ("File_3", 30_000),
        (None, 120_000),
        (None, 120_000),
        (None, 60_000),
    ]


def test_the_articles_example_with_the_split_worked_out_from_sizes() -> None:
    settings = SizingOptions(max_file_size=120 * MB, small_file_limit=100 * MB)
    assigned = assign_inserts(450_000, small_files(MB, 100 * MB), 1000, settings)
    assert [one.count for one in assigned] == [80_000, 40_000, 30_000, 120_000, 120_000, 60_000]


def test_the_example_in_binary_units() -> None:
    settings = SizingOptions(max_file_size=120 * MIB, small_file_limit=100 * MIB)
    assigned = assign_inserts(10**6, small_files(MIB, 100 * MIB), 1000, settings)
    assert [one.count for one in assigned[:4]] == [83_886, 41_943, 31_457, 125_830]
    assert sum(one.count for one in assigned) == 10**6


def test_the_next_write_fills_the_last_file_first() -> None:
    settings = SizingOptions(max_file_size=120 * MB, small_file_limit=100 * MB, auto_split=False, split_size=120_000)
    assert counts(assign_inserts(100_000, [SmallFile("File_8", 60 * MB)], 1000, settings)) == [
        ("File_8", 60_000),
        (None, 40_000),
    ]


def test_a_small_file_without_room_for_a_record_is_passed_over() -> None:
    settings = SizingOptions(max_file_size=1000, small_file_limit=1000)
    assert counts(assign_inserts(2, [SmallFile("full", 950), SmallFile("empty", 0)], 100, settings)) == [("empty", 2)]


def test_a_file_of_narrow_records_ends_at_the_maximum_of_rows() -> None:
    settings = SizingOptions(max_file_size=120 * MB, small_file_limit=100 * MB, max_file_rows=1_000_000)
    small = [SmallFile("half", 20 * MB), SmallFile("full", 90 * MB)]
    assert counts(assign_inserts(2_700_000, small, 40, settings)) == [
        ("half", 500_000),
        (None, 1_000_000),
        (None, 1_000_000),
        (None, 200_000),
    ]


def test_without_inserts_nothing_is_assigned() -> None:
    assert assign_inserts(0, [SmallFile("a", 0)], 100, SizingOptions()) == []


@given(
    st.integers(0, 5000),
    st.lists(st.integers(0, 3000), max_size=6),
    st.integers(1, 700),
    st.integers(1, 4000),
)
def test_every_insert_is_dealt_out_once_and_no_file_grows_beyond_the_maximum(
    inserts: int, sizes: list[int], average: int, maximum: int
) -> None:
    settings = SizingOptions(max_file_size=maximum, small_file_limit=maximum)
    small = [SmallFile(str(number), size) for number, size in enumerate(sizes)]
    assigned = assign_inserts(inserts, small, average, settings)
    assert sum(one.count for one in assigned) == inserts
    assert all(one.count > 0 for one in assigned)
    room = {one.file_id: maximum - one.size for one in small}
    per_file = -(-maximum // average)
    for one in assigned:
        limit = per_file if one.file_id is None else room[one.file_id] // average
        assert one.count <= limit


@given(
    st.lists(st.integers(1, 3000), min_size=1, max_size=20), st.integers(1, 500), st.integers(1, 9), st.integers(1, 400)
)
def test_two_writers_of_each_partition_make_at_most_one_file_more(
    partitions: list[int], average: int, kilobytes: int, first: int
) -> None:
    settings = SizingOptions(max_file_size=kilobytes * 1000)
    asked = files_of_parts(partitions, settings.records_per_new_file(average))
    maximum = max_files(asked, len(partitions))
    assert asked <= maximum <= asked * 1.1 + len(partitions)
    before_full = settings.records_before_full(average)
    cut = [each for count in partitions for each in (min(first, count), count - min(first, count))]
    assert files_of_parts(cut, before_full) <= maximum


def commit(size: int, records: int, *paths: str) -> CommitMetadata:
    stats = [
        WriteStat(file_id=path, path=path, partition_path="", num_writes=records, total_write_bytes=size)
        for path in paths or ("a.parquet",)
    ]
    return CommitMetadata({"": stats}, {}, "UPSERT")


def test_a_commit_of_small_files_is_not_trusted() -> None:
    assert average_record_size([commit(7 * MIB, 10**5, "a.parquet", "b.parquet")], SizingOptions()) == 1024


def test_a_commit_of_large_files_is_measured_below_the_limit_unless_an_estimate_is_set() -> None:
    commits = [commit(10, 1), commit(99 * MIB, 10**6), commit(98 * MIB, 1)]
    assert average_record_size(commits, SizingOptions()) == 104
    assert average_record_size(commits, SizingOptions(), is_given=True) == 1024
    assert average_record_size([*commits, commit(200 * MIB, 10**6)], SizingOptions()) == 210


def test_the_newest_commit_that_wrote_enough_is_trusted_and_rounded_up() -> None:
    commits = [commit(10, 1), commit(200 * MIB, 10**6), commit(200 * MIB, 1)]
    assert average_record_size(commits, SizingOptions()) == 210


def test_no_more_commits_are_read_than_allowed() -> None:
    read = []

    def newest_first():
        for number in range(9):
            read.append(number)
            yield commit(1, 1)

    assert average_record_size(newest_first(), SizingOptions(estimator_max_commits=3)) == 1024
    assert len(read) <= 4


def test_metadata_of_files_does_not_count_and_log_files_do_not_either() -> None:
    settings = SizingOptions(small_file_limit=1000, estimator_file_metadata=500)
    both = commit(1500, 10, "a.parquet", ".a_1.log.1_0-1-1")
    assert average_record_size([both], settings) == 1024  # 1500 - 500 is not more than the limit
    assert average_record_size([commit(1501, 10)], settings) == 101


def test_the_share_of_the_limit_that_makes_a_commit_trusted_can_be_set() -> None:
    settings = SizingOptions(small_file_limit=1000, estimation_threshold=0.1)
    assert average_record_size([commit(101, 10)], settings) == 11
