"""The cost of the units of a service plan."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["bytes_read"]


def bytes_read(metrics: Mapping[str, float]) -> float:
    """Bytes that a unit reads, as its plan estimates them (``CompactionStrategy``, Hudi 1.2.0)."""
    return metrics.get("TOTAL_IO_READ_MB", 0.0) * (1 << 20) + metrics.get("TOTAL_LOG_FILES_SIZE", 0.0)
