"""Small writes, reads and commands, each from the start of its process to its end.

The processes are those of :mod:`benchmarks.cold_start`. Their kernels, modules and files are in caches.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.cold_start import STEPS, command, make_table

EXECUTABLES = Path(sys.executable).parent


class ColdStart:
    """One process, with a table of two rows."""

    params = tuple(STEPS)
    param_names = ("process",)
    number = 1
    warmup_time = 0
    timeout = 300

    def setup_cache(self) -> str:
        """A folder with the table and a cache of all kernels that the processes use."""
        folder = Path(tempfile.mkdtemp(prefix="hudi_fast-asv-"))
        make_table(folder, EXECUTABLES, _environment(str(folder)))
        for step in STEPS:
            _run(_copy(str(folder)), step, str(folder))
        return str(folder)

    def setup(self, folder: str, step: str) -> None:
        self.place = _copy(folder)

    def teardown(self, folder: str, step: str) -> None:
        shutil.rmtree(self.place)

    def time_process(self, folder: str, step: str) -> None:
        _run(self.place, step, folder)


def _copy(folder: str) -> str:
    """A new folder with a copy of the table."""
    place = tempfile.mkdtemp(dir=folder)
    shutil.copytree(f"{folder}/t", f"{place}/t")
    return place


def _environment(folder: str) -> dict[str, str]:
    return {**os.environ, "NUMBA_CACHE_DIR": f"{folder}/cache"}


def _run(place: str, step: str, folder: str) -> None:
    done = command(step, EXECUTABLES)
    subprocess.run(done, cwd=place, env=_environment(folder), check=True, stdout=subprocess.DEVNULL)
