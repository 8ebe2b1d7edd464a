"""A schema registry in its own process: Apicurio, by its interface that is Confluent's."""

from __future__ import annotations

import contextlib
import subprocess
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from tests.servers.maven_jars import MavenError, maven_jars
from tests.servers.s3 import ServerError, free_port
from tests.support.jvm import java_command

__all__ = ["registry_program", "start_schema_registry"]

VERSION = "2.6.13.Final"
ARCHIVE = f"io.apicurio:apicurio-registry-app:{VERSION}:all@tar.gz"
JVM = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dquarkus.http.host=127.0.0.1"]
START_SECONDS = 60.0


def registry_program(cache: Path) -> Path:
    """The registry's jar, unpacked in the cache.

    Raises:
        ServerError: it cannot be had.
    """
    folder = cache / f"apicurio-{VERSION}"
    jar = folder / f"apicurio-registry-app-{VERSION}-runner.jar"
    if not jar.exists():
        try:
            (archive,) = maven_jars(cache, [ARCHIVE])
        except MavenError as error:
            raise ServerError(str(error)) from error
        folder.mkdir(parents=True, exist_ok=True)
        with tarfile.open(archive) as packed:
            packed.extractall(folder, filter="data")
    return jar


@contextlib.contextmanager
def start_schema_registry(cache: Path, folder: Path) -> Iterator[str]:
    """The address of a registry that runs for the duration of the block.

    Args:
        cache: where programs are kept.
        folder: for its output.

    Raises:
        ServerError: it cannot be had.
    """
    java, port, jar = java_command(), free_port(), registry_program(cache)
    if java is None:
        raise ServerError("The schema registry needs Java.")
    command = [java, *JVM, f"-Dquarkus.http.port={port}", "-jar", str(jar)]
    address = f"http://127.0.0.1:{port}/apis/ccompat/v7"
    with open(folder / "output", "wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, cwd=folder)
    try:
        deadline = time.monotonic() + START_SECONDS
        while not _answers(address):
            if time.monotonic() > deadline or process.poll() is not None:
                raise ServerError(f"No schema registry: {(folder / 'output').read_text()[-2000:]}")
            time.sleep(0.1)
        yield address
    finally:
        process.kill()
        process.wait()


def _answers(address: str) -> bool:
    with contextlib.suppress(URLError, OSError), urlopen(f"{address}/subjects", timeout=2) as answer:
        return bool(answer.status == 200)
    return False
