"""A network that fails on purpose, in front of an HTTP server such as S3's.

::

    client ─► FaultyProxy ─► server
                 └─ fail(method, fault, ...): the next requests of a kind are lost, answered by an error, late ...

Requests are passed on as they are, the name of the host included, so that their signatures hold.
"""

from __future__ import annotations

import contextlib
import http.client
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlparse

__all__ = ["DROP_ANSWER", "DROP_REQUEST", "Fault", "FaultyProxy", "answer", "delay", "late", "start_faulty_proxy"]

SLOW_DOWN = b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"


@dataclass(frozen=True)
class Fault:
    """What becomes of a request.

    Attributes:
        passes: whether the server gets it.
        status: of an answer that the proxy makes up; 0 for none.
        answers: whether the client gets an answer; its connection ends otherwise.
        seconds: by which the server gets it later.
        waits: whether the client waits that long, too; otherwise its connection ends at once.
    """

    passes: bool = True
    status: int = 0
    answers: bool = True
    seconds: float = 0.0
    waits: bool = True


DROP_REQUEST = Fault(passes=False, answers=False)
DROP_ANSWER = Fault(answers=False)


def answer(status: int) -> Fault:
    """The proxy answers with an error; the server hears nothing of it."""
    return Fault(passes=False, status=status)


def delay(seconds: float) -> Fault:
    """Server and client wait."""
    return Fault(seconds=seconds)


def late(seconds: float) -> Fault:
    """The client's connection ends at once; the server gets the request when nobody waits for it any more."""
    return Fault(answers=False, seconds=seconds, waits=False)


@dataclass
class _Rule:
    method: str
    fault: Fault
    path_end: str
    left: float


@dataclass
class FaultyProxy:
    """A proxy that runs.

    Attributes:
        url: what clients take for the server.
        upstream: host and port of the server.
        requests: method, path, and version or absence that was asked for, of all requests up to now.
    """

    url: str
    upstream: str
    requests: list[tuple[str, str, str]] = field(default_factory=list)
    _rules: list[_Rule] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _late: list[threading.Thread] = field(default_factory=list)

    def fail(self, method: str, fault: Fault, path_end: str = "", times: float = 1) -> None:
        """Let the next requests of a kind fail.

        Args:
            method: ``GET``, ``PUT`` ...
            fault: how.
            path_end: of the requests' paths.
            times: how many of them; infinity for all.
        """
        with self._lock:
            self._rules.append(_Rule(method, fault, path_end, times))

    def heal(self) -> None:
        """No faults any more."""
        with self._lock:
            self._rules.clear()

    def count(self, method: str, path_end: str = "") -> int:
        """How many requests of a kind there were."""
        return sum(seen[0] == method and seen[1].endswith(path_end) for seen in list(self.requests))

    def settle(self) -> None:
        """Wait until the server has got what is late."""
        for thread in list(self._late):
            thread.join()

    def _fault_of(self, method: str, path: str) -> Fault:
        with self._lock:
            for rule in self._rules:
                if rule.left >= 1 and rule.method == method and path.endswith(rule.path_end):
                    rule.left -= 1
                    return rule.fault
        return Fault()


@contextlib.contextmanager
def start_faulty_proxy(server: str) -> Iterator[FaultyProxy]:
    """Run a proxy for the duration of the block.

    Args:
        server: ``http://host:port``.
    """
    handler = type("_BoundHandler", (_Handler,), {})
    listener = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    listener.daemon_threads = True
    proxy = FaultyProxy(f"http://127.0.0.1:{listener.server_port}", urlparse(server).netloc)
    handler.proxy = proxy
    thread = threading.Thread(target=listener.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        listener.shutdown()
        thread.join()
        proxy.settle()
        listener.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    proxy: FaultyProxy

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing."""

    def _handle(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        path = urlparse(self.path).path
        condition = self.headers.get("If-Match") or self.headers.get("If-None-Match") or ""
        self.proxy.requests.append((self.command, path, condition))
        fault = self.proxy._fault_of(self.command, path)
        if fault.seconds and not fault.waits:
            thread = threading.Thread(target=self._later, args=(fault.seconds, body))
            self.proxy._late.append(thread)
            thread.start()
            self._hang_up()
            return
        time.sleep(fault.seconds)
        if fault.passes:
            status, headers, data = self._forward(body)
        else:
            status, headers, data = fault.status, [], SLOW_DOWN if fault.status in (429, 503) else b""
        if not fault.answers:
            self._hang_up()
            return
        with contextlib.suppress(OSError):  # the client did not wait
            self._reply(status, headers, data)

    do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = _handle

    def _later(self, seconds: float, body: bytes) -> None:
        time.sleep(seconds)
        with contextlib.suppress(OSError, http.client.HTTPException):
            self._forward(body)

    def _forward(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        connection = http.client.HTTPConnection(self.proxy.upstream, timeout=30)
        try:
            connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if name.lower() not in ("connection", "expect"):
                    connection.putheader(name, value)
            connection.endheaders(body)
            got = connection.getresponse()
            return got.status, got.getheaders(), got.read()
        finally:
            connection.close()

    def _reply(self, status: int, headers: list[tuple[str, str]], data: bytes) -> None:
        self.send_response_only(status)
        names = {name.lower() for name, _ in headers}
        for name, value in headers:
            if name.lower() not in ("connection", "transfer-encoding"):
                self.send_header(name, value)
        if "content-length" not in names:
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _hang_up(self) -> None:
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.connection.shutdown(2)
