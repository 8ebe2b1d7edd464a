"""A local disk in memory: files, folders, locks, and what a loss of power leaves of them.

::

    calls of a process ─► entries and contents in memory ─ fsync of a file ────► its content on the disk
                                                         └ fsync of a folder ──► its names on the disk
    after_loss: a subset or a beginning of the names that were changed since; contents whole, cut, empty or old

The names of functions and their errors are those of :mod:`os`, so that modules of the product run on it.
"""

from __future__ import annotations

import errno
import io
import os
import random
import stat as stat_module
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from tests.simulation.scheduler import EPOCH, Call, Process, Scheduler

__all__ = ["File", "Folder", "Kernel", "shape_of"]


@dataclass(eq=False, slots=True)
class File:
    """A file, under any number of names."""

    number: int
    data: bytes = b""
    kept: bytes | None = None
    """On the disk; None if it never got there."""
    mtime_ns: int = 0


@dataclass(eq=False, slots=True)
class Folder:
    """A folder."""

    number: int
    entries: dict[str, File | Folder] = field(default_factory=dict)
    kept: dict[str, File | Folder] = field(default_factory=dict)
    """Names on the disk."""
    mtime_ns: int = 0


Node = File | Folder
Change = tuple[Folder, str, "Node | None"]


class Kernel:
    """One machine.

    Args:
        scheduler: is asked before each call.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.root = Folder(1)
        self.numbers = 1
        self.descriptors: dict[int, tuple[Node, Process | None]] = {}
        self.holders: dict[int, int] = {}
        """Locked files by number, with the descriptor that holds the lock."""
        self.journal: list[Change] = []
        """Changes of names that may not be on the disk, in their order."""
        self._next_descriptor = 1_000_000
        scheduler.on_death = self.close_all

    # ---- copies

    def restore(self, saved: Folder) -> None:
        """Begin with a copy of a tree, which is on the disk."""
        self.root = _copy(saved, {})
        self.numbers = 1 + max(one.number for one in _nodes(self.root))
        self.journal, self.descriptors, self.holders = [], {}, {}

    def saved(self) -> Folder:
        """A copy of the tree as it is in memory."""
        return _copy(self.root, {})

    def after_loss(self, chance: random.Random) -> Folder:
        """A tree that a loss of power at this moment may leave."""
        changes = list(self.journal)
        if chance.random() < 0.5:  # a journal in order
            left = changes[: chance.choice((0, len(changes), chance.randint(0, len(changes))))]
        else:
            left = [one for one in changes if chance.random() < 0.5]
        names: dict[Folder, dict[str, Node]] = {}
        for folder, name, node in left:
            there = names.setdefault(folder, dict(folder.kept))
            if node is None:
                there.pop(name, None)
            else:
                there[name] = node
        how = chance.choice(("empty", "cut", "whole", "mixed"))
        return _survivors(self.root, names, {}, chance, how)

    # ---- names

    def _walk(self, path: str) -> Node | None:
        node: Node = self.root
        for part in path.split("/"):
            if part:
                if isinstance(node, File):
                    return None
                found = node.entries.get(part)
                if found is None:
                    return None
                node = found
        return node

    def _get(self, path: str) -> Node:
        node = self._walk(path)
        if node is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return node

    def _file(self, path: str) -> File:
        node = self._get(path)
        if isinstance(node, Folder):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        return node

    def _parent(self, path: str) -> tuple[Folder, str]:
        above, _, name = path.rpartition("/")
        folder = self._walk(above)
        if not isinstance(folder, Folder):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return folder, name

    def _set(self, folder: Folder, name: str, node: Node | None) -> None:
        if node is None:
            del folder.entries[name]
        else:
            folder.entries[name] = node
        folder.mtime_ns = self._time_ns()
        self.journal.append((folder, name, node))

    def _new_file(self, path: str, data: bytes = b"") -> File:
        folder, name = self._parent(path)
        self.numbers += 1
        made = File(self.numbers, data, None, self._time_ns())
        self._set(folder, name, made)
        return made

    def _time_ns(self) -> int:
        return int((EPOCH + self.scheduler.now + self.scheduler.off) * 1000) * 1_000_000

    def _step(self, name: str, path: str, changes: bool = True) -> None:
        self.scheduler.step(Call(name, path, changes))

    # ---- calls of os

    def link(self, source: str, target: str) -> None:
        """See ``os.link``."""
        self._step("link", target)
        file = self._file(source)
        folder, name = self._parent(target)
        if name in folder.entries:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target)
        self._set(folder, name, file)

    def unlink(self, path: str) -> None:
        """See ``os.unlink``."""
        hidden = _is_hidden(path)
        if not hidden:
            self._step("unlink", path)
        self._file(path)
        self._set(*self._parent(path), None)

    def replace(self, source: str, target: str) -> None:
        """See ``os.replace``."""
        self._step("rename", target)
        node = self._get(source)
        folder, name = self._parent(target)
        self._set(folder, name, node)
        self._set(*self._parent(source), None)

    rename = replace

    def exchange(self, first: str, second: str) -> None:
        """Swap two folders."""
        self._step("exchange", first)
        nodes = self._get(first), self._get(second)
        self._set(*self._parent(first), nodes[1])
        self._set(*self._parent(second), nodes[0])

    def stat(self, path: str, **_: Any) -> Any:
        """See ``os.stat``."""
        self._step("stat", path, False)
        return _status(self._get(path))

    lstat = stat

    def scandir(self, path: str) -> Any:
        """See ``os.scandir``."""
        self._step("list", path, False)
        folder = self._get(path)
        if isinstance(folder, File):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        return _Listing([_Entry(name, _status(node)) for name, node in sorted(folder.entries.items())])

    def utime(self, path: str | int, ns: tuple[int, int] | None = None, **_: Any) -> None:
        """See ``os.utime``."""
        node = self.descriptors[path][0] if isinstance(path, int) else self._get(path)
        node.mtime_ns = self._time_ns() if ns is None else ns[1]

    def makedirs(self, path: str, exist_ok: bool = False, **_: Any) -> None:
        """See ``os.makedirs``."""
        if isinstance(self._walk(path), Folder):
            return
        self._step("mkdir", path)
        node = self.root
        for part in path.strip("/").split("/"):
            below = node.entries.get(part)
            if below is None:
                self.numbers += 1
                below = Folder(self.numbers, mtime_ns=self._time_ns())
                self._set(node, part, below)
            if isinstance(below, File):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
            node = below

    def remove_tree(self, path: str) -> None:
        """Delete a folder and what it holds, one entry after the other."""
        folder = self._get(path)
        if isinstance(folder, File):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        for name, node in sorted(folder.entries.items()):
            if isinstance(node, Folder):
                self.remove_tree(f"{path}/{name}")
                continue
            self._step("unlink", f"{path}/{name}")
            if name in folder.entries:
                self._set(folder, name, None)
        self._step("rmdir", path)
        parent, name = self._parent(path)
        if folder.entries:
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), path)
        if parent.entries.get(name) is folder:
            self._set(parent, name, None)

    def fsync(self, descriptor: int) -> None:
        """See ``os.fsync``."""
        node = self.descriptors[descriptor][0]
        self._step("fsync", f"#{node.number}")
        if isinstance(node, File):
            node.kept = node.data
            return
        node.kept = dict(node.entries)
        self.journal = [one for one in self.journal if one[0] is not node]

    # ---- descriptors

    def open(self, path: str, flags: int = os.O_RDONLY, _mode: int = 0o666) -> int:
        """See ``os.open``."""
        node = self._walk(path)
        creates = bool(flags & os.O_CREAT)
        self._step("open", path, creates and node is None)
        node = self._walk(path)
        if node is None:
            if not creates:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            node = self._new_file(path)
        elif flags & os.O_EXCL:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        return self._opened(node)

    def _opened(self, node: Node) -> int:
        self._next_descriptor += 1
        actor = self.scheduler.current
        process = None if actor is None else actor.process
        if process is not None:
            process.open_files.add(self._next_descriptor)
        self.descriptors[self._next_descriptor] = node, process
        return self._next_descriptor

    def close(self, descriptor: int) -> None:
        """See ``os.close``; gives the lock of the descriptor back."""
        node, process = self.descriptors.get(descriptor, (None, None))
        if node is None:
            return
        holds = self.holders.get(node.number) == descriptor
        if holds and process is not None and not process.dead:
            self._step("unlock", f"#{node.number}")
        if self.descriptors.pop(descriptor, None) is not None and holds:
            del self.holders[node.number]
        if process is not None:
            process.open_files.discard(descriptor)

    def close_all(self, process: Process) -> None:
        """A process is gone."""
        for descriptor in list(process.open_files):
            self.close(descriptor)

    def lock(self, descriptor: int, wait: bool, shared: bool) -> None:
        """See ``fcntl.flock``."""
        number = self.descriptors[descriptor][0].number
        self._step("lock", f"#{number}", not shared)
        if wait:
            self.scheduler.wait(None, lambda: number not in self.holders)
        if self.holders.get(number, descriptor) != descriptor:
            raise BlockingIOError(errno.EWOULDBLOCK, os.strerror(errno.EWOULDBLOCK))
        if not shared:
            self.holders[number] = descriptor

    def lockable(self) -> type:
        """See ``hudi_fast.storage.file_locks.LockableFile``."""
        kernel = self

        class LockableFile:
            def __init__(self, path: str, flags: int) -> None:
                self.descriptor = kernel.open(path, flags)

            def lock(self, *, wait: bool = False, shared: bool = False) -> None:
                kernel.lock(self.descriptor, wait, shared)

            def close(self) -> None:
                kernel.close(self.descriptor)

        return LockableFile

    def fstat(self, descriptor: int) -> Any:
        """See ``os.fstat``."""
        return _status(self.descriptors[descriptor][0])

    def pread(self, descriptor: int, count: int, offset: int) -> bytes:
        """See ``os.pread``."""
        return self._opened_file(descriptor).data[offset : offset + count]

    def pwrite(self, descriptor: int, data: bytes, offset: int) -> int:
        """See ``os.pwrite``."""
        file = self._opened_file(descriptor)
        file.data = file.data[:offset].ljust(offset, b"\0") + data + file.data[offset + len(data) :]
        file.mtime_ns = self._time_ns()
        return len(data)

    def write(self, descriptor: int, data: bytes) -> int:
        """See ``os.write``, at the end."""
        return self.pwrite(descriptor, data, len(self._opened_file(descriptor).data))

    def ftruncate(self, descriptor: int, length: int) -> None:
        """See ``os.ftruncate``."""
        file = self._opened_file(descriptor)
        file.data = file.data[:length]

    def _opened_file(self, descriptor: int) -> File:
        node = self.descriptors[descriptor][0]
        assert isinstance(node, File)
        return node

    # ---- whole files

    def read(self, path: str) -> bytes:
        """The content of a file."""
        self._step("read", path, False)
        return self._file(path).data

    def open_stream(self, path: str, mode: str = "rb", **_: Any) -> Any:
        """See ``open``."""
        if mode == "rb":
            data = self.read(path)
            reader = io.BytesIO(data)
            reader.readall = reader.read  # type: ignore[attr-defined]
            number = self._opened(self._file(path))
            self.descriptors[number][1] and self.descriptors[number][1].open_files.discard(number)  # type: ignore[union-attr]
            reader.fileno = lambda: number  # type: ignore[method-assign]
            return reader
        hidden = _is_hidden(path)
        if not hidden:
            self._step("create", path)
        if mode == "xb" and self._walk(path) is not None:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        return Writing(self, path, self._new_file(path))

    def status_of(self, path: str) -> Node | None:
        """The node of a path."""
        self._step("stat", path, False)
        return self._walk(path)

    def names(self, path: str) -> list[str]:
        """Names in a folder, without a step of the world."""
        node = self._walk(path)
        return list(node.entries) if isinstance(node, Folder) else []

    def content(self, path: str) -> bytes | bool:
        """Content of a file, or whether there is a folder, without a step of the world."""
        node = self._walk(path)
        return node.data if isinstance(node, File) else node is not None

    def as_os(self, getpid: Callable[[], int]) -> Any:
        """What takes the place of :mod:`os` in modules of the product."""

        def exists(path: str) -> bool:
            return self.status_of(path) is not None

        def isfile(path: str) -> bool:
            return isinstance(self.status_of(path), File)

        paths = SimpleNamespace(**{name: getattr(os.path, name) for name in dir(os.path) if not name.startswith("__")})
        paths.exists, paths.isfile, paths.realpath = exists, isfile, os.path.normpath
        names = (
            "link unlink replace rename stat lstat scandir utime makedirs fsync open close fstat pread pwrite write "
            "ftruncate"
        )
        return SimpleNamespace(
            **{name: getattr(os, name) for name in dir(os) if not name.startswith("__")}
            | {name: getattr(self, name) for name in names.split()}
            | {"path": paths, "getpid": getpid}
        )


class Writing(io.RawIOBase):
    """A file that is being written: its content appears when it is closed, its name at once."""

    def __init__(self, kernel: Kernel, path: str, file: File, steps: bool = False) -> None:
        self._kernel, self._path, self._into, self._parts, self._steps = kernel, path, file, [], steps
        self._size = 0
        self._descriptor = 0

    def writable(self) -> bool:
        """See ``io``."""
        return True

    def write(self, data: Any) -> int:
        """See ``io``."""
        content = bytes(data)
        self._parts.append(content)  # type: ignore[attr-defined]
        self._size += len(content)
        return len(content)

    def tell(self) -> int:
        """See ``io``."""
        return self._size

    def flush(self) -> None:
        """See ``io``."""
        self._into.data = b"".join(self._parts)

    def fileno(self) -> int:
        """See ``io``."""
        self._descriptor = self._descriptor or self._kernel._opened(self._into)
        return self._descriptor

    def close(self) -> None:
        """See ``io``."""
        if self.closed:
            return
        super().close()
        if self._steps:
            self._kernel._step("written", self._path)
        self._into.data = b"".join(self._parts)
        self._into.mtime_ns = self._kernel._time_ns()
        if self._descriptor:
            self._kernel.close(self._descriptor)


class _Entry:
    def __init__(self, name: str, status: Any) -> None:
        self.name, self._status = name, status

    def stat(self, **_: Any) -> Any:
        return self._status

    def is_dir(self, **_: Any) -> bool:
        return stat_module.S_ISDIR(self._status.st_mode)


class _Listing:
    def __init__(self, entries: list[_Entry]) -> None:
        self._entries = entries

    def __enter__(self) -> Iterator[_Entry]:
        return iter(self._entries)

    def __exit__(self, *_: object) -> None:
        return None


def _is_hidden(path: str) -> bool:
    """Whether a name is a temporary one, or one of Hadoop's checksums: nobody looks at it."""
    return path.endswith((".tmp", ".crc"))


def _status(node: Node) -> Any:
    is_dir = isinstance(node, Folder)
    return SimpleNamespace(
        st_mode=(stat_module.S_IFDIR if is_dir else stat_module.S_IFREG) | 0o755,
        st_uid=os.getuid(),
        st_size=0 if isinstance(node, Folder) else len(node.data),
        st_mtime_ns=node.mtime_ns,
        st_mtime=node.mtime_ns / 1e9,
        st_ino=node.number,
        st_dev=1,
    )


def shape_of(folder: Folder) -> Any:
    """Names and contents: what tells two trees apart."""
    return tuple(
        (name, (node.data, node.mtime_ns) if isinstance(node, File) else shape_of(node))
        for name, node in sorted(folder.entries.items())
    )


def _nodes(folder: Folder) -> Iterator[Node]:
    yield folder
    for node in folder.entries.values():
        if isinstance(node, Folder):
            yield from _nodes(node)
        else:
            yield node


def _copy(node: Any, made: dict[int, Any]) -> Any:
    """A copy that is on the disk; names of one file stay names of one file."""
    if id(node) not in made:
        if isinstance(node, File):
            made[id(node)] = File(node.number, node.data, node.data, node.mtime_ns)
        else:
            entries = {name: _copy(each, made) for name, each in node.entries.items()}
            made[id(node)] = Folder(node.number, entries, dict(entries), node.mtime_ns)
    return made[id(node)]


def _survivors(
    node: Any, names: dict[Folder, dict[str, Node]], made: dict[int, Any], chance: random.Random, how: str
) -> Any:
    if id(node) in made:
        return made[id(node)]
    if isinstance(node, File):
        data = node.data
        if node.kept != node.data:
            way = chance.choice(("empty", "cut", "whole")) if how == "mixed" else how
            old = node.kept or b""
            data = {"empty": old, "cut": data[: chance.randint(0, len(data))], "whole": data}[way]
        made[id(node)] = File(node.number, data, data, node.mtime_ns)
    else:
        there = names.get(node, node.kept)
        entries = {name: _survivors(each, names, made, chance, how) for name, each in there.items()}
        made[id(node)] = Folder(node.number, entries, dict(entries), node.mtime_ns)
    return made[id(node)]
