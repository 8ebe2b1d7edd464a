"""JSON that a table or a store holds: untrusted text."""

from __future__ import annotations

import json
import re
from typing import Any

__all__ = ["stored_json"]

_HALF = r"\\u[dD][89a-fA-F]"
_HALVES: tuple[re.Pattern[Any], re.Pattern[Any]] = re.compile(_HALF), re.compile(_HALF.encode())
"""Escapes of halves of characters: Python accepts more than can be stored."""


def stored_json(text: str | bytes) -> Any:
    """The value of a JSON text.

    Raises:
        ValueError: the text is not JSON or not UTF-8, nests too deeply, has half a character, or a whole number of
            more than 64 bits: no Java program writes them.
    """
    escape: Any = b"\\u" if isinstance(text, bytes) else "\\u"
    try:
        value = json.loads(text, parse_int=_int64)
        if escape in text and _HALVES[isinstance(text, bytes)].search(text) is not None:
            json.dumps(value, ensure_ascii=False).encode()  # refuses halves of characters
        return value
    except RecursionError:
        raise ValueError("the JSON text nests values too deeply") from None


def _int64(digits: str) -> int:
    value = int(digits)  # refuses thousands of digits
    if not -(2**63) <= value < 2**63:
        raise ValueError(f"the number {digits[:40]} has more than 64 bits")
    return value
