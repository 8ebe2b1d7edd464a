"""Sessions with ZooKeeper, one lock at a time in each, and kept for the next lock once they are free.

::

    borrow(server) ─► a session that an earlier lock left, or a new one ─► ask(...) ... ─► give_back: free for a while
                                                                              └► broken: ended, with all of its nodes

A session costs several round trips to begin, and a table's lock is taken several times for a write. What is kept is
keyed by the process as well as the server: a child of ``fork`` has none of the threads that keep its parent's sessions
alive, and must not end them. The dictionary is used by single operations that the interpreter does at once, so that no
lock of threads can be left held in a child. A session that nobody wanted for a while is ended.

Requests have a time limit; where the answer did not come it is unknown whether they were carried out.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import AuthFailedError, InvalidACLError, KazooException, NoAuthError, NodeExistsError, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import KazooState

from hudi_fast.errors import ConfigError, LockError

__all__ = ["ZookeeperServer", "ZookeeperSession", "borrow", "give_back"]

_IDLE_SECONDS = 30.0
_END_SECONDS = 5.0
_REFUSED = (AuthFailedError, InvalidACLError, NoAuthError)

_logger = logging.getLogger(__name__)
_logger.addHandler(logging.NullHandler())


@dataclass(frozen=True, slots=True)
class ZookeeperServer:
    """Where ZooKeeper is, and how long to wait for it.

    Attributes:
        hosts: ``host:port,...`` and a path below which everything is.
        session_seconds: how long the nodes of a session outlive its last sign of life; the servers have bounds for it.
        connection_seconds: longest wait for a connection, and for any one answer.
        retry_seconds: first and longest wait between two tries to connect.
    """

    hosts: str
    session_seconds: float
    connection_seconds: float
    retry_seconds: tuple[float, float]


class ZookeeperSession:
    """A connection whose nodes go when it ends. Not connected yet.

    Args:
        server: where.

    Attributes:
        broken: it has ended, or a request of it may still be carried out that nobody waits for: it is no use any more.
        changed: set when a node that is watched changes, or the connection does.
        ended: set when it is being ended.
        stirred: set when its connection is lost, or it is ended.
        freed: when it was given back, by the monotonic clock.
        keeper: the thread that ends it when nobody wants it.

    Raises:
        ConfigError: ``hosts`` is nothing to connect to.
    """

    def __init__(self, server: ZookeeperServer) -> None:
        self.server = server
        self.pid = os.getpid()
        self.broken = False
        self.changed = threading.Event()
        self._up = threading.Event()
        self._started = self._has_begun = False
        self.ended = threading.Event()
        self.stirred = threading.Event()
        self.freed = 0.0
        self.keeper: threading.Thread | None = None
        first, longest = server.retry_seconds
        retry = {"max_tries": -1, "delay": first, "backoff": 2, "max_delay": max(first, longest)}
        try:
            self.client: Any = KazooClient(
                server.hosts, timeout=server.session_seconds, connection_retry=retry, logger=_logger
            )
        except ValueError as error:
            raise ConfigError(
                f"hoodie.write.lock.zookeeper.url={server.hosts!r} must be host:port,... and may end in a path: "
                f"{error}."
            ) from error
        self.client.add_listener(self._notice)

    @property
    def is_usable(self) -> bool:
        """Whether the next lock may go on with it."""
        return not self.broken and self.pid == os.getpid() and bool(self.client.connected)

    def connect(self) -> None:
        """Wait until there is a connection: the first one, or the next.

        Raises:
            OSError: there was none in time.
        """
        if not self._started:  # the client goes on connecting by itself from then on
            self._started = True
            self.client.start_async()
        if not self._up.wait(self.server.connection_seconds):
            raise ConnectionError(
                f"ZooKeeper at {self.server.hosts} cannot be reached within {self.server.connection_seconds:g} s."
            )

    def ask(self, request: Callable[..., Any], *arguments: Any, seconds: float | None = None, **named: Any) -> Any:
        """The answer to one of the client's requests whose names end in ``_async``.

        Args:
            request: asks; while there is no connection it waits for one.
            arguments: of the request.
            seconds: how long to wait; None for ``connection_seconds``.
            named: of the request, too.

        Raises:
            LockError: the request is refused, whenever it is asked.
            NoNodeError, NodeExistsError: as Kazoo has them.
            OSError: there was no answer in time, or none of these: whether it was carried out is unknown.
        """
        try:
            return request(*arguments, **named).get(
                timeout=self.server.connection_seconds if seconds is None else max(seconds, 0.0)
            )
        except _REFUSED as error:
            raise LockError(
                f"ZooKeeper at {self.server.hosts} refuses access ({type(error).__name__}): the nodes of the lock must "
                "be open to whoever writes to the table."
            ) from error
        except (NoNodeError, NodeExistsError):
            raise
        except (KazooException, KazooTimeoutError) as error:
            raise ConnectionError(
                f"ZooKeeper at {self.server.hosts} did not answer: {type(error).__name__} {error}".rstrip()
            ) from error

    def wait(self, seconds: float) -> None:
        """Until a node that is watched changes, or the connection does, or so long; then look again."""
        self.changed.wait(max(seconds, 0.0))

    def watcher(self, _event: object) -> None:
        """Called by the client when a node changes that is watched."""
        self.changed.set()

    def end(self) -> None:
        """End the session, and every node that is in it; what takes long is done by a thread.

        Without a connection the session would go on for its time, with a node that keeps others waiting: the thread
        waits for the next connection, to end it by that.
        """
        self.broken = True
        if self.pid != os.getpid() or self.ended.is_set():
            return
        self.ended.set()
        self.stirred.set()
        ending = threading.Thread(target=self._stop, name="hudi_fast-zookeeper-end", daemon=True)
        was_up = self._up.is_set()
        ending.start()
        if was_up:
            ending.join(_END_SECONDS)

    def _stop(self) -> None:
        if self._has_begun:
            self._up.wait(self.server.session_seconds)
        with contextlib.suppress(Exception):  # whatever it is, the session ends by itself
            self.client.stop()
            self.client.close()

    def _notice(self, state: str) -> None:
        if state == KazooState.CONNECTED:
            self._has_begun = True
            self._up.set()
        else:
            self._up.clear()
            self.broken = self.broken or state == KazooState.LOST
            self.stirred.set()
        self.changed.set()


_free: dict[tuple[int, ZookeeperServer], ZookeeperSession] = {}


def borrow(server: ZookeeperServer) -> ZookeeperSession:
    """A session that nobody else has: one that is free, or a new one that is not connected yet.

    Raises:
        ConfigError: ``hosts`` is nothing to connect to.
    """
    kept = _free.pop((os.getpid(), server), None)
    if kept is not None:
        if kept.is_usable:
            return kept
        kept.end()
    return ZookeeperSession(server)


def give_back(session: ZookeeperSession) -> None:
    """Keep a session for the next lock, unless it is broken or one is kept already. None of its nodes may be left."""
    key = (session.pid, session.server)
    session.freed = time.monotonic()
    if not session.is_usable or _free.setdefault(key, session) is not session:
        session.end()
    elif session.keeper is None:
        session.keeper = threading.Thread(target=_keep, args=(key, session), name="hudi_fast-zookeeper", daemon=True)
        session.keeper.start()


def _keep(key: tuple[int, ZookeeperServer], session: ZookeeperSession) -> None:
    """End the session once it has been free for a while, or has lost its connection while it was free."""
    while not session.ended.is_set():
        session.stirred.wait(_IDLE_SECONDS)
        session.stirred.clear()
        idle = time.monotonic() - session.freed >= _IDLE_SECONDS or not session.is_usable
        if idle and _free.get(key) is session:
            taken = _free.pop(key, None)  # if somebody was faster, it is another one, and as free
            if taken is not None:
                taken.end()
