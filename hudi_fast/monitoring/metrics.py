"""Metrics of commits and table services, under the names of Apache Hudi.

::

    Completed ─► gauges: {"trips.commit.totalRecordsWritten": 5, ...} ─► the table's gauges ─► a reporter
                                                                         when the outermost phase has ended

Source: ``HoodieMetrics``, ``Metrics``, ``HoodieCommitMetadata`` (1.2.0).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from hudi_fast.config.metrics_options import MetricsOptions
from hudi_fast.events import Completed, Phase, note
from hudi_fast.monitoring.reporters import report
from hudi_fast.storage.forks import new_lock
from hudi_fast.timeline.active import Timeline
from hudi_fast.timeline.commit_metadata import CommitMetadata, WriteStat
from hudi_fast.timeline.instant import ms_from_instant

__all__ = ["MetricsListener", "gauges_of", "timeline_gauges"]

_SUMS: dict[str, Callable[[WriteStat], int]] = {
    "totalRecordsWritten": lambda stat: stat.num_writes,
    "totalUpdateRecordsWritten": lambda stat: stat.num_update_writes,
    "totalInsertRecordsWritten": lambda stat: stat.num_inserts,
    "totalRecordsDeleted": lambda stat: stat.num_deletes,
    "totalBytesWritten": lambda stat: stat.total_write_bytes,
    "totalFilesInsert": lambda stat: int(stat.prev_commit == "null"),
    "totalFilesUpdate": lambda stat: int(stat.prev_commit != "null"),
    "totalScanTime": lambda stat: 0 if stat.runtime_stats is None else stat.runtime_stats.total_scan_time,
    "totalCreateTime": lambda stat: 0 if stat.runtime_stats is None else stat.runtime_stats.total_create_time,
    "totalUpsertTime": lambda stat: 0 if stat.runtime_stats is None else stat.runtime_stats.total_upsert_time,
    "totalCompactedRecordsUpdated": lambda stat: stat.total_updated_records_compacted,
    "totalLogFilesCompacted": lambda stat: stat.total_log_files_compacted,
    "totalLogFilesSize": lambda stat: stat.total_log_size_compacted,
    "totalLogRecordsCompacted": lambda stat: stat.total_log_records,
}
"""Metrics of a commit that are sums over its files. Times are in milliseconds."""

_PENDING = {
    "clean": ("Clean", ("clean",)),
    "compaction": ("Compaction", ("compaction",)),
    "clustering": ("Clustering", ("clustering",)),
    "rollback": ("Rollback", ("rollback",)),
}
_LATEST = {"clean": "Clean", "commit": "Compaction", "replacecommit": "Clustering", "rollback": "Rollback"}
"""Actions whose last completed instant is a metric, and the table service that names it in Apache Hudi."""


def gauges_of(done: Completed, zone: str) -> dict[str, int]:
    """The metrics of a completed action, without prefix.

    Args:
        done: the action.
        zone: time zone of the table's timeline, ``LOCAL`` or ``UTC``.
    """
    found = {"duration": int(done.seconds * 1000), **(done.figures or {})}
    metadata = done.metadata
    if isinstance(metadata, CommitMetadata):
        stats = list(metadata.write_stats())
        found |= {name: sum(map(of, stats)) for name, of in _SUMS.items()}
        found["totalPartitionsWritten"] = len(metadata.partition_to_write_stats)
        found["commitTime"] = ms_from_instant(done.instant, zone)
        found |= _event_times(stats, found["commitTime"] + found["duration"])
    return {f"{done.action}.{name}": value for name, value in found.items()}


def timeline_gauges(timeline: Timeline, done: str) -> dict[str, int]:
    """Pending and last table services of a timeline; instants are numbers of 17 digits.

    Args:
        timeline: before or after an action.
        done: the requested time of the action, which is completed now.
    """
    found = {}
    pending = sorted((one for one in timeline.pending() if one.requested != done), key=lambda one: one.requested)
    for action, (word, actions) in _PENDING.items():
        some = [one for one in pending if one.action in actions]
        found[f"{action}.pending{word}InstantCount"] = len(some)
        if some:
            found[f"{action}.earliestInflight{word}Instant"] = _number(some[0].requested)
    for action, word in _LATEST.items():
        last = [one for one in timeline.of_action(action) if one.is_completed]
        if last:
            found[f"{action}.latestCompleted{word}Instant"] = _number(last[-1].requested)
    return found


class MetricsListener:
    """Collects the metrics of one table and reports them when a call ends. Errors are logged.

    Args:
        options: where to report.
        uri: base path of the table.
    """

    def __init__(self, options: MetricsOptions, uri: str) -> None:
        self._options, self._uri = options, uri
        self._has_news = False

    def begun(self, phase: Phase) -> None:
        """Nothing to do."""

    def advanced(self, phase: Phase) -> None:
        """Nothing to do."""

    def completed(self, done: Completed) -> None:
        """Set the gauges of an action."""
        state = done.state
        prefix = self._options.prefix or (state.config.name or "").replace(".", "_")
        found = {**timeline_gauges(state.timeline, done.instant), **gauges_of(done, state.config.timezone)}
        with _LOCK:
            gauges = _GAUGES.setdefault(self._uri, {})
            gauges.update({f"{prefix}.{name}" if prefix else name: value for name, value in found.items()})
        self._has_news = True

    def ended(self, phase: Phase) -> None:
        """Report after the outermost phase."""
        if phase.outer is not None or not self._has_news:
            return
        self._has_news = False
        with _LOCK:
            gauges = dict(_GAUGES.get(self._uri, {}))
        try:
            report(self._options, self._uri, gauges)
        except Exception as error:  # the commit is visible, whatever happens to its metrics
            reporter, text = self._options.reporter, "The metrics of %s could not be reported to %s: %s"
            note("metrics", logging.ERROR, text, self._uri, reporter, error, table=self._uri)


_GAUGES: dict[str, dict[str, int]] = {}
"""Gauges of this process by base path, as Apache Hudi keeps them."""
_LOCK = new_lock()


def _event_times(stats: Iterable[WriteStat], now_ms: int) -> dict[str, int]:
    """Latency of the oldest event time and freshness of the newest; only tables with event times have them."""
    oldest = [stat.min_event_time for stat in stats if stat.min_event_time is not None]
    newest = [stat.max_event_time for stat in stats if stat.max_event_time is not None]
    found = {"commitLatencyInMs": now_ms - min(oldest)} if oldest else {}
    return found | ({"commitFreshnessInMs": now_ms - max(newest)} if newest else {})


def _number(instant: str) -> int:
    return int(instant[:17])
