"""The tokens of a statement."""

from __future__ import annotations

import pytest

from hudi_fast.sql_text.cursor import Cursor, StatementError


def test_tokens_have_kinds_texts_and_places() -> None:
    text = "SELECT `a b`, 'it\\'s' /* no */ FROM t -- end"
    cursor = Cursor(text)
    kinds = [(one.kind, one.text) for one in cursor.tokens]
    assert kinds[:2] == [("word", "SELECT"), ("name", "a b")]
    assert kinds[3][0] == "string"
    assert kinds[4:] == [("word", "FROM"), ("word", "t")]
    assert [text[one.start : one.end] for one in cursor.tokens][1] == "`a b`"


def test_joined_keywords_are_single_words() -> None:
    assert [one.text for one in Cursor("PARTITIONED BY (a) ORDER BY b").tokens][:2] == ["PARTITIONED", "BY"]


def test_words_are_read_in_any_case_and_quoted_names_are_no_keywords() -> None:
    cursor = Cursor("merge Into `set`")
    assert cursor.take("MERGE", "INTO")
    assert not cursor.sees("SET")
    assert cursor.name().parts == ("set",)
    assert cursor.done


def test_an_expression_ends_at_a_keyword_outside_of_parentheses_and_case() -> None:
    cursor = Cursor("f(a, 'WHEN') + CASE WHEN b THEN 1 END WHEN x")
    assert cursor.until(("WHEN",)) == "f(a, 'WHEN') + CASE WHEN b THEN 1 END"
    assert cursor.sees("WHEN", "X")


def test_a_text_in_parentheses() -> None:
    cursor = Cursor("(a, (b)) c")
    assert cursor.inside() == "a, (b)"
    assert cursor.identifier() == "c"
    with pytest.raises(StatementError, match=r"expected \), found the end"):
        Cursor("(a").inside()
