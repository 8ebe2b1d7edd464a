"""Timestamps under a wrong label: which files have them, and what their numbers mean."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hudi_fast.errors import InvalidDataError
from hudi_fast.schema.cast import counts_milliseconds, file_cast, leaf_cast, stored_cast
from hudi_fast.schema.conform import plan_conform, plan_file
from tests.support.mislabelled_tables import LOCAL_MS, LOCAL_US, MILLIS, PAIRS, UTC_MS, UTC_US, counts, labelled_rows
from tests.support.mislabelled_tables import moments as moments_of

KINDS = [pa.int64(), UTC_MS, UTC_US, LOCAL_MS, LOCAL_US, pa.timestamp("ns", "UTC"), pa.int32(), pa.string()]
NUMBER = MILLIS + 1
"""No whole number of milliseconds if it is in microseconds."""


@pytest.mark.parametrize("current", KINDS, ids=str)
@pytest.mark.parametrize("stored", KINDS, ids=str)
def test_only_microseconds_of_a_column_of_milliseconds_have_a_wrong_label(
    stored: pa.DataType, current: pa.DataType
) -> None:
    assert counts_milliseconds(stored, current) == ((stored, current) == (UTC_US, UTC_MS))


def test_a_zone_may_have_any_name() -> None:
    assert counts_milliseconds(pa.timestamp("us", "+00:00"), UTC_MS)


def test_rows_of_a_file_keep_their_numbers_and_rows_of_a_user_their_moment() -> None:
    values = pa.array([MILLIS, None], pa.int64()).view(UTC_US)
    in_file, of_user = file_cast(UTC_US, UTC_MS, "c"), leaf_cast(UTC_US, UTC_MS, "c")
    assert in_file is not None
    assert of_user is not None
    assert in_file(values).cast(pa.int64()).to_pylist() == [MILLIS, None]
    assert of_user(values).cast(pa.int64()).to_pylist() == [MILLIS // 1000, None]
    assert in_file(values.slice(1)).cast(pa.int64()).to_pylist() == [None]
    odd = pa.array([NUMBER], pa.int64()).view(UTC_US)
    in_log = stored_cast(UTC_US, UTC_MS, "c")
    assert in_log is not None
    assert in_log(odd).cast(pa.int64()).to_pylist() == [NUMBER]
    with pytest.raises(pa.ArrowInvalid):
        of_user(odd)


def test_nested_fields_of_a_file_are_read_like_columns() -> None:
    stored, current = labelled_rows(range(7), PAIRS, 0, 1), labelled_rows(range(7), PAIRS, 1, 1)
    found = moments_of(plan_file(stored.schema, current.schema).apply(stored), PAIRS)
    for n in range(7):
        for pair in PAIRS:
            number = None if n % 5 == 4 else MILLIS + 1000 * n
            name = [each for each in found[f"k{n}"] if each == "_as_".join(map(_short, pair))]
            assert found[f"k{n}"][name[0]] == counts(pair, number), (n, name)


def test_rows_that_are_not_of_a_file_are_converted() -> None:
    pairs = [(UTC_US, UTC_MS)]
    stored, current = labelled_rows([0], pairs, 0, 1), labelled_rows([0], pairs, 1, 1)
    found = moments_of(plan_conform(stored.schema, current.schema).apply(stored), pairs)
    assert found == {"k0": {"utc_us_as_utc_ms": MILLIS // 1000}}
    odd = labelled_rows([0], pairs, 0, 1, start=NUMBER)
    with pytest.raises(InvalidDataError, match="utc_us_as_utc_ms"):
        plan_conform(odd.schema, current.schema).apply(odd)


def _short(kind: pa.DataType) -> str:
    if pa.types.is_integer(kind):
        return "long"
    return f"{'local' if kind.tz is None else 'utc'}_{kind.unit}"
