"""Writers as processes that are started once: a process that imports and compiles, and forks writers when asked.

::

    Nursery ─ starts ─► ``python -m tests.concurrency.writer_process <socket>``: imports, compiles, waits
       │ connect                       │ fork
       └──────── WriterLink ◄───────► a writer: {"world", "writer", "site", ...} ─► script.run_script ─► "done"

A writer runs one script after the other until its link is closed or it is killed. Its events go to a file, each with
one write, so that what it told is there when it is killed.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

__all__ = ["Nursery", "WriterLink"]

_START_SECONDS = 60.0
_NAP = 0.002
_CREDENTIALS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
"""Servers of tests take any."""


class WriterLink:
    """One writer process, from outside."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self._lines = link.makefile("rb")
        self.pid = int(json.loads(self._lines.readline())["pid"])

    def send(self, job: dict[str, Any]) -> None:
        """Have it run a script."""
        self._link.sendall(json.dumps(job).encode() + b"\n")

    def wait(self) -> bool:
        """Whether the script ran to its end; False when the process is gone."""
        try:
            return self._lines.readline() == b"done\n"
        except OSError:
            return False

    def is_stopped(self) -> bool:
        """Whether the process waits for a SIGCONT."""
        try:
            text = Path(f"/proc/{self.pid}/stat").read_text()
        except OSError:
            return False
        return text.rpartition(")")[2].split()[0] in ("T", "t")

    def signal(self, number: int) -> None:
        """Send a signal, unless it is gone."""
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            pass

    def close(self) -> None:
        """Let it end."""
        self._lines.close()
        self._link.close()


class Nursery:
    """Forks writers."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="writers")
        self._address = os.path.join(self._folder.name, "link")
        # Sources are found as this process finds them.
        environment = {**os.environ, **_CREDENTIALS, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.concurrency.writer_process", self._address], env=environment
        )

    def __enter__(self) -> Nursery:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def writer(self) -> WriterLink:
        """A writer that has nothing to do yet."""
        deadline = time.monotonic() + _START_SECONDS
        while True:
            link = socket.socket(socket.AF_UNIX)
            try:
                link.connect(self._address)
                return WriterLink(link)
            except OSError:
                link.close()
                if time.monotonic() > deadline or self._process.poll() is not None:
                    raise
                time.sleep(0.05)

    def close(self) -> None:
        """End it; its writers end with their links."""
        self._process.kill()
        self._process.wait()
        self._folder.cleanup()


def resume_when_stopped(writers: Sequence[WriterLink], ms: Sequence[int], ended: threading.Event) -> None:
    """Let writers that stop themselves go on after their time; until ``ended``.

    Args:
        writers: those that may.
        ms: for how long each stops.
        ended: set when all scripts are done.
    """
    since: dict[int, float] = {}
    while not ended.wait(_NAP):
        for writer, length in zip(writers, ms, strict=True):
            if not length or not writer.is_stopped():
                since.pop(writer.pid, None)
            elif time.monotonic() - since.setdefault(writer.pid, time.monotonic()) > length / 1000:
                writer.signal(signal.SIGCONT)


def _serve(link: socket.socket) -> None:
    from tests.concurrency.script import run_script
    from tests.concurrency.site import Site
    from tests.concurrency.worlds import world_from_json

    link.sendall(json.dumps({"pid": os.getpid()}).encode() + b"\n")
    for line in link.makefile("rb"):
        job = json.loads(line)
        events = os.open(job["events"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)

        def record(event: list[Any], to: int = events) -> None:
            os.write(to, json.dumps(event).encode() + b"\n")

        try:
            run_script(
                world_from_json(job["world"]),
                job["writer"],
                Site.from_json(job["site"]),
                record,
                mutations=tuple(job["mutations"]),
            )
        finally:
            os.close(events)
        link.sendall(b"done\n")


def _warm_up() -> None:
    """Import what writes need, compile kernels: forks have both."""
    import hudi_fast as hf
    from tests.concurrency.worlds import rows_for, world_of
    from tests.support.memory import memory_folder

    with tempfile.TemporaryDirectory(dir=memory_folder()) as folder:
        for seed in (1, 2):
            options = dict(world_of(seed).options)
            for value in (1, 2):
                hf.write(rows_for(("k0", "k1"), value, 2), f"{folder}/{seed}", options)
            hf.HudiTable.open(f"{folder}/{seed}").to_arrow()


def _main(address: str) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for writers
    _warm_up()
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(address)
    listening.listen(32)
    while True:
        link, _ = listening.accept()
        if not os.fork():
            listening.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            try:
                _serve(link)
            finally:
                os._exit(0)
        link.close()


if __name__ == "__main__":
    _main(sys.argv[1])
