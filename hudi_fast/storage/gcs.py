"""Conditional writes on Google Cloud Storage, through google-cloud-storage.

========  =================================  =================================================
write     condition                          responses
========  =================================  =================================================
create    ``ifGenerationMatch=0``            200 created, 412 it exists
replace   ``ifGenerationMatch=<generation>`` 200 replaced, 412 it changed, 404 it does not exist
========  =================================  =================================================

The version of an object is its generation, which is unique to each state. A read requests the generation that it has
just looked up, so that content and version match. The client does not retry.

Source: Google Cloud Storage, "Request preconditions"; GCSStorageLockClient, Hudi 1.x.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar
from urllib.parse import urlsplit

import pyarrow.fs as pafs

from hudi_fast.errors import ConfigError, StorageAccessError
from hudi_fast.storage.conditional import ThrottledError, Versioned
from hudi_fast.storage.extras import import_extra
from hudi_fast.storage.failures import ACCESS_DENIED, NO_BUCKET, NO_CREDENTIALS, refusal_code, refused
from hudi_fast.storage.forks import PerProcess, ThreadPool, new_lock
from hudi_fast.storage.option_names import TIMEOUT, checked_options, checked_url, is_true, timeout_of
from hudi_fast.storage.servers import RenewedFiles, Server
from hudi_fast.storage.stores import Listed
from hudi_fast.values import dataclass

__all__ = ["GcsOptions", "GcsStore"]

_MARK = "hudi-fast-mark"
_THREADS = 16
_NAMES = {
    "access_token": "token gcs_access_token",
    "project_id": "project google_cloud_project",
    "endpoint_url": "endpoint endpoint_override gcs_endpoint_url storage_emulator_host",
    "anonymous": "anon skip_signature google_skip_signature",
    "timeout": "request_timeout",
    "service_account_file": "google_service_account google_service_account_path service_account_path",
}
_SCOPES = ("https://www.googleapis.com/auth/devstorage.read_write",)
_RENEWED_BEFORE = 600
"""Seconds before its expiry at which the token of a service account is renewed."""


Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class GcsOptions:
    """Connection options of Google Cloud Storage; Google's own defaults replace missing ones.

    Attributes:
        access_token: OAuth 2 token; None for the machine's own credentials.
        project_id: project that is billed for requests, if required.
        endpoint_url: another server.
        anonymous: send requests without credentials.
        timeout: seconds to wait for a response.
        service_account_file: key file of a service account, in JSON; every machine that takes part has it.
    """

    access_token: str | None = field(default=None, repr=False)
    project_id: str | None = None
    endpoint_url: str | None = None
    anonymous: bool = False
    timeout: float = TIMEOUT
    service_account_file: str | None = None

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> GcsOptions:
        """Parse storage options.

        Raises:
            ConfigError: an option is unknown or invalid; the message does not contain secrets.
        """
        given = checked_options(options, _NAMES, "gs://")
        if "service_account_file" in given and "access_token" in given:
            raise ConfigError("Set only one of the storage options access_token and service_account_file.")
        return cls(
            given.get("access_token"),
            given.get("project_id"),
            checked_url(given["endpoint_url"], "endpoint_url") if "endpoint_url" in given else None,
            is_true(given, "anonymous"),
            timeout_of(given),
            given.get("service_account_file"),
        )

    def file_system(self, token: str | None = None) -> pafs.FileSystem:
        """The file system for reads and streams.

        Args:
            token: replaces the token of these options.
        """
        more: dict[str, Any] = {}
        if self.endpoint_url:
            endpoint = urlsplit(self.endpoint_url)
            more = {"endpoint_override": endpoint.netloc, "scheme": endpoint.scheme}
        token = token or self.access_token
        if token:
            # Arrow requires an expiry time and ignores it.
            more |= {"access_token": token, "credential_token_expiration": datetime.now(UTC) + timedelta(1)}
        return pafs.GcsFileSystem(anonymous=self.anonymous, project_id=self.project_id, **more)

    def server(self) -> Server:
        """The server of these options."""
        url = self.endpoint_url or "https://storage.googleapis.com"
        return Server("Google Cloud Storage", (url,), self.timeout, "and endpoint_url and the proxy if set")

    def files(self) -> RenewedFiles:
        """File systems for reads and streams; the first one is made after the server has answered."""
        renewed, first = self._renewed_tokens(), self.server().require_answer
        return RenewedFiles(renewed or (lambda: None), self.file_system, first)

    def _renewed_tokens(self) -> Callable[[], str] | None:
        """Tokens of the service account; None without one."""
        if self.service_account_file is None:
            return None
        found: list[Any] = []

        def token() -> str:
            found[:] = found or [self._account()]
            account = found[0]
            soon = datetime.now(UTC).replace(tzinfo=None) + timedelta(seconds=_RENEWED_BEFORE)
            if account.token is None or account.expiry is None or account.expiry < soon:
                _refresh(account)
            return str(account.token)

        return token

    def _account(self) -> Any:
        """Credentials of the service account."""
        kind = import_extra("google.oauth2.service_account", "gcs", "A service account for gs://").Credentials
        try:
            return kind.from_service_account_file(self.service_account_file, scopes=_SCOPES)
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"The key file of the service account, {self.service_account_file}, cannot be used: "
                f"{error.strerror if isinstance(error, OSError) else 'it is not the JSON of a key'}."
            ) from None

    def client(self) -> Any:
        """The client for conditional writes.

        Raises:
            ConfigError: google-cloud-storage is not installed.
        """
        storage = import_extra("google.cloud.storage", "gcs", "Writing to gs://")
        credentials: Any = None
        if self.anonymous:
            credentials = import_extra("google.auth.credentials", "gcs", "gs://").AnonymousCredentials()
        elif self.access_token:
            credentials = import_extra("google.oauth2.credentials", "gcs", "gs://").Credentials(self.access_token)
        elif self.service_account_file:
            credentials = self._account()
        options = {"api_endpoint": self.endpoint_url} if self.endpoint_url else None
        project = self.project_id or getattr(credentials, "project_id", None)
        project = project or ("none" if credentials is not None else None)
        return storage.Client(project=project, credentials=credentials, client_options=options)


def _refresh(account: Any) -> None:
    """Ask for a token."""
    request = import_extra("google.auth.transport.requests", "gcs", "A service account for gs://").Request()
    failed = import_extra("google.auth.exceptions", "gcs", "gs://").GoogleAuthError
    try:
        account.refresh(request)
    except failed as error:
        raise StorageAccessError(
            f"Google gave no token for the service account {account.service_account_email}: {type(error).__name__}. "
            "Check its key file, and that the account is enabled."
        ) from None


class GcsStore:
    """An :class:`~hudi_fast.storage.stores.ObjectStore`; connects on first use."""

    def __init__(self, options: GcsOptions) -> None:
        self._options, self._host = options, options.server()
        self._made: PerProcess[Any] = PerProcess(lambda client: client.close())
        self._lock = new_lock()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._options!r})"

    def read(self, name: str) -> Versioned | None:
        """See ``ConditionalStore``."""

        def request() -> Versioned:
            blob = self._blob(name)
            data = blob.download_as_bytes(retry=None, timeout=self._options.timeout, raw_download=True)
            return Versioned(bytes(data), str(blob.generation))

        return self._call_or_none("read", name, request)

    def create(self, name: str, data: bytes, mark: str = "") -> str | None:
        """See ``ObjectStore``."""
        return self._put_if("write", name, data, mark, 0)

    def replace(self, name: str, data: bytes, version: str) -> str | None:
        """See ``ConditionalStore``."""
        if not version.isdigit():
            return None
        return self._call_or_none("write", name, lambda: self._put_if("write", name, data, "", int(version)))

    def mark_of(self, name: str) -> str | None:
        """See ``ObjectStore``."""

        def request() -> str:
            blob = self._blob(name)
            blob.reload(retry=None, timeout=self._options.timeout)
            return str((blob.metadata or {}).get(_MARK, ""))

        return self._call_or_none("look at", name, request)

    def has_folder(self, name: str) -> bool:
        """See ``ObjectStore``."""
        return self.mark_of(f"{name}/") is not None

    def drop_folder(self, name: str) -> None:
        """See ``ObjectStore``."""
        self.delete([f"{name}/"])

    def put(self, name: str, data: bytes) -> None:
        """See ``ObjectStore``."""
        self._call("write", name, lambda: self._upload(name, data, "", None))

    def stream(self, name: str) -> None:
        """See ``ObjectStore``."""

    def listed(self, name: str, recursive: bool) -> list[Listed] | None:
        """See ``ObjectStore``."""
        bucket, _, key = name.partition("/")
        prefix = f"{key}/" if key else ""

        def request() -> list[Listed]:
            timeout, delimiter = self._options.timeout, None if recursive else "/"
            found = self._client.list_blobs(bucket, prefix=prefix, delimiter=delimiter, retry=None, timeout=timeout)
            files = [(one.name, int(one.size or 0), int(one.updated.timestamp() * 1000)) for one in found]
            folders = {f"{bucket}/{one.rstrip('/')}" for one in found.prefixes}
            for path, _, _ in files:
                inner = path[len(prefix) :].split("/")[:-1]
                folders |= {f"{bucket}/{prefix}{'/'.join(inner[: at + 1])}" for at in range(len(inner))}
            objects = [Listed(f"{bucket}/{path}", size, at, False) for path, size, at in files if path[-1:] != "/"]
            return [*objects, *(Listed(folder, 0, 0, True) for folder in folders)]

        return self._call("list", name, request)

    def delete(self, names: Sequence[str]) -> None:
        """See ``ObjectStore``."""

        def one(name: str) -> None:
            self._call_or_none(
                "delete", name, lambda: self._blob(name).delete(retry=None, timeout=self._options.timeout)
            )

        with ThreadPool(min(_THREADS, len(names) or 1)) as pool:
            list(pool.map(one, names))

    def _put_if(self, what: str, name: str, data: bytes, mark: str, generation: int) -> str | None:
        failed = import_extra("google.api_core.exceptions", "gcs", "gs://").PreconditionFailed
        try:
            return self._call(what, name, lambda: self._upload(name, data, mark, generation))
        except OSError as error:
            if isinstance(error.__cause__, failed):
                return None
            raise

    def _upload(self, name: str, data: bytes, mark: str, generation: int | None) -> str:
        blob = self._blob(name)
        if mark:
            blob.metadata = {_MARK: mark}
        blob.upload_from_string(data, retry=None, timeout=self._options.timeout, if_generation_match=generation)
        return str(blob.generation)

    def _blob(self, name: str) -> Any:
        bucket, _, key = name.partition("/")
        return self._client.bucket(bucket).blob(key)

    def _call_or_none(self, what: str, name: str, request: Callable[[], Result]) -> Result | None:
        gone = import_extra("google.api_core.exceptions", "gcs", "gs://").NotFound
        try:
            return self._call(what, name, request)
        except OSError as error:
            if isinstance(error.__cause__, gone):
                return None
            raise

    def _call(self, what: str, name: str, request: Callable[[], Result]) -> Result:
        core = import_extra("google.api_core.exceptions", "gcs", "gs://")
        identity = import_extra("google.auth.exceptions", "gcs", "gs://")
        auth = identity.GoogleAuthError
        web = import_extra("requests.exceptions", "gcs", "gs://").RequestException
        try:
            found = request()
            self._host.answered()
            return found
        except (core.GoogleAPICallError, auth, web) as error:
            text = f"Google Cloud Storage did not {what} gs://{name}: {type(error).__name__}"
            if isinstance(error, core.TooManyRequests):
                raise ThrottledError(text) from error
            if isinstance(error, identity.DefaultCredentialsError):
                raise refused(what, f"gs://{name}", NO_CREDENTIALS) from error
            if isinstance(error, identity.TransportError):
                raise self._host.unreachable(f"{what} gs://{name}", type(error).__name__) from error
            if isinstance(error, core.Unauthorized | auth):
                raise refused(what, f"gs://{name}", refusal_code("Unauthorized") or "", type(error).__name__) from error
            if isinstance(error, core.Forbidden):
                raise refused(what, f"gs://{name}", ACCESS_DENIED) from error
            if isinstance(error, core.NotFound) and what in ("write", "list"):
                raise refused(what, f"gs://{name}", NO_BUCKET) from error
            if isinstance(error, web):
                raise self._host.unreachable(f"{what} gs://{name}", type(error).__name__) from error
            raise OSError(text) from error

    @property
    def _client(self) -> Any:
        with self._lock:
            return self._made.get() or self._made.set(self._options.client())
