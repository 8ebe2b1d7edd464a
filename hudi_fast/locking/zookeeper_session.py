"""ZooKeeper sessions, each used by one lock at a time and kept for reuse.

::

    borrow_session(server) ─► a free session or a new one ─► ask(...) ... ─► return_session: kept for a while
                                                                └► broken: ended, with all of its nodes

A session needs several round trips to begin, and a write takes the table lock several times. Free sessions are keyed by
process and server: a child of ``fork`` does not have the threads that keep its parent's sessions alive, and must not
end them. The dictionary is accessed by atomic operations only, because a child could inherit a held thread lock. An
idle session is ended after a while.

Requests have a timeout; if no response arrives, it is unknown whether the request was executed.
"""

from __future__ import annotations

import contextlib
import logging
import os
import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import field
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import AuthFailedError, InvalidACLError, KazooException, NoAuthError, NodeExistsError, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import KazooState

from hudi_fast.errors import ConfigError, LockError
from hudi_fast.values import dataclass

__all__ = ["ZookeeperServer", "ZookeeperSession", "ZookeeperTls", "borrow_session", "return_session"]

_IDLE_SECONDS = 30.0
_END_SECONDS = 5.0
_REFUSED = (AuthFailedError, InvalidACLError, NoAuthError)

_logger = logging.getLogger(__name__)
_logger.addHandler(logging.NullHandler())


@dataclass(frozen=True, slots=True)
class ZookeeperTls:
    """How a connection is encrypted. Files are in PEM form.

    Attributes:
        authorities: certificates of the authorities that sign the servers' certificates; None for the system's.
        certificate: our certificate and its key; None if the servers require none.
        password: of the key.
        checks_hosts: whether servers' certificates must name their hosts.
    """

    authorities: str | None = None
    certificate: str | None = None
    password: str | None = field(default=None, repr=False)
    checks_hosts: bool = True

    def settings(self) -> dict[str, Any]:
        """Arguments of a Kazoo client.

        Raises:
            ConfigError: a file cannot be read, or has another form.
        """
        context = ssl.create_default_context()
        for option, path in (("trustStore", self.authorities), ("keyStore", self.certificate)):
            if path is None:
                continue
            try:
                if option == "trustStore":
                    context.load_verify_locations(path)
                else:
                    context.load_cert_chain(path, password=self.password or "")
            except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
                raise ConfigError(
                    f"hudi_fast.zookeeper.ssl.{option}.location={path} cannot be used ({error}); expected a PEM file. "
                    "Convert a Java key store with keytool -importkeystore -deststoretype pkcs12, then openssl pkcs12 "
                    "-nodes."
                ) from error
        return {
            "use_ssl": True,
            "verify_certs": True,
            "check_hostname": self.checks_hosts,
            "ca": self.authorities,
            "certfile": self.certificate,
            "keyfile": self.certificate,
            "keyfile_password": self.password or "",
        }


@dataclass(frozen=True, slots=True)
class ZookeeperServer:
    """Address and timeouts of ZooKeeper.

    Attributes:
        hosts: ``host:port,...``, optionally with a root path.
        session_seconds: requested session timeout; the servers limit it.
        connection_seconds: maximum wait for a connection, and for one response.
        retry_seconds: first and maximum wait between two connection attempts.
        tls: encryption; None for none.
    """

    hosts: str
    session_seconds: float
    connection_seconds: float
    retry_seconds: tuple[float, float]
    tls: ZookeeperTls | None = None


class ZookeeperSession:
    """A session, initially not connected. ZooKeeper deletes its ephemeral nodes when it ends.

    Attributes:
        broken: not reusable: the session has ended, or an abandoned request may still be executed.
        changed: set when a watched node or the state of the connection changes.
        ended: set when the session is being ended.
        interrupted: set when the connection is lost or the session is ended.
        freed_at: time of the return, by the monotonic clock.
        keeper: the thread that ends the session after it was idle for a while.

    Raises:
        ConfigError: invalid ``hosts``, or a file for TLS that cannot be used.
    """

    def __init__(self, server: ZookeeperServer) -> None:
        self.server = server
        self.pid = os.getpid()
        self.broken = False
        self.changed = threading.Event()
        self._up = threading.Event()
        self._started = self._has_begun = False
        self.ended = threading.Event()
        self.interrupted = threading.Event()
        self.freed_at = 0.0
        self.keeper: threading.Thread | None = None
        first, longest = server.retry_seconds
        retry = {"max_tries": -1, "delay": first, "backoff": 2, "max_delay": max(first, longest)}
        try:
            self.client: Any = KazooClient(
                server.hosts,
                timeout=server.session_seconds,
                connection_retry=retry,
                logger=_logger,
                **({} if server.tls is None else server.tls.settings()),
            )
        except ValueError as error:
            raise ConfigError(
                f"hoodie.write.lock.zookeeper.url={server.hosts!r} must be host:port,... and may end in a path: "
                f"{error}."
            ) from error
        self.client.add_listener(self._notice)

    @property
    def is_usable(self) -> bool:
        """Whether another lock can reuse the session."""
        return not self.broken and self.pid == os.getpid() and bool(self.client.connected)

    def connect(self) -> None:
        """Wait until the session is connected or reconnected.

        Raises:
            OSError: no connection within ``connection_seconds``.
        """
        if not self._started:  # from then on the client reconnects automatically
            self._started = True
            self.client.start_async()
        if not self._up.wait(self.server.connection_seconds):
            way = "" if self.server.tls is None else " by TLS (or one side does not accept the other's certificate)"
            raise ConnectionError(
                f"ZooKeeper at {self.server.hosts} cannot be reached{way} within {self.server.connection_seconds:g} s."
            )

    def ask(self, request: Callable[..., Any], *arguments: Any, seconds: float | None = None, **named: Any) -> Any:
        """Send a request and wait for its response.

        Args:
            request: a ``..._async`` method of the client; it waits for a connection.
            arguments: positional arguments of the request.
            seconds: maximum wait; None = ``connection_seconds``.
            named: keyword arguments of the request.

        Raises:
            LockError: access is denied.
            NoNodeError, NodeExistsError: see Kazoo.
            OSError: no response in time, or another failure; it is unknown whether the request was executed.
        """
        try:
            return request(*arguments, **named).get(
                timeout=self.server.connection_seconds if seconds is None else max(seconds, 0.0)
            )
        except _REFUSED as error:
            raise LockError(
                f"ZooKeeper at {self.server.hosts} denies access ({type(error).__name__}): all writers of the table "
                "need access to the nodes of the lock."
            ) from error
        except (NoNodeError, NodeExistsError):
            raise
        except (KazooException, KazooTimeoutError) as error:
            raise ConnectionError(
                f"ZooKeeper at {self.server.hosts} did not answer: {type(error).__name__} {error}".rstrip()
            ) from error

    def wait(self, seconds: float) -> None:
        """Wait until a watched node or the connection changes, for at most ``seconds``."""
        self.changed.wait(max(seconds, 0.0))

    def watcher(self, _event: object) -> None:
        """Callback of the client for changes of watched nodes."""
        self.changed.set()

    def end(self) -> None:
        """End the session and delete its ephemeral nodes, in a thread.

        Without a connection the session, with a node that blocks other writers, would last until its timeout: the
        thread therefore waits for the next connection to end the session.
        """
        self.broken = True
        if self.pid != os.getpid() or self.ended.is_set():
            return
        self.ended.set()
        self.interrupted.set()
        ending = threading.Thread(target=self._stop, name="hudi_fast-zookeeper-end", daemon=True)
        was_up = self._up.is_set()
        ending.start()
        if was_up:
            ending.join(_END_SECONDS)

    def _stop(self) -> None:
        if self._has_begun:
            self._up.wait(self.server.session_seconds)
        with contextlib.suppress(Exception):  # in any case the session ends at its timeout
            self.client.stop()
            self.client.close()

    def _notice(self, state: str) -> None:
        if state == KazooState.CONNECTED:
            self._has_begun = True
            self._up.set()
        else:
            self._up.clear()
            self.broken = self.broken or state == KazooState.LOST
            self.interrupted.set()
        self.changed.set()


_free: dict[tuple[int, ZookeeperServer], ZookeeperSession] = {}


def borrow_session(server: ZookeeperServer) -> ZookeeperSession:
    """Take a free session, or open a new one, which is not connected yet.

    Raises:
        ConfigError: invalid ``hosts``, or a file for TLS that cannot be used.
    """
    kept = _free.pop((os.getpid(), server), None)
    if kept is not None:
        if kept.is_usable:
            return kept
        kept.end()
    return ZookeeperSession(server)


def return_session(session: ZookeeperSession) -> None:
    """Keep a session for the next lock, or end it if it is broken or another one is kept. It must have no nodes."""
    key = (session.pid, session.server)
    session.freed_at = time.monotonic()
    if not session.is_usable or _free.setdefault(key, session) is not session:
        session.end()
    elif session.keeper is None:
        session.keeper = threading.Thread(target=_keep, args=(key, session), name="hudi_fast-zookeeper", daemon=True)
        session.keeper.start()


def _keep(key: tuple[int, ZookeeperServer], session: ZookeeperSession) -> None:
    """End a free session after the idle time, or when it loses its connection."""
    while not session.ended.is_set():
        session.interrupted.wait(_IDLE_SECONDS)
        session.interrupted.clear()
        idle = time.monotonic() - session.freed_at >= _IDLE_SECONDS or not session.is_usable
        if idle and _free.get(key) is session:
            taken = _free.pop(key, None)  # another thread may have replaced it by another free session
            if taken is not None:
                taken.end()
