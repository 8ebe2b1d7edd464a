"""A process that takes a lock of this library at command: see :mod:`tests.locking.contention` for the commands.

Usage: ``python -m tests.locking.python_lock '{"uri": ..., "options": {...}, "storage_options": {...}}'``.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from hudi_fast.config.concurrency_options import LockOptions
from hudi_fast.errors import LockTimeoutError
from hudi_fast.locking.machine import machine_lock
from hudi_fast.locking.provider import LockProvider, open_provider
from hudi_fast.storage.base import Storage
from tests.locking.contention import critical_section

TRY_SECONDS = 30.0
PAUSE_SECONDS = 0.002
PATIENCE_SECONDS = 300.0


class MachineLock:
    """The lock of this machine in the form of a provider; it cannot be lost."""

    def __init__(self, table: Storage) -> None:
        self._table = table
        self._held = contextlib.ExitStack()
        self.holder = ""

    def try_lock(self, seconds: float) -> bool:
        """Take the lock within so many seconds."""
        try:
            self._held.enter_context(machine_lock(self._table, seconds))
        except LockTimeoutError as error:
            self.holder = str(error)
            return False
        return True

    def require_held(self) -> None:
        """The operating system takes the lock from no process that runs."""

    def is_certain(self) -> bool:
        """It is not lost."""
        return True

    def unlock(self) -> None:
        """Give the lock up."""
        self._held.close()

    def close(self) -> None:
        """The same."""
        self._held.close()


def open_lock(table: Storage, options: LockOptions) -> LockProvider:
    """The provider that the options name; the lock of this machine where they name none for several machines."""
    return open_provider(table, options) if options.is_distributed else MachineLock(table)


class LockAtCommand:
    """One table's lock; a provider is opened for each acquisition."""

    def __init__(self, storage: Storage, options: LockOptions) -> None:
        self._storage = storage
        self._options = options
        self._provider: LockProvider | None = None

    def lock(self, seconds: str) -> str:
        """Try until so many seconds have passed."""
        if self._provider is not None:
            self._provider.close()
        self._provider = open_lock(self._storage, self._options)
        deadline = time.monotonic() + float(seconds)
        while True:
            if self._provider.try_lock(max(deadline - time.monotonic(), 0.0)):
                return "locked"
            if time.monotonic() >= deadline:
                return f"busy {' '.join(self._provider.holder.split())}"
            time.sleep(PAUSE_SECONDS)

    def held(self) -> str:
        """Whether a change may be published."""
        assert self._provider is not None
        self._provider.require_held()
        return "held"

    def unlock(self) -> str:
        """Give the lock up, and the provider with it, as a transaction does."""
        assert self._provider is not None
        try:
            self._provider.unlock()
        finally:
            self._provider.close()
            self._provider = None
        return "unlocked"

    def owner(self) -> str:
        """Who held the lock at the last try."""
        return f"owner {'' if self._provider is None else ' '.join(self._provider.holder.split())}"

    def contend(self, rounds: str, folder: str, _fresh: str = "") -> str:
        """Take the lock so many times and do what its holder alone may do."""
        for _ in range(int(rounds)):
            with self._taken() as provider:
                critical_section(Path(folder), f"python{os.getpid()}", provider.require_held)
        return f"done {rounds}"

    def leave(self) -> str:
        """Nothing is held any more."""
        if self._provider is not None:
            self._provider.close()
            self._provider = None
        return "left"

    def close(self) -> str:
        """The same; the process ends."""
        self.leave()
        return "closed"

    @contextlib.contextmanager
    def _taken(self) -> Iterator[LockProvider]:
        provider = open_lock(self._storage, self._options)
        try:
            deadline = time.monotonic() + PATIENCE_SECONDS
            while not provider.try_lock(TRY_SECONDS):
                assert time.monotonic() < deadline, f"still held by {provider.holder}"
                time.sleep(PAUSE_SECONDS)
            yield provider
            provider.unlock()
        finally:
            provider.close()


def main() -> None:
    """Answer commands until the input ends."""
    settings = json.loads(sys.argv[1])
    storage = Storage(settings["uri"], settings["storage_options"])
    peer = LockAtCommand(storage, LockOptions.from_options(settings["options"]))
    for line in sys.stdin:
        name, *arguments = line.split()
        try:
            answer = getattr(peer, name)(*arguments)
        except Exception as error:
            answer = f"error {type(error).__name__}: {' '.join(str(error).split())}"
        print(answer, flush=True)
        if name == "close":
            break
    peer.close()


if __name__ == "__main__":
    main()
