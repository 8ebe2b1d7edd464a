"""Lock providers: their protocol, and their construction from options.

Protocol of lock providers: one acquisition of a lock that writers on several machines share.

A provider is opened for one acquisition, tried until it has the lock or the caller gives up, and closed. While it holds
the lock, a thread of the provider renews the lease. The lease is measured with a monotonic clock from before the
request that acquired it, so a provider assumes the end of its lease too early rather than too late.

Lock names derived from the base path of a table: 16 hexadecimal digits.

::

    base path ─► s3a:// to s3:// ─► UTF-8 ─► xxHash64 with Hudi's seed ─► upper case, most significant digit first

The path is not normalised further: ``/t``, ``/t/`` and ``file:///t`` have different locks.

Source: ``ZookeeperBasedImplicitBasePathLockProvider`` (Apache Hudi 1.2.0).

Construction of lock providers from options; imports only the packages of the selected provider.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Protocol

import numpy as np

from hudi_fast.config.concurrency_options import LockOptions
from hudi_fast.errors import UnsupportedFeatureError
from hudi_fast.kernels.hashes import xx_hash64
from hudi_fast.storage.base import Storage
from hudi_fast.storage.extras import import_extra

__all__ = ["LockProvider", "open_provider", "path_hash", "provider_of"]


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


_SEED = 0xFFFF_FFFF_DABA_DABA
_S3A = re.compile("^s3a://", re.IGNORECASE)


def path_hash(base_path: str) -> str:
    """The lock name of a table: 16 upper-case hexadecimal digits.

    Args:
        base_path: base path of the table; all writers must spell it alike.
    """
    data = np.frombuffer(_S3A.sub("s3://", base_path).encode(), np.uint8)
    out = np.empty(1, np.uint64)
    xx_hash64(np.array([0, data.size], np.int32), data, np.uint64(_SEED), out)
    return f"{int(out[0]):016X}"


def provider_of(storage: Storage, options: LockOptions) -> str | None:
    """Kind of the provider that writers of a table share; None = they use the lock of the machine only.

    If the options name no provider, object stores use the lock in storage: they have conditional writes, and other
    machines can reach them.
    """
    if options.is_distributed:
        return options.provider
    return "storage" if not storage.has_folders and not options.names_provider else None


def open_provider(storage: Storage, options: LockOptions) -> LockProvider:
    """Open the provider of the options or of the storage; it does not hold the lock yet.

    Raises:
        ConfigError: a setting or a package is missing.
        UnsupportedFeatureError: the provider does not support this storage.
    """
    opener = _OPENERS.get(provider_of(storage, options) or "")
    if opener is None:
        raise UnsupportedFeatureError(f"hoodie.write.lock.provider={options.provider_class} is not supported.")
    return opener(storage, options)


def _dynamodb(storage: Storage, options: LockOptions) -> LockProvider:
    from hudi_fast.locking.dynamodb import open_dynamodb

    return open_dynamodb(storage, options)


def _dynamodb_implicit(storage: Storage, options: LockOptions) -> LockProvider:
    from hudi_fast.locking.dynamodb import open_dynamodb_implicit

    return open_dynamodb_implicit(storage, options)


def _file_system(storage: Storage, options: LockOptions) -> LockProvider:
    from hudi_fast.locking.file_system import open_file_system_lock

    return open_file_system_lock(storage, options)


def _zookeeper(storage: Storage, options: LockOptions) -> LockProvider:
    import_extra("kazoo", "zookeeper", "A lock in ZooKeeper")
    from hudi_fast.locking.zookeeper import open_zookeeper

    return open_zookeeper(storage, options)


def _zookeeper_implicit(storage: Storage, options: LockOptions) -> LockProvider:
    import_extra("kazoo", "zookeeper", "A lock in ZooKeeper")
    from hudi_fast.locking.zookeeper import open_zookeeper_implicit

    return open_zookeeper_implicit(storage, options)


def _in_storage(storage: Storage, options: LockOptions) -> LockProvider:
    from hudi_fast.locking.in_storage import open_storage_lock

    return open_storage_lock(storage, options)


def _hive_metastore(storage: Storage, options: LockOptions) -> LockProvider:
    import_extra("thriftpy2", "hive", "A lock in a Hive metastore")
    from hudi_fast.locking.hive_metastore import open_hive_metastore

    return open_hive_metastore(storage, options)


_OPENERS: dict[str, Callable[[Storage, LockOptions], LockProvider]] = {
    "file_system": _file_system,
    "storage": _in_storage,
    "dynamodb": _dynamodb,
    "dynamodb_implicit": _dynamodb_implicit,
    "zookeeper": _zookeeper,
    "zookeeper_implicit": _zookeeper_implicit,
    "hive_metastore": _hive_metastore,
}
