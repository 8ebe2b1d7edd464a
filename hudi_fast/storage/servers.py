"""Check that a server answers, and make file systems on first use.

Checks that a server answers: the first call to a store ends in time, and its error names the options to set.

The clients of :mod:`pyarrow.fs` wait long for a server that does not answer: S3's client waits 100 seconds whatever its
timeout, Google's and Azure's clients without end. So a process sends one request of its own before it uses them. Any
answer counts.

::

    pyarrow's client is made ─► has the server answered before? ─► yes
                                    └─ no ─► GET / within the timeout ─► any answer
                                                  └─ none ─► StorageUnreachableError

The stores' own clients, which keep the timeout, note here that a server has answered.

File systems of :mod:`pyarrow.fs` that are made on first use, and again before their keys expire.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import field
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, HTTPSHandler, OpenerDirector, ProxyHandler, Request, build_opener

import pyarrow.fs as pafs

from hudi_fast.errors import StorageUnreachableError
from hudi_fast.storage.forks import PerProcess, new_lock
from hudi_fast.values import dataclass

__all__ = ["RenewedFiles", "Server"]

_PAUSES = (0.1, 0.4)
"""Seconds before further attempts to reach a server that refuses connections; it may be starting."""

_answered: set[str] = set()
"""URLs that have answered in this process."""


@dataclass(frozen=True, slots=True)
class Server:
    """The server of a store.

    Attributes:
        store: its name, for messages.
        urls: addresses with ``http://`` or ``https://``; one of them has to answer. Empty if unknown.
        timeout: seconds to wait for an answer.
        settings: storage options that decide where the server is, for messages.
        proxies: scheme -> proxy; None for the proxies of the environment.
    """

    store: str
    urls: tuple[str, ...]
    timeout: float
    settings: str
    proxies: Mapping[str, str] | None = field(default=None, repr=False)

    def answered(self) -> None:
        """Note that the server has answered."""
        _answered.update(self.urls[:1])

    def require_answer(self) -> None:
        """Ask for an answer, unless there was one in this process.

        Raises:
            StorageUnreachableError: no answer came in time.
        """
        if not self.urls or not _answered.isdisjoint(self.urls):
            return
        why = self._silence()
        if why is not None:
            raise self._no_answer("cannot be used", why)

    def unreachable(self, what: str, why: str) -> StorageUnreachableError:
        """The error for a request without answer.

        Args:
            what: the request: ``read s3://bucket/key``.
            why: the failure of the connection.
        """
        return self._no_answer(f"did not {what}", why)

    def _no_answer(self, failed: str, why: str) -> StorageUnreachableError:
        place = " or ".join(self.urls) or "its address"
        return StorageUnreachableError(
            f"{self.store} {failed}: no answer came from {place} ({why}; the storage option timeout is "
            f"{self.timeout:g} s). Check the network, {self.settings}.",
            self.timeout,
        )

    def _silence(self) -> str | None:
        """Why no address answers; None if one does."""
        opener, until, why = self._opener(), time.monotonic() + self.timeout, ""
        for pause in (*_PAUSES, None):
            for url in self.urls:
                left = max(0.1, (until - time.monotonic()) / len(self.urls))
                failure = _failure(opener, url, left)
                if failure is None:
                    _answered.add(url)
                    return None
                why = failure
            if pause is None or time.monotonic() + pause >= until:
                break
            time.sleep(pause)
        return why

    def _opener(self) -> OpenerDirector:
        # Certificates are checked by the client that is used next; nothing secret is sent here.
        trusting = ssl.create_default_context()
        trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
        proxies = None if self.proxies is None else dict(self.proxies)
        return build_opener(ProxyHandler(proxies), HTTPSHandler(context=trusting), _NoRedirect())


class _NoRedirect(HTTPRedirectHandler):
    """A redirection is an answer, too."""

    def redirect_request(self, *_: Any) -> None:
        """Follow no redirection."""


def _failure(opener: OpenerDirector, url: str, seconds: float) -> str | None:
    """Why an address does not answer; None if it does, with any answer."""
    try:
        opener.open(Request(url, headers={"User-Agent": "hudi_fast"}), timeout=seconds).close()
    except HTTPError as error:
        error.close()
    except HTTPException:
        pass
    except URLError as error:
        if not isinstance(error.reason, ssl.SSLError):
            return str(error.reason)
    except ConnectionResetError:
        pass
    except OSError as error:
        return str(error)
    return None


class RenewedFiles:
    """Makes a file system when it is first used, and another one whenever there are new keys. Thread-safe.

    Streams that are open keep their keys.

    Args:
        keys: the keys that are valid now; renews them in time.
        make: makes a file system with these keys.
        first: called before a file system is made for the first time; its errors are not caught.
    """

    def __init__(
        self,
        keys: Callable[[], Any],
        make: Callable[[Any], pafs.FileSystem],
        first: Callable[[], object] = lambda: None,
    ) -> None:
        self._keys, self._make, self._first = keys, make, first
        self._lock = new_lock()
        self._made: PerProcess[tuple[Any, pafs.FileSystem]] = PerProcess()

    def __call__(self) -> pafs.FileSystem:
        """The file system for the next accesses.

        Raises:
            OSError: there are no keys now.
        """
        with self._lock:
            made = self._made.get()
            if made is None:
                self._first()
            keys = self._keys()
            if made is None or keys != made[0]:
                made = self._made.set((keys, self._make(keys)))
            return made[1]
