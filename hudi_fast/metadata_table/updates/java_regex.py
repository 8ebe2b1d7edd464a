"""Java's regular expressions, as Spark's functions use them: find, replace and split on arrays.

::

    pattern in Java's grammar ─ java_pattern ─► the same in RE2's grammar ─┬─ extract ─► one group of the first match
                                                                           ├─ replace ─► all matches replaced
                                                                           └─ split ───► the parts between matches

Patterns and texts come from a table, so matching must take linear time; pyarrow's RE2 does. The grammars share most of
their forms. Where they differ, the pattern is rewritten (``.``, ``\\s``, named groups). Forms that RE2 lacks or reads
differently are refused: look-around, backreferences, possessive counts, classes within classes, ``\\p``, ``\\b``,
``\\Q`` and more.

Sources: ``java.util.regex.Pattern`` and ``Matcher#appendReplacement`` (JDK 17); ``RegExpExtract``, ``RegExpReplace``
and ``StringSplit`` of Spark 3.5.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.metadata_table.updates.spark_times import Unknown

__all__ = ["JavaPattern", "extract", "java_pattern", "replace", "split"]

_ANY = "[^\n\r\x85\u2028\u2029]"
_ENDS_WITH_LINE = "[\n\r\x85\u2028\u2029]\\z"
_SPACE = "\\t\\n\\v\\f\\r "
"""Java's white space. RE2's white space lacks the vertical tab."""

_FOLDED = "[\u017f\u212a]"
"""Letters that RE2, but not Java, matches with s or k when it ignores case."""

_ESCAPES = frozenset("dDsSwWtnrf\\.[]{}()*+-?^$|/#&~!\"%',:;<=>@`_ ")
_NAMED = re.compile(r"\?<([A-Za-z][A-Za-z0-9]*)>")
_COUNT = re.compile(r"\{\d+(,\d*)?\}")
_FLAGS = re.compile(r"\(\?([ims]+)\)")
_MAX_GROUPS = 9
"""RE2's replacements refer to a group by one digit."""


@dataclass(frozen=True, slots=True)
class JavaPattern:
    """A Java pattern.

    Attributes:
        java: the pattern in Java's grammar.
        re2: the pattern in RE2's grammar; each group is named ``g`` and its number.
        groups: number of groups.
        names: numbers of the groups that have a name.
        ignores_case: whether it ignores the case of ASCII letters.
        sees_end: whether it has a ``$``.
    """

    java: str
    re2: str
    groups: int = 0
    names: Mapping[str, int] = field(default_factory=dict)
    ignores_case: bool = False
    sees_end: bool = False

    @property
    def matches_once(self) -> bool:
        """Whether the pattern matches at most once in a text."""
        return self.java == "$" or (self.java.startswith("^") and "|" not in self.java)


@lru_cache(64)
def java_pattern(text: str) -> JavaPattern:
    """Parse a Java pattern.

    Raises:
        ValueError: the pattern is invalid, or has an unsupported form.
    """
    return _Translation(text).pattern()


def extract(texts: pa.Array, pattern: JavaPattern, group: int) -> pa.Array:
    """The text of a group of the first match; empty without a match, and for a group that did not match.

    Args:
        texts: string[n].
        pattern: the pattern to find.
        group: number of the group; 0 for the whole match.

    Returns:
        string[n], null for null.

    Raises:
        Unknown: see :func:`_require_same`.
        ValueError: the pattern has no such group.
    """
    if not 0 <= group <= pattern.groups:
        raise ValueError(f"the pattern {pattern.java!r} has {pattern.groups} groups; there is no group {group}")
    _require_same(texts, pattern)
    found = pc.struct_field(pc.extract_regex(texts, f"(?P<g0>{pattern.re2})"), f"g{group}")
    return pc.if_else(texts.is_valid(), pc.fill_null(found, ""), None)


def replace(texts: pa.Array, pattern: JavaPattern, replacement: str) -> pa.Array:
    """The texts with each match replaced; ``$1`` and ``${name}`` in the replacement are groups, ``\\`` quotes.

    Arguments and result as for :func:`extract`.

    Raises:
        Unknown: see :func:`_require_same`.
        ValueError: the replacement is invalid, or names a group that the pattern lacks; or the pattern may match the
            empty text several times.
    """
    parts = _replacement(pattern, replacement)
    if not pattern.matches_once:
        _require_longer_matches(pattern)
    _require_same(texts, pattern)
    made = (one.replace("\\", "\\\\") if isinstance(one, str) else f"\\{one}" for one in parts)
    return pc.replace_substring_regex(texts, pattern.re2, "".join(made))


def split(texts: pa.Array, pattern: JavaPattern) -> pa.Array:
    """The parts of each text between matches, also empty ones: list<string>[n]. An empty pattern separates characters.

    Raises:
        Unknown: see :func:`_require_same`.
        ValueError: the pattern matches the empty text.
    """
    kind = pa.list_(pa.string())
    if not pattern.java:
        return pa.array([None if text is None else list(text) or [""] for text in texts.to_pylist()], kind)
    _require_longer_matches(pattern)
    _require_same(texts, pattern)
    return pc.split_pattern_regex(texts, pattern.re2).cast(kind)


def _require_longer_matches(pattern: JavaPattern) -> None:
    """Refuse patterns with empty matches: Java and RE2 disagree on where an empty match follows another match.

    Raises:
        ValueError: the pattern matches the empty text.
    """
    if pc.match_substring_regex(pa.array([""]), pattern.re2)[0].as_py():
        raise ValueError(f"the pattern {pattern.java!r} also matches the empty text, which is not supported here")


def _require_same(texts: pa.Array, pattern: JavaPattern) -> None:
    """Refuse texts in which RE2 may find other matches than Java.

    Java's ``$`` also matches before the line end that ends a text; for the ignored case see ``_FOLDED``.

    Raises:
        Unknown: RE2 may find another match than Java in one of the texts.
    """
    for form, applies in ((_ENDS_WITH_LINE, pattern.sees_end), (_FOLDED, pattern.ignores_case)):
        if applies and pc.any(pc.match_substring_regex(texts, form)).as_py():
            raise Unknown


# ---- the grammar


class _Translation:
    """Translates one pattern, piece by piece.

    Args:
        text: the pattern in Java's grammar.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        flags = _FLAGS.match(text)
        if flags and flags[1] != "i":
            raise ValueError(f"the pattern {text!r} has the flags {flags[1]!r}; only i is supported")
        self._ignores_case = flags is not None
        self._body = text[flags.end() :] if flags else text
        self._names: dict[str, int] = {}
        self._groups = 0
        self._sees_end = False
        if self._ignores_case and not text.isascii():
            raise ValueError(f"the pattern {text!r} has letters beyond ASCII, whose case Java does not ignore")

    def pattern(self) -> JavaPattern:
        """The pattern in RE2's grammar.

        Raises:
            ValueError: see :func:`java_pattern`.
        """
        parts: list[str] = []
        at = 0
        while at < len(self._body):
            part, at = self._piece(at)
            parts.append(part)
        made = "".join(parts)
        re2 = f"(?i:{made})" if self._ignores_case else made
        try:
            pc.match_substring_regex(pa.array([""]), re2)
        except pa.ArrowInvalid as error:
            raise ValueError(f"the pattern {self._text!r} is not supported: {error}") from error
        return JavaPattern(self._text, re2, self._groups, self._names, self._ignores_case, self._sees_end)

    def _piece(self, at: int) -> tuple[str, int]:
        """One piece of the pattern in RE2's grammar, and the position of the next piece."""
        letter = self._body[at]
        if letter == "\\":
            return self._escape(at), at + 2
        if letter == "[":
            return self._class(at)
        if letter == ".":
            return _ANY, at + 1
        if letter == "$":
            self._sees_end = True
            return "\\z", at + 1
        if letter == "(":
            return self._group(at)
        if letter == "{":
            found = _COUNT.match(self._body, at)
            if found is None:
                raise ValueError(f"the pattern {self._text!r} has a brace that begins no count")
            return found[0], found.end()
        return letter, at + 1

    def _escape(self, at: int, in_class: bool = False) -> str:
        following = self._body[at + 1 : at + 2]
        if following not in _ESCAPES or not following or (following == "S" and in_class):
            raise ValueError(f"the pattern {self._text!r} has the form \\{following}, which is not supported")
        if following in "sS":
            return _SPACE if in_class else f"[{'^' * (following == 'S')}{_SPACE}]"
        return following if following in "_ " else f"\\{following}"

    def _group(self, at: int) -> tuple[str, int]:
        rest = self._body[at + 1 :]
        if rest.startswith("?:"):
            return "(?:", at + 3
        named = _NAMED.match(rest)
        if rest.startswith("?") and named is None:
            raise ValueError(
                f"the pattern {self._text!r} has a group that begins with ({rest[:3]}, which is not supported"
            )
        self._groups += 1
        if named and self._names.setdefault(named[1], self._groups) != self._groups:
            raise ValueError(f"the pattern {self._text!r} has two groups of the name {named[1]!r}")
        return f"(?P<g{self._groups}>", at + 1 + (named.end() if named else 0)

    def _class(self, at: int) -> tuple[str, int]:
        """A class of characters; characters that have a meaning in only one of the grammars are escaped or refused."""
        body, parts, at = self._body, ["["], at + 1
        if body[at : at + 1] == "^":
            parts.append("^")
            at += 1
        if body[at : at + 1] == "]":
            raise ValueError(f"the pattern {self._text!r} has a class that begins with a bracket")
        while at < len(body) and body[at] != "]":
            if body[at] == "[" or body.startswith("&&", at):
                raise ValueError(f"the pattern {self._text!r} has a class within a class")
            if body[at] == "\\":
                parts.append(self._escape(at, in_class=True))
                at += 2
                continue
            parts.append(f"\\{body[at]}" if body[at] in "^&~|" else body[at])
            at += 1
        if at >= len(body):
            raise ValueError(f"the pattern {self._text!r} has a class that does not end")
        return "".join([*parts, "]"]), at + 1


def _replacement(pattern: JavaPattern, text: str) -> list[str | int]:
    """The literal parts of a replacement, and the numbers of its groups."""
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


def _reference(pattern: JavaPattern, text: str, at: int) -> tuple[int, int]:
    """The number of a group, and the position after it; a digit belongs to the number if such a group exists."""
    if text[at] == "{":
        name, closed, _ = text[at + 1 :].partition("}")
        if not closed or name not in pattern.names:
            raise ValueError(f"the replacement {text!r} names the group {name!r}, which {pattern.java!r} lacks")
        return _small(pattern.names[name], text), at + len(name) + 2
    if not ("0" <= text[at] <= "9") or int(text[at]) > pattern.groups:
        raise ValueError(f"the replacement {text!r} has a $ that names no group of {pattern.java!r}")
    number, at = int(text[at]), at + 1
    while at < len(text) and "0" <= text[at] <= "9" and number * 10 + int(text[at]) <= pattern.groups:
        number, at = number * 10 + int(text[at]), at + 1
    return _small(number, text), at


def _small(number: int, text: str) -> int:
    if number > _MAX_GROUPS:
        raise ValueError(f"the replacement {text!r} names the group {number}; up to {_MAX_GROUPS} are supported")
    return number
