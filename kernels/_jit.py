"""Compilation, caching and loading of kernels.

::

    @kernel("i8(ri4, ru1, wu1)")        one function, one signature; nothing is compiled yet
    def some_kernel(offsets, data, out): ...
          |
          | first call (or Kernel.load, or warm_up)
          v
    in the cache folder? --yes--> load machine code
          | no
          v
    compile with numba, save, run

Importing a kernel module imports neither numba nor llvmlite; the first call does. All kernels share their flags: nogil,
no fastmath, no parallel loops, numpy's error model (kernels reproduce Java's wrap-around arithmetic exactly).

Cache folder: ``<root>/hudi_fast-kernels/<key>``. The key is a digest of all sources of this package, the versions of
Python, numba and numpy, the CPU with its features, and the bounds check flag. numba's default cache (in the module's
folder, keyed by the content of that module alone) would run stale code after a change to a helper in another module,
fails where the package folder is read-only, and lets machines of different CPU types that share a home folder overwrite
each other's code.

Roots, in order: ``NUMBA_CACHE_DIR``; ``XDG_CACHE_HOME`` or ``~/.cache``; a folder in the temporary folder that only
this user can write. The first root that already holds the key, or in which its folder can be created, is used: a
prepared read-only cache works (call :func:`warm_up` in an image build). Without a usable root, kernels are compiled in
memory.

Concurrent processes can share the cache. A file lock for each kernel makes one process compile it; the others wait and
load the result. The lock only saves work: numba writes to a temporary name and renames, and each function has a folder
entry of its own with exactly one signature, so two writers can only replace a file by an equivalent one. A damaged
entry counts as absent.

Cost on one core of an AMD EPYC (Zen 5), numba 0.68, Python 3.11 (``benchmarks/import_time.py`` repeats the
measurement): importing the kernel modules 15 ms (numpy itself 45 ms); the first call of a process 0.22 s from the cache
(importing numba 0.10 s, starting it 0.11 s); each further kernel 2 to 4 ms. Without a cache a kernel compiles in 0.1 to
1.2 s, all of them in 7.5 s.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import os
import pickle
import pkgutil
import re
import stat
import sys
import tempfile
import threading
import time
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Generic, ParamSpec, TypeVar

__all__ = ["Helper", "Kernel", "cache_folder", "helper", "kernel", "machine_op", "warm_up"]

P = ParamSpec("P")
R = TypeVar("R")

_SCALARS = {
    "b1": "boolean",
    "u1": "uint8",
    "u4": "uint32",
    "u8": "uint64",
    "i4": "int32",
    "i8": "int64",
    "f8": "float64",
}
_LONGEST_COMPILATION, _POLL = 60.0, 0.02
"""Seconds to wait for another process that compiles a kernel, and between looks."""

_UNREADABLE = (OSError, EOFError, pickle.UnpicklingError, AttributeError, ImportError, IndexError, KeyError, ValueError)


class Helper(Generic[P, R]):
    """A function that kernels call; compiled into each of its callers.

    From Python it runs as plain Python.

    Args:
        function: the Python definition.
        machine_op: name in ``_machine_ops`` of the same operation as machine instructions, or None to compile
            ``function``.
    """

    def __init__(self, function: Callable[P, R], machine_op: str | None = None) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.machine_op = machine_op

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    def __reduce__(self) -> str:
        return self.function.__qualname__


class Kernel(Generic[P, R]):
    """A compiled loop with the signature of its function, loaded or compiled by the first call.

    Pickles by name. Safe to call from many threads; runs without the GIL. ``signature``: see :func:`kernel`.
    """

    def __init__(self, function: Callable[P, R], signature: str) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.signature = signature
        self._compiled: Callable[..., Any] | None = None
        self._lock = threading.Lock()

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        compiled = self._compiled or self.load()
        return compiled(*args, **kwargs)  # type: ignore[no-any-return]

    def __reduce__(self) -> str:
        return self.function.__qualname__

    def load(self) -> Callable[..., Any]:
        """Load the machine code from the cache, or compile and save it; return numba's dispatcher."""
        with self._lock:
            if self._compiled is None:
                self._compiled = _compile(self)
        return self._compiled


def kernel(signature: str) -> Callable[[Callable[P, R]], Kernel[P, R]]:
    """Declare a kernel.

    Args:
        signature: ``"<result>(<argument>, ...)"``. Scalars: b1 (bool), u1, u4, u8, i4, i8, f8. Arrays are
            one-dimensional, C-contiguous, aligned to their item size: a scalar code prefixed with ``r`` for one that
            the kernel reads (read-only, as numpy sees pyarrow buffers, or writable) or with ``w`` for one that it
            writes. ``void`` for no result.

    Returns:
        A decorator that makes a :class:`Kernel`. Calls with other types raise ``TypeError``.
    """
    return lambda function: Kernel(function, signature)


def helper(function: Callable[P, R]) -> Helper[P, R]:
    """Declare a function that kernels call."""
    return Helper(function)


def machine_op(function: Callable[P, R]) -> Helper[P, R]:
    """Declare a helper that ``_machine_ops`` implements under the same name as machine instructions."""
    return Helper(function, function.__name__)


def warm_up() -> int:
    """Load, or compile and save, every kernel of the package; return their number.

    For image builds, for long-lived workers before their first task, and for tests.
    """
    package = __package__ or "hudi_fast.kernels"
    kernels: dict[int, Kernel[..., Any]] = {}
    for entry in pkgutil.iter_modules(importlib.import_module(package).__path__):
        if entry.name.startswith("_"):
            continue  # holds no kernels; importing ``_machine_ops`` requires numba
        for value in vars(importlib.import_module(f"{package}.{entry.name}")).values():
            if isinstance(value, Kernel):
                kernels[id(value)] = value
    for value in kernels.values():
        value.load()
    return len(kernels)


# ---- compilation


def _compile(declared: Kernel[..., Any]) -> Callable[..., Any]:
    import numba
    from numba.core.caching import CompileResultCacheImpl, FunctionCache

    function = _with_helpers(declared.function, {})
    dispatcher: Any = numba.njit(nogil=True, error_model="numpy", fastmath=False)(function)
    folder = cache_folder()
    if folder is not None:
        impl_class = type(
            "_Impl", (CompileResultCacheImpl,), {"_locator_classes": [_Locator(folder, _digest(declared))]}
        )
        cache_class = type("_Cache", (FunctionCache,), {"_impl_class": impl_class} | _FORGIVING)
        dispatcher._cache = cache_class(function)
    result, arguments = _numba_types(declared.signature)
    with contextlib.nullcontext() if folder is None else _alone(folder / f"{declared.function.__qualname__}.lock"):
        dispatcher.compile(result(*arguments))
    dispatcher.disable_compile()
    return dispatcher  # type: ignore[no-any-return]


def _with_helpers(function: Callable[..., Any], done: dict[int, Any]) -> Callable[..., Any]:
    """Copy ``function`` with numba's objects in place of the :class:`Helper` objects among its globals."""
    import numba

    replaced = dict(function.__globals__)
    for name in function.__code__.co_names:
        value = replaced.get(name)
        if not isinstance(value, Helper):
            continue
        if id(value) not in done:
            if value.machine_op is not None:
                ops = importlib.import_module(f"{__package__}._machine_ops")
                done[id(value)] = getattr(ops, value.machine_op)
            else:
                inner = _with_helpers(value.function, done)
                done[id(value)] = numba.njit(nogil=True, error_model="numpy", fastmath=False)(inner)
        replaced[name] = done[id(value)]
    code = function.__code__
    copy = types.FunctionType(code, replaced, function.__name__, function.__defaults__, function.__closure__)
    copy.__qualname__, copy.__module__ = function.__qualname__, function.__module__
    return copy


def _numba_types(signature: str) -> tuple[Any, list[Any]]:
    from numba import types as nb

    match = re.fullmatch(r"(\w+)\(([\w, ]*)\)", signature)
    if match is None:
        raise ValueError(f"malformed kernel signature {signature!r}")
    arguments = [part.strip() for part in match[2].split(",") if part.strip()]

    def of(code: str) -> Any:
        if code == "void":
            return nb.void
        if code in _SCALARS:
            return getattr(nb, _SCALARS[code])
        if code[0] in "rw" and code[1:] in _SCALARS:
            return nb.Array(getattr(nb, _SCALARS[code[1:]]), 1, "C", readonly=code[0] == "r")
        raise ValueError(f"unknown type {code!r} in kernel signature {signature!r}")

    return of(match[1]), [of(code) for code in arguments]


# ---- the cache


def _digest(declared: Kernel[..., Any]) -> str:
    """Distinguish kernels of one name: by signature, and by source where the folder's key does not cover it."""
    digest = hashlib.sha256(declared.signature.encode())
    source = Path(declared.function.__code__.co_filename)
    if source.parent != Path(__file__).parent:
        digest.update(source.read_bytes() if source.is_file() else b"")
    return digest.hexdigest()[:12]


class _Locator:
    """A function's location in numba's cache; one instance per kernel."""

    def __init__(self, folder: Path, disambiguator: str) -> None:
        self._folder = folder
        self._disambiguator = disambiguator

    def from_function(self, py_func: Any, py_file: str) -> _Locator:
        return self

    def get_cache_path(self) -> str:
        return str(self._folder)

    def ensure_cache_path(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)

    def get_source_stamp(self) -> str:
        return self._folder.name

    def get_disambiguator(self) -> str:
        return self._disambiguator


def _load_overload(self: Any, sig: Any, target_context: Any) -> Any:
    target_context.refresh()
    try:
        return self._load_overload(sig, target_context)
    except _UNREADABLE:
        return None  # damaged: compile and replace


def _save_overload(self: Any, sig: Any, data: Any) -> None:
    try:
        try:
            self._save_overload(sig, data)
        except _UNREADABLE:
            self.flush()  # damaged index: start a new one
            self._save_overload(sig, data)
    except OSError:
        return  # full or read-only disk: keep the code in memory


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Hold a lock file, unless the folder is read-only, files cannot be locked, or another process is stuck with it."""
    try:
        import fcntl

        file = open(path, "ab")  # closed below
    except (ImportError, OSError):
        yield
        return
    with file:
        until = time.monotonic() + _LONGEST_COMPILATION
        while time.monotonic() < until:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(_POLL)
            except OSError:
                break
            else:
                break
        yield


_FORGIVING: dict[str, Any] = {"load_overload": _load_overload, "save_overload": _save_overload}


@functools.cache
def cache_folder() -> Path | None:
    """The folder of this process's compiled kernels; None if no folder is usable (see the module docstring)."""
    key = _cache_key()
    for root in _cache_roots():
        folder = root / "hudi_fast-kernels" / key
        try:
            if folder.is_dir():
                return folder
            folder.mkdir(parents=True, exist_ok=True)
            return folder
        except OSError:
            continue
    return None


def _cache_key() -> str:
    import numba
    import numpy
    from numba.core.registry import cpu_target

    digest = hashlib.sha256(_sources_digest(Path(__file__).parent))
    machine = cpu_target.target_context.codegen().magic_tuple()
    versions = (sys.version, numba.__version__, numpy.__version__)
    digest.update(repr((versions, machine, numba.config.BOUNDSCHECK, numba.config.OPT)).encode())
    return digest.hexdigest()[:24]


def _sources_digest(folder: Path) -> bytes:
    digest = hashlib.sha256()
    for source in sorted(folder.glob("*.py")):
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    return digest.digest()


def _cache_roots() -> list[Path]:
    roots = []
    if configured := os.environ.get("NUMBA_CACHE_DIR"):
        roots.append(Path(configured))
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if not home.startswith("~"):
        roots.append(Path(home))
    private = Path(tempfile.gettempdir()) / f"hudi_fast-{os.getuid() if hasattr(os, 'getuid') else 'user'}"
    if _is_private(private):
        roots.append(private)
    return roots


def _is_private(folder: Path) -> bool:
    """Create ``folder`` for this user alone; False if another user owns it or can write to it, as it holds code."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError:
        return False
    if not stat.S_ISDIR(status.st_mode):
        return False
    return not hasattr(os, "getuid") or (status.st_uid == os.getuid() and not status.st_mode & 0o022)
