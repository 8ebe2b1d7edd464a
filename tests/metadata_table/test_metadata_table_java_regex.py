"""Java's regular expressions: what is found, replaced and split, and forms that are refused rather than misread."""

from __future__ import annotations

import pytest

from hudi_fast.metadata_table.updates.java_regex import extract, java_pattern, replace, split
from hudi_fast.metadata_table.updates.spark_times import Unknown


@pytest.mark.parametrize(
    ("pattern", "group", "text", "expected"),
    [
        (r"(\d+)-(\w+)", 2, "a 12-bc 3-d", "bc"),
        (r"(a)|(b)", 2, "a", ""),
        (r"x", 0, "abc", ""),
        (r"^a.c$", 0, "a\nc", ""),
        (r"a$", 0, "a\r\n", "a"),
        (r"b$", 0, "b\u2028", "b"),
        (r"(?<year>\d{4})", 1, "in 2024", "2024"),
        (r"(?i)ab", 0, "xAB", "AB"),
        (r"(?i)ä", 0, "Ä", ""),
        (r"\d+", 0, "٣4", "4"),
        (r"[\w.]+@[a-z]+", 0, "to a.b@host now", "a.b@host"),
        (r"(a+)+?b", 1, "aab", "aa"),
        (r"a++b", 0, "aaab", "aaab"),
        (r".", 0, "𝄞x", "𝄞"),
    ],
)
def test_the_first_match(pattern: str, group: int, text: str, expected: str) -> None:
    assert extract(java_pattern(pattern), group)(text) == expected


@pytest.mark.parametrize(
    ("pattern", "replacement", "text", "expected"),
    [
        ("x*", "-", "abxd", "-a-b--d-"),
        ("(a)(b)?", "$2$1", "ab a", "ba a"),
        ("(a)", "$11", "a", "a1"),
        ("(?<n>a)", r"${n}\$", "a", "a$"),
        (r"\s+", " ", "a \t b", "a b"),
    ],
)
def test_all_matches_replaced(pattern: str, replacement: str, text: str, expected: str) -> None:
    assert replace(java_pattern(pattern), replacement)(text) == expected


def test_empty_matches_within_a_character_are_not_followed() -> None:
    with pytest.raises(Unknown):
        replace(java_pattern("x*"), "-")("a𝄞")
    with pytest.raises(Unknown):
        split(java_pattern("x*"))("a𝄞")


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        (",", "a,b,,", ["a", "b", "", ""]),
        (",", "", [""]),
        ("", "abc", ["a", "b", "c"]),
        ("", "", [""]),
        ("x*", "abc", ["a", "b", "c", ""]),
        ("[|]", "|a", ["", "a"]),
    ],
)
def test_parts_between_matches(pattern: str, text: str, expected: list[str]) -> None:
    assert split(java_pattern(pattern))(text) == expected


@pytest.mark.parametrize(
    "pattern",
    [r"\p{L}", r"\bword", "[a&&b]", "[a[b]]", r"\Qa\E", "(?x)a", "a{,3}", "(", "[", r"(?<=a+)b", r"(a)\11", "[]a]"],
)
def test_forms_of_one_grammar_alone_are_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="pattern"):
        java_pattern(pattern)


@pytest.mark.parametrize("replacement", ["$", "$2", "$x", "${no}", "\\"])
def test_replacements_that_java_refuses_are_refused(replacement: str) -> None:
    with pytest.raises(ValueError, match="replacement"):
        replace(java_pattern("(a)"), replacement)
    with pytest.raises(ValueError, match="no group 3"):
        extract(java_pattern("(a)"), 3)
