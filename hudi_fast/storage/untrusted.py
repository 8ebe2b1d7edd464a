"""Text that a table holds is not trusted: paths and JSON.

Paths of files below a table's base path. They come from tables, and tables are untrusted.

JSON that a table or a store holds: untrusted text.
"""

from __future__ import annotations

import json
import re
from typing import Any

from hudi_fast.errors import CorruptTableError

__all__ = ["check_relative", "fault_of", "stored_json"]


def check_relative(path: str, where: str | None = None) -> str:
    """Return ``path`` if it stays below the base path; file names in a table are untrusted and may leave it.

    Args:
        path: relative to the base path.
        where: file of the table that names it.

    Raises:
        CorruptTableError: the path leaves the base path or is invalid.
    """
    fault = fault_of(path)
    if fault is not None:
        raise CorruptTableError(f"The path {path!r} {fault}. Correct or restore the file that names it.", where)
    return path


def fault_of(path: str) -> str | None:
    """The reason why a path is invalid; backslashes count as separators, because other systems read tables too."""
    if path.startswith("/") or ".." in path.replace("\\", "/").split("/"):
        return "leaves the table's base path"
    if "\0" in path:
        return "holds a NUL character"
    try:
        path.encode()
    except UnicodeEncodeError:
        return "is not UTF-8"
    return None


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
