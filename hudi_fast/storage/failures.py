"""Storage failures as errors of hudi_fast.

Turns storage failures into errors of hudi_fast: the table, the file, the system's message, and what to do.

::

    OSError of a file system ─┬─► telling_failures (a verb), told_while_read (rows that are read later)
                              └─► tasks of Spark, which send it to the driver ─► StorageAccessError, StorageFailedError

Inside a call an ``OSError`` is not converted, because code that retries or rolls back checks its class and number. It
leaves the library as a ``HudiError``. A write that has begun raises ``CommitError`` instead.

Error messages for accesses that a store refuses: the place, the operation, and what to do.

::

    code of the store, or text of pyarrow ─► refusal_code ─► refused: StorageAccessError

Codes are S3's, spelled as in its answers; codes of other stores are mapped to them.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from hudi_fast.errors import HudiError, StorageAccessError, StorageFailedError, StorageUnreachableError
from hudi_fast.storage.conditional import ThrottledError

__all__ = [
    "ACCESS_DENIED",
    "INTERCEPTED",
    "NO_BUCKET",
    "NO_CREDENTIALS",
    "explained_error",
    "is_failure",
    "naming_file",
    "refusal_advice",
    "refusal_code",
    "refusal_of_text",
    "refused",
    "storage_failure",
    "telling_failures",
    "tells_failures",
    "told_while_read",
]

_AGAIN = "Run it again: what was begun is finished, or rolled back."
_ADVICE = {
    errno.ENOSPC: "Free space on the disk. ",
    errno.EDQUOT: "Free space, or raise the quota of this user. ",
    errno.EIO: "Check the disk; the log of the operating system says more. ",
    errno.EMFILE: "Raise the limit of open files (ulimit -n). ",
    errno.ENFILE: "Raise the limit of open files of the machine. ",
    errno.EROFS: "Mount the disk for writing. ",
}

Verbs = TypeVar("Verbs", bound=type)
Item = TypeVar("Item")


def storage_failure(error: OSError, what: str, again: str = _AGAIN) -> HudiError:
    """The error of hudi_fast for an error of storage.

    Args:
        error: may already be an error of hudi_fast.
        what: the action and its table, as the subject of a sentence.
        again: what to do once the cause is fixed.
    """
    if isinstance(error, HudiError):
        return error
    said = str(error).rstrip(".")
    if isinstance(error, PermissionError):
        return StorageAccessError(
            f"{what} was refused by storage: {said}. This user needs the rights to read and write the folder. {again}"
        )
    return StorageFailedError(f"{what} failed because of storage: {said}. {_ADVICE.get(error.errno or 0, '')}{again}")


@contextlib.contextmanager
def telling_failures(what: str, again: str = _AGAIN) -> Iterator[None]:
    """Raise errors of storage in the block as errors of hudi_fast.

    Args:
        what: the action and its table, as the subject of a sentence.
        again: what to do once the cause is fixed.

    Raises:
        StorageAccessError: storage refuses.
        StorageFailedError: storage failed.
    """
    try:
        yield
    except HudiError:
        raise
    except OSError as error:
        raise storage_failure(error, what, again) from error


def told_while_read(rows: Iterable[Item], uri: str) -> Iterator[Item]:
    """Rows of a query; storage failures while they are read are raised as errors of hudi_fast.

    The call that made the rows has already returned then.

    Args:
        rows: batches, read lazily.
        uri: the table.
    """
    with telling_failures(f"A query of {uri}", "Run it again."):
        yield from rows


def tells_failures(verbs: Verbs) -> Verbs:
    """Class decorator: public methods raise failures of the storage in ``_storage`` as errors of hudi_fast."""
    for name, verb in list(vars(verbs).items()):
        if inspect.isfunction(verb) and not name.startswith("_") and not inspect.isgeneratorfunction(verb):
            setattr(verbs, name, _telling(verb))
    return verbs


def _telling(verb: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(verb)
    def wrapped(self: Any, *arguments: Any, **named: Any) -> Any:
        with telling_failures(f"{verb.__name__}() of {self._storage.uri}"):
            return verb(self, *arguments, **named)

    return wrapped


def is_failure(error: BaseException) -> bool:
    """Whether an error means that storage failed, and not that the content of a file is damaged.

    Arrow raises ``OSError`` for both; errors of the system have a number.
    """
    if isinstance(error, FileNotFoundError):
        return False
    return isinstance(error, HudiError | ThrottledError) or (isinstance(error, OSError) and error.errno is not None)


@contextlib.contextmanager
def naming_file(path: str) -> Iterator[None]:
    """Add the name of a file to errors in the block: errors of pyarrow's streams do not name it.

    Args:
        path: the file.
    """
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is None and path not in str(error):
            error.filename = path
        raise


ACCESS_DENIED = "AccessDenied"
NO_BUCKET = "NoSuchBucket"
NO_CREDENTIALS = "NoCredentials"
INTERCEPTED = "Intercepted"
"""Codes: a permission is missing; the bucket is missing; there are no credentials; the answer was a web page."""

_WRONG_KEY, _SKEW, _REGION = "InvalidAccessKeyId", "RequestTimeTooSkewed", "AuthorizationHeaderMalformed"
_BAD_NAME = "InvalidBucketName"

_CODES = {
    "AccessDenied": ACCESS_DENIED,
    "AllAccessDisabled": ACCESS_DENIED,
    "AccountProblem": ACCESS_DENIED,
    "403": ACCESS_DENIED,
    "401": ACCESS_DENIED,
    "InvalidAccessKeyId": _WRONG_KEY,
    "InvalidClientTokenId": _WRONG_KEY,
    "InvalidToken": _WRONG_KEY,
    "SignatureDoesNotMatch": _WRONG_KEY,
    "UnrecognizedClientException": _WRONG_KEY,
    "AuthenticationFailed": _WRONG_KEY,
    "InvalidAuthenticationInfo": _WRONG_KEY,
    "Unauthorized": _WRONG_KEY,
    "XAdminUserNotFound": _WRONG_KEY,
    "RequestTimeTooSkewed": _SKEW,
    "RequestExpired": _SKEW,
    "NoSuchBucket": NO_BUCKET,
    "ContainerNotFound": NO_BUCKET,
    "AuthorizationHeaderMalformed": _REGION,
    "PermanentRedirect": _REGION,
    "IllegalLocationConstraintException": _REGION,
    "NoCredentialsError": NO_CREDENTIALS,
    "PartialCredentialsError": NO_CREDENTIALS,
    "CredentialRetrievalError": NO_CREDENTIALS,
    "Intercepted": INTERCEPTED,
    "InvalidBucketName": _BAD_NAME,
    "InvalidResourceName": _BAD_NAME,
    "ParamValidationError": _BAD_NAME,
}
_REFUSAL_ADVICE = {
    ACCESS_DENIED: "The credentials are known and lack this permission: grant it for the path of the table (and for "
    "the key of the encryption), or use other credentials.",
    _WRONG_KEY: "The store does not accept the credentials: check them in storage_options, in the settings of the "
    "session (fs.*), or where the store's own tools look.",
    _SKEW: "The clock of this machine differs from the store's by more than it allows: set the clock.",
    NO_BUCKET: "The bucket or container does not exist: create it, or fix the path.",
    _REGION: "The bucket is in another region: set region (fs.s3a.endpoint.region).",
    _BAD_NAME: "The bucket or container cannot have this name: fix the path.",
    NO_CREDENTIALS: "No credentials were found: set them in storage_options (s3: access_key and secret_key; gs: "
    "access_token or service_account_file; abfs: account_key or sas_token) or in the settings of the session, or give "
    "them to this machine (environment, configuration files, a role).",
    INTERCEPTED: "The answer is a web page and not the store's: a proxy or a login page is in between, or the endpoint "
    "is wrong. Check endpoint_url and proxy_url.",
}
_OF_ARROW = re.compile(r"AWS Error ([A-Z0-9_ ]+?) (?:\(HTTP status (\d+)\) )?during (\w+) operation")
_NO_ANSWER = re.compile(
    r"NETWORK_CONNECTION|CURL error|curlCode|Fail(?:ed)? to get a new connection|Could(?: not|n't) (?:connect|resolve)"
)
_STATUS = re.compile(r"\(HTTP status (40[13])\)")


def refusal_code(code: str) -> str | None:
    """The code of a refusal that a retry cannot overcome; None for another failure.

    Args:
        code: as sent by a store or a client.
    """
    return _CODES.get(code)


def refusal_of_text(text: str) -> str | None:
    """The same from the text of an error of :mod:`pyarrow.fs`."""
    found = _OF_ARROW.search(text)
    if found is None:
        return None
    code = "".join(word.capitalize() for word in found[1].split("_"))
    status = _STATUS.search(text)
    return refusal_code(code) or (refusal_code(status[1]) if status is not None else None)


def explained_error(error: OSError, where: str) -> HudiError | None:
    """The error of hudi_fast for an error of :mod:`pyarrow.fs`; None if its text does not identify one.

    Args:
        error: may already be an error of hudi_fast.
        where: the accessed path, with the scheme.
    """
    if isinstance(error, HudiError):
        return None
    code = refusal_of_text(str(error))
    if code is not None:
        return refused("access", where, code)
    if _NO_ANSWER.search(str(error)) is not None:
        return StorageUnreachableError(f"{where} was not accessed, because no answer came: {error}")
    return None


def refusal_advice(error: OSError) -> str:
    """Advice on an error of :mod:`pyarrow.fs`, after a space; empty if the error contains it or is not a refusal."""
    code = None if isinstance(error, StorageAccessError) else refusal_of_text(str(error))
    return "" if code is None else f" {code}: {_REFUSAL_ADVICE[code]}"


def refused(what: str, place: str, code: str, detail: str = "") -> StorageAccessError:
    """The error of a refused access.

    Args:
        what: the operation: ``read``, ``write``, ``list`` ...
        place: with the scheme.
        code: of :func:`refusal_code`.
        detail: message of the store.
    """
    said = f" ({detail})" if detail else ""
    return StorageAccessError(f"The store refused to {what} {place}: {code}{said}. {_REFUSAL_ADVICE[code]}")
