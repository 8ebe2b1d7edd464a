"""The options of metrics as one frozen value.

::

    {"hoodie.metrics...": ...} ─► MetricsOptions ─► hudi_fast.monitoring
"""

from __future__ import annotations

from dataclasses import dataclass

from hudi_fast.config.catalog.metrics import REPORTERS
from hudi_fast.config.option_fields import normalise_fields, option_field
from hudi_fast.config.option_values import OptionValues
from hudi_fast.errors import ConfigError, UnsupportedFeatureError

__all__ = ["MetricsOptions"]

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

    on: bool = option_field(f"{_M}on")
    reporter: str = option_field(f"{_M}reporter.type")
    reporter_class: str = option_field(f"{_M}reporter.class")
    more_reporters: str = option_field(f"{_M}configs.properties")
    prefix: str | None = option_field(f"{_M}reporter.metricsname.prefix")
    graphite_host: str = option_field(f"{_M}graphite.host")
    graphite_port: int = option_field(f"{_M}graphite.port")
    graphite_prefix: str | None = option_field(f"{_M}graphite.metric.prefix")
    prometheus_port: int = option_field(f"{_M}prometheus.port")
    gateway_host: str = option_field(f"{_P}host")
    gateway_port: int = option_field(f"{_P}port")
    job: str = option_field(f"{_P}job.name")
    has_random_job: bool = option_field(f"{_P}random.job.name.suffix")
    label_texts: tuple[str, ...] = option_field(f"{_P}report.labels")
    deletes_job: bool = option_field(f"{_P}delete.on.shutdown")

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
