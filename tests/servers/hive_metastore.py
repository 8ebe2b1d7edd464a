"""A Hive metastore in its own process: release 2.3, whose jars are in PySpark 3.5, over a Derby database.

The tables for locks are made by the metastore itself, the first time that somebody asks it for a lock while it believes
that it is being tested; from then on it must not believe so. A database that has them is kept in the cache folder, and
each server begins with a copy.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from hudi_fast.locking.hive_metastore import Metastore
from tests.servers.s3 import ServerError, free_port
from tests.support.jvm import java_command

__all__ = ["HiveMetastore", "start_hive_metastore"]

MAIN = "org.apache.hadoop.hive.metastore.HiveMetaStore"
OPENED = ("java.lang", "java.net", "java.nio", "java.io", "java.util", "java.util.concurrent")
START_SECONDS = 90.0
STOP_SECONDS = 20.0
PROPERTIES = {
    "javax.jdo.option.ConnectionURL": "jdbc:derby:;databaseName={folder}/db;create=true",
    "javax.jdo.option.ConnectionDriverName": "org.apache.derby.jdbc.EmbeddedDriver",
    "datanucleus.schema.autoCreateAll": "true",
    "datanucleus.connectionPoolingType": "HikariCP",
    "hive.metastore.schema.verification": "false",
    "hive.metastore.warehouse.dir": "{folder}/warehouse",
    "hive.async.log.enabled": "false",
}
LOGGING = """\
appender.file.type=File
appender.file.name=file
appender.file.fileName={folder}/log
rootLogger.level=error
rootLogger.appenderRef.file.ref=file
"""


class HiveMetastore:
    """One metastore, which can be stopped and started with what it knows."""

    def __init__(self, jars: Path, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self._jars = jars
        self._process: subprocess.Popen[bytes] | None = None
        (folder / "conf").mkdir(parents=True, exist_ok=True)
        values = {key: value.format(folder=folder) for key, value in PROPERTIES.items()}
        lines = (f"<property><name>{key}</name><value>{value}</value></property>" for key, value in values.items())
        (folder / "conf" / "hive-site.xml").write_text(f"<configuration>{''.join(lines)}</configuration>")
        (folder / "log4j2.properties").write_text(LOGGING.format(folder=folder))

    @property
    def uri(self) -> str:
        """``thrift://host:port``."""
        return f"thrift://127.0.0.1:{self.port}"

    def start(self, *more: str) -> None:
        """Start it and wait until it takes connections."""
        java = java_command()
        if java is None:
            raise ServerError("A Hive metastore needs Java.")
        command = [java, "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        command += [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED]
        command += [f"-Dlog4j2.configurationFile={self.folder}/log4j2.properties", f"-Dderby.system.home={self.folder}"]
        command += ["-cp", f"{self.folder}/conf:{self._jars}/*", MAIN, "-p", str(self.port), *more]
        with open(self.folder / "output", "ab") as output:
            self._process = subprocess.Popen(command, stdout=output, stderr=output, cwd=self.folder)
        deadline = time.monotonic() + START_SECONDS
        while not self._listens():
            if time.monotonic() > deadline or self._process.poll() is not None:
                self.stop()
                raise ServerError(f"No Hive metastore: {(self.folder / 'output').read_text()[-3000:]}")
            time.sleep(0.05)

    def stop(self, seconds: float = 0.0) -> None:
        """End it, at once if it takes longer than it is given; it keeps what it has answered."""
        process, self._process = self._process, None
        if process is not None:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(seconds)
            process.kill()
            process.wait()

    def _listens(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
            return True
        return False


@contextlib.contextmanager
def start_hive_metastore(jars: Path, cache: Path, folder: Path) -> Iterator[HiveMetastore]:
    """A metastore with tables for locks for the duration of the block.

    Args:
        jars: folder of PySpark 3.5's jars.
        cache: where a database with these tables is kept.
        folder: for its data and logs.

    Raises:
        ServerError: it cannot be had.
    """
    shutil.copytree(_database(jars, cache), folder / "db")
    server = HiveMetastore(jars, folder)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def _database(jars: Path, cache: Path) -> Path:
    kept = cache / "hive_metastore_db"
    if not kept.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as scratch:
            server = HiveMetastore(jars, Path(scratch))
            server.start("--hiveconf", "hive.in.test=true")
            try:
                client = Metastore([("127.0.0.1", server.port)], START_SECONDS)
                with contextlib.suppress(OSError):  # it makes the tables, and fails
                    client.lock("d", "t", "u", "h", "a")
                client.close()
            finally:
                server.stop(STOP_SECONDS)
            with contextlib.suppress(OSError):  # another process of the tests was first
                os.rename(Path(scratch, "db"), kept)
    return kept
