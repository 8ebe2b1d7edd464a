"""Seconds and peak memory of one step, in a process of its own.

::

    measured(step, path, size) ─► new process: imports ─► the step on a small table ─► peak reset ─► the step, timed

The small table loads modules and compiled kernels first, as in a process that has worked before. The peak is that of
the whole process, its libraries included; memory that the preparation of the step left behind counts, too.
"""

from __future__ import annotations

import multiprocessing
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Measured", "measured"]

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
    _reset_peak()
    begin, cpu = time.perf_counter(), time.process_time()
    result = call()
    return Measured(time.perf_counter() - begin, time.process_time() - cpu, _peak_mib(), str(result))


def _reset_peak() -> None:
    """Reset ``VmHWM`` to the present memory (``man 5 proc``: clear_refs, 5), where the system allows it."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        print("peak memory is that of the whole process, its preparation included", file=sys.stderr)


def _peak_mib() -> float:
    status = Path("/proc/self/status")
    if not status.exists():
        return float("nan")
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024
