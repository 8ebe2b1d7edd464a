"""Releases of Apache Hudi before 0.15, each on the Spark that its bundle on Maven Central is for.

They run under interpreters that ``make old-hudi`` puts into ``.venv-hudi-31`` and ``.venv-hudi-32`` (PySpark 3.1.3 and
3.2.4). Spark before 3.3 does not know Java 17; with the opened packages of :mod:`tests.peer.server` it works for tables
as small as those of tests.
"""

from __future__ import annotations

from tests.peer.client import PROJECT, RealHudi

__all__ = ["SPARK_OF", "old_hudi"]

SPARK_OF = {"0.9.0": "31", "0.10.0": "31", "0.12.0": "31", "0.13.1": "32", "0.14.0": "32", "1.0.2": ""}
"""Release to the interpreter that runs it; empty: that of the releases of today."""


def old_hudi(release: str) -> RealHudi:
    """A release, not yet started; close it."""
    folder = ".venv-hudi" + (f"-{SPARK_OF[release]}" if SPARK_OF[release] else "")
    return RealHudi(release, PROJECT / folder / "bin" / "python")
