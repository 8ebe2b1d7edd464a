"""What a lock provider is: one acquisition of one lock that writers of several machines and programs share.

A provider is opened for one acquisition, tried until it has the lock or its owner gives up, and closed. It renews its
lease by itself, in a thread, for as long as it holds the lock. What it says of its lease is measured with a monotonic
clock from before the request that got it, so that it errs on the side of having lost the lock.
"""

from __future__ import annotations

from typing import Protocol

__all__ = ["LockProvider"]


class LockProvider(Protocol):
    """One lock of one table. Not thread-safe, but for the renewal that it does itself."""

    def try_lock(self, seconds: float) -> bool:
        """Wait at most so long for the lock; False when others held it all that time.

        Raises:
            LockError: the lock cannot be asked for at all: wrong settings, no access. Trying again is no use.
            OSError: it could not be asked for this time.
        """
        ...

    def require_held(self) -> None:
        """Make sure, by asking whoever keeps the lock where that is needed, that nobody else can have it by now.

        Called right before a change becomes visible.

        Raises:
            LockError: the lock was lost, or may be lost before the change is visible.
        """
        ...

    def unlock(self) -> None:
        """Give the lock up; what is not ours (any more) stays untouched.

        Raises:
            OSError: that could not be done; the lock goes when its lease ends.
        """
        ...

    def close(self) -> None:
        """End threads and connections; a lock that is still held is given up. Never fails."""
        ...

    @property
    def holder(self) -> str:
        """What is known of who held the lock at the last try; empty for nothing."""
        ...
