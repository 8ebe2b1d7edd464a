"""An S3 server in a process of its own: versitygw over a folder if it has been built, else moto, which is Python.

::

    start_s3(cache, folder) ─► S3Server(url, storage_options, bucket)      stopped when the block ends

``make built-servers`` builds versitygw (two minutes). moto comes from PyPI with the development extra.
"""

from __future__ import annotations

import contextlib
import os
import random
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import boto3
import botocore.config

from tests.servers.programs import ServerError, is_built, program

__all__ = ["ACCESS_KEY", "REGION", "SECRET_KEY", "S3Server", "ServerError", "free_port", "start_s3"]

_PORTS = (20_000, 32_000)
"""Below the ports that Linux and macOS give to those who ask for any."""
_RANDOM = random.SystemRandom()

ACCESS_KEY, SECRET_KEY, REGION = "hudi-fast-test", "shown-to-nobody-5511", "us-east-1"
BUCKET = "tables"
START_SECONDS = 30.0


@dataclass(frozen=True)
class S3Server:
    """A server that runs.

    Attributes:
        url: ``http://127.0.0.1:<port>``.
        bucket: is there and is empty at first.
        kind: ``versitygw`` or ``moto``.
        objects: folder in which versitygw keeps each object as a file, by bucket and key.
    """

    url: str
    bucket: str
    kind: str
    objects: Path

    @property
    def options(self) -> Mapping[str, str]:
        """``storage_options`` for it."""
        return self.options_at(self.url)

    def options_at(self, url: str) -> Mapping[str, str]:
        """The same for something in front of it."""
        return {"endpoint_url": url, "access_key": ACCESS_KEY, "secret_key": SECRET_KEY, "region": REGION}

    def path(self, name: str) -> str:
        """A place for a table."""
        return f"s3://{self.bucket}/{name}"


@contextlib.contextmanager
def start_s3(cache: Path, folder: Path, kind: str | None = None) -> Iterator[S3Server]:
    """Run a server for the duration of the block.

    Args:
        cache: folder of what tests fetch and build.
        folder: the server's own.
        kind: ``versitygw`` or ``moto``; None for the first of them that can be had.

    Raises:
        ServerError: it cannot.
    """
    takes_versitygw = kind == "versitygw" or (kind is None and is_built(cache, "versitygw"))
    binary = program(cache, "versitygw") if takes_versitygw else None
    port = free_port()
    data = folder / "objects"
    data.mkdir(parents=True, exist_ok=True)
    if binary is not None:
        command = [str(binary), "--quiet", "--port", f"127.0.0.1:{port}", "--region", REGION]
        command += ["posix", str(data)]
    else:
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    keys = {"ROOT_ACCESS_KEY": ACCESS_KEY, "ROOT_SECRET_KEY": SECRET_KEY, "PYTHONWARNINGS": "ignore"}
    with open(folder / "s3.log", "wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **keys})
    try:
        server = S3Server(f"http://127.0.0.1:{port}", BUCKET, "moto" if binary is None else "versitygw", data)
        wait_for(process, server.url, folder / "s3.log")
        make_bucket(server)
        yield server
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def make_bucket(server: S3Server) -> None:
    """The bucket of all tests."""
    client = boto3.client(
        "s3",
        endpoint_url=server.url,
        aws_access_key_id=ACCESS_KEY,
        aws_secret_access_key=SECRET_KEY,
        region_name=REGION,
        config=botocore.config.Config(s3={"addressing_style": "path"}),
    )
    client.create_bucket(Bucket=server.bucket)
    client.close()


def wait_for(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    """Until the server answers, whatever it says."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        try:
            urllib.request.urlopen(url, timeout=1).close()
            return
        except urllib.error.HTTPError as answer:
            answer.close()
            return
        except OSError:
            time.sleep(0.05)
    raise ServerError(f"The S3 server did not start: {log.read_text(errors='replace')[-2000:]}")


def free_port() -> int:
    """A port that nobody listens on, and that the operating system gives to nobody who asks for any port.

    Tests ask for a server until it answers. Spark may get any port meanwhile, and must not be asked instead.
    """
    while True:
        port = _RANDOM.randrange(*_PORTS)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
