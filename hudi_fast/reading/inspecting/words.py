"""Human-readable sizes and durations."""

from __future__ import annotations

__all__ = ["duration_text", "size_text"]

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_STEP = 1024
_MINUTE = 60
_HOUR = 3600
_DAY = 86_400


def size_text(count: int) -> str:
    """Bytes with three or more digits: ``512 B``, ``1.25 MiB``."""
    amount, unit = float(count), _UNITS[0]
    for larger in _UNITS[1:]:
        if abs(amount) < _STEP:
            break
        amount, unit = amount / _STEP, larger
    return f"{count} B" if unit == "B" else f"{amount:.{2 if abs(amount) < 10 else 1}f} {unit}"


def duration_text(seconds: float) -> str:
    """Seconds in a suitable unit: ``37 ms``, ``4.20 s``, ``3 min 5 s``, ``2 h 1 min``, ``4 d 3 h``."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < _MINUTE:
        return f"{seconds:.2f} s"
    whole = round(seconds)
    if whole < _HOUR:
        return f"{whole // _MINUTE} min {whole % _MINUTE} s"
    if whole < _DAY:
        return f"{whole // _HOUR} h {whole % _HOUR // _MINUTE} min"
    return f"{whole // _DAY} d {whole % _DAY // _HOUR} h"
