"""Programs of test servers that no Python package brings: built by Go, or installed by npm or apt, once.

``make built-servers`` calls :func:`build` for each; the servers take them from the cache folder with :func:`program`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

__all__ = ["PROGRAMS", "ServerError", "build", "is_built", "program"]

BUILD_SECONDS = 900.0
PUSH_GATEWAY = "prometheus-pushgateway"


class ServerError(Exception):
    """The server cannot be had, or did not start."""


def _go(package: str) -> Callable[[Path], None]:
    def install(place: Path) -> None:
        _run(["go", "install", package], place, {"GOBIN": str(place)})

    return install


def _npm(package: str) -> Callable[[Path], None]:
    def install(place: Path) -> None:
        _run(["npm", "install", "--prefix", str(place), "--no-audit", "--no-fund", package], place)

    return install


def _apt(package: str) -> Callable[[Path], None]:
    def install(place: Path) -> None:
        _run(["apt-get", "download", package], place)
        for file in place.glob("*.deb"):
            _run(["dpkg", "-x", str(file), "."], place)

    return install


PROGRAMS: dict[str, tuple[Callable[[Path], None], str]] = {
    "versitygw": (_go("github.com/versity/versitygw/cmd/versitygw@v1.8.0"), "versitygw"),
    "fake-gcs": (_go("github.com/fsouza/fake-gcs-server@v1.56.1"), "fake-gcs-server"),
    "azurite": (_npm("azurite@3.35.0"), "node_modules/.bin/azurite-blob"),
    "push-gateway": (_apt(PUSH_GATEWAY), f"usr/bin/{PUSH_GATEWAY}"),
}
"""How each program is made in a folder of its own, and its path below that folder."""


def is_built(cache: Path, name: str) -> bool:
    """Whether the program is there; a build that failed leaves its folder."""
    return (cache / name / PROGRAMS[name][1]).exists()


def program(cache: Path, name: str) -> Path:
    """The program.

    Raises:
        ServerError: it has not been built.
    """
    path = cache / name / PROGRAMS[name][1]
    if not is_built(cache, name):
        raise ServerError(f"{name} is not there: run `make built-servers`.")
    return path


def build(cache: Path, name: str) -> None:
    """Build or install the program, unless that has been done.

    Raises:
        ServerError: its tool is not installed, or its registry cannot be reached.
    """
    if is_built(cache, name):
        return
    make, _ = PROGRAMS[name]
    place = cache / name
    place.mkdir(parents=True, exist_ok=True)
    try:
        make(place)
    except (OSError, subprocess.SubprocessError) as error:
        raise ServerError(f"{name} cannot be built: {error}") from error
    program(cache, name)


def _run(command: list[str], folder: Path, variables: dict[str, str] | None = None) -> None:
    if shutil.which(command[0]) is None:
        raise FileNotFoundError(f"{command[0]} is not installed.")
    environment = {**os.environ, **(variables or {})}
    subprocess.run(command, cwd=folder, env=environment, capture_output=True, timeout=BUILD_SECONDS, check=True)
