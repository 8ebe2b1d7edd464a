"""Scratch copies of the checkout, each with one mutant at a time.

::

    tracked files of the checkout ─► a copy ─► mutant applied ─► tests run there ─► file restored ─► the next mutant
    environments, artifacts ──────── links

Kernels are a package of their own folder in the checkout. In a copy the package ``hudi_fast`` has a link to it: an
editable installation would take them from the checkout.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.mutants.mutant import Mutant

__all__ = ["ROOT", "Scratch"]

ROOT = Path(__file__).parents[2]
_LINKED = (".venv", ".venv-hudi", ".venv-spark35", "artifacts")


class Scratch:
    """One copy of the checkout.

    Args:
        folder: of the copy; an existing one is replaced.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._applied = 0
        shutil.rmtree(folder, ignore_errors=True)
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True)
        for name in filter(None, listed.stdout.split("\0")):
            if (ROOT / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, folder / name)
        for name in _LINKED:
            if (ROOT / name).exists():
                (folder / name).symlink_to(ROOT / name)
        (folder / "hudi_fast" / "kernels").symlink_to(Path("..") / "kernels")

    @property
    def environment(self) -> dict[str, str]:
        """Variables of the tests: the copy comes before the installed package, and no option of a user applies."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("HUDI_FAST", "PYTEST_")) and name not in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE")
        }
        return kept | {"PYTHONPATH": str(self.folder)}

    @contextmanager
    def mutated(self, mutant: Mutant) -> Iterator[None]:
        """The copy with a mutant, for the duration of the block."""
        path = self.folder / mutant.file
        text, times = path.read_text(encoding="utf-8"), path.stat()
        self._applied += 1
        try:
            path.write_text(mutant.applied(text), encoding="utf-8")
            # Kept bytecode belongs to a file's time in seconds and its size; no two mutants have one time.
            os.utime(path, (times.st_atime, times.st_mtime + self._applied))
            yield
        finally:
            path.write_text(text, encoding="utf-8")
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
