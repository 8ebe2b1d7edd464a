"""Credentials of a lock in Azure Blob Storage that are not those of the table.

::

    hoodie.write.lock.azure... ─► one way to sign in, in Apache Hudi's order ─► a storage of the lock's own

Source: ``AzureStorageLockClient``, Hudi 1.2.0.
"""

from __future__ import annotations

from hudi_fast.config.lock_options import LockOptions
from hudi_fast.errors import ConfigError
from hudi_fast.storage.base import Storage

__all__ = ["azure_sign_in", "lock_storage"]

_SCHEMES = ("abfs", "abfss", "wasb", "wasbs", "az")
_SECRET = ("key", "sas", "token", "tenant", "client", "secret")
_L = "hoodie.write.lock.azure."


def lock_storage(storage: Storage, options: LockOptions) -> Storage:
    """The table's storage as its lock is to reach it: the same, unless it is Azure's and the lock has credentials.

    Args:
        storage: the table's.
        options: of the lock.

    Raises:
        ConfigError: the credentials are incomplete; the message has none of them.
    """
    own = azure_sign_in(options)
    if not own or storage.uri.partition("://")[0] not in _SCHEMES:
        return storage
    kept = {name: value for name, value in storage.options.items() if not any(part in name.lower() for part in _SECRET)}
    return Storage(storage.uri, {**kept, **own})


def azure_sign_in(options: LockOptions) -> dict[str, str]:
    """Storage options of the first way to sign in that is given; empty for none.

    Args:
        options: of the lock.

    Raises:
        ConfigError: a connection string without credentials, or a client that is not told in full.
    """
    if options.azure_connection_string:
        return _of_connection(options.azure_connection_string)
    if options.azure_sas_token:
        return {"sas_token": options.azure_sas_token.removeprefix("?")}
    if options.azure_managed_identity:
        return {"client_id": options.azure_managed_identity}
    client = {
        "tenant_id": options.azure_tenant,
        "client_id": options.azure_client,
        "client_secret": options.azure_client_secret,
    }
    given = {name: value for name, value in client.items() if value}
    if given and len(given) < len(client):
        raise ConfigError(f"Of {_L}client.tenant.id, {_L}client.id and {_L}client.secret give all or none.")
    return given


def _of_connection(text: str) -> dict[str, str]:
    parts = dict(part.strip().partition("=")[::2] for part in text.split(";") if part.strip())
    key, signature = parts.get("AccountKey"), parts.get("SharedAccessSignature")
    if not key and not signature:
        raise ConfigError(f"{_L}connection.string has neither AccountKey nor SharedAccessSignature.")
    said = {"account_key": key} if key else {"sas_token": str(signature).removeprefix("?")}
    account, endpoint = parts.get("AccountName", ""), parts.get("BlobEndpoint", "").rstrip("/")
    if account and endpoint.endswith(f"/{account}"):  # an emulator's, where the account is a folder
        said["endpoint_url"] = endpoint.removesuffix(f"/{account}")
    return said
