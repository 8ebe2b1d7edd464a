"""Options of metrics: whether they are reported, where, and under which names.

Sources: ``HoodieMetricsConfig``, ``HoodieMetricsPrometheusConfig``, ``HoodieMetricsGraphiteConfig`` (1.2.0).
"""

from __future__ import annotations

from hudi_fast.config.option_descriptor import Kind, Option

__all__ = ["METRICS_OPTIONS", "REPORTERS"]

_M = "hoodie.metrics."
_P = f"{_M}pushgateway."

REPORTERS = ("PROMETHEUS", "PROMETHEUS_PUSHGATEWAY", "GRAPHITE", "CONSOLE", "SLF4J")
"""Types of reporters that hudi_fast has."""

_OTHER_REPORTERS = ("JMX", "DATADOG", "CLOUDWATCH", "M3", "INMEMORY")


def _port(key: str, default: int, doc: str) -> Option:
    return Option(key, Kind.INT, default, doc, minimum=0, maximum=65535)


METRICS_OPTIONS = (
    Option(
        f"{_M}on", Kind.BOOL, False, "Report metrics of writes and table services, see [monitoring](monitoring.md)."
    ),
    Option(
        f"{_M}reporter.type",
        Kind.ENUM,
        "GRAPHITE",
        "Where metrics go, if they are on: an HTTP endpoint of this process (`PROMETHEUS`), a push gateway "
        "(`PROMETHEUS_PUSHGATEWAY`), Graphite, standard output (`CONSOLE`), or the logger `hudi_fast.metrics` "
        "(`SLF4J`). The other types are refused.",
        choices=(*REPORTERS, *_OTHER_REPORTERS),
    ),
    Option(f"{_M}reporter.class", Kind.TEXT, "", "User-defined reporter class; refused if metrics are on."),
    Option(f"{_M}configs.properties", Kind.TEXT, "", "Files that describe more reporters; refused if metrics are on."),
    Option(f"{_M}reporter.metricsname.prefix", Kind.TEXT, None, "Prefix of metric names; default: the table's name."),
    Option(f"{_M}graphite.host", Kind.TEXT, "localhost", "Host of Graphite."),
    _port(f"{_M}graphite.port", 4756, "Port of Graphite."),
    Option(f"{_M}graphite.metric.prefix", Kind.TEXT, None, "Text before every metric name sent to Graphite."),
    _port(f"{_M}prometheus.port", 9090, "Port of the HTTP endpoint for Prometheus."),
    Option(f"{_P}host", Kind.TEXT, "localhost", "Host of the push gateway."),
    _port(f"{_P}port", 9091, "Port of the push gateway; 443 is reached by HTTPS."),
    Option(f"{_P}job.name", Kind.TEXT, "", "Job of pushed metrics."),
    Option(f"{_P}random.job.name.suffix", Kind.BOOL, True, "Append a random number to the job."),
    Option(f"{_P}report.labels", Kind.LIST, (), "Labels of metrics, `name:value`; also of the HTTP endpoint."),
    Option(f"{_P}delete.on.shutdown", Kind.BOOL, True, "Delete the job from the push gateway when the process ends."),
    Option(
        f"{_P}report.period.seconds",
        Kind.INT,
        30,
        "Accepted without effect: metrics are pushed at the end of every call.",
        honoured=False,
    ),
    Option(
        f"{_M}lock.enable",
        Kind.BOOL,
        False,
        "Metrics of locks; hudi_fast has none, and warns.",
        honoured=False,
        loss="hudi_fast reports no metrics of locks; the logger hudi_fast.locking has the times.",
    ),
)
"""Options of metrics."""
