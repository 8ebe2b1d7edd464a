"""Keys of secondary indexes, character by character."""

from __future__ import annotations

SPECIAL = "\\$\0"


def escaped(text: str | None) -> str:
    return "\0" if text is None else "".join("\\" + each if each in SPECIAL else each for each in text)


def joined(value: str | None, key: str) -> str:
    return escaped(value) + "$" + escaped(key)


def split(text: str) -> tuple[str | None, str] | None:
    """Value and record key; None without a bare separator."""
    parts, bare, characters = [""], [], iter(text)
    for each in characters:
        if each == "$" and len(parts) == 1:
            parts.append("")
            continue
        after = next(characters, "\\") if each == "\\" else each
        bare.append(each == "\0" and len(parts) == 1)
        parts[-1] += after
    if len(parts) == 1:
        return None
    return (None if parts[0] == "\0" and bare[0] else parts[0]), parts[1]
