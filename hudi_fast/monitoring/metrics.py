"""Metrics of commits and services, their reporters, and spans of phases.

Metrics of commits and table services, under the names of Apache Hudi.

::

    Completed ─► gauges: {"trips.commit.totalRecordsWritten": 5, ...} ─► the table's gauges ─► a reporter
                                                                         when the outermost phase has ended

Source: ``HoodieMetrics``, ``Metrics``, ``HoodieCommitMetadata`` (1.2.0).

Reporters of metrics: an endpoint for Prometheus, a push gateway, Graphite, standard output, or the log.

A reporter gets all gauges of a table by their dotted names. Prometheus gets ``_`` for every character that its names
must not have, as from Apache Hudi's reporters (``DropwizardExports``).

OpenTelemetry spans: one for each phase, nested as the phases are.

Spans exist where the application has imported ``opentelemetry.trace``: without that there is no tracer provider. So
hudi_fast does not import it, and needs no package.
"""

from __future__ import annotations

import atexit
import logging
import re
import secrets
import socket
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from hudi_fast.config.monitoring_options import MetricsOptions
from hudi_fast.errors import ConfigError
from hudi_fast.events import Completed, Phase, note, without_secrets
from hudi_fast.storage.extras import import_extra
from hudi_fast.storage.forks import new_lock
from hudi_fast.timeline.commit_metadata import CommitMetadata, WriteStat
from hudi_fast.timeline.instants import Timeline, ms_from_instant

__all__ = ["SPANS", "MetricsListener", "gauges_of", "prepare_reporter", "report", "spans_are_wanted", "timeline_gauges"]

_SECONDS = 10.0
"""Longest wait for a server."""
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9:_]")
Gauges = Mapping[str, int]


def prepare_reporter(options: MetricsOptions) -> None:
    """Check that the reporter's packages are installed; nothing is sent.

    Raises:
        ConfigError: one is missing.
    """
    if options.reporter.startswith("PROMETHEUS"):
        _client()


def report(options: MetricsOptions, uri: str, gauges: Gauges) -> None:
    """Report gauges.

    Args:
        options: the reporter and its address.
        uri: base path of the table.
        gauges: values by dotted name.

    Raises:
        OSError: a server does not answer.
        ConfigError: a package is missing, or the port of the endpoint is taken.
    """
    _REPORTERS[options.reporter](options, uri, gauges)


def _to_console(options: MetricsOptions, uri: str, gauges: Gauges) -> None:
    lines = [f"-- Metrics of {without_secrets(uri)} " + "-" * 40]
    lines += [f"{name} = {value}" for name, value in sorted(gauges.items())]
    sys.stdout.write("\n".join(lines) + "\n")


def _to_log(options: MetricsOptions, uri: str, gauges: Gauges) -> None:
    for name, value in sorted(gauges.items()):
        note("metrics", logging.INFO, "%s = %d", name, value, table=uri, metric=name, value=value)


def _to_graphite(options: MetricsOptions, uri: str, gauges: Gauges) -> None:
    now, prefix = int(time.time()), f"{options.graphite_prefix}." if options.graphite_prefix else ""
    lines = "".join(f"{prefix}{_NO_BLANKS.sub('-', name)} {value} {now}\n" for name, value in sorted(gauges.items()))
    with socket.create_connection((options.graphite_host, options.graphite_port), _SECONDS) as connection:
        connection.sendall(lines.encode())


_NO_BLANKS = re.compile(r"\s+")


# ---- Prometheus


class _Tables:
    """A collector of the gauges of all tables that report to one port."""

    def __init__(self) -> None:
        self.of: dict[str, tuple[dict[str, str], Gauges]] = {}

    def collect(self) -> Iterator[Any]:
        """One gauge for each name; tables of one name and label share it, and the last one counts."""
        families: dict[str, Any] = {}
        for labels, gauges in list(self.of.values()):
            for name, value in gauges.items():
                valid = _NOT_IN_NAMES.sub("_", name)
                if valid not in families:
                    families[valid] = _family(valid, f"Metric {name}.", list(labels))
                families[valid].add_metric(list(labels.values()), value)
        yield from families.values()


_ENDPOINTS: dict[int, _Tables] = {}
_JOBS: dict[tuple[str, str, int], str] = {}
_REPORTERS_LOCK = new_lock()


def _client() -> Any:
    return import_extra("prometheus_client", "metrics", "Metrics for Prometheus")


def _family(name: str, doc: str, labels: list[str]) -> Any:
    core = import_extra("prometheus_client.core", "metrics", "Metrics for Prometheus")
    return core.GaugeMetricFamily(name, doc, labels=labels)


def _to_endpoint(options: MetricsOptions, uri: str, gauges: Gauges) -> None:
    """Serve gauges at ``http://host:port/metrics`` until the process ends."""
    client, port = _client(), options.prometheus_port
    with _REPORTERS_LOCK:
        if port not in _ENDPOINTS:
            tables, registry = _Tables(), client.CollectorRegistry()
            registry.register(tables)
            try:
                client.start_http_server(port, registry=registry)
            except OSError as error:
                raise ConfigError(
                    f"The port {port} of hoodie.metrics.prometheus.port cannot be served: {error}."
                ) from error
            _ENDPOINTS[port] = tables
        _ENDPOINTS[port].of[uri] = options.labels, dict(gauges)


def _to_gateway(options: MetricsOptions, uri: str, gauges: Gauges) -> None:
    client = _client()
    tables, registry = _Tables(), client.CollectorRegistry()
    tables.of[uri] = {}, gauges
    registry.register(tables)
    scheme = "https://" if options.gateway_port == 443 else "http://"
    address = f"{scheme}{options.gateway_host}:{options.gateway_port}"
    key = (address, options.job, int(options.has_random_job))
    with _REPORTERS_LOCK:
        is_new = key not in _JOBS
        # Apache Hudi appends a random long, too.
        job = _JOBS.setdefault(key, options.job + (str(secrets.randbits(63)) if options.has_random_job else ""))
    client.pushadd_to_gateway(address, job, registry, grouping_key=options.labels, timeout=_SECONDS)
    if is_new and options.deletes_job:
        atexit.register(_delete_job, address, job, options.labels)


def _delete_job(address: str, job: str, labels: dict[str, str]) -> None:
    with suppress(OSError):
        _client().delete_from_gateway(address, job, grouping_key=labels, timeout=_SECONDS)


_REPORTERS: Mapping[str, Callable[[MetricsOptions, str, Gauges], None]] = {
    "CONSOLE": _to_console,
    "SLF4J": _to_log,
    "GRAPHITE": _to_graphite,
    "PROMETHEUS": _to_endpoint,
    "PROMETHEUS_PUSHGATEWAY": _to_gateway,
}


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


_MODULE = "opentelemetry.trace"


def spans_are_wanted() -> bool:
    """Whether the application uses OpenTelemetry."""
    return _MODULE in sys.modules


class _Spans:
    """A listener that makes spans."""

    def begun(self, phase: Phase) -> None:
        """Start a span, and make it the current one."""
        trace: Any = sys.modules[_MODULE]
        manager = trace.get_tracer("hudi_fast").start_as_current_span(
            f"hudi_fast.{phase.name}", record_exception=False, set_status_on_exception=False
        )
        phase.attached = (manager, manager.__enter__())

    def advanced(self, phase: Phase) -> None:
        """Nothing to do."""

    def ended(self, phase: Phase) -> None:
        """End the span, with the figures of the phase."""
        if phase.attached is None:
            return
        manager, span = phase.attached
        trace: Any = sys.modules[_MODULE]
        for name, value in phase.fields().items():
            span.set_attribute(f"hudi_fast.{name}", value)
        if phase.error is not None:
            span.set_status(trace.Status(trace.StatusCode.ERROR, type(phase.error).__name__))
        manager.__exit__(None, None, None)

    def completed(self, done: Completed) -> None:
        """Nothing to do."""


SPANS = _Spans()
"""The one listener for spans."""
