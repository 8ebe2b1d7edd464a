"""An object store in memory, with conditional requests whose answers may get lost.

Every acknowledged object survives. A request may fail without effect, or take effect and lose its answer.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
from pyarrow._fs import _MockFileSystem

from hudi_fast.storage.conditional import Versioned
from hudi_fast.storage.stores import Listed
from tests.simulation.scheduler import EPOCH, Call, Scheduler

__all__ = ["Objects", "Stored"]


@dataclass(frozen=True, slots=True)
class Stored:
    """An object."""

    data: bytes
    version: str
    mark: str
    modified_ms: int


class Objects:
    """An :class:`~hudi_fast.storage.stores.ObjectStore`.

    Args:
        scheduler: is asked before each request.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.stored: dict[str, Stored] = {}
        self.versions = 0
        self.loses: Callable[[Call], str] = lambda _: ""
        """What happens to a request: nothing, ``before`` or ``after``."""

    def _asked(self, name: str, path: str, changes: bool, do: Callable[[], Any]) -> Any:
        call = Call(name, path, changes)
        self.scheduler.step(call)
        fate = self.loses(call)
        if fate == "before":
            raise OSError(f"{name} of {path}: no connection")
        answer = do()
        if fate == "after":
            raise OSError(f"{name} of {path}: the connection broke")
        return answer

    def _put(self, name: str, data: bytes, mark: str = "") -> str:
        self.versions += 1
        modified = int((EPOCH + self.scheduler.now) * 1000)
        self.stored[name] = Stored(bytes(data), f"v{self.versions}", mark, modified)
        return f"v{self.versions}"

    # ---- ObjectStore

    def read(self, name: str) -> Versioned | None:
        """See ``ObjectStore``."""

        def do() -> Versioned | None:
            found = self.stored.get(name)
            return None if found is None else Versioned(found.data, found.version)

        answer: Versioned | None = self._asked("read", name, False, do)
        return answer

    def create(self, name: str, data: bytes, mark: str = "") -> str | None:
        """See ``ObjectStore``."""
        answer: str | None = self._asked(
            "create", name, True, lambda: None if name in self.stored else self._put(name, data, mark)
        )
        return answer

    def replace(self, name: str, data: bytes, version: str) -> str | None:
        """See ``ObjectStore``."""

        def do() -> str | None:
            found = self.stored.get(name)
            return None if found is None or found.version != version else self._put(name, data)

        answer: str | None = self._asked("replace", name, True, do)
        return answer

    def mark_of(self, name: str) -> str | None:
        """See ``ObjectStore``."""

        def do() -> str | None:
            found = self.stored.get(name)
            return None if found is None else found.mark

        answer: str | None = self._asked("head", name, False, do)
        return answer

    def has_folder(self, name: str) -> bool:
        """See ``ObjectStore``."""
        return bool(self._asked("head", f"{name}/", False, lambda: f"{name}/" in self.stored))

    def drop_folder(self, name: str) -> None:
        """See ``ObjectStore``."""
        self._asked("delete", f"{name}/", True, lambda: self.stored.pop(f"{name}/", None))

    def put(self, name: str, data: bytes) -> None:
        """See ``ObjectStore``."""
        self._asked("put", name, True, lambda: self._put(name, data))

    def stream(self, name: str) -> Any:
        """See ``ObjectStore``."""
        return _Stream(self, name)

    def listed(self, name: str, recursive: bool) -> list[Listed] | None:
        """See ``ObjectStore``."""
        answer: list[Listed] = self._asked("list", name, False, lambda: self._below(name, recursive))
        return answer

    def delete(self, names: Sequence[str]) -> None:
        """See ``ObjectStore``."""

        def do() -> None:
            for name in names:
                self.stored.pop(name, None)

        if names:
            self._asked("delete", names[0], True, do)

    def _below(self, name: str, recursive: bool) -> list[Listed]:
        prefix, found = f"{name}/", dict[str, Listed]()
        for key, one in self.stored.items():
            if not key.startswith(prefix) or key == prefix:
                continue
            end = key.find("/", len(prefix))
            while end >= 0:
                if key[end - 1] != "/":
                    found.setdefault(key[:end], Listed(key[:end], 0, 0, True))
                end = key.find("/", end + 1) if recursive else -2
            if end == -1 and not key.endswith("/"):
                found[key] = Listed(key, len(one.data), one.modified_ms, False)
        return list(found.values())

    # ---- what pyarrow's file systems do

    def data_of(self, path: str) -> bytes:
        """The content of an object."""

        def do() -> bytes:
            if path not in self.stored:
                raise FileNotFoundError(path)
            return self.stored[path].data

        data: bytes = self._asked("read", path, False, do)
        return data

    def info(self, path: str) -> pafs.FileInfo:
        """The entry of an object or folder."""

        def do() -> pafs.FileInfo:
            one = self.stored.get(path)
            if one is not None:
                return pafs.FileInfo(path, pafs.FileType.File, size=len(one.data), mtime_ns=one.modified_ms * 1_000_000)
            is_dir = any(key.startswith(f"{path}/") for key in self.stored)
            return pafs.FileInfo(path, pafs.FileType.Directory if is_dir else pafs.FileType.NotFound)

        return self._asked("head", path, False, do)


class ObjectFiles(_MockFileSystem):  # type: ignore[misc]
    """Reads objects."""

    @classmethod
    def of(cls, objects: Objects) -> ObjectFiles:
        """The files of a store."""
        made = cls()
        made.objects = objects
        return made

    def open_input_file(self, path: str, **_: Any) -> pa.NativeFile:
        """See ``pyarrow.fs``."""
        return pa.BufferReader(self.objects.data_of(path))

    def get_file_info(self, paths: Any) -> Any:
        """See ``pyarrow.fs``."""
        if isinstance(paths, str):
            return self.objects.info(paths)
        return [self.objects.info(path) for path in paths]


class _Stream(io.RawIOBase):
    def __init__(self, objects: Objects, name: str) -> None:
        self._objects, self._name, self._parts, self._size = objects, name, list[bytes](), 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._parts.append(bytes(data))
        self._size += len(self._parts[-1])
        return len(self._parts[-1])

    def tell(self) -> int:
        return self._size

    def flush(self) -> None:
        return None

    def close(self) -> None:
        if not self.closed:
            super().close()
            self._objects.put(self._name, b"".join(self._parts))
