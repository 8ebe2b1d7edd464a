"""Java's regular expressions, as Spark's functions use them: find, replace and split, value by value.

::

    pattern in Java's grammar ─ java_pattern ─► the same in Python's grammar ─┬─ extract ─► one group of the first match
                                                                              ├─ replace ─► all matches replaced
                                                                              └─ split ───► the parts between matches

The grammars share most of their forms. Where they differ, the pattern is rewritten (``.``, ``$``, named groups); forms
that mean something else in Python, or nothing, are refused: classes within classes, ``\\p``, ``\\b``, ``\\Q`` and more.

Sources: ``java.util.regex.Pattern`` and ``Matcher#appendReplacement`` (JDK 17); ``RegExpExtract``, ``RegExpReplace``
and ``StringSplit`` of Spark 3.5.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from hudi_fast.metadata_table.updates.spark_times import Unknown

__all__ = ["extract", "java_pattern", "replace", "split"]

_ANY = "[^\n\r\x85\u2028\u2029]"
_END = "(?:\\Z|(?=\r\n\\Z)|(?<!\r)(?=\n\\Z)|(?=[\r\x85\u2028\u2029]\\Z))"
_ESCAPES = frozenset("dDsSwWtnrf\\.[]{}()*+-?^$|/#&~!\"%',:;<=>@`_ 123456789")
_GROUP_BEGINS = ("?:", "?=", "?!", "?<=", "?<!", "?>")
_NAMED = re.compile(r"\?<([A-Za-z][A-Za-z0-9]*)>")
_COUNT = re.compile(r"\{\d+(,\d*)?\}")
_FLAGS = re.compile(r"\(\?([ims]+)\)")


@lru_cache(64)
def java_pattern(text: str) -> re.Pattern[str]:
    """A pattern of Java's, compiled.

    Raises:
        ValueError: it has a form that is not supported, or is no pattern at all.
    """
    flags, body = re.ASCII, text
    begin = _FLAGS.match(text)
    if begin:
        if begin[1] != "i":
            raise ValueError(f"the pattern {text!r} has the flags {begin[1]!r}; only i is supported")
        flags, body = flags | re.IGNORECASE, text[begin.end() :]
    parts: list[str] = []
    at = 0
    while at < len(body):
        part, at = _piece(body, at, text)
        parts.append(part)
    try:
        return re.compile("".join(parts), flags)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"the pattern {text!r} is not supported: {error}") from error


def extract(pattern: re.Pattern[str], group: int) -> Callable[[str], str]:
    """The text of a group of the first match; empty without a match, and for a group that took no part in it.

    Raises:
        ValueError: the pattern has no such group.
    """
    if not 0 <= group <= pattern.groups:
        raise ValueError(f"the pattern {pattern.pattern!r} has {pattern.groups} groups; there is no group {group}")

    def first(text: str) -> str:
        found = pattern.search(text)
        return (found[group] or "") if found else ""

    return first


def replace(pattern: re.Pattern[str], replacement: str) -> Callable[[str], str]:
    """The text with each match replaced; ``$1`` and ``${name}`` in the replacement are groups, ``\\`` quotes.

    Raises:
        ValueError: the replacement is not valid, or names a group that the pattern does not have.
    """
    parts = _replacement(pattern, replacement)

    def made(match: re.Match[str]) -> str:
        return "".join(one if isinstance(one, str) else match[one] or "" for one in parts)

    def replaced(text: str) -> str:
        _refuse_halves(pattern, text)
        return pattern.sub(made, text)

    return replaced


def split(pattern: re.Pattern[str]) -> Callable[[str], list[str]]:
    """The parts of a text between matches, empty ones too; an empty match at the beginning separates nothing.

    An empty pattern separates all characters.
    """
    if not pattern.pattern:
        return lambda text: list(text) or [""]

    def parts(text: str) -> list[str]:
        _refuse_halves(pattern, text)
        found, begin = [], 0
        for match in pattern.finditer(text):
            if match.end() == 0:
                continue
            found.append(text[begin : match.start()])
            begin = match.end()
        return [*found, text[begin:]]

    return parts


def _refuse_halves(pattern: re.Pattern[str], text: str) -> None:
    """Java also finds empty matches between the two halves of a character beyond U+FFFF.

    Raises:
        Unknown: it may do so here.
    """
    if any(letter > "\uffff" for letter in text) and any(one.start() == one.end() for one in pattern.finditer(text)):
        raise Unknown


# ---- the grammar


def _piece(body: str, at: int, whole: str) -> tuple[str, int]:
    """One piece of a pattern in Python's grammar, and where the next one begins."""
    letter = body[at]
    if letter == "\\":
        return _escape(body, at, whole), at + 2
    if letter == "[":
        return _class(body, at, whole)
    if letter == ".":
        return _ANY, at + 1
    if letter == "$":
        return _END, at + 1
    if letter == "(":
        return _group(body, at, whole)
    if letter == "{":
        found = _COUNT.match(body, at)
        if found is None:
            raise ValueError(f"the pattern {whole!r} has a brace that begins no count")
        return found[0], found.end()
    return letter, at + 1


def _escape(body: str, at: int, whole: str) -> str:
    following = body[at + 1 : at + 2]
    if following not in _ESCAPES or not following:
        raise ValueError(f"the pattern {whole!r} has the form \\{following}, which is not supported")
    if following.isdigit() and body[at + 2 : at + 3].isdigit():
        raise ValueError(f"the pattern {whole!r} has two digits after \\")
    return body[at : at + 2] if following.isalnum() else re.escape(following)


def _group(body: str, at: int, whole: str) -> tuple[str, int]:
    rest = body[at + 1 :]
    if not rest.startswith("?"):
        return "(", at + 1
    named = _NAMED.match(rest)
    if named:
        return f"(?P<{named[1]}>", at + 1 + named.end()
    for begin in _GROUP_BEGINS:
        if rest.startswith(begin):
            return f"({begin}", at + 1 + len(begin)
    raise ValueError(f"the pattern {whole!r} has a group that begins with ({rest[:3]}, which is not supported")


def _class(body: str, at: int, whole: str) -> tuple[str, int]:
    """A class of characters; those within it that mean something in one grammar only are refused."""
    parts, at = ["["], at + 1
    if body[at : at + 1] == "^":
        parts.append("^")
        at += 1
    if body[at : at + 1] == "]":
        raise ValueError(f"the pattern {whole!r} has a class that begins with a bracket")
    while at < len(body) and body[at] != "]":
        if body[at] == "[" or body.startswith("&&", at):
            raise ValueError(f"the pattern {whole!r} has a class within a class")
        if body[at] == "\\":
            if body[at + 1 : at + 2].isdigit():
                raise ValueError(f"the pattern {whole!r} has a digit after \\ within a class")
            parts.append(_escape(body, at, whole))
            at += 2
            continue
        parts.append(f"\\{body[at]}" if body[at] in "^&~|" else body[at])
        at += 1
    if at >= len(body):
        raise ValueError(f"the pattern {whole!r} has a class that does not end")
    return "".join([*parts, "]"]), at + 1


def _replacement(pattern: re.Pattern[str], text: str) -> list[str | int]:
    """Literal parts, and numbers of groups."""
    parts: list[str | int] = []
    at = 0
    while at < len(text):
        letter, following = text[at], text[at + 1 : at + 2]
        if letter not in "\\$":
            parts.append(letter)
            at += 1
            continue
        if not following:
            raise ValueError(f"the replacement {text!r} ends with {letter}")
        if letter == "\\":
            parts.append(following)
            at += 2
            continue
        number, at = _reference(pattern, text, at + 1)
        parts.append(number)
    return parts


def _reference(pattern: re.Pattern[str], text: str, at: int) -> tuple[int, int]:
    """The number of a group, and what follows; digits count as long as there is such a group."""
    if text[at] == "{":
        name, closed, _ = text[at + 1 :].partition("}")
        if not closed or name not in pattern.groupindex:
            raise ValueError(f"the replacement {text!r} names the group {name!r}, which {pattern.pattern!r} lacks")
        return pattern.groupindex[name], at + len(name) + 2
    if not ("0" <= text[at] <= "9") or int(text[at]) > pattern.groups:
        raise ValueError(f"the replacement {text!r} has a $ that names no group of {pattern.pattern!r}")
    number, at = int(text[at]), at + 1
    while at < len(text) and "0" <= text[at] <= "9" and number * 10 + int(text[at]) <= pattern.groups:
        number, at = number * 10 + int(text[at]), at + 1
    return number, at
