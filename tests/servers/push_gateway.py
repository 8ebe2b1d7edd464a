"""A real Prometheus push gateway."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.servers.s3 import BUILD_SECONDS, ServerError, free_port, wait_for

__all__ = ["start_push_gateway"]

NAMES = ("pushgateway", "prometheus-pushgateway")
PACKAGE = "prometheus-pushgateway"


@contextlib.contextmanager
def start_push_gateway(cache: Path, folder: Path) -> Iterator[int]:
    """The port of a gateway that runs for the duration of the block.

    Raises:
        ServerError: it is neither on the path nor a package of this machine's distribution.
    """
    port = free_port()
    command = [_binary(cache), f"--web.listen-address=127.0.0.1:{port}", "--log.level=error"]
    path = folder / "gateway.log"
    with path.open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            wait_for(process, f"http://127.0.0.1:{port}/-/ready", path)
            yield port
        finally:
            process.terminate()


def _binary(cache: Path) -> str:
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is not None:
        return found
    unpacked = cache / "push-gateway"
    binary = unpacked / "usr" / "bin" / PACKAGE
    if not binary.exists():
        unpacked.mkdir(parents=True, exist_ok=True)
        try:
            run(["apt-get", "download", PACKAGE], unpacked)
            (package,) = unpacked.glob("*.deb")
            run(["dpkg", "-x", str(package), "."], unpacked)
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            raise ServerError(f"The push gateway cannot be had: {error}") from error
    return str(binary)


def run(command: list[str], folder: Path) -> None:
    subprocess.run(command, cwd=folder, capture_output=True, timeout=BUILD_SECONDS, check=True)
