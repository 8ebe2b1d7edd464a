"""Kernels compiled on this machine with numba, and their cache.

All kernels share their flags: nogil, no fastmath, no parallel loops, numpy's error model (kernels reproduce Java's
wrap-around arithmetic exactly).

Cache folder: ``<root>/hudi_fast-kernels/<key>``. The key is a digest of all sources of this package, the versions of
Python, numba and numpy, the CPU with its features, and the bounds check flag. numba's default cache (in the module's
folder, keyed by the content of that module alone) would run stale code after a change to a helper in another module,
fails where the package folder is read-only, and lets machines of different CPU types that share a home folder overwrite
each other's code.

``_cache`` chooses the root. A prepared read-only cache works (call :func:`~hudi_fast.kernels.warm_up` in an image
build). Without a usable root, kernels are compiled in memory.

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
import pickle
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ._cache import alone, folder_for
from ._declared import Declared, Helper, Parameter, parse, sources_digest

__all__ = ["cache_folder", "compile_kernel", "declared_dispatcher", "numba_types"]

_LONGEST_COMPILATION = 60.0
"""Seconds to wait for another process that compiles a kernel."""

_NUMBA_NAMES = {"bool": "boolean"}

_UNREADABLE = (OSError, EOFError, pickle.UnpicklingError, AttributeError, ImportError, IndexError, KeyError, ValueError)


def compile_kernel(declared: Declared[..., Any]) -> Callable[..., Any]:
    """Load a kernel from the cache, or compile and save it; returns numba's dispatcher.

    Raises:
        ValueError: the signature is malformed.
    """
    from numba.core.caching import CompileResultCacheImpl, FunctionCache

    dispatcher = declared_dispatcher(declared)
    folder = cache_folder()
    if folder is not None:
        impl_class = type(
            "_Impl", (CompileResultCacheImpl,), {"_locator_classes": [_Locator(folder, _digest(declared))]}
        )
        cache_class = type("_Cache", (FunctionCache,), {"_impl_class": impl_class} | _FORGIVING)
        dispatcher._cache = cache_class(dispatcher.py_func)
    else:
        _tell_of_wait()
    result, arguments = numba_types(declared.signature)
    with (
        contextlib.nullcontext()
        if folder is None
        else alone(folder / f"{declared.function.__qualname__}.lock", _LONGEST_COMPILATION)
    ):
        dispatcher.compile(result(*arguments))
    dispatcher.disable_compile()
    return dispatcher  # type: ignore[no-any-return]


def declared_dispatcher(declared: Declared[..., Any], **flags: bool) -> Any:
    """Numba's dispatcher of a kernel, before anything is compiled.

    Args:
        declared: the kernel.
        flags: more options of ``numba.njit``.
    """
    import numba

    function = _with_helpers(declared.function, {})
    return numba.njit(nogil=True, error_model="numpy", fastmath=False, **flags)(function)


def numba_types(signature: str) -> tuple[Any, list[Any]]:
    """Numba's types of the result and the arguments of a signature.

    Raises:
        ValueError: the signature is malformed.
    """
    from numba import types as nb

    def of(one: Parameter) -> Any:
        scalar = getattr(nb, _NUMBA_NAMES.get(one.scalar, one.scalar))
        return nb.Array(scalar, 1, "C", readonly=one.access == "r") if one.access else scalar

    result, parameters = parse(signature)
    return of(result), [of(one) for one in parameters]


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


# ---- the cache


def _digest(declared: Declared[..., Any]) -> str:
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
        found = self._load_overload(sig, target_context)
    except _UNREADABLE:
        found = None  # damaged: compile and replace
    if found is None:
        _tell_of_wait()
    return found


@functools.cache
def _tell_of_wait() -> None:
    """Print, once per process, why the first calls take long, if a person may be waiting."""
    if "ipykernel" in sys.modules or (sys.stderr is not None and sys.stderr.isatty()):
        print(
            "hudi_fast: Numba compiles kernels at their first calls, 10 to 20 seconds in all, once on this machine. "
            "The command hudi-fast warm-up compiles all of them.",
            file=sys.stderr,
        )


def _save_overload(self: Any, sig: Any, data: Any) -> None:
    try:
        try:
            self._save_overload(sig, data)
        except _UNREADABLE:
            self.flush()  # damaged index: start a new one
            self._save_overload(sig, data)
    except OSError:
        return  # full or read-only disk: keep the code in memory


_FORGIVING: dict[str, Any] = {"load_overload": _load_overload, "save_overload": _save_overload}


@functools.cache
def cache_folder() -> Path | None:
    """The folder of this process's compiled kernels; None if no folder is usable (see the module docstring)."""
    return folder_for(_cache_key())


def _cache_key() -> str:
    import numba
    import numpy
    from numba.core.registry import cpu_target

    digest = hashlib.sha256(sources_digest(Path(__file__).parent))
    machine = cpu_target.target_context.codegen().magic_tuple()
    versions = (sys.version, numba.__version__, numpy.__version__)
    digest.update(repr((versions, machine, numba.config.BOUNDSCHECK, numba.config.OPT)).encode())
    return digest.hexdigest()[:24]
