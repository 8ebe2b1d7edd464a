"""A lock in ZooKeeper: a queue of ephemeral nodes below one path.

::

    <base path>/<lock key>/_c_<uuid>-lock-0000000007     lowest number: the holder of the lock
                           _c_<uuid>-lock-0000000008     watches the node before it

Nodes are named and sorted like those of Apache Hudi, which uses Apache Curator's ``InterProcessMutex``: by the text
after the last ``lock-``. Kazoo's own lock recipe is not compatible: Curator sorts its names differently, so both could
hold the lock at the same time.

If the response to the creation of a node is lost, the node is found by its uuid. If a node cannot be deleted, its
session is ended, which deletes the node. A held lock lasts as long as its session: right before a change becomes
visible, a transaction without changes asks the leading server whether our node exists.

Sources: ``BaseZookeeperBasedLockProvider``, ``ZookeeperBasedLockProvider``,
``ZookeeperBasedImplicitBasePathLockProvider``, ``HoodieInterProcessMutex`` (Apache Hudi 1.2.0); ``LockInternals``,
``StandardLockInternalsDriver`` (Apache Curator 2.13).
"""

from __future__ import annotations

import os
import platform
import time
import uuid
from collections.abc import Sequence

from kazoo.exceptions import NodeExistsError, NoNodeError

from hudi_fast.config.concurrency_options import LockOptions
from hudi_fast.config.properties_file import load_properties
from hudi_fast.errors import ConfigError, LockError
from hudi_fast.locking.provider import path_hash
from hudi_fast.locking.zookeeper_session import (
    ZookeeperServer,
    ZookeeperSession,
    ZookeeperTls,
    borrow_session,
    return_session,
)
from hudi_fast.storage.base import Storage

__all__ = ["ZookeeperLock", "open_zookeeper", "open_zookeeper_implicit", "queue_order"]

_PREFIX, _SORTED_AFTER = "_c_", "lock-"
_ANY_VERSION = -1
_FRESH_SECONDS = 1.0
_PAUSE_SECONDS = 0.05


def open_zookeeper(storage: Storage, options: LockOptions) -> ZookeeperLock:
    """Open the lock below ``hoodie.write.lock.zookeeper.base_path``; the default key is the table name.

    Raises:
        ConfigError: invalid servers or path.
        TableNotFoundError: the key is the table name, and the table does not exist.
    """
    key = options.zookeeper_lock_key or load_properties(storage)["hoodie.table.name"]
    return ZookeeperLock(_server(options), f"{options.zookeeper_base_path}/{key}")


def open_zookeeper_implicit(storage: Storage, options: LockOptions) -> ZookeeperLock:
    """Open the lock whose path is derived from the table's base path.

    Apache Hudi's writers use the same lock if their ``hoodie.base.path`` is spelled like ``storage.uri``: without a
    slash at the end, and without ``file:`` for a local folder.

    Raises:
        ConfigError: invalid servers.
    """
    return ZookeeperLock(_server(options), f"/tmp/{path_hash(storage.uri)}/lock_key")


def queue_order(names: Sequence[str]) -> list[str]:
    """The node names below the lock's path in queue order; the first node holds the lock."""
    # Java compares UTF-16. A name without `lock-` is compared as a whole.
    return sorted(names, key=lambda name: name.rpartition(_SORTED_AFTER)[2].encode("utf-16-be", "surrogatepass"))


class ZookeeperLock:
    """One acquisition of one lock: a :class:`~hudi_fast.locking.provider.LockProvider`.

    Raises:
        ConfigError: an invalid ZooKeeper path.
    """

    def __init__(self, server: ZookeeperServer, path: str) -> None:
        self._server = server
        self._path = _checked(path)
        self._session: ZookeeperSession | None = None
        self._name: str | None = None
        self._confirmed = 0.0
        """When the last confirmed check was sent, on the monotonic clock."""
        self._holder = ""

    @property
    def holder(self) -> str:
        """Name and data of the first node in the queue at the last failed attempt."""
        return self._holder

    def try_lock(self, seconds: float) -> bool:
        """Wait in the queue for at most ``seconds``; False if other holders kept the lock.

        Args:
            seconds: maximum wait, without the time to connect; 0 = acquire the lock only if it is free.

        Raises:
            LockError: ZooKeeper denies access, or this provider already holds the lock.
            OSError: ZooKeeper does not answer.
        """
        if self._name is not None:
            raise LockError(f"This provider already holds the lock {self._path}.")
        deadline = time.monotonic() + seconds
        while True:
            try:
                self._name = self._queue(self._open(), deadline)
                return self._name is not None
            except OSError:
                self._drop()
                if time.monotonic() + self._server.retry_seconds[0] >= deadline:
                    raise
                time.sleep(self._server.retry_seconds[0])
            except BaseException:
                self._drop()  # the session may have a node in the queue that would stay there
                raise

    def require_held(self) -> None:
        """Check that our session is alive and that its node exists on the leading server.

        Raises:
            LockError: the lock was lost, or the check failed.
        """
        session = self._session
        if self._name is None or session is None:
            raise LockError(f"The lock {self._path} is not held.")
        if session.pid != os.getpid():
            raise LockError(f"The lock {self._path} is held by process {session.pid}, not by this one.")
        problem = self._missing(session, time.monotonic() + self._server.connection_seconds)
        if problem:
            raise LockError(
                f"The lock {self._path} in ZooKeeper at {self._server.hosts} may be lost: {problem}. Another writer "
                "may hold it now. Nothing was published; retry the operation."
            )

    def is_certain(self) -> bool:
        """Whether the leading server has confirmed the lock so recently that the session cannot have ended since."""
        session = self._session
        alive = self._name is not None and session is not None and not session.broken
        lasts = min(_FRESH_SECONDS, self._server.session_seconds / 2)  # a server may grant less than it was asked for
        return alive and time.monotonic() - self._confirmed < lasts

    def unlock(self) -> None:
        """Delete our node.

        Raises:
            OSError: no response; ending the session, or its timeout, deletes the node.
        """
        name, session = self._name, self._session
        self._name = None
        if name is None or session is None or session.pid != os.getpid():
            return
        try:
            self._leave(session, name)
        except BaseException as error:
            ended = session.broken  # the server has deleted the node with the session
            self._drop()
            if not (ended and isinstance(error, OSError)):
                raise

    def close(self) -> None:
        """Release a held lock, and return the session for reuse."""
        try:
            self.unlock()
        except (OSError, LockError):
            pass  # the session was ended instead
        session, self._session = self._session, None
        if session is not None:
            return_session(session)

    # ---- the session

    def _open(self) -> ZookeeperSession:
        """A connected session."""
        if self._session is not None and not self._session.is_usable:
            self._drop()
        if self._session is None:
            self._session = borrow_session(self._server)
        try:
            self._session.connect()
        except OSError:
            self._drop()
            raise
        return self._session

    def _drop(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.end()

    # ---- the queue

    def _queue(self, session: ZookeeperSession, deadline: float) -> str | None:
        """Create our node and wait until it is first; its name, or None at the deadline, with the node deleted."""
        name = self._join(session)
        while True:
            session.changed.clear()
            queue = queue_order(session.ask(session.client.get_children_async, self._path))
            if name not in queue:
                raise ConnectionError(f"The session with ZooKeeper at {self._server.hosts} ended during the wait.")
            place = queue.index(name)
            if place == 0:
                return name
            if time.monotonic() >= deadline:
                self._note_holder(session, queue[0])
                self._leave(session, name)
                return None
            try:
                session.ask(session.client.get_async, f"{self._path}/{queue[place - 1]}", watch=session.watcher)
            except NoNodeError:
                continue
            session.wait(deadline - time.monotonic())

    def _join(self, session: ZookeeperSession) -> str:
        """Create our node and return its name."""
        prefix = f"{_PREFIX}{uuid.uuid4()}-{_SORTED_AFTER}"
        make, path = session.client.create_async, f"{self._path}/{prefix}"
        data = f"application_id=hudi_fast-{platform.node()}-{os.getpid()}".encode()
        try:
            try:
                made = session.ask(make, path, data, ephemeral=True, sequence=True)
            except NoNodeError:
                self._make_path(session)
                made = session.ask(make, path, data, ephemeral=True, sequence=True)
            return str(made).rpartition("/")[2]
        except OSError:
            # The node may exist; it is usable if this session is still alive.
            session.connect()
            names = session.ask(session.client.get_children_async, self._path)
            ours = [name for name in names if name.startswith(prefix)]
            if not ours or session.broken:
                raise
            return str(ours[0])

    def _make_path(self, session: ZookeeperSession) -> None:
        """Create the lock's path and its parents as persistent nodes."""
        parts = self._path.split("/")
        for end in range(2, len(parts) + 1):
            try:
                session.ask(session.client.create_async, "/".join(parts[:end]))
            except NodeExistsError:
                continue
            except NoNodeError as error:
                raise LockError(
                    f"ZooKeeper at {self._server.hosts} has no node for the path at the end of "
                    "hoodie.write.lock.zookeeper.url; create it first."
                ) from error

    def _leave(self, session: ZookeeperSession, name: str) -> None:
        """Delete our node, with retries for the connection timeout, because others wait behind it."""
        deadline = time.monotonic() + self._server.connection_seconds
        while True:
            try:
                session.ask(session.client.delete_async, f"{self._path}/{name}", seconds=deadline - time.monotonic())
                return
            except NoNodeError:
                return  # deleted with its session, or by a request whose response was lost
            except OSError:
                if session.broken or time.monotonic() >= deadline:
                    raise
                time.sleep(_PAUSE_SECONDS)

    def _missing(self, session: ZookeeperSession, deadline: float) -> str:
        """Why the lock is lost or may be lost; "" if it is held."""
        problem = "no answer in time"
        while time.monotonic() < deadline:
            check = session.client.transaction()
            check.check(f"{self._path}/{self._name}", _ANY_VERSION)
            asked = time.monotonic()
            try:
                answers = session.ask(check.commit_async, seconds=deadline - asked)
            except OSError as error:
                if session.broken:
                    return "its session has ended"
                problem = f"{error}"
                time.sleep(_PAUSE_SECONDS)
                continue
            if session.broken:
                return "its session has ended"
            if any(isinstance(answer, Exception) for answer in answers):
                return "its node was deleted"
            if time.monotonic() - asked < _FRESH_SECONDS:
                self._confirmed = asked
                return ""
            # The process may have been suspended since the request, and the answer may be outdated.
        return problem

    def _note_holder(self, session: ZookeeperSession, first: str) -> None:
        try:
            data, _ = session.ask(session.client.get_async, f"{self._path}/{first}")
        except NoNodeError:
            data = b""
        self._holder = f"{first} {data.decode(errors='replace')}".strip()


def _server(options: LockOptions) -> ZookeeperServer:
    return ZookeeperServer(
        options.zookeeper_url or "",
        options.zookeeper_session_ms / 1000,
        options.zookeeper_connection_ms / 1000,
        (options.retry_wait_ms / 1000, options.max_retry_wait_ms / 1000),
        _tls(options),
    )


def _tls(options: LockOptions) -> ZookeeperTls | None:
    if options.zookeeper_tls:
        return ZookeeperTls(
            options.zookeeper_authorities,
            options.zookeeper_certificate,
            options.zookeeper_key_password,
            options.zookeeper_checks_hosts,
        )
    if options.zookeeper_authorities or options.zookeeper_certificate:
        raise ConfigError("hudi_fast.zookeeper.ssl.* needs hudi_fast.zookeeper.client.secure=true.")
    return None


def _checked(path: str) -> str:
    """``path`` if it is valid; Curator does not normalise paths, and both sides must use the same one."""
    parts = path.split("/")
    if parts[0] or len(parts) < 2 or any(part in ("", ".", "..") or "\0" in part for part in parts[1:]):
        raise ConfigError(
            f"The path of a lock in ZooKeeper is hoodie.write.lock.zookeeper.base_path, a slash and the lock key. It "
            f"must start with a slash and have a name between every two slashes; found {path!r}."
        )
    return path
