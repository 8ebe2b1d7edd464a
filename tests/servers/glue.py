"""AWS Glue of this machine for tests: moto in a process of its own. Any credentials are fine."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.servers.s3 import free_port, wait_for

__all__ = ["start_glue"]


@contextlib.contextmanager
def start_glue(folder: Path) -> Iterator[str]:
    """The address of a Glue server for the duration of the block; its log goes to ``folder``."""
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with open(folder / "glue.log", "wb") as log:
        environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
    try:
        url = f"http://127.0.0.1:{port}"
        wait_for(process, url, folder / "glue.log")
        yield url
    finally:
        process.terminate()
        process.wait(10)
