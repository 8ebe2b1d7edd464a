"""The options of hooks and metrics.

The options of hooks as one frozen value.

::

    {"hoodie.write.commit.callback...": ..., "hoodie.precommit.validators...": ...} ─► HookOptions
        ─► hudi_fast.monitoring.callbacks    after a commit
        ─► hudi_fast.writing.validators      before a commit

The options of metrics as one frozen value.

::

    {"hoodie.metrics...": ...} ─► MetricsOptions ─► hudi_fast.monitoring
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hudi_fast.config.option_fields import Kind, Option, OptionValues, bound, normalise_fields, option, options_of
from hudi_fast.errors import ConfigError, UnsupportedFeatureError
from hudi_fast.values import dataclass

__all__ = [
    "HOOK_OPTIONS",
    "HTTP_CALLBACK",
    "METRICS_OPTIONS",
    "REPORTERS",
    "VALIDATOR_CLASSES",
    "HookOptions",
    "MetricsOptions",
    "SqlCheck",
]

HTTP_CALLBACK = "org.apache.hudi.callback.impl.HoodieWriteCommitHttpCallback"
"""Apache Hudi's class of the callback over HTTP."""
_PACKAGE = "org.apache.hudi.client.validator."
VALIDATOR_CLASSES = {
    f"{_PACKAGE}SqlQueryEqualityPreCommitValidator": "equality",
    f"{_PACKAGE}SqlQueryInequalityPreCommitValidator": "inequality",
    f"{_PACKAGE}SqlQuerySingleResultPreCommitValidator": "single",
}
"""Apache Hudi's validator classes, and what they compare."""

_C = "hoodie.write.commit.callback."
_V = "hoodie.precommit.validators"
_TABLE = "<TABLE_NAME>"
_QUERIES = {
    "equality": f"{_V}.equality.sql.queries",
    "inequality": f"{_V}.inequality.sql.queries",
    "single": f"{_V}.single.value.sql.queries",
}


@dataclass(frozen=True, slots=True)
class SqlCheck:
    """One query of a validator.

    Attributes:
        validator: Apache Hudi's class.
        kind: ``equality``, ``inequality`` or ``single``.
        query: the query; ``<TABLE_NAME>`` stands for the table.
        expected: the expected value, as text, of ``single``.
    """

    validator: str
    kind: str
    query: str
    expected: str = ""

    def on(self, name: str) -> str:
        """The query on a table of that name."""
        return self.query.replace(_TABLE, name)


@dataclass(frozen=True, slots=True, repr=False)
class HookOptions(OptionValues):
    """The hooks that are called before and after a commit."""

    http_on: bool = option(
        f"{_C}on", Kind.BOOL, False, "Call a service over HTTP after a commit, see [monitoring](monitoring.md)."
    )
    callback_class: str = option(
        f"{_C}class", Kind.TEXT, HTTP_CALLBACK, "Kind of the callback; only this one is supported."
    )
    url: str | None = option(f"{_C}http.url", Kind.TEXT, None, "Address of the service.")
    api_key: str = option(
        f"{_C}http.api.key",
        Kind.TEXT,
        "hudi_write_commit_http_callback",
        "Value of the header `HUDI-CALLBACK-KEY`.",
        secret=True,
    )
    timeout_seconds: int = option(
        f"{_C}http.timeout.seconds", Kind.INT, 30, "Longest wait for the service.", unit="seconds", minimum=1
    )
    header_text: str = option(
        f"{_C}http.custom.headers", Kind.TEXT, "", "More headers, `name:value;name:value`.", secret=True
    )
    callback: Any = option(
        "hudi_fast.commit.callback",
        Kind.FUNCTION,
        None,
        "Python function of the `WriteResult`, called after a commit and the services after it.",
    )
    validators: tuple[str, ...] = option(
        _V,
        Kind.LIST,
        (),
        "Validators of a commit, by the names of Apache Hudi's classes.",
        supported=tuple(VALIDATOR_CLASSES),
    )
    equality_queries: str = option(
        f"{_V}.equality.sql.queries",
        Kind.TEXT,
        "",
        "Queries whose rows must be the same before and after the commit, separated by `;`. `<TABLE_NAME>` is the "
        "table.",
    )
    inequality_queries: str = option(
        f"{_V}.inequality.sql.queries", Kind.TEXT, "", "Queries whose rows must differ, separated by `;`."
    )
    single_queries: str = option(
        f"{_V}.single.value.sql.queries",
        Kind.TEXT,
        "",
        "Queries with one value after the commit, and that value: `query#value;query#value`.",
    )
    validator: Any = option(
        "hudi_fast.precommit.validator",
        Kind.FUNCTION,
        None,
        "Python function of two `pyarrow.dataset` scans, the table before and after the commit. It raises an error to "
        "refuse the commit.",
    )

    def __post_init__(self) -> None:
        normalise_fields(self)
        if self.http_on:
            if self.callback_class != HTTP_CALLBACK:
                raise UnsupportedFeatureError(
                    f"{_C}class={self.callback_class} is not supported; supported: {HTTP_CALLBACK}. To send to Kafka, "
                    "Pulsar or elsewhere, give a Python function as hudi_fast.commit.callback."
                )
            if not self.url or not self.url.startswith(("http://", "https://")):
                raise ConfigError(f"{_C}on=true needs {_C}http.url, an http:// or https:// address; got {self.url!r}.")
        _ = self.headers, self.checks

    @property
    def headers(self) -> Mapping[str, str]:
        """More headers of the callback.

        Raises:
            ConfigError: one is not ``name:value``.
        """
        found = {}
        for one in filter(None, (part.strip() for part in self.header_text.split(";"))):
            name, colon, value = (part.strip() for part in one.partition(":"))
            if not colon or not name or not value:
                raise ConfigError(f"{_C}http.custom.headers has the entry {name!r}; expected name:value;name:value.")
            found[name] = value
        return found

    @property
    def checks(self) -> tuple[SqlCheck, ...]:
        """The queries of the validators.

        Raises:
            ConfigError: a validator has no queries, or one has a wrong form.
        """
        texts = {
            "equality": self.equality_queries,
            "inequality": self.inequality_queries,
            "single": self.single_queries,
        }
        found = []
        for validator in self.validators:
            kind = VALIDATOR_CLASSES[validator]
            queries = [one.strip() for one in texts[kind].split(";") if one.strip()]
            if not queries:
                raise ConfigError(f"The validator {validator} has no queries; set {_QUERIES[kind]}.")
            found += [_check(validator, kind, one) for one in queries]
        return tuple(found)

    @property
    def validates(self) -> bool:
        """Whether anything is called before a commit."""
        return bool(self.validators) or self.validator is not None


def _check(validator: str, kind: str, text: str) -> SqlCheck:
    query, mark, expected = text.partition("#")
    if (kind == "single") != bool(mark) or "#" in expected:
        form = "query#value" if kind == "single" else "a query without #"
        raise ConfigError(f"{_QUERIES[kind]} has the entry {text!r}; expected {form}.")
    if _TABLE not in query:
        raise ConfigError(f"{_QUERIES[kind]} has the query {query!r}, which does not name {_TABLE}.")
    return SqlCheck(validator, kind, query.strip(), expected.strip())


HOOK_OPTIONS = (
    *options_of(HookOptions),
    Option(
        f"{_V}.failure.policy",
        Kind.ENUM,
        "FAIL",
        "Apache Hudi uses it for the validators of its streamer; a failed SQL validator always fails the commit.",
        choices=("FAIL", "WARN_LOG"),
        honoured=False,
    ),
)
"""Options of hooks."""


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
