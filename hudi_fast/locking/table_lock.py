"""The table lock of writers and services.

::

    LockOptions ─► lock of the machine ─► lock of the provider, with retries ─► HeldLock
                                                                                 │ require()  before a change
                                                                                 │ require_to_complete()
                                                                                 │     right before it becomes visible
                                                                                 │ confirm()  right after it
                                                                                 └ take_again()  after a loss

The machine lock is acquired first, so that processes of one machine queue there and not at the provider. The retries
follow Apache Hudi's ``LockManager`` (1.2.0): an attempt waits up to ``wait_time_ms``; up to ``client.num_retries``
further attempts follow, with a pause between them.

In an object store a provider is used even if the options name none: the lock in storage. To send few requests, changes
that are not visible yet rely on its lease; only changes that complete an instant send a request.

A lock belongs to the process that acquired it. A child of ``fork`` has a copy of its parent's objects, but not the
threads that renew the lease: it neither relies on the lock nor releases it.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial

from hudi_fast.config.concurrency_options import LockOptions
from hudi_fast.errors import LockError, LockTimeoutError
from hudi_fast.events import warn
from hudi_fast.locking.in_storage import StorageLock
from hudi_fast.locking.machine import MachineTurn, machine_lock
from hudi_fast.locking.provider import LockProvider, open_provider, provider_of
from hudi_fast.storage.base import Storage

__all__ = ["HeldLock", "Lock", "no_lock", "table_lock", "writer_turn"]


class HeldLock:
    """A held table lock.

    Args:
        acquire: acquires the lock of the provider and returns the provider; None without a provider: the lock of the
            machine cannot be lost.
        asks_often: whether the provider is asked before every change, and not only before completing an instant.
        is_exclusive: whether the lock excludes all writers that follow the rules of the storage.
        table: the table, for messages.
    """

    def __init__(
        self,
        acquire: Callable[[], LockProvider] | None = None,
        asks_often: bool = True,
        is_exclusive: bool = True,
        table: str = "",
    ) -> None:
        self.is_exclusive = is_exclusive
        self._table = table
        self._acquire = acquire
        self._asks_often = asks_often
        self._process = os.getpid()
        self._provider = None if acquire is None else acquire()
        self._ended = False
        self._callbacks: list[Callable[[], None]] = []

    def before_end(self, act: Callable[[], None]) -> None:
        """Register a callback that runs right before the lock is released."""
        if act not in self._callbacks:
            self._callbacks.append(act)

    @property
    def is_inherited(self) -> bool:
        """Whether this process is a child of ``fork``, and the lock belongs to its parent."""
        return self._process != os.getpid()

    def end(self) -> None:
        """Run the registered callbacks and mark the lock as released."""
        callbacks, self._callbacks = self._callbacks, []  # they refer to this lock
        try:
            for act in () if self.is_inherited else callbacks:
                act()
        finally:
            self._ended = True

    def require(self) -> None:
        """Check that the lock is still held, right before a change.

        Raises:
            LockError: the lock was lost, or may be lost before the change is made. The caller must not publish, and
                must not touch files that another writer may have taken over.
        """
        self._require_not_ended()
        if self._provider is not None and (self._asks_often or not self._provider.is_certain()):
            self._provider.require_held()

    def require_to_complete(self) -> None:
        """Check in the strictest way that the lock is still held, right before a change becomes visible.

        Raises:
            LockError: as :meth:`require`.
        """
        self._require_not_ended()
        if self._provider is not None:
            self._provider.require_held()

    def confirm(self) -> None:
        """Check that no other writer has held the lock since it was acquired, right after a change became visible.

        Raises:
            LockError: another writer has held it, or may have.
        """
        self._require_not_inherited()
        if self._provider is not None and not self._provider.is_certain():
            self._provider.require_held()

    def take_again(self) -> None:
        """Acquire the lock again after it was lost.

        Raises:
            LockError: it cannot be acquired.
        """
        self._require_not_inherited()
        if self._acquire is not None:
            self.release()
            self._provider = self._acquire()

    def release(self) -> None:
        """Release the lock of the provider; a failure is only a warning, because the work under it is complete."""
        provider, self._provider = self._provider, None
        if provider is None or self.is_inherited:
            return
        try:
            provider.unlock()
        except OSError as error:
            warn(f"The lock of {self._table} could not be released: {error}. Other writers wait until its lease ends.")
        finally:
            provider.close()

    def _require_not_inherited(self) -> None:
        if self.is_inherited:
            raise LockError(
                f"The table lock is held by process {self._process}, from which this one was forked. Nothing was "
                "published. Begin the write in this process: call hudi_fast.write or HudiTable.open here."
            )

    def _require_not_ended(self) -> None:
        self._require_not_inherited()
        if self._ended:
            raise LockError("The table lock was already released; work under it cannot continue.")


Lock = Callable[[], AbstractContextManager[HeldLock]]
"""Acquires the table lock for the duration of a ``with`` block."""


def no_lock() -> AbstractContextManager[HeldLock]:
    """A no-op lock for callers that already hold the table lock, or whose table no other process can see."""
    return contextlib.nullcontext(HeldLock())


@contextlib.contextmanager
def table_lock(storage: Storage, options: LockOptions) -> Iterator[HeldLock]:
    """Hold the table lock for the duration of the block.

    Raises:
        ConfigError: the provider lacks a setting or a package.
        LockError: the lock cannot be acquired.
        LockTimeoutError: other holders kept the lock for the whole wait.
        TableNotFoundError: the table does not exist or was deleted during the wait.
    """
    kind = provider_of(storage, options)
    with machine_lock(storage, _patience(options, kind), required=kind is None) as turn:
        acquire = None if kind is None else partial(_acquired, storage, options, turn)
        held = HeldLock(acquire, options.is_distributed, storage.is_local or kind is not None, storage.uri)
        try:
            yield held
        finally:
            try:
                held.end()
            finally:
                held.release()


@contextlib.contextmanager
def writer_turn(storage: Storage, options: LockOptions) -> Iterator[Lock]:
    """Yield the lock for the locked sections of a write.

    With a single writer, the table lock is held for the whole block, and the sections reuse it. With concurrent
    writers, each section acquires the lock again, and other writers proceed in between.

    Raises:
        HudiError: see :func:`table_lock`.
    """
    if options.is_shared:
        yield lambda: table_lock(storage, options)
        return
    with table_lock(storage, options) as held:
        yield lambda: contextlib.nullcontext(held)


def _acquired(storage: Storage, options: LockOptions, turn: MachineTurn) -> LockProvider:
    provider = open_provider(storage, options)
    try:
        if isinstance(provider, StorageLock):
            provider.ended = turn.ended
            turn.note(provider.owner, *turn.ended)
        _acquire(provider, storage, options)
        if isinstance(provider, StorageLock):
            turn.note(provider.owner)
    except BaseException:
        provider.close()
        raise
    return provider


def _acquire(provider: LockProvider, storage: Storage, options: LockOptions) -> None:
    started, failure = time.monotonic(), None
    for attempt in range(options.client_retries + 1):
        if attempt:
            time.sleep(options.client_retry_wait_ms / 1000)
        try:
            if provider.try_lock(options.wait_ms / 1000):
                return
        except OSError as error:
            failure = error
    raise LockTimeoutError(
        f"Unable to acquire the lock of {storage.uri} by {options.provider_class or 'the lock in storage'} within "
        f"{time.monotonic() - started:.1f} s and {options.client_retries + 1} attempts. Current lock owner "
        f"information: {provider.holder or 'unknown'}.{_reason(failure)} Wait for the owner, "
        "or raise hoodie.write.lock.wait_time_ms or hoodie.write.lock.client.num_retries."
    ) from failure


def _reason(failure: OSError | None) -> str:
    return "" if failure is None else f" The last attempt failed: {str(failure).rstrip('.')}."


def _patience(options: LockOptions, kind: str | None) -> float:
    """Seconds to wait for the machine lock; its holder may itself be waiting for the provider."""
    if kind is None:
        return options.wait_ms / 1000
    return (options.wait_ms + options.client_retry_wait_ms) * (options.client_retries + 1) / 1000
