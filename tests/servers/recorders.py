"""Servers that record what a client sends: requests over HTTP, and lines over TCP."""

from __future__ import annotations

import contextlib
import socket
import socketserver
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

__all__ = ["Recorded", "recorded_lines", "recorded_requests"]


@dataclass
class Recorded:
    """What a server got.

    Attributes:
        port: of the server.
        requests: method, path, headers by their names in lower case, and body of each request.
        lines: lines of text.
        status: of the answers.
    """

    port: int = 0
    requests: list[tuple[str, str, dict[str, str], str]] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    status: int = 200

    def settled(self) -> list[str]:
        """The lines so far, after all of them have arrived: connections are served one after the other."""
        with socket.create_connection(("127.0.0.1", self.port)) as connection:
            connection.sendall(b"settled\n")
        while "settled" not in self.lines:
            time.sleep(0.005)
        self.lines.remove("settled")
        return self.lines


@contextlib.contextmanager
def recorded_requests() -> Iterator[Recorded]:
    """An HTTP server for the duration of the block."""
    found = Recorded()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            headers = {name.lower(): value for name, value in self.headers.items()}
            found.requests.append((self.command, self.path, headers, body))
            self.send_response(found.status)
            self.end_headers()

        do_PUT = do_DELETE = do_POST

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server, _serving(server):
        found.port = server.server_port
        yield found


@contextlib.contextmanager
def recorded_lines() -> Iterator[Recorded]:
    """A server for lines of text, as Graphite takes them, for the duration of the block."""
    found = Recorded()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            for line in self.rfile:
                found.lines.append(line.decode().strip())

    with socketserver.TCPServer(("127.0.0.1", 0), Handler) as server:
        found.port = server.server_address[1]
        with _serving(server):
            yield found
            found.settled()


@contextlib.contextmanager
def _serving(server: socketserver.BaseServer) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
