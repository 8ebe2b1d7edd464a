"""Lists the packages, and compiles the kernels; everything else stands in pyproject.toml.

``kernels/`` is shipped as ``hudi_fast.kernels``. Builds and editable installs compile the kernels into a library for
processors like this machine's: that takes half a minute, a C compiler, and Linux. Where it cannot be done, a line says
so, and Numba compiles each kernel at its first call. ``HUDI_FAST_COMPILE_KERNELS`` asks for something else:

- ``all``, or levels of processors such as ``2 3``: for wheels that other machines install. A failure ends the build.
- ``none``, or nothing: a wheel without machine code, which any machine can install.
"""

import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from setuptools import Distribution, find_packages, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

ASKED = os.environ.get("HUDI_FAST_COMPILE_KERNELS", "native").split()
NONE, NATIVE, ALL = ASKED in ([], ["none"]), ASKED == ["native"], ASKED == ["all"]
COMPILED = Path("kernels", "_compiled")
GLIBC = "2_17"
"""The library needs no newer C library: a test looks at its symbols."""


class BuildWithKernels(build_py):
    """Copies the packages, then compiles the kernels among the copies; editable ones where they are."""

    def run(self) -> None:
        """Copy and compile."""
        super().run()
        if self.editable_mode:
            with tempfile.TemporaryDirectory() as folder:
                package = Path(folder, "hudi_fast")
                package.mkdir()
                (package / "__init__.py").touch()
                (package / "kernels").symlink_to(Path("kernels").resolve())
                compile_kernels(folder)
        else:
            built = Path(self.build_lib).resolve()
            if NATIVE and COMPILED.is_dir():  # of an editable install; compiled again unless it fits
                shutil.copytree(COMPILED, built / "hudi_fast" / COMPILED, dirs_exist_ok=True)
            compile_kernels(str(built))


def compile_kernels(folder: str) -> None:
    """Compile the kernels of the package in a folder, as the environment asks."""
    if NONE:
        return
    which = ["--native"] if NATIVE else [] if ALL else ["--levels", *ASKED]
    command = [sys.executable, "-m", "hudi_fast.kernels._ahead", *which]
    path = os.pathsep.join(filter(None, (folder, os.environ.get("PYTHONPATH"))))  # pip has the requirements there
    print("hudi_fast: compiling the kernels, about half a minute", file=sys.stderr, flush=True)
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": path}, cwd=folder, check=not NATIVE)
    if done.returncode != 0:
        print("hudi_fast: they were not compiled; Numba compiles each at its first call", file=sys.stderr, flush=True)


class WithMachineCode(Distribution):
    """Says whether the wheel has compiled kernels."""

    def has_ext_modules(self) -> bool:
        """Whether the files are for one kind of machine."""
        return not NONE


class WheelForMachine(bdist_wheel):
    """Names the machine that compiled kernels are for."""

    def get_tag(self) -> tuple[str, str, str]:
        """The tags: any Python 3, no ABI of Python, this kind of machine.

        Only a wheel that others install promises an old C library.
        """
        tag = super().get_tag()
        if NONE:
            return tag
        return "py3", "none", tag[2] if NATIVE else f"manylinux_{GLIBC}_{platform.machine()}"


setup(
    packages=[*find_packages(include=["hudi_fast", "hudi_fast.*"]), "hudi_fast.kernels"],
    distclass=WithMachineCode,
    cmdclass={"build_py": BuildWithKernels, "bdist_wheel": WheelForMachine},
)
