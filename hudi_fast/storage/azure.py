"""Conditional writes on Azure Blob Storage, through azure-storage-blob.

========  ======================  =========================================================
write     header                  responses
========  ======================  =========================================================
create    ``If-None-Match: *``    201 created, 409 ``BlobAlreadyExists`` or 412 it exists
replace   ``If-Match: <ETag>``    201 replaced, 412 it has changed, 404 it does not exist
========  ======================  =========================================================

Requests use the blob endpoint for all paths: both endpoints have the same files. In accounts with a hierarchical
namespace, pyarrow deletes, because it handles non-empty folders. The client does not retry.

Source: Azure Storage, "Specifying conditional headers"; AzureStorageLockClient, Hudi 1.2.0.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import urlsplit

import pyarrow.fs as pafs

from hudi_fast.errors import ConfigError
from hudi_fast.storage.conditional import ThrottledError, Versioned
from hudi_fast.storage.extras import import_extra
from hudi_fast.storage.object_store import Listed
from hudi_fast.storage.option_names import checked_options
from hudi_fast.storage.refusals import NO_ANSWER, refusal_code, refused

__all__ = ["AzureOptions", "AzureStore"]

_MARK = "hudi_fast_mark"
_THREADS = 16
_EXISTS = frozenset({"BlobAlreadyExists", "ConditionNotMet", "TargetConditionNotMet"})
_NAMES = {
    "account_name": "azure_storage_account_name account",
    "account_key": "azure_storage_account_key azure_storage_access_key",
    "sas_token": "azure_storage_sas_token hoodie.write.lock.azure.sas.token",
    "tenant_id": "azure_tenant_id azure_storage_tenant_id hoodie.write.lock.azure.client.tenant.id",
    "client_id": "azure_client_id azure_storage_client_id hoodie.write.lock.azure.client.id",
    "client_secret": "azure_client_secret azure_storage_client_secret hoodie.write.lock.azure.client.secret",
    "endpoint_url": "endpoint azure_storage_endpoint",
    "timeout": "request_timeout",
}

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class AzureOptions:
    """Connection options of Azure Blob Storage; Azure's default credentials replace missing ones.

    Attributes:
        account_name: storage account.
        account_key: its key.
        sas_token: a shared access signature, with or without the leading ``?``.
        tenant_id: tenant of an application, with ``client_id`` and ``client_secret``.
        client_id: the application's id.
        client_secret: its secret.
        endpoint_url: another server, such as an emulator, without the account.
        timeout: seconds to wait for a response.
    """

    account_name: str
    account_key: str | None = field(default=None, repr=False)
    sas_token: str | None = field(default=None, repr=False)
    tenant_id: str | None = None
    client_id: str | None = None
    client_secret: str | None = field(default=None, repr=False)
    endpoint_url: str | None = None
    timeout: float = 20.0

    @classmethod
    def of(cls, options: Mapping[str, Any], account: str | None) -> AzureOptions:
        """Parse storage options.

        Args:
            options: as given by the user.
            account: the account in the path.

        Raises:
            ConfigError: an option is unknown or invalid, or no account is given; the message does not contain secrets.
        """
        given: dict[str, Any] = dict(checked_options(options, _NAMES, "abfs://"))
        given["account_name"] = account or given.get("account_name")
        if not given["account_name"]:
            raise ConfigError(
                "The storage account is missing: use abfs://container@account.dfs.core.windows.net/folder, or set the "
                "storage option account_name."
            )
        if "account_key" in given and "sas_token" in given:
            raise ConfigError("Set only one of the storage options account_key and sas_token.")
        try:
            given["timeout"] = float(given.get("timeout", "20"))
        except ValueError:
            raise ConfigError("The storage option timeout must be a number of seconds.") from None
        return cls(**given)

    def file_system(self) -> pafs.FileSystem:
        """The file system for reads and streams."""
        more: dict[str, Any] = {}
        if self.endpoint_url:
            endpoint = urlsplit(self.endpoint_url)
            for kind in ("blob", "dfs"):
                more |= {f"{kind}_storage_authority": endpoint.netloc, f"{kind}_storage_scheme": endpoint.scheme}
        secrets = {
            "account_key": self.account_key,
            "sas_token": self.sas_token and f"?{self.sas_token.removeprefix('?')}",  # appended to URLs as it is
            "tenant_id": self.tenant_id,
            "client_id": self.client_id,
            "client_secret": self.client_secret,
        }
        more |= {name: value for name, value in secrets.items() if value is not None}
        return pafs.AzureFileSystem(self.account_name, **more)

    def client(self) -> Any:
        """The client for conditional writes.

        Raises:
            ConfigError: azure-storage-blob is not installed, or azure-identity where it is required.
        """
        blob = import_extra("azure.storage.blob", "azure", "Writing to Azure Blob Storage")
        credential: Any = self.account_key or self.sas_token
        if credential is None:
            identity = import_extra("azure.identity", "azure", "Writing to Azure Blob Storage")
            if self.client_secret:
                credential = identity.ClientSecretCredential(self.tenant_id, self.client_id, self.client_secret)
            else:
                credential = identity.DefaultAzureCredential(managed_identity_client_id=self.client_id)
        url = f"https://{self.account_name}.blob.core.windows.net"
        if self.endpoint_url:
            url = f"{self.endpoint_url.rstrip('/')}/{self.account_name}"
        return blob.BlobServiceClient(
            url,
            credential=credential,
            retry_total=0,
            connection_timeout=self.timeout,
            read_timeout=self.timeout,
        )


class AzureStore:
    """An :class:`~hudi_fast.storage.object_store.ObjectStore`; connects on first use.

    ``files`` is its file system, which knows whether the account has real folders.
    """

    def __init__(self, options: AzureOptions, files: pafs.FileSystem) -> None:
        self._options = options
        self._files = files
        self._made: Any = None
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._options!r})"

    def read(self, name: str) -> Versioned | None:
        """See ``ConditionalStore``."""

        def request() -> Versioned:
            answer = self._blob(name).download_blob()
            return Versioned(bytes(answer.readall()), _quoted(answer.properties.etag))

        return self._call("read", name, request, ("BlobNotFound",))

    def create(self, name: str, data: bytes, mark: str = "") -> str | None:
        """See ``ObjectStore``."""
        condition = import_extra("azure.core", "azure", "Azure").MatchConditions.IfMissing
        metadata = {_MARK: mark} if mark else None

        def request() -> str:
            return self._upload(name, data, match_condition=condition, metadata=metadata)

        return self._call("write", name, request, tuple(_EXISTS))

    def replace(self, name: str, data: bytes, version: str) -> str | None:
        """See ``ConditionalStore``."""
        condition = import_extra("azure.core", "azure", "Azure").MatchConditions.IfNotModified

        def request() -> str:
            return self._upload(name, data, match_condition=condition, etag=version)

        return self._call("write", name, request, (*_EXISTS, "BlobNotFound"))

    def mark_of(self, name: str) -> str | None:
        """See ``ObjectStore``."""

        def request() -> str:
            return str((self._blob(name).get_blob_properties().metadata or {}).get(_MARK, ""))

        return self._call("look at", name, request, ("BlobNotFound",))

    def has_folder(self, name: str) -> bool:
        """See ``ObjectStore``; content counts, because an account with real folders creates those of a blob."""
        return bool(self._files.get_file_info(name).type != pafs.FileType.NotFound)

    def drop_folder(self, name: str) -> None:
        """See ``ObjectStore``."""

    def put(self, name: str, data: bytes) -> None:
        """See ``ObjectStore``."""
        if name.endswith("/") and not self._options.sas_token:
            self._files.create_dir(name.rstrip("/"), recursive=True)
            return
        # pyarrow looks at the container before it creates a folder; no signature of a container permits that.
        folder = {"metadata": {"hdi_isfolder": "true"}} if name.endswith("/") else {}
        self._call("write", name, lambda: self._upload(name.rstrip("/"), data, **folder), ())

    def stream(self, name: str) -> None:
        """See ``ObjectStore``."""

    def listed(self, name: str, recursive: bool) -> list[Listed] | None:
        """See ``ObjectStore``."""
        return None

    def delete(self, names: Sequence[str]) -> None:
        """See ``ObjectStore``."""

        def one(name: str) -> None:
            self._call("delete", name, lambda: self._blob(name).delete_blob(), ("BlobNotFound",))

        files = [name for name in names if not name.endswith("/")]
        with ThreadPoolExecutor(min(_THREADS, len(files) or 1)) as pool:
            list(pool.map(one, files))
        for folder in (name.rstrip("/") for name in names if name.endswith("/")):
            if self._files.get_file_info(folder).type == pafs.FileType.Directory:
                self._files.delete_dir(folder)

    def _upload(self, name: str, data: bytes, **condition: Any) -> str:
        return _quoted(self._blob(name).upload_blob(data, overwrite=True, **condition)["etag"])

    def _blob(self, name: str) -> Any:
        container, _, key = name.partition("/")
        with self._lock:
            if self._made is None:
                self._made = self._options.client()
            return self._made.get_blob_client(container, key)

    def _call(self, what: str, name: str, request: Callable[[], Result], none_codes: Sequence[str]) -> Result | None:
        """The result of a request; None for errors with one of ``none_codes``."""
        core = import_extra("azure.core.exceptions", "azure", "Azure")
        try:
            return request()
        except core.AzureError as error:
            status, code = int(getattr(error, "status_code", None) or 0), str(getattr(error, "error_code", "") or "")
            if code in none_codes or (not code and status == 404 and "BlobNotFound" in none_codes):
                return None
            if status == 412 and "ConditionNotMet" in none_codes:
                return None
            text = f"Azure Blob Storage did not {what} {name}: {code or type(error).__name__}"
            if status == 429 or code == "ServerBusy":
                raise ThrottledError(text) from None
            failed = "Unauthorized" if isinstance(error, core.ClientAuthenticationError) else ""
            refusal = refusal_code(code) or refusal_code(failed) or refusal_code(str(status))
            if refusal is not None:
                raise refused(what, f"abfs://{name}", refusal, code) from None
            raise OSError(text if status else text + NO_ANSWER) from None


def _quoted(etag: Any) -> str:
    """An ETag in the form of headers; some calls return it unquoted."""
    text = str(etag).strip('"')
    return f'"{text}"'
