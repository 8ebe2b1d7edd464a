"""Names of columns in upper and lower case."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_fast.errors import ConfigError
from hudi_fast.schema.names import renamed_fields, resolve_name

NAMES = st.lists(st.text("aAbBéÉ1_", min_size=1, max_size=3), min_size=1, max_size=4, unique=True)


@given(NAMES, st.data())
def test_a_name_means_the_one_column_that_is_spelt_alike_but_for_case(names, data) -> None:
    written = data.draw(st.sampled_from(names).flatmap(lambda one: st.sampled_from([one, one.upper(), one.lower()])))
    fits = [name for name in names if name.lower() == written.lower()]
    if len(fits) == 1:
        assert resolve_name(written, names, "t") == fits[0]
    else:
        with pytest.raises(ConfigError, match="ambiguous"):
            resolve_name(written, names, "t")
    assert resolve_name(written, names, "t", exact=True) == (written if written in names else None)
    assert resolve_name("other", names, "t") is None


def test_an_ambiguous_name_is_told_with_the_names_that_fit() -> None:
    with pytest.raises(ConfigError, match=r"the source: the name 'v' is ambiguous, because 'V' and 'v' differ only"):
        resolve_name("v", ["V", "id", "v"], "the source")


def lists(kind: pa.DataType) -> list[pa.DataType]:
    return [pa.list_(kind), pa.large_list(kind)]


INNER = pa.struct([("Y", pa.string()), ("X", pa.int32())])
WANTED = pa.struct([("x", pa.int64()), ("y", pa.string())])
VALUE = {"Y": "a", "X": 1}
OTHER = {"x": 1, "y": "a"}
NESTED = {
    "struct": (INNER, WANTED, VALUE, OTHER),
    "list": (pa.list_(INNER), pa.list_(WANTED), [VALUE, None], [OTHER, None]),
    "large list": (pa.large_list(INNER), pa.list_(WANTED), [VALUE], [OTHER]),
    "map": (pa.map_(pa.string(), INNER), pa.map_(pa.string(), WANTED), [("k", VALUE)], [("k", OTHER)]),
    "struct in struct": (pa.struct([("In", INNER)]), pa.struct([("in", WANTED)]), {"In": VALUE}, {"in": OTHER}),
}


@pytest.mark.parametrize(("own", "wanted", "value", "expected"), NESTED.values(), ids=NESTED)
def test_fields_take_the_names_of_another_type_at_every_level(own, wanted, value, expected) -> None:
    column = pa.chunked_array([pa.array([value, None, value], own).slice(1), pa.array([], own)])
    made = renamed_fields(column, wanted, "c").cast(wanted)
    assert made.to_pylist() == [None, expected]


def test_fields_that_differ_only_in_case_are_refused() -> None:
    column = pa.chunked_array([pa.array([{"x": 1, "X": 2}])])
    with pytest.raises(ConfigError, match=r"c, its fields: the name 'x' is ambiguous"):
        renamed_fields(column, pa.struct([("x", pa.int64())]), "c")
