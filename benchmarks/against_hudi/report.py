"""Formats results of :mod:`run` as text: seconds, peak memory and ratio of every side, and the machine."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Result", "machine", "report"]


@dataclass(frozen=True, slots=True)
class Result:
    """One case with one codec: the result of each side that supports it (:class:`side.Run` as a dict)."""

    case: str
    codec: str
    answers: dict[str, dict[str, Any]]


def report(results: list[Result], sides: tuple[str, ...]) -> str:
    """A table of seconds, peak memory and ratio of every side, by case and codec; ``-`` if a side has no result."""
    heads = ["case", "codec"]
    for side in sides:
        heads += [f"{side} s", "MB"] + (["x"] if side != "hudi" and "hudi" in sides else [])
    lines = [heads]
    for result in results:
        line = [result.case, result.codec]
        for side in sides:
            line += _cells(result.answers.get(side))
            if side != "hudi" and "hudi" in sides:
                line.append(_ratio(result.answers.get("hudi"), result.answers.get(side)))
        lines.append(line)
    widths = [max(len(line[place]) for line in lines) for place in range(len(heads))]
    text = ["  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines]
    if any(run["peak_since_start"] for result in results for run in result.answers.values()):
        text.append("* peak since process start: the counters could not be reset")
    return "\n".join(text)


def _cells(run: dict[str, Any] | None) -> list[str]:
    if run is None:
        return ["-", "-"]
    return [f"{run['seconds']:.2f}", f"{run['peak_rss_mb']:.0f}{'*' if run['peak_since_start'] else ''}"]


def _ratio(hudi: dict[str, Any] | None, run: dict[str, Any] | None) -> str:
    return "-" if hudi is None or run is None else f"{hudi['seconds'] / run['seconds']:.1f}"


def machine(cores: int, results: list[Result]) -> str:
    """Cores, processor and versions of the measurement."""
    names = [line.partition(":")[2].strip() for line in _cpu_lines() if line.startswith("model name")]
    cpu = names[0] if names else platform.machine()
    versions = {side: run["versions"] for result in results for side, run in result.answers.items()}
    spelled = "; ".join(f"{side}: {', '.join(f'{k} {v}' for k, v in each.items())}" for side, each in versions.items())
    return f"{cores} of {os.cpu_count()} cores, {cpu}, Python {platform.python_version()}; {spelled}"


def _cpu_lines() -> list[str]:
    source = Path("/proc/cpuinfo")
    return source.read_text().splitlines() if source.exists() else []
