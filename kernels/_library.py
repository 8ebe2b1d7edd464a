"""The library of machine code that a wheel ships, and calls of its kernels.

::

    shipped(): manifest ─► machine, level of the processor, digests of sources and library ─► Library, or None
    Library.find(kernel) ─► arguments ─► slots of 8 bytes ─ ctypes, without the GIL ─► entry of the kernel

A library that does not fit is never called: the kernels are then compiled on this machine, and a debug message of the
logger ``hudi_fast.kernels`` names the reason. ``HUDI_FAST_KERNELS=jit`` leaves the library out; so do
``NUMBA_BOUNDSCHECK`` and ``NUMBA_DISABLE_JIT``. ``HUDI_FAST_KERNELS=shipped`` makes a missing library an error.

Importing this module imports neither numpy nor numba. ``_ahead`` builds the library.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import json
import logging
import os
import platform
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ._kernel import Kernel, parse, sources_digest

__all__ = ["FOLDER", "LIBRARY", "MANIFEST", "Library", "entry_name", "shipped"]

FOLDER, LIBRARY, MANIFEST = "_compiled", "kernels.so", "kernels.json"

_log = logging.getLogger("hudi_fast.kernels")


class Library:
    """Kernels that were compiled ahead.

    Args:
        code: the library, loaded.
        level: of the code to call.
    """

    def __init__(self, code: ctypes.CDLL, level: int) -> None:
        self._code = code
        self._level = level

    def find(self, declared: Kernel[..., Any]) -> Callable[..., Any] | None:
        """A function that calls the kernel; None if the library does not have it."""
        try:
            entry = self._code[entry_name(declared, self._level)]
        except AttributeError:  # of a module outside this package
            return None
        entry.argtypes = [ctypes.c_char_p, ctypes.c_void_p]
        entry.restype = ctypes.c_int
        return _call_of(entry, declared.function.__qualname__, declared.signature)


def entry_name(declared: Kernel[..., Any], level: int) -> str:
    """The name of a kernel's entry in the library."""
    module = declared.function.__module__.rpartition(".")[2]
    return f"hudi_fast_{module}_{declared.function.__qualname__}_{level}"


@functools.cache
def shipped() -> Library | None:
    """The library of this installation; None without one that fits.

    Raises:
        RuntimeError: there is none that fits, and ``HUDI_FAST_KERNELS=shipped`` asks for it.
    """
    folder = Path(__file__).parent / FOLDER
    try:
        return _open(folder)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        if os.environ.get("HUDI_FAST_KERNELS") == "shipped":
            raise RuntimeError(
                f"HUDI_FAST_KERNELS=shipped, but the kernels in {folder} cannot be used: {error}"
            ) from error
        _log.debug("Kernels are compiled on this machine; those in %s are not used: %s", folder, error)
    return None


def _open(folder: Path) -> Library:
    """Check manifest and library.

    Raises:
        OSError: a file is missing, or the library cannot be loaded.
        ValueError: the library is another one than the manifest describes, or does not fit.
    """
    flags = {os.environ.get(name, "") for name in ("NUMBA_BOUNDSCHECK", "NUMBA_DISABLE_JIT")}
    if os.environ.get("HUDI_FAST_KERNELS") == "jit" or flags - {"", "0"}:
        raise ValueError("the environment asks for kernels that are compiled here")
    manifest = json.loads((folder / MANIFEST).read_bytes())
    if manifest["machine"] != platform.machine():
        raise ValueError(f"they are for {manifest['machine']}, and this machine is {platform.machine()}")
    if manifest["sources"] != sources_digest(folder.parent).hex():
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


def _call_of(entry: Any, name: str, signature: str) -> Callable[..., Any]:
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
            raise MemoryError(f"{name}: no memory for its scratch arrays")
        return answer

    return call


_READABLE = 0x101
"""NumPy's flags of an array that is C-contiguous and aligned."""

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
