"""Compile all kernels into one library, for a wheel or the cache: it serves any version of Python and numba.

::

    kernels ── numba, for each level of processors ──► LLVM module of a kernel
                                                        │  and its entry: slots of 8 bytes in, status and result out
                                                        ▼
                                                  object files, _runtime.c ── cc ──► kernels.so, kernels.json

The library needs neither Python nor numba where it runs: kernels take addresses and numbers. ``_kernel`` describes the
calls and loads it. Usage, where numba and a C compiler are installed::

    python -m hudi_fast.kernels._ahead              # into the folder of this package
    python -m hudi_fast.kernels._ahead --native     # for processors like this one, unless it is there

Several processes compile in parallel, each a share of one level's kernels. The level needs its own process: numba reads
the processor's name when it is imported.
"""

from __future__ import annotations

import argparse
import ctypes
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from ._cache import alone, folder_for
from ._jit import declared_dispatcher, numba_types
from ._kernel import (
    FOLDER,
    LIBRARY,
    MANIFEST,
    Kernel,
    all_kernels,
    asks_for_jit,
    cache_key,
    compiled,
    entry_name,
    fits,
    sources,
)

__all__ = ["compile_into_cache", "compile_library", "processor_level"]

_PACKAGE = Path(__file__).parent
_LONGEST = 600.0
"""Seconds to wait for another process that compiles all kernels."""

LEVELS = {"x86_64": {2: "x86-64-v2", 3: "x86-64-v3", 4: "x86-64-v4"}, "aarch64": {0: "generic"}}
"""LLVM's names of processors by machine and level (x86-64 micro-architecture levels of the psABI)."""

_HERE = f"{sys.platform} on {platform.machine()}"
_NOT_HERE = f"Kernels are compiled ahead for Linux on {' and '.join(LEVELS)} only, not for {_HERE}."

_SHARED = ("-shared", "-fPIC", "-O2", "-s")
"""Options of the C compiler for a library."""

_NEEDED = {"NRT_MemInfo_alloc_aligned", "NRT_MemInfo_call_dtor", "memcmp", "memcpy", "memmove", "memset", "sqrt"}
"""Functions that compiled kernels may call: from ``_runtime.c``, from any C library, and from its mathematics."""


def compile_into_cache(levels: Sequence[int] = (), compiler: str = "cc") -> Path | None:
    """Compile all kernels into the first folder of the cache, unless a library there or in the package fits.

    If several processes call this at once, one compiles and the others wait.

    Args:
        levels: levels of processors; empty for all levels of this kind of machine.
        compiler: a C compiler that links, too.

    Returns:
        The library that processes now use. None if there can be no library: the environment requests numba's own
        kernels, no folder is writable, there is no C compiler, or no level is known for this machine.

    Raises:
        RuntimeError: a tool fails.
    """
    folder = folder_for(cache_key())
    if asks_for_jit() or folder is None:
        return None
    with alone(folder / "lock", _LONGEST):
        for there in (_PACKAGE / FOLDER, folder):
            if fits(there):
                return there / LIBRARY
        if not _levels() or shutil.which(compiler) is None:
            return None
        library = compile_library(folder, levels, compiler)
    compiled.cache_clear()
    return library


def compile_library(into: Path, levels: Sequence[int] = (), compiler: str = "cc") -> Path:
    """Compile all kernels for each level, and write library and manifest.

    Args:
        into: the folder of both files.
        levels: levels of processors; empty for all levels of this kind of machine.
        compiler: a C compiler that links, too.

    Returns:
        The library.

    Raises:
        RuntimeError: a tool is missing or fails, no level is known for this machine, or one of ``levels`` is unknown.
    """
    known = _levels()
    if not known:
        raise RuntimeError(_NOT_HERE)
    wanted = sorted(set(levels or known))
    if unknown := [str(level) for level in wanted if level not in known]:
        raise RuntimeError(
            f"Processors of the kind {platform.machine()} have no level {', '.join(unknown)}, "
            f"only {', '.join(map(str, known))}."
        )
    into.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=into) as folder:
        _compile_all(wanted, Path(folder))
        exported = Path(folder, "exported")
        exported.write_text("{ global: hudi_fast_*; local: *; };")
        made = Path(folder, LIBRARY)
        command = [compiler, *_SHARED, "-o", str(made), str(_PACKAGE / "_runtime.c")]
        command += [
            *map(str, sorted(Path(folder).glob("*.o"))),
            f"-Wl,--version-script={exported}",
            "-Wl,-z,defs",
            "-lm",
        ]
        _link(command)
        manifest = {
            "machine": platform.machine(),
            "levels": wanted,
            "sources": sources(),
            "sha256": hashlib.sha256(made.read_bytes()).hexdigest(),
        }
        described = Path(folder, MANIFEST)
        described.write_text(json.dumps(manifest, indent=2) + "\n")
        # A process that reads between the two replacements finds a wrong digest, and uses numba.
        library = made.replace(into / LIBRARY)
        described.replace(into / MANIFEST)
    return library


def processor_level(compiler: str = "cc") -> int:
    """The highest level whose code this processor can run, by the library's own test.

    Raises:
        RuntimeError: the compiler is missing or fails, or the processor is below the lowest level.
    """
    if not _levels():
        raise RuntimeError(_NOT_HERE)
    with tempfile.TemporaryDirectory() as folder:
        probe = Path(folder, "probe.so")
        _link([compiler, *_SHARED, "-o", str(probe), str(_PACKAGE / "_runtime.c")])
        level = int(ctypes.CDLL(str(probe)).hudi_fast_cpu_level())
    if level not in _levels():
        raise RuntimeError(f"This processor is of level {level}: no kernels are compiled ahead for it.")
    return level


def _levels() -> dict[int, str]:
    """LLVM's names of processors by level; empty for machines without a library."""
    return LEVELS.get(platform.machine(), {}) if sys.platform == "linux" else {}


def _link(command: Sequence[str]) -> None:
    try:
        subprocess.run(command, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise RuntimeError(f"The library of kernels was not linked: {error}") from error


def _compile_all(levels: Sequence[int], folder: Path) -> None:
    """Compile the kernels of all levels into object files of a folder, in a process for each core.

    Raises:
        RuntimeError: a process failed; its own message is on the standard error stream.
    """
    cores = len(os.sched_getaffinity(0))
    shares = -(-cores // len(levels))

    def compile_share(level: int, share: int) -> None:
        name = LEVELS[platform.machine()][level]
        environment = os.environ | {"NUMBA_CPU_NAME": name, "NUMBA_CPU_FEATURES": "", "NUMBA_BOUNDSCHECK": "0"}
        command = [sys.executable, "-m", f"{__package__}._ahead", "--levels", str(level)]
        command += ["--objects", str(folder), "--share", str(share), str(shares)]
        if subprocess.run(command, env=environment).returncode != 0:
            raise RuntimeError(f"The kernels of level {level} were not compiled: their process says why.")

    with ThreadPoolExecutor(cores) as pool:
        running = [pool.submit(compile_share, level, share) for share in range(shares) for level in levels]
        for one in running:
            one.result()


def _compile_share(level: int, folder: Path, share: int, shares: int) -> None:
    """Write an object file of every ``shares``-th kernel, from number ``share`` on, for one level."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    machine = target.create_target_machine(
        cpu=LEVELS[platform.machine()][level], features="", opt=3, reloc="pic", codemodel="default"
    )
    for declared in all_kernels()[share::shares]:
        name = entry_name(declared, level)
        code, entry = _with_entry(declared, name)
        module = llvm.parse_assembly(code)
        module.link_in(llvm.parse_assembly(entry))
        _keep_only(module, name)
        (folder / f"{name}.o").write_bytes(machine.emit_object(module))


def _with_entry(declared: Kernel[..., Any], name: str) -> tuple[str, str]:
    """The optimized LLVM module of a kernel, and a module with the entry ``int name(slots, result)``.

    The entry reads the arguments from slots of 8 bytes: an array has two, address and length; a scalar has one. It
    writes the result, if any, to another slot, and returns 0, or numba's status of an error.
    """
    from llvmlite import ir
    from numba.core import cgutils, types
    from numba.core.registry import cpu_target
    from numba.np.arrayobj import populate_array

    dispatcher = declared_dispatcher(declared, no_cpython_wrapper=True, no_cfunc_wrapper=True)
    result, arguments = numba_types(declared.signature)
    dispatcher.compile(result(*arguments))
    context, described = cpu_target.target_context, dispatcher.overloads[tuple(arguments)].fndesc
    module = context.create_module(name)
    word, pointer = ir.IntType(64), ir.IntType(64).as_pointer()
    entry = ir.Function(module, ir.FunctionType(ir.IntType(32), [pointer, pointer]), name)
    builder = ir.IRBuilder(entry.append_basic_block())
    at = 0

    def slot() -> Any:
        nonlocal at
        at += 1
        return builder.load(builder.gep(entry.args[0], [word(at - 1)]))

    values = []
    for kind in arguments:
        if isinstance(kind, types.Array):
            array = context.make_array(kind)(context, builder)
            data = builder.inttoptr(slot(), context.get_data_type(kind.dtype).as_pointer())
            size = context.get_abi_sizeof(context.get_data_type(kind.dtype))
            populate_array(array, data, shape=(slot(),), strides=(word(size),), itemsize=size, meminfo=None)
            values.append(array._getvalue())
        elif kind is types.float64:
            values.append(builder.bitcast(slot(), ir.DoubleType()))
        elif kind is types.boolean:
            values.append(builder.icmp_unsigned("!=", builder.trunc(slot(), ir.IntType(8)), ir.IntType(8)(0)))
        else:
            values.append(context.cast(builder, slot(), types.int64, kind))
    callee = cgutils.get_or_insert_function(
        module, context.call_conv.get_function_type(described.restype, described.argtypes), described.llvm_func_name
    )
    status, answer = context.call_conv.call_function(builder, callee, described.restype, described.argtypes, values)
    if result is not types.void:
        with builder.if_then(status.is_ok):
            is_float = result is types.float64
            bits = builder.bitcast(answer, word) if is_float else context.cast(builder, answer, result, types.int64)
            builder.store(bits, entry.args[1])
    builder.ret(status.code)
    (code,) = dispatcher.inspect_llvm().values()
    return code, str(module)


def _keep_only(module: Any, entry: str) -> None:
    """Make the entry the only visible name, because code of another level has functions of the same names.

    Raises:
        RuntimeError: the code calls a function that ``_runtime.c`` does not have.
    """
    for function in module.functions:
        if not function.is_declaration and function.name != entry:
            function.linkage = "internal"
        called = function.is_declaration and not function.name.startswith("llvm.")
        if called and function.name not in _NEEDED:
            raise RuntimeError(f"{entry} calls {function.name}: add it to _runtime.c.")
    for variable in module.global_variables:
        if not variable.is_declaration:
            variable.linkage = "internal"
    module.verify()


def _main() -> None:
    parser = argparse.ArgumentParser(description="Compile all kernels into the library that a wheel ships.")
    parser.add_argument("--compiler", default=os.environ.get("CC", "cc"), help="a C compiler")
    parser.add_argument(
        "--levels", type=int, nargs="+", choices=sorted(_levels()), default=(), help="of processors; all"
    )
    parser.add_argument("--native", action="store_true", help="for processors like this one, unless it is there")
    parser.add_argument("--objects", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--share", type=int, nargs=2, default=(0, 1), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.objects is not None:
        _compile_share(given.levels[0], given.objects, *given.share)
        return
    folder = _PACKAGE / FOLDER
    if given.native and fits(folder):
        return
    try:
        levels = [processor_level(given.compiler)] if given.native else given.levels
        print(compile_library(folder, levels, given.compiler))
    except RuntimeError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    _main()
