"""Filters on tables of real Hudi: no slice with a matching row is left out, and indexes leave out what they can."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_fast.index.tagging import BucketSettings
from hudi_fast.metadata_table.state import metadata_of
from hudi_fast.reading.scan import ScanQuery, plan_scan
from hudi_fast.reading.slice_reader import read_slice
from hudi_fast.reading.time_travel import state_for_query
from hudi_fast.storage.base import Storage
from hudi_fast.view.table_state import TableState
from tests.support.golden import Golden
from tests.support.tiers import is_long

TABLES = (
    "h015_cow_record_index",
    "mor_v6_alltypes",
    "mor_v8_alltypes",
    "mor_v8_secondary_index",
    "mor_v9_alltypes",
    "mor_v9_bucket",
    "mor_v9_consistent_bucket",
    "mor_v9_partial_update_logs",
    "mor_v9_record_index",
    "mor_v9_secondary_index",
    "cow_v9_schema_evolved",
    "mor_v9_schema_evolved_logs",
)

FILTERS, FILTERS_OF_LONG = 40, 100
"""Most filters that are tried on a table."""

Place = tuple[str, str]


def rows_by_slice(state: TableState) -> dict[Place, pa.Table]:
    plan = plan_scan(state)
    return {
        (one.partition, one.file_id): pa.Table.from_batches(read_slice(plan.scan, one), plan.scan.output)
        for one in plan.slices
    }


def filters_on(name: str, values: pa.ChunkedArray) -> Iterator[pc.Expression]:
    """Filters of every kind on a column, about values that it has and does not have."""
    column = pc.field(name)
    yield column.is_null()
    yield column.is_valid()
    if pa.types.is_nested(values.type) or pa.types.is_binary(values.type):
        return
    present = pc.drop_null(values)
    if not len(present):
        return
    ordered = present.take(pc.sort_indices(present))
    for place in {0, len(ordered) // 2, len(ordered) - 1}:
        value = ordered[place]
        if isinstance(value.as_py(), float) and math.isnan(value.as_py()):
            continue
        yield column == value
        yield column != value
        yield column < value
        yield column >= value
        yield ~(column <= value)
        if pa.types.is_string(values.type):
            text = value.as_py()
            yield pc.starts_with(column, text[:2])
            yield pc.match_like(column, f"{text[:3]}%")
            yield ~pc.match_like(column, f"{text[:1]}%")
            yield column == f"{text}\U0001f600"
    listed = [ordered[0], ordered[-1]]
    yield column.isin(pa.array([one.as_py() for one in listed], values.type))
    yield ~column.isin(pa.array([listed[0].as_py()], values.type))


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_no_slice_with_a_matching_row_is_left_out(
    name: str, golden: Callable[[str], Golden], request: pytest.FixtureRequest
) -> None:
    state = state_for_query(Storage(golden(name).table), None)
    assert metadata_of(state) is not None
    rows = rows_by_slice(state)
    everything = pa.concat_tables(rows.values())
    filters = [one for name in everything.column_names for one in filters_on(name, everything.column(name))]
    limit = FILTERS_OF_LONG if is_long(request.config) else FILTERS
    filters = filters[:: math.ceil(len(filters) / limit)]
    skipped = 0
    for filter_ in filters:
        plan = plan_scan(state, [], filter_, threads=1)
        kept = {(one.partition, one.file_id) for one in plan.slices}
        wanted = {place for place, part in rows.items() if part.filter(filter_).num_rows}
        assert wanted <= kept, f"{filter_}: {plan.skipping.steps}"
        skipped += len(kept) < len(rows)
    assert skipped >= len(filters) // 10


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "settings"), [("mor_v9_bucket", BucketSettings(count=4)), ("mor_v9_consistent_bucket", None)]
)
def test_the_bucket_of_a_key_holds_its_row(
    name: str, settings: BucketSettings | None, golden: Callable[[str], Golden]
) -> None:
    state = state_for_query(Storage(golden(name).table), None, use_metadata=False)
    rows = rows_by_slice(state)
    query = ScanQuery(bucket=settings)
    for (partition, file_id), part in rows.items():
        for key in part.column("id").to_pylist()[:5]:
            plan = plan_scan(state, [], (pc.field("id") == key) & (pc.field("part") == partition), query=query)
            assert [(one.partition, one.file_id) for one in plan.slices] == [(partition, file_id)]
            assert plan.skipping.steps[-1].index == "bucket"


def test_file_groups_that_are_no_such_buckets_are_kept(golden: Callable[[str], Golden]) -> None:
    state = state_for_query(Storage(golden("mor_v9_bucket").table), None, use_metadata=False)
    few = plan_scan(state, [], pc.field("id") == "k00000", query=ScanQuery(bucket=BucketSettings(count=2)))
    assert len(few.slices) == 12
