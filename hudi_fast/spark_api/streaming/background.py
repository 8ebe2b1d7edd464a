"""Asynchronous table services of a stream: a thread that executes pending plans and ends when none is left.

::

    batch ─► plan on the timeline ─► Background.wake ─► thread: pending compactions, clusterings, oldest first
    batch ─► ...                  ─► wake: the running thread checks the timeline again before it ends

The stream does not wait for the thread and does not fail with it: an error becomes a warning, and the next batch wakes
the thread again. The plan of a compaction stays pending; that of a clustering is withdrawn, because later batches could
not change the rows of its file groups. Only batches wake it, so it ends with the query. If the driver fails, the
plan stays on the timeline and the next driver executes it. The thread uses half of the processors; batches use the
other half.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from hudi_fast.errors import ServiceTakenError
from hudi_fast.events import note, warn
from hudi_fast.services.clustering.run import run_pending_clusterings
from hudi_fast.services.scheduling.run import run_pending_services
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.active import Timeline
from hudi_fast.writing.backend import Backend
from hudi_fast.writing.session import TableSession, without_waiting
from hudi_fast.writing.settings import Settings

__all__ = ["Background", "has_work", "with_half_of_the_threads"]

_SERVICES = frozenset({"compact"})
_THREADS_KEY = "hudi_fast.threads"


def has_work(timeline: Timeline) -> bool:
    """Whether a compaction or clustering may be pending; in layout 1 a pending replace commit may be one."""
    return any(one.action in ("compaction", "clustering", "replacecommit") for one in timeline.pending())


def with_half_of_the_threads(settings: Settings) -> Settings:
    """The settings with half of the parallelism, unless the options set it."""
    if _THREADS_KEY in settings.write.explicit:
        return settings
    threads = max(1, (os.cpu_count() or 2) // 2)
    return replace(settings, write=replace(settings.write, threads=threads))


@dataclass(slots=True)
class Background:
    """Starts and owns the thread.

    Attributes:
        storage: the table's storage.
        settings: of the services.
    """

    storage: Storage
    settings: Settings
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _thread: threading.Thread | None = field(default=None, repr=False)
    _again: bool = field(default=False, repr=False)

    def wake(self, backend: Backend) -> None:
        """Execute pending plans in the thread; returns immediately.

        Args:
            backend: executes them.
        """
        with self._lock:
            self._again = True
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._work, args=(backend,), name="hudi_fast-services", daemon=True
                )
                self._thread.start()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until no service is running; returns whether that is the case.

        Args:
            seconds: timeout; None for no limit.
        """
        thread = self._thread
        if thread is not None:
            thread.join(seconds)
        return thread is None or not thread.is_alive()

    def _work(self, backend: Backend) -> None:
        while self._goes_on():
            note("streaming", logging.DEBUG, "Asynchronous services begin", table=self.storage.uri)
            self._try(backend, lambda session: run_pending_services(session, _SERVICES))
            self._try(backend, lambda session: run_pending_clusterings(session, withdraws=True))

    def _try(self, backend: Backend, run: Callable[[TableSession], object]) -> None:
        session, uri = TableSession(self.storage, self.settings, backend), self.storage.uri
        try:
            with without_waiting(session):
                run(session)
        except ServiceTakenError as error:
            note("streaming", logging.INFO, "An asynchronous service was left to others: %s", error, table=uri)
        except Exception as error:  # Spark's own among them
            note("streaming", logging.ERROR, "An asynchronous service failed: %s", repr(error), table=uri)
            warn(
                f"An asynchronous service of the stream into {uri} failed: {type(error).__name__}: {error} The stream "
                "continues; the service is retried after a later batch."
            )

    def _goes_on(self) -> bool:
        with self._lock:
            goes_on, self._again = self._again, False
            if not goes_on:
                self._thread = None
            return goes_on
