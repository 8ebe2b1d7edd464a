"""Seconds and peak memory of one step: in a process of its own, or in the Python workers of a Spark session.

::

    measured(step, path, size) ─► new process: imports ─► the step on a small table ─► peak reset ─► the step, timed

The small table loads modules and compiled kernels first, as in a process that has worked before. The peak is that of
the whole process, its libraries included; memory that the preparation of the step left behind counts, too.

:func:`local_session` starts a session, and :class:`SparkPeaks` watches its Python workers and no others on the machine.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Measured", "SparkPeaks", "growing", "local_session", "measured", "process_status", "sampled"]

_SAMPLE_SECONDS = 0.1

Step = Callable[[str, Any], Callable[[], object]]
"""Prepares a step on the table at a path and returns the call to measure, whose result says what was done."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One measurement.

    Attributes:
        seconds: from call to result.
        cpu: seconds of processor time, of all threads; less than ``seconds`` where the step waits or others work.
        peak_mib: peak resident memory.
        result: what the step found or did.
    """

    seconds: float
    cpu: float
    peak_mib: float
    result: str


def measured(step: Step, path: str, size: Any, warm: str, warm_size: Any) -> Measured:
    """Measure a step.

    Args:
        step: a function of a module, which a new process can import.
        path: the table.
        size: its size, passed to the step.
        warm: a small table; the step may change it.
        warm_size: its size.
    """
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(_run, (step, path, size, warm, warm_size))


def _run(step: Step, path: str, size: Any, warm: str, warm_size: Any) -> Measured:
    step(warm, warm_size)()
    call = step(path, size)
    _reset_peak(os.getpid())
    begin, cpu = time.perf_counter(), time.process_time()
    result = call()
    return Measured(time.perf_counter() - begin, time.process_time() - cpu, _peak_mib(), str(result))


def growing(largest: int) -> list[int]:
    """``largest``, and up to two sizes before it, each a tenth of the next."""
    return [size for size in (largest // 100, largest // 10, largest) if size >= 1]


def local_session(cores: int, folder: Path) -> Any:
    """A local Spark session that keeps its temporary files in the folder."""
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.memory": "3g",
        "spark.driver.host": "127.0.0.1",
        "spark.local.dir": str(folder / "local"),
        "spark.ui.showConsoleProgress": "false",
    }
    (folder / "local").mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = SparkSession.builder.master(f"local[{cores}]").config(map=settings).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


@contextmanager
def sampled(sample: Callable[[], None]) -> Iterator[None]:
    """Call a function every 0.1 s, and once at the end."""
    stop = threading.Event()

    def watch() -> None:
        while not stop.wait(_SAMPLE_SECONDS):
            sample()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        sample()


class SparkPeaks:
    """Peak resident memory of this process and of the largest Python worker of its Spark session, without the JVM.

    The kernel keeps the peak of each process, which is read every 0.1 s. So only the last 0.1 s of a worker that ends
    before the step does can be missed.

    Attributes:
        worker_mib: of the largest worker.
        private_mib: the part of it that is not pages of files, such as libraries and spilled rows. It is sampled, so a
            short peak can be missed.
        driver_mib: of this process.
    """

    def __init__(self) -> None:
        self.worker_mib = self.private_mib = self.driver_mib = 0

    @contextmanager
    def watching(self) -> Iterator[SparkPeaks]:
        """Forget earlier peaks, and sample."""
        for pid in [*_workers(), os.getpid()]:
            _reset_peak(pid)
        with sampled(self._sample):
            yield self

    def _sample(self) -> None:
        for pid in _workers():
            status = process_status(pid)
            self.worker_mib = max(self.worker_mib, status.get("VmHWM", 0) >> 10)
            self.private_mib = max(self.private_mib, status.get("RssAnon", 0) >> 10)
        self.driver_mib = max(self.driver_mib, process_status(os.getpid()).get("VmHWM", 0) >> 10)


def _workers() -> list[int]:
    """Processes below this one that execute PySpark's daemon, which forks the workers."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (parent := process_status(int(entry.name)).get("PPid")) is not None:
            children.setdefault(parent, []).append(int(entry.name))
    below: list[int] = []
    waiting = [os.getpid()]
    while waiting:
        found = children.get(waiting.pop(), [])
        waiting += found
        below += found
    return [pid for pid in below if b"pyspark.daemon" in _command(pid)]


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:  # it has ended
        return b""


def process_status(pid: int) -> dict[str, int]:
    """The numbers of ``/proc/<pid>/status``; memory in KiB. Empty for a process that has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return {}
    parts = [line.split() for line in lines]
    return {name.rstrip(":"): int(rest[0]) for name, *rest in parts if rest and rest[0].isdigit()}


def _reset_peak(pid: int) -> None:
    """Reset ``VmHWM`` to the present memory (``man 5 proc``: clear_refs, 5), where the system allows it."""
    try:
        Path(f"/proc/{pid}/clear_refs").write_text("5")
    except OSError:
        print("peak memory is that of the whole process, its preparation included", file=sys.stderr)


def _peak_mib() -> float:
    return process_status(os.getpid()).get("VmHWM", float("nan")) / 1024
