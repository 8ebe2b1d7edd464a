"""Compaction strategies: select the partitions and the slices to compact, and their order.

A strategy is a pair of functions; several strategies are applied one after the other. Their names are the class names
of Apache Hudi, with or without package::

    hoodie.compaction.strategy ─► strategies_of ─► filter_partitions ─► (plan the slices) ─► filter_operations

Sources: the classes of ``org.apache.hudi.table.action.compact.strategy``, release 1.2.0.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from hudi_fast.config.compaction_options import CompactionOptions
from hudi_fast.errors import ConfigError, UnsupportedFeatureError
from hudi_fast.timeline.service_plans import CompactionOperation

__all__ = ["Strategy", "filter_operations", "filter_partitions", "strategies_of"]

Operations = list[CompactionOperation]


@dataclass(frozen=True, slots=True)
class Strategy:
    """One strategy.

    Attributes:
        name: its class in Apache Hudi, without package.
        partitions: selects partitions, from (options, partition paths).
        operations: selects and orders operations, from (options, operations).
    """

    name: str
    partitions: Callable[[CompactionOptions, list[str]], list[str]]
    operations: Callable[[CompactionOptions, Operations], Operations]


def strategies_of(options: CompactionOptions) -> tuple[Strategy, ...]:
    """The strategies of ``hoodie.compaction.strategy``.

    Raises:
        ConfigError: the pattern of partition paths is not a regular expression.
        UnsupportedFeatureError: a class that Apache Hudi does not have.
    """
    found: list[Strategy] = []
    known = {strategy.name: strategy for strategy in _strategies()}
    for name in options.strategies:
        strategy = known.get(name.rpartition(".")[2])
        if strategy is None:
            raise UnsupportedFeatureError(
                f"hoodie.compaction.strategy={name} is not supported; supported: {', '.join(known)}."
            )
        found.append(strategy)
    _pattern(options)
    return tuple(found)


def filter_partitions(strategies: Sequence[Strategy], options: CompactionOptions, partitions: list[str]) -> list[str]:
    """The partitions that all strategies select, in the order of the last one."""
    for strategy in strategies:
        partitions = strategy.partitions(options, partitions)
    return partitions


def filter_operations(strategies: Sequence[Strategy], options: CompactionOptions, operations: Operations) -> Operations:
    """The operations that all strategies select, in the order of the last one."""
    for strategy in strategies:
        operations = strategy.operations(options, operations)
    return operations


def _strategies() -> tuple[Strategy, ...]:
    return (
        Strategy("UnBoundedCompactionStrategy", _all_partitions, _all_operations),
        Strategy("BoundedIOCompactionStrategy", _all_partitions, _within_io),
        Strategy("LogFileSizeBasedCompactionStrategy", _all_partitions, _largest_logs),
        Strategy("LogFileNumBasedCompactionStrategy", _all_partitions, _max_logs),
        Strategy("DayBasedCompactionStrategy", _newest_days, _by_day),
        Strategy("BoundedPartitionAwareCompactionStrategy", _recent_days, _of_recent_days),
        Strategy("UnBoundedPartitionAwareCompactionStrategy", _older_days, _of_older_days),
        Strategy("PartitionRegexBasedCompactionStrategy", _matching, _all_operations),
    )


# ---- by size


def _all_partitions(options: CompactionOptions, partitions: list[str]) -> list[str]:
    return partitions


def _all_operations(options: CompactionOptions, operations: Operations) -> Operations:
    return operations


def _within_io(options: CompactionOptions, operations: Operations) -> Operations:
    """As many operations as fit into the bound; the last one may exceed it."""
    left, chosen = float(options.target_io_mb), []
    for one in operations:
        if left <= 0:
            break
        chosen.append(one)
        left -= one.metrics["TOTAL_IO_MB"]
    return chosen


def _largest_logs(options: CompactionOptions, operations: Operations) -> Operations:
    return _within_io(options, _descending(operations, "TOTAL_LOG_FILES_SIZE", options.log_size_threshold))


def _max_logs(options: CompactionOptions, operations: Operations) -> Operations:
    return _within_io(options, _descending(operations, "TOTAL_LOG_FILES", options.log_count_threshold))


def _descending(operations: Operations, metric: str, threshold: int) -> Operations:
    enough = [one for one in operations if one.metrics[metric] >= threshold]
    return sorted(enough, key=lambda one: one.metrics[metric], reverse=True)


# ---- by day


def _newest_days(options: CompactionOptions, partitions: list[str]) -> list[str]:
    return sorted(partitions, key=_day, reverse=True)[: options.day_partitions]


def _by_day(options: CompactionOptions, operations: Operations) -> Operations:
    days = set(_newest_days(options, list({one.partition_path for one in operations})))
    return _within_io(options, _newest_first([one for one in operations if one.partition_path in days]))


def _recent_days(options: CompactionOptions, partitions: list[str]) -> list[str]:
    earliest = _earliest(options)
    return [name for name in sorted(partitions, key=_day, reverse=True) if _day(name) >= earliest]


def _of_recent_days(options: CompactionOptions, operations: Operations) -> Operations:
    earliest = _earliest(options)
    return _newest_first([one for one in operations if _day(one.partition_path) >= earliest])


def _older_days(options: CompactionOptions, partitions: list[str]) -> list[str]:
    earliest = _earliest(options)
    return [name for name in partitions if _day(name) < earliest]


def _of_older_days(options: CompactionOptions, operations: Operations) -> Operations:
    earliest = _earliest(options)
    return [one for one in operations if _day(one.partition_path) < earliest]


def _newest_first(operations: Operations) -> Operations:
    return sorted(operations, key=lambda one: _day(one.partition_path), reverse=True)


def _earliest(options: CompactionOptions) -> date:
    return date.today() - timedelta(days=options.day_partitions)


def _day(partition: str) -> date:
    """The day of a partition path ``yyyy/MM/dd``, hive style or not."""
    text = "/".join(part.rpartition("=")[2] for part in partition.split("/"))
    try:
        return datetime.strptime(text, "%Y/%m/%d").date()
    except ValueError as error:
        raise ConfigError(
            f"The day-based compaction strategies need partitions like 2024/01/31; found {partition!r}. Choose another "
            "hoodie.compaction.strategy."
        ) from error


# ---- by name


def _matching(options: CompactionOptions, partitions: list[str]) -> list[str]:
    pattern = _pattern(options)
    return [name for name in partitions if pattern.fullmatch(name)]


def _pattern(options: CompactionOptions) -> re.Pattern[str]:
    try:
        return re.compile(options.partition_regex)
    except re.error as error:
        raise ConfigError(
            f"hoodie.compaction.partition.path.regex={options.partition_regex!r} is not a regular expression: {error}."
        ) from error
