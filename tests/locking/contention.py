"""Do several holders ever have a lock at once? Processes and threads take it many times and try to notice each other.

::

    contend(folder, peers, rounds) ─► every peer, `rounds` times: lock ─► critical section in `folder` ─► unlock
                                      └► no section met another, the counter counts all rounds, no two intervals overlap

The critical section makes the file ``inside`` exclusively, reads the number in ``counter``, writes it back increased by
one, and deletes ``inside``. Who finds the file there has met another holder. Peers note when they had the lock on the
clock that all processes of a machine share (``CLOCK_MONOTONIC``: ``time.monotonic_ns``, ``System.nanoTime``).

A peer is a process that takes one command per line and answers each with one line (:class:`LinePeer`)::

    lock <seconds>              locked | busy <holder>
    owner                       owner <text>              what is known of who holds the lock
    held                        held                      only Python's: require_held()
    unlock                      unlocked
    leave                       left                      closes the provider without giving the lock up first
    contend <rounds> <folder>   done <rounds>             `fresh` at the end: a provider for each round
    close                       closed                    the process ends
    anything that fails         error <class>: <message>

:func:`python_lock` starts a peer of hudi_fast (:mod:`tests.locking.python_lock`), ``jvm_lock.py`` peers of Apache Hudi.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from tests.support.descriptors import readable

__all__ = ["LinePeer", "Peer", "assert_exclusive", "contend", "contend_threads", "critical_section", "python_lock"]

PROJECT = Path(__file__).resolve().parents[2]
COUNTER, INSIDE = "counter", "inside"


class Peer(Protocol):
    """Whatever takes a command and answers it: :class:`LinePeer`, or a process of Apache Hudi."""

    def send(self, command: str) -> None: ...

    def answer(self, seconds: float) -> str: ...


class LinePeer:
    """A process that answers lines; what it prints elsewhere is the caller's."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=None if environment is None else {**os.environ, **environment},
        )
        self._pending = b""

    def __enter__(self) -> LinePeer:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def send(self, command: str) -> None:
        """Ask without waiting for the answer."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{command}\n".encode())
        self.process.stdin.flush()

    def answer(self, seconds: float = 60.0) -> str:
        """The next line; ``TimeoutError`` when there is none in time, ``EOFError`` when the process has ended."""
        assert self.process.stdout is not None
        pipe, deadline = self.process.stdout, time.monotonic() + seconds
        while b"\n" not in self._pending:
            if not readable(pipe, deadline - time.monotonic()):
                raise TimeoutError(f"No answer within {seconds:g} s.")
            chunk = os.read(pipe.fileno(), 1 << 16)
            if not chunk:
                raise EOFError(f"The peer ended: {self._pending!r}")
            self._pending += chunk
        line, _, self._pending = self._pending.partition(b"\n")
        return line.decode(errors="replace")

    def ask(self, command: str, seconds: float = 60.0) -> str:
        """Ask and wait."""
        self.send(command)
        return self.answer(seconds)

    def signal(self, number: int) -> None:
        """``SIGSTOP``, ``SIGCONT``, ``SIGKILL``."""
        self.process.send_signal(number)

    def end(self) -> None:
        """Let the process end, at once if it does not want to."""
        process = self.process
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGCONT)
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def python_lock(
    uri: str | os.PathLike[str],
    options: Mapping[str, Any],
    storage_options: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
) -> LinePeer:
    """A process that opens the provider that ``options`` (``hoodie.write.lock...``) name, or the machine's lock."""
    settings = {"uri": os.fspath(uri), "options": dict(options), "storage_options": dict(storage_options or {})}
    command = [sys.executable, "-m", "tests.locking.python_lock", json.dumps(settings)]
    return LinePeer(command, {"PYTHONPATH": str(PROJECT), **(environment or {})})


def contend(folder: Path, peers: Sequence[Peer], rounds: int, seconds: float = 120.0, fresh: bool = False) -> None:
    """Let all peers take the lock ``rounds`` times each, at once; fails when two have had it at once.

    Args:
        folder: for what the critical section needs; made when it is missing.
        peers: started already, and not holding the lock.
        rounds: acquisitions of each.
        seconds: in which all must have got through.
        fresh: Apache Hudi's peers open a provider for each round, as its transactions do; Python's always do.
    """
    folder.mkdir(parents=True, exist_ok=True)
    before = read_counter(folder)
    deadline = time.monotonic() + seconds
    for peer in peers:
        peer.send(f"contend {rounds} {folder}{' fresh' if fresh else ''}")
    answers = [peer.answer(max(deadline - time.monotonic(), 0.1)) for peer in peers]
    assert answers == [f"done {rounds}"] * len(peers), answers
    assert_exclusive(folder, before + rounds * len(peers))


def contend_threads(
    folder: Path, lock: Callable[[], AbstractContextManager[object]], threads: int, rounds: int, seconds: float = 120.0
) -> None:
    """The same with threads of this process; ``lock()`` takes the lock for a block, waiting as long as it takes."""
    folder.mkdir(parents=True, exist_ok=True)
    before, failures = read_counter(folder), []

    def take(name: str) -> None:
        try:
            for _ in range(rounds):
                with lock():
                    critical_section(folder, name)
        except BaseException as error:
            failures.append(error)

    running = [threading.Thread(target=take, args=(f"thread{number}",), daemon=True) for number in range(threads)]
    for thread in running:
        thread.start()
    deadline = time.monotonic() + seconds
    for thread in running:
        thread.join(max(deadline - time.monotonic(), 0.1))
    assert not failures, failures
    assert not any(thread.is_alive() for thread in running), f"not done within {seconds:g} s"
    assert_exclusive(folder, before + rounds * threads)


def critical_section(folder: Path, name: str, publish: Callable[[], object] = lambda: None) -> None:
    """What only the holder of the lock may do.

    Args:
        folder: of the contention.
        name: of the holder, one word.
        publish: what makes sure that the lock is held, right before the counter is written.
    """
    entered = time.monotonic_ns()
    os.close(os.open(folder / INSIDE, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    number = read_counter(folder)
    publish()
    (folder / COUNTER).write_text(str(number + 1))
    os.unlink(folder / INSIDE)
    with open(folder / f"intervals-{name}", "a") as notes:
        notes.write(f"{entered} {time.monotonic_ns()}\n")


def read_counter(folder: Path) -> int:
    """How many critical sections there were."""
    try:
        return int((folder / COUNTER).read_text())
    except FileNotFoundError:
        return 0


def assert_exclusive(folder: Path, total: int) -> None:
    """The counter says ``total``, nobody is inside, and no two intervals that were noted overlap."""
    counted = read_counter(folder)
    assert counted == total, f"counted {counted} of {total} rounds"
    assert not (folder / INSIDE).exists(), "somebody is inside"
    lines = [line.split() for path in folder.glob("intervals-*") for line in path.read_text().splitlines()]
    intervals = sorted((int(entered), int(left)) for entered, left in lines)
    overlaps = [(first, second) for first, second in itertools.pairwise(intervals) if first[1] > second[0]]
    assert not overlaps, overlaps
