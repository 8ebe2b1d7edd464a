"""``format("hudi")`` of a session done by hudi_fast: which sessions, and the switch.

Data flow: ``accelerate(spark)`` -> methods of PySpark's reader and writer classes, replaced once -> for a session that
is switched on and a source that is Hudi: hudi_fast; for everything else: the method that was there.
"""

from __future__ import annotations

from typing import Any

__all__ = ["accelerate"]


def accelerate(spark: Any, on: bool = True, *, fallback: bool = False) -> None:
    """Let hudi_fast do what this session does with ``format("hudi")``.

    Args:
        spark: the session, classic or of Spark Connect.
        on: False undoes it for this session.
        fallback: what hudi_fast does not do goes to Apache Hudi's bundle, where that is on the class path.

    Raises:
        ConfigError: ``spark`` is not a session.
    """
    raise NotImplementedError
