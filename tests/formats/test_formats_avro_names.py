"""Names and members in the JSON of Avro schemas."""

from __future__ import annotations

import pytest

from hudi_fast.errors import CorruptTableError, UnsupportedFeatureError
from hudi_fast.formats.avro.schema import Names, full_name, malformed, member, named


@pytest.mark.parametrize(
    ("name", "namespace", "expected"),
    [("a", "", "a"), ("a", "x.y", "x.y.a"), ("z.a", "x.y", "z.a"), ("z.a", "", "z.a")],
)
def test_a_name_gets_its_namespace_unless_it_has_one(name: str, namespace: str, expected: str) -> None:
    assert full_name(name, namespace) == expected


def test_a_reference_is_resolved_in_its_namespace() -> None:
    names = Names("the schema", {"x.a": 1, "a": 2})
    assert named("a", "x", "c", names) == 1
    assert named("a", "", "c", names) == 2


def test_an_unknown_or_recursive_reference_is_refused_with_its_column() -> None:
    names: Names[int] = Names("a.log", {}, {"x.r"})
    with pytest.raises(UnsupportedFeatureError, match=r"Column c\.d in a\.log .*x\.r"):
        named("r", "x", "c.d", names)
    with pytest.raises(CorruptTableError, match=r"a\.log.*'nope' at column c"):
        named("nope", "", "c", names)


def test_a_missing_member_is_refused() -> None:
    names: Names[int] = Names("a.log")
    assert member({"items": "int"}, "items", "c", names) == "int"
    with pytest.raises(CorruptTableError, match="without 'items' at column c"):
        member({"type": "array"}, "items", "c", names)
    assert "at column" not in str(malformed("a number", "", names))
