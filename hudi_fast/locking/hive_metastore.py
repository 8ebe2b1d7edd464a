"""A lock in a Hive metastore: an exclusive lock of a table, which need not exist there.

::

    lock ─► ACQUIRED ─► heartbeats of a thread ─► unlock
         └► WAITING ──► unlock at once, a pause, again

A request that must wait stays in the metastore's queue for as long as nobody takes it out, also after whoever asked has
died, and all others wait behind it. So nobody waits there, neither Apache Hudi nor this: it asks again.

A request whose answer was lost may have got the lock, under a number that nobody knows. It is found by the name that
every provider gives itself, and given up. How long a lock lasts without heartbeats is the metastore's affair
(``hive.txn.timeout``); right before a change becomes visible it is asked, by another heartbeat, whether the lock is
still there.

Source: ``HiveMetastoreBasedLockProvider`` and ``Heartbeat`` (Apache Hudi 1.2.0).
"""

from __future__ import annotations

import contextlib
import getpass
import os
import platform
import random
import threading
import time
import uuid
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from hudi_fast.config.lock_options import LockOptions
from hudi_fast.errors import ConfigError, LockError, UnsupportedFeatureError
from hudi_fast.locking.hive_calls import LockGoneError, Metastore
from hudi_fast.storage.base import Storage

__all__ = ["HiveMetastoreLock", "open_hive_metastore"]

_ANSWER_SECONDS = 15.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0
_CHANCE = random.SystemRandom()  # who seeds `random` for numbers of their own goes on getting the same
_FRESH_SECONDS = 1.0
_TRIES = 3
_RELEASE_SECONDS = 3.0
_PORT = 9083
_URIS_KEY = "hive.metastore.uris"
_NOT_DONE = (
    "hive.metastore.sasl.enabled",
    "hive.metastore.use.SSL",
    "hive.metastore.thrift.compact.protocol.enabled",
    "hive.metastore.thrift.framed.transport.enabled",
)


def open_hive_metastore(storage: Storage, options: LockOptions) -> HiveMetastoreLock:
    """The lock of the database and table that the options name, in their metastore or that of ``hive-site.xml``.

    Args:
        storage: the table's storage; not asked.
        options: metastores, names, time between heartbeats.

    Raises:
        ConfigError: no metastore is named, or it is no ``thrift://host:port``.
        UnsupportedFeatureError: ``hive-site.xml`` asks for authentication, encryption or another protocol.
    """
    site = _hive_site()
    for key in _NOT_DONE:
        if site.get(key, "").lower() == "true":
            raise UnsupportedFeatureError(f"A lock in a Hive metastore with {key}=true in hive-site.xml.")
    store = Metastore(_addresses(options.hive_uris or site.get(_URIS_KEY, "")), _ANSWER_SECONDS)
    return HiveMetastoreLock(store, options.hive_database or "", options.hive_table or "", options.heartbeat_ms / 1000)


class HiveMetastoreLock:
    """One acquisition of one lock: a :class:`~hudi_fast.locking.provider.LockProvider`.

    Args:
        metastore: where the lock is.
        database: of the table whose lock it is.
        table: its name.
        heartbeat_seconds: between two heartbeats.
    """

    def __init__(self, metastore: Metastore, database: str, table: str, heartbeat_seconds: float) -> None:
        self._metastore = metastore
        self._database, self._table = database, table
        self._heartbeat_seconds = heartbeat_seconds
        self._agent = f"hudi_fast-{uuid.uuid4()}"
        self._pid = os.getpid()
        self._holder = ""
        self._unsure = False
        self._lock_id: int | None = None
        self._lost = ""
        self._released = threading.Event()

    @property
    def holder(self) -> str:
        """User, host and agent of who had the lock at the end of the last try."""
        return self._holder

    def try_lock(self, seconds: float) -> bool:
        """Ask for the lock, at least once and for at most so long.

        Raises:
            LockError: the metastore has no locks, or the lock is held already.
            OSError: it does not answer.
        """
        if self._lock_id is not None:
            raise LockError(f"The lock {self._name} is held by this provider already.")
        deadline, pause = time.monotonic() + seconds, _FIRST_PAUSE
        while not self._take():
            left = deadline - time.monotonic()
            if left <= 0:
                self._note_holder()
                return False
            time.sleep(min(left, pause * _CHANCE.uniform(0.5, 1.0)))  # two that ask in step keep each other out
            pause = min(pause * 2, _LONGEST_PAUSE)
        return True

    def require_held(self) -> None:
        """Send a heartbeat.

        Raises:
            LockError: the lock is gone, or that cannot be known.
        """
        lock_id = self._lock_id
        if lock_id is None:
            raise LockError(f"The lock {self._name} is not held.")
        if self._pid != os.getpid():
            raise LockError(f"The lock {self._name} is held by process {self._pid}, not by this one.")
        problem = "the metastore takes too long to answer"
        for _ in range(_TRIES):
            asked = time.monotonic()
            try:
                self._metastore.heartbeat(lock_id)
            except LockGoneError as error:
                self._lost = f"{error}"
            except OSError as error:
                problem = f"{error}"
                continue
            if self._lost:
                problem = f"the metastore does not know it any more ({self._lost})"
                break
            if time.monotonic() - asked < _FRESH_SECONDS:
                return
            # The process may have been suspended since it asked: what was true then need not be now.
        raise LockError(
            f"The lock {self._name} in the Hive metastore at {self._metastore.name} cannot be relied on: {problem}. "
            "Others may have it by now. Nothing was published; run the operation again."
        )

    def unlock(self) -> None:
        """Give the lock up.

        Raises:
            OSError: no answer; the lock stays until the metastore's time for it is over.
        """
        lock_id, self._lock_id = self._lock_id, None
        self._released.set()
        if lock_id is not None and self._pid == os.getpid():
            self._give_up(lock_id)

    def close(self) -> None:
        """Give the lock up if it is held, and end the connection."""
        with contextlib.suppress(OSError, LockError):
            self.unlock()
            self._clear_up()
        if self._pid == os.getpid():
            self._metastore.close()

    # ---- inside

    @property
    def _name(self) -> str:
        return f"{self._database}.{self._table}"

    def _take(self) -> bool:
        self._clear_up()
        before, self._unsure = self._unsure, True
        lock_id, acquired = self._metastore.lock(self._database, self._table, _user(), platform.node(), self._agent)
        if not acquired:
            self._give_up(lock_id)
            self._unsure = before
            return False
        self._unsure = before
        self._lock_id, self._lost, self._released = lock_id, "", threading.Event()
        threading.Thread(
            target=self._beat, args=(lock_id, self._released), name="hudi_fast-hive-heartbeat", daemon=True
        ).start()
        return True

    def _beat(self, lock_id: int, released: threading.Event) -> None:
        """Heartbeats until the lock is given up or gone."""
        pause = self._heartbeat_seconds / 2
        while not released.wait(pause):
            try:
                self._metastore.heartbeat(lock_id)
                pause = self._heartbeat_seconds
            except LockGoneError as error:
                if not released.is_set():
                    self._lost = f"{error}"
                return
            except (OSError, LockError):
                pause = min(self._heartbeat_seconds, _LONGEST_PAUSE)

    def _give_up(self, lock_id: int) -> None:
        """Again and again for a while: what is left there may stay for ever. Doing it twice does no harm."""
        deadline, pause = time.monotonic() + _RELEASE_SECONDS, _FIRST_PAUSE
        while True:
            try:
                self._metastore.unlock(lock_id)
                return
            except LockGoneError:
                return
            except OSError:
                if time.monotonic() + pause >= deadline:
                    raise
                time.sleep(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)

    def _clear_up(self) -> None:
        """Give up what an answer that was lost has left; a request may also be carried out later than that."""
        if not self._unsure or self._pid != os.getpid():
            return
        for entry in self._metastore.entries(self._database, self._table):
            if entry.agent == self._agent:
                self._give_up(entry.lock_id)

    def _note_holder(self) -> None:
        with contextlib.suppress(OSError):
            entries = self._metastore.entries(self._database, self._table)
            self._holder = ", ".join(f"{each.owner} ({each.agent})" for each in entries if each.is_acquired)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container whose user has no name
        return str(os.getuid())


def _addresses(uris: str) -> list[tuple[str, int]]:
    found = []
    for uri in filter(None, (each.strip() for each in uris.split(","))):
        try:
            parts = urlsplit(uri)
            host, port = parts.hostname, parts.port
        except ValueError:
            host, port = None, None
        if host is None or parts.scheme != "thrift":
            raise ConfigError(f"hoodie.write.lock.hivemetastore.uris has {uri!r}; a metastore is thrift://host:port.")
        found.append((host, port or _PORT))
    if not found:
        raise ConfigError(
            "A lock in a Hive metastore needs hoodie.write.lock.hivemetastore.uris=thrift://host:port, or a "
            f"hive-site.xml with {_URIS_KEY} in the folder that HIVE_CONF_DIR names."
        )
    return found


def _hive_site() -> Mapping[str, str]:
    """The properties of ``hive-site.xml``; none where there is no such file."""
    folder = os.environ.get("HIVE_CONF_DIR")
    path = Path(folder, "hive-site.xml") if folder else None
    if path is None or not path.is_file():
        return {}
    try:
        root = ElementTree.parse(path).getroot()
    except ElementTree.ParseError as error:
        raise ConfigError(f"{path} is no XML: {error}.") from error
    return {(each.findtext("name") or "").strip(): (each.findtext("value") or "").strip() for each in root}
