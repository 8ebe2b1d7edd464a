"""Reporters of metrics: an endpoint for Prometheus, a push gateway, Graphite, standard output, or the log.

A reporter gets all gauges of a table by their dotted names. Prometheus gets ``_`` for every character that its names
must not have, as from Apache Hudi's reporters (``DropwizardExports``).
"""

from __future__ import annotations

import atexit
import logging
import re
import secrets
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from hudi_fast.config.metrics_options import MetricsOptions
from hudi_fast.errors import ConfigError
from hudi_fast.events import note, without_secrets
from hudi_fast.storage.extras import import_extra
from hudi_fast.storage.forks import new_lock

__all__ = ["prepare_reporter", "report"]

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
_LOCK = new_lock()


def _client() -> Any:
    return import_extra("prometheus_client", "metrics", "Metrics for Prometheus")


def _family(name: str, doc: str, labels: list[str]) -> Any:
    core = import_extra("prometheus_client.core", "metrics", "Metrics for Prometheus")
    return core.GaugeMetricFamily(name, doc, labels=labels)


def _to_endpoint(options: MetricsOptions, uri: str, gauges: Gauges) -> None:
    """Serve gauges at ``http://host:port/metrics`` until the process ends."""
    client, port = _client(), options.prometheus_port
    with _LOCK:
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
    with _LOCK:
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
