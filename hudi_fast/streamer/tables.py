"""Streams of several tables, and what a running one reports over HTTP.

Streams of several tables from one property file, as HoodieMultiTableStreamer has them.

::

    common properties: hoodie.streamer.ingestion.tablesToBeIngested=shop.orders,shop.customers
        ─► for each table: its own file, whose properties win over the common ones ─► a Streamer

Source: ``HoodieMultiTableStreamer`` (1.2.0).

What a running stream tells over HTTP: whether it is alive, where it is, and its metrics.

::

    turns of the streamer ─► Health.turned ─┬─ /health    200, or 503 if no turn has ended for a while
                                            ├─ /ready     200 after the first turn
                                            └─ /metrics   for Prometheus

The answers of ``/health`` and ``/ready`` are JSON objects with the position, the rows so far and the lag.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

from hudi_fast.errors import ConfigError
from hudi_fast.storage.extras import import_extra
from hudi_fast.streamer.settings import OLD_PREFIX, PREFIX
from hudi_fast.streamer.streamer import Streamer, Turn, properties_of

__all__ = ["Health", "TableStream", "in_turn", "table_streams"]

_PREFIXES = (PREFIX, OLD_PREFIX)
_TABLES, _PATH = "ingestion.tablesToBeIngested", "ingestion.targetBasePath"
_TRANSFORMERS = "transformer.class"
_REGISTRY, _REGISTRY_BASE, _REGISTRY_SUFFIX = (
    "schemaprovider.registry.url",
    "schemaprovider.registry.baseUrl",
    "schemaprovider.registry.urlSuffix",
)
_DEFAULT_DATABASE = "default"


class TableStream(NamedTuple):
    """A stream of one of several tables.

    Attributes:
        name: ``database.table``.
        streamer: feeds it.
    """

    name: str
    streamer: Streamer


def table_streams(
    properties: Mapping[str, Any],
    base_path_prefix: str | None = None,
    config_folder: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    **arguments: Any,
) -> Iterator[TableStream]:
    """The streams that the properties list, in their order.

    Args:
        properties: of all tables. ``hoodie.streamer.ingestion.tablesToBeIngested`` names the tables, and
            ``hoodie.streamer.ingestion.DATABASE.TABLE.configFile`` the property file of one.
        base_path_prefix: folder of the tables, whose paths are ``PREFIX/DATABASE/TABLE``, unless a file has
            ``hoodie.streamer.ingestion.targetBasePath``.
        config_folder: folder of the files that no property names: ``DATABASE_TABLE_config.properties``.
        storage_options: as for :class:`~hudi_fast.streamer.streamer.Streamer`.
        arguments: as for :class:`~hudi_fast.streamer.streamer.Streamer`, of all tables.

    Raises:
        ConfigError: no table is listed, or one has no path or no file.
        HudiError: as for :class:`~hudi_fast.streamer.streamer.Streamer`.
    """
    listed = [one.strip() for one in _value(properties, _TABLES).split(",") if one.strip()]
    if not listed:
        raise ConfigError(f"Streams of several tables need the property {PREFIX}{_TABLES}=db.table1,db.table2.")
    for one in listed:
        database, _, table = one.rpartition(".")
        name = f"{database or _DEFAULT_DATABASE}.{table}"
        given = {**_without_tables(properties), **properties_of(_file_of(properties, name, config_folder))}
        path = _value(given, _PATH) or _path_of(name, base_path_prefix)
        own = {"target_base_path": path, "target_table": table}
        transformers = _value(given, _TRANSFORMERS)
        if transformers:
            own["transformer_class"] = transformers
        _complete_registry(given)
        given = {key: value for key, value in given.items() if not _is_of_tables(key)}
        yield TableStream(name, Streamer(given, storage_options=storage_options, **{**arguments, **own}))


def in_turn(streamers: Sequence[Streamer]) -> Iterator[tuple[Streamer, Turn]]:
    """The turns of several streams: one of each, and again as long as one of them is not at its end.

    Raises:
        HudiError: as :meth:`~hudi_fast.streamer.streamer.Streamer.run`.
    """
    running = [(one, one.run()) for one in streamers]
    while running:
        ended = []
        for one, turns in running:
            turn = next(turns, None)
            if turn is None:
                ended.append(turns)
            else:
                yield one, turn
        running = [pair for pair in running if pair[1] not in ended]


def _value(properties: Mapping[str, Any], name: str) -> str:
    return next((str(properties[prefix + name]) for prefix in _PREFIXES if prefix + name in properties), "")


def _is_of_tables(key: str) -> bool:
    names = ("ingestion.", _TRANSFORMERS, _REGISTRY_BASE, _REGISTRY_SUFFIX)
    return any(key.startswith(prefix + name) for prefix in _PREFIXES for name in names)


def _without_tables(properties: Mapping[str, Any]) -> dict[str, Any]:
    """The common properties, without the list of tables and their files."""
    kept = (_PATH, _TRANSFORMERS, _REGISTRY_BASE, _REGISTRY_SUFFIX)
    own = tuple(prefix + name for prefix in _PREFIXES for name in kept)
    return {key: value for key, value in properties.items() if key.startswith(own) or not _is_of_tables(key)}


def _file_of(properties: Mapping[str, Any], name: str, folder: str | None) -> str:
    file = _value(properties, f"ingestion.{name}.configFile")
    if file:
        return file
    if folder is None:
        raise ConfigError(
            f"The table {name} has no property file: set {PREFIX}ingestion.{name}.configFile, or give "
            f"--config-folder, where {name.replace('.', '_')}_config.properties is."
        )
    return str(Path(folder) / f"{name.replace('.', '_')}_config.properties")


def _path_of(name: str, prefix: str | None) -> str:
    if not prefix:
        raise ConfigError(
            f"The table {name} has no path: give --base-path-prefix, or set {PREFIX}{_PATH} in its property file."
        )
    return f"{prefix.rstrip('/')}/{name.replace('.', '/')}"


def _complete_registry(given: dict[str, Any]) -> None:
    """Make the address of the topic's schema of the registry's base address and its suffix."""
    base, topic = _value(given, _REGISTRY_BASE), _value(given, "source.kafka.topic")
    if base and topic and not _value(given, _REGISTRY):
        given[PREFIX + _REGISTRY] = base + topic + _value(given, _REGISTRY_SUFFIX)


_POLL_SECONDS = 0.05
_KINDS = ("inserts", "updates", "deletes")


class Health:
    """The state of a stream.

    Args:
        table: path of the table.
        stale_seconds: seconds without the end of a turn after which the stream counts as dead.

    Raises:
        ConfigError: ``prometheus_client`` is not installed.
    """

    def __init__(self, table: str, stale_seconds: float = 300.0) -> None:
        self._prometheus = import_extra("prometheus_client", "metrics", "The metrics of a stream")
        self._table, self._stale = table, stale_seconds
        self._last = time.monotonic()
        self._turn: Turn | None = None
        self._registry = self._prometheus.CollectorRegistry()
        name = "hudi_fast_stream_"
        self._turns = self._prometheus.Counter(f"{name}turns", "Turns that made a commit.", registry=self._registry)
        self._rows = self._prometheus.Counter(f"{name}rows", "Rows of these turns.", ["kind"], registry=self._registry)
        gauges = {
            "turn_seconds": "Seconds of the newest turn.",
            "commit_age_seconds": "Seconds since the newest turn that made a commit.",
        }
        self._gauges = {
            one: self._prometheus.Gauge(f"{name}{one}", text, registry=self._registry) for one, text in gauges.items()
        }
        self._lag = self._prometheus.Gauge(
            f"{name}lag", "What was left in a part of the source.", ["part"], registry=self._registry
        )

    def turned(self, turn: Turn) -> None:
        """Note the end of a turn."""
        self._last, self._turn = time.monotonic(), turn
        self._gauges["turn_seconds"].set(turn.seconds)
        for part, left in turn.lag.items():
            self._lag.labels(part).set(left)
        if turn.instant:
            self._turns.inc()
            for kind in _KINDS:
                self._rows.labels(kind).inc(getattr(turn, kind))
            committed = time.time()
            self._gauges["commit_age_seconds"].set_function(lambda: time.time() - committed)

    def answer(self, path: str) -> tuple[int, str, bytes]:
        """Status, content type and body for a path."""
        if path == "/metrics":
            return 200, self._prometheus.CONTENT_TYPE_LATEST, self._prometheus.generate_latest(self._registry)
        if path not in ("/health", "/ready"):
            return 404, "text/plain", b"The paths are /health, /ready and /metrics.\n"
        silent = time.monotonic() - self._last
        is_good = self._turn is not None if path == "/ready" else silent < self._stale
        return 200 if is_good else 503, "application/json", json.dumps(self._turn_report(silent)).encode()

    @contextmanager
    def served(self, port: int, host: str = "0.0.0.0") -> Iterator[int]:
        """Answer requests during the block.

        Args:
            port: to listen at; 0 for any that is free.
            host: address to listen at.

        Returns:
            The port.

        Raises:
            OSError: the port is taken.
        """
        health = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                status, kind, body = health.answer(self.path.partition("?")[0])
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                """Requests are not logged."""

        server = ThreadingHTTPServer((host, port), Handler)
        serve = partial(server.serve_forever, poll_interval=_POLL_SECONDS)
        threading.Thread(target=serve, name="hudi_fast-health", daemon=True).start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            server.server_close()

    def _turn_report(self, silent: float) -> dict[str, Any]:
        turn = self._turn
        answer: dict[str, Any] = {"table": self._table, "seconds_since_turn": round(silent, 3)}
        if turn is not None:
            answer |= {"position": turn.position, "instant": turn.instant, "lag": dict(turn.lag)}
            answer["rows"] = {kind: int(self._rows.labels(kind)._value.get()) for kind in _KINDS}
        return answer
