"""From options to a lock provider. Only the packages of the provider that is asked for are imported."""

from __future__ import annotations

from collections.abc import Callable

from hudi_fast.config.lock_options import LockOptions
from hudi_fast.errors import UnsupportedFeatureError
from hudi_fast.locking.provider import LockProvider
from hudi_fast.storage.base import Storage

__all__ = ["open_provider"]


def open_provider(storage: Storage, options: LockOptions) -> LockProvider:
    """The provider that the options name, which does not hold the lock yet.

    Args:
        storage: the table's storage.
        options: name a provider that leaves the machine.

    Raises:
        ConfigError: a setting or a package is missing.
        UnsupportedFeatureError: the provider does not do this storage.
    """
    opener = _OPENERS.get(options.provider or "")
    if opener is None:
        raise UnsupportedFeatureError(f"hoodie.write.lock.provider={options.provider_class} is not supported yet.")
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


_OPENERS: dict[str, Callable[[Storage, LockOptions], LockProvider]] = {
    "file_system": _file_system,
    "dynamodb": _dynamodb,
    "dynamodb_implicit": _dynamodb_implicit,
}
