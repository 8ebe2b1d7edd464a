"""The options of metrics as one frozen value.

::

    {"hoodie.metrics...": ...} ─► MetricsOptions ─► hudi_fast.monitoring
"""

from __future__ import annotations

from dataclasses import dataclass

from hudi_fast.config.option_descriptor import Kind, Option
from hudi_fast.config.option_fields import (
    OptionValues,
    bound,
    normalise_fields,
    option,
    options_of,
)
from hudi_fast.errors import ConfigError, UnsupportedFeatureError

__all__ = ["METRICS_OPTIONS", "REPORTERS", "MetricsOptions"]

REPORTERS = ("PROMETHEUS", "PROMETHEUS_PUSHGATEWAY", "GRAPHITE", "CONSOLE", "SLF4J")
"""Types of reporters that hudi_fast has."""
_OTHER_REPORTERS = ("JMX", "DATADOG", "CLOUDWATCH", "M3", "INMEMORY")


def _port(key: str, default: int, doc: str) -> Option:
    return Option(key, Kind.INT, default, doc, minimum=0, maximum=65535)


_M = "hoodie.metrics."
_P = f"{_M}pushgateway."
_INSTEAD = {
    "JMX": "A process without a JVM has no JMX; use PROMETHEUS.",
    "DATADOG": "Use PROMETHEUS, which the Datadog Agent scrapes, or OpenTelemetry spans.",
    "CLOUDWATCH": "Use PROMETHEUS, which the CloudWatch agent scrapes.",
    "M3": "Use PROMETHEUS, which M3 scrapes.",
    "INMEMORY": "Use CONSOLE or SLF4J.",
}


@dataclass(frozen=True, slots=True, repr=False)
class MetricsOptions(OptionValues):
    """Whether metrics are reported, where, and under which names."""

    on: bool = option(
        f"{_M}on", Kind.BOOL, False, "Report metrics of writes and table services, see [monitoring](monitoring.md)."
    )
    reporter: str = option(
        f"{_M}reporter.type",
        Kind.ENUM,
        "GRAPHITE",
        "Where metrics go, if they are on: an HTTP endpoint of this process (`PROMETHEUS`), a push gateway "
        "(`PROMETHEUS_PUSHGATEWAY`), Graphite, standard output (`CONSOLE`), or the logger `hudi_fast.metrics` "
        "(`SLF4J`). The other types are refused.",
        choices=(*REPORTERS, *_OTHER_REPORTERS),
    )
    reporter_class: str = option(
        f"{_M}reporter.class", Kind.TEXT, "", "User-defined reporter class; refused if metrics are on."
    )
    more_reporters: str = option(
        f"{_M}configs.properties", Kind.TEXT, "", "Files that describe more reporters; refused if metrics are on."
    )
    prefix: str | None = option(
        f"{_M}reporter.metricsname.prefix", Kind.TEXT, None, "Prefix of metric names; default: the table's name."
    )
    graphite_host: str = option(f"{_M}graphite.host", Kind.TEXT, "localhost", "Host of Graphite.")
    graphite_port: int = bound(_port(f"{_M}graphite.port", 4756, "Port of Graphite."))
    graphite_prefix: str | None = option(
        f"{_M}graphite.metric.prefix", Kind.TEXT, None, "Text before every metric name sent to Graphite."
    )
    prometheus_port: int = bound(_port(f"{_M}prometheus.port", 9090, "Port of the HTTP endpoint for Prometheus."))
    gateway_host: str = option(f"{_P}host", Kind.TEXT, "localhost", "Host of the push gateway.")
    gateway_port: int = bound(_port(f"{_P}port", 9091, "Port of the push gateway; 443 is reached by HTTPS."))
    job: str = option(f"{_P}job.name", Kind.TEXT, "", "Job of pushed metrics.")
    has_random_job: bool = option(f"{_P}random.job.name.suffix", Kind.BOOL, True, "Append a random number to the job.")
    label_texts: tuple[str, ...] = option(
        f"{_P}report.labels", Kind.LIST, (), "Labels of metrics, `name:value`; also of the HTTP endpoint."
    )
    deletes_job: bool = option(
        f"{_P}delete.on.shutdown", Kind.BOOL, True, "Delete the job from the push gateway when the process ends."
    )

    def __post_init__(self) -> None:
        normalise_fields(self)
        if not self.on:
            return
        if self.reporter not in REPORTERS:
            raise UnsupportedFeatureError(
                f"{_M}reporter.type={self.reporter} is not supported; supported: {', '.join(REPORTERS)}. "
                f"{_INSTEAD[self.reporter]}"
            )
        for key, value in (("reporter.class", self.reporter_class), ("configs.properties", self.more_reporters)):
            if value:
                raise UnsupportedFeatureError(
                    f"{_M}{key}={value} is not supported: hudi_fast has no Java classes, and one reporter for each "
                    f"call. Remove the option and set {_M}reporter.type."
                )
        if len(self.labels) < len(self.label_texts):
            raise ConfigError(f"{_P}report.labels={','.join(self.label_texts)} names a label twice.")

    @property
    def labels(self) -> dict[str, str]:
        """Labels of all metrics.

        Raises:
            ConfigError: one is not ``name:value``.
        """
        found = {}
        for one in self.label_texts:
            name, colon, value = one.partition(":")
            if not colon or not name.isidentifier():
                raise ConfigError(f"{_P}report.labels has the entry {one!r}; expected name:value.")
            found[name] = value
        return found


METRICS_OPTIONS = (
    *options_of(MetricsOptions),
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
