"""The table's lock, as writers and services take it.

::

    LockOptions ─► this machine's lock (local tables) ─► the provider's, tried and tried again ─► HeldLock
                                                                                  │
                                  require(): still ours, right before a change becomes visible

The machine's lock comes first, so that processes of one machine queue there and not at the provider. The loop is
Apache Hudi's (``LockManager``, 1.2.0): a try waits up to ``wait_time_ms``, and there are ``client.num_retries`` more of
them with a pause between.
"""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

from hudi_fast.config.lock_options import LockOptions
from hudi_fast.errors import HudiWarning, LockError, LockTimeoutError
from hudi_fast.locking.machine import machine_lock
from hudi_fast.locking.open_provider import open_provider
from hudi_fast.locking.provider import LockProvider
from hudi_fast.storage.base import Storage

__all__ = ["HeldLock", "Lock", "no_lock", "table_lock", "writer_turn"]


class HeldLock:
    """The table's lock while it is held.

    Args:
        provider: the provider that has it; None where the machine's lock is all there is: the operating system does not
            take that away.
    """

    def __init__(self, provider: LockProvider | None = None) -> None:
        self._provider = provider
        self._ended = False
        self._last_acts: list[Callable[[], None]] = []

    def before_end(self, act: Callable[[], None]) -> None:
        """Have something done right before the lock is given up."""
        if act not in self._last_acts:
            self._last_acts.append(act)

    def end(self) -> None:
        """Do what is to be done before; from now on the lock is not held any more."""
        try:
            for act in self._last_acts:
                act()
        finally:
            self._ended = True

    def require(self) -> None:
        """Make sure that the lock is still ours; right before a change becomes visible.

        Raises:
            LockError: it was lost, or may be lost before the change is visible. Nothing may be published, and what
                others may have taken over by now must not be touched.
        """
        if self._ended:
            raise LockError("The table's lock was given up already; what was done under it cannot go on.")
        if self._provider is not None:
            self._provider.require_held()


Lock = Callable[[], AbstractContextManager[HeldLock]]
"""Takes the table's lock for a block."""


def no_lock() -> AbstractContextManager[HeldLock]:
    """The lock of who holds the table's lock already, or has a table that nobody else knows of."""
    return contextlib.nullcontext(HeldLock())


@contextlib.contextmanager
def table_lock(storage: Storage, options: LockOptions) -> Iterator[HeldLock]:
    """Hold the table's lock for the duration of the block.

    Args:
        storage: a table that exists.
        options: which lock, and how long to wait for it.

    Raises:
        ConfigError: the provider lacks a setting or a package.
        LockError: the lock cannot be had.
        LockTimeoutError: the lock was held by others all that time.
        TableNotFoundError: there is no table (any more).
    """
    with contextlib.ExitStack() as held:
        held.enter_context(machine_lock(storage, _patience(options)))
        provider = None
        if options.is_distributed:
            provider = held.enter_context(_provided(storage, options))
        ours = HeldLock(provider)
        held.callback(ours.end)
        yield ours


@contextlib.contextmanager
def writer_turn(storage: Storage, options: LockOptions) -> Iterator[Lock]:
    """What a write takes for its sections under lock.

    Where one writer is all there may be, the lock is held from the beginning of the block to its end, and the sections
    are free. Where several may be at work, every section takes it anew, and others go on in between.

    Raises:
        HudiError: as :func:`table_lock`.
    """
    if options.is_shared:
        yield lambda: table_lock(storage, options)
        return
    with table_lock(storage, options) as held:
        yield lambda: contextlib.nullcontext(held)


@contextlib.contextmanager
def _provided(storage: Storage, options: LockOptions) -> Iterator[LockProvider]:
    provider = open_provider(storage, options)
    try:
        _acquire(provider, storage, options)
        try:
            yield provider
        finally:
            _release(provider, storage)
    finally:
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
        f"{time.monotonic() - started:.1f} s and {options.client_retries + 1} tries. Current lock owner information: "
        f"{provider.holder or 'unknown'}.{_reason(failure)} Wait for the owner, "
        "or raise hoodie.write.lock.wait_time_ms or hoodie.write.lock.client.num_retries."
    ) from failure


def _reason(failure: OSError | None) -> str:
    return "" if failure is None else f" The last try failed: {str(failure).rstrip('.')}."


def _release(provider: LockProvider, storage: Storage) -> None:
    """What was done under the lock is done, whatever becomes of the lock."""
    try:
        provider.unlock()
    except OSError as error:
        warnings.warn(
            f"The lock of {storage.uri} could not be given up: {error}. Others wait until its lease ends.",
            HudiWarning,
            stacklevel=2,
        )


def _patience(options: LockOptions) -> float:
    """Seconds to queue behind others of this machine, who may queue at the provider in their turn."""
    if not options.is_distributed:
        return options.wait_ms / 1000
    return (options.wait_ms + options.client_retry_wait_ms) * (options.client_retries + 1) / 1000
