"""Tables that a query names, and the replacement of their names."""

from __future__ import annotations

import pytest

from hudi_fast.sql_text.cursor import Edit, edited, references_in


def named(text: str) -> list[str]:
    return sorted(str(one.name) for one in references_in(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT * FROM d.t JOIN u USING (a), `x y`.z", ["d.t", "u", "x y.z"]),
        ("WITH q AS (SELECT * FROM t), r AS (SELECT * FROM q) SELECT * FROM r", ["t"]),
        ("WITH t AS (SELECT * FROM t) SELECT * FROM t", ["t"]),
        ("SELECT (SELECT max(a) FROM s) FROM t WHERE EXISTS (SELECT 1 FROM u)", ["s", "t", "u"]),
        ("SELECT * FROM (WITH q AS (SELECT 1) SELECT * FROM q) JOIN q", ["q"]),
        ("EXPLAIN EXTENDED SELECT * FROM t", ["t"]),
        ("id IN (SELECT id FROM s)", ["s"]),
        ("SELECT * FROM t UNION ALL SELECT * FROM u", ["t", "u"]),
        ("SELECT 'FROM x' -- FROM y", []),
        ("VALUES (1, 2)", []),
        ("SELECT FROM WHERE", []),
    ],
)
def test_the_tables_of_a_query(text: str, expected: list[str]) -> None:
    assert named(text) == expected


def test_places_are_those_of_the_text() -> None:
    text = "SELECT d.t.a, t.b FROM d.t TIMESTAMP AS OF '2024-01-01' WHERE d.t.a > 1"
    (one,) = references_in(text)
    assert text[one.name.start : one.name.end] == "d.t"
    assert text[one.name.start : one.end] == "d.t TIMESTAMP AS OF '2024-01-01'"
    assert one.moment == ("TIMESTAMP", "'2024-01-01'")
    assert [text[start:end] for start, end in one.prefixes] == ["d.", "d."]


@pytest.mark.parametrize(
    ("clause", "moment"),
    [
        ("VERSION AS OF 20240101000000000", ("VERSION", "20240101000000000")),
        ("FOR SYSTEM_TIME AS OF date_sub(current_date(), 1)", ("TIMESTAMP", "date_sub(current_date(), 1)")),
        ("AS x", None),
    ],
)
def test_time_travel(clause: str, moment: tuple[str, str] | None) -> None:
    assert references_in(f"SELECT * FROM t {clause}")[0].moment == moment


def test_a_table_function_has_its_arguments() -> None:
    text = "SELECT count(*) FROM hudi_table_changes('d.t', 'cdc', 'earliest') AS c"
    (one,) = references_in(text)
    assert (str(one.name), one.arguments, one.alias) == ("hudi_table_changes", ("'d.t'", "'cdc'", "'earliest'"), "c")
    assert text[one.name.start : one.end].endswith("'earliest')")


def test_edits_do_not_move_each_other() -> None:
    assert edited("a b c", [Edit(0, 1, "xx"), Edit(4, 5, ""), Edit(2, 3, "yyy")]) == "xx yyy "
