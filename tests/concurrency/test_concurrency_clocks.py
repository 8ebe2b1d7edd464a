"""Writers whose clocks are seconds apart: what becomes visible later is later, on the table's timeline and that of its
metadata table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import hudi_fast as hf
from tests.concurrency.faults import clock_off
from tests.support.interleaving import services, settings_for, write_during
from tests.support.small_tables import plain_rows, table_rows

pytestmark = pytest.mark.slow

QUICKLY_COMPACTED = {"hoodie.metadata.compact.max.delta.commits": "2"}


@contextmanager
def host_ahead() -> Iterator[None]:
    clock_off(10_000)
    try:
        yield
    finally:
        clock_off(0)


def writes_of(path: Path, settings: dict[str, str]) -> None:
    """Enough of them that the metadata table is compacted, at a time that the other host's clock has not reached."""
    with host_ahead():
        for ts in (2, 3, 4):
            hf.write(plain_rows([1], ts), path, settings)


def compaction_of(path: Path, settings: dict[str, str]) -> None:
    with host_ahead():
        hf.write(plain_rows([0], 2), path, {**settings, "hoodie.write.lock.wait_time_ms": "1000"})
        services(path).compact(settings)


@pytest.mark.slow
@pytest.mark.parametrize("version", ["8", "9"])
@pytest.mark.parametrize(
    ("kind", "meanwhile"),
    [("COW", writes_of), ("MOR", writes_of), ("MOR", compaction_of)],
    ids=["cow", "mor", "compact"],
)
def test_a_write_of_a_host_that_is_behind_is_seen(
    kind: str, meanwhile: Callable[[Path, dict[str, str]], None], version: str, tmp_path: Path
) -> None:
    path, settings = tmp_path / "t", settings_for(kind, version, QUICKLY_COMPACTED)
    hf.write(plain_rows(range(8), partitions=4), path, settings)
    settings["hoodie.datasource.write.operation"] = "upsert"
    write = write_during(path, plain_rows([2], 9, partitions=4), settings, lambda: meanwhile(path, settings))
    assert table_rows(path)["k00002"] == ("p2", 9, "a2")
    assert services(path).validate().differences.to_pylist() == []
    told = hf.HudiTable.open(path).history().to_pylist()
    latest = max(told, key=lambda one: one["completion"] or "")
    assert latest["instant"] == write.instant
