"""Events of calls: phases with times and figures, completed actions, and warnings.

::

    flow, services ─► with phase("write_files", files=3) ──┬─► a log record of hudi_fast.<area>
                                                           └─► listeners: spans, progress bars, Spark's job descriptions
                   ─► completed(Completed(...)) ──────────────► listeners: metrics, commit callbacks

The code that does the work emits events and does not know the listeners. A phase inside another one belongs to the same
table and instant, and has the same listeners. Nothing is formatted unless a logger or a listener wants it.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from functools import cache
from types import TracebackType
from typing import Any, Protocol, TypeVar

from hudi_fast.errors import HudiWarning
from hudi_fast.values import dataclass

__all__ = [
    "Completed",
    "Listener",
    "Phase",
    "completed",
    "listening",
    "logger_of",
    "note",
    "phase",
    "warn",
    "without_secrets",
]

Answer = TypeVar("Answer")

_ROOT = "hudi_fast"
_PACKAGE = os.path.dirname(__file__) + os.sep
_SECRETS = re.compile(
    r"(?i)(?<=://)[^/@:\s]+:[^/@\s]+(?=@)"  # user:password@host
    r"|(?<=[?&](?:sig)=)[^&\s]+|(?<=X-Amz-Signature=)[^&\s]+|(?<=X-Amz-Credential=)[^&\s]+"
    r"|(?<=X-Amz-Security-Token=)[^&\s]+|(?<=AccountKey=)[^;\s]+|(?<=X-Goog-Signature=)[^&\s]+"
)

logging.getLogger(_ROOT).addHandler(logging.NullHandler())  # quiet unless the application configures logging


@dataclass(frozen=True, kw_only=True, slots=True)
class Completed:
    """An action that was completed.

    Attributes:
        action: ``commit``, ``deltacommit``, ``replacecommit``, ``compaction``, ``logcompaction``, ``clustering``,
            ``clean``, ``rollback`` or ``archive``.
        instant: its requested time; empty for ``archive``.
        seconds: its duration.
        metadata: its commit metadata, if it has some.
        state: the table before or after it.
        figures: counts by the name that Apache Hudi's metrics give them.
    """

    action: str
    instant: str
    seconds: float
    metadata: Any = None
    state: Any = None
    figures: dict[str, int] | None = None


class Listener(Protocol):
    """Gets the events of a call, in the thread that emits them. Its errors are logged and change nothing."""

    def begun(self, phase: Phase) -> None:
        """A phase has begun."""
        ...

    def advanced(self, phase: Phase) -> None:
        """Another unit of a phase is done; from any thread, one at a time."""
        ...

    def ended(self, phase: Phase) -> None:
        """A phase has ended; its ``seconds`` and ``error`` are set."""
        ...

    def completed(self, done: Completed) -> None:
        """An action was completed."""
        ...


class Phase:
    """One step of a call; a context manager, see :func:`phase`.

    Attributes:
        name: such as ``write_files``.
        area: of the logger.
        table: base path.
        instant: requested time; empty before it is known.
        figures: ``rows``, ``files``, ``bytes`` ...: numbers and short texts.
        total: number of units of work; 0 if unknown.
        unit: name of these units.
        done: number of units that are done.
        seconds: duration, after the end.
        error: the error that ended it; None again after the listeners were called.
        outer: the phase around it.
        attached: span and context manager of the listener that makes spans; None without it.
    """

    __slots__ = (
        "_level",
        "_listeners",
        "_started",
        "_token",
        "area",
        "attached",
        "done",
        "error",
        "figures",
        "instant",
        "name",
        "outer",
        "seconds",
        "table",
        "total",
        "unit",
    )

    def __init__(
        self,
        name: str,
        area: str,
        table: str,
        instant: str,
        level: int,
        listeners: tuple[Listener, ...],
        figures: dict[str, Any],
    ) -> None:
        outer = _current.get()
        self.outer = outer
        self.name = name
        if outer is not None:
            area, table, instant = area or outer.area, table or outer.table, instant or outer.instant
        self.area: str = area
        self.table: str = table
        self.instant: str = instant
        self.figures = figures
        self.total, self.unit, self.done = 0, "", 0
        self.seconds = 0.0
        self.error: BaseException | None = None
        self.attached: Any = None
        self._level = level
        self._listeners = listeners
        self._token: Token[Phase | None] | None = None
        self._started = 0.0

    def __enter__(self) -> Phase:
        self._listeners = _in_force(self._listeners, self.outer)
        self._token = _current.set(self)
        self._started = time.monotonic()
        for one in self._listeners:
            _call_listener(one.begun, self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.seconds = time.monotonic() - self._started
        self.error = error
        if self._token is not None:
            _current.reset(self._token)
        for one in reversed(self._listeners):
            _call_listener(one.ended, self)
        logger = logger_of(self.area)
        if logger.isEnabledFor(self._level):
            self._log(logger)
        self.error = None  # its frames hold this phase

    def add(self, **figures: Any) -> None:
        """Add figures that have become known."""
        self.figures.update(figures)

    def counting(self, function: Callable[[int], Answer], total: int, unit: str) -> Callable[[int], Answer]:
        """A function that does one unit of the phase, and tells listeners; ``function`` itself if there are none.

        Args:
            function: does the unit of a number; in any thread.
            total: number of units.
            unit: name of these units, for readers.
        """
        self.total, self.unit = total, unit
        if not self._listeners:
            return function

        one_at_a_time = threading.Lock()

        def counted(number: int) -> Answer:
            answer = function(number)
            with one_at_a_time:
                self.done += 1
                for one in self._listeners:
                    _call_listener(one.advanced, self)
            return answer

        return counted

    def _log(self, logger: logging.Logger) -> None:
        figures = "".join(f", {name} {value}" for name, value in self.figures.items())
        failed = "" if self.error is None else f" and failed: {type(self.error).__name__}"
        logger.log(
            self._level,
            "%s of %s%s took %.3f s%s%s",
            self.name,
            without_secrets(self.table) or "a table",
            f", instant {self.instant}," if self.instant else "",
            self.seconds,
            failed,
            figures,
            extra=self.fields(),
        )

    def fields(self) -> dict[str, Any]:
        """The phase as fields of a log record or a span."""
        own = {"table": without_secrets(self.table), "instant": self.instant, "phase": self.name}
        return {**self.figures, **own, "seconds": round(self.seconds, 6)}


_current: ContextVar[Phase | None] = ContextVar("hudi_fast_phase", default=None)
_global: tuple[Listener, ...] = ()


def phase(
    name: str,
    area: str = "",
    table: str = "",
    instant: str = "",
    level: int = logging.DEBUG,
    listeners: tuple[Listener, ...] = (),
    **figures: Any,
) -> Phase:
    """A phase, to be used in a ``with`` statement.

    Args:
        name: of the step.
        area: of the logger; empty for the area of the phase around it.
        table: base path.
        instant: requested time.
        level: of its log record.
        listeners: of this phase and all phases in it.
        figures: numbers and short texts.
    """
    return Phase(name, area, table, instant, level, listeners, figures)


def completed(done: Completed) -> None:
    """Tell the listeners of the current phase that an action was completed."""
    outer = _current.get()
    for one in _global if outer is None else outer._listeners:
        _call_listener(one.completed, done)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Give all events of this process to a listener during the block."""
    global _global
    _global = (*_global, listener)
    try:
        yield
    finally:
        _global = tuple(one for one in _global if one is not listener)


def note(area: str, level: int, text: str, *values: object, table: str = "", instant: str = "", **fields: Any) -> None:
    """Log a message that is not a phase. Nothing is formatted unless the logger is enabled for the level.

    Args:
        area: of the logger.
        level: of the record.
        text: with ``%s`` for each value.
        values: errors and texts; passwords and signatures in them are hidden.
        table: base path, a field of the record.
        instant: requested time, a field of the record.
        fields: more fields of the record.
    """
    logger = logger_of(area)
    if logger.isEnabledFor(level):
        shown = [one if isinstance(one, int | float) else without_secrets(str(one)) for one in values]
        extra = {"table": without_secrets(table), "instant": instant, **fields}
        logger.log(level, text, *shown, extra=extra, stacklevel=2)


def warn(text: str) -> None:
    """Give a :class:`~hudi_fast.errors.HudiWarning` at the line that called hudi_fast.

    Python shows a text once for each such line.
    """
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, HudiWarning, stacklevel=level)


@cache
def logger_of(area: str) -> logging.Logger:
    """The logger ``hudi_fast.<area>``."""
    return logging.getLogger(f"{_ROOT}.{area}" if area else _ROOT)


def without_secrets(text: str) -> str:
    """A text with passwords and signatures of addresses replaced by ``***``."""
    return _SECRETS.sub("***", text) if ("@" in text or "=" in text) else text


def _in_force(own: tuple[Listener, ...], outer: Phase | None) -> tuple[Listener, ...]:
    """Listeners of a phase, each once: listeners of the process, of the phases around it, and its own."""
    inherited = _global if outer is None else outer._listeners
    return (*inherited, *(one for one in own if one not in inherited)) if own else inherited


def _call_listener(method: Callable[[Any], None], event: object) -> None:
    try:
        method(event)
    except Exception as error:
        note("monitoring", logging.WARNING, "A listener failed: %s", repr(error))
