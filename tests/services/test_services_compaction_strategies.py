from datetime import date, timedelta

import pytest

from hudi_fast.config.rewrite_options import CompactionOptions
from hudi_fast.errors import ConfigError, UnsupportedFeatureError
from hudi_fast.services.compact_plan import filter_operations, filter_partitions, strategies_of
from hudi_fast.timeline.service_plans import CompactionOperation

PACKAGE = "org.apache.hudi.table.action.compact.strategy."


def operation(file_id: str, partition: str = "p", size: int = 0, logs: int = 1, io: int = 0) -> CompactionOperation:
    metrics = {"TOTAL_LOG_FILES_SIZE": float(size), "TOTAL_LOG_FILES": float(logs), "TOTAL_IO_MB": float(io)}
    return CompactionOperation(partition, file_id, "20260101000000000", metrics=metrics)


def day(ago: int, style: str = "%Y/%m/%d") -> str:
    return f"{date.today() - timedelta(days=ago):{style}}"


def chosen(operations: list[CompactionOperation], **settings: object) -> list[str]:
    options = CompactionOptions(**settings)
    return [one.file_id for one in filter_operations(strategies_of(options), options, operations)]


def looked_at(partitions: list[str], **settings: object) -> list[str]:
    options = CompactionOptions(**settings)
    return filter_partitions(strategies_of(options), options, partitions)


SIZES = [operation("a", size=5, logs=3, io=1), operation("b", size=9, logs=1, io=2), operation("c", size=5, logs=2)]


def test_by_default_the_largest_logs_go_first_and_equal_ones_keep_their_order():
    assert chosen(SIZES) == ["b", "a", "c"]


def test_slices_with_smaller_logs_than_the_threshold_are_left_alone():
    assert chosen(SIZES, log_size_threshold=6) == ["b"]


def test_by_number_of_log_files():
    strategies = (PACKAGE + "LogFileNumBasedCompactionStrategy",)
    assert chosen(SIZES, strategies=strategies) == ["a", "c", "b"]
    assert chosen(SIZES, strategies=strategies, log_count_threshold=2) == ["a", "c"]


def test_the_last_slice_may_go_beyond_the_bound_on_io():
    operations = [operation(name, io=40) for name in "abcd"]
    strategies = ("BoundedIOCompactionStrategy",)
    assert chosen(operations, strategies=strategies, target_io_mb=80) == ["a", "b"]
    assert chosen(operations, strategies=strategies, target_io_mb=81) == ["a", "b", "c"]
    assert chosen(operations, strategies=strategies, target_io_mb=0) == []
    assert chosen(operations, strategies=("UnBoundedCompactionStrategy",), target_io_mb=0) == ["a", "b", "c", "d"]


def test_the_newest_days_go_first_and_so_many_of_them():
    partitions = ["2024/01/31", "2024/02/01", "2023/12/31"]
    strategies = ("DayBasedCompactionStrategy",)
    assert looked_at(partitions, strategies=strategies, day_partitions=2) == ["2024/02/01", "2024/01/31"]
    operations = [operation(name, partition) for name, partition in zip("abc", partitions, strict=True)]
    assert chosen(operations, strategies=strategies) == ["b", "a", "c"]
    assert chosen(operations, strategies=strategies, day_partitions=1) == ["b"]


def test_days_of_hive_style_partitions():
    partitions = ["year=2024/month=01/day=31", "year=2024/month=02/day=01"]
    assert looked_at(partitions, strategies=("DayBasedCompactionStrategy",), day_partitions=1) == partitions[1:]


def test_within_and_outside_of_the_last_days():
    partitions = [day(0), day(3), day(4), day(400)]
    operations = [operation(name, partition) for name, partition in zip("abcd", partitions, strict=True)]
    recent, older = ("BoundedPartitionAwareCompactionStrategy",), ("UnBoundedPartitionAwareCompactionStrategy",)
    assert looked_at(partitions[::-1], strategies=recent, day_partitions=3) == [day(0), day(3)]
    assert chosen(operations, strategies=recent, day_partitions=3) == ["a", "b"]
    assert looked_at(partitions, strategies=older, day_partitions=3) == [day(4), day(400)]
    assert chosen(operations, strategies=older, day_partitions=3) == ["c", "d"]


def test_day_based_strategies_need_partitions_that_are_days():
    with pytest.raises(ConfigError, match="partitions like 2024/01/31"):
        looked_at(["eu"], strategies=("DayBasedCompactionStrategy",))


def test_partitions_by_a_pattern_that_matches_the_whole_path():
    strategies = ("PartitionRegexBasedCompactionStrategy",)
    assert looked_at(["eu/de", "eu", "us/eu"], strategies=strategies, partition_regex="eu/.*") == ["eu/de"]
    with pytest.raises(ConfigError, match=r"partition\.path\.regex"):
        strategies_of(CompactionOptions(strategies=strategies, partition_regex="("))


def test_several_strategies_follow_each_other():
    strategies = ("LogFileNumBasedCompactionStrategy", PACKAGE + "BoundedIOCompactionStrategy")
    assert chosen(SIZES, strategies=strategies, target_io_mb=1) == ["a"]


@pytest.mark.parametrize("name", ["com.example.MyStrategy", "LogFileSizeBased"])
def test_other_classes_are_refused_by_name(name: str):
    with pytest.raises(UnsupportedFeatureError, match=rf"hoodie\.compaction\.strategy={name} "):
        strategies_of(CompactionOptions(strategies=(name,)))
