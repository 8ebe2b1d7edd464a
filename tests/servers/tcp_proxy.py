"""Between a client and a server: what the server answers can be lost on the way."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path

__all__ = ["TcpProxy", "tcp_proxy", "tls_proxy"]


class TcpProxy:
    """Passes bytes on both ways.

    Attributes:
        loses_answers: the next bytes from the server are dropped, the connection with them, and this is False again.
        refuses: new connections are closed at once.
        silent: what the server answers is held back for as long.
    """

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self.loses_answers = False
        self.refuses = False
        self.silent = False
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """End all connections."""
        while self._open:
            _end(self._open.pop())

    def close(self) -> None:
        """No connections any more."""
        self.refuses, self.silent = True, False
        _end(self._listener)
        self.cut()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if self.refuses:
                    _end(client)
                    continue
                server = socket.create_connection(("127.0.0.1", self._target))
                self._open += [client, server]
                threading.Thread(target=self._pass_on, args=(client, server, False), daemon=True).start()
                threading.Thread(target=self._pass_on, args=(server, client, True), daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket, answers: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                if answers and self.loses_answers:
                    self.loses_answers = False
                    break
                while answers and self.silent:
                    time.sleep(0.01)
                target.sendall(data)
        _end(source)
        _end(target)


@contextlib.contextmanager
def tcp_proxy(port: int) -> Iterator[TcpProxy]:
    """A proxy before a port of this machine for the duration of the block."""
    proxy = TcpProxy(port)
    try:
        yield proxy
    finally:
        proxy.close()


def _end(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()


@contextlib.contextmanager
def tls_proxy(port: int, certificate: Path) -> Iterator[int]:
    """A port whose connections are decrypted and passed on to another port of this machine.

    ``certificate`` is a PEM file with the key.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)

    def pass_on(source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError), source, target:
            while data := source.recv(1 << 16):
                target.sendall(data)

    def accept() -> None:
        while True:
            try:
                client = context.wrap_socket(listener.accept()[0], server_side=True)
            except ssl.SSLError:
                continue
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", port))
            for ends in ((client, server), (server, client)):
                threading.Thread(target=pass_on, args=ends, daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=accept, daemon=True).start()
        yield listener.getsockname()[1]
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
