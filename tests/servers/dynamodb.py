"""A DynamoDB of this machine for tests: Amazon's DynamoDB Local, or moto where there is no Java or no Maven Central.

Data flow: jars through Ivy and SQLite's native library from Maven Central, once, into the cache folder -> a process
that keeps everything in memory -> its address. Any credentials are fine.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
import platform
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.servers.maven_jars import MavenError, maven_jars
from tests.servers.s3 import ServerError, free_port
from tests.support.jvm import java_command

__all__ = ["CREDENTIALS", "start_dynamodb"]

DYNAMODB_LOCAL = "com.amazonaws:DynamoDBLocal:2.6.1"
NATIVE = "libsqlite4java-linux-amd64-1.0.392.so"
NATIVE_URL = f"https://repo1.maven.org/maven2/com/almworks/sqlite4java/libsqlite4java-linux-amd64/1.0.392/{NATIVE}"
NATIVE_SHA256 = "da3d7d21eef476baf644026e449b392dbd738bf9246fca48ce072987264c3aca"
START_SECONDS = 60.0
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "tests", "AWS_SECRET_ACCESS_KEY": "tests", "AWS_REGION": "eu-central-1"}
"""Environment of who talks to it: it takes any credentials, and keeps what is in different regions apart."""
KEY = {"key": {"S": "k"}}
WARM_UP: tuple[tuple[str, dict[str, object]], ...] = (
    (
        "CreateTable",
        {
            "AttributeDefinitions": [{"AttributeName": "key", "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": "key", "KeyType": "HASH"}],
            "BillingMode": "PAY_PER_REQUEST",
        },
    ),
    ("PutItem", {"Item": KEY, "ConditionExpression": "attribute_not_exists(k)"}),
    ("GetItem", {"Key": KEY, "ConsistentRead": True}),
    ("DeleteItem", {"Key": KEY}),
    ("DeleteTable", {}),
)


@contextlib.contextmanager
def start_dynamodb(cache: Path, folder: Path) -> Iterator[str]:
    """A server for the duration of the block; its address, as a URL.

    Args:
        cache: where what is fetched is kept.
        folder: for its log.

    Raises:
        ServerError: neither server can be had.
    """
    port = free_port()
    command = _dynamodb_local(cache, port)
    if command is None:
        if importlib.util.find_spec("moto") is None or importlib.util.find_spec("flask") is None:
            raise ServerError("Neither DynamoDB Local (Java, Maven Central, Linux on x86-64) nor moto can be had.")
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    log = folder / "dynamodb.log"
    with open(log, "wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, cwd=folder)
    try:
        _wait(process, port, log)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _dynamodb_local(cache: Path, port: int) -> Sequence[str] | None:
    java = java_command()
    if java is None or (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        return None
    try:
        native = _native(cache)
        jars = maven_jars(cache, [DYNAMODB_LOCAL], transitive=True)
    except (MavenError, OSError, subprocess.TimeoutExpired):
        return None
    return [
        *(java, "-Xmx160m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", f"-Djava.library.path={native.parent}"),
        *("-cp", os.pathsep.join(map(str, jars)), "com.amazonaws.services.dynamodbv2.local.main.ServerRunner"),
        *("-inMemory", "-disableTelemetry", "-port", str(port)),
    ]


def _native(cache: Path) -> Path:
    path = cache / "native" / NATIVE
    if not path.exists():
        with urllib.request.urlopen(NATIVE_URL, timeout=60) as answer:
            data = answer.read()
        found = hashlib.sha256(data).hexdigest()
        if found != NATIVE_SHA256:
            raise MavenError(f"{NATIVE_URL} has the SHA-256 {found}, expected {NATIVE_SHA256}.")
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(f".{os.getpid()}")
        temporary.write_bytes(data)
        temporary.replace(path)
    return path


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    """Until it has done a little of everything: first requests take it long, and nobody's timeout must see that."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            for operation, arguments in WARM_UP:
                _request(port, operation, {"TableName": "warm", **arguments})
            return
        except OSError:
            time.sleep(0.05)
    raise ServerError(f"The DynamoDB server did not start: {log.read_text(errors='replace')[-3000:]}")


def _request(port: int, operation: str, arguments: Mapping[str, object]) -> None:
    headers = {
        "X-Amz-Target": f"DynamoDB_20120810.{operation}",
        "Content-Type": "application/x-amz-json-1.0",
        "Authorization": "AWS4-HMAC-SHA256 Credential=tests/20200101/warm/dynamodb/aws4_request, SignedHeaders=host, "
        "Signature=0",
    }
    request = urllib.request.Request(f"http://127.0.0.1:{port}", json.dumps(arguments).encode(), headers)
    with contextlib.suppress(urllib.error.HTTPError), urllib.request.urlopen(request, timeout=START_SECONDS):
        pass
