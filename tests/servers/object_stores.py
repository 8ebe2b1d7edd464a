"""Servers that speak the protocols of Google Cloud Storage and Azure Blob Storage, each in a process of its own.

fake-gcs-server is built by Go into the cache folder, and Azurite is installed there by npm, each once.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.servers.s3 import BUILD_SECONDS, ServerError, free_port, wait_for

__all__ = ["start_azurite", "start_fake_gcs"]

FAKE_GCS = "github.com/fsouza/fake-gcs-server@v1.56.1"
AZURITE = "azurite@3.35.0"
EMULATED_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""Azurite's account ``devstoreaccount1`` has this key everywhere."""


@contextlib.contextmanager
def start_fake_gcs(cache: Path, folder: Path) -> Iterator[Mapping[str, str]]:
    """Storage options of a server that runs for the duration of the block, with a bucket ``tables``.

    Raises:
        ServerError: Go is not installed, or its proxy cannot be reached.
    """
    binary = cache / "fake-gcs" / "fake-gcs-server"
    if not binary.exists():
        go = shutil.which("go")
        if go is None:
            raise ServerError("fake-gcs-server cannot be built: Go is not installed.")
        try:
            environment = {**os.environ, "GOBIN": str(binary.parent)}
            command = [go, "install", FAKE_GCS]
            subprocess.run(command, env=environment, capture_output=True, timeout=BUILD_SECONDS, check=True)
        except (OSError, subprocess.SubprocessError) as error:
            raise ServerError(f"fake-gcs-server cannot be built: {error}") from error
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
        ServerError: npm is not installed, or its registry cannot be reached.
    """
    from azure.storage.blob import BlobServiceClient

    place = cache / "azurite"
    binary = place / "node_modules" / ".bin" / "azurite-blob"
    if not binary.exists():
        npm = shutil.which("npm")
        if npm is None:
            raise ServerError("Azurite cannot be installed: npm is not installed.")
        try:
            command = [npm, "install", "--prefix", str(place), "--no-audit", "--no-fund", AZURITE]
            subprocess.run(command, capture_output=True, timeout=BUILD_SECONDS, check=True)
        except (OSError, subprocess.SubprocessError) as error:
            raise ServerError(f"Azurite cannot be installed: {error}") from error
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
