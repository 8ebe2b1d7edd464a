"""One call on one table: what it asks for, and the lock, clock and table state that its steps share.

::

    Call ─► TableSession ─► locked()   the table's lock ─► the state under it ─► times from the clock
    never changes           state      opened once; opened again after the lock was released, or after a change

Only the holder of the table's lock changes the timeline. A state that was opened under the lock therefore stays valid
until the lock is released or this call changes the table.

With a single writer (``hoodie.write.concurrency.mode=SINGLE_WRITER``), :meth:`TableSession.turn` holds the lock for a
whole write, and all sections in it share one state. With several writers, each section acquires the lock and opens the
state again, so that others can work in between.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from dataclasses import field, replace
from typing import Any

from hudi_fast.config.write_options import WriteOptions
from hudi_fast.errors import LockTimeoutError, ServiceTakenError
from hudi_fast.events import Listener, Phase, phase
from hudi_fast.locking.machine import machine_lock
from hudi_fast.locking.table_lock import HeldLock, table_lock
from hudi_fast.metadata_table.last_states import keep_state, last_state
from hudi_fast.metadata_table.state import MetadataLister, metadata_of, open_state
from hudi_fast.metadata_table.updates.commit import Recorded
from hudi_fast.monitoring.metrics import SPANS, spans_are_wanted
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.clock import InstantClock
from hudi_fast.timeline.heartbeat import HeartbeatRule
from hudi_fast.timeline.instants import Instant, Timeline
from hudi_fast.values import dataclass
from hudi_fast.view.table_state import TableState
from hudi_fast.writing.backend import Backend
from hudi_fast.writing.settings import Settings

__all__ = ["Call", "TableSession"]

_DERIVABLE = ("commit", "deltacommit", "clean")
"""Actions that add or delete files and end no file group."""


@dataclass(frozen=True, slots=True)
class Call:
    """What a call asks for. It never changes; a call that asks for something else is another one.

    Attributes:
        storage: the table's storage; the table need not exist yet.
        settings: options of the call.
        backend: executes the work.
        is_private: whether no other process knows the table, so that no lock is taken.
        guard: called with the table before a write evaluates its rows, and where several may write, again before its
            commit, under the lock. It raises to give the write up.
        undoes: whether the call undoes commits, so that completed writes may lack their bodies.
    """

    storage: Storage
    settings: Settings
    backend: Backend
    is_private: bool = False
    guard: Callable[[TableState], None] | None = None
    undoes: bool = False


@dataclass(slots=True)
class _Section:
    """A time for which the table's lock is held.

    Attributes:
        held: the lock.
        is_recovered: whether failed writes were rolled back in it.
        unlocked_work: executed once the lock is released.
    """

    held: HeldLock
    is_recovered: bool = False
    unlocked_work: list[Callable[[], None]] = field(default_factory=list)


class TableSession:
    """The table during one call. Not thread-safe: a call in another thread has a session of its own.

    Args:
        call: what the call asks for.
    """

    def __init__(self, call: Call) -> None:
        self.call = call
        self.settings = call.settings
        self.backend = call.backend
        self.storage = call.storage if call.settings.write.engine.syncs_files else call.storage.without_sync()
        self._section: _Section | None = None
        self._state: TableState | None = None
        self._known: TableState | None = None
        self._clock: InstantClock | None = None
        self._clock_lock: HeldLock | None = None
        self._kept: contextlib.ExitStack | None = None
        self._waits = True
        self._listeners: tuple[Listener, ...] | None = None

    # ---- state

    @property
    def state(self) -> TableState:
        """The table; opened on first use after :meth:`reload`, a change, or the end of a lock section.

        Raises:
            TableNotFoundError: there is no table.
            CorruptTableError: its configuration or timeline is damaged.
        """
        if self._state is None:
            known = None if self.call.is_private else last_state(self.storage)
            commits = None if self._known is None else self._known.commits
            self._state = open_state(self.storage, None, True, known, self.call.undoes, commits)
        return self._state

    @property
    def timeline(self) -> Timeline:
        """The active timeline of :attr:`state`."""
        return self.state.timeline

    @property
    def known_state(self) -> TableState | None:
        """The state, or the last one if this call changed the table since. Reads nothing; for events."""
        return self._state or self._known

    def latest(self) -> TableState:
        """The state; opened again unless the lock is held, which keeps it up to date."""
        if self._section is None:
            self.changed()
        return self.state

    def set_state(self, state: TableState) -> TableState:
        """Continue with a state that follows from a change of this call; returns it."""
        self._state = state
        return state

    def committed(self, instant: Instant, recorded: Recorded | None) -> None:
        """Continue with the state after this call completed a write or a clean.

        The state is derived if it follows from the instant alone, and opened again otherwise.

        Args:
            instant: the completed instant.
            recorded: its record in the metadata table; None for a table without one.
        """
        state = self._state
        self.changed()
        if state is None or instant.action not in _DERIVABLE or state.config.layout_version < 2:
            return
        if state.view.history is not None or (metadata_of(state) is not None and recorded is None):
            return
        timeline, lister = state.timeline.with_instant(instant), state.view.lister
        if recorded is not None:
            if not isinstance(lister, MetadataLister) or lister.lists_folders:  # it turned out to be damaged
                return
            lister = lister.after(replace(recorded.table, data_timeline=timeline), recorded.change)
        view = replace(state.view, timeline=timeline, lister=lister)
        self._state = replace(state, timeline=timeline, view=view)

    def changed(self) -> None:
        """Open the state again on its next use, because this call changed the table."""
        self._known = self._state or self._known
        self._state = None

    def reload(self) -> TableState:
        """Open the state again."""
        self.changed()
        return self.state

    def with_write(self, options: WriteOptions) -> TableSession:
        """A session for a write with other options, on the same state; outside the sections of the lock."""
        other = TableSession(replace(self.call, settings=replace(self.settings, write=options), guard=None))
        other._state = self._state
        return other

    def ask_guard(self) -> None:
        """Let the guard of the call give the write up."""
        if self.call.guard is not None:
            self.call.guard(self.state)

    # ---- events

    @property
    def listeners(self) -> tuple[Listener, ...]:
        """Listeners that the options, the backend and the application ask for."""
        if self.call.is_private:  # its phases belong to the call that created it
            return ()
        if self._listeners is None:
            found = self.backend.listeners
            if self.settings.metrics.on:
                from hudi_fast.monitoring.metrics import MetricsListener

                found = (*found, MetricsListener(self.settings.metrics, self.storage.uri))
            self._listeners = (*found, SPANS) if spans_are_wanted() else found
        return self._listeners

    def phase(self, name: str, area: str = "", instant: str = "", level: int = logging.DEBUG, **figures: Any) -> Phase:
        """A phase of this call; see :func:`hudi_fast.events.phase`."""
        return phase(name, area, self.storage.uri, instant, level, self.listeners, **figures)

    # ---- lock and clock

    @property
    def holds_lock(self) -> bool:
        """Whether the table's lock is held."""
        return self._section is not None

    @property
    def is_recovered(self) -> bool:
        """Whether failed writes were rolled back since the lock was acquired."""
        return self._section is not None and self._section.is_recovered

    def recovered(self) -> None:
        """Note that failed writes were rolled back; the lock is held."""
        if self._section is not None:
            self._section.is_recovered = True

    @contextlib.contextmanager
    def locked(self) -> Iterator[TableState]:
        """Hold the table's lock for the block; yields the table under it. Sections may be nested.

        Raises:
            LockError: the lock cannot be acquired; ``LockTimeoutError`` when others held it for too long.
            TableNotFoundError: there is no table.
        """
        with self.section():
            yield self.state

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Hold the lock for the whole block with a single writer; do nothing with several.

        Raises:
            HudiError: as :meth:`locked`.
        """
        if self.settings.write.lock.is_shared:
            yield
        elif self._kept is not None:
            self._kept.enter_context(self.section())
            yield
        else:
            with self.section():
                yield

    @contextlib.contextmanager
    def keeping_turn(self) -> Iterator[None]:
        """Keep the lock of a :meth:`turn` that ends within the block until the block ends."""
        with contextlib.ExitStack() as kept:
            self._kept = kept
            try:
                yield
            finally:
                self._kept = None

    @property
    def clock(self) -> InstantClock:
        """Gives times under the lock, later than all times of the state; raises once the lock is lost."""
        state = self.state
        if self._clock is None:
            self._clock = InstantClock(state.config.timezone, self.settings.write.failed_writes.clock_skew_ms)
        held = None if self._section is None else self._section.held
        if held is not None and held is not self._clock_lock:
            self._clock.under(held, state.timeline.newest_time)
            self._clock_lock = held
        return self._clock

    def next_time(self) -> str:
        """A new time for an instant; see :meth:`InstantClock.next_time`."""
        return self.clock.next_time(self.timeline.newest_time)

    def transitioned(self, instant: Instant) -> None:
        """Update the state after this call moved an instant to another pending state; files are the same."""
        self._state = replace(self.state, timeline=self.timeline.with_instant(instant))

    def require_lock(self) -> None:
        """Check right before an irreversible change that the lock is still held.

        Raises:
            LockError: it was lost, or is about to expire.
        """
        if self._section is not None:
            self._section.held.require()

    @property
    def excludes_others(self) -> bool:
        """Whether the held lock excludes all writers that follow the rules of the storage."""
        return self._section is None or self._section.held.is_exclusive

    def take_lock_again(self) -> None:
        """Acquire the table's lock again after it was lost within a section.

        Raises:
            LockError: it cannot be acquired.
        """
        if self._section is not None:
            self._section.held.take_again()
            self._section.is_recovered = False
        self._clock_lock = None  # later times are after the times of writers that held the lock meanwhile
        self.changed()

    @contextlib.contextmanager
    def service_lock(self, path: str) -> Iterator[None]:
        """Hold the lock of one kind of table service for the block. Only one of a kind runs at a time.

        Args:
            path: of the lock file, relative to the table.

        Raises:
            LockTimeoutError: another process held it for longer than the options allow.
            ServiceTakenError: another process holds it, within :meth:`without_waiting`.
        """
        with contextlib.ExitStack() as held:
            try:
                held.enter_context(machine_lock(self.storage, self.service_lock_seconds, path))
            except LockTimeoutError as error:
                if self._waits:
                    raise
                raise ServiceTakenError(
                    f"Another process runs a service of this kind on {self.storage.uri}: {error}"
                ) from error
            yield

    @property
    def service_lock_seconds(self) -> float:
        """Seconds to wait for the lock of a service that another process runs."""
        return self.settings.lock_seconds if self._waits else 0.0

    @contextlib.contextmanager
    def without_waiting(self) -> Iterator[None]:
        """Do not wait in the block for table services of other processes: they raise ``ServiceTakenError``."""
        waits, self._waits = self._waits, False
        try:
            yield
        finally:
            self._waits = waits

    @property
    def heartbeat_rule(self) -> HeartbeatRule:
        """The interval of heartbeats, and the time after which one expires."""
        return self.settings.failed_writes.heartbeat

    @contextlib.contextmanager
    def section(self) -> Iterator[None]:
        """Hold the table's lock for the block without opening the state; see :meth:`locked`."""
        if self._section is not None:
            yield
            return
        with contextlib.ExitStack() as stack:
            if self.call.is_private:
                section = _Section(HeldLock())
            else:
                with phase("lock", "locking", self.storage.uri):
                    section = _Section(stack.enter_context(table_lock(self.storage, self.settings.write.lock)))
                self.changed()
            self._section = section
            try:
                yield
                if self._state is not None and not self.call.is_private:
                    keep_state(self._state)
            finally:
                self._section = None
        for work in section.unlocked_work:
            work()

    def once_unlocked(self, work: Callable[[], None]) -> None:
        """Execute work after the current section has ended well and the lock is released. It may lock again."""
        if self._section is None:
            raise RuntimeError("The table's lock is not held: call once_unlocked within locked().")
        self._section.unlocked_work.append(work)
