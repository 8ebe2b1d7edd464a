"""Services beside a stream: a thread that carries out what is planned, and is gone when nothing waits.

::

    batch ─► plan on the timeline ─► Background.wake ─► thread: compactions, clusterings that wait, oldest first
    batch ─► ...                  ─► wake: one is at work, and looks again before it ends

The stream neither waits for it nor fails with it: an error is a warning, its plan waits, and the next batch wakes the
thread again. Without batches nothing wakes it, so it ends with the query; of a driver that dies it leaves a plan on the
timeline, which the next one takes over. It uses half of the processors, so that batches keep theirs.
"""

from __future__ import annotations

import os
import threading
import warnings
from dataclasses import dataclass, field, replace

from hudi_fast.errors import HudiWarning
from hudi_fast.services.scheduling.run import run_pending_services
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.active import Timeline
from hudi_fast.writing.backend import Backend
from hudi_fast.writing.session import TableSession
from hudi_fast.writing.settings import Settings

__all__ = ["Background", "has_work", "with_half_of_the_threads"]

_SERVICES = frozenset({"compact", "cluster"})
_THREADS_KEY = "hudi_fast.threads"


def has_work(timeline: Timeline) -> bool:
    """Whether a compaction or clustering may wait; in layout 1 a pending replace commit may be one."""
    return any(one.action in ("compaction", "clustering", "replacecommit") for one in timeline.pending())


def with_half_of_the_threads(settings: Settings) -> Settings:
    """The same, but for how many files are written at once, unless the options say so."""
    if _THREADS_KEY in settings.write.explicit:
        return settings
    threads = max(1, (os.cpu_count() or 2) // 2)
    return replace(settings, write=replace(settings.write, threads=threads))


@dataclass(slots=True)
class Background:
    """The thread, while there is one.

    Attributes:
        storage: the table's storage.
        settings: how services work.
    """

    storage: Storage
    settings: Settings
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _thread: threading.Thread | None = field(default=None, repr=False)
    _again: bool = field(default=False, repr=False)

    def wake(self, backend: Backend) -> None:
        """Have carried out what waits; returns at once.

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
        """Wait until nothing is being carried out; whether that is so now.

        Args:
            seconds: how long; None without a bound.
        """
        thread = self._thread
        if thread is not None:
            thread.join(seconds)
        return thread is None or not thread.is_alive()

    def _work(self, backend: Backend) -> None:
        while self._goes_on():
            try:
                run_pending_services(TableSession(self.storage, self.settings, backend), _SERVICES)
            except Exception as error:  # Spark's own among them
                warnings.warn(
                    f"A service beside the stream into {self.storage.uri} failed: {type(error).__name__}: {error} "
                    "The stream goes on, and after its next batch the service is tried again.",
                    HudiWarning,
                    stacklevel=2,
                )

    def _goes_on(self) -> bool:
        with self._lock:
            goes_on, self._again = self._again, False
            if not goes_on:
                self._thread = None
            return goes_on
