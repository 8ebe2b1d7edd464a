"""Separate credentials for a lock in Azure Blob Storage.

::

    hoodie.write.lock.azure... ─► first credentials given, in Apache Hudi's order ─► storage for the lock

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
    """The storage for the lock: the table's storage, or one with the lock's own credentials in Azure.

    Raises:
        ConfigError: the credentials are incomplete; the message does not contain them.
    """
    own = azure_sign_in(options)
    if not own or storage.uri.partition("://")[0] not in _SCHEMES:
        return storage
    kept = {name: value for name, value in storage.options.items() if not any(part in name.lower() for part in _SECRET)}
    return Storage(storage.uri, {**kept, **own})


def azure_sign_in(options: LockOptions) -> dict[str, str]:
    """Storage options of the first credentials given; empty without credentials.

    Raises:
        ConfigError: a connection string without credentials, or an incomplete client secret.
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
        raise ConfigError(f"Give all of {_L}client.tenant.id, {_L}client.id and {_L}client.secret, or none.")
    return given


def _of_connection(text: str) -> dict[str, str]:
    parts = dict(part.strip().partition("=")[::2] for part in text.split(";") if part.strip())
    key, signature = parts.get("AccountKey"), parts.get("SharedAccessSignature")
    if not key and not signature:
        raise ConfigError(f"{_L}connection.string has neither AccountKey nor SharedAccessSignature.")
    found = {"account_key": key} if key else {"sas_token": str(signature).removeprefix("?")}
    account, endpoint = parts.get("AccountName", ""), parts.get("BlobEndpoint", "").rstrip("/")
    if account and endpoint.endswith(f"/{account}"):  # an emulator, where the account is a folder
        found["endpoint_url"] = endpoint.removesuffix(f"/{account}")
    return found
