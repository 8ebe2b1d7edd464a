"""A lock in ZooKeeper: a queue of nodes below one path, each of which goes when its session ends.

::

    <base path>/<lock key>/_c_<uuid>-lock-0000000007     who holds the lock: the lowest number
                           _c_<uuid>-lock-0000000008     watches the node before its own

Nodes are named and sorted as Apache Hudi's are, which lets Apache Curator's ``InterProcessMutex`` do it: by the text
after the last ``lock-``. Python's usual client has a lock of its own whose names Curator sorts otherwise, so that both
would have the lock at once.

A node whose making was not answered is found again by its uuid. One that cannot be deleted goes with its session, which
is ended then. While it is held the lock has no lease but the session's: right before a change becomes visible the
server that leads is asked, by a transaction that changes nothing, whether our node is there.

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

from hudi_fast.config.lock_options import LockOptions
from hudi_fast.config.properties_file import load_properties
from hudi_fast.errors import ConfigError, LockError
from hudi_fast.locking.path_hash import path_hash
from hudi_fast.locking.zookeeper_session import ZookeeperServer, ZookeeperSession, borrow, give_back
from hudi_fast.storage.base import Storage

__all__ = ["ZookeeperLock", "in_line", "open_zookeeper", "open_zookeeper_implicit"]

_PREFIX, _SORTED_AFTER = "_c_", "lock-"
_ANY_VERSION = -1
_FRESH_SECONDS = 1.0
_PAUSE_SECONDS = 0.05


def open_zookeeper(storage: Storage, options: LockOptions) -> ZookeeperLock:
    """The lock below the path that the options name; its key is the table's name if they have none.

    Args:
        storage: the table's storage.
        options: servers, base path, lock key, times.

    Raises:
        ConfigError: the servers or the path are spelled wrong.
        TableNotFoundError: the key is the table's name, and there is no table.
    """
    key = options.zookeeper_lock_key or load_properties(storage)["hoodie.table.name"]
    return ZookeeperLock(_server(options), f"{options.zookeeper_base_path}/{key}")


def open_zookeeper_implicit(storage: Storage, options: LockOptions) -> ZookeeperLock:
    """The lock whose path follows from the table's base path.

    Apache Hudi's writers have the same one where ``hoodie.base.path`` is spelled as ``storage.uri`` is: without a slash
    at the end, and without ``file:`` for a folder of this machine.

    Raises:
        ConfigError: the servers are spelled wrong.
    """
    return ZookeeperLock(_server(options), f"/tmp/{path_hash(storage.uri)}/lock_key")


def in_line(names: Sequence[str]) -> list[str]:
    """The queue of a lock: who holds it comes first.

    Args:
        names: of the nodes below the lock's path.
    """
    # Java compares UTF-16; a name without the text is sorted by all of it
    return sorted(names, key=lambda name: name.rpartition(_SORTED_AFTER)[2].encode("utf-16-be", "surrogatepass"))


class ZookeeperLock:
    """One acquisition of one lock: a :class:`~hudi_fast.locking.provider.LockProvider`.

    Args:
        server: where ZooKeeper is.
        path: of the lock; its nodes are below it.

    Raises:
        ConfigError: ZooKeeper has no such paths.
    """

    def __init__(self, server: ZookeeperServer, path: str) -> None:
        self._server = server
        self._path = _checked(path)
        self._session: ZookeeperSession | None = None
        self._name: str | None = None
        self._holder = ""

    @property
    def holder(self) -> str:
        """Name and data of the first node at the last try that was in vain."""
        return self._holder

    def try_lock(self, seconds: float) -> bool:
        """Queue at most so long.

        Args:
            seconds: how long; 0 for a look at whether the lock is free. Connecting may take longer.

        Raises:
            LockError: ZooKeeper refuses access, or the lock is held already.
            OSError: it does not answer.
        """
        if self._name is not None:
            raise LockError(f"The lock {self._path} is held by this provider already.")
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
                self._drop()  # a node may be in the queue that would never leave it
                raise

    def require_held(self) -> None:
        """Ask the server that leads whether our node is there, in a session that has not ended.

        Raises:
            LockError: it is not, or that cannot be known.
        """
        session = self._session
        if self._name is None or session is None:
            raise LockError(f"The lock {self._path} is not held.")
        if session.pid != os.getpid():
            raise LockError(f"The lock {self._path} is held by process {session.pid}, not by this one.")
        problem = self._missing(session, time.monotonic() + self._server.connection_seconds)
        if problem:
            raise LockError(
                f"The lock {self._path} in ZooKeeper at {self._server.hosts} cannot be relied on: {problem}. Others "
                "may have it by now. Nothing was published; run the operation again."
            )

    def unlock(self) -> None:
        """Delete our node.

        Raises:
            OSError: no answer; the session is ended, and the node with it, now or when its time is over.
        """
        name, session = self._name, self._session
        self._name = None
        if name is None or session is None or session.pid != os.getpid():
            return
        try:
            self._leave(session, name)
        except BaseException as error:
            ended = session.broken  # by the server: the node went with it
            self._drop()
            if not (ended and isinstance(error, OSError)):
                raise

    def close(self) -> None:
        """Give the lock up if it is held, and the session back."""
        try:
            self.unlock()
        except (OSError, LockError):
            pass  # the session was ended instead
        session, self._session = self._session, None
        if session is not None:
            give_back(session)

    # ---- the session

    def _open(self) -> ZookeeperSession:
        """A session that is connected."""
        if self._session is not None and not self._session.is_usable:
            self._drop()
        if self._session is None:
            self._session = borrow(self._server)
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
        """Name of our node once it is the first; None when it was not in time, and is gone."""
        name = self._join(session)
        while True:
            session.changed.clear()
            line = in_line(session.ask(session.client.get_children_async, self._path))
            if name not in line:
                raise ConnectionError(f"The session with ZooKeeper at {self._server.hosts} ended in the queue.")
            place = line.index(name)
            if place == 0:
                return name
            if time.monotonic() >= deadline:
                self._note_holder(session, line[0])
                self._leave(session, name)
                return None
            try:
                session.ask(session.client.get_async, f"{self._path}/{line[place - 1]}", watch=session.watcher)
            except NoNodeError:
                continue
            session.wait(deadline - time.monotonic())

    def _join(self, session: ZookeeperSession) -> str:
        """Make our node; its name."""
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
            # The node may have been made all the same; it counts if it is in this session.
            session.connect()
            names = session.ask(session.client.get_children_async, self._path)
            ours = [name for name in names if name.startswith(prefix)]
            if not ours or session.broken:
                raise
            return str(ours[0])

    def _make_path(self, session: ZookeeperSession) -> None:
        """The lock's path and all above it, which stay."""
        parts = self._path.split("/")
        for end in range(2, len(parts) + 1):
            try:
                session.ask(session.client.create_async, "/".join(parts[:end]))
            except NodeExistsError:
                continue
            except NoNodeError as error:
                raise LockError(
                    f"ZooKeeper at {self._server.hosts} has no node for the path at the end of "
                    "hoodie.write.lock.zookeeper.url; make it first."
                ) from error

    def _leave(self, session: ZookeeperSession, name: str) -> None:
        """Delete our node, again and again for as long as an answer may take: others wait behind it."""
        deadline = time.monotonic() + self._server.connection_seconds
        while True:
            try:
                session.ask(session.client.delete_async, f"{self._path}/{name}", seconds=deadline - time.monotonic())
                return
            except NoNodeError:
                return  # it went with its session, or with a request whose answer was lost
            except OSError:
                if session.broken or time.monotonic() >= deadline:
                    raise
                time.sleep(_PAUSE_SECONDS)

    def _missing(self, session: ZookeeperSession, deadline: float) -> str:
        """Why the lock is not ours any more, or not for sure; empty when it is."""
        problem = "there was no answer in time"
        while time.monotonic() < deadline:
            check = session.client.transaction()
            check.check(f"{self._path}/{self._name}", _ANY_VERSION)
            asked = time.monotonic()
            try:
                answers = session.ask(check.commit_async, seconds=deadline - asked)
            except OSError as error:
                if session.broken:
                    return "the session of its holder has ended"
                problem = f"{error}"
                time.sleep(_PAUSE_SECONDS)
                continue
            if session.broken:
                return "the session of its holder has ended"
            if any(isinstance(answer, Exception) for answer in answers):
                return "the node of its holder is gone"
            if time.monotonic() - asked < _FRESH_SECONDS:
                return ""
            # The process may have been suspended since it asked: what was true then need not be now.
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
    )


def _checked(path: str) -> str:
    """``path`` if ZooKeeper takes it as it is: Curator does not make it better, and both must have the same one."""
    parts = path.split("/")
    if parts[0] or len(parts) < 2 or any(part in ("", ".", "..") or "\0" in part for part in parts[1:]):
        raise ConfigError(
            f"The path of a lock in ZooKeeper is hoodie.write.lock.zookeeper.base_path, a slash and the lock's key. It "
            f"starts with a slash and has names between slashes, not {path!r}."
        )
    return path
