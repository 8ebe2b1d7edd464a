"""The table lock of writers and services.

::

    LockOptions ─► machine lock (local tables) ─► provider lock, with retries ─► HeldLock
                                                                                  │
                                    require(): check right before a change becomes visible

The machine lock is acquired first, so that processes of one machine queue there and not at the provider. The retries
follow Apache Hudi's ``LockManager`` (1.2.0): an attempt waits up to ``wait_time_ms``; up to ``client.num_retries``
further attempts follow, with a pause between them.

A lock is that of the process that acquired it. A child of ``fork`` has a copy of its parent's objects, but not the
threads that renew the lease: it neither relies on the lock nor releases it.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

from hudi_fast.config.lock_options import LockOptions
from hudi_fast.errors import LockError, LockTimeoutError
from hudi_fast.events import warn
from hudi_fast.locking.machine import machine_lock
from hudi_fast.locking.open_provider import open_provider
from hudi_fast.locking.provider import LockProvider
from hudi_fast.storage.base import Storage

__all__ = ["HeldLock", "Lock", "no_lock", "table_lock", "writer_turn"]


class HeldLock:
    """A held table lock.

    Args:
        provider: the provider that holds the lock; None for a machine lock, which cannot be lost.
    """

    def __init__(self, provider: LockProvider | None = None) -> None:
        self._provider = provider
        self._ended = False
        self._process = os.getpid()
        self._callbacks: list[Callable[[], None]] = []

    def before_end(self, act: Callable[[], None]) -> None:
        """Register a callback that runs right before the lock is released."""
        if act not in self._callbacks:
            self._callbacks.append(act)

    @property
    def is_inherited(self) -> bool:
        """Whether this process is a child of ``fork``, and the lock is that of its parent."""
        return self._process != os.getpid()

    def end(self) -> None:
        """Run the registered callbacks and mark the lock as released."""
        try:
            for act in () if self.is_inherited else self._callbacks:
                act()
        finally:
            self._ended = True

    def require(self) -> None:
        """Check that the lock is still held, right before a change becomes visible.

        Raises:
            LockError: the lock was lost, or may be lost before the change is visible. The caller must not publish, and
                must not touch files that another writer may have taken over.
        """
        if self.is_inherited:
            raise LockError(
                f"The table lock is held by process {self._process}, from which this one was forked. Nothing was "
                "published. Begin the write in this process: call hudi_fast.write or HudiTable.open here."
            )
        if self._ended:
            raise LockError("The table lock was already released; work under it cannot continue.")
        if self._provider is not None:
            self._provider.require_held()


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
    with contextlib.ExitStack() as held:
        held.enter_context(machine_lock(storage, _patience(options)))
        provider = held.enter_context(_provided(storage, options)) if options.is_distributed else None
        ours = HeldLock(provider)
        held.callback(ours.end)
        yield ours


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


@contextlib.contextmanager
def _provided(storage: Storage, options: LockOptions) -> Iterator[LockProvider]:
    provider, process = open_provider(storage, options), os.getpid()
    try:
        _acquire(provider, storage, options)
        try:
            yield provider
        finally:
            if process == os.getpid():
                _release(provider, storage)
    finally:
        if process == os.getpid():
            provider.close()


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
        f"Unable to acquire the lock of {storage.uri} by {options.provider_class} within "
        f"{time.monotonic() - started:.1f} s and {options.client_retries + 1} attempts. Current lock owner "
        f"information: {provider.holder or 'unknown'}.{_reason(failure)} Wait for the owner, "
        "or raise hoodie.write.lock.wait_time_ms or hoodie.write.lock.client.num_retries."
    ) from failure


def _reason(failure: OSError | None) -> str:
    return "" if failure is None else f" The last attempt failed: {str(failure).rstrip('.')}."


def _release(provider: LockProvider, storage: Storage) -> None:
    """Release the lock; a failure is only a warning, because the work under the lock is complete."""
    try:
        provider.unlock()
    except OSError as error:
        warn(f"The lock of {storage.uri} could not be released: {error}. Other writers wait until its lease ends.")


def _patience(options: LockOptions) -> float:
    """Seconds to wait for the machine lock; its holder may itself be waiting for the provider."""
    if not options.is_distributed:
        return options.wait_ms / 1000
    return (options.wait_ms + options.client_retry_wait_ms) * (options.client_retries + 1) / 1000
