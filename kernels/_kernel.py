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
import importlib
import os
import pkgutil
import threading
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from ._declared import Declared
from ._jit import compile_kernel
from ._library import compiled

__all__ = ["Kernel", "all_kernels", "kernel", "warm_up"]

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
