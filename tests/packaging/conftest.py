"""Fixtures: the wheel and the sdist of this checkout, and a virtual environment with the wheel."""

from __future__ import annotations

import shutil
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.packaging.builds import CHECKOUT, build_sdist, build_wheel, run

SOURCES = ("hudi_fast", "kernels", "tests", "LICENSE", "MANIFEST.in", "README.md", "pyproject.toml", "setup.py")


@pytest.fixture(scope="session")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what is built: builds leave folders beside their sources."""
    folder = tmp_path_factory.mktemp("sources")
    for name in SOURCES:
        path = CHECKOUT / name
        if path.is_dir():
            shutil.copytree(
                path, folder / name, ignore=shutil.ignore_patterns("__pycache__", "_compiled", "*.zip", "data")
            )
        else:
            shutil.copy2(path, folder / name)
    return folder


@pytest.fixture(scope="session")
def wheel(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel."""
    return build_wheel(sources, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def sdist(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source distribution."""
    return build_sdist(sources, tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The ``bin`` folder of a virtual environment that has the wheel, and the dependencies of this environment.

    A path in a ``.pth`` file does not execute the ``.pth`` files of that path: the editable installation of this
    environment is not visible.
    """
    folder = tmp_path_factory.mktemp("venv")
    run([sys.executable, "-m", "venv", "--without-pip", folder], folder)
    python = folder / "bin" / "python"
    run(
        [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index", wheel],
        folder,
    )
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    return folder / "bin"
