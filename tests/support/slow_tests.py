"""Tests that ``make check`` leaves out because they take long.

``slow_tests.txt`` lists them. To write it again, run the whole suite and give its report to this module::

    make test PYTEST_ADDOPTS=--junitxml=report.xml
    python -m tests.support.slow_tests report.xml
"""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

__all__ = ["node_ids", "slow_tests"]

LISTED = Path(__file__).with_name("slow_tests.txt")
_LEFT_OUT_ANYWAY = tuple(
    f"tests/{name}/" for name in ("concurrency", "faults", "interop", "peer", "properties", "spark")
)
SECONDS = 0.2
"""A test that took as long as this, or longer, is listed."""


def slow_tests() -> frozenset[str]:
    """Node ids of the listed tests."""
    return frozenset(LISTED.read_text(encoding="utf-8").splitlines())


def node_ids(report: Path) -> Iterator[tuple[str, float]]:
    """Node id and seconds of each test of a JUnit report that pytest wrote."""
    root = LISTED.parents[2]
    for case in ET.parse(report).iter("testcase"):
        parts = str(case.get("classname")).split(".")
        inside = [str(case.get("name"))]
        while parts and not (root / "/".join(parts)).with_suffix(".py").exists():
            inside.insert(0, parts.pop())  # a class
        yield "::".join(["/".join(parts) + ".py", *inside]), float(case.get("time", 0))


def main(report: Path) -> None:
    """Write the list from a report."""
    listed = (name for name, seconds in node_ids(report) if seconds >= SECONDS and "\n" not in name)
    found = sorted(name for name in listed if not name.startswith(_LEFT_OUT_ANYWAY))
    LISTED.write_text("".join(f"{name}\n" for name in found), encoding="utf-8")
    print(f"{len(found)} tests of {SECONDS} s and longer")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
