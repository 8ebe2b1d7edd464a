"""Construction of lock providers from options; imports only the packages of the selected provider."""

from __future__ import annotations

from collections.abc import Callable

from hudi_fast.config.lock_options import LockOptions
from hudi_fast.errors import UnsupportedFeatureError
from hudi_fast.locking.provider import LockProvider
from hudi_fast.storage.base import Storage
from hudi_fast.storage.extras import import_extra

__all__ = ["open_provider", "provider_of"]


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
