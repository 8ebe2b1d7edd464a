"""Declaration and loading of kernels.

::

    @kernel("i8(ri4, ru1, wu1)")        one function, one signature; nothing is loaded yet
    def some_kernel(offsets, data, out): ...
          |
          | first call (or Kernel.load, or warm_up)
          v
    a library of machine code is here, and fits? --yes--> _library: load it, import no numba
          | no
          v
    _jit: load machine code from the cache folder, or compile it with numba and save it

Importing a kernel module imports neither numba nor llvmlite.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import os
import pkgutil
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, NamedTuple, ParamSpec, TypeVar

__all__ = [
    "Helper",
    "Kernel",
    "Parameter",
    "all_kernels",
    "helper",
    "kernel",
    "machine_op",
    "parse",
    "sources_digest",
    "warm_up",
]

P = ParamSpec("P")
R = TypeVar("R")

SCALARS = {
    "b1": "bool",
    "u1": "uint8",
    "u4": "uint32",
    "u8": "uint64",
    "i4": "int32",
    "i8": "int64",
    "f8": "float64",
}
"""NumPy's name of each scalar type."""

_LOCKS: list[Any] = []
"""Locks of all kernels. A child of ``fork`` frees them, because other threads of its parent may have held them."""


def _free_locks() -> None:
    for lock in _LOCKS:
        lock._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_locks)


class Parameter(NamedTuple):
    """The type of a parameter or a result.

    Attributes:
        scalar: NumPy's name of the scalar type; ``void`` for no result.
        access: ``r`` or ``w`` for an array that the kernel reads or writes; empty for a scalar.
    """

    scalar: str
    access: str = ""


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
        _LOCKS.append(self._lock)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        compiled = self._compiled or self.load()
        return compiled(*args, **kwargs)  # type: ignore[no-any-return]

    def __reduce__(self) -> str:
        return self.function.__qualname__

    def load(self) -> Callable[..., Any]:
        """Load the machine code: from a library, or from numba's cache, or compile and save it."""
        from ._library import compiled

        with self._lock:
            if self._compiled is None:
                library = compiled()
                self._compiled = None if library is None else library.find(self)
            if self._compiled is None:
                from ._jit import compile_kernel

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


def helper(function: Callable[P, R]) -> Helper[P, R]:
    """Declare a function that kernels call."""
    return Helper(function)


def machine_op(function: Callable[P, R]) -> Helper[P, R]:
    """Declare a helper that ``_machine_ops`` implements under the same name as machine instructions."""
    return Helper(function, function.__name__)


def parse(signature: str) -> tuple[Parameter, list[Parameter]]:
    """The result and the parameters of a signature.

    Raises:
        ValueError: the signature is malformed.
    """
    match = re.fullmatch(r"(\w+)\(([\w, ]*)\)", signature)
    if match is None:
        raise ValueError(f"malformed kernel signature {signature!r}")

    def of(code: str) -> Parameter:
        if code in SCALARS:
            return Parameter(SCALARS[code])
        if code[0] in "rw" and code[1:] in SCALARS:
            return Parameter(SCALARS[code[1:]], code[0])
        raise ValueError(f"unknown type {code!r} in kernel signature {signature!r}")

    codes = [part.strip() for part in match[2].split(",") if part.strip()]
    return Parameter("void") if match[1] == "void" else of(match[1]), [of(code) for code in codes]


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


def sources_digest(folder: Path) -> bytes:
    """A digest of the kernels' sources. Machine code of other sources is never run."""
    digest = hashlib.sha256()
    for source in sorted(folder.glob("*.py")):
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    return digest.digest()


def warm_up() -> int:
    """Load, or compile and save, every kernel of the package; return their number.

    Call it in image builds, in long-lived workers before their first task, and in tests.
    """
    kernels = all_kernels()
    for one in kernels:
        one.load()
    return len(kernels)
