"""A MariaDB server in its own process."""

from __future__ import annotations

import contextlib
import os
import pwd
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.servers.certificates import Certificates, make_certificates
from tests.servers.programs import ServerError, program
from tests.servers.s3 import free_port
from tests.support.memory import memory_folder

__all__ = ["DATABASE", "PASSWORD", "USER", "MariadbServer", "start_mariadb"]

START_SECONDS = 60.0
UNPRIVILEGED = "nobody"
"""Who runs it where the tests run as root, which MariaDB refuses."""
DATABASE, USER, PASSWORD = "shop", "reader", "p@ss:/'w"
"""A database, and a user who may read it."""


class MariadbServer:
    """One server."""

    def __init__(self, binary: Path, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        self._binary, self._base = binary, binary.parents[1]
        libraries = ":".join(map(str, (self._base / "lib").glob("*-linux-gnu*")))
        self._environment = {**os.environ, "LD_LIBRARY_PATH": libraries}
        self._process: subprocess.Popen[bytes] | None = None
        self.certificates: Certificates = make_certificates(folder / "certificates")

    @property
    def url(self) -> str:
        """The database, as JDBC names it."""
        return f"jdbc:mariadb://127.0.0.1:{self.port}/{DATABASE}"

    def start(self) -> None:
        """Make its data, start it, and wait until it answers.

        Raises:
            ServerError: it ended, or does not answer.
        """
        common = ["--no-defaults", f"--basedir={self._base}", f"--datadir={self.folder / 'data'}"]
        made = [str(self._base / "bin" / "mariadb-install-db"), *common, "--skip-name-resolve", "--skip-test-db"]
        if self._spawn([*made, "--auth-root-authentication-method=normal"]).wait(START_SECONDS):
            raise ServerError(f"No data folder for MariaDB: {self._output()}")
        at = [f"--port={self.port}", "--bind-address=127.0.0.1", f"--socket={self.folder / 'socket'}"]
        settings = ["--skip-log-bin", "--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=32M"]
        settings += [f"--ssl-{part}={self.certificates.server}" for part in ("cert", "key")]
        zone = ["--default-time-zone=+05:00", "--character-set-server=utf8mb4"]
        self._process = self._spawn([str(self._binary), *common, *at, *settings, *zone])
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            with contextlib.suppress(OSError, ServerError):
                self.execute(f"CREATE DATABASE {DATABASE}", database="")
                self.execute(f"CREATE USER {USER}@127.0.0.1 IDENTIFIED BY %s", PASSWORD)
                self.execute(f"GRANT SELECT ON {DATABASE}.* TO {USER}@127.0.0.1")
                return
            time.sleep(0.05)
        self.stop()
        raise ServerError(f"No MariaDB: {self._output()}")

    def stop(self) -> None:
        """End it at once."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def execute(self, statement: str, *values: Any, database: str = DATABASE) -> Sequence[tuple[Any, ...]]:
        """The rows of a statement, as the administrator; the time zone of its connection is that of the server.

        Raises:
            ServerError: the server refused it, or does not answer.
        """
        import pymysql

        try:
            with pymysql.connect(
                host="127.0.0.1", port=self.port, user="root", database=database or None, autocommit=True
            ) as connection:
                cursor = connection.cursor()
                cursor.execute(statement, values or None)
                return list(cursor.fetchall())
        except pymysql.Error as error:
            raise ServerError(f"MariaDB refused {statement!r}: {error}") from error

    def _spawn(self, command: list[str]) -> subprocess.Popen[bytes]:
        user = UNPRIVILEGED if os.geteuid() == 0 else None
        with open(self.folder / "output", "ab") as output:
            return subprocess.Popen(
                command, stdout=output, stderr=output, cwd=self.folder, env=self._environment, user=user
            )

    def _output(self) -> str:
        return (self.folder / "output").read_text(errors="replace")[-2000:]


@contextlib.contextmanager
def start_mariadb(cache: Path) -> Iterator[MariadbServer]:
    """A server that runs for the duration of the block, with its data in a folder that its user can reach.

    Args:
        cache: where programs are kept.

    Raises:
        ServerError: it cannot be had.
    """
    binary = program(cache, "mariadb").resolve()
    with tempfile.TemporaryDirectory(prefix="mariadb-", dir=memory_folder()) as name:
        if os.geteuid() == 0:
            known = pwd.getpwnam(UNPRIVILEGED)
            os.chown(name, known.pw_uid, known.pw_gid)
        server = MariadbServer(binary, Path(name))
        for path in server.certificates.server.parent.iterdir():
            path.chmod(0o644)
        try:
            server.start()
            yield server
        finally:
            server.stop()
