"""Values of Java and Scala objects, each in one call to Java."""

from __future__ import annotations

from typing import Any

__all__ = ["text_map"]

_SEPARATOR = "\u0001"


def text_map(scala_map: Any) -> dict[str, str]:
    """A Scala map from text to text."""
    entries = filter(None, str(scala_map.mkString(_SEPARATOR)).split(_SEPARATOR))
    return dict(entry.split(" -> " if " -> " in entry else ",", 1) for entry in entries)
