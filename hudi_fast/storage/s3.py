"""Conditional writes and streams on Amazon S3 and compatible servers, through boto3.

========  ======================  =====================================================
write     header                  responses
========  ======================  =====================================================
create    ``If-None-Match: *``    200 created, 412 it exists
replace   ``If-Match: <ETag>``    200 replaced, 412 it has changed, 404 it does not exist
========  ======================  =====================================================

429, and 503 from S3 itself, ask to slow down. All other errors (409 for concurrent writes, 5xx, a broken connection)
leave the outcome unknown. boto3 does not retry. If a session token has expired, credentials are looked up once again.

A server other than Amazon's that ignores these headers would let writers overwrite each other. So the first successful
write with each header is repeated, and the repetition must be rejected.

Source: Amazon S3 User Guide, "Conditional requests"; S3StorageLockClient, Hudi 1.2.0.
"""

from __future__ import annotations

import contextlib
import uuid
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

from hudi_fast.errors import UnsupportedFeatureError
from hudi_fast.storage.conditional import ExpiredCredentialsError, ThrottledError, Versioned, expired_text
from hudi_fast.storage.extras import import_extra
from hudi_fast.storage.failures import ACCESS_DENIED, INTERCEPTED, refusal_code, refused
from hudi_fast.storage.forks import PerProcess, ThreadPool, new_lock
from hudi_fast.storage.s3_credentials import role_error
from hudi_fast.storage.s3_options import S3Options
from hudi_fast.storage.stores import Listed, with_retries

__all__ = ["PART_BYTES", "S3Store", "S3Stream"]

_MARK = "hudi-fast-mark"
_SLOW_DOWN = frozenset({"SlowDown", "ServiceUnavailable", "Throttling", "ThrottlingException", "RequestLimitExceeded"})
_NOT_FOUND = frozenset({"404", "NoSuchKey"})
_EXPIRED = frozenset({"ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired"})
_DELETE_BATCH = 1000

_PROVEN: dict[str, set[str]] = {}
"""Headers that each server other than Amazon's has honoured in this process."""

Result = TypeVar("Result")


class S3Store:
    """An :class:`~hudi_fast.storage.stores.ObjectStore`; connects on first use."""

    def __init__(self, options: S3Options) -> None:
        self._options, self._headers, self._host = options, options.headers(), options.server()
        self._made: PerProcess[tuple[Any, object]] = PerProcess(lambda made: made[0].close())
        self._lock = new_lock()
        server = options.endpoint_url
        self._proven = _PROVEN.setdefault(server, set()) if server else {"If-None-Match", "If-Match"}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._options!r})"

    def read(self, name: str) -> Versioned | None:
        """See ``ConditionalStore``."""

        def request(client: Any) -> Versioned:
            answer = client.get_object(**_object(name))
            return Versioned(answer["Body"].read(), answer["ETag"])

        return self._ask("read", name, request, _is_missing)

    def create(self, name: str, data: bytes, mark: str = "") -> str | None:
        """See ``ObjectStore``."""
        metadata = {"Metadata": {_MARK: mark}} if mark else {}
        return self._conditional(name, data, "If-None-Match", {"IfNoneMatch": "*", **metadata})

    def replace(self, name: str, data: bytes, version: str) -> str | None:
        """See ``ConditionalStore``."""
        return self._conditional(name, data, "If-Match", {"IfMatch": version})

    def mark_of(self, name: str) -> str | None:
        """See ``ObjectStore``."""

        def request(client: Any) -> str:
            try:
                return str(client.head_object(**_object(name))["Metadata"].get(_MARK, ""))
            except self._failures as error:
                if _status(error) in (400, 403, 503):  # the response to a HEAD request does not say why
                    client.get_object(**_object(name), Range="bytes=0-0")
                raise

        return self._ask("look at", name, request, _is_missing)

    def has_folder(self, name: str) -> bool:
        """See ``ObjectStore``."""
        return self.mark_of(f"{name}/") is not None

    def drop_folder(self, name: str) -> None:
        """See ``ObjectStore``."""
        self.delete([f"{name}/"])

    def put(self, name: str, data: bytes) -> None:
        """See ``ObjectStore``."""
        self._ask("write", name, lambda client: client.put_object(**_object(name), Body=data, **self._headers))

    def stream(self, name: str) -> S3Stream | None:
        """See ``ObjectStore``."""
        return S3Stream(self, name) if self._headers else None

    def begin_parts(self, name: str, mark: str) -> str:
        """Begin an upload in parts; returns its id. ``mark`` is stored with the object."""
        more = {"Metadata": {_MARK: mark}, **self._headers}
        answer = self._ask("write", name, lambda one: one.create_multipart_upload(**_object(name), **more))
        assert answer is not None
        return str(answer["UploadId"])

    def put_part(self, name: str, upload: str, number: int, data: bytes) -> str:
        """Upload a part, numbered from 1; returns its ETag. May be repeated."""
        part = {"UploadId": upload, "PartNumber": number, "Body": data}
        answer = self._ask("write", name, lambda one: one.upload_part(**_object(name), **part))
        assert answer is not None
        return str(answer["ETag"])

    def end_parts(self, name: str, upload: str, tags: Sequence[str]) -> None:
        """Make an object of the parts. If the response was lost, the object exists although a retry finds no upload."""
        parts = [{"PartNumber": at, "ETag": tag} for at, tag in enumerate(tags, 1)]
        more = {"UploadId": upload, "MultipartUpload": {"Parts": parts}}
        self._ask("write", name, lambda one: one.complete_multipart_upload(**_object(name), **more))

    def drop_parts(self, name: str, upload: str) -> None:
        """Delete the parts of an upload."""
        self._ask("write", name, lambda one: one.abort_multipart_upload(**_object(name), UploadId=upload))

    def listed(self, name: str, recursive: bool) -> list[Listed] | None:
        """See ``ObjectStore``."""
        return None

    def delete(self, names: Sequence[str]) -> None:
        """See ``ObjectStore``."""
        for start in range(0, len(names), _DELETE_BATCH):
            self._delete_some(names[start : start + _DELETE_BATCH])

    def _delete_some(self, names: Sequence[str]) -> None:
        if len(names) == 1:
            self._ask("delete", names[0], lambda client: client.delete_object(**_object(names[0])))
            return
        bucket, keys = _object(names[0])["Bucket"], [{"Key": _object(name)["Key"]} for name in names]
        order = {"Objects": keys, "Quiet": True}
        answer = self._ask("delete", names[0], lambda client: client.delete_objects(Bucket=bucket, Delete=order))
        for failed in () if answer is None else answer.get("Errors", ()):
            if failed.get("Code") not in _NOT_FOUND:
                text = f"s3://{bucket}/{failed.get('Key')} could not be deleted: {failed.get('Message')}"
                raise ThrottledError(text) if failed.get("Code") in _SLOW_DOWN else OSError(text)

    def _conditional(self, name: str, data: bytes, header: str, more: dict[str, Any]) -> str | None:
        version = self._put_if(name, data, more)
        if version is not None and header not in self._proven:
            self._verify_enforced(name, data, header, more, version)
        return version

    def _verify_enforced(self, name: str, data: bytes, header: str, more: dict[str, Any], version: str) -> None:
        """Check that the server rejects the same condition when it no longer holds."""
        if version == more.get("IfMatch"):
            return
        try:
            again = self._put_if(name, data, more)
        except OSError:
            return  # the next write checks again
        if again is not None:
            mark = more.get("Metadata", {}).get(_MARK)
            with contextlib.suppress(OSError, UnsupportedFeatureError):  # the written object does not belong to a table
                if mark and self.mark_of(name) == mark:
                    self.delete([name])
            raise UnsupportedFeatureError(
                f"The server {self._options.endpoint_url} ignores the header {header}: it overwrote s3://{name}, "
                "although the condition no longer held. Tables cannot be written there."
            )
        self._proven.add(header)

    def _put_if(self, name: str, data: bytes, more: dict[str, Any]) -> str | None:
        def is_rejected(error: Exception) -> bool:
            return _status(error) == 412 or (_code(error) in _NOT_FOUND and "IfMatch" in more)

        def request(client: Any) -> str:
            return str(client.put_object(**_object(name), Body=data, **self._headers, **more)["ETag"])

        return self._ask("write", name, request, is_rejected)

    def _ask(
        self,
        what: str,
        name: str,
        request: Callable[[Any], Result],
        is_none: Callable[[Exception], bool] = lambda error: False,
    ) -> Result | None:
        """The result of a request; None for errors that ``is_none`` accepts."""
        client = self._client
        try:
            found = request(client)
            self._host.answered()
            return found
        except self._failures as error:
            if is_none(error) and not isinstance(error, _PageError):
                return None
            if _status(error) == 501 or _code(error) == "NotImplemented":
                raise self._not_implemented(what, name, error) from error
            if _code(error) in _EXPIRED and self._is_renewed(client):
                raise ThrottledError(f"s3://{name}: the credentials had expired; there are new ones") from error
            raise self._os_error(what, name, error) from error

    def _not_implemented(self, what: str, name: str, error: Exception) -> UnsupportedFeatureError:
        server = self._options.endpoint_url or "Amazon S3"
        return UnsupportedFeatureError(
            f"{server} cannot {what} s3://{name} as requested: {_code(error)}. Tables need a server with conditional "
            "writes (If-None-Match and If-Match); settings such as sse, acl and storage_class need its support, too."
        )

    def _is_renewed(self, client: Any) -> bool:
        """Whether the environment or ``~/.aws`` has other credentials than a client.

        boto3 reads a file once, and renews only credentials from a server.
        """
        with self._lock:
            used = self._made.get()
            if used is None or used[0] is not client:
                return True
            made = self._connect()
            if made[1] == used[1]:
                return False
            self._made.set(made)
            return True

    def _connect(self) -> tuple[Any, object]:
        """A client with the credentials that are found now, and these credentials."""
        session = self._options.session()
        found = session.get_credentials()
        try:
            keys = None if found is None else found.get_frozen_credentials()
        except self._failures as error:
            if self._options.role is None:
                raise self._os_error("read", "credentials", error) from error
            raise role_error(self._options.role, error) from error
        made = self._options.client(session)
        made.meta.events.register("after-call.s3", _check_answer)
        return made, keys

    def _os_error(self, what: str, name: str, error: Exception) -> OSError:
        """The error to raise for a failed request."""
        if _code(error) in _EXPIRED:
            return ExpiredCredentialsError(expired_text(f"The request to {what} s3://{name}"))
        answer = getattr(error, "response", None) or {}
        headers = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {})
        is_page = isinstance(error, _PageError) or (  # botocore has no code, or the status, if the content is not S3's
            not _code(error).isalpha() and str(headers.get("content-type", "")).startswith("text/html")
        )
        detail = answer.get("Error", {}).get("Message") if not is_page else ""
        code = INTERCEPTED if is_page else refusal_code(_code(error) or type(error).__name__)
        if code is None and _status(error) in (401, 403):
            code = ACCESS_DENIED
        if code is not None:
            return refused(what, f"s3://{name}", code, detail or "")
        if not _status(error):
            return self._host.unreachable(f"{what} s3://{name}", type(error).__name__)
        self._host.answered()
        text = f"S3 did not {what} s3://{name}: {_code(error)}"
        text += f" ({detail})" if detail else ""
        if _status(error) == 429 or (_status(error) == 503 and _code(error) in _SLOW_DOWN):
            return ThrottledError(text)
        return OSError(text)

    @property
    def _client(self) -> Any:
        with self._lock:
            return (self._made.get() or self._made.set(self._connect()))[0]

    @property
    def _failures(self) -> tuple[type[Exception], ...]:
        botocore = import_extra("botocore.exceptions", "s3", "S3")
        web = import_extra("urllib3.exceptions", "s3", "S3").HTTPError
        return botocore.ClientError, botocore.BotoCoreError, web, _PageError


class _PageError(Exception):
    """The answer is a web page and not a response of S3."""


def _check_answer(http_response: Any, model: Any, **_: Any) -> None:
    """Refuse a web page with a success status, which a proxy may send: nothing was written or read then.

    Some servers send empty responses, or S3's XML, with the content type of a web page.
    """
    headers = http_response.headers
    is_html = str(headers.get("Content-Type", "")).startswith("text/html")
    if http_response.status_code != 200 or not is_html or "ETag" in headers:
        return
    content = b"" if model.has_streaming_output else http_response.content.lstrip()[:14].lower()
    if not content or content.startswith((b"<!doctype html", b"<html")):
        raise _PageError


def _object(name: str) -> dict[str, str]:
    bucket, _, key = name.partition("/")
    return {"Bucket": bucket, "Key": key}


def _is_missing(error: Exception) -> bool:
    return _code(error) in _NOT_FOUND


def _status(error: Exception) -> int:
    answer = getattr(error, "response", None) or {}
    return int(answer.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def _code(error: Exception) -> str:
    answer = getattr(error, "response", None) or {}
    return str(answer.get("Error", {}).get("Code", ""))


# ---- streams whose objects have headers that pyarrow's streams cannot send, for example for encryption
#
# ::
#
#     write ─► one part in memory ─► upload_part, up to four at once ─┐
#     close ─► nothing uploaded yet: put_object                       └─► complete_multipart_upload
#
# A stream holds at most five parts. They grow with the object, because an upload has at most 10 000 of them.

PART_BYTES = 8 << 20
"""Bytes of the first parts."""

_GROWS_AFTER = 1000
"""Number of parts after which parts are twice as large."""

_AT_ONCE = 4


class S3Stream:
    """An :class:`~hudi_fast.storage.stores.ObjectStream`; not thread-safe.

    Args:
        store: sends the requests.
        name: full name of the object.
    """

    def __init__(self, store: S3Store, name: str) -> None:
        self._store, self._name = store, name
        self._buffer = bytearray()
        self._written = 0
        self._upload, self._mark = "", uuid.uuid4().hex
        self._tags: list[str] = []
        self._pending: deque[Future[str]] = deque()
        self._pool: ThreadPool | None = None
        self.closed = False

    def write(self, data: bytes) -> int:
        """See ``ObjectStream``."""
        self._buffer += data
        self._written += (size := memoryview(data).nbytes)
        part = PART_BYTES << ((len(self._tags) + len(self._pending)) // _GROWS_AFTER)
        while len(self._buffer) >= part:
            self._send(bytes(self._buffer[:part]))
            del self._buffer[:part]
        return size

    def tell(self) -> int:
        """See ``ObjectStream``."""
        return self._written

    def flush(self) -> None:
        """See ``ObjectStream``."""

    def close(self) -> None:
        """See ``ObjectStream``.

        Raises:
            OSError: there is no object, or an older one; the uploaded parts are deleted if the store answers.
        """
        if self.closed:
            return
        self.closed = True
        if not self._upload:
            with_retries(lambda: self._store.put(self._name, bytes(self._buffer)))
            return
        try:
            if self._buffer:
                self._send(bytes(self._buffer))
            self._settle(0)
            self._complete()
        except BaseException:
            self._give_up()
            raise
        finally:
            self._end_pool()

    def _send(self, data: bytes) -> None:
        store, name = self._store, self._name
        try:
            if self._pool is None:
                self._upload = with_retries(lambda: store.begin_parts(name, self._mark))
                self._pool = ThreadPool(_AT_ONCE, "hudi-fast-upload")
            upload, number = self._upload, len(self._tags) + len(self._pending) + 1
            task = self._pool.submit(with_retries, lambda: store.put_part(name, upload, number, data))
            self._pending.append(task)
            self._settle(_AT_ONCE - 1)
        except BaseException:
            self.closed = True
            self._give_up()
            self._end_pool()
            raise

    def _settle(self, left: int) -> None:
        """Wait until at most ``left`` parts are being uploaded."""
        while len(self._pending) > left:
            self._tags.append(self._pending[0].result())
            self._pending.popleft()

    def _complete(self) -> None:
        asked = False

        def once() -> None:
            nonlocal asked
            again, asked = asked, True
            try:
                self._store.end_parts(self._name, self._upload, self._tags)
            except OSError:
                if not (again and self._store.mark_of(self._name) == self._mark):
                    raise

        with_retries(once)

    def _give_up(self) -> None:
        """Delete the parts; an upload that is left costs storage until the bucket's rules end it."""
        for task in self._pending:
            task.cancel()
        for task in self._pending:
            with contextlib.suppress(BaseException):
                task.result()
        self._pending.clear()
        if self._upload:
            with contextlib.suppress(OSError):
                self._store.drop_parts(self._name, self._upload)

    def _end_pool(self) -> None:
        if self._pool is not None:
            self._pool.shutdown()
