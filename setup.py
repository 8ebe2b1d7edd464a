"""Lists the packages, and compiles kernels into a wheel; everything else stands in pyproject.toml.

``kernels/`` is shipped as ``hudi_fast.kernels``. With ``HUDI_FAST_COMPILE_KERNELS=all`` the wheel also has a library of
compiled kernels: it is then for one kind of machine, and for every Python. Instead of ``all`` it takes levels of
processors, such as ``2 3``. Numba and a C compiler must be installed where it is built
(``python -m build --wheel --no-isolation``).
"""

import os
import platform
import subprocess
import sys
from pathlib import Path

from setuptools import Distribution, find_packages, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

COMPILED = os.environ.get("HUDI_FAST_COMPILE_KERNELS", "").split()
GLIBC = "2_17"
"""The library needs no newer C library: a test looks at its symbols."""


class BuildWithKernels(build_py):
    """Copies the packages, then compiles the kernels among the copies."""

    def run(self) -> None:
        """Copy and compile."""
        super().run()
        if COMPILED and not self.editable_mode:
            built = str(Path(self.build_lib).resolve())
            environment = os.environ | {"PYTHONPATH": built}
            levels = [] if COMPILED == ["all"] else ["--levels", *COMPILED]
            command = [sys.executable, "-m", "hudi_fast.kernels._ahead", *levels]
            subprocess.run(command, env=environment, cwd=built, check=True)


class WithMachineCode(Distribution):
    """Says whether the wheel has compiled kernels."""

    def has_ext_modules(self) -> bool:
        """Whether the files are for one kind of machine."""
        return bool(COMPILED)


class WheelForMachine(bdist_wheel):
    """Names the machine that compiled kernels are for."""

    def get_tag(self) -> tuple[str, str, str]:
        """The tags: any Python 3, no ABI of Python, this kind of machine."""
        if not COMPILED:
            return super().get_tag()
        return "py3", "none", f"manylinux_{GLIBC}_{platform.machine()}"


setup(
    packages=[*find_packages(include=["hudi_fast", "hudi_fast.*"]), "hudi_fast.kernels"],
    distclass=WithMachineCode,
    cmdclass={"build_py": BuildWithKernels, "bdist_wheel": WheelForMachine},
)
