"""Servers that speak the protocols of Google Cloud Storage and Azure Blob Storage, each in a process of its own.

``make built-servers`` builds fake-gcs-server with Go and installs Azurite with npm.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.servers.programs import program
from tests.servers.s3 import free_port, wait_for

__all__ = ["start_azurite", "start_fake_gcs"]

EMULATED_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""Azurite's account ``devstoreaccount1`` has this key everywhere."""


@contextlib.contextmanager
def start_fake_gcs(cache: Path, folder: Path) -> Iterator[Mapping[str, str]]:
    """Storage options of a server that runs for the duration of the block, with a bucket ``tables``.

    Raises:
        ServerError: the program has not been built.
    """
    binary = program(cache, "fake-gcs")
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [str(binary), "-scheme", "http", "-host", "127.0.0.1", "-port", str(port), "-backend", "memory"]
    command += ["-log-level", "error", "-external-url", url, "-public-host", f"127.0.0.1:{port}"]
    with _running(command, url, folder / "gcs.log"):
        content = {"Content-Type": "application/json"}
        body = json.dumps({"name": "tables"}).encode()
        urllib.request.urlopen(urllib.request.Request(f"{url}/storage/v1/b?project=none", body, content)).close()
        yield {"endpoint_url": url, "anonymous": "true"}


@contextlib.contextmanager
def start_azurite(cache: Path, folder: Path) -> Iterator[Mapping[str, str]]:
    """Storage options of a server that runs for the duration of the block, with a container ``tables``.

    Raises:
        ServerError: the program has not been built.
    """
    from azure.storage.blob import BlobServiceClient

    binary = program(cache, "azurite")
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [str(binary), "--blobHost", "127.0.0.1", "--blobPort", str(port), "--inMemoryPersistence", "--silent"]
    with _running([*command, "--skipApiVersionCheck", "--disableTelemetry"], url, folder / "azurite.log"):
        with BlobServiceClient(f"{url}/devstoreaccount1", credential=EMULATED_KEY) as client:
            client.create_container("tables").close()
        yield {"endpoint_url": url, "account_name": "devstoreaccount1", "account_key": EMULATED_KEY}


@contextlib.contextmanager
def _running(command: list[str], url: str, log: Path) -> Iterator[None]:
    with open(log, "wb") as sink:
        process = subprocess.Popen(command, stdout=sink, stderr=sink)
    try:
        wait_for(process, url, log)
        yield
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
