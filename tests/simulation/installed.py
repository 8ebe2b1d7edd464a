"""Puts the product on a simulated world: modules get its clock, files, locks, threads and random numbers.

::

    Storage("/sim/t")        LocalStore, local_sync, machine lock ─► Kernel     the real code above calls of os
    Storage("s3://sim/t")    create_confirmed, storage lock ───────► Objects    the real code above requests

Only names in modules are replaced, and only while a world is installed.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from datetime import datetime
from functools import lru_cache
from types import ModuleType, SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs

import hudi_fast.config.properties_file as properties_file_module
import hudi_fast.formats.log.blocks as blocks_module
import hudi_fast.locking.file_system as file_system_module
import hudi_fast.locking.in_storage as in_storage_module
import hudi_fast.locking.lock_record as lock_record_module
import hudi_fast.locking.machine as machine_module
import hudi_fast.metadata_table.last_states as last_states_module
import hudi_fast.storage.base as base_module
import hudi_fast.storage.forks as thread_pool_module
import hudi_fast.storage.local_store as local_store_module
import hudi_fast.storage.stores as object_store_module
import hudi_fast.timeline.heartbeat as heartbeat_module
import hudi_fast.writing.flow as flow_module
import hudi_fast.writing.markers as write_memory_module
from hudi_fast.storage.local_store import LocalStore
from hudi_fast.storage.places import Place
from tests.simulation.kernel import File, Folder, Kernel, Writing
from tests.simulation.objects import ObjectFiles, Objects
from tests.simulation.remembered import replacements
from tests.simulation.scheduler import EPOCH, Died, Process, Scheduler

__all__ = ["LOCAL", "S3", "World"]

LOCAL = "/sim/t"
S3 = "s3://sim/t"

_KEPT = (
    (last_states_module, "_STATES", OrderedDict),
    (write_memory_module, "_memories", OrderedDict),
    (local_store_module, "_noted", set),
    (in_storage_module, "_released", dict),
    (in_storage_module, "_audited", dict),
)
"""What modules keep for their process."""

_ON_KERNEL = (
    local_store_module,
    machine_module,
    file_system_module,
)
_WITH_THREADS = (heartbeat_module, in_storage_module, file_system_module)
_WITH_DATES = (properties_file_module, lock_record_module)
_LOCKING = (machine_module, local_store_module, file_system_module)

_open_place = base_module.open_place
_to_disk = local_store_module.to_disk
"""Other tests leave it to the operating system what is on the disk."""


class World(Scheduler):
    """A scheduler with a machine and an object store."""

    def __init__(self, seed: object, choose: Any, on_step: Any = None) -> None:
        super().__init__(seed, choose, on_step)
        self.kernel = Kernel(self)
        self.objects = Objects(self)
        self.on_switch = _switch
        self.nobody = self.process("nobody")

    @property
    def running(self) -> Process:
        """The process at work."""
        return self.nobody if self.current is None else self.current.process

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        """Let the product run on this world."""
        kernel, threads = self.kernel, _threads(self)
        fake_os = kernel.as_os(lambda: 1000 + abs(hash(self.running.name)) % 1000)
        clock, identity, lockable = _clock(self), _identity(self), kernel.lockable()
        with _Replaced() as replaced:
            for module, used in _users(len(sys.modules)):
                replaced.set(module, used, clock if used == "time" else identity)
            for module in _ON_KERNEL:
                replaced.set(module, "os", fake_os)
            for module in (local_store_module, file_system_module):
                replaced.set(module, "open", kernel.open_stream)
            replaced.set(base_module, "open", lambda path, *_, **__: kernel.open_stream(path))
            for module in _WITH_DATES:
                replaced.set(module, "datetime", _calendar(clock))
            for module in _LOCKING:
                replaced.set(module, "LockableFile", lockable)
            for module in _WITH_THREADS:
                replaced.set(module, "threading", threads)
            # Writers to an object store are on machines of their own: a lock file of one machine does not order them.
            replaced.set(machine_module, "tempfile", SimpleNamespace(gettempdir=lambda: f"/tmp/{self.running.name}"))
            replaced.set(in_storage_module.StorageLock.__init__, "__defaults__", (clock.time, False))
            lease = in_storage_module._Lease  # its default is made of the class that it had at import
            replaced.set(in_storage_module, "_Lease", lambda *given: lease(*given, stop=threads.Event()))
            for module in (object_store_module, flow_module):
                replaced.set(module, "_RANDOM", _Chance(self))
            replaced.set(base_module, "open_place", self._place)
            replaced.set(base_module, "check_entries", lambda *_: None)
            replaced.set(base_module, "exchange_folders", kernel.exchange)
            replaced.set(base_module, "link_file", local_store_module.link_file)
            replaced.set(local_store_module, "to_disk", _to_disk)
            replaced.set(local_store_module, "NotedFile", _noted_file(kernel))
            replaced.set(thread_pool_module.ThreadPool, "submit", _submit)
            replaced.set(blocks_module, "_open", lambda storage, path, size=None: storage.open_input(path, size))
            for owner, name, value in replacements():
                replaced.set(owner, name, value)
            for module, name, make in _KEPT:
                replaced.set(module, name, make())
            _switch(self.nobody)
            yield

    def _place(self, uri: str, options: Any) -> Place:
        if uri.startswith(LOCAL.rpartition("/")[0]):
            files = KernelFiles.of(self.kernel)
            return Place(files, uri, folders=LocalStore(files))
        if uri.startswith("s3://sim/"):
            return Place(ObjectFiles.of(self.objects), uri.removeprefix("s3://"), self.objects)
        return _open_place(uri, options)


@lru_cache(1)
def _users(_loaded: int) -> list[tuple[ModuleType, str]]:
    """Modules of the product that use the clock, or make identities, by the number of modules that are loaded."""
    names = {"time": time, "uuid": uuid}
    product = [module for name, module in list(sys.modules.items()) if name.startswith("hudi_fast.")]
    return [(module, name) for module in product for name, one in names.items() if vars(module).get(name) is one]


def _switch(process: Process) -> None:
    for module, name, make in _KEPT:
        setattr(module, name, process.state.setdefault(name, make()))


class _Replaced:
    """Attributes of modules and classes, put back at the end."""

    def __enter__(self) -> _Replaced:
        self._kept: list[tuple[Any, str, Any]] = []
        return self

    def set(self, owner: Any, name: str, value: Any) -> None:
        kept = vars(owner).get(name, _MISSING) if isinstance(owner, type) else getattr(owner, name, _MISSING)
        self._kept.append((owner, name, kept))
        setattr(owner, name, value)

    def __exit__(self, *_: object) -> None:
        for owner, name, value in reversed(self._kept):
            if value is _MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, value)


_MISSING = object()


# ---- clocks, random numbers, threads


def _clock(world: World) -> Any:
    def wall() -> float:
        return EPOCH + world.now + world.off + world.running.off

    names = {name: getattr(time, name) for name in dir(time) if not name.startswith("__")}
    return SimpleNamespace(
        **names
        | {
            "monotonic": lambda: world.now,
            "perf_counter": lambda: world.now,
            "time": wall,
            "time_ns": lambda: int(wall() * 1e9),
            "strftime": lambda form, *moment: time.strftime(form, *(moment or [time.localtime(wall())])),
            "sleep": lambda seconds: world.wait(seconds) if seconds > 0 else None,
        }
    )


def _calendar(clock: Any) -> Any:
    return SimpleNamespace(now=lambda zone=None: datetime.fromtimestamp(clock.time(), zone))


def _identity(world: World) -> Any:
    names = {name: getattr(uuid, name) for name in dir(uuid) if not name.startswith("__")}
    return SimpleNamespace(**names | {"uuid4": lambda: uuid.UUID(int=world.running.chance.getrandbits(128), version=4)})


class _Chance:
    def __init__(self, world: World) -> None:
        self._world = world

    def uniform(self, low: float, high: float) -> float:
        return self._world.running.chance.uniform(low, high)


def _threads(world: World) -> Any:
    class Event:
        def __init__(self) -> None:
            self._is_set = False

        def set(self) -> None:
            self._is_set = True

        def clear(self) -> None:
            self._is_set = False

        def is_set(self) -> bool:
            return self._is_set

        def wait(self, timeout: float | None = None) -> bool:
            return world.wait(timeout, self.is_set)

    class Thread:
        def __init__(self, target: Callable[..., object], args: Any = (), name: str = "", daemon: bool = True) -> None:
            self._work, self._name, self._actor = (lambda: target(*args)), name, None

        def start(self) -> None:
            assert world.current is not None
            process = world.current.process
            if process.dead:
                raise Died
            if not world.actors:  # alone: nobody else has a turn
                self._alone = True
                return
            self._actor = world.spawn(process, f"{process.name} {self._name}", self._work)

        def join(self, timeout: float | None = None) -> None:
            actor = self._actor
            if actor is not None:
                world.wait(timeout, lambda: actor.ended)

        def is_alive(self) -> bool:
            return self._actor is not None and not self._actor.ended

    class Lock:
        def __init__(self) -> None:
            self._held = False

        def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
            if self._held and not world.wait(None if timeout < 0 else timeout, lambda: not self._held):
                return False
            self._held = True
            return True

        def release(self) -> None:
            self._held = False

        def __enter__(self) -> bool:
            return self.acquire()

        def __exit__(self, *_: object) -> None:
            self.release()

    names = {name: getattr(threading, name) for name in dir(threading) if not name.startswith("__")}
    return SimpleNamespace(**names | {"Event": Event, "Thread": Thread, "Lock": Lock})


def _submit(_self: Any, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
    future: Future[Any] = Future()
    try:
        future.set_result(function(*args, **kwargs))
    except Died:
        raise
    except BaseException as error:
        future.set_exception(error)
    return future


# ---- files


class KernelFiles(pafs.LocalFileSystem):  # type: ignore[misc]
    """What :mod:`pyarrow.fs` does on a kernel."""

    @classmethod
    def of(cls, kernel: Kernel) -> KernelFiles:
        """The files of a kernel."""
        made = cls()
        made.kernel = kernel
        return made

    def open_input_file(self, path: str, **_: Any) -> pa.NativeFile:
        """See ``pyarrow.fs``."""
        return pa.BufferReader(self.kernel.read(path))

    def open_output_stream(self, path: str, **_: Any) -> pa.NativeFile:
        """See ``pyarrow.fs``."""
        return _Output.made(self.kernel, path)

    def get_file_info(self, paths: Any) -> Any:
        """See ``pyarrow.fs``."""
        if not isinstance(paths, str):
            return [self.get_file_info(path) for path in paths]
        node = self.kernel.status_of(paths)
        if node is None:
            return pafs.FileInfo(paths, pafs.FileType.NotFound)
        kind = pafs.FileType.Directory if isinstance(node, Folder) else pafs.FileType.File
        return pafs.FileInfo(
            paths, kind, size=len(node.data) if isinstance(node, File) else None, mtime_ns=node.mtime_ns
        )

    def create_dir(self, path: str, recursive: bool = True) -> None:
        """See ``pyarrow.fs``."""
        self.kernel.makedirs(path, exist_ok=True)

    def delete_dir(self, path: str) -> None:
        """See ``pyarrow.fs``."""
        self.kernel.remove_tree(path)

    def move(self, source: str, target: str) -> None:
        """See ``pyarrow.fs``."""
        self.kernel.replace(source, target)


class _Output(pa.PythonFile):  # type: ignore[misc]
    """A stream into a file of a kernel, noted when it is closed."""

    _name, _noted = "", False

    @classmethod
    def made(cls, kernel: Kernel, name: str, noted: bool = False) -> _Output:
        kernel._step("create", name)
        node = kernel._walk(name)
        if isinstance(node, File):
            file = node
            file.data = b""
        else:
            file = kernel._new_file(name)
        made = cls(Writing(kernel, name, file, steps=True), mode="w")
        made._name, made._noted = name, noted
        return made

    def close(self) -> None:
        is_open = not self.closed
        super().close()
        if is_open and self._noted:
            local_store_module.note(self._name)


def _noted_file(kernel: Kernel) -> Any:
    return SimpleNamespace(create=lambda name: _Output.made(kernel, name, noted=True))
