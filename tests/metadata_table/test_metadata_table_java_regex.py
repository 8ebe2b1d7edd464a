"""Java's regular expressions: what is found, replaced and split, and forms that are refused rather than misread."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hudi_fast.metadata_table.updates.spark_text import Unknown, extract, java_pattern, replace, split


@pytest.mark.parametrize(
    ("pattern", "group", "text", "expected"),
    [
        (r"(\d+)-(\w+)", 2, "a 12-bc 3-d", "bc"),
        (r"(a)|(b)", 2, "a", ""),
        (r"x", 0, "abc", ""),
        (r"^a.c$", 0, "a\nc", ""),
        (r"a$", 0, "b\na", "a"),
        (r"^(a)$|b", 0, "ab", "b"),
        (r"(?<year>\d{4})", 1, "in 2024", "2024"),
        (r"(?i)ab", 0, "xAB", "AB"),
        (r"(?i)[^k]", 0, "Kl", "l"),
        (r"[\s]+", 0, "a\x0b\tb", "\x0b\t"),
        (r"a\S", 0, "a\x0bac", "ac"),
        (r"\d+", 0, "٣4", "4"),
        (r"[\w.]+@[a-z]+", 0, "to a.b@host now", "a.b@host"),
        (r"(a+)+?b", 1, "aab", "aa"),
        (r".", 0, "𝄞x", "𝄞"),
    ],
)
def test_the_first_match(pattern: str, group: int, text: str, expected: str) -> None:
    assert extract(pa.array([text, None]), java_pattern(pattern), group).to_pylist() == [expected, None]


@pytest.mark.parametrize(
    ("pattern", "replacement", "text", "expected"),
    [
        ("(a)(b)?", "$2$1", "ab a", "ba a"),
        ("(a)", "$11", "a", "a1"),
        ("(?<n>a)", r"${n}\$", "a", "a$"),
        (r"\s+", " ", "a \t b", "a b"),
        ("a", r"\\1", "ab", r"\1b"),
        ("^", "-", "ab", "-ab"),
        ("^$", "-", "", "-"),
        ("^a*", "-", "aab", "-b"),
        ("$", "-", "ab", "ab-"),
    ],
)
def test_all_matches_replaced(pattern: str, replacement: str, text: str, expected: str) -> None:
    assert replace(pa.array([text, None]), java_pattern(pattern), replacement).to_pylist() == [expected, None]


@pytest.mark.parametrize(
    ("pattern", "text"),
    [("a$", "a\n"), ("a$", "a\r\n"), ("b$", "b\u2028"), ("(?i)s", "\u017f"), ("(?i)k", "\u212a")],
)
def test_where_re2_and_java_may_differ_the_result_is_unknown(pattern: str, text: str) -> None:
    found = java_pattern(pattern)
    for act in (lambda one: extract(one, found, 0), lambda one: replace(one, found, ""), lambda one: split(one, found)):
        with pytest.raises(Unknown):
            act(pa.array(["x", None, text]))
        assert len(act(pa.array(["x", None]))) == 2


def test_patterns_that_match_the_empty_text_are_refused_where_matches_follow_each_other() -> None:
    for pattern in ("x*", "(a|)", "^a*|b", "a*$"):
        with pytest.raises(ValueError, match="matches the empty text"):
            replace(pa.array(["a"]), java_pattern(pattern), "-")
        with pytest.raises(ValueError, match="matches the empty text"):
            split(pa.array(["a"]), java_pattern(pattern))


@pytest.mark.timeout(20)
@pytest.mark.parametrize("pattern", ["(a+)+b", "(a|a)*b", "(a|aa)+$b", "(.*)*x", "^(([a-z])+.)+[A-Z]([a-z])+$"])
def test_patterns_are_matched_in_linear_time(pattern: str) -> None:
    """A backtracking engine needs seconds for 24 letters, and doubles for each further one."""
    texts, found = pa.array(["a" * 20_000]), java_pattern(pattern)
    assert extract(texts, found, 0).to_pylist() == [""]
    assert replace(texts, found, "-").to_pylist() == texts.to_pylist()
    assert split(texts, found).to_pylist() == [texts.to_pylist()]


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        (",", "a,b,,", ["a", "b", "", ""]),
        (",", "", [""]),
        ("", "abc", ["a", "b", "c"]),
        ("", "", [""]),
        ("[|]", "|a", ["", "a"]),
    ],
)
def test_parts_between_matches(pattern: str, text: str, expected: list[str]) -> None:
    assert split(pa.array([text, None]), java_pattern(pattern)).to_pylist() == [expected, None]


@pytest.mark.parametrize(
    "pattern",
    [
        r"\p{L}",
        r"\bword",
        "[a&&b]",
        "[a[b]]",
        r"\Qa\E",
        "(?x)a",
        "a{,3}",
        "(",
        "[",
        "[]a]",
        r"(?<=a+)b",
        "a(?=b)",
        "a(?!b)",
        "(?>a)b",
        "a++b",
        r"(a)\1",
        r"(a)\11",
        r"[\S]",
        "(?i)ä",
        "(?<n>a)(?<n>b)",
        "a{1001}",
        "((a{100}){100}){100}",
    ],
)
def test_forms_of_one_grammar_alone_are_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="pattern"):
        java_pattern(pattern)


@pytest.mark.parametrize("replacement", ["$", "$2", "$x", "${no}", "\\"])
def test_replacements_that_java_refuses_are_refused(replacement: str) -> None:
    with pytest.raises(ValueError, match="replacement"):
        replace(pa.array(["a"]), java_pattern("(a)"), replacement)
    with pytest.raises(ValueError, match="no group 3"):
        extract(pa.array(["a"]), java_pattern("(a)"), 3)
