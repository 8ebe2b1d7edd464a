"""What a running stream tells over HTTP: whether it is alive, where it is, and its metrics.

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
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from hudi_fast.storage.extras import import_extra

if TYPE_CHECKING:
    from hudi_fast.streamer.streamer import Turn

__all__ = ["Health"]

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
        return 200 if is_good else 503, "application/json", json.dumps(self._told(silent)).encode()

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

    def _told(self, silent: float) -> dict[str, Any]:
        turn = self._turn
        told: dict[str, Any] = {"table": self._table, "seconds_since_turn": round(silent, 3)}
        if turn is not None:
            told |= {"position": turn.position, "instant": turn.instant, "lag": dict(turn.lag)}
            told["rows"] = {kind: int(self._rows.labels(kind)._value.get()) for kind in _KINDS}
        return told
