"""Which statements are executed, beside what refuses them."""

from __future__ import annotations

import pytest

from hudi_fast.sql_text.coverage import coverage_of


def test_a_script_is_split_at_semicolons_outside_of_quotes_and_comments() -> None:
    script = "SELECT ';' /* ; */ -- ;\n; ;SET a = b;\nDELETE FROM t"
    assert [one.text for one in coverage_of(script)] == ["SELECT ';' /* ; */ -- ;", "SET a = b", "DELETE FROM t"]
    assert [one.setting for one in coverage_of(script)] == [None, ("a", "b"), None]


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("CALL show_commits(table => 't')", ""),
        ("CALL other.procedure()", ""),
        ("CALL show_file_status(table => 't', file => 'f')", "show_file_status is not supported"),
        ("CREATE OR REPLACE TABLE t (a int) USING hudi", "OR REPLACE"),
        ("CREATE GLOBAL TEMP VIEW v AS SELECT 1", "Global temporary views"),
        ("ALTER TABLE t ALTER COLUMN a SET NOT NULL", "NOT NULL"),
        ("SELECT * FROM hudi_metadata('t')", "hudi_metadata is not supported"),
        ("SELECT * FROM hudi_vector_search_batch('t', 'c', 'q', 'c', 5)", ""),
        ("SELECT * FROM hudi_table_changes('t', 'cdc', 'earliest')", ""),
        ("DELETE FROM t x y", "expected the end"),
        ("SELECT 'open", "cannot be read"),
    ],
)
def test_what_is_refused_has_a_reason(text: str, refusal: str) -> None:
    (found,) = coverage_of(text)
    assert found.is_known
    assert (refusal in found.refusal) if refusal else found.refusal == ""


@pytest.mark.parametrize(("text", "known"), [("garbage here", False), ("EXPLAIN SELECT 1", True), ("USE d", True)])
def test_a_text_that_is_no_statement(text: str, known: bool) -> None:
    assert [one.is_known for one in coverage_of(text)] == [known]
