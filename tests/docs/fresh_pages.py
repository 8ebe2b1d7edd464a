"""Run pages of the documentation as a newcomer does: in an environment that has the installs of the page alone.

::

    python -m tests.docs.fresh_pages                      # README.md and all pages with Python or commands
    python -m tests.docs.fresh_pages sql tutorial-spark   # some of them
    python -m tests.docs.fresh_pages --cache FOLDER       # the wheel and the environments are kept there
    python -m tests.docs.fresh_pages --wheel FILE         # another wheel than that of this checkout

Pages with the same installs share an environment. The project in it is a wheel of this checkout, which is built once.
Each page runs in a process and an empty folder of its own (:mod:`tests.docs.pages`).
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache as once
from pathlib import Path

from tests.docs import pages
from tests.docs.pages import blocks_of, commands_of, installs_of
from tests.packaging.builds import CHECKOUT, build_wheel, run

__all__ = ["CACHE", "PAGES", "environment_of", "requirements_of", "run_fresh", "wheel_of_checkout"]

CACHE = CHECKOUT / "artifacts" / "fresh_pages"
SOURCES = ("hudi_fast", "kernels", "LICENSE", "MANIFEST.in", "README.md", "pyproject.toml", "setup.py")
OWN = re.compile(r"^(?:PYTHON|PYSPARK|SPARK|HADOOP|HUDI|HOODIE|NUMBA|COVERAGE|PYTEST|VIRTUAL_ENV)")
"""Variables of the environment that a newcomer has not set."""
MINUTES = 10
"""A page that runs for longer has failed."""


def has_programs(text: str) -> bool:
    """Whether a page has Python, or a command that is no install."""
    return any(block.language == "python" or commands_of(block) for block in blocks_of(text))


PAGES = {
    path.stem: path
    for path in [CHECKOUT / "README.md", *sorted((CHECKOUT / "docs").rglob("*.md"))]
    if has_programs(path.read_text(encoding="utf-8"))
}
"""Pages that run, by their names."""


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Let one process at a time make a folder."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(f"{folder}.lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@once
def wheel_of_checkout(cache: Path) -> Path:
    """The wheel of this checkout with kernels for this machine, in a folder named after its sources."""
    digest = hashlib.sha256()
    for path in sorted(path for name in SOURCES for path in (CHECKOUT / name, *(CHECKOUT / name).rglob("*"))):
        if path.is_file() and "__pycache__" not in path.parts:
            digest.update(f"{path.relative_to(CHECKOUT)}\0".encode() + path.read_bytes())
    folder = cache / "wheel"
    with alone(folder):
        made = folder / digest.hexdigest()[:16]
        if not made.exists():
            shutil.rmtree(folder, ignore_errors=True)
            with tempfile.TemporaryDirectory() as scratch:
                for name in SOURCES:  # a build leaves folders beside its sources
                    copy = shutil.copytree if (CHECKOUT / name).is_dir() else shutil.copy2
                    copy(CHECKOUT / name, Path(scratch, name))
                built = build_wheel(Path(scratch), Path(scratch, "made"), HUDI_FAST_COMPILE_KERNELS="native")
                folder.mkdir()
                shutil.copytree(built.parent, made)
        (found,) = made.glob("*.whl")
        return found


def requirements_of(installs: Sequence[str], wheel: Path) -> list[str]:
    """Requirements with the wheel in place of the project; its extras are joined."""
    own = [name for name in installs if re.match(r"hudi-fast($|\[)", name)]
    extras = sorted({extra for name in own for extra in re.findall(r"[\w-]+", name.partition("[")[2])})
    project = f"hudi-fast[{','.join(extras)}]" if extras else "hudi-fast"
    return [f"{project} @ {wheel.as_uri()}", *(name for name in installs if name not in own)] if own else [*installs]


def environment_of(installs: Sequence[str], wheel: Path, cache: Path) -> Path:
    """The ``bin`` folder of a virtual environment with these installs alone; made if it is missing or old."""
    requirements = requirements_of(installs, wheel)
    wanted = "\n".join([*requirements, hashlib.sha256(wheel.read_bytes()).hexdigest()])
    folder = cache / f"python-{hashlib.sha256(repr(sorted(installs)).encode()).hexdigest()[:12]}"
    with alone(folder):
        made = folder / "installs.txt"
        if not made.exists() or made.read_text() != wanted:
            shutil.rmtree(folder, ignore_errors=True)
            run([sys.executable, "-m", "venv", folder], cache)
            install(folder / "bin" / "python", requirements)
            made.write_text(wanted)
    return folder / "bin"


def install(python: Path, requirements: Sequence[str]) -> None:
    """Install by uv, or by pip where uv is missing or cannot reach the index."""
    if not requirements:
        return
    uv = shutil.which("uv", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if uv:
        command = [uv, "pip", "install", "--quiet", "--python", python, *requirements]
        if subprocess.run([*map(str, command)], capture_output=True, check=False).returncode == 0:
            return
    run([python, "-m", "pip", "install", "--quiet", *requirements], python.parent)


def run_fresh(page: Path, folder: Path, wheel: Path, cache: Path) -> str:
    """Run a page in an empty folder and in its own environment; returns why it failed, or an empty text."""
    programs = environment_of(installs_of(page.read_text(encoding="utf-8")), wheel, cache)
    settings = {name: value for name, value in os.environ.items() if not OWN.match(name)}
    settings |= {"PATH": f"{programs}:{os.environ['PATH']}", "VIRTUAL_ENV": str(programs.parent)}
    command = [programs / "python", Path(pages.__file__), page]
    try:
        done = subprocess.run(
            command, cwd=folder, env=settings, capture_output=True, text=True, timeout=60 * MINUTES, check=False
        )
    except subprocess.TimeoutExpired as error:
        return f"{page} did not end within {MINUTES} minutes.\n{error.output}"
    return "" if done.returncode == 0 else f"{done.stdout}{done.stderr}" or f"{page} failed"


def main() -> int:
    """Run pages and print what failed; returns how many did."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("pages", nargs="*", choices=[[], *PAGES], metavar="PAGE", help="names without folder and .md")
    parser.add_argument("--cache", type=Path, default=CACHE, help="folder of the wheel and the environments")
    parser.add_argument("--wheel", type=Path, help="a wheel of the project; without it one is built")
    arguments = parser.parse_args()
    cache = arguments.cache.resolve()
    wheel = arguments.wheel.resolve() if arguments.wheel else wheel_of_checkout(cache)
    failed = 0
    for name in arguments.pages or PAGES:
        with tempfile.TemporaryDirectory(prefix=f"{name}-") as folder:
            reason = run_fresh(PAGES[name], Path(folder), wheel, cache)
        print(f"{name}: {'failed' if reason else 'passed'}\n{reason}".rstrip(), flush=True)
        failed += bool(reason)
    return failed


if __name__ == "__main__":
    sys.exit(main())
