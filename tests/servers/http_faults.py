"""Something between a client and an HTTP server that lets requests go wrong: one, some of them, or all for a while.

========== =====================================================================
kind        the request with that number
========== =====================================================================
``before``  is not passed on; the connection breaks
``after``   is passed on, and its answer is lost; the connection breaks
``busy``    is not passed on; the answer is 503 ``SlowDown``
``expired`` is not passed on; the answer is 400 ``ExpiredToken``, as Amazon's
========== =====================================================================

:class:`Weather` is for all requests: each takes longer, a share of them is ``busy``, session tokens have expired.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

__all__ = ["FAULTS", "Faults", "Request", "Weather", "http_faults"]

Stand = Callable[[str], "tuple[int, bytes, str] | None"]
FAULTS = ("before", "after", "busy")


def refusal(code: str, message: str) -> bytes:
    """An error as long as Amazon's."""
    ids = f"<RequestId>{'A' * 16}</RequestId><HostId>{'b' * 76}</HostId>"
    text = (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code><Message>{message}</Message>{ids}</Error>'
    )
    return text.encode()


BUSY = refusal("SlowDown", "Please reduce your request rate.")
EXPIRED = refusal("ExpiredToken", "The provided token has expired.")
HOP_BY_HOP = {"connection", "expect", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade", "content-length"}


@dataclass(frozen=True)
class Weather:
    """What happens to all requests.

    Attributes:
        delay: seconds by which each is answered later.
        busy: share of them that is not passed on and answered 503 ``SlowDown``.
        expired: session tokens whose requests are ``expired``.
    """

    delay: float = 0.0
    busy: float = 0.0
    expired: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Request:
    """A request that was answered.

    Attributes:
        what: method and path.
        begin: seconds of the monotonic clock at its arrival.
        end: and at its answer.
        status: of the answer; 0 if the connection broke.
    """

    what: str
    begin: float
    end: float
    status: int


class Faults:
    """What goes wrong, and what was asked.

    Attributes:
        url: of this.
        asked: method and path of every request since :meth:`arm`.
        answered: the same requests in the order of their answers, with times.
        weather: for all requests; may be set at any time.
        answers: of a request (method and path), status, content and type of an answer in place of the server's, or
            None; ``conditions`` the same for requests with ``If-Match`` or ``If-None-Match``.
        proxied: users and passwords (``user:password``) of requests that took this for their proxy.
    """

    def __init__(self, url: str, seed: int = 1) -> None:
        self.url = url
        self.asked: list[str] = []
        self.answered: list[Request] = []
        self.weather = Weather()
        self.answers: Stand = lambda what: None
        self.conditions: Stand = lambda what: None
        self.proxied: set[str] = set()
        self._random = random.Random(seed)
        self._at, self._kind, self._lasts = -1, "", 1
        self._lock = threading.Lock()

    def arm(self, at: int = -1, kind: str = "", lasts: int = 1) -> None:
        """From now on requests count from 0, and ``lasts`` of them go wrong, beginning with number ``at``."""
        with self._lock:
            self.asked, self.answered = [], []
            self._at, self._kind, self._lasts = at, kind, lasts

    def note(self, what: str) -> str:
        """Count a request; the kind of its fault, or nothing."""
        with self._lock:
            number = len(self.asked)
            self.asked.append(what)
            if self._at <= number < self._at + self._lasts and self._at >= 0:
                return self._kind
            return "busy" if self._random.random() < self.weather.busy else ""


@contextlib.contextmanager
def http_faults(target: str, seed: int = 1) -> Iterator[Faults]:
    """Listen for the duration of the block, in front of a server.

    Args:
        target: ``http://host:port``.
        seed: of the share of requests that are refused.
    """
    server = ThreadingHTTPServer(("127.0.0.1", 0), Relay)
    server.daemon_threads = True
    faults = Faults(f"http://127.0.0.1:{server.server_port}", seed)
    server.faults, server.target = faults, urlsplit(target)  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield faults
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Relay(BaseHTTPRequestHandler):
    """Passes one connection's requests on."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # a head and its content leave together

    def handle_expect_100(self) -> bool:
        going_on = super().handle_expect_100()
        self.wfile.flush()
        return going_on

    def relay(self) -> None:
        begin = time.monotonic()
        faults: Faults = self.server.faults  # type: ignore[attr-defined]
        self.leave_proxy(faults)
        what, self.status = f"{self.command} {self.path}", 0
        body = self.body()
        fault = faults.note(what)
        time.sleep(faults.weather.delay)
        conditional = "If-Match" in self.headers or "If-None-Match" in self.headers
        stand = faults.answers(what) or (faults.conditions(what) if conditional else None)
        if stand is not None:
            self.refuse(stand[0], stand[1], stand[2])
        elif fault == "before":
            self.break_off()
        elif fault == "busy":
            self.refuse(503, BUSY)
        elif fault == "expired" or self.headers.get("X-Amz-Security-Token", "") in faults.weather.expired:
            self.refuse(400, EXPIRED)
        else:
            self.pass_on(body, lost=fault == "after")
        faults.answered.append(Request(what, begin, time.monotonic(), self.status))

    def leave_proxy(self, faults: Faults) -> None:
        """A client of a proxy names the server in the path."""
        if not self.path.startswith("/"):
            url = urlsplit(self.path)
            self.path = url._replace(scheme="", netloc="").geturl()
            account = self.headers.get("Proxy-Authorization", "").removeprefix("Basic ")
            faults.proxied.add(base64.b64decode(account).decode())

    def refuse(self, status: int, content: bytes, kind: str = "application/xml") -> None:
        self.answer(status, [("Content-Type", kind)], b"" if self.command == "HEAD" else content, len(content))

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = relay

    def body(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = []
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():  # trailers
            pass
        return b"".join(parts)

    def pass_on(self, body: bytes, lost: bool) -> None:
        target = self.server.target  # type: ignore[attr-defined]
        connection = http.client.HTTPConnection(target.hostname, target.port, timeout=30)
        try:
            connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if name.lower() not in HOP_BY_HOP or name.lower() == "content-length":
                    connection.putheader(name, value)
            chunked = "Content-Length" not in self.headers and bool(body)
            if chunked:
                connection.putheader("Transfer-Encoding", "chunked")
            connection.endheaders([body] if chunked else body or None, encode_chunked=chunked)
            answer = connection.getresponse()
            content = answer.read()
        finally:
            connection.close()
        if lost:
            self.break_off()
            return
        size = int(answer.headers.get("Content-Length") or 0) if self.command == "HEAD" else len(content)
        headers = [(name, value) for name, value in answer.headers.items() if name.lower() not in HOP_BY_HOP]
        self.answer(answer.status, headers, content, size)

    def answer(self, status: int, headers: list[tuple[str, str]], content: bytes, size: int) -> None:
        self.status = status
        self.send_response_only(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(size))
        self.end_headers()
        self.wfile.write(content)
        self.wfile.flush()

    def break_off(self) -> None:
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def handle(self) -> None:
        with contextlib.suppress(OSError):
            super().handle()

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: what was asked is in :attr:`Faults.asked`."""
