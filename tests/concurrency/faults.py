"""A storage that bears witness and breaks, a clock that is off, a lock with a short lease, and product code unmade.

::

    WitnessStorage   notes each file of the table's own timeline that is made or deleted, and signs of life that end,
                     with the time before and after
                     counts calls, by step; at the one that a fault names: kill, stop, or an error (FaultyStorage)
                     on a machine of its own: locks of the machine are kept elsewhere
    clock_off        time.time and time.time_ns of this process, from now on
    LeaseLock        a lock for a few hundred milliseconds at a time, kept in a file: short enough to be slept through
    unmade           product functions that make histories safe, switched off: the checker must notice

Times are monotonic nanoseconds of this host, which all its processes share.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import hudi_fast.locking.table_lock as table_lock_module
import hudi_fast.timeline.transition as transition_module
import hudi_fast.writing.flow as flow_module
import hudi_fast.writing.rollback_plan as failed_writes_module
from hudi_fast.errors import LockError
from hudi_fast.locking.machine import MachineTurn
from hudi_fast.timeline.heartbeat import Heartbeat, HeartbeatRule
from tests.concurrency.worlds import Fault
from tests.support.instrumented_storage import InjectedFaultError, RecordingStorage

__all__ = ["MUTATIONS", "LeaseLock", "WitnessStorage", "clock_off", "hasty", "leased", "step_of", "unmade"]

LEASE_SECONDS = 0.3
MARGIN_SECONDS = 0.1
HASTE = 10

_LOCKS = ".hoodie/.locks/hudi_fast"
_real_time, _real_time_ns = time.time, time.time_ns

Note = Callable[[str, str, int, int, bool], None]
"""Takes what happened (``made`` or ``deleted``), the name of the timeline file, both times, and whether it is sure."""


def step_of(name: str, path: str, of_metadata: bool) -> str:
    """The step that a storage call belongs to, as faults name them; "" for those that they do not name."""
    if name == "delete_file":
        return "delete"
    if name == "create_exclusive" and (path.startswith(".hoodie/timeline/") or path.count("/") == 1):
        state = path.rpartition(".")[2]
        state = state if state in ("requested", "inflight") else "completed"
        if of_metadata:
            return "metadata_requested" if state == "requested" else f"metadata_{state}"
        return state
    if name == "write_bytes" and "/.heartbeat/" in path:
        return "heartbeat"
    if "/.temp/" in path:
        return "marker" if name in ("write_bytes", "create_exclusive") else ""
    if name in ("stream_close", "write_bytes", "create_exclusive") and not path.startswith(".hoodie/"):
        return "metadata_data" if of_metadata else "data"
    return ""


class WitnessStorage(RecordingStorage):
    """Notes the timeline, and has faults happen.

    Args:
        path: the table.
        options: of its storage.
        note: takes what happens to the timeline.
        faults: those of this writer that are about storage calls.
        machine: folder for the locks of this writer's machine; None: it shares them with all.
        can_kill: whether the writer is a process; else a kill is an error of this call and all that follow.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        options: Mapping[str, str],
        note: Note,
        faults: Sequence[Fault] = (),
        machine: Path | None = None,
        can_kill: bool = True,
    ) -> None:
        super().__init__(path, options)
        self._table_root = self._root
        self._tell = note
        self._faults = [one for one in faults if one.kind not in ("skew", "step_back")]
        self._machine = machine
        self._can_kill = can_kill
        self._shared: dict[str, Any] = {"counts": {}, "dead": False}  # one for all roots of this storage

    def fs_path(self, path: str) -> str:
        """See ``Storage``; locks of the machine are in its own folder."""
        if self._machine is not None and path.startswith(_LOCKS):
            return str(self._machine / path.rpartition("/")[2])
        return super().fs_path(path)

    def _run(self, name: str, path: str, do: Callable[[], Any], tear: Callable[[], object] | None = None) -> Any:
        if self._shared["dead"]:
            raise InjectedFaultError(f"the process of this storage is gone: {name} of {path}")
        due = self._due(name, path) if self._faults else []
        for fault in due:
            self._before(fault, name, path, do, tear)
        answer = self._witnessed(name, path, do)
        for fault in due:
            self._after(fault, name, path)
        return answer

    def _witnessed(self, name: str, path: str, do: Callable[[], Any]) -> Any:
        kind = {"create_exclusive": "made", "delete_file": "deleted"}.get(name)
        file = path.rpartition("/")[2]
        if kind is None or self._root != self._table_root or not _is_told(path):
            return do()
        begun = time.monotonic_ns()
        self._tell(kind, file, begun, 0, False)
        answer = do()
        self._tell(kind, file, begun, time.monotonic_ns(), True)
        return answer

    def _due(self, name: str, path: str) -> list[Fault]:
        step = step_of(name, path, self._root != self._table_root)
        with self._count_lock:
            counts = self._shared["counts"]
            for each in {"", step}:
                counts[each] = counts.get(each, -1) + 1
            return [one for one in self._faults if one.step in ("", step) and one.at == counts[one.step]]

    def _before(
        self, fault: Fault, name: str, path: str, do: Callable[[], Any], tear: Callable[[], object] | None
    ) -> None:
        if fault.kind in ("kill", "stop"):
            if not self._comes_late(fault, name, path):
                self._strike(fault, name, path)
            return
        if fault.kind == "after":
            self._witnessed(name, path, do)
        elif fault.kind == "tear" and tear is not None:
            tear()
        raise InjectedFaultError(f"injected fault: {name} of {path} ({fault.kind})")

    def _after(self, fault: Fault, name: str, path: str) -> None:
        if fault.kind in ("kill", "stop") and self._comes_late(fault, name, path):
            self._strike(fault, name, path)

    def _comes_late(self, fault: Fault, name: str, path: str) -> bool:
        """No lease helps who sleeps between looking at it and the very next call, which makes a file of a timeline:
        there a stop comes after the call. Locks of the machine last."""
        unguarded = fault.kind == "stop" and self._machine is not None
        return fault.late or (unguarded and name == "create_exclusive" and _is_told(path))

    def _strike(self, fault: Fault, name: str, path: str) -> None:
        if self._can_kill:
            os.kill(os.getpid(), signal.SIGKILL if fault.kind == "kill" else signal.SIGSTOP)
        elif fault.kind == "kill":
            self._shared["dead"] = True
            raise InjectedFaultError(f"the process of this storage ends: {name} of {path}")
        else:
            time.sleep(fault.ms / 1000)


def _is_told(path: str) -> bool:
    folder, _, name = path.rpartition("/")
    return folder in (".hoodie", ".hoodie/timeline", ".hoodie/.heartbeat") and name[:8].isdigit()


# ---- clocks


def clock_off(ms: int) -> None:
    """Let the wall clock of this process be off, or right again with 0; files get the times of the host still."""
    if not ms:
        time.time, time.time_ns = _real_time, _real_time_ns
        return
    time.time = lambda: _real_time() + ms / 1000
    time.time_ns = lambda: _real_time_ns() + ms * 1_000_000


# ---- a lock with a short lease


class LeaseLock:
    """One holder at a time for :data:`LEASE_SECONDS`, renewed by a thread; the holder and its deadline are in a file.

    Args:
        path: the file; writers of all machines see it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._owner = uuid.uuid4().hex
        self._until = 0.0
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self.holder = ""

    def try_lock(self, seconds: float) -> bool:
        """See ``LockProvider``."""
        deadline = time.monotonic() + seconds
        while not self._take(renew=False):
            if time.monotonic() > deadline:
                return False
            time.sleep(0.003)
        self._thread = threading.Thread(target=self._renew, daemon=True)
        self._thread.start()
        return True

    def require_held(self) -> None:
        """See ``LockProvider``."""
        with self._state() as (owner, until, _):
            left = until - time.monotonic()
        if owner != self._owner or left < MARGIN_SECONDS:
            raise LockError(f"The lease of {self._path} was lost: {owner} has it, {left:.3f} s are left.")

    def is_certain(self) -> bool:
        """See ``LockProvider``."""
        with self._state() as (owner, until, _):
            return owner == self._owner and time.monotonic() < until

    def unlock(self) -> None:
        """See ``LockProvider``."""
        self.close()

    def close(self) -> None:
        """See ``LockProvider``."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        with self._state() as (owner, _, write):
            if owner == self._owner:
                write("", 0.0)

    def _renew(self) -> None:
        while not self._ended.wait(LEASE_SECONDS / 5):
            if not self._take(renew=True):
                return

    def _take(self, renew: bool) -> bool:
        begun = time.monotonic()
        with self._state() as (owner, until, write):
            if owner != self._owner and (renew or (owner and until > begun)):
                self.holder = owner
                return False
            if renew and until < begun:  # others may have looked already
                return False
            write(self._owner, begun + LEASE_SECONDS)
            return True

    @contextmanager
    def _state(self) -> Iterator[tuple[str, float, Callable[[str, float], None]]]:
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            data = os.pread(descriptor, 200, 0)
            owner, until = json.loads(data) if data else ("", 0.0)

            def write(new_owner: str, new_until: float) -> None:
                os.pwrite(descriptor, json.dumps([new_owner, new_until]).encode().ljust(100), 0)

            yield owner, until, write
        finally:
            os.close(descriptor)


@contextmanager
def _replaced(module: Any, name: str, value: Any) -> Iterator[None]:
    kept = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, kept)


@contextmanager
def leased(path: Path) -> Iterator[None]:
    """Locks that leave the machine are leases in a file, whatever provider the options name."""
    with _replaced(table_lock_module, "open_provider", lambda _storage, _options: LeaseLock(path)):
        yield


# ---- signs of life


@contextmanager
def hasty() -> Iterator[None]:
    """Signs of life come, and run out, :data:`HASTE` times as fast as options say, whose least is a second."""

    def rule(interval_ms: int, misses: int, shared: bool) -> HeartbeatRule:
        return HeartbeatRule(interval_ms // HASTE, misses, shared)

    with _replaced(failed_writes_module, "HeartbeatRule", rule):
        yield


# ---- product code unmade


def _nothing(*_: Any, **__: Any) -> None:
    return None


@contextmanager
def _free(*_: Any, **__: Any) -> Iterator[MachineTurn]:
    yield MachineTurn()


MUTATIONS: dict[str, tuple[tuple[Any, str, Any], ...]] = {
    "lock admits two": ((table_lock_module, "machine_lock", _free),),
    "conflicts are not looked for": ((flow_module, "require_no_conflicts", _nothing),),
    "metadata table is passed over": ((flow_module, "record_in_metadata", _nothing),),
    "fence is gone": tuple(
        (table_lock_module.HeldLock, name, _nothing) for name in ("require", "require_to_complete", "confirm")
    ),
    "signs of life are passed over": ((failed_writes_module, "is_alive", lambda *_: False),),
    "own silence is passed over": ((Heartbeat, "require_alive", _nothing),),
    "inflight file is not asked for": ((transition_module, "_require", _nothing),),
}
"""Parts of the product that keep histories safe, with what stands in their place when they are switched off."""


@contextmanager
def unmade(names: Sequence[str]) -> Iterator[None]:
    """The product without the parts that :data:`MUTATIONS` names."""
    with contextlib.ExitStack() as stack:
        for name in names:
            for module, attribute, value in MUTATIONS[name]:
                stack.enter_context(_replaced(module, attribute, value))
        yield
