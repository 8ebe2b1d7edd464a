"""File groups that a replace commit ends."""

from __future__ import annotations

from pathlib import Path

import pytest

import hudi_fast as hf
from hudi_fast.config.write_options import WriteOptions
from hudi_fast.errors import CommitConflictError
from hudi_fast.writing.flow import replaced_groups
from tests.support.small_tables import options, plain_rows
from tests.writing.plans import drafted

PARTITIONS = ["p0", "p1"]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Two partitions with one file group each."""
    hf.write(plain_rows(range(8)), tmp_path, options())
    return tmp_path


def replaced(path: Path, operation: str, written: list[str], **more: str) -> list[str]:
    given = {**options(operation=operation), **more}
    plan, _ = drafted(path, plain_rows([0]), given)
    found = replaced_groups(plan, plan.view, WriteOptions.from_options(given), written)
    assert all(len(ids) == 1 for ids in found.values())
    return sorted(found)


@pytest.mark.slow("insert_overwrite-written1-expected1")
@pytest.mark.parametrize(
    ("operation", "written", "expected"),
    [
        ("upsert", ["p0"], []),
        ("insert_overwrite", ["p0", "new"], ["p0"]),
        ("insert_overwrite_table", ["p0"], PARTITIONS),
    ],
)
def test_an_operation_ends_the_groups_that_it_replaces(
    table: Path, operation: str, written: list[str], expected: list[str]
) -> None:
    assert replaced(table, operation, written) == expected


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [("p0,p2", ["p0"]), ("p*", PARTITIONS), ("*1", ["p1"]), ("p.", []), ("%2A1", ["p1"])],
)
def test_partitions_to_delete_are_named_with_stars(table: Path, patterns: str, expected: list[str]) -> None:
    given = {"hoodie.datasource.write.partitions.to.delete": patterns}
    assert replaced(table, "delete_partition", [], **given) == expected


def test_groups_that_a_pending_clustering_rewrites_are_not_ended(table: Path) -> None:
    hf.HudiTable.open(table).services.schedule_cluster(
        options={"hoodie.clustering.plan.strategy.single.group.clustering.enabled": "true"}
    )
    with pytest.raises(CommitConflictError, match="pending"):
        replaced(table, "insert_overwrite_table", [])
