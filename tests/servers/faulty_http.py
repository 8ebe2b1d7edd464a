"""An HTTP server between a client and a real one, which loses what it is told to lose.

::

    client ─► FaultyHttp ─► server          fault(name of the request): what becomes of it
                  │
                  ├─ PASS     nothing
                  ├─ LOSE     it is carried out, and its answer does not arrive
                  ├─ REFUSE   it does not arrive at the server
                  └─ Answer   it does not arrive at the server, and this is the answer

Connections are closed where an answer is missing: the client learns of it at once.
"""

from __future__ import annotations

import contextlib
import http.client
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlparse

__all__ = ["LOSE", "PASS", "REFUSE", "Answer", "FaultyHttp", "faulty_http"]

PASS, LOSE, REFUSE = "pass", "lose", "refuse"
HOP_BY_HOP = {"connection", "transfer-encoding", "keep-alive", "content-length"}


@dataclass(frozen=True)
class Answer:
    """What a client gets in place of the server's answer."""

    status: int
    body: bytes
    content_type: str = "application/x-amz-json-1.0"


Fault = Callable[[str], "str | Answer"]


class FaultyHttp:
    """The address, and what is in force.

    Attributes:
        url: of the server between.
        fault: of each request, by the last part of ``X-Amz-Target``, else by its method.
        seen: names of requests in the order of arrival.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.fault: Fault = lambda name: PASS
        self.seen: list[str] = []

    def once(self, name: str, what: str | Answer) -> None:
        """The next request of that name, and no other."""
        left = [what]
        self.fault = lambda asked: left.pop() if asked == name and left else PASS


@contextlib.contextmanager
def faulty_http(target: str) -> Iterator[FaultyHttp]:
    """Run for the duration of the block, before the server at ``target``."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    server.daemon_threads = True
    between = FaultyHttp(f"http://127.0.0.1:{server.server_address[1]}")
    server.RequestHandlerClass = _handler(between, urlparse(target).netloc)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield between
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(between: FaultyHttp, target: str) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            """Silent."""

        def handle_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            name = self.headers.get("X-Amz-Target", self.command).rpartition(".")[2]
            between.seen.append(name)
            fault = between.fault(name)
            if isinstance(fault, Answer):
                self.reply(fault.status, [("Content-Type", fault.content_type)], fault.body)
                return
            if fault != REFUSE:
                connection = http.client.HTTPConnection(target, timeout=60)
                connection.request(self.command, self.path, body, dict(self.headers))
                answer = connection.getresponse()
                data = answer.read()
                connection.close()
                if fault == PASS:
                    kept = [(key, value) for key, value in answer.getheaders() if key.lower() not in HOP_BY_HOP]
                    self.reply(answer.status, kept, data)
                    return
            self.close_connection = True

        def reply(self, status: int, headers: list[tuple[str, str]], data: bytes) -> None:
            self.send_response(status)
            for key, value in headers:
                self.send_header(key, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = handle_any

    return Handler
