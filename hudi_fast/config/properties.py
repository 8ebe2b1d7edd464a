"""The text form of Java ``Properties``, used by ``hoodie.properties`` and partition metafiles.

Data flow: bytes (ISO-8859-1) -> text -> :func:`parse_properties` -> ``dict``, and back by :func:`format_properties`.
A line is ``key=value``, ``key:value`` or ``key value``; ``#`` and ``!`` begin comments. A backslash escapes the next
character, continues a line, or begins ``\\uXXXX``, a UTF-16 unit (a character beyond the basic plane needs two).
Source: java.util.Properties (load and store), as used by HoodieTableConfig 1.2.0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from hudi_fast.errors import CorruptTableError

__all__ = ["format_properties", "parse_properties"]

_BLANKS = " \t\f"
_KEY = re.compile(r"(?:[^\\=: \t\f]|\\.?)*", re.DOTALL)
_NAMED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPED = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f", "\\": "\\\\"} | {c: "\\" + c for c in "=:#!"}
# Java's line ends; str.splitlines() also splits at U+0085 and others.
_LINE_END = re.compile(r"\r\n|\r|\n")


def parse_properties(text: str) -> dict[str, str]:
    """Parse properties text (decoded from ISO-8859-1); of a repeated key the last value counts.

    Raises:
        CorruptTableError: a ``\\u`` without four hexadecimal digits.
    """
    return dict(_parsed(text))


# One write reads a table's properties several times, since another writer may have changed them; mostly none has.
@lru_cache(maxsize=32)
def _parsed(text: str) -> Mapping[str, str]:
    props: dict[str, str] = {}
    for line in _logical_lines(text):
        end = _key_end(line)
        props[_unescape(line[:end])] = _unescape(_value_part(line[end:]))
    return props


def format_properties(props: Mapping[str, str], comments: Sequence[str]) -> str:
    """Format properties as ASCII text: one line per comment, then one per key in the given order."""
    lines = ["#" + _ascii(_LINE_END.sub("\n#", comment)) for comment in comments]
    lines += [f"{_escape(key, all_blanks=True)}={_escape(value, all_blanks=False)}" for key, value in props.items()]
    return "".join(line + "\n" for line in lines)


def _logical_lines(text: str) -> Iterator[str]:
    """Lines without leading blanks; comments and empty lines are dropped, continued lines joined."""
    parts: list[str] = []  # of a continued line
    for raw in _LINE_END.split(text):
        line = raw.lstrip(_BLANKS)
        if not parts and (not line or line[0] in "#!"):
            continue
        if _ends_in_open_backslash(line):
            parts.append(line[:-1])
        else:
            yield "".join([*parts, line])
            parts = []
    if any(parts):
        yield "".join(parts)


def _ends_in_open_backslash(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _key_end(line: str) -> int:
    found = _KEY.match(line)
    return 0 if found is None else found.end()


def _value_part(rest: str) -> str:
    rest = rest.lstrip(_BLANKS)
    return rest[1:].lstrip(_BLANKS) if rest[:1] in ("=", ":") else rest


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    out: list[str] = []
    position = 0
    while position < len(text):
        char = text[position]
        position += 1
        if char == "\\" and position < len(text):
            char = text[position]
            position += 1
            if char == "u":
                char = _unit(text[position : position + 4])
                position += 4
            else:
                char = _NAMED.get(char, char)
        elif char == "\\":
            break
        out.append(char)
    return "".join(out).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _unit(digits: str) -> str:
    if re.fullmatch("[0-9a-fA-F]{4}", digits) is None:
        raise CorruptTableError(f"Expected four hexadecimal digits after \\u in a properties file, found {digits!r}.")
    return chr(int(digits, 16))


def _escape(text: str, *, all_blanks: bool) -> str:
    out = "".join(_ESCAPED.get(char, char) for char in text)
    if all_blanks:
        out = out.replace(" ", "\\ ")
    elif out.startswith(" "):
        out = "\\" + out
    return _ascii(out)


def _ascii(text: str) -> str:
    if text.isascii() and text.isprintable():
        return text
    return "".join(char if " " <= char <= "~" or char == "\n" else _units(char) for char in text)


def _units(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02X}{units[i + 1]:02X}" for i in range(0, len(units), 2))
