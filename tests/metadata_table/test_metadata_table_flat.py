"""Schemas of decoded records."""

from __future__ import annotations

import pytest

from hudi_fast.metadata_table import records
from hudi_fast.metadata_table.layout import PartitionKind


@pytest.mark.parametrize("kind", PartitionKind)
def test_every_kind_of_partition_has_a_table_that_begins_with_the_key(kind: PartitionKind) -> None:
    assert records.flat_schema(kind).field(0).name == "key"
    assert not records.flat_schema(kind).field(0).nullable


def test_statistics_of_files_partitions_and_expressions_have_one_form() -> None:
    kinds = (PartitionKind.COLUMN_STATS, PartitionKind.PARTITION_STATS, PartitionKind.EXPRESSION_INDEX)
    assert {id(records.flat_schema(kind)) for kind in kinds} == {id(records.COLUMN_STATS)}
