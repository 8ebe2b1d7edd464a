"""A PostgreSQL server in its own process, whose changes can be followed (logical decoding)."""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.servers.programs import ServerError, program
from tests.servers.s3 import free_port
from tests.support.memory import memory_folder

__all__ = ["PostgresServer", "start_postgres"]

START_SECONDS = 30.0
SQL_SECONDS = 60.0
USER = "postgres"
UNPRIVILEGED = "nobody"
"""Who runs it where the tests run as root, which PostgreSQL refuses."""

SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "wal_level": "logical",
    "max_replication_slots": "64",
    "max_wal_senders": "64",
    "fsync": "off",
    "jit": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
}


class PostgresServer:
    """One server, whose user ``postgres`` needs no password."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        self._programs = programs
        self._environment = {**os.environ, "LD_LIBRARY_PATH": _libraries(programs), "PGTZ": "UTC"}
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Make its data, start it, and wait until it answers.

        Raises:
            ServerError: it ended, or does not answer.
        """
        data = self.folder / "data"
        made = ["initdb", "-D", str(data), "-U", USER, "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync"]
        if self._spawn(*made).wait(START_SECONDS):
            raise ServerError(f"No data folder for PostgreSQL: {self._output()}")
        settings = [part for key, value in SETTINGS.items() for part in ("-c", f"{key}={value}")]
        self._process = self._spawn("postgres", "-D", str(data), "-p", str(self.port), *settings)
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            with contextlib.suppress(ServerError):
                self.execute("SELECT 1")
                return
            time.sleep(0.05)
        self.stop()
        raise ServerError(f"No PostgreSQL: {self._output()}")

    def stop(self) -> None:
        """End it and its processes at once."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait()
            self._process = None

    def execute(self, statements: str) -> str:
        """Execute statements, each in a transaction of its own unless they say ``BEGIN``.

        Returns:
            The rows that they select, without heads.

        Raises:
            ServerError: one failed.
        """
        client = [str(self._programs / "psql"), "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"]
        client += ["-h", "127.0.0.1", "-p", str(self.port), "-U", USER, "-d", "postgres"]
        done = subprocess.run(
            client, input=statements, env=self._environment, capture_output=True, text=True, timeout=SQL_SECONDS
        )
        if done.returncode:
            raise ServerError(f"PostgreSQL refused a statement: {done.stderr[-2000:]}")
        return done.stdout

    def select(self, query: str) -> list[dict[str, Any]]:
        """The rows of a query, with the values that JSON has."""
        return list(json.loads(self.execute(f"SELECT coalesce(json_agg(found), '[]') FROM ({query}) AS found")))

    def place(self) -> str:
        """The end of its log, such as ``0/1544C98``."""
        return self.execute("SELECT pg_current_wal_lsn()").strip()

    def _spawn(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        try:
            with open(self.folder / "output", "ab") as output:
                return subprocess.Popen(
                    [str(self._programs / name), *arguments],
                    stdout=output,
                    stderr=output,
                    cwd=self.folder,
                    env=self._environment,
                    user=UNPRIVILEGED if os.geteuid() == 0 else None,
                )
        except PermissionError as error:
            raise ServerError(f"The user {UNPRIVILEGED} cannot run PostgreSQL: {error}") from error

    def _output(self) -> str:
        return (self.folder / "output").read_text()[-2000:]


def _libraries(programs: Path) -> str:
    """The folders of the libraries that came with the programs, which are in ``usr/lib/postgresql/VERSION/bin``."""
    libraries = programs.parents[2]
    return ":".join(map(str, (libraries, *libraries.glob("*-linux-gnu*"))))


@contextlib.contextmanager
def start_postgres(cache: Path) -> Iterator[PostgresServer]:
    """A server that runs for the duration of the block, with its data in a folder that its user can reach.

    Args:
        cache: where programs are kept.

    Raises:
        ServerError: it cannot be had.
    """
    programs = program(cache, "postgresql").resolve().parent
    with tempfile.TemporaryDirectory(prefix="postgres-", dir=memory_folder()) as name:
        if os.geteuid() == 0:
            known = pwd.getpwnam(UNPRIVILEGED)
            os.chown(name, known.pw_uid, known.pw_gid)
        server = PostgresServer(programs, Path(name))
        try:
            server.start()
            yield server
        finally:
            server.stop()
