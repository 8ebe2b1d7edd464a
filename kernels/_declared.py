"""What a kernel is before any machine code is there: a function, its signature, and the helpers that it calls.

``_kernel`` loads machine code for a declaration, ``_jit`` and ``_ahead`` compile it. Importing this module imports
neither numpy nor numba.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Generic, NamedTuple, ParamSpec, TypeVar

__all__ = ["Declared", "Helper", "Parameter", "helper", "machine_op", "parse", "sources_digest"]

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


class Parameter(NamedTuple):
    """The type of a parameter or a result.

    Attributes:
        scalar: NumPy's name of the scalar type; ``void`` for no result.
        access: ``r`` or ``w`` for an array that the kernel reads or writes; empty for a scalar.
    """

    scalar: str
    access: str = ""


class Declared(Generic[P, R]):
    """A declared kernel; pickles by name.

    Args:
        function: the Python definition.
        signature: types of the arguments and the result; see :func:`parse`.
    """

    def __init__(self, function: Callable[P, R], signature: str) -> None:
        self.function = function
        self.signature = signature

    def __reduce__(self) -> str:
        return self.function.__qualname__


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


def sources_digest(folder: Path) -> bytes:
    """A digest of the kernels' sources. Machine code of other sources is never run."""
    digest = hashlib.sha256()
    for source in sorted(folder.glob("*.py")):
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    return digest.digest()
