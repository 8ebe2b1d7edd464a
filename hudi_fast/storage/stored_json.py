"""JSON that a table or a store holds: untrusted text."""

from __future__ import annotations

import json
import re
from typing import Any

__all__ = ["stored_json"]

_HALF = re.compile(r"\\u[dD][89a-fA-F]")
"""An escape of half a character (a surrogate): Python accepts it, but it cannot be stored."""


def _int64(digits: str) -> int:
    value = int(digits)  # refuses thousands of digits
    if not -(2**63) <= value < 2**63:
        raise ValueError(f"the number {digits[:40]} has more than 64 bits")
    return value


_DECODER = json.JSONDecoder(parse_int=_int64)


def stored_json(text: str | bytes) -> Any:
    """The value of a JSON text.

    Raises:
        ValueError: the text is not JSON or not UTF-8, nests too deeply, has half a character, or an integer of more
            than 64 bits, which Java programs do not write.
    """
    text = text.decode("utf-8-sig") if isinstance(text, bytes) else text
    try:
        value = _DECODER.decode(text)
        if "\\u" in text and _HALF.search(text) is not None:
            json.dumps(value, ensure_ascii=False).encode()  # refuses halves of characters
        return value
    except RecursionError:
        raise ValueError("the JSON text nests values too deeply") from None
