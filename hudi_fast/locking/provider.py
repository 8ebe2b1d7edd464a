"""Protocol of lock providers: one acquisition of a lock that writers on several machines share.

A provider is opened for one acquisition, tried until it has the lock or the caller gives up, and closed. While it holds
the lock, a thread of the provider renews the lease. The lease is measured with a monotonic clock from before the
request that acquired it, so a provider assumes the end of its lease too early rather than too late.
"""

from __future__ import annotations

from typing import Protocol

__all__ = ["LockProvider"]


class LockProvider(Protocol):
    """One lock of one table. Not thread-safe, except for its own renewal thread."""

    def try_lock(self, seconds: float) -> bool:
        """Try to acquire the lock for at most ``seconds``; False if other holders kept it.

        Raises:
            LockError: a permanent failure: invalid settings or no access.
            OSError: a transient failure; the caller may try again.
        """
        ...

    def require_held(self) -> None:
        """Check that the lock is still held, with a request to the lock server where needed.

        Called right before a change becomes visible, and after it if :meth:`is_certain` is false. A successful check
        also proves that no other writer has held the lock since the last check.

        Raises:
            LockError: the lock was lost, or may be lost before the change is visible.
        """
        ...

    def is_certain(self) -> bool:
        """Whether the lock was provably held up to now, by the monotonic clock alone; sends no request.

        False only means that :meth:`require_held` has to ask.
        """
        ...

    def unlock(self) -> None:
        """Release the lock; a lock that another holder has taken over is not touched.

        Raises:
            OSError: the release failed; the lock ends with its lease.
        """
        ...

    def close(self) -> None:
        """Stop threads and connections and release a held lock. Never fails."""
        ...

    @property
    def holder(self) -> str:
        """Description of the holder seen by the last attempt; "" if unknown."""
        ...
