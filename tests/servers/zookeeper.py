"""A ZooKeeper server in its own process: the release whose jars are in PySpark 3.5.

Its sessions end between one and ten seconds after they went silent, as they ask for (``tickTime`` 500).
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from tests.servers.certificates import Certificates
from tests.servers.s3 import ServerError, free_port
from tests.support.jvm import java_command

__all__ = ["ZookeeperServer", "start_zookeeper"]

MAIN = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
JARS = ("zookeeper-*", "netty-*", "slf4j-api-*", "log4j-*", "snappy-java-*", "metrics-core-*", "commons-*")
START_SECONDS = 30.0
SETTINGS = """\
tickTime=500
dataDir={folder}/data
clientPort={port}
clientPortAddress=127.0.0.1
maxClientCnxns=0
admin.enableServer=false
4lw.commands.whitelist=srvr,ruok
"""
TLS_SETTINGS = """\
secureClientPort={port}
secureClientPortAddress=127.0.0.1
serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory
ssl.keyStore.location={server}
ssl.trustStore.location={authority}
ssl.clientAuth=need
"""
LOGGING = """\
appender.file.type=File
appender.file.name=file
appender.file.fileName={folder}/log
rootLogger.level=warn
rootLogger.appenderRef.file.ref=file
"""


class ZookeeperServer:
    """One server, which can be stopped and started with what it knows."""

    def __init__(self, jars: Path, folder: Path, certificates: Certificates | None = None) -> None:
        self.folder = folder
        self.port, self.secure_port = free_port(), free_port()
        folder.mkdir(parents=True, exist_ok=True)
        settings = SETTINGS.format(folder=folder, port=self.port)
        if certificates is not None:
            files = {"server": certificates.server, "authority": certificates.authority}
            settings += TLS_SETTINGS.format(port=self.secure_port, **files)
        (folder / "zoo.cfg").write_text(settings)
        (folder / "log4j2.properties").write_text(LOGGING.format(folder=folder))
        self._class_path = ":".join(str(path) for name in JARS for path in sorted(jars.glob(f"{name}.jar")))
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """``host:port``."""
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it and wait until it answers."""
        java = java_command()
        if java is None:
            raise ServerError("ZooKeeper needs Java.")
        command = [java, "-Xmx96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", self._class_path]
        command += [f"-Dlog4j2.configurationFile={self.folder}/log4j2.properties", MAIN, f"{self.folder}/zoo.cfg"]
        with open(self.folder / "output", "ab") as output:
            self._process = subprocess.Popen(command, stdout=output, stderr=output, cwd=self.folder)
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            if time.monotonic() > deadline or self._process.poll() is not None:
                self.stop()
                raise ServerError(f"ZooKeeper did not start: {(self.folder / 'output').read_text()[-3000:]}")
            time.sleep(0.05)

    def stop(self) -> None:
        """End it at once; it keeps what it has answered."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    def pause(self) -> None:
        """Let it be silent."""
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it answer again."""
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGCONT)

    def _answers(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1) as connection:
            connection.sendall(b"srvr")
            return b"Mode: standalone" in connection.recv(4096)
        return False


@contextlib.contextmanager
def start_zookeeper(jars: Path, folder: Path, certificates: Certificates | None = None) -> Iterator[ZookeeperServer]:
    """A server for the duration of the block.

    Args:
        jars: folder of PySpark 3.5's jars.
        folder: for its data and logs.
        certificates: of a second port, for TLS; clients need a certificate there, too.

    Raises:
        ServerError: it cannot be had.
    """
    server = ZookeeperServer(jars, folder, certificates)
    server.start()
    try:
        yield server
    finally:
        server.stop()
