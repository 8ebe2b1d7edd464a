"""A real Prometheus push gateway."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.servers.programs import program
from tests.servers.s3 import free_port, wait_for

__all__ = ["start_push_gateway"]

NAMES = ("pushgateway", "prometheus-pushgateway")


@contextlib.contextmanager
def start_push_gateway(cache: Path, folder: Path) -> Iterator[int]:
    """The port of a gateway that runs for the duration of the block.

    Raises:
        ServerError: it is neither on the path nor installed by ``make built-servers``.
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
    return next(filter(None, map(shutil.which, NAMES)), None) or str(program(cache, "push-gateway"))
