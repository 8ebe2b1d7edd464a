"""Conditional writes on Azure Blob Storage, through azure-storage-blob.

========  ======================  =========================================================
write     header                  responses
========  ======================  =========================================================
create    ``If-None-Match: *``    201 created, 409 ``BlobAlreadyExists`` or 412 it exists
replace   ``If-Match: <ETag>``    201 replaced, 412 it has changed, 404 it does not exist
========  ======================  =========================================================

Requests use the blob endpoint for all paths: both endpoints have the same files. In accounts with a hierarchical
namespace, pyarrow deletes, because it handles non-empty folders. The client does not retry.

pyarrow's file system reads and lists. Some of its calls end the process if they get no token or cannot parse an address
(pyarrow 26). So options are checked before the file system is made, and a call that raises asks for a token first.

Source: Azure Storage, "Specifying conditional headers"; AzureStorageLockClient, Hudi 1.2.0.
"""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, TypeVar
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.fs as pafs

from hudi_fast.errors import ConfigError
from hudi_fast.storage.conditional import ThrottledError, Versioned
from hudi_fast.storage.extras import import_extra
from hudi_fast.storage.failures import NO_CREDENTIALS, refusal_code, refused
from hudi_fast.storage.forks import PerProcess, ThreadPool, new_lock
from hudi_fast.storage.option_names import TIMEOUT, checked_options, checked_url, timeout_of
from hudi_fast.storage.servers import RenewedFiles, Server
from hudi_fast.storage.stores import Listed
from hudi_fast.values import dataclass

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

_NAME = re.compile(r"[A-Za-z0-9-]+")
_TENANT = re.compile(r"[A-Za-z0-9.-]+")
_TOKEN_SECONDS = 240
"""Seconds after which a new file system asks for a token: Azure's clients renew a token in its last five minutes."""

_NO_TOKEN = "AuthenticationException"
"""Text in messages of pyarrow."""

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
    timeout: float = TIMEOUT

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
        if "endpoint_url" in given:
            given["endpoint_url"] = checked_url(given["endpoint_url"], "endpoint_url")
        given["timeout"] = timeout_of(given)
        _check_credentials(given)
        return cls(**given)

    @property
    def uses_tokens(self) -> bool:
        """Whether requests need a token from a server or a program of the machine."""
        return self.account_key is None and self.sas_token is None

    def server(self) -> Server:
        """The server of these options."""
        url = self.endpoint_url or f"https://{self.account_name}.blob.core.windows.net"
        return Server(
            "Azure Blob Storage", (url,), self.timeout, "the name of the account, and endpoint_url and the proxy if set"
        )

    def files(self) -> RenewedFiles:
        """File systems for reads and streams: the first after the server has answered, others while tokens are new."""
        if not self.uses_tokens:
            return RenewedFiles(lambda: None, lambda _: self.file_system(), self.server().require_answer)
        return RenewedFiles(
            lambda: time.monotonic() // _TOKEN_SECONDS, lambda _: self._with_token(), self.server().require_answer
        )

    def _with_token(self) -> pafs.FileSystem:
        """A file system that has a token; without one, most of its calls end the process."""
        made = self.file_system()
        try:
            made.get_file_info("hudi-fast/token")
        except (OSError, pa.ArrowException) as error:
            if _NO_TOKEN in str(error):
                raise refused("use", f"the account {self.account_name}", NO_CREDENTIALS, _TOKEN_SOURCES) from error
        return made

    def file_system(self) -> pafs.FileSystem:
        """The file system for reads and streams; see :meth:`files`."""
        more: dict[str, Any] = {}
        if self.endpoint_url:
            endpoint = urlsplit(self.endpoint_url)
            for kind in ("blob", "dfs"):
                more |= {f"{kind}_storage_authority": endpoint.netloc, f"{kind}_storage_scheme": endpoint.scheme}
        secrets = {
            "account_key": self.account_key,
            "sas_token": self.sas_token and f"?{self.sas_token.removeprefix('?')}",  # appended to URLs unchanged
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
    """An :class:`~hudi_fast.storage.stores.ObjectStore`; connects on first use.

    ``files`` has its file system, which knows whether the account has real folders.
    """

    def __init__(self, options: AzureOptions, files: RenewedFiles) -> None:
        self._options, self._host = options, options.server()
        self._files = files
        self._made: PerProcess[Any] = PerProcess(lambda client: client.close())
        self._lock = new_lock()

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
        """See ``ObjectStore``; content counts, because an account with real folders creates the folders of a blob."""
        return bool(self._files().get_file_info(name).type != pafs.FileType.NotFound)

    def drop_folder(self, name: str) -> None:
        """See ``ObjectStore``."""

    def put(self, name: str, data: bytes) -> None:
        """See ``ObjectStore``."""
        if name.endswith("/") and not self._options.sas_token:
            self._files().create_dir(name.rstrip("/"), recursive=True)
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
        with ThreadPool(min(_THREADS, len(files) or 1)) as pool:
            list(pool.map(one, files))
        for folder in (name.rstrip("/") for name in names if name.endswith("/")):
            if self._files().get_file_info(folder).type == pafs.FileType.Directory:
                self._files().delete_dir(folder)

    def _upload(self, name: str, data: bytes, **condition: Any) -> str:
        return _quoted(self._blob(name).upload_blob(data, overwrite=True, **condition)["etag"])

    def _blob(self, name: str) -> Any:
        container, _, key = name.partition("/")
        with self._lock:
            made = self._made.get() or self._made.set(self._options.client())
            return made.get_blob_client(container, key)

    def _call(self, what: str, name: str, request: Callable[[], Result], none_codes: Sequence[str]) -> Result | None:
        """The result of a request; None for errors with one of ``none_codes``."""
        core = import_extra("azure.core.exceptions", "azure", "Azure")
        try:
            found = request()
            self._host.answered()
            return found
        except core.AzureError as error:
            error.__traceback__ = None  # one of its frames holds the error, and others hold this store
            status, code = int(getattr(error, "status_code", None) or 0), str(getattr(error, "error_code", "") or "")
            if status:
                self._host.answered()
            if code in none_codes or (not code and status == 404 and "BlobNotFound" in none_codes):
                return None
            if status == 412 and "ConditionNotMet" in none_codes:
                return None
            text = f"Azure Blob Storage did not {what} {name}: {code or type(error).__name__}"
            if status == 429 or code == "ServerBusy":
                raise ThrottledError(text) from None
            failed = "Unauthorized" if isinstance(error, core.ClientAuthenticationError) else ""
            if failed and not status and self._options.uses_tokens:
                raise refused(what, f"abfs://{name}", NO_CREDENTIALS, _TOKEN_SOURCES) from None
            refusal = refusal_code(code) or refusal_code(failed) or refusal_code(str(status))
            if refusal is not None:
                raise refused(what, f"abfs://{name}", refusal, code) from None
            if not status:
                raise self._host.unreachable(f"{what} abfs://{name}", type(error).__name__) from None
            raise OSError(text) from None


_TOKEN_SOURCES = "no token came from client_id and client_secret, the environment, a managed identity or the Azure CLI"


def _check_credentials(given: Mapping[str, Any]) -> None:
    """Refuse options that make Azure's clients raise errors of their own or crash. Messages contain no secrets.

    Raises:
        ConfigError: an option is invalid, or options are incomplete.
    """
    if not _NAME.fullmatch(given["account_name"]):
        raise ConfigError(f"{given['account_name']!r} is not the name of a storage account: letters and digits.")
    if "account_key" in given:
        try:
            base64.b64decode(given["account_key"], validate=True)
        except ValueError:
            raise ConfigError("The storage option account_key must be in base64, as Azure shows it.") from None
    application = [name for name in ("tenant_id", "client_id", "client_secret") if name in given]
    if application not in ([], ["client_id"]) and len(application) < 3:
        raise ConfigError(
            f"An application of Azure needs tenant_id, client_id and client_secret; only {application} are set. A "
            "managed identity needs client_id only."
        )
    if "tenant_id" in given and not _TENANT.fullmatch(given["tenant_id"]):
        raise ConfigError("The storage option tenant_id must be the id or a domain of a tenant.")
    has_secret = "account_key" in given or "sas_token" in given
    if not has_secret and given.get("endpoint_url", "https:").startswith("http:"):
        raise ConfigError(
            "An endpoint_url with http:// needs account_key or sas_token: tokens are sent over https only."
        )


def _quoted(etag: Any) -> str:
    """An ETag in the form of headers; some calls return it unquoted."""
    text = str(etag).strip('"')
    return f'"{text}"'
