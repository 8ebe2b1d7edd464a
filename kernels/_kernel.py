"""Declaration of kernels, and the library of machine code that they are loaded from.

::

    @kernel("i8(ri4, ru1, wu1)")        one function, one signature; nothing is loaded yet
    def some_kernel(offsets, data, out): ...
          |
          | first call (or Kernel.load, or warm_up)
          v
    compiled(): manifest ─► machine, level of the processor, digests of sources and library ─► Library, or None
          |                                             | None
          v                                             v
    Library.find(kernel): load it, import no numba      _jit: load from the cache folder, or compile it with numba

A call of compiled code costs about 2 µs: arguments ─► slots of 8 bytes ─ ctypes, without the GIL ─► entry of the
kernel. ``_runtime.c`` reads addresses and lengths from the objects of numpy's arrays. In Python this takes a
microsecond for each array.

A wheel ships the library, or ``hudi-fast warm-up`` compiles it into the cache; ``_ahead`` builds it. A library that
does not fit is never called: numba then compiles the kernels, and a debug message of the logger ``hudi_fast.kernels``
names the reason. ``HUDI_FAST_KERNELS=jit`` leaves libraries out; so do ``NUMBA_BOUNDSCHECK`` and ``NUMBA_DISABLE_JIT``.
``HUDI_FAST_KERNELS=compiled`` makes a missing library an error.

Importing this module or a kernel module imports neither numba nor llvmlite.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import importlib
import json
import logging
import os
import pkgutil
import platform
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from ._cache import places
from ._declared import Declared, parse, sources_digest
from ._jit import compile_kernel

__all__ = [
    "FOLDER",
    "LIBRARY",
    "MANIFEST",
    "Kernel",
    "Library",
    "all_kernels",
    "asks_for_jit",
    "cache_key",
    "compiled",
    "entry_name",
    "fits",
    "kernel",
    "sources",
    "warm_up",
]

FOLDER, LIBRARY, MANIFEST = "_compiled", "kernels.so", "kernels.json"

_PACKAGE = Path(__file__).parent
_MISFITS = (OSError, ValueError, KeyError, TypeError, AttributeError)

_log = logging.getLogger("hudi_fast.kernels")


class Library:
    """Kernels that were compiled ahead.

    Args:
        code: the library, loaded.
        level: level of the code to call.
    """

    def __init__(self, code: ctypes.CDLL, level: int) -> None:
        self._code = code
        self._level = level

    def find(self, declared: Declared[..., Any]) -> Callable[..., Any] | None:
        """A function that calls the kernel; None if the library does not have it."""
        try:
            entry = self._code[entry_name(declared, self._level)]
        except AttributeError:  # the kernel is in a module outside this package
            return None
        entry.argtypes = [ctypes.c_char_p, ctypes.c_void_p]
        entry.restype = ctypes.c_int
        name, signature = declared.function.__qualname__, declared.signature
        checked = _checked_call(entry, name, signature)
        return _direct_call(self._code, entry, name, signature, checked) if _knows_arrays() else checked


def entry_name(declared: Declared[..., Any], level: int) -> str:
    """The name of a kernel's entry in the library."""
    module = declared.function.__module__.rpartition(".")[2]
    return f"hudi_fast_{module}_{declared.function.__qualname__}_{level}"


def asks_for_jit() -> bool:
    """Whether the environment leaves libraries out."""
    flags = {os.environ.get(name, "") for name in ("NUMBA_BOUNDSCHECK", "NUMBA_DISABLE_JIT")}
    return os.environ.get("HUDI_FAST_KERNELS") == "jit" or bool(flags - {"", "0"})


def cache_key() -> str:
    """The name of the library's folder in the cache: neither Python nor numba is part of it."""
    return f"library-{platform.machine()}-{sources()[:24]}"


@functools.cache
def sources() -> str:
    """A digest of the kernels' sources, in hexadecimal digits."""
    return sources_digest(_PACKAGE).hex()


@functools.cache
def compiled() -> Library | None:
    """The library that this process uses; None without one that fits.

    Raises:
        RuntimeError: no library fits, and ``HUDI_FAST_KERNELS=compiled`` requires one.
    """
    if asks_for_jit():
        _log.debug("Numba compiles the kernels: the environment asks for it")
        return None
    misfits = []
    for folder in _folders():
        try:
            return _open(folder)
        except _MISFITS as error:
            misfits.append(f"those in {folder} cannot be used: {error}")
    reasons = "; ".join(misfits) or "there is no library"
    if os.environ.get("HUDI_FAST_KERNELS") == "compiled":
        raise RuntimeError(f"HUDI_FAST_KERNELS=compiled asks for compiled kernels, but {reasons}")
    _log.debug("Numba compiles the kernels: %s", reasons)
    return None


def _folders() -> Iterator[Path]:
    """The folders that may have a library: the package's folder, then the cache's, which are found lazily."""
    if (shipped := _PACKAGE / FOLDER).is_dir():
        yield shipped
    yield from (folder for folder in places(cache_key()) if folder.is_dir())


def fits(folder: Path) -> bool:
    """Whether a folder has a library that this process could use."""
    try:
        _open(folder)
    except _MISFITS:
        return False
    return True


def _open(folder: Path) -> Library:
    """Check manifest and library.

    Raises:
        OSError: a file is missing, or the library cannot be loaded.
        ValueError: the manifest describes another library, or the library does not fit.
    """
    manifest = json.loads((folder / MANIFEST).read_bytes())
    if manifest["machine"] != platform.machine():
        raise ValueError(f"they are for {manifest['machine']}, and this machine is {platform.machine()}")
    if manifest["sources"] != sources():
        raise ValueError("they are of other sources")
    path = folder / LIBRARY
    if manifest["sha256"] != hashlib.sha256(path.read_bytes()).hexdigest():
        raise ValueError(f"{LIBRARY} is damaged: its digest is not that of {MANIFEST}")
    code = ctypes.CDLL(str(path))
    processor = int(code.hudi_fast_cpu_level())
    levels = [level for level in manifest["levels"] if level <= processor]
    if not levels:
        raise ValueError(f"they need a processor of level {min(manifest['levels'])}, and this one has {processor}")
    return Library(code, max(levels))


# ---- calls


def _direct_call(
    code: ctypes.CDLL, entry: Any, name: str, signature: str, checked: Callable[..., Any]
) -> Callable[..., Any]:
    """A function that calls an entry with array objects; with other arguments it calls ``checked``."""
    import numpy as np

    result, parameters = parse(signature)
    expected = b"".join(
        struct.pack("@NNq24x", id(np.dtype(one.scalar)), id(np.ndarray), _WRITABLE if one.access == "w" else _READABLE)
        if one.access
        else bytes(24)
        for one in parameters
    )
    pack = struct.Struct("@" + "".join("N8x" if one.access else _SLOTS[one.scalar] for one in parameters)).pack
    arrays = [bool(one.access) for one in parameters]
    read = _RESULTS.get(result.scalar, ctypes.c_int64)
    address, slots = ctypes.cast(entry, ctypes.c_void_p).value, len(expected) // 24
    invoke = code["hudi_fast_call"]
    invoke.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p]
    invoke.restype = ctypes.c_int
    has_result = result.scalar != "void"

    def call(*args: Any) -> Any:
        try:
            packed = pack(*[id(value) if array else value for value, array in zip(args, arrays, strict=True)])
        except (struct.error, ValueError, TypeError):
            return checked(*args)
        answer = read()
        status = invoke(address, packed, expected, slots, ctypes.byref(answer))
        if status == _NOT_CALLED:
            return checked(*args)
        if status:
            raise _no_memory(name)
        return answer.value if has_result else None

    return call


@functools.cache
def _knows_arrays() -> bool:
    """Whether array objects have the layout that ``_runtime.c`` expects; false in an interpreter without the GIL."""
    import numpy as np

    probe = np.arange(5, dtype=np.int32)[1:]

    def word(offset: int) -> int:
        return ctypes.c_size_t.from_address(id(probe) + offset).value

    return (
        word(8) == id(np.ndarray)
        and word(16) == probe.__array_interface__["data"][0]
        and ctypes.c_int.from_address(id(probe) + 24).value == 1
        and word(56) == id(probe.dtype)
        and ctypes.c_int.from_address(id(probe) + 64).value == probe.flags.num
        and ctypes.c_size_t.from_address(word(32)).value == len(probe)
    )


def _checked_call(entry: Any, name: str, signature: str) -> Callable[..., Any]:
    """A function that checks and packs arguments, calls an entry, and returns its result."""
    import numpy as np

    result, parameters = parse(signature)
    expected = tuple(
        (np.dtype(one.scalar), _WRITABLE if one.access == "w" else _READABLE) if one.access else None
        for one in parameters
    )
    pack = struct.Struct("@" + "".join("Nq" if one.access else _SLOTS[one.scalar] for one in parameters)).pack
    read = None if result.scalar == "void" else _RESULTS[result.scalar]

    def call(*args: Any) -> Any:
        slots = []
        try:
            for value, array in zip(args, expected, strict=True):
                if array is None:
                    slots.append(value)
                    continue
                dtype, flags = array
                if value.flags.num & flags != flags or value.dtype != dtype or value.ndim != 1:
                    raise TypeError(f"{value.dtype}, {value.ndim} dimensions, {value.flags}")
                slots += (value.__array_interface__["data"][0], value.size)
            packed = pack(*slots)
        except (TypeError, AttributeError, ValueError, struct.error) as error:
            raise TypeError(f"{name} takes {signature}: {error}") from error
        if read is None:
            status = entry(packed, None)
            answer = None
        else:
            answer = read()
            status = entry(packed, ctypes.addressof(answer))
            answer = answer.value
        if status:
            raise _no_memory(name)
        return answer

    return call


def _no_memory(name: str) -> MemoryError:
    return MemoryError(f"{name}: no memory for its scratch arrays")


_NOT_CALLED = -(1 << 31)
"""Result of ``hudi_fast_call`` for other arguments."""

_READABLE = 0x101
"""NumPy's flags for a C-contiguous and aligned array."""

_WRITABLE = _READABLE | 0x400

_SLOTS = {"bool": "?7x", "uint8": "q", "uint32": "q", "uint64": "Q", "int32": "q", "int64": "q", "float64": "d"}
_RESULTS: dict[str, Any] = {
    "bool": ctypes.c_bool,
    "uint8": ctypes.c_uint64,
    "uint32": ctypes.c_uint64,
    "uint64": ctypes.c_uint64,
    "int32": ctypes.c_int64,
    "int64": ctypes.c_int64,
    "float64": ctypes.c_double,
}
"""Types of the slot that a result is written to."""


P = ParamSpec("P")
R = TypeVar("R")

_LOCKS: list[Any] = []
"""Locks of all kernels. A child of ``fork`` frees them, because other threads of its parent may have held them."""


def _free_locks() -> None:
    for lock in _LOCKS:
        lock._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_locks)


class Kernel(Declared[P, R]):
    """A compiled loop with the signature of its function, loaded or compiled by the first call.

    Safe to call from many threads; runs without the GIL. ``signature``: see :func:`kernel`.
    """

    def __init__(self, function: Callable[P, R], signature: str) -> None:
        super().__init__(function, signature)
        functools.update_wrapper(self, function)
        self._compiled: Callable[..., Any] | None = None
        self._lock = threading.Lock()
        _LOCKS.append(self._lock)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        call = self._compiled or self.load()
        return call(*args, **kwargs)  # type: ignore[no-any-return]

    def load(self) -> Callable[..., Any]:
        """Load the machine code: from a library, or from numba's cache, or compile and save it."""
        with self._lock:
            if self._compiled is None:
                library = compiled()
                self._compiled = None if library is None else library.find(self)
            if self._compiled is None:
                self._compiled = compile_kernel(self)
        return self._compiled


def kernel(signature: str) -> Callable[[Callable[P, R]], Kernel[P, R]]:
    """Declare a kernel.

    Args:
        signature: ``"<result>(<argument>, ...)"``. Scalars: b1 (bool), u1, u4, u8, i4, i8, f8. Arrays are
            one-dimensional, C-contiguous, aligned to their item size. Their code is a scalar code with the prefix ``r``
            if the kernel only reads the array (which may be read-only, as pyarrow buffers are in numpy), or ``w`` if
            it writes to it. ``void`` for no result.

    Returns:
        A decorator that returns a :class:`Kernel`. Calls with other types raise ``TypeError``.
    """
    return lambda function: Kernel(function, signature)


def all_kernels() -> list[Kernel[..., Any]]:
    """Every kernel of the package, by module and name."""
    package = __package__ or "hudi_fast.kernels"
    found: dict[tuple[str, str], Kernel[..., Any]] = {}
    for entry in pkgutil.iter_modules(importlib.import_module(package).__path__):
        if entry.name.startswith("_"):
            continue  # the module has no kernels; importing ``_machine_ops`` requires numba
        for value in vars(importlib.import_module(f"{package}.{entry.name}")).values():
            if isinstance(value, Kernel):
                found[value.function.__module__, value.function.__qualname__] = value
    return [found[name] for name in sorted(found)]


def warm_up() -> int:
    """Load, or compile and save, every kernel of the package; return their number.

    Call it in image builds, in long-lived workers before their first task, and in tests.
    """
    kernels = all_kernels()
    for one in kernels:
        one.load()
    return len(kernels)
