"""Tables of real Hudi: what producers make of their files is what their metadata tables hold."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hudi_fast.metadata_table.read import scan
from hudi_fast.metadata_table.records import RECORD_SCHEMA, RECORD_SCHEMA_0_15
from hudi_fast.metadata_table.updates.produce import record_counts, sources_of_table
from hudi_fast.storage.base import Storage
from tests.metadata_table.producer_runs import Rows, context_of, flat_rows, produced
from tests.support.golden import Golden

TABLES = [
    "cow_v6_mixed",
    "cow_v9_clustered",
    "cow_v9_complex_keygen",
    "cow_v9_nometa",
    "cow_v9_overwrites",
    "cow_v9_restored",
    "cow_v9_schema_evolved",
    "h015_cow_record_index",
    "h015_mor_rollback_compacted",
    "h015_mor_types",
    "mor_v6_compacted",
    "mor_v8_alltypes",
    "mor_v8_secondary_index",
    "mor_v9_alltypes",
    "mor_v9_bucket",
    "mor_v9_cdc",
    "mor_v9_compacted",
    "mor_v9_delete_flag_and_rollback",
    "mor_v9_nonpartitioned_multi_order",
    "mor_v9_parquet_log",
    "mor_v9_partial_update_logs",
    "mor_v9_record_index",
    "mor_v9_secondary_index",
]


def without_instants(rows: Rows) -> Rows:
    """A new index knows which file holds a key, not which write brought it there."""
    return {key: [{**row, "instant_ms": 0} for row in found] for key, found in rows.items()}


def of_files(rows: Rows, names: set[str]) -> Rows:
    """Statistics of these files and of partitions: a new expression index leaves older versions of files out."""
    return {key: found for key, found in rows.items() if found[0]["type"] == 6 or found[0]["file_name"] in names}


def as_written_by_1_x(rows: Rows) -> Rows:
    """Release 0.15 keeps statistics of all five meta columns, later ones of three."""
    return {
        key: found
        for key, found in rows.items()
        if found[0].get("column_name") not in ("_hoodie_commit_seqno", "_hoodie_file_name")
    }


@pytest.mark.parametrize("name", TABLES)
def test_a_metadata_table_built_anew_holds_what_the_stored_one_does(name: str, golden: Callable[[str], Golden]) -> None:
    context, table = context_of(Storage(golden(name).table))
    assert table is not None
    schema = RECORD_SCHEMA_0_15 if name.startswith("h015") else RECORD_SCHEMA
    for partition in table.partitions:
        made, gone = produced(sources_of_table(context, partition, "20260101000000000"), partition, schema)
        stored = as_written_by_1_x(flat_rows(scan(table, partition)))
        if partition == "record_index":
            made, stored = without_instants(made), without_instants(stored)
        elif partition.startswith("expr_index"):
            stored = of_files(stored, {found[0]["file_name"] for found in made.values()})
        assert not gone
        assert made == stored, partition


def test_an_index_is_sized_by_the_rows_of_base_files(golden: Callable[[str], Golden]) -> None:
    context, _ = context_of(Storage(golden("mor_v9_secondary_index").table))
    assert record_counts(context) == {"p0": 30, "p1": 30, "p2": 30}
