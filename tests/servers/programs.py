"""Programs of test servers that no Python package brings: built by Go, or installed by npm or apt, once.

``make built-servers`` calls :func:`build` for each; the servers take them from the cache folder with :func:`program`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

__all__ = ["PROGRAMS", "ServerError", "build", "is_built", "program"]

BUILD_SECONDS = 900.0
PUSH_GATEWAY = "prometheus-pushgateway"
LIBRARIES = r"lib(pq5|icu\d|xml2|ldap|sasl2-2|lz4-1|zstd1|xslt)"
MARIADB_LIBRARIES = r"lib(aio1|numa1|uring2|pcre2-8-0)"
"""Packages of libraries that PostgreSQL and MariaDB need and few other programs."""


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


def _apt(*packages: str) -> Callable[[Path], None]:
    def install(place: Path) -> None:
        _run(["apt-get", "download", *packages], place)
        for file in place.glob("*.deb"):
            _run(["dpkg", "-x", str(file), "."], place)

    return install


def _postgresql(place: Path) -> None:
    """Debian's newest, with the libraries that a machine without a PostgreSQL may lack."""
    versions = [name.rpartition("-")[2] for name in _packages("postgresql") if re.fullmatch(r"postgresql-\d+", name)]
    if not versions:
        raise FileNotFoundError("apt knows no PostgreSQL.")
    version = max(versions, key=int)
    server, client = f"postgresql-{version}", f"postgresql-client-{version}"
    libraries = [name for name in _packages(server, client) if re.match(LIBRARIES, name)]
    _apt(server, client, *libraries)(place)
    (place / "bin").symlink_to(f"usr/lib/postgresql/{version}/bin")


def _mariadb(place: Path) -> None:
    """Debian's, with the libraries that a machine without a MariaDB may lack."""
    server, client = "mariadb-server-core", "mariadb-client-core"
    _apt(server, client, *(name for name in _packages(server) if re.match(MARIADB_LIBRARIES, name)))(place)


def _packages(*names: str) -> list[str]:
    """What packages depend on, directly or not."""
    told = _run(["apt-cache", "depends", "--recurse", "--important", *names], Path.cwd())
    return sorted({line for line in told.splitlines() if re.match(r"\w", line)})


PROGRAMS: dict[str, tuple[Callable[[Path], None], str]] = {
    "versitygw": (_go("github.com/versity/versitygw/cmd/versitygw@v1.8.0"), "versitygw"),
    "fake-gcs": (_go("github.com/fsouza/fake-gcs-server@v1.56.1"), "fake-gcs-server"),
    "azurite": (_npm("azurite@3.35.0"), "node_modules/.bin/azurite-blob"),
    "push-gateway": (_apt(PUSH_GATEWAY), f"usr/bin/{PUSH_GATEWAY}"),
    "postgresql": (_postgresql, "bin/postgres"),
    "mariadb": (_mariadb, "usr/sbin/mariadbd"),
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


def _run(command: list[str], folder: Path, variables: dict[str, str] | None = None) -> str:
    if shutil.which(command[0]) is None:
        raise FileNotFoundError(f"{command[0]} is not installed.")
    environment = {**os.environ, **(variables or {})}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=BUILD_SECONDS, check=True
    )
    return done.stdout
